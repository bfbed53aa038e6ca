package status

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"
)

// utf16be returns a string as the old protocol has it.
func utf16be(s string) (b []byte) {
	for _, c := range utf16.Encode([]rune(s)) {
		b = binary.BigEndian.AppendUint16(b, c)
	}
	return b
}

// ping16 returns the ping of a 1.6 client, field by field.
func ping16(protocol byte, host string, port int32) []byte {
	b := []byte{0xfe, 0x01, 0xfa, 0x00, 0x0b}
	b = append(b, utf16be("MC|PingHost")...)
	h := utf16be(host)
	b = binary.BigEndian.AppendUint16(b, uint16(7+len(h)))
	b = append(b, protocol)
	b = binary.BigEndian.AppendUint16(b, uint16(len(h)/2))
	b = append(b, h...)
	return binary.BigEndian.AppendUint32(b, uint32(port))
}

// readKick returns the text of a kick packet.
func readKick(t testing.TB, b []byte) string {
	t.Helper()
	if len(b) < 3 || b[0] != 0xff || len(b) != 3+2*int(binary.BigEndian.Uint16(b[1:])) {
		t.Fatalf("not one kick packet: % x", b)
	}
	u := make([]uint16, (len(b)-3)/2)
	for i := range u {
		u[i] = binary.BigEndian.Uint16(b[3+2*i:])
	}
	if len(u) > maxLegacy {
		t.Errorf("%d characters, a client reads at most %d", len(u), maxLegacy)
	}
	return string(utf16.Decode(u))
}

func legacyStatus(t testing.TB) *Status {
	return newStatus(t, Config{MOTD: text(t, "<red>Hi <bold>there\nyou"), MaxPlayers: 60, Online: func() int { return 7 }})
}

const modernAnswer = "§1\x00127\x00Earshot 1.8-26.3\x00§cHi §c§lthere you\x007\x0060"

var legacyCases = []struct {
	name   string
	pieces [][]byte
	want   string // of the answer; empty: closed without one
}{
	{"beta", [][]byte{{0xfe}}, "Hi there you§7§60"},
	{"1.4", [][]byte{{0xfe, 1}}, modernAnswer},
	{"1.4 in two", [][]byte{{0xfe}, {1}}, modernAnswer},
	{"1.6", [][]byte{ping16(78, "mc.example.org", 25565)}, modernAnswer},
	{"1.6 in two", [][]byte{ping16(78, "mc.example.org", 25565)[:3], ping16(78, "mc.example.org", 25565)[3:]}, modernAnswer},
	{"1.6 byte by byte", bytewise(ping16(74, "ü.example", 1)), modernAnswer},
	{"1.6, longest host", [][]byte{ping16(78, strings.Repeat("h", maxHost), 25565)}, modernAnswer},
	{"1.6, host too long", [][]byte{ping16(78, strings.Repeat("h", maxHost+1), 25565)}, ""},
	{"1.6, cut short", [][]byte{ping16(78, "mc.example.org", 25565)[:40]}, ""},
	{"1.6, lengths disagree", [][]byte{append(ping16(78, "a", 1)[:28], 0, 99, 78, 0, 1, 0, 97, 0, 0, 0, 1)}, ""},
	{"1.6, another channel", [][]byte{[]byte("\xfe\x01\xfa\x00\x0b\x00M\x00C\x00|\x00B")}, ""},
	{"a frame", [][]byte{{0xfe, 1, 0}}, ""},
	{"login of 1.6", [][]byte{append([]byte{0x02, 78, 0, 4}, utf16be("Alex")...)}, "This server is for Minecraft 1.8-26.3"},
}

func bytewise(b []byte) (p [][]byte) {
	for i := range b {
		p = append(p, b[i:i+1])
	}
	return p
}

// TestLegacy runs over pipes, on which every piece arrives alone and pauses cost nothing.
func TestLegacy(t *testing.T) {
	for _, c := range legacyCases {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			got := make(chan []byte)
			go func() {
				b, _ := io.ReadAll(far)
				got <- b
			}()
			go func() {
				for _, p := range c.pieces {
					far.Write(p)
					time.Sleep(100 * time.Millisecond)
				}
			}()
			err := ServeLegacy(near, DefaultTimeout, only(legacyStatus(t)))
			near.Close()
			b := <-got
			if (err == nil) != (c.want != "") {
				t.Errorf("%s: ended with %v", c.name, err)
			}
			if c.want == "" {
				if len(b) > 0 {
					t.Errorf("%s: answered with % x", c.name, b)
				}
			} else if s := readKick(t, b); s != c.want {
				t.Errorf("%s: answer %q, want %q", c.name, s, c.want)
			}
			time.Sleep(time.Minute)
		})
	}
}

// TestLegacySockets: over TCP the answer arrives although the client is still sending.
func TestLegacySockets(t *testing.T) {
	for _, c := range legacyCases {
		client, server := pair(t)
		done := make(chan error, 1)
		go func() {
			done <- ServeLegacy(server, DefaultTimeout, only(legacyStatus(t)))
			server.Close()
		}()
		for _, p := range c.pieces {
			client.Write(p)
		}
		if c.want == "" {
			client.CloseWrite()
		}
		b, err := io.ReadAll(client)
		client.Close()
		if <-done; c.want == "" {
			if len(b) > 0 {
				t.Errorf("%s: answered with % x", c.name, b)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if s := readKick(t, b); s != c.want {
			t.Errorf("%s: answer %q, want %q", c.name, s, c.want)
		}
	}
}

func TestLegacyTime(t *testing.T) {
	for _, c := range []struct {
		name  string
		send  []byte
		after time.Duration
		err   error
	}{
		{"silence", nil, 10 * time.Second, os.ErrDeadlineExceeded},
		{"half a 1.6 ping", ping16(78, "x", 1)[:9], 10 * time.Second, os.ErrDeadlineExceeded},
		{"beta", []byte{0xfe}, legacyPause + lingering, nil},
		{"1.6", ping16(78, "x", 1), lingering, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			go func() {
				far.Write(c.send)
				io.Copy(io.Discard, far) // and never closes
			}()
			start := time.Now()
			err := ServeLegacy(near, DefaultTimeout, only(legacyStatus(t)))
			if d := time.Since(start); d != c.after || !errors.Is(err, c.err) {
				t.Errorf("%s: %v after %v, want %v after %v", c.name, err, d, c.err, c.after)
			}
			near.Close()
			far.Close()
		})
	}
}

func TestLegacyLong(t *testing.T) {
	for _, motd := range []string{strings.Repeat("<red>a<blue>b", 200), strings.Repeat("\U0001f600", 300), "a\x00b"} {
		s := newStatus(t, Config{MOTD: text(t, motd), Version: strings.Repeat("v", 300), Online: func() int { return 1 << 30 }, MaxPlayers: 1 << 30})
		for form, parts := range map[legacyForm]int{beta: 0, plain14: 6, full16: 6} {
			got := readKick(t, s.legacyAnswer(form, nil))
			if form == beta && strings.Count(got, "§") != 2 || form != beta && len(strings.Split(got, "\x00")) != parts {
				t.Errorf("form %d cannot be taken apart: %q", form, got)
			}
			if !strings.HasSuffix(got, "1073741824") {
				t.Errorf("form %d: the numbers were cut off: %q", form, got)
			}
		}
	}
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"a§cb", 2, "a"}, {"\U0001f600x", 1, ""}, {"\U0001f600x", 2, "\U0001f600"}} {
		if got := cut(c.s, c.n); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

func FuzzLegacyPing(f *testing.F) {
	for _, c := range legacyCases {
		f.Add(bytes.Join(c.pieces, nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, whole, err := parseLegacyPing(b)
		if err != nil {
			return
		}
		if whole && (p.form != full16 || len(b) < len(ping16(p.protocol, p.host, p.port))) {
			t.Fatalf("% x is whole as %+v", b, p)
		}
		if len(b) >= maxLegacyPing && !whole {
			t.Fatalf("%d bytes and still not whole", len(b))
		}
		for i := range b { // no part is refused, and none but the whole is whole
			if _, w, err := parseLegacyPing(b[:i]); err != nil || w && !whole {
				t.Fatalf("% x: whole %v, %v", b[:i], w, err)
			}
		}
		// What decodes is what such a client would have sent.
		if whole && !strings.ContainsRune(p.host, '\ufffd') && !bytes.HasPrefix(b, ping16(p.protocol, p.host, p.port)) {
			t.Fatalf("% x decodes to %+v", b, p)
		}
	})
}
