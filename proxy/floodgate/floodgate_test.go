package floodgate

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// vector is one of testdata/vectors.json, which itest/peers/floodgate.js makes with node's crypto.
type vector struct {
	Name, Key, Data string
	Tag, ID, As, IP string // of good ones
	Why             string // of bad ones
}

func vectors(t testing.TB) (v struct{ Good, Bad []vector }) {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil || json.Unmarshal(b, &v) != nil || len(v.Good) < 10 || len(v.Bad) < 20 {
		t.Fatalf("vectors: %v, %d good and %d bad", err, len(v.Good), len(v.Bad))
	}
	return v
}

func key(t testing.TB, text string) *Key {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	k, err := NewKey(b)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestVectors(t *testing.T) {
	v := vectors(t)
	for _, g := range v.Good {
		k := key(t, g.Key)
		p, err := k.Open(g.Data)
		if err != nil {
			t.Errorf("%s: %v", g.Name, err)
			continue
		}
		ip := ""
		if p.Addr.IsValid() {
			ip = p.Addr.String()
		}
		if p.Gamertag != g.Tag || p.ID() != uuid.MustParse(g.ID) || p.Name(".") != g.As || ip != g.IP {
			t.Errorf("%s: %+v, %v, %q, want %+v", g.Name, p, p.ID(), p.Name("."), g)
		}
		if n := p.Name("."); n == "" || len(n) > 16 {
			t.Errorf("%s: name %q", g.Name, n)
		}
		if _, err := k.Open(g.Data); err != ErrUsed {
			t.Errorf("%s, a second time: %v", g.Name, err)
		}
	}
	why := map[string]error{"key": ErrKey, "version": ErrVersion, "format": ErrFormat}
	for _, b := range v.Bad {
		p, err := key(t, b.Key).Open(b.Data)
		if p != nil || err != why[b.Why] || err == nil {
			t.Errorf("%s: %+v, %v, want %v", b.Name, p, err, why[b.Why])
		}
	}
}

// TestEveryBitCounts: data that differs from Geyser's in a single place is nobody's.
func TestEveryBitCounts(t *testing.T) {
	g := vectors(t).Good[0]
	for i := range g.Data {
		for _, c := range []byte{g.Data[i] ^ 1, g.Data[i] ^ 0x20, 'A', '!', 0} {
			if c == g.Data[i] {
				continue
			}
			b := []byte(g.Data)
			b[i] = c
			if p, err := key(t, g.Key).Open(string(b)); err == nil {
				t.Fatalf("byte %d as %q: %+v", i, c, p)
			}
		}
		if _, err := key(t, g.Key).Open(g.Data[:i]); err == nil {
			t.Fatalf("the first %d bytes are enough", i)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ prefix, tag, want string }{
		{".", "Steve", ".Steve"}, {"", "Steve", "Steve"}, {"*", "a b\tc", "*a_b_c"}, {".", "\x00\xff\n", ".___"},
		{"0123456789abcdef", "Steve", "0123456789abcdef"}, {"é", "Steve", "_Steve"}, {".", "日本", ".__"},
	} {
		if got := (&Player{Gamertag: c.tag}).Name(c.prefix); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.prefix, c.tag, got, c.want)
		}
	}
}

func TestData(t *testing.T) {
	const data = mark + ">x!y"
	for host, want := range map[string]string{
		"h\x00" + data: data, "h\x00FML\x00" + data: data, "h\x00" + data + "\x00FML\x00": data,
		"h": "", "": "", data: "", "h" + data: "", "h\x00x" + data: "", "h\x00\x00": "",
	} {
		if got := Data(host); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}

// TestMemory: what has been used is known for a while, and no more than that is remembered.
func TestMemory(t *testing.T) {
	k := key(t, strings.Repeat("00", 16))
	n := func(i int) (b [nonce]byte) { copy(b[:], fmt.Sprint(i)); return b }
	for i := range 3 * maxSeen {
		if !k.first(n(i)) {
			t.Fatalf("%d is new", i)
		}
		if k.first(n(max(0, i-maxSeen/2))) {
			t.Fatalf("at %d, what came before it is new", i)
		}
	}
	if len(k.seen) != maxSeen || len(k.ring) != maxSeen {
		t.Errorf("%d and %d remembered", len(k.seen), len(k.ring))
	}
}

func TestLoadKey(t *testing.T) {
	dir := t.TempDir()
	for _, size := range []int{0, 1, 15, 16, 17, 24, 32, 33, 1000} {
		file := filepath.Join(dir, fmt.Sprint(size))
		os.WriteFile(file, bytes.Repeat([]byte{'\n'}, size), 0o600) // no text: nothing is trimmed
		_, err := LoadKey(file)
		if good := size == 16 || size == 24 || size == 32; (err == nil) != good {
			t.Errorf("%d bytes: %v", size, err)
		}
		if err != nil && !strings.Contains(err.Error(), "16, 24 or 32") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := LoadKey(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// FuzzOpen: no data of strangers does harm, and none gets in. What a holder of the key says is read within bounds.
func FuzzOpen(f *testing.F) {
	v := vectors(f)
	for _, x := range append(v.Good, v.Bad...) {
		f.Add(x.Data, false)
	}
	for _, s := range []string{
		"1\x00Steve\x001\x007\x00en\x000\x001\x00::1\x00null\x000\x001\x00c", "1\x00Steve\x001\x007\x00en\x000\x001\x001.2.3.4\x00Notch;069a79f4-44e9-4726-a5be-fca90e38aaf5;x\x000\x001\x00",
		strings.Repeat("\x00", 11), "",
	} {
		f.Add(s, true)
	}
	keyed := make([]byte, 16)
	copy(keyed, []byte("0123456789abcdef"))
	f.Fuzz(func(t *testing.T, data string, open bool) {
		var p *Player
		var err error
		if open {
			p, err = parse(data)
		} else {
			k, _ := NewKey(keyed)
			if p, err = k.Open(data); err == nil {
				t.Fatalf("somebody without the key is %+v", p)
			}
		}
		if (p == nil) == (err == nil) {
			t.Fatalf("%+v, %v", p, err)
		}
		if p == nil {
			return
		}
		if n := p.Name("."); n == "" || len(n) > 16 || strings.IndexFunc(n, func(c rune) bool { return c <= ' ' || c >= 0x7f }) >= 0 || p.ID() == uuid.Nil {
			t.Fatalf("%q, %v", n, p.ID())
		}
	})
}
