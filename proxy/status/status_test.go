package status

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answerJSON is the answer as a client would read it.
type answerJSON struct {
	Version struct {
		Name     string
		Protocol int32
	}
	Players struct {
		Max, Online int
		Sample      []struct {
			Name string
			ID   uuid.UUID
		}
	}
	Description json.RawMessage
	Favicon     string
}

func text(t testing.TB, s string) packet.Text {
	t.Helper()
	x, err := packet.ParseText(s)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func newStatus(t testing.TB, cfg Config) *Status {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pair returns a connection over loopback.
func pair(t testing.TB) (client, server *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// exchange serves one connection to which the client sends frames; it returns what came back, the client having closed
// its side, and how Serve ended.
func exchange(t *testing.T, s *Status, protocol int32, frames ...[]byte) (frame.Frame, *frame.Reader, error) {
	t.Helper()
	client, server := pair(t)
	done := make(chan error, 1)
	go func() {
		r := frame.NewReader(server, frame.PreLogin(false))
		defer r.Release()
		err := s.Serve(server, r, frame.NewWriter(server), Client{Protocol: protocol})
		server.Close()
		done <- err
	}()
	for _, f := range frames {
		client.Write(f)
	}
	client.CloseWrite()
	r := frame.NewReader(client, frame.Limits{})
	f, err := r.Next()
	if err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
	return f, r, <-done
}

var (
	request = []byte{1, 0}
	ping    = []byte{9, 1, 1, 2, 3, 4, 5, 6, 7, 8}
)

func ask(t *testing.T, s *Status, protocol int32) (a answerJSON, raw []byte) {
	t.Helper()
	f, r, err := exchange(t, s, protocol, request)
	if err != nil {
		t.Fatalf("protocol %d: %v", protocol, err)
	}
	body, err := r.Body(f)
	if err != nil || f.ID != 0 {
		t.Fatalf("protocol %d: packet %d, %v", protocol, f.ID, err)
	}
	if raw, err = packet.ParseStatusResponse(body); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		t.Fatalf("protocol %d: %v in %s", protocol, err, raw)
	}
	return a, raw
}

func TestAnswer(t *testing.T) {
	alex := Player{"Alex", uuid.MustParse("01234567-89ab-cdef-0123-456789abcdef")}
	odd := Player{`Odd"\` + "\x01\xff", uuid.Max}
	s := newStatus(t, Config{
		MOTD: text(t, "<#ff8800>Hello</#ff8800> <bold>world"), Icon: icon(t, 64, 64), MaxPlayers: 77,
		Online:  func() int { return 5 },
		Players: func(dst []Player, max int) []Player { return append(dst, alex, odd) },
	})
	for _, v := range append(proto.Supported(), nil) {
		for _, protocol := range []int32{-1, 0, 4, 778, 0x40000100} {
			want := proto.Max
			if v != nil {
				protocol, want = v.Protocol, v.Protocol
			}
			a, _ := ask(t, s, protocol)
			if a.Version.Protocol != want || a.Version.Name != "Earshot 1.8-26.3" {
				t.Errorf("protocol %d: version %+v, want protocol %d", protocol, a.Version, want)
			}
			p := a.Players
			if p.Max != 77 || p.Online != 5 || len(p.Sample) != 2 || p.Sample[0].Name != alex.Name || p.Sample[0].ID != alex.ID ||
				p.Sample[1].Name != "Odd\"\\\x01\ufffd" || p.Sample[1].ID != uuid.Max {
				t.Errorf("protocol %d: players %+v", protocol, p)
			}
			if a.Favicon != icon(t, 64, 64) {
				t.Errorf("protocol %d: favicon %.40q", protocol, a.Favicon)
			}
			d := string(a.Description)
			if rgb := strings.Contains(d, "#ff8800"); rgb != (protocol >= proto.V1_16 || protocol < 0) {
				t.Errorf("protocol %d: description %s", protocol, d)
			}
			if !strings.Contains(d, "Hello") || !strings.Contains(d, "bold") {
				t.Errorf("protocol %d: description %s", protocol, d)
			}
			if v != nil {
				break
			}
		}
	}
}

// TestTargets: the description is compiled for the first and the last protocol of each class.
func TestTargets(t *testing.T) {
	for protocol, want := range map[int32]int{0: 0, 47: 0, 578: 0, 735: 1, 764: 1, 765: 2, 775: 2, 9999: 2, -1: 2} {
		if got := targetOf(protocol); got != want {
			t.Errorf("protocol %d is answered as class %d, want %d", protocol, got, want)
		}
	}
}

func TestSamples(t *testing.T) {
	crowd := func(dst []Player, max int) []Player {
		for i := range max + 5 { // one that does not keep to the bound
			dst = append(dst, Player{Name: fmt.Sprint("p", i)})
		}
		return dst
	}
	if a, _ := ask(t, newStatus(t, Config{Players: crowd}), 765); len(a.Players.Sample) != MaxSample {
		t.Errorf("%d players named, want %d", len(a.Players.Sample), MaxSample)
	}
	a, raw := ask(t, newStatus(t, Config{}), 765)
	if len(a.Players.Sample) != 0 || a.Players.Online != 0 || bytes.Contains(raw, []byte("favicon")) {
		t.Errorf("without players or icon: %s", raw)
	}
	s := newStatus(t, Config{Players: crowd, Lines: []packet.Text{text(t, "<red>one"), text(t, "&ltwo")}, Version: `my "own"`})
	a, raw = ask(t, s, 47)
	if n := a.Players.Sample; len(n) != 2 || n[0].Name != "§cone" || n[1].Name != "§ltwo" || a.Version.Name != `my "own"` {
		t.Errorf("fixed lines: %s", raw)
	}
}

// TestNumbersMove: only the numbers change from answer to answer, and they do.
func TestNumbersMove(t *testing.T) {
	var n atomic.Int64
	s := newStatus(t, Config{Online: func() int { return int(n.Add(1)) }})
	for want := range 3 {
		if a, _ := ask(t, s, 765); a.Players.Online != want+1 {
			t.Errorf("online %d, want %d", a.Players.Online, want+1)
		}
	}
}

func TestExchange(t *testing.T) {
	s := newStatus(t, Config{MOTD: packet.Plain("x")})
	for _, c := range []struct {
		name   string
		frames [][]byte
		ids    []int32 // of the answers
		ok     bool
	}{
		{"request", [][]byte{request}, []int32{0}, true},
		{"request and ping", [][]byte{request, ping}, []int32{0, 1}, true},
		{"both in one segment", [][]byte{append(append([]byte{}, request...), ping...)}, []int32{0, 1}, true},
		{"ping alone", [][]byte{ping}, []int32{1}, true},
		{"two requests", [][]byte{request, request}, []int32{0}, false},
		{"request after ping", [][]byte{ping, request}, []int32{1}, true}, // over by then
		{"nothing", nil, nil, false},
		{"request with a body", [][]byte{{2, 0, 7}}, nil, false},
		{"short ping", [][]byte{{2, 1, 7}}, nil, false},
		{"long ping", [][]byte{append([]byte{10}, append(ping[1:len(ping):len(ping)], 9)...)}, nil, false},
		{"another packet", [][]byte{{1, 2}}, nil, false},
		{"a frame too large", [][]byte{{0xff, 0xff, 0x7f}}, nil, false},
		{"cut short", [][]byte{{9, 1, 1}}, nil, false},
	} {
		f, r, err := exchange(t, s, 765, c.frames...)
		if (err == nil) != c.ok {
			t.Errorf("%s: ended with %v", c.name, err)
		}
		for i, id := range c.ids {
			if f.End == f.Start || f.ID != id {
				t.Errorf("%s: answer %d is packet %d, want %d", c.name, i, f.ID, id)
			}
			if id == idPing {
				if body, err := r.Body(f); err != nil || !bytes.Equal(body, ping[2:]) {
					t.Errorf("%s: ping answered with % x, %v", c.name, body, err)
				}
			}
			f, _ = r.Next()
		}
		if f.End != f.Start && len(c.ids) == 0 {
			t.Errorf("%s: was answered with packet %d", c.name, f.ID)
		}
	}
}

// TestTimeout: a client that sends a byte a second is cut at the total, and so is one that does not take its answer.
func TestTimeout(t *testing.T) {
	for name, client := range map[string]func(net.Conn){
		"slow loris": func(c net.Conn) {
			for _, b := range append(append([]byte{}, request...), ping...) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(2 * time.Second)
			}
		},
		"silence":           func(c net.Conn) {},
		"does not read":     func(c net.Conn) { c.Write(request) },
		"never says enough": func(c net.Conn) { c.Write(request); io.Copy(io.Discard, c) },
	} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			go func() {
				if name == "slow loris" {
					go io.Copy(io.Discard, far)
				}
				client(far)
			}()
			r := frame.NewReader(near, frame.PreLogin(false))
			start := time.Now()
			err := newStatus(t, Config{}).Serve(near, r, frame.NewWriter(near), Client{Protocol: 765})
			if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != 10*time.Second {
				t.Errorf("%s: %v after %v, want a timeout after 10 s", name, err, time.Since(start))
			}
			near.Close()
			far.Close()
			synctest.Wait()
			time.Sleep(time.Minute)
		})
	}
}

// memory is a connection that plays the same input again and again.
type memory struct {
	net.Conn
	in  []byte
	off int
	out int
}

func (m *memory) Read(b []byte) (int, error) {
	if m.off == len(m.in) {
		return 0, io.EOF
	}
	n := copy(b, m.in[m.off:])
	m.off += n
	return n, nil
}
func (m *memory) Write(b []byte) (int, error)      { m.out += len(b); return len(b), nil }
func (m *memory) SetDeadline(time.Time) error      { return nil }
func (m *memory) SetReadDeadline(time.Time) error  { return nil }
func (m *memory) SetWriteDeadline(time.Time) error { return nil }

func typical(t testing.TB) *Status {
	players := make([]Player, 500)
	for i := range players {
		players[i] = Player{Name: fmt.Sprintf("Player%03d", i), ID: uuid.New()}
	}
	next := 0
	return newStatus(t, Config{
		MOTD: text(t, "<gradient:red:blue>An Earshot network</gradient>: come closer"), Icon: icon(t, 64, 64), MaxPlayers: 500,
		Online: func() int { return len(players) },
		Players: func(dst []Player, max int) []Player {
			next = (next + max) % (len(players) - max)
			return append(dst, players[next:next+max]...)
		},
	})
}

// BenchmarkServe measures the whole exchange without the network.
func BenchmarkServe(b *testing.B) {
	s := typical(b)
	m := &memory{in: append(append([]byte{}, request...), ping...)}
	b.ReportAllocs()
	for b.Loop() {
		m.off = 0
		r := frame.NewReader(m, frame.PreLogin(false))
		if err := s.Serve(m, r, frame.NewWriter(m), Client{Protocol: 765}); err != nil {
			b.Fatal(err)
		}
		r.Release()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
	b.ReportMetric(float64(m.out)/float64(b.N), "B/answer")
}

// BenchmarkLoopback measures the same over an open TCP connection, client included.
func BenchmarkLoopback(b *testing.B) {
	s := typical(b)
	client, server := pair(b)
	client.SetDeadline(time.Time{})
	go func() {
		r := frame.NewReader(server, frame.PreLogin(false))
		defer r.Release()
		w := frame.NewWriter(server)
		for s.Serve(server, r, w, Client{Protocol: 765}) == nil {
			if _, err := r.Next(); err != nil { // an empty request between the exchanges
				return
			}
		}
	}()
	r := frame.NewReader(client, frame.Limits{})
	both := append(append(append([]byte{}, request...), ping...), request...)
	for b.Loop() {
		client.Write(both)
		for range 2 {
			if _, err := r.Next(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
	client.Close()
}

// icon returns a data URI of a picture of that size.
func icon(t testing.TB, w, h int) string {
	return iconURI + base64.StdEncoding.EncodeToString(pngBytes(t, w, h, 0))
}

// pngBytes returns such a picture; noise makes it large.
func pngBytes(t testing.TB, w, h, noise int) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	seed := uint32(1)
	for i := range m.Pix {
		if seed = seed*1664525 + 1013904223; noise > 0 {
			m.Pix[i] = byte(seed >> 24)
		}
	}
	m.Set(3, 3, color.White)
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	if noise > 0 { // large, by what decoders skip
		chunk := make([]byte, noise<<10)
		b.Write(chunk)
	}
	return b.Bytes()
}

func TestLoadIcon(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	good := pngBytes(t, 64, 64, 0)
	for _, c := range []struct{ name, source, want string }{
		{"none", "", ""},
		{"file", file("icon.png", good), ""},
		{"data URI", icon(t, 64, 64), ""},
		{"data URI with line breaks", strings.ReplaceAll(icon(t, 64, 64), "A", "A\n"), ""},
		{"missing file", filepath.Join(dir, "missing.png"), "no such file"},
		{"directory", dir, "not a file"},
		{"JPEG URI", "data:image/jpeg;base64,xx", "must begin with data:image/png;base64,"},
		{"bad base64", iconURI + "!!!", "not valid base64"},
		{"not a picture", file("text.png", []byte("hello")), "not a PNG"},
		{"wrong size", file("big.png", pngBytes(t, 65, 64, 0)), "is 65 by 64 pixels, must be 64 by 64"},
		{"damaged", file("half.png", good[:len(good)-20]), "damaged"},
		{"too large", file("heavy.png", pngBytes(t, 64, 64, 10)), "at most 22 fit"},
		{"far too large", file("huge.png", make([]byte, 2<<20)), "at most 1 MiB"},
	} {
		got, err := LoadIcon(c.source)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want == "" && c.source != "":
			if got != iconURI+base64.StdEncoding.EncodeToString(good) {
				t.Errorf("%s: %.60q", c.name, got)
			}
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want one that says %q", c.name, err, c.want)
		}
		if c.want != "" && strings.HasPrefix(c.source, dir) && err != nil && !strings.Contains(err.Error(), c.source) {
			t.Errorf("%s: error %v does not name the file", c.name, err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	_, err := New(Config{MOTD: packet.Plain(strings.Repeat("x", maxAnswer))})
	if err == nil || !strings.Contains(err.Error(), "32767") {
		t.Errorf("a status that does not fit: %v", err)
	}
	// The largest icon leaves room for a full sample.
	s := newStatus(t, Config{Icon: iconURI + strings.Repeat("A", maxIconKB<<10*4/3), Players: func(dst []Player, max int) []Player {
		for range max {
			dst = append(dst, Player{Name: strings.Repeat("W", 16)})
		}
		return dst
	}})
	if _, raw := ask(t, s, 765); len(raw) > maxAnswer {
		t.Errorf("%d characters, at most %d", len(raw), maxAnswer)
	}
}
