// Package wire is the codec of the walk protocol, version 1. It promises that a message that parses is written as the
// same bytes again, that it allocates nothing before a length is known to be right, and that a fault names the code to
// close its connection with.
//
// One message is one binary message of a WebSocket. All numbers are little-endian. Ids up to 0x7f go to the server,
// higher ones to the client.
package wire

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// Version is the number of the protocol. A change of a layout raises it.
const Version = 1

// Bounds of messages.
const (
	MaxMessage  = 64 << 10                             // bytes; one of just that many is not too long
	MaxName     = 32                                   // bytes
	MaxEntities = (MaxMessage - headSize) / entitySize // in a snapshot
	headSize    = 7                                    // of a snapshot
	entitySize  = 21                                   // of one entity
	inputSize   = 6
	pingSize    = 9
	welcomeSize = 15
	pongSize    = 13
)

// The ids of messages.
const (
	IDHello    = 0x01
	IDInput    = 0x02
	IDPing     = 0x03
	IDWelcome  = 0x81
	IDSnapshot = 0x82
	IDPong     = 0x83
)

// Ending is the code that a connection is closed with.
type Ending uint16

// The endings of peers who break the rules.
const (
	Protocol  Ending = 1002 // another version, or a message out of place
	Malformed Ending = 1007 // bytes that are no message
	TooBig    Ending = 1009 // more than MaxMessage bytes
)

// Fault is what is wrong with a message.
type Fault struct {
	Ending Ending
	What   string // at most 123 bytes, for the close frame
}

// Error implements error.
func (f *Fault) Error() string { return f.What }

// The faults. There is one value of each, so that a peer who sends nothing else costs no memory.
var (
	errEmpty   = &Fault{Malformed, "a message without bytes"}
	errLength  = &Fault{Malformed, "a message of another length than its layout"}
	errName    = &Fault{Malformed, "a name of more than 32 bytes"}
	errUTF8    = &Fault{Malformed, "a name that is not UTF-8"}
	errVersion = &Fault{Protocol, "protocol version 1 is spoken here"}
	errTooBig  = &Fault{TooBig, "a message of more than 65536 bytes"}
)

// Buttons are the buttons that a client holds.
type Buttons byte

// The buttons; all other bits mean nothing.
const (
	Up Buttons = 1 << iota
	Down
	Left
	Right
)

// Kind is what an entity is.
type Kind uint8

// The kinds.
const (
	KindUnknown Kind = iota
	KindPlayer
	KindObstacle
)

// Hello is a client's first message.
type Hello struct {
	Version byte
	Name    string // at most MaxName bytes of UTF-8
}

// Input says what a client holds. Sequence numbers rise.
type Input struct {
	Sequence uint32
	Buttons  Buttons
}

// Ping asks for a [Pong] with the same clock.
type Ping struct{ Clock int64 } // milliseconds of the client's

// Welcome is the server's first message.
type Welcome struct {
	Version       byte
	Own           uint32 // the client's own entity
	TickRate      byte   // per second
	Width, Height float32
}

// Entity is one thing in a snapshot.
type Entity struct {
	ID           uint32
	Kind         Kind
	X, Y, Radius float32
	Colour       uint32 // 0x00RRGGBB
}

// Snapshot is all that is visible in one tick.
type Snapshot struct {
	Tick     uint32
	Entities []Entity // at most MaxEntities
}

// Pong answers a [Ping].
type Pong struct {
	Clock int64  // the client's, unchanged
	Tick  uint32 // when the ping was handled
}

// Unknown is a message with an id that means nothing to this end, or belongs to the other direction. It shares the
// parsed bytes.
type Unknown []byte

// Misrouted tells whether a message that came to the server has an id of the other direction.
func (u Unknown) Misrouted() bool { return u[0] >= 0x80 }

// ParseClient reads what a client has sent: [Hello], [Input], [Ping] or [Unknown]. An error is a *[Fault].
func ParseClient(p []byte) (any, error) {
	if fault := bounds(p); fault != nil {
		return nil, fault
	}
	switch p[0] {
	case IDHello:
		return hello(p)
	case IDInput:
		if len(p) != inputSize {
			return nil, errLength
		}
		return Input{binary.LittleEndian.Uint32(p[1:]), Buttons(p[5])}, nil
	case IDPing:
		if len(p) != pingSize {
			return nil, errLength
		}
		return Ping{int64(binary.LittleEndian.Uint64(p[1:]))}, nil
	}
	return Unknown(p), nil
}

// ParseServer reads what a server has sent: [Welcome], [Snapshot], [Pong] or [Unknown]. An error is a *[Fault].
func ParseServer(p []byte) (any, error) {
	if fault := bounds(p); fault != nil {
		return nil, fault
	}
	switch p[0] {
	case IDWelcome:
		switch {
		case len(p) >= 2 && p[1] != Version:
			return nil, errVersion
		case len(p) != welcomeSize:
			return nil, errLength
		}
		return Welcome{p[1], binary.LittleEndian.Uint32(p[2:]), p[6], float(p[7:]), float(p[11:])}, nil
	case IDSnapshot:
		if len(p) < headSize || len(p) != headSize+entitySize*int(binary.LittleEndian.Uint16(p[5:])) {
			return nil, errLength
		}
		s := Snapshot{Tick: binary.LittleEndian.Uint32(p[1:]), Entities: make([]Entity, 0, (len(p)-headSize)/entitySize)}
		for e := p[headSize:]; len(e) > 0; e = e[entitySize:] {
			s.Entities = append(s.Entities, Entity{
				binary.LittleEndian.Uint32(e), Kind(e[4]), float(e[5:]), float(e[9:]), float(e[13:]), binary.LittleEndian.Uint32(e[17:]),
			})
		}
		return s, nil
	case IDPong:
		if len(p) != pongSize {
			return nil, errLength
		}
		return Pong{int64(binary.LittleEndian.Uint64(p[1:])), binary.LittleEndian.Uint32(p[9:])}, nil
	}
	return Unknown(p), nil
}

func bounds(p []byte) error {
	switch {
	case len(p) == 0:
		return errEmpty
	case len(p) > MaxMessage:
		return errTooBig
	}
	return nil
}

// hello reads the version before all else: another version may have another layout.
func hello(p []byte) (any, error) {
	switch {
	case len(p) < 2:
		return nil, errLength
	case p[1] != Version:
		return nil, errVersion
	case len(p) < 3:
		return nil, errLength
	case p[2] > MaxName:
		return nil, errName
	case len(p) != 3+int(p[2]):
		return nil, errLength
	case !utf8.Valid(p[3:]):
		return nil, errUTF8
	}
	return Hello{p[1], string(p[3:])}, nil
}

func float(p []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(p)) }

func appendFloat(dst []byte, f float32) []byte {
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(f))
}

// Append writes the message behind dst. Of a name that is too long it writes what fits, without half a character.
func (h Hello) Append(dst []byte) []byte {
	name := h.Name
	if len(name) > MaxName {
		name = name[:MaxName]
		for i := len(name); i > MaxName-utf8.UTFMax && !utf8.ValidString(name); i-- {
			name = name[:i-1]
		}
	}
	return append(append(dst, IDHello, h.Version, byte(len(name))), name...)
}

// Append writes the message behind dst.
func (i Input) Append(dst []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(append(dst, IDInput), i.Sequence), byte(i.Buttons))
}

// Append writes the message behind dst.
func (p Ping) Append(dst []byte) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, IDPing), uint64(p.Clock))
}

// Append writes the message behind dst.
func (w Welcome) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, IDWelcome, w.Version), w.Own)
	return appendFloat(appendFloat(append(dst, w.TickRate), w.Width), w.Height)
}

// SnapshotSize returns how many bytes a snapshot of so many entities has.
func SnapshotSize(entities int) int { return headSize + entitySize*min(entities, MaxEntities) }

// Append writes the message behind dst. Of more than [MaxEntities] it writes the first.
func (s Snapshot) Append(dst []byte) []byte {
	all := s.Entities[:min(len(s.Entities), MaxEntities)]
	dst = binary.LittleEndian.AppendUint32(append(dst, IDSnapshot), s.Tick)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(all)))
	for i := range all {
		e := &all[i]
		dst = append(binary.LittleEndian.AppendUint32(dst, e.ID), byte(e.Kind))
		dst = appendFloat(appendFloat(appendFloat(dst, e.X), e.Y), e.Radius)
		dst = binary.LittleEndian.AppendUint32(dst, e.Colour)
	}
	return dst
}

// Append writes the message behind dst.
func (p Pong) Append(dst []byte) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(append(dst, IDPong), uint64(p.Clock)), p.Tick)
}

// Append writes the message behind dst.
func (u Unknown) Append(dst []byte) []byte { return append(dst, u...) }
