package field

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// nbtSamples are in the form with a root name; cutting bytes 1 to 2+name makes the other form.
var nbtSamples = []struct{ name, hex string }{
	{"every tag type", "0a 0000" + // compound ""
		"01 0001 61 ff" + "02 0001 62 ffff" + "03 0001 63 ffffffff" + "04 0001 64 ffffffffffffffff" +
		"05 0001 65 3f800000" + "06 0001 66 3ff0000000000000" + "07 0001 67 00000003 010203" + "08 0001 68 0002 6869" +
		"09 0001 69 03 00000002 00000001 00000002" + "0a 0001 6a 00" + "0b 0001 6b 00000001 00000001" +
		"0c 0001 6c 00000001 0000000000000001" + "00"},
	{"the published hello world", "0a 000b 68656c6c6f20776f726c64 08 0004 6e616d65 0009 42616e616e72616d61 00"},
	{"no value", "00"},
	{"a string alone", "08 0000 0003 616263"},
	{"empty list of nothing", "09 0000 00 00000000"},
	{"list of lists and compounds", "09 0000 09 00000002 0a 00000001 00 08 00000002 0001 61 0000"},
	{"empty compound", "0a 0000 00"},
}

func TestSkipNBT(t *testing.T) {
	for _, c := range nbtSamples {
		named := unhex(t, c.hex)
		forms := map[bool][]byte{true: named, false: named}
		if named[0] != tagEnd {
			forms[false] = append([]byte{named[0]}, named[3+int(binary.BigEndian.Uint16(named[1:])):]...)
		}
		for isNamed, wire := range forms {
			r := NewReader(append(bytes.Clone(wire), 0xaa, 0xbb))
			if got := r.SkipNBT(isNamed); !bytes.Equal(got, wire) || r.Len() != 2 {
				t.Errorf("%s, named %v: took %x, %v", c.name, isNamed, got, r.Err())
			}
			for n := range wire {
				if r := NewReader(wire[:n]); r.SkipNBT(isNamed) != nil || r.Err() == nil || r.Len() != 0 {
					t.Errorf("%s, named %v: the first %d bytes were enough", c.name, isNamed, n)
				}
			}
		}
	}
}

func TestSkipNBTRefuses(t *testing.T) {
	for name, wire := range map[string]string{
		"unknown root":            "0d 00",
		"unknown type inside":     "0a 0d 0000 00",
		"list of unknown":         "09 0d 00000001 00",
		"list of ends":            "09 00 00000001",
		"negative list":           "09 01 ffffffff",
		"negative array":          "07 ffffffff",
		"huge byte array":         "07 7fffffff 00",
		"huge int array":          "0b 7fffffff 00000000",
		"huge long array":         "0c 7fffffff 00000000",
		"huge list of bytes":      "09 01 7fffffff 00",
		"huge list of empty ones": "09 0a 7fffffff 00 00 00",
		"name past the end":       "0a 01 ffff 61",
	} {
		if r := NewReader(unhex(t, wire)); r.SkipNBT(false) != nil || r.Err() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSkipNBTDepth(t *testing.T) {
	lists := func(n int) []byte {
		return append([]byte{tagList}, bytes.Repeat([]byte{tagList, 0, 0, 0, 1}, n-1)...)
	}
	for depth, ok := range map[int]bool{MaxNBTDepth: true, MaxNBTDepth + 1: false, 1 << 20: false} {
		deep := append(lists(depth), tagEnd, 0, 0, 0, 0)
		if r := NewReader(deep); (r.SkipNBT(false) != nil) != ok {
			t.Errorf("%d lists: %v", depth, r.Err())
		}
		deep = append([]byte{tagCompound}, strings.Repeat("\x0a\x00\x00", depth-1)...)
		deep = append(deep, make([]byte, depth)...)
		if r := NewReader(deep); (r.SkipNBT(false) != nil) != ok {
			t.Errorf("%d compounds: %v", depth, r.Err())
		}
	}
}

func FuzzSkipNBT(f *testing.F) {
	for _, c := range nbtSamples {
		f.Add(unhex(f, c.hex), true)
		f.Add(unhex(f, c.hex), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, named bool) {
		r := NewReader(b)
		got := r.SkipNBT(named)
		if r.Err() != nil {
			if got != nil || r.Len() != 0 {
				t.Fatal("bytes beside an error")
			}
			return
		}
		if len(got) == 0 || len(got)+r.Len() != len(b) {
			t.Fatalf("took %d of %d, left %d", len(got), len(b), r.Len())
		}
		// a value is self-delimiting: what follows it does not matter, and no prefix of it is a value
		if again := NewReader(got); !bytes.Equal(again.SkipNBT(named), got) || again.End() != nil {
			t.Fatal("the value alone reads differently")
		}
		if short := NewReader(got[:len(got)-1]); short.SkipNBT(named) != nil {
			t.Fatal("a part of the value is a value")
		}
	})
}
