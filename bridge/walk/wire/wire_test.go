package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/itest/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vector is one message of testdata/vectors.jsonl, which any other implementation can read too.
type vector struct {
	To, Name, Hex, Kind string
	Is                  map[string]any
	Entities            []map[string]float64
	Misrouted           bool
	Ends                Ending
}

func (v vector) bytes() []byte {
	p, err := hex.DecodeString(v.Hex)
	if err != nil {
		panic(err)
	}
	return p
}

func (v vector) parse() (any, error) {
	if v.To == "server" {
		return ParseClient(v.bytes())
	}
	return ParseServer(v.bytes())
}

func vectors(t testing.TB) []vector {
	all, err := testkit.Lines[vector]("testdata/vectors.jsonl")
	if err != nil || len(all) < 40 {
		t.Fatalf("%d vectors, %v", len(all), err)
	}
	return all
}

// layouts is the table of version 1: of each message the names and types of its fields, in their order.
var layouts = map[string]string{
	"hello":    "id:u8 version:u8 n:u8 name:text",
	"input":    "id:u8 sequence:u32 buttons:u8",
	"ping":     "id:u8 clock:i64",
	"welcome":  "id:u8 version:u8 own:u32 tickRate:u8 width:f32 height:f32",
	"snapshot": "id:u8 tick:u32 count:u16",
	"entity":   "id:u32 kind:u8 x:f32 y:f32 radius:f32 colour:u32",
	"pong":     "id:u8 clock:i64 tick:u32",
}

// read takes one layout's fields off p.
func read(layout string, p []byte) (fields map[string]any, rest []byte) {
	fields = map[string]any{}
	for f := range strings.FieldsSeq(layouts[layout]) {
		name, kind, _ := strings.Cut(f, ":")
		switch kind {
		case "u8":
			fields[name], p = float64(p[0]), p[1:]
		case "u16":
			fields[name], p = float64(binary.LittleEndian.Uint16(p)), p[2:]
		case "u32":
			fields[name], p = float64(binary.LittleEndian.Uint32(p)), p[4:]
		case "i64":
			fields[name], p = float64(int64(binary.LittleEndian.Uint64(p))), p[8:]
		case "f32":
			fields[name], p = float64(math.Float32frombits(binary.LittleEndian.Uint32(p))), p[4:]
		case "text":
			fields[name], p = string(p), nil
		}
	}
	return fields, p
}

// fieldsOf returns a parsed message's fields by the names of the table.
func fieldsOf(m any) (map[string]any, []map[string]float64) {
	switch m := m.(type) {
	case Hello:
		return map[string]any{"version": float64(m.Version), "n": float64(len(m.Name)), "name": m.Name}, nil
	case Input:
		return map[string]any{"sequence": float64(m.Sequence), "buttons": float64(m.Buttons)}, nil
	case Ping:
		return map[string]any{"clock": float64(m.Clock)}, nil
	case Welcome:
		return map[string]any{"version": float64(m.Version), "own": float64(m.Own), "tickRate": float64(m.TickRate), "width": float64(m.Width), "height": float64(m.Height)}, nil
	case Snapshot:
		var all []map[string]float64
		for _, e := range m.Entities {
			all = append(all, map[string]float64{"id": float64(e.ID), "kind": float64(e.Kind), "x": float64(e.X), "y": float64(e.Y), "radius": float64(e.Radius), "colour": float64(e.Colour)})
		}
		return map[string]any{"tick": float64(m.Tick), "count": float64(len(m.Entities))}, all
	case Pong:
		return map[string]any{"clock": float64(m.Clock), "tick": float64(m.Tick)}, nil
	}
	return nil, nil
}

// TestVectors: acceptance 1. The codec and the table of layouts read every vector as what it says, and write it as the
// same bytes; every bad one ends as it should.
func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		m, err := v.parse()
		if v.Ends != 0 {
			var fault *Fault
			if !errors.As(err, &fault) || fault.Ending != v.Ends || m != nil {
				t.Errorf("%s: %v, %v, want %d", v.Name, m, err, v.Ends)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if out := m.(interface{ Append([]byte) []byte }).Append([]byte("x")); string(out) != "x"+string(v.bytes()) {
			t.Errorf("%s: written as %x", v.Name, out)
		}
		if u, unknown := m.(Unknown); unknown != (v.Kind == "unknown") || unknown && v.To == "server" && u.Misrouted() != v.Misrouted {
			t.Errorf("%s: %#v", v.Name, m)
		}
		if v.Kind == "unknown" {
			continue
		}
		fields, entities := fieldsOf(m)
		table, rest := read(v.Kind, v.bytes())
		delete(table, "id")
		if fmt.Sprint(fields) != fmt.Sprint(v.Is) || fmt.Sprint(table) != fmt.Sprint(v.Is) {
			t.Errorf("%s: parsed as %v, by the table %v, want %v", v.Name, fields, table, v.Is)
		}
		if fmt.Sprint(entities) != fmt.Sprint(v.Entities) {
			t.Errorf("%s: parsed as %v, want %v", v.Name, entities, v.Entities)
		}
		for _, want := range v.Entities {
			var e map[string]any
			if e, rest = read("entity", rest); fmt.Sprint(e) != fmt.Sprint(want) {
				t.Errorf("%s: by the table %v, want %v", v.Name, e, want)
			}
		}
		if len(rest) != 0 {
			t.Errorf("%s: the table leaves %x", v.Name, rest)
		}
	}
}

// hashes has the hash of the layouts of each version so far.
var hashes = map[int]string{1: "124a98b1d3a2b6cd"}

// TestVersionAndLayouts: acceptance 20. A layout does not change without the version.
func TestVersionAndLayouts(t *testing.T) {
	sum := sha256.New()
	for _, name := range []string{"hello", "input", "ping", "welcome", "snapshot", "entity", "pong"} {
		fmt.Fprintln(sum, name, layouts[name])
	}
	fmt.Fprintln(sum, IDHello, IDInput, IDPing, IDWelcome, IDSnapshot, IDPong, inputSize, pingSize, welcomeSize, headSize, entitySize, pongSize)
	if got := hex.EncodeToString(sum.Sum(nil))[:16]; got != hashes[Version] {
		t.Errorf("the layouts of version %d have the hash %s, not %s: raise Version, and add the hash under the new one", Version, got, hashes[Version])
	}
}

// TestMessageBounds: a message of 64 KiB is read, and a longer one is too big, whatever its kind. The name of a Hello
// that is written is bounded, and so are a snapshot's entities.
func TestMessageBounds(t *testing.T) {
	for _, parse := range []func([]byte) (any, error){ParseClient, ParseServer} {
		p := bytes.Repeat([]byte{0x10}, MaxMessage+1)
		p[0] = 0x7f
		if m, err := parse(p[:MaxMessage]); err != nil || len(m.(Unknown)) != MaxMessage {
			t.Errorf("%T, %v", m, err)
		}
		if _, err := parse(p); err != errTooBig {
			t.Errorf("%v", err)
		}
	}
	if MaxEntities != 3120 {
		t.Errorf("%d entities", MaxEntities)
	}
	if n := len(Snapshot{Entities: make([]Entity, MaxEntities+1)}.Append(nil)); n != 65527 {
		t.Errorf("a snapshot of %d bytes", n)
	}
	for _, name := range []string{strings.Repeat("a", 33), strings.Repeat("a", 31) + "é", strings.Repeat("😀", 9), strings.Repeat("a", 30) + "😀"} {
		m, err := ParseClient(Hello{Version, name}.Append(nil))
		if err != nil || !strings.HasPrefix(name, m.(Hello).Name) || len(m.(Hello).Name) < 29 {
			t.Errorf("%q: %v, %v", name, m, err)
		}
	}
}

// TestNoAllocations: the messages that each client gets each tick are written without any.
func TestNoAllocations(t *testing.T) {
	buf, s := make([]byte, 0, MaxMessage), Snapshot{Entities: make([]Entity, 100)}
	if n := testing.AllocsPerRun(100, func() { buf = Pong{}.Append(Welcome{}.Append(s.Append(buf[:0]))) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	flood := []byte{IDInput}
	if n := testing.AllocsPerRun(100, func() { ParseClient(flood) }); n != 0 {
		t.Errorf("%v allocations for a fault", n)
	}
}

func fuzz(f *testing.F, parse func([]byte) (any, error)) {
	for _, v := range vectors(f) {
		f.Add(v.bytes())
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		m, err := parse(p)
		var fault *Fault
		if err != nil {
			if !errors.As(err, &fault) || len(fault.What) > 123 || m != nil {
				t.Fatalf("%x: %v, %v", p, m, err)
			}
			return
		}
		if out := m.(interface{ Append([]byte) []byte }).Append(nil); !bytes.Equal(out, p) {
			t.Fatalf("%x is written as %x", p, out)
		}
		if h, ok := m.(Hello); ok && (len(h.Name) > MaxName || !utf8.ValidString(h.Name)) {
			t.Fatalf("a name %q", h.Name)
		}
	})
}

// FuzzParseClient: whatever parses is written as the same bytes, and all else is a fault with an ending.
func FuzzParseClient(f *testing.F) { fuzz(f, ParseClient) }

// FuzzParseServer does so for the other direction.
func FuzzParseServer(f *testing.F) { fuzz(f, ParseServer) }

// BenchmarkSnapshot writes 100 entities, beside copying their bytes field by field.
func BenchmarkSnapshot(b *testing.B) {
	s, buf := Snapshot{Tick: 1, Entities: make([]Entity, 100)}, make([]byte, 0, MaxMessage)
	src := s.Append(nil)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = s.Append(buf[:0])
		}
	})
	b.Run("copy", func(b *testing.B) {
		dst := make([]byte, len(src))
		for b.Loop() {
			copy(dst[:headSize], src)
			for i := headSize; i < len(src); i += entitySize {
				for _, f := range [][2]int{{0, 4}, {4, 5}, {5, 9}, {9, 13}, {13, 17}, {17, 21}} {
					copy(dst[i+f[0]:i+f[1]], src[i+f[0]:])
				}
			}
		}
	})
}
