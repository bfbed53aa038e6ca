package field

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/uuid"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// varInts are the published sample values, then overlong forms, which decode but are not what we write.
var varInts = []struct {
	hex      string
	v        int32
	overlong bool
}{
	{"00", 0, false}, {"01", 1, false}, {"7f", 127, false}, {"80 01", 128, false}, {"ff 01", 255, false},
	{"dd c7 01", 25565, false}, {"ff ff 7f", 2097151, false}, {"ff ff ff ff 07", math.MaxInt32, false},
	{"ff ff ff ff 0f", -1, false}, {"80 80 80 80 08", math.MinInt32, false},
	{"80 00", 0, true}, {"81 80 80 80 00", 1, true}, {"ff ff ff ff 7f", -1, true},
}

func TestVarInt(t *testing.T) {
	for _, c := range varInts {
		wire := unhex(t, c.hex)
		r := NewReader(append(wire, 0xaa))
		if got := r.VarInt(); got != c.v || r.Err() != nil || r.Len() != 1 {
			t.Errorf("%s: read %d, %d left, %v; want %d", c.hex, got, r.Len(), r.Err(), c.v)
		}
		if c.overlong {
			continue
		}
		if got := AppendVarInt(nil, c.v); !bytes.Equal(got, wire) {
			t.Errorf("%d: wrote %x, want %s", c.v, got, c.hex)
		}
		if got := VarIntLen(c.v); got != len(wire) {
			t.Errorf("VarIntLen(%d) = %d, want %d", c.v, got, len(wire))
		}
	}
	for _, bad := range []string{"", "80", "ff ff ff ff", "ff ff ff ff ff 01", "80 80 80 80 80 00"} {
		if r := NewReader(unhex(t, bad)); r.VarInt() != 0 || r.Err() == nil || r.Len() != 0 {
			t.Errorf("%q: accepted", bad)
		}
	}
}

func TestVarLong(t *testing.T) {
	for _, c := range []struct {
		hex string
		v   int64
	}{
		{"00", 0}, {"ff 01", 255}, {"ff ff ff ff 07", math.MaxInt32}, {"ff ff ff ff ff ff ff ff 7f", math.MaxInt64},
		{"ff ff ff ff ff ff ff ff ff 01", -1}, {"80 80 80 80 80 80 80 80 80 01", math.MinInt64},
	} {
		r := NewReader(unhex(t, c.hex))
		if got := r.VarLong(); got != c.v || r.End() != nil {
			t.Errorf("%s: read %d, %v; want %d", c.hex, got, r.Err(), c.v)
		}
		if got := AppendVarLong(nil, c.v); !bytes.Equal(got, unhex(t, c.hex)) {
			t.Errorf("%d: wrote %x, want %s", c.v, got, c.hex)
		}
	}
	for _, bad := range []string{"", "80 80", "ff ff ff ff ff ff ff ff ff ff 01"} {
		if r := NewReader(unhex(t, bad)); r.VarLong() != 0 || r.Err() == nil {
			t.Errorf("%q: accepted", bad)
		}
	}
}

func TestFixedWidth(t *testing.T) {
	wire := unhex(t, "01 00 02 fe ff fe 80 00 ff ff ff fe 80 00 00 00 00 00 00 01 3f c0 00 00 c0 04 00 00 00 00 00 00"+
		"00112233445566778899aabbccddeeff 03 010203 0405")
	r := NewReader(wire)
	id := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	for i, ok := range []bool{
		r.Bool(), !r.Bool(), r.Bool(), r.I8() == -2, r.U16() == 0xfffe, r.I16() == math.MinInt16, r.I32() == -2,
		r.I64() == math.MinInt64+1, r.F32() == 1.5, r.F64() == -2.5, r.UUID() == id,
		bytes.Equal(r.Bytes(3), []byte{1, 2, 3}), bytes.Equal(r.Rest(), []byte{4, 5}), r.End() == nil,
	} {
		if !ok {
			t.Errorf("field %d is wrong (%v)", i, r.Err())
		}
	}
	b := AppendBool(AppendBool(nil, true), false)
	b = append(b, 2, 0xfe)
	b = AppendI16(AppendU16(b, 0xfffe), math.MinInt16)
	b = AppendF32(AppendI64(AppendI32(b, -2), math.MinInt64+1), 1.5)
	b = AppendBytes(AppendUUID(AppendF64(b, -2.5), id), []byte{1, 2, 3})
	if b = append(b, 4, 5); !bytes.Equal(b, wire) {
		t.Errorf("wrote %x\nwant  %x", b, wire)
	}
}

func TestEveryReadIsBounded(t *testing.T) {
	reads := map[string]struct {
		size int
		read func(*Reader)
	}{
		"bool": {1, func(r *Reader) { r.Bool() }}, "u8": {1, func(r *Reader) { r.U8() }}, "i8": {1, func(r *Reader) { r.I8() }},
		"u16": {2, func(r *Reader) { r.U16() }}, "i16": {2, func(r *Reader) { r.I16() }}, "i32": {4, func(r *Reader) { r.I32() }},
		"i64": {8, func(r *Reader) { r.I64() }}, "f32": {4, func(r *Reader) { r.F32() }}, "f64": {8, func(r *Reader) { r.F64() }},
		"uuid": {16, func(r *Reader) { r.UUID() }}, "raw": {5, func(r *Reader) { r.Raw(5) }}, "skip": {5, func(r *Reader) { r.Skip(5) }},
	}
	for name, c := range reads {
		r := NewReader(make([]byte, c.size))
		if c.read(r); r.End() != nil {
			t.Errorf("%s: %v", name, r.Err())
		}
		r = NewReader(make([]byte, c.size-1))
		if c.read(r); r.Err() == nil || r.Len() != 0 {
			t.Errorf("%s: read %d bytes out of %d", name, c.size, c.size-1)
		}
	}
	r := NewReader([]byte{1, 2, 3})
	if r.Raw(-1) != nil || r.Err() == nil {
		t.Error("a negative length was accepted")
	}
}

func TestString(t *testing.T) {
	enc := func(s string) []byte { return AppendString(nil, s) }
	for _, c := range []struct {
		name string
		wire []byte
		max  int
		want string
		ok   bool
	}{
		{"empty", enc(""), 0, "", true},
		{"at the cap", enc("abcd"), 4, "abcd", true},
		{"over the cap", enc("abcde"), 4, "", false},
		{"three-byte characters at the cap", enc("€€€€"), 4, "€€€€", true},
		{"two-byte characters over the cap", enc("ééééé"), 4, "", false},
		{"pairs count twice", enc("😀😀"), 4, "😀😀", true},
		{"pairs over the cap", enc("😀😀a"), 4, "", false},
		{"not UTF-8", enc("a\xff"), 4, "", false},
		{"a surrogate", enc("\xed\xa0\x80"), 4, "", false},
		{"short", enc("abcd")[:4], 4, "", false},
		{"negative length", AppendVarInt(nil, -1), 4, "", false},
		{"huge length", append(AppendVarInt(nil, math.MaxInt32), "abc"...), MaxString, "", false},
	} {
		r := NewReader(c.wire)
		if got := r.String(c.max); got != c.want || (r.End() == nil) != c.ok {
			t.Errorf("%s: %q, %v", c.name, got, r.Err())
		}
	}
}

func TestBytesAndCount(t *testing.T) {
	if r := NewReader([]byte{3, 1, 2, 3}); len(r.Bytes(3)) != 3 || r.End() != nil {
		t.Error("three bytes of three refused")
	}
	for _, wire := range [][]byte{{3, 1, 2}, {4, 1, 2, 3, 4}, AppendVarInt(nil, -1), {}} {
		if r := NewReader(wire); r.Bytes(3) != nil || r.Err() == nil {
			t.Errorf("%x: accepted", wire)
		}
	}
	for _, c := range []struct {
		wire []byte
		min  int
		want int
		ok   bool
	}{
		{[]byte{0}, 16, 0, true},
		{[]byte{2, 0, 0, 0, 0}, 2, 2, true},
		{[]byte{3, 0, 0, 0, 0}, 2, 0, false},
		{[]byte{5, 0, 0, 0, 0}, 0, 0, false}, // an element is never nothing
		{append(AppendVarInt(nil, math.MaxInt32), 0, 0), 1, 0, false},
		{AppendVarInt(nil, -1), 1, 0, false},
		{nil, 1, 0, false},
	} {
		r := NewReader(c.wire)
		if got := r.Count(c.min); got != c.want || (r.Err() == nil) != c.ok {
			t.Errorf("%x by %d: %d, %v", c.wire, c.min, got, r.Err())
		}
	}
}

func TestErrorsStick(t *testing.T) {
	r := NewReader([]byte{1, 2, 3, 4, 5})
	r.U8()
	mine := errors.New("mine")
	r.Fail(mine)
	r.Fail(errors.New("later"))
	if r.U8() != 0 || r.VarInt() != 0 || r.String(9) != "" || r.Rest() != nil || r.SkipNBT(true) != nil || r.Len() != 0 {
		t.Error("something was read after the error")
	}
	if r.Err() != mine || r.End() != mine {
		t.Errorf("error is %v", r.Err())
	}
	if r := NewReader([]byte{0}); r.End() == nil || r.Err() == nil {
		t.Error("a byte left over was accepted")
	}
}

func TestReadsDoNotAllocate(t *testing.T) {
	b := AppendVarInt(nil, 300000)
	b = AppendVarLong(b, 1<<40)
	b = AppendUUID(append(b, make([]byte, 31)...), uuid.Max)
	b = AppendBytes(b, []byte("four"))
	b = AppendString(b, "chännel:name")
	b = append(b, unhex(t, nbtSamples[0].hex)...)
	var sum int
	if n := testing.AllocsPerRun(100, func() {
		r := NewReader(b)
		sum += int(r.VarInt()) + int(r.VarLong()) + int(r.U8()) + int(r.U16()) + int(r.I32()) + int(r.I64()) + int(r.F32()) + int(r.F64()) + int(r.I32()>>31)
		id := r.UUID()
		sum += int(id[0]) + len(r.Bytes(4)) + len(r.StringBytes(20)) + len(r.SkipNBT(true))
		if r.End() != nil {
			t.Fatal(r.Err())
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzVarInt(f *testing.F) {
	for _, c := range varInts {
		f.Add(unhex(f, c.hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(b)
		v := r.VarInt()
		if r.Err() != nil {
			return
		}
		used := len(b) - r.Len()
		again := NewReader(AppendVarInt(nil, v))
		if used < VarIntLen(v) || again.VarInt() != v || again.End() != nil {
			t.Fatalf("%x: %d in %d bytes", b, v, used)
		}
	})
}

func FuzzString(f *testing.F) {
	f.Add(AppendString(nil, "a€😀"), 4)
	f.Add(AppendVarInt(nil, math.MaxInt32), 300)
	f.Fuzz(func(t *testing.T, b []byte, maxChars int) {
		if maxChars < 0 || maxChars > MaxString {
			return
		}
		r := NewReader(b)
		s := r.String(maxChars)
		if units := len(utf16.Encode([]rune(s))); units > maxChars || !utf8.ValidString(s) {
			t.Fatalf("%q has %d units, cap %d", s, units, maxChars)
		}
		if r.Err() == nil && len(s)+r.Len() >= len(b) {
			t.Fatalf("%d bytes from %d", len(s), len(b))
		}
	})
}

func BenchmarkVarInt(b *testing.B) {
	wire := AppendVarInt(nil, 25565)
	b.ReportAllocs()
	for b.Loop() {
		if NewReader(wire).VarInt() != 25565 {
			b.Fatal()
		}
	}
}
