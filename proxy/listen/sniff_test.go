package listen

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// handshake returns the bytes of a status handshake for a host.
func handshake(host string) []byte {
	body := []byte{0x00}
	body = binary.AppendUvarint(body, 765)
	body = binary.AppendUvarint(body, uint64(len(host)))
	body = append(body, host...)
	body = append(body, 0x63, 0xdd, 1)
	return append(binary.AppendUvarint(nil, uint64(len(body))), body...)
}

// firstBytes are whole beginnings of connections and what they are.
var firstBytes = []struct {
	name  string
	bytes []byte
	want  kind
}{
	{"short host", handshake("localhost"), frame},
	{"length byte 16 like TLS", handshake(strings.Repeat("h", 0x16-8)), frame},
	{"length byte 47 like G", handshake(strings.Repeat("h", 0x47-8)), frame},
	{"length byte 50 like P", handshake(strings.Repeat("h", 0x50-8)), frame},
	{"length byte 0d like PROXY v2", handshake(strings.Repeat("h", 0x0d-8)), frame},
	{"length 127", handshake(strings.Repeat("h", 127-8)), frame},
	{"length 128", handshake(strings.Repeat("h", 128-8)), frame},
	{"length 254, first bytes FE 01", handshake(strings.Repeat("h", 254-9)), frame},
	{"length 382, first bytes FE 02", handshake(strings.Repeat("h", 382-9)), frame},
	{"length 2000", handshake(strings.Repeat("h", 2000)), frame},
	{"ping of beta", []byte{0xfe}, maybeLegacy},
	{"ping of 1.4", []byte{0xfe, 0x01}, maybeLegacy},
	{"ping of 1.6", []byte("\xfe\x01\xfa\x00\x0b\x00M\x00C"), legacy},
	{"login of 1.6", []byte("\x02\x4e\x00\x05\x00A"), legacy},
	{"login of 1.2", []byte("\x02\x00\x05\x00A"), legacy},
	{"GET", []byte("GET / HTTP/1.1\r\n"), httpRequest},
	{"POST", []byte("POST / HTTP/1.1\r\n"), httpRequest},
	{"HEAD", []byte("HEAD / HTTP/1.1\r\n"), httpRequest},
	{"PUT", []byte("PUT / HTTP/1.1\r\n"), httpRequest},
	{"OPTIONS", []byte("OPTIONS * HTTP/1.1\r\n"), httpRequest},
	{"DELETE", []byte("DELETE / HTTP/1.1\r\n"), httpRequest},
	{"PATCH", []byte("PATCH / HTTP/1.1\r\n"), httpRequest},
	{"TLS 1.0 record", []byte{0x16, 0x03, 0x01, 0x02, 0x00}, tlsRecord},
	{"nothing yet", nil, undecided},
	{"CONNECT", []byte("CONNECT x:1 HTTP/1.1\r\n"), nothing},
	{"GETX", []byte("GETX"), nothing},
	{"lower case", []byte("get / HTTP/1.1"), nothing},
	{"SSH", []byte("SSH-2.0-x"), nothing},
	{"empty frame", []byte{0x00, 0x00}, nothing},
	{"packet 1 first", []byte{0x09, 0x01}, nothing},
	{"packet 1 behind two length bytes", []byte{0x89, 0x02, 0x01}, nothing},
	{"three length bytes", []byte{0x89, 0x80, 0x01, 0x00}, nothing},
	{"TLS alert", []byte{0x15, 0x03, 0x01}, nothing},
	{"FE 01 and neither frame nor 1.6", []byte{0xfe, 0x01, 0x07}, nothing},
	{"PROXY v1", []byte("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n"), nothing},
	{"PROXY v2", []byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"), nothing},
}

func TestClassify(t *testing.T) {
	for _, c := range firstBytes {
		if got := classify(c.bytes); got != c.want {
			t.Errorf("%s: classified %d, want %d", c.name, got, c.want)
		}
		for i := range c.bytes {
			if got := classify(c.bytes[:i]); got != undecided && got != maybeLegacy && got != c.want {
				t.Errorf("%s: %d of its bytes are decided to be %d, want %d", c.name, i, got, c.want)
			}
		}
	}
}

// arrive runs receive on one end of a pipe while the other end gets pieces written, each arriving alone and pause after
// the one before.
func arrive(t *testing.T, pieces [][]byte, pause time.Duration, receive func(socket)) {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i, p := range pieces {
			if i > 0 {
				time.Sleep(pause)
			}
			if _, err := far.Write(p); err != nil {
				return
			}
		}
	}()
	receive(near)
	near.Close()
	<-done
	far.Close()
}

func bytewise(b []byte) (pieces [][]byte) {
	for i := range b {
		pieces = append(pieces, b[i:i+1])
	}
	return pieces
}

func TestSniffByteByByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range firstBytes {
			arrive(t, bytewise(c.bytes), 100*time.Millisecond, func(s socket) {
				k, got, err := sniff(s, nil, 5*time.Second)
				want := c.want
				if want == maybeLegacy { // then nothing more came
					want = legacy
				}
				if want == nothing || want == undecided {
					if err == nil {
						t.Errorf("%s: sniffed %d, want an error", c.name, k)
					}
				} else if err != nil || k != want {
					t.Errorf("%s: sniffed %d, %v, want %d", c.name, k, err, want)
				}
				if !bytes.HasPrefix(c.bytes, got) || len(got) > 4 {
					t.Errorf("%s: %d bytes kept, % x", c.name, len(got), got)
				}
			})
		}
	})
}

// TestSniffTime: what is told apart when, and why not.
func TestSniffTime(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces [][]byte
		pause  time.Duration
		want   kind
		err    error
		after  time.Duration
	}{
		{"waits for the server to talk", nil, 0, undecided, refusal(Silent), 5 * time.Second},
		{"slow loris", bytewise([]byte("GET ")), 2 * time.Second, undecided, refusal(Slow), 5 * time.Second},
		{"within the limit", bytewise([]byte("GET ")), time.Second, httpRequest, nil, 3 * time.Second},
		{"ping of beta", [][]byte{{0xfe}}, 0, legacy, nil, legacyWait},
		{"ping of 1.4", [][]byte{{0xfe, 0x01}}, 0, legacy, nil, legacyWait},
		{"ping of 1.4 in two segments", [][]byte{{0xfe}, {0x01}}, 200 * time.Millisecond, legacy, nil, 200*time.Millisecond + legacyWait},
		{"ping of 1.6 in segments", bytewise([]byte{0xfe, 0x01, 0xfa}), 200 * time.Millisecond, legacy, nil, 400 * time.Millisecond},
		{"PROXY header from nobody", [][]byte{[]byte("PROXY TCP4")}, 0, nothing, refusal(ProxyUntrusted), 0},
		{"PROXY v2 header from nobody, in pieces", bytewise([]byte(sigV2)), time.Millisecond, nothing, refusal(ProxyUntrusted), time.Millisecond},
		{"rubbish", [][]byte{[]byte("xyz")}, 0, nothing, refusal(Unknown), 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			arrive(t, c.pieces, c.pause, func(s socket) {
				start := time.Now()
				k, _, err := sniff(s, nil, 5*time.Second)
				if k != c.want || err != c.err || time.Since(start) != c.after {
					t.Errorf("%s: %d, %v after %v, want %d, %v after %v", c.name, k, err, time.Since(start), c.want, c.err, c.after)
				}
			})
		})
	}
}

func v2(command, family byte, addrs string, tlvs int) []byte {
	b := append([]byte(sigV2), command, family)
	b = binary.BigEndian.AppendUint16(b, uint16(len(addrs)+tlvs))
	return append(append(b, addrs...), make([]byte, tlvs)...)
}

const (
	// 198.51.100.7:12345.
	addrs4 = "\xc6\x33\x64\x07\x0a\x00\x00\x01\x30\x39\x63\xdd"
	// [2001:db8::1]:12345.
	addrs6 = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "0123456789abcdef" + "\x30\x39\x63\xdd"
	mapped = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc6\x33\x64\x07" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x00\x00\x01" + "\x30\x39\x63\xdd"
	peerIs = "192.0.2.9:999"
)

var headers = []struct {
	name  string
	bytes []byte
	want  string // address, or a reason
}{
	{"v1 TCP4", []byte("PROXY TCP4 198.51.100.7 10.0.0.1 12345 25565\r\n"), "198.51.100.7:12345"},
	{"v1 TCP6", []byte("PROXY TCP6 2001:db8::1 2001:db8::2 12345 25565\r\n"), "[2001:db8::1]:12345"},
	{"v1 TCP6 with a mapped address", []byte("PROXY TCP6 ::ffff:198.51.100.7 ::ffff:10.0.0.1 12345 25565\r\n"), "198.51.100.7:12345"},
	{"v1 UNKNOWN", []byte("PROXY UNKNOWN\r\n"), peerIs},
	{"v1 UNKNOWN with addresses", []byte("PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n"), peerIs},
	{"v1 no carriage return", []byte("PROXY TCP4 198.51.100.7 10.0.0.1 12345 25565\n"), ProxyInvalid},
	{"v1 bad address", []byte("PROXY TCP4 198.51.100.700 10.0.0.1 12345 25565\r\n"), ProxyInvalid},
	{"v1 bad port", []byte("PROXY TCP4 198.51.100.7 10.0.0.1 70000 25565\r\n"), ProxyInvalid},
	{"v1 too short", []byte("PROXY TCP4 198.51.100.7\r\n"), ProxyInvalid},
	{"v1 UDP4", []byte("PROXY UDP4 198.51.100.7 10.0.0.1 12345 25565\r\n"), ProxyInvalid},
	{"v1 endless line", []byte("PROXY " + strings.Repeat("x", 200)), ProxyInvalid},
	{"v2 TCP4", v2(0x21, 0x11, addrs4, 0), "198.51.100.7:12345"},
	{"v2 TCP4 and TLVs", v2(0x21, 0x11, addrs4, 300), "198.51.100.7:12345"},
	{"v2 TCP4 and 4 KiB", v2(0x21, 0x11, addrs4, 4096-12), "198.51.100.7:12345"},
	{"v2 TCP6", v2(0x21, 0x21, addrs6, 0), "[2001:db8::1]:12345"},
	{"v2 TCP6 mapped", v2(0x21, 0x21, mapped, 7), "198.51.100.7:12345"},
	{"v2 LOCAL", v2(0x20, 0x00, "", 0), peerIs},
	{"v2 LOCAL with an address", v2(0x20, 0x11, addrs4, 0), peerIs},
	{"v2 LOCAL and rubbish", v2(0x20, 0x99, "xyz", 9), peerIs},
	{"v2 UNSPEC", v2(0x21, 0x00, "", 5), peerIs},
	{"v2 over 4 KiB", v2(0x21, 0x11, addrs4, 4097-12), ProxyInvalid},
	{"v2 UDP", v2(0x21, 0x12, addrs4, 0), peerIs},
	{"v2 Unix socket", v2(0x21, 0x31, strings.Repeat("u", 216), 0), peerIs},
	{"v2 short address", v2(0x21, 0x21, addrs4, 0), ProxyInvalid},
	{"v2 version 3", v2(0x31, 0x11, addrs4, 0), ProxyInvalid},
	{"v2 unknown family", v2(0x21, 0x41, addrs4, 0), peerIs},
}

// outcome reads b, arriving in pieces, as a trusted peer's first bytes.
func outcome(t *testing.T, pieces [][]byte, pause, limit time.Duration, required bool) (got string, rest []byte) {
	t.Helper()
	arrive(t, pieces, pause, func(s socket) {
		from, r, err := readHeader(s, netip.MustParseAddrPort(peerIs), make([]byte, 0, 8), limit, required)
		var why refusal
		switch {
		case errors.As(err, &why):
			got = string(why)
		case err != nil:
			t.Errorf("an error that is no reason: %v", err)
		default:
			got, rest = from.String(), slices.Clone(r)
		}
	})
	return got, rest
}

func TestHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := handshake("localhost")
		for _, c := range headers {
			whole := slices.Concat(c.bytes, next)
			for how, pieces := range map[string][][]byte{"at once": {whole}, "byte by byte": bytewise(whole)} {
				got, rest := outcome(t, pieces, 100*time.Microsecond, 3*time.Second, true)
				if got != c.want {
					t.Errorf("%s, %s: %s, want %s", c.name, how, got, c.want)
				}
				if !bytes.HasPrefix(next, rest) {
					t.Errorf("%s, %s: % x left behind the header", c.name, how, rest)
				}
				if how == "at once" && strings.Contains(c.want, ":") && !bytes.Equal(rest, next) {
					t.Errorf("%s: % x left, want the whole handshake", c.name, rest)
				}
			}
		}
	})
}

func TestHeaderAbsentOrLate(t *testing.T) {
	for _, c := range []struct {
		name     string
		pieces   [][]byte
		required bool
		want     string
	}{
		{"a frame", [][]byte{handshake("localhost")}, false, peerIs},
		{"a frame, required", [][]byte{handshake("localhost")}, true, ProxyMissing},
		{"a frame of 13 bytes", bytewise(handshake("abcde")), false, peerIs},
		{"POST", bytewise([]byte("POST ")), false, peerIs},
		{"POST, required", bytewise([]byte("POST ")), true, ProxyMissing},
		{"silence", nil, false, Silent},
		{"silence, required", nil, true, ProxyMissing},
		{"half a v1 header", [][]byte{[]byte("PROXY TCP4 198.5")}, true, ProxySlow},
		{"half a v2 header", [][]byte{v2(0x21, 0x11, addrs4, 0)[:20]}, false, ProxySlow},
		{"v1 a byte a second", bytewise([]byte("PROXY TCP4 198.51.100.7 10.0.0.1 12345 25565\r\n")), true, ProxySlow},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			got, _ := outcome(t, c.pieces, time.Second, 3*time.Second, c.required)
			if got != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
			if d := time.Since(start); d > 4*time.Second { // the writer wakes up once more
				t.Errorf("%s: took %v, want at most 3 s", c.name, d)
			}
		})
	}
}

// captures returns what real clients of the game begin with.
func captures(t testing.TB) (all [][]byte) {
	t.Helper()
	file, err := os.ReadFile("../packet/testdata/captures.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		var c struct{ Ping, Login string }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{c.Ping, c.Login} {
			b, err := hex.DecodeString(s)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
	}
	return all
}

// TestCaptures: every client there is here speaks the game, as far as its first bytes tell.
func TestCaptures(t *testing.T) {
	all := captures(t)
	if len(all) < 80 {
		t.Fatalf("%d captures", len(all))
	}
	for _, b := range all {
		if k := classify(b); k != frame {
			t.Errorf("% x is %d", b, k)
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, c := range firstBytes {
		f.Add(c.bytes)
	}
	for _, b := range captures(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		decided := undecided
		for i := range len(b) + 1 {
			k := classify(b[:i])
			if decided != undecided && k != decided {
				t.Fatalf("% x was %d and with one byte more is %d", b[:i], decided, k)
			}
			if k != maybeLegacy {
				decided = k
			}
			if i >= 4 && k == undecided || i >= 3 && k == maybeLegacy {
				t.Fatalf("% x is still undecided", b[:i])
			}
		}
	})
}

func FuzzHeader(f *testing.F) {
	for _, c := range headers {
		f.Add(c.bytes)
	}
	peer := netip.MustParseAddrPort(peerIs)
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := headerLen(b)
		if n < 0 || n > maxV2 || err != nil && n != 0 {
			t.Fatalf("length %d, %v", n, err)
		}
		for i := range b { // a part never contradicts the whole
			if pn, perr := headerLen(b[:i]); (pn != 0 && pn != n) || (perr != nil && perr != err) {
				t.Fatalf("%d bytes: %d, %v; whole: %d, %v", i, pn, perr, n, err)
			}
		}
		if n == 0 || n > len(b) {
			return
		}
		from, err := source(b[:n], peer)
		if !from.IsValid() || from.Addr().Is4In6() || from.Addr().Zone() != "" {
			t.Fatalf("address %v, %v", from, err)
		}
		if err != nil && err != refusal(ProxyInvalid) {
			t.Fatalf("error %v is no reason", err)
		}
	})
}
