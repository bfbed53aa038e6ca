package packet

import (
	"fmt"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Bounds of completion: characters of a text or of one suggestion, and suggestions in an answer.
const (
	maxSuggestionText = 32767
	maxSuggestions    = 1 << 16
)

// SuggestionsRequest asks how the text that a client is typing could go on.
type SuggestionsRequest struct {
	ID   int32 // 393 (1.13) on: the answer repeats it
	Text string
	// Before 393: whether the text is in a command block, without a slash (107 on), and the block the player looks at.
	InBlock  bool
	LookedAt *int64 // packed position
}

// ParseSuggestionsRequest reads a serverbound TabComplete.
//
// Layout: play/toServer/tab_complete.
func ParseSuggestionsRequest(protocol int32, body []byte) (SuggestionsRequest, error) {
	r := field.NewReader(body)
	var q SuggestionsRequest
	if proto.Has(protocol, proto.CommandTree) {
		q.ID, q.Text = r.VarInt(), r.String(maxSuggestionText)
		return done(r, "suggestions request", q)
	}
	q.Text = r.String(maxSuggestionText)
	if proto.Has(protocol, proto.SuggestionsInBlock) {
		q.InBlock = r.Bool()
	}
	if r.Bool() {
		at := r.I64()
		q.LookedAt = &at
	}
	return done(r, "suggestions request", q)
}

// AppendSuggestionsRequest writes a serverbound TabComplete.
func AppendSuggestionsRequest(dst []byte, protocol int32, q SuggestionsRequest) []byte {
	if proto.Has(protocol, proto.CommandTree) {
		return field.AppendString(field.AppendVarInt(dst, q.ID), q.Text)
	}
	dst = field.AppendString(dst, q.Text)
	if proto.Has(protocol, proto.SuggestionsInBlock) {
		dst = field.AppendBool(dst, q.InBlock)
	}
	if dst = field.AppendBool(dst, q.LookedAt != nil); q.LookedAt != nil {
		dst = field.AppendI64(dst, *q.LookedAt)
	}
	return dst
}

// Suggestions answers a request. Before 393 it is the Matches' texts alone, each a replacement for the last word.
type Suggestions struct {
	ID            int32
	Start, Length int32 // what to replace, in UTF-16 units from the beginning of the text, its slash included
	Matches       []Suggestion
}

// Suggestion is one way in which a text could go on.
type Suggestion struct {
	Text    string
	Tooltip *Text // 393 on
}

// ParseSuggestions reads a clientbound TabComplete.
//
// Layout: play/toClient/tab_complete.
func ParseSuggestions(protocol int32, body []byte) (Suggestions, error) {
	r := field.NewReader(body)
	var s Suggestions
	modern := proto.Has(protocol, proto.CommandTree)
	least := 1
	if modern {
		s.ID, s.Start, s.Length = r.VarInt(), r.VarInt(), r.VarInt()
		least = 2
	}
	n := r.Count(least)
	if n > maxSuggestions {
		r.Fail(fmt.Errorf("%d suggestions, at most %d allowed", n, maxSuggestions))
	}
	for ; n > 0 && r.Err() == nil; n-- {
		m := Suggestion{Text: r.String(maxSuggestionText)}
		if modern && r.Bool() {
			t := ReadText(r, protocol, proto.Play)
			m.Tooltip = &t
		}
		s.Matches = append(s.Matches, m)
	}
	return done(r, "suggestions", s)
}

// AppendSuggestions writes a clientbound TabComplete.
func AppendSuggestions(dst []byte, protocol int32, s Suggestions) []byte {
	modern := proto.Has(protocol, proto.CommandTree)
	if modern {
		dst = field.AppendVarInt(field.AppendVarInt(field.AppendVarInt(dst, s.ID), s.Start), s.Length)
	}
	dst = field.AppendVarInt(dst, int32(len(s.Matches)))
	for _, m := range s.Matches {
		dst = field.AppendString(dst, m.Text)
		if !modern {
			continue
		}
		if dst = field.AppendBool(dst, m.Tooltip != nil); m.Tooltip != nil {
			dst = m.Tooltip.Append(dst, protocol, proto.Play)
		}
	}
	return dst
}
