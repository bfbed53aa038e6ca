package line

import (
	"strconv"
	"strings"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Mute tells a player whether the server lets their voice through. The zero value says that it does.
type Mute struct {
	Kind    talk.MuteKind
	Timed   bool   // it lapses after Seconds; else it stays until it is lifted
	Seconds int    // from now, since the two machines do not share a clock
	Reason  string // empty: none given
}

const mutePrefix = "SSVC_MUTE_V1 "

// AppendMute writes "SSVC_MUTE_V1 <0|1|2> <seconds|-> <b64 reason|->".
func AppendMute(dst []byte, m *Mute) []byte {
	dst = append(append(dst, mutePrefix...), '0'+byte(m.Kind), ' ')
	if m.Timed {
		dst = strconv.AppendInt(dst, int64(min(max(0, m.Seconds), maxNumber)), 10)
	} else {
		dst = append(dst, absent...)
	}
	return appendText(append(dst, ' '), m.Reason)
}

func parseMute(s string) (any, error) {
	words := strings.Split(s, " ")
	if len(words) != 3 || len(words[0]) != 1 || words[0][0] < '0' || words[0][0] > '2' {
		return nil, ErrMalformed
	}
	m := &Mute{Kind: talk.MuteKind(words[0][0] - '0')}
	if words[1] != absent {
		var ok bool
		if m.Seconds, ok = number(words[1]); !ok {
			return nil, ErrMalformed
		}
		m.Timed = true
	}
	if words[2] != absent {
		var ok bool
		if m.Reason, ok = decode(words[2]); !ok || !talk.ValidReason(m.Reason) {
			return nil, ErrMalformed
		}
	}
	if m.Kind == talk.NotMuted {
		*m = Mute{} // nothing lapses, for no reason
	}
	return m, nil
}

// Ranges tells which tiers the server offers, the ordinary one apart. A client that has not been told assumes none,
// which is the zero value.
type Ranges struct{ Tiers talk.TierSet }

const rangesPrefix = "SSVC_RANGES_V1 "

// AppendRanges writes "SSVC_RANGES_V1 <whisper 0|1> <shout 0|1>": one flag for each tier but the ordinary one, in their
// order.
func AppendRanges(dst []byte, r Ranges) []byte {
	dst = append(dst, rangesPrefix...)
	for t := talk.Normal + 1; int(t) < talk.Tiers; t++ {
		dst = append(appendFlag(dst, r.Tiers.Has(t)), ' ')
	}
	return dst[:len(dst)-1]
}

func parseRanges(s string) (any, error) {
	words := strings.Split(s, " ")
	if len(words) != talk.Tiers-1 {
		return nil, ErrMalformed
	}
	r := &Ranges{}
	for i, word := range words {
		on, ok := flag(word)
		if !ok {
			return nil, ErrMalformed
		}
		if on {
			r.Tiers = r.Tiers.With(talk.Normal + 1 + talk.Tier(i))
		}
	}
	return r, nil
}
