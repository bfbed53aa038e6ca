package wire

import (
	"encoding/binary"
	"math"

	"github.com/google/uuid"
)

// S2CFormat is the format of what one socket receives; its upgrade request settled it.
type S2CFormat uint8

const (
	S2CV1      S2CFormat = iota // talker UUID, gain u8, dx f32, dz f32, opus
	S2CV2                       // the same with stream i64, sequence i64 before the opus
	S2CSpatial                  // a kind byte first
)

// Kind is the first byte on a spatial socket.
type Kind uint8

const (
	KindPlayer  Kind = 0 // a player's microphone: v2 behind the kind
	KindChannel Kind = 1 // a speaker channel
	KindBoard   Kind = 2 // a player's soundboard: v2 behind the kind
)

// S2C is one frame to a client. Stream and Seq are both 0 in v1 and, in frames of players, when the talker does not
// count its own.
type S2C struct {
	Kind        Kind
	Source      uuid.UUID // the talker; of KindChannel the channel
	Origin      uuid.UUID // of KindChannel: the player whose microphone it is, or zero for the server's own audio
	Gain        uint8     // linear, 255 is 1.0
	DX, DZ      float32   // source minus listener, in blocks
	Stream, Seq int64
	Opus        []byte // aliases the parsed bytes
}

// AppendS2C appends one frame. It does not check f. A format that cannot carry f's kind gets nothing: a channel is
// never disguised as a player.
func AppendS2C(dst []byte, format S2CFormat, f *S2C) []byte {
	n := len(dst)
	if dst = AppendS2CHead(dst, format, f); len(dst) == n {
		return dst
	}
	return append(dst, f.Opus...)
}

// AppendS2CHead appends everything before the Opus bytes, so that a caller can hand header and payload on separately.
// See [AppendS2C].
func AppendS2CHead(dst []byte, format S2CFormat, f *S2C) []byte {
	if format == S2CSpatial {
		dst = append(dst, byte(f.Kind))
	} else if f.Kind != KindPlayer {
		return dst
	}
	dst = append(dst, f.Source[:]...)
	if f.Kind == KindChannel {
		dst = append(dst, f.Origin[:]...)
	}
	dst = append(dst, f.Gain)
	dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(f.DX))
	dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(f.DZ))
	if format == S2CV1 {
		return dst
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(f.Stream))
	return binary.BigEndian.AppendUint64(dst, uint64(f.Seq))
}

// ParseS2C reads one frame, as a client does; the error is a [Discard].
func ParseS2C(format S2CFormat, b []byte) (f S2C, err error) {
	head := HeadS2CV1
	switch format {
	case S2CV2:
		head = HeadS2CV2
	case S2CSpatial:
		if len(b) == 0 {
			return S2C{}, BadLength
		}
		switch f.Kind = Kind(b[0]); f.Kind {
		case KindPlayer, KindBoard:
			head = HeadS2CPlayer
		case KindChannel:
			head = HeadS2CChannel
		default:
			return S2C{}, BadKind
		}
	}
	if len(b) <= head || len(b) > head+MaxOpus {
		return S2C{}, BadLength
	}
	f.Opus = b[head:]
	if format == S2CSpatial {
		b = b[1:]
	}
	b = b[copy(f.Source[:], b):]
	if f.Kind == KindChannel {
		b = b[copy(f.Origin[:], b):]
	}
	f.Gain = b[0]
	f.DX = math.Float32frombits(binary.BigEndian.Uint32(b[1:]))
	f.DZ = math.Float32frombits(binary.BigEndian.Uint32(b[5:]))
	if format != S2CV1 {
		f.Stream = int64(binary.BigEndian.Uint64(b[9:]))
		f.Seq = int64(binary.BigEndian.Uint64(b[17:]))
		// 0/0 is a talker without sequence numbers; a channel always has them.
		if f.Kind == KindChannel || f.Stream != 0 || f.Seq != 0 {
			if err := checkStream(f.Stream, f.Seq); err != nil {
				return S2C{}, err
			}
		}
	}
	if !finite(f.DX) || !finite(f.DZ) {
		return S2C{}, BadPosition
	}
	return f, nil
}

// finite tells whether v is neither NaN nor an infinity: these have an exponent of all ones.
func finite(v float32) bool { return math.Float32bits(v)&0x7f800000 != 0x7f800000 }
