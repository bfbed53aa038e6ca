// Package frame holds the frames of the Rooms protocol as values, and the rules of their texts. It promises that it
// takes only what is within the protocol's bounds, and writes only what the spec file says.
package frame

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

// Protocol is the version that is spoken; a client's has to be the same.
const Protocol = 1

// Limits of the protocol. Characters are UTF-16 code units.
const (
	MaxChars        = 4096             // of a client's frame
	MaxBytes        = 3 * MaxChars     // that a client's frame can have
	FramesPerSecond = 120              // of a client
	MaxBurst        = 600              // frames that wait while the host is stalled
	MaxInt          = int64(1)<<53 - 1 // of whole numbers, as JavaScript has them
	MaxChat         = 280              // characters
	MaxName         = 32               // characters
	History         = 100              // messages that newcomers are told of
	Bans            = 256              // of a room
)

// Code is a WebSocket close code.
type Code uint16

// The close codes, and the reasons that they go with.
const (
	Normal    Code = 1000
	GoingAway Code = 1001
	Policy    Code = 1008

	Elsewhere = "Reconnected elsewhere"  // 1000
	Closed    = "Host closed the room"   // 1001
	Stalled   = "State receiver stalled" // 1001
	Timeout   = "Join timeout"           // 1008
	Invalid   = "Invalid request"        // 1008
	Removed   = "Removed by host"        // 1008
)

// Refusal is an error for the client, which gets its text as it is.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

// Errors of [Parse].
const (
	ErrInvalid = Refusal("Invalid frame")
	ErrLong    = Refusal("Frame too long")
)

// The types of frames that are not a game's.
const (
	Join     = "join"
	Ack      = "ack"
	Chat     = "chat"
	Ping     = "ping"
	Moderate = "moderate"
	Leave    = "leave"

	Welcome  = "welcome"
	Baseline = "baseline"
	Snapshot = "snapshot"
	State    = "state"
	Social   = "social"
	Left     = "left"
	Remove   = "removed"
	Notice   = "socialNotice"
	Error    = "error"
)

// Actions of [Moderate].
const (
	Lock = "lock"
	Kick = "kick"
	Ban  = "ban"
)

// Client is a frame of a client. Only the fields of its type are set.
type Client struct {
	Type   string
	Ack    int64 // on any frame
	HasAck bool

	Protocol  int64 // of a join; 0 where there is no whole number
	Name      string
	Resume    string
	HasResume bool
	Binary    bool

	Text     string // of a chat
	Kind     string // of a ping
	Action   string // of a moderate
	Locked   bool
	PlayerID string

	Fields state.Object // the whole frame
}

// Units returns how many characters a text has.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// Parse reads a frame of a client.
func Parse(b []byte) (*Client, error) {
	if len(b) > MaxBytes || len(b) > MaxChars && Units(string(b)) > MaxChars {
		return nil, ErrLong
	}
	v, err := state.Parse(b)
	if err != nil || v.Kind() != state.Obj {
		return nil, ErrInvalid
	}
	c := &Client{Fields: v.Obj()}
	r := reader{o: c.Fields}
	c.Type, _ = r.text("type", true)
	c.Ack, c.HasAck = r.whole("ack", c.Type == Ack)
	switch c.Type {
	case Join:
		if v, ok := c.Fields.Get("protocol"); ok && v.Kind() == state.Int {
			c.Protocol = v.Int()
		}
		c.Name, _ = r.text("name", false)
		c.Resume, c.HasResume = r.text("resume", false)
		c.Binary = r.truth("binaryStates", false)
	case Chat:
		c.Text, _ = r.text("text", true)
	case Ping:
		c.Kind, _ = r.text("kind", true)
	case Moderate:
		c.Action, _ = r.text("action", true)
		switch c.Action {
		case Lock:
			c.Locked = r.truth("locked", true)
		case Kick, Ban:
			c.PlayerID, _ = r.text("playerId", true)
		}
	}
	if r.bad {
		return nil, ErrInvalid
	}
	return c, nil
}

// reader takes fields of an object.
type reader struct {
	o   state.Object
	bad bool // one is missing or of another type
}

func (r *reader) get(key string, k state.Kind, must bool) (state.Value, bool) {
	v, ok := r.o.Get(key)
	if !ok && must || ok && v.Kind() != k {
		r.bad = true
		return state.Value{}, false
	}
	return v, ok
}

func (r *reader) text(key string, must bool) (string, bool) {
	v, ok := r.get(key, state.Str, must)
	return v.Str(), ok
}

func (r *reader) truth(key string, must bool) bool {
	v, _ := r.get(key, state.Bool, must)
	return v.Bool()
}

func (r *reader) whole(key string, must bool) (int64, bool) {
	v, ok := r.get(key, state.Int, must)
	if n := v.Int(); n > MaxInt || n < -MaxInt {
		r.bad = true
	}
	return v.Int(), ok
}

// Text returns a chat message as it goes out, and whether it may: one line of 1 to most characters, without characters
// that are invisible or turn the writing round.
func Text(s string, most int) (string, bool) {
	s = strings.TrimSpace(s)
	if s == "" || !utf8.ValidString(s) || len(s) > 3*most || Units(s) > most {
		return "", false
	}
	for _, r := range s {
		switch {
		case r == '\u200c' || r == '\u200d': // between letters of some scripts, and within emoji
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Cs):
			return "", false
		}
	}
	return s, true
}

// A server sends the rest.

// Member is one of a room's members, as others see them.
type Member struct {
	ID, Name  string
	Connected bool
	CanBan    bool // their identity is verified
}

// Message is a chat message.
type Message struct {
	ID                         int64
	PlayerID, PlayerName, Text string
	System                     bool // by the room, about the player
}

// Location is a place of an epoch.
type Location struct {
	X, Y, Z float64
	Epoch   int64
}

// Pinged is a place that somebody points at.
type Pinged struct {
	ID                         int64
	PlayerID, PlayerName, Kind string
	At                         Location
}

// Greeting is the welcome of a peer.
type Greeting struct {
	ID, Resume string
	Capacity   int
	Sequence   int64
	Codec      string // of binary states; empty: they are JSON
}

func str(dst []byte, key, v string) []byte {
	dst = append(append(append(dst, ',', '"'), key...), '"', ':')
	return state.AppendStr(dst, v)
}

func num(dst []byte, key string, v int64) []byte {
	dst = append(append(append(dst, ',', '"'), key...), '"', ':')
	return state.OfInt(v).AppendJSON(dst)
}

func truth(dst []byte, key string, v bool) []byte {
	dst = append(append(append(dst, ',', '"'), key...), '"', ':')
	return state.OfBool(v).AppendJSON(dst)
}

func begin(dst []byte, kind string) []byte {
	return append(append(append(dst, `{"type":"`...), kind...), '"')
}

// AppendWelcome writes a welcome, with the authority's fields.
func AppendWelcome(dst []byte, g *Greeting, fields state.Object) []byte {
	dst = num(begin(dst, Welcome), "protocol", Protocol)
	dst = num(str(str(dst, "id", g.ID), "resume", g.Resume), "capacity", int64(g.Capacity))
	dst = num(dst, "sequence", g.Sequence)
	if g.Codec != "" {
		dst = str(dst, "stateCodec", g.Codec)
	}
	return append(state.AppendFull(dst, fields), '}')
}

// AppendBaseline writes a baseline.
func AppendBaseline(dst []byte, epoch, tick int64, o state.Object) []byte {
	return append(state.AppendFull(num(num(begin(dst, Baseline), "epoch", epoch), "tick", tick), o), '}')
}

// AppendSnapshot writes a snapshot.
func AppendSnapshot(dst []byte, epoch, tick int64, initial bool, o state.Object) []byte {
	dst = num(num(begin(dst, Snapshot), "epoch", epoch), "tick", tick)
	if initial {
		dst = truth(dst, "initial", true)
	}
	return append(state.AppendFull(dst, o), '}')
}

// AppendStateHead begins a state frame; the delta and a closing brace have to follow.
func AppendStateHead(dst []byte, base, tick, epoch int64) []byte {
	return append(num(num(num(begin(dst, State), "base", base), "tick", tick), "epoch", epoch), `,"delta":`...)
}

// AppendSocial writes a roster. leader may be empty; history is nil, except for newcomers.
func AppendSocial(dst []byte, leader string, locked bool, members []Member, history []Message) []byte {
	dst = begin(dst, Social)
	if leader == "" {
		dst = append(dst, `,"leaderId":null`...)
	} else {
		dst = str(dst, "leaderId", leader)
	}
	dst = append(truth(dst, "locked", locked), `,"members":[`...)
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = state.AppendStr(append(dst, `{"id":`...), m.ID)
		dst = append(truth(truth(str(dst, "name", m.Name), "connected", m.Connected), "canBan", m.CanBan), '}')
	}
	dst = append(dst, ']')
	if history != nil {
		dst = append(dst, `,"history":[`...)
		for i := range history {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendMessage(dst, &history[i])
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendMessage(dst []byte, m *Message) []byte {
	dst = state.OfInt(m.ID).AppendJSON(append(dst, `{"id":`...))
	return append(truth(str(str(str(dst, "playerId", m.PlayerID), "playerName", m.PlayerName), "text", m.Text), "system", m.System), '}')
}

// AppendChat writes a message.
func AppendChat(dst []byte, m *Message) []byte {
	return append(appendMessage(append(begin(dst, Chat), `,"message":`...), m), '}')
}

// AppendPing writes a ping.
func AppendPing(dst []byte, p *Pinged) []byte {
	dst = state.OfInt(p.ID).AppendJSON(append(begin(dst, Ping), `,"ping":{"id":`...))
	dst = str(str(str(dst, "playerId", p.PlayerID), "playerName", p.PlayerName), "kind", p.Kind)
	dst = append(dst, `,"location":{"x":`...)
	for i, v := range [...]float64{p.At.X, p.At.Y, p.At.Z} {
		if i > 0 {
			dst = append(dst, ',', '"', 'x'+byte(i), '"', ':')
		}
		q, ok := state.Quantise(v, state.Decimals)
		if !ok {
			q = 0
		}
		dst = state.OfFloat(q).AppendJSON(dst)
	}
	return append(num(dst, "epoch", p.At.Epoch), '}', '}', '}')
}

// AppendLeft writes the answer to a leave.
func AppendLeft(dst []byte) []byte { return append(begin(dst, Left), '}') }

// AppendSaid writes a frame that has only a message: a removed, socialNotice or error.
func AppendSaid(dst []byte, kind, message string) []byte {
	return append(str(begin(dst, kind), "message", message), '}')
}

// Ended is how a transport ended. A zero Code is that of one that was lost without a word.
type Ended struct {
	Code   Code
	Reason string
}

// Error implements error.
func (e *Ended) Error() string {
	if e.Code == 0 {
		return "the room's transport was lost"
	}
	return "the room closed with " + strconv.Itoa(int(e.Code)) + " " + e.Reason
}
