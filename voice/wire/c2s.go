package wire

import "encoding/binary"

// C2SFormat is the format of what one socket sends; its upgrade request settled it.
type C2SFormat uint8

const (
	C2SV1    C2SFormat = iota // opus
	C2SV2                     // stream i64, sequence i64, opus
	C2SBoard                  // kind u8 (Mic or Board), then v2
)

// Source is the kind byte of [C2SBoard].
type Source uint8

const (
	Mic   Source = 0
	Board Source = 1 // a soundboard clip
)

// C2S is one frame from a client. Stream and Seq are 0 in v1.
type C2S struct {
	Source      Source
	Stream, Seq int64
	Opus        []byte // aliases the parsed bytes
}

// ParseC2S reads one frame of the socket's format; the error is a [Discard].
func ParseC2S(format C2SFormat, b []byte) (f C2S, err error) {
	head := 0
	switch format {
	case C2SV2:
		head = HeadC2SV2
	case C2SBoard:
		head = HeadC2SBoard
	}
	if len(b) <= head || len(b) > head+MaxOpus {
		return C2S{}, BadLength
	}
	f.Opus = b[head:]
	if format == C2SV1 {
		return f, nil
	}
	if format == C2SBoard {
		if f.Source = Source(b[0]); f.Source > Board {
			return C2S{}, BadKind
		}
		b = b[1:]
	}
	f.Stream = int64(binary.BigEndian.Uint64(b))
	f.Seq = int64(binary.BigEndian.Uint64(b[8:]))
	if err := checkStream(f.Stream, f.Seq); err != nil {
		return C2S{}, err
	}
	return f, nil
}

// AppendC2S writes one frame, as a client does. It does not check f.
func AppendC2S(dst []byte, format C2SFormat, f *C2S) []byte {
	if format == C2SBoard {
		dst = append(dst, byte(f.Source))
	}
	if format != C2SV1 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(f.Stream))
		dst = binary.BigEndian.AppendUint64(dst, uint64(f.Seq))
	}
	return append(dst, f.Opus...)
}
