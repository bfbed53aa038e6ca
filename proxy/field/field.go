// Package field reads and writes the field types of Minecraft packets over byte slices.
//
// It promises that hostile bytes cost nothing but their own length: every read is bounded by what remains, no length or
// count from the wire is ever used to allocate, and the only reads that copy are those returning a string. The first
// thing that is wrong stops the Reader for good, so a decoder reads all its fields and asks for the error once.
//
// Layout: the types of https://minecraft.wiki/w/Java_Edition_protocol/Data_types, and NBT as
// https://minecraft.wiki/w/NBT_format has it.
package field

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/google/uuid"
)

// MaxString bounds strings, in UTF-16 units, whose field has no smaller bound (the game's own default).
const MaxString = 32767

// MaxNBTDepth bounds how deep compounds and lists may nest, as in the game itself.
const MaxNBTDepth = 512

var (
	errShort   = errors.New("field runs past the end of the packet")
	errVarInt  = errors.New("varint is longer than 5 bytes")
	errVarLong = errors.New("varlong is longer than 10 bytes")
	errUTF8    = errors.New("string is not valid UTF-8")
)

// Reader takes fields off the front of a packet body. After the first error every read returns the zero value and
// nothing remains; Err tells why. The zero Reader is an empty body.
type Reader struct {
	b   []byte
	err error
}

// NewReader reads b, which it neither copies nor changes.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Len returns the number of bytes not yet read; 0 after an error.
func (r *Reader) Len() int { return len(r.b) }

// Err returns the first error; nil while all is well.
func (r *Reader) Err() error { return r.err }

// Fail records err as the Reader's error unless there is one already, and drops what remains. Decoders use it for
// values that are well formed and still wrong.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

// End returns Err, or an error when bytes are left over. It is for packets whose whole layout is known.
func (r *Reader) End() error {
	if r.err == nil && len(r.b) > 0 {
		r.Fail(fmt.Errorf("%d bytes follow the last field", len(r.b)))
	}
	return r.err
}

// Raw returns the next n bytes, aliasing the body.
func (r *Reader) Raw(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.Fail(errShort)
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// Rest returns all remaining bytes, aliasing the body.
func (r *Reader) Rest() []byte { return r.Raw(len(r.b)) }

// Skip passes over n bytes.
func (r *Reader) Skip(n int) { r.Raw(n) }

// VarInt reads 1 to 5 bytes of 7 bits, lowest first. Encodings longer than needed are accepted, as the game does.
func (r *Reader) VarInt() int32 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := int32(r.b[0])
		r.b = r.b[1:]
		return v
	}
	return r.varIntSlow()
}

func (r *Reader) varIntSlow() int32 {
	var v uint32
	for i := range 5 {
		if i == len(r.b) {
			r.Fail(errShort)
			return 0
		}
		c := r.b[i]
		v |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.b = r.b[i+1:]
			return int32(v)
		}
	}
	r.Fail(errVarInt)
	return 0
}

// VarLong reads 1 to 10 bytes of 7 bits, lowest first.
func (r *Reader) VarLong() int64 {
	var v uint64
	for i := range 10 {
		if i == len(r.b) {
			r.Fail(errShort)
			return 0
		}
		c := r.b[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.b = r.b[i+1:]
			return int64(v)
		}
	}
	r.Fail(errVarLong)
	return 0
}

// U8 reads one byte.
func (r *Reader) U8() byte {
	if len(r.b) == 0 {
		r.Fail(errShort)
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

// Bool reads one byte; anything but 0 is true, as in the game.
func (r *Reader) Bool() bool { return r.U8() != 0 }

// I8 reads a signed byte.
func (r *Reader) I8() int8 { return int8(r.U8()) }

// U16 reads two bytes, big endian, as all fixed-width numbers are.
func (r *Reader) U16() uint16 {
	if b := r.Raw(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// I16 reads two bytes.
func (r *Reader) I16() int16 { return int16(r.U16()) }

// I32 reads four bytes.
func (r *Reader) I32() int32 { return int32(r.u32()) }

// I64 reads eight bytes.
func (r *Reader) I64() int64 { return int64(r.u64()) }

// F32 reads four bytes; NaN and infinities come through, the caller judges them.
func (r *Reader) F32() float32 { return math.Float32frombits(r.u32()) }

// F64 reads eight bytes; NaN and infinities come through, the caller judges them.
func (r *Reader) F64() float64 { return math.Float64frombits(r.u64()) }

func (r *Reader) u32() uint32 {
	if b := r.Raw(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *Reader) u64() uint64 {
	if b := r.Raw(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// UUID reads 16 bytes.
func (r *Reader) UUID() (id uuid.UUID) {
	copy(id[:], r.Raw(16))
	return id
}

// Bytes reads a VarInt length of at most max and that many bytes, aliasing the body.
func (r *Reader) Bytes(max int) []byte {
	n := int(r.VarInt())
	if r.err != nil {
		return nil
	}
	if n < 0 || n > max {
		r.Fail(fmt.Errorf("byte array of %d bytes, at most %d allowed", n, max))
		return nil
	}
	return r.Raw(n)
}

// StringBytes does as String, without the copy: it returns valid UTF-8 aliasing the body.
func (r *Reader) StringBytes(maxChars int) []byte {
	n := int(r.VarInt())
	if r.err != nil {
		return nil
	}
	if n < 0 || n > 3*maxChars { // one UTF-16 unit is at most 3 bytes of UTF-8, two are at most 4
		r.Fail(fmt.Errorf("string of %d bytes, at most %d characters allowed", n, maxChars))
		return nil
	}
	b := r.Raw(n)
	if !utf8.Valid(b) {
		r.Fail(errUTF8)
		return nil
	}
	if n > maxChars && utf16Len(b) > maxChars {
		r.Fail(fmt.Errorf("string is longer than %d characters", maxChars))
		return nil
	}
	return b
}

// String reads a VarInt byte length and that much UTF-8: at most maxChars UTF-16 units, the unit the game counts in.
func (r *Reader) String(maxChars int) string { return string(r.StringBytes(maxChars)) }

// utf16Len counts UTF-16 units of valid UTF-8: one per leading byte, and one more for a character outside the basic
// plane.
func utf16Len(b []byte) (n int) {
	for _, c := range b {
		if c&0xc0 != 0x80 {
			n++
		}
		if c >= 0xf0 {
			n++
		}
	}
	return n
}

// Count reads a VarInt element count and refuses it when that many elements of at least minElem bytes (at least 1)
// cannot fit in what remains; so a slice of Count elements is never larger than the packet justifies.
func (r *Reader) Count(minElem int) int {
	n := int(r.VarInt())
	if r.err != nil {
		return 0
	}
	if n < 0 || n > len(r.b)/max(minElem, 1) {
		r.Fail(fmt.Errorf("count of %d elements, but only %d bytes remain", n, len(r.b)))
		return 0
	}
	return n
}

// VarIntLen returns the number of bytes that AppendVarInt writes for v, 1 to 5.
func VarIntLen(v int32) int {
	u, n := uint32(v), 1
	for ; u >= 0x80; u >>= 7 {
		n++
	}
	return n
}

// AppendVarInt appends v in the shortest form; negative numbers take 5 bytes.
func AppendVarInt(b []byte, v int32) []byte {
	u := uint32(v)
	for u >= 0x80 {
		b = append(b, byte(u)|0x80)
		u >>= 7
	}
	return append(b, byte(u))
}

// AppendVarLong appends v in the shortest form; negative numbers take 10 bytes.
func AppendVarLong(b []byte, v int64) []byte { return binary.AppendUvarint(b, uint64(v)) }

// AppendString appends a VarInt byte length and s. The caller answers for valid UTF-8 and for the field's cap.
func AppendString(b []byte, s string) []byte {
	return append(AppendVarInt(b, int32(len(s))), s...)
}

// AppendBytes appends a VarInt length and v.
func AppendBytes(b, v []byte) []byte {
	return append(AppendVarInt(b, int32(len(v))), v...)
}

// AppendUUID appends 16 bytes.
func AppendUUID(b []byte, id uuid.UUID) []byte { return append(b, id[:]...) }

// AppendBool appends 1 or 0.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendU16 appends two bytes, big endian.
func AppendU16(b []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(b, v) }

// AppendI16 appends two bytes.
func AppendI16(b []byte, v int16) []byte { return AppendU16(b, uint16(v)) }

// AppendI32 appends four bytes.
func AppendI32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// AppendI64 appends eight bytes.
func AppendI64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// AppendF32 appends four bytes.
func AppendF32(b []byte, v float32) []byte {
	return binary.BigEndian.AppendUint32(b, math.Float32bits(v))
}

// AppendF64 appends eight bytes.
func AppendF64(b []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(v))
}
