//go:build cgo && nolibopusfile

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/opus"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/wire"
)

var (
	alice = uuid.MustParse("11111111-1111-4111-8111-111111111111")
	bob   = uuid.MustParse("22222222-2222-4222-8222-222222222222")
	most  = caps.Set{Audio: 2, Status: 1, Spatial: 1, Pose: 1}
)

// server is the other end of one connection, which it reads from the start so that the client never blocks on it.
type server struct {
	t      *testing.T
	conn   net.Conn
	header http.Header // of the request
	uri    string
	got    chan message // unmasked
}

// answer is how the server treats the upgrade.
type answer struct {
	echo   caps.Set // by header
	token  func(offered string) bool
	refuse error
	extra  []byte // sent in one write with the response
	quiet  bool   // do not read
}

// connect dials a server in memory.
func connect(t *testing.T, cfg Config, a answer) (*Client, *server, error) {
	t.Helper()
	here, there := net.Pipe()
	cfg.Dial = func(context.Context, string, string) (net.Conn, error) { return here, nil }
	if cfg.URL == "" {
		cfg.URL = "ws://voice.test"
	}
	if cfg.Player == uuid.Nil {
		cfg.Player = alice
	}
	s := &server{t: t, conn: there, header: http.Header{}, got: make(chan message, 1000)}
	upgraded := make(chan error, 1)
	go func() {
		echo := http.Header{}
		a.echo.ToHeaders(echo)
		up := ws.Upgrader{
			OnRequest: func(uri []byte) error { s.uri = string(uri); return a.refuse },
			OnHeader:  func(k, v []byte) error { s.header.Add(string(k), string(v)); return nil },
			Header:    ws.HandshakeHeaderHTTP(echo),
			Protocol:  func(p []byte) bool { return a.token != nil && a.token(string(p)) },
		}
		rw := struct {
			io.Reader
			io.Writer
		}{there, there}
		if a.extra != nil {
			rw.Writer = &behind{there, a.extra}
		}
		_, err := up.Upgrade(rw)
		upgraded <- err
		if err != nil {
			there.Close()
		} else if !a.quiet {
			s.read()
		}
	}()
	c, err := Dial(context.Background(), cfg)
	<-upgraded
	if err != nil {
		return nil, s, err
	}
	t.Cleanup(func() { there.Close(); c.Close() })
	return c, s, nil
}

func mustConnect(t *testing.T, cfg Config, a answer) (*Client, *server) {
	t.Helper()
	c, s, err := connect(t, cfg, a)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// behind appends extra to the first write.
type behind struct {
	io.Writer
	extra []byte
}

func (b *behind) Write(p []byte) (int, error) {
	_, err := b.Writer.Write(append(bytes.Clone(p), b.extra...))
	b.extra = nil
	return len(p), err
}

// readMessage reads what the client writes: one masked frame per message.
func readMessage(r io.Reader) (message, error) {
	h, err := ws.ReadHeader(r)
	if err == nil {
		err = ws.CheckHeader(h, ws.StateServerSide)
	}
	if err != nil || !h.Fin || h.Length > 2000 {
		return message{}, fmt.Errorf("%+v: %w", h, err)
	}
	p := make([]byte, h.Length)
	_, err = io.ReadFull(r, p)
	ws.Cipher(p, h.Mask, 0)
	return message{h.OpCode, p}, err
}

func (s *server) read() {
	defer close(s.got)
	for {
		m, err := readMessage(s.conn)
		if err != nil {
			return
		}
		s.got <- m
	}
}

func (s *server) send(op ws.OpCode, b []byte) {
	s.t.Helper()
	s.write(ws.NewFrame(op, true, b))
}

func (s *server) write(f ws.Frame) {
	s.t.Helper()
	b, _ := ws.CompileFrame(f)
	if _, err := s.conn.Write(b); err != nil {
		s.t.Fatal(err)
	}
}

// texts drains what has arrived and returns the texts.
func (s *server) texts() (all []string) {
	synctest.Wait()
	for len(s.got) > 0 {
		if m := <-s.got; m.op == ws.OpText {
			all = append(all, string(m.payload))
		}
	}
	return all
}

func (s *server) frames(format wire.C2SFormat) (all []wire.C2S) {
	s.t.Helper()
	synctest.Wait()
	for len(s.got) > 0 {
		if m := <-s.got; m.op == ws.OpBinary {
			f, err := wire.ParseC2S(format, m.payload)
			if err != nil {
				s.t.Fatal(err)
			}
			all = append(all, f)
		}
	}
	return all
}

func TestNegotiation(t *testing.T) {
	all := caps.Newest()
	without := func(edit func(*caps.Set)) caps.Set { s := all; edit(&s); return s }
	for name, c := range map[string]struct{ ask, echo, want caps.Set }{
		"plain":                 {caps.Set{}, caps.Set{}, caps.Set{}},
		"everything":            {all, all, all},
		"nothing echoed":        {all, caps.Set{}, caps.Set{}},
		"unasked echo":          {caps.Set{}, all, caps.Set{}},
		"other version":         {all, without(func(s *caps.Set) { s.Audio = 1 }), caps.Set{Status: 1, Groups: 2, GroupEdit: 1, Roster: 2}},
		"spatial without audio": {most, caps.Set{Spatial: 1, Status: 1, Pose: 1}, caps.Set{Status: 1}},
		"audio only":            {most, caps.Set{Audio: 2}, caps.Set{Audio: 2}},
		"soundboard 1 for 2":    {all, without(func(s *caps.Set) { s.Soundboard = 1 }), without(func(s *caps.Set) { s.Soundboard = 0 })},
		"soundboard 2 for 1":    {without(func(s *caps.Set) { s.Soundboard = 1 }), all, without(func(s *caps.Set) { s.Soundboard = 0 })},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl, s := mustConnect(t, Config{Ask: c.ask, Token: "a/b+c=", URL: "https://ignored.test/sub/"}.plain(), answer{echo: c.echo})
			if cl.Caps() != c.want {
				t.Errorf("%s: %+v, want %+v", name, cl.Caps(), c.want)
			}
			if got := caps.FromHeaders(s.header); got != c.ask {
				t.Errorf("%s: asked for %+v, want %+v", name, got, c.ask)
			}
			u, err := url.Parse(s.uri)
			if err != nil || u.Path != "/sub/voice" || u.Query().Get("token") != "a/b+c=" || u.Query().Get("uuid") != alice.String() {
				t.Errorf("%s: request for %s", name, s.uri)
			}
		})
	}
}

// plain makes the test's base URL one without TLS.
func (c Config) plain() Config { c.URL = strings.Replace(c.URL, "https:", "http:", 1); return c }

func TestSubprotocol(t *testing.T) {
	full := "socketsvc.audio-2.status-1.spatial-1.pose-1"
	for name, c := range map[string]struct {
		ask    caps.Set
		picks  string
		offers []string // until the one that is picked
		want   caps.Set
	}{
		"full": {most, full, []string{full}, most},
		"less": {most, "socketsvc.audio-2.status-1", []string{full, "socketsvc.audio-2.status-1.spatial-1", "socketsvc.audio-2.status-1"},
			caps.Set{Audio: 2, Status: 1}},
		"bare": {caps.Set{}, "socketsvc", []string{"socketsvc"}, caps.Set{}},
		"none": {most, "", []string{full, "socketsvc.audio-2.status-1.spatial-1", "socketsvc.audio-2.status-1", "socketsvc.audio-2", "socketsvc"}, caps.Set{}},
		"a server without groups and clips": {caps.Newest(), full, []string{caps.Newest().Token(),
			"socketsvc.audio-2.status-1.spatial-1.speakers-1.soundboard-2.groups-2.group-edit-1.pose-1",
			"socketsvc.audio-2.status-1.spatial-1.speakers-1.soundboard-2.groups-2.pose-1",
			"socketsvc.audio-2.status-1.spatial-1.speakers-1.soundboard-2.pose-1",
			"socketsvc.audio-2.status-1.spatial-1.speakers-1.pose-1", full}, most},
	} {
		synctest.Test(t, func(t *testing.T) {
			var offered []string
			cl, s := mustConnect(t, Config{Ask: c.ask, Subprotocol: true}, answer{
				echo:  caps.Newest(), // headers count for nothing here
				token: func(p string) bool { offered = append(offered, p); return p == c.picks },
			})
			if cl.Caps() != c.want {
				t.Errorf("%s: %+v, want %+v", name, cl.Caps(), c.want)
			}
			if !reflect.DeepEqual(offered, c.offers) {
				t.Errorf("%s: offered %q", name, offered)
			}
			if got := caps.FromHeaders(s.header); got != (caps.Set{}) {
				t.Errorf("%s: asked by header too: %+v", name, got)
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, err := connect(t, Config{}, answer{refuse: ws.RejectConnectionError(ws.RejectionStatus(401), ws.RejectionReason("unknown token\nmore"))})
		var refused *Refused
		if !errors.As(err, &refused) || *refused != (Refused{401, "unknown token"}) {
			t.Error(err)
		}
	})
	for _, base := range []string{"ftp://x", "x", "ws://", "ws://[", ""} {
		if _, err := Dial(t.Context(), Config{URL: base}); err == nil {
			t.Errorf("%q is taken for a base URL", base)
		}
	}
}

func packet(b byte) []byte { return []byte{31 << 3, b, b, b} }

// Streams are fresh, positive and random, and sequences count from zero, also past frames that the full queue dropped.
func TestStreamsAndSequences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: most}, answer{echo: most})
		streams := map[int64]bool{}
		for range 50 {
			for i := range 3 {
				if i == 0 {
					if err := c.Begin(); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.SendOpus(packet(byte(i))); err != nil {
					t.Fatal(err)
				}
			}
			got := s.frames(wire.C2SV2)
			if len(got) != 3 {
				t.Fatalf("%d frames", len(got))
			}
			for i, f := range got {
				if f.Seq != int64(i) || f.Stream != got[0].Stream || f.Stream <= 0 || !bytes.Equal(f.Opus, packet(byte(i))) {
					t.Fatalf("%+v", f)
				}
			}
			if streams[got[0].Stream] {
				t.Fatal("a stream twice")
			}
			streams[got[0].Stream] = true
		}
		if n := c.Counters(); n.Sent != 150 || n.SendDropped != 0 {
			t.Errorf("%+v", n)
		}
	})
}

func TestFullQueueLeavesAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: most, Queue: 4}, answer{echo: most, quiet: true})
		c.SendOpus(packet(0))
		synctest.Wait() // the writer is stuck with it
		for i := range 6 {
			c.SendOpus(packet(byte(i + 1)))
		}
		if n := c.Counters(); n.Sent != 5 || n.SendDropped != 2 {
			t.Errorf("%+v", n)
		}
		go s.read()
		synctest.Wait()
		c.SendOpus(packet(7))
		var seqs []int64
		for _, f := range s.frames(wire.C2SV2) {
			seqs = append(seqs, f.Seq)
		}
		if !reflect.DeepEqual(seqs, []int64{0, 1, 2, 3, 4, 7}) {
			t.Error(seqs)
		}
	})
}

func TestFormatsOfSending(t *testing.T) {
	clips := caps.Set{Audio: 2, Spatial: 1, Soundboard: 2}
	for _, c := range []struct {
		granted caps.Set
		format  wire.C2SFormat
	}{{caps.Set{}, wire.C2SV1}, {caps.Set{Audio: 2}, wire.C2SV2}, {most, wire.C2SV2}, {clips, wire.C2SBoard}} {
		synctest.Test(t, func(t *testing.T) {
			cl, s := mustConnect(t, Config{Ask: c.granted}, answer{echo: c.granted})
			if err := cl.Speak(tone(0)); err != nil {
				t.Fatal(err)
			}
			got := s.frames(c.format)
			if len(got) != 1 || !wire.OpusOK(got[0].Opus) || got[0].Source != wire.Mic || (got[0].Stream > 0) != (c.format != wire.C2SV1) {
				t.Errorf("%+v: %+v", c.granted, got)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		cl, s := mustConnect(t, Config{}, answer{})
		for _, n := range []int{0, wire.MaxOpus + 1} {
			if cl.SendOpus(make([]byte, n)) == nil {
				t.Errorf("sends %d bytes", n)
			}
		}
		if err := cl.Speak(make([]int16, 10)); err == nil {
			t.Error("sends 10 samples")
		}
		cl.SendOpus(make([]byte, wire.MaxOpus))
		if n := len(s.frames(wire.C2SV1)); n != 1 {
			t.Errorf("%d frames", n)
		}
	})
}

// Deafening is sent at most once a second, the latest state only, and only to a server that knows it.
func TestDeafenIsCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: most}, answer{echo: most})
		expect := func(want ...string) {
			t.Helper()
			if got := s.texts(); !reflect.DeepEqual(got, want) {
				t.Errorf("after %v: %q, want %q", time.Since(start), got, want)
			}
		}
		expect()
		c.SetDeafened(true)
		expect("SSVC_DEAFEN_V1:1")
		for i := range 101 { // ends with off
			c.SetDeafened(i%2 == 1)
			time.Sleep(5 * time.Millisecond)
		}
		expect()
		time.Sleep(494 * time.Millisecond)
		expect()
		time.Sleep(time.Millisecond)
		expect("SSVC_DEAFEN_V1:0")
		time.Sleep(time.Second)
		c.SetDeafened(true)
		expect("SSVC_DEAFEN_V1:1")
		c.SetDeafened(false)
		c.SetDeafened(true) // the server knows
		time.Sleep(5 * time.Second)
		expect()
		c.SetTier(talk.Shout)
		expect("SSVC_RANGE_V1:shout")
		c.SetTier(talk.Whisper)
		c.SetTier(talk.Normal)
		expect()
		time.Sleep(100 * time.Millisecond)
		expect("SSVC_RANGE_V1:normal")
	})
	synctest.Test(t, func(t *testing.T) {
		_, s := mustConnect(t, Config{Ask: most, Deafened: true}, answer{echo: most})
		if got := s.texts(); !reflect.DeepEqual(got, []string{"SSVC_DEAFEN_V1:1"}) {
			t.Errorf("on connect: %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: most, Deafened: true}, answer{echo: caps.Set{Audio: 2}})
		c.SetDeafened(false)
		c.SetDeafened(true)
		c.SetTier(talk.Shout)
		time.Sleep(5 * time.Second)
		if got := s.texts(); got != nil {
			t.Errorf("an older server got %q", got)
		}
	})
}

// While the connection takes nothing the choice stays a choice, not a queue: what goes out then is the last one.
func TestDeafenOutlastsABusyConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: most}, answer{echo: most, quiet: true})
		c.SendOpus(packet(0))
		synctest.Wait()     // the writer is stuck with it
		for i := range 40 { // ends with deafened
			c.SetDeafened(i%2 == 1)
			c.SetTier(talk.Tier(i % 3))
			time.Sleep(100 * time.Millisecond)
		}
		go s.read()
		time.Sleep(time.Second)
		if got := s.texts(); !reflect.DeepEqual(got, []string{"SSVC_DEAFEN_V1:1"}) { // and the ordinary tier, as ever
			t.Errorf("%q", got)
		}
	})
}

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a bubble

func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rosters []*line.Roster
		var poses []*line.Pose
		var texts []string
		c, s := mustConnect(t, Config{Ask: most,
			Roster: func(r *line.Roster) { rosters = append(rosters, r) }, Pose: func(p *line.Pose) { poses = append(poses, p) },
			Text: func(s string) { texts = append(texts, s) },
		}, answer{echo: most})
		if c.Roster() != nil || c.Pose() != nil {
			t.Error("knows before it was told")
		}
		r := &line.Roster{People: []line.Person{{ID: alice, Name: "Alice"}, {ID: bob, Name: "Bob"}}, Status: true,
			Deafened: []uuid.UUID{bob}, Tiers: [talk.Tiers][]uuid.UUID{talk.Whisper: {alice}, talk.Shout: {bob}}}
		p := &line.Pose{Yaw: 90, X: 1.5, Y: 64, Z: -3, World: "world"}
		s.send(ws.OpText, line.AppendRoster(nil, r))
		// In fragments, with a ping between them.
		text := line.AppendPose(nil, p)
		s.write(ws.NewFrame(ws.OpText, false, text[:5]))
		s.send(ws.OpPing, []byte("between"))
		s.write(ws.NewFrame(ws.OpContinuation, true, text[5:]))
		s.send(ws.OpText, []byte("SSVC_RANGES_V1 1 0"))
		s.send(ws.OpText, []byte("SSVC_POSE_V1 nonsense"))
		s.send(ws.OpText, []byte{0xff})
		synctest.Wait()
		if !reflect.DeepEqual(c.Roster(), r) || !reflect.DeepEqual(rosters, []*line.Roster{r}) {
			t.Errorf("roster %+v", c.Roster())
		}
		if !reflect.DeepEqual(c.Pose(), p) || !reflect.DeepEqual(poses, []*line.Pose{p}) {
			t.Errorf("pose %+v", c.Pose())
		}
		if !reflect.DeepEqual(texts, []string{"SSVC_RANGES_V1 1 0"}) {
			t.Errorf("%q", texts)
		}
		if n := c.Counters().BadText; n != 2 {
			t.Errorf("%d bad lines", n)
		}
		if m := <-s.got; m.op != ws.OpPong || string(m.payload) != "between" {
			t.Errorf("%v %q", m.op, m.payload)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: caps.Set{Audio: 2}}, answer{echo: most})
		s.send(ws.OpText, line.AppendPose(nil, &line.Pose{World: "w"}))
		synctest.Wait()
		if c.Pose() != nil {
			t.Error("takes a pose that was not negotiated")
		}
	})
}

// With roster 2 the client has the roster that the changes lead to, and never one that is put together of two.
func TestChangesOfTheRoster(t *testing.T) {
	all := caps.Set{Audio: 2, Status: 1, Roster: 2}
	a, b := line.State{Person: line.Person{ID: alice, Name: "Alice"}}, line.State{Person: line.Person{ID: bob, Name: "Bob"}, Deafened: true, Tier: talk.Shout}
	dora := line.State{Person: line.Person{ID: uuid.UUID{15: 9}, Name: "Dora"}, Tier: talk.Whisper}
	synctest.Test(t, func(t *testing.T) {
		var rosters []*line.Roster
		c, s := mustConnect(t, Config{Ask: all, Roster: func(r *line.Roster) { rosters = append(rosters, r) }}, answer{echo: all})
		tell := func(l line.Changes, people string, deafened, bad int) {
			t.Helper()
			s.send(ws.OpText, line.AppendChanges(nil, &l))
			synctest.Wait()
			got := ""
			if r := c.Roster(); r != nil {
				for _, p := range r.People {
					got += p.Name + " "
				}
				if len(r.Deafened) != deafened || !r.Status {
					t.Errorf("%d are deafened of %q, status %v", len(r.Deafened), got, r.Status)
				}
			}
			if n := c.Counters().BadText; got != people || n != uint64(bad) {
				t.Errorf("%q, want %q; %d bad lines, want %d", got, people, n, bad)
			}
		}
		tell(line.Changes{To: 1, Put: []line.State{a}}, "", 0, 1) // to nothing
		tell(line.Changes{Whole: true, To: 1, Put: []line.State{a, b}}, "Alice Bob ", 1, 1)
		tell(line.Changes{From: 1, To: 2, Put: []line.State{dora}, Gone: []uuid.UUID{alice}}, "Bob Dora ", 1, 1)
		tell(line.Changes{From: 1, To: 3, Gone: []uuid.UUID{bob}}, "Bob Dora ", 1, 2) // to another roster
		quiet := b
		quiet.Deafened = false
		tell(line.Changes{From: 2, To: 4, Put: []line.State{quiet, a}}, "Bob Dora Alice ", 0, 2)
		if r := c.Roster(); !slices.Equal(r.Tiers[talk.Whisper], []uuid.UUID{dora.ID}) || !slices.Equal(r.Tiers[talk.Shout], []uuid.UUID{bob}) {
			t.Errorf("tiers %v", r.Tiers)
		}
		tell(line.Changes{Whole: true, To: 4, Put: []line.State{a}}, "Alice ", 0, 2)
		if len(rosters) != 4 || len(rosters[0].People) != 2 {
			t.Errorf("%d rosters were handed on, the first is %+v", len(rosters), rosters[0])
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: most}, answer{echo: most})
		s.send(ws.OpText, line.AppendChanges(nil, &line.Changes{Whole: true, Put: []line.State{a}}))
		synctest.Wait()
		if c.Roster() != nil {
			t.Error("takes changes that were not negotiated")
		}
	})
}

func TestServerCloses(t *testing.T) {
	for _, c := range []struct {
		body []byte
		want Closed
		echo []byte
	}{
		{ws.NewCloseFrameBody(4001, "replaced"), Closed{4001, "replaced"}, []byte{0x0f, 0xa1}},
		{ws.NewCloseFrameBody(1003, "unsupported control message"), Closed{1003, "unsupported control message"}, []byte{3, 0xeb}},
		{nil, Closed{1005, ""}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl, s := mustConnect(t, Config{}, answer{})
			s.send(ws.OpClose, c.body)
			var closed *Closed
			if err := cl.Wait(); !errors.As(err, &closed) || *closed != c.want {
				t.Errorf("%v, want %v", err, c.want)
			}
			if m := <-s.got; m.op != ws.OpClose || !bytes.Equal(m.payload, c.echo) {
				t.Errorf("answers %v % x", m.op, m.payload)
			}
			if err := cl.SendOpus(packet(1)); err != ErrClosed {
				t.Error(err)
			}
			if _, err := cl.SendText("x"); err != ErrClosed {
				t.Error(err)
			}
		})
	}
}

// The reason is heard although writing fails first.
func TestReasonSurvivesFailedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: most}, answer{echo: most, quiet: true})
		c.SendOpus(packet(1))
		time.Sleep(writeWithin + endWithin/2) // the writer gave up; the reader has half a second left
		s.send(ws.OpClose, ws.NewCloseFrameBody(1001, "shutting down"))
		var closed *Closed
		if err := c.Wait(); !errors.As(err, &closed) || closed.Code != 1001 {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, _ := mustConnect(t, Config{Ask: most}, answer{echo: most, quiet: true})
		c.SendOpus(packet(1))
		if err := c.Wait(); !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "write") {
			t.Error(err)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{}, answer{})
		c.SendOpus(packet(1))
		go func() { // answer the close frame
			for m := range s.got {
				if m.op == ws.OpClose {
					s.send(ws.OpClose, m.payload)
				}
			}
		}()
		from := time.Now()
		c.Close()
		c.Close()
		if took := time.Since(from); took != 0 || c.Wait() != ErrClosed {
			t.Error(took, c.Wait())
		}
	})
	synctest.Test(t, func(t *testing.T) { // a server that does not answer, but goes on talking
		c, s := mustConnect(t, Config{}, answer{})
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				b, _ := ws.CompileFrame(ws.NewPingFrame(nil))
				if _, err := s.conn.Write(b); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		}()
		from := time.Now()
		c.Close()
		if took := time.Since(from); took != endWithin || c.Wait() != ErrClosed {
			t.Error(took, c.Wait())
		}
		<-stopped
	})
	synctest.Test(t, func(t *testing.T) { // a server that does not even read
		c, _ := mustConnect(t, Config{}, answer{quiet: true})
		from := time.Now()
		c.Close()
		if took := time.Since(from); took > writeWithin+2*endWithin || c.Wait() != ErrClosed {
			t.Error(took, c.Wait())
		}
	})
}

func TestPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{}, answer{})
		for range 10 { // quiet, but alive
			m := <-s.got
			if m.op != ws.OpPing {
				t.Fatal(m.op)
			}
			s.send(ws.OpPong, m.payload)
		}
		if since := time.Since(start); since != 10*pingEvery {
			t.Errorf("10 pings in %v", since)
		}
		from := time.Now()
		if err := c.Wait(); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(from) != deadAfter {
			t.Errorf("%v after %v", err, time.Since(from))
		}
	})
}

func TestHostileServer(t *testing.T) {
	long := bytes.Repeat([]byte("x"), line.MaxS2C+1)
	for name, c := range map[string]struct {
		frames []ws.Frame
		code   ws.StatusCode
	}{
		"masked":               {[]ws.Frame{ws.MaskFrame(ws.NewBinaryFrame([]byte("x")))}, 1002},
		"text too long":        {[]ws.Frame{{Header: ws.Header{Fin: true, OpCode: ws.OpText, Length: int64(len(long))}, Payload: long[:10]}}, 1009},
		"2^62 bytes":           {[]ws.Frame{{Header: ws.Header{Fin: true, OpCode: ws.OpBinary, Length: 1 << 62}}}, 1009},
		"binary too long":      {[]ws.Frame{ws.NewFrame(ws.OpBinary, false, make([]byte, wire.MaxS2C)), ws.NewFrame(ws.OpContinuation, true, []byte{1})}, 1009},
		"stray continuation":   {[]ws.Frame{ws.NewFrame(ws.OpContinuation, true, nil)}, 1002},
		"two messages at once": {[]ws.Frame{ws.NewFrame(ws.OpText, false, nil), ws.NewFrame(ws.OpText, true, nil)}, 1002},
		"reserved bits":        {[]ws.Frame{{Header: ws.Header{Fin: true, Rsv: 4, OpCode: ws.OpText}}}, 1002},
		"close of one byte":    {[]ws.Frame{ws.NewFrame(ws.OpClose, true, []byte{3})}, 1002},
		"close code 1006":      {[]ws.Frame{ws.NewFrame(ws.OpClose, true, []byte{3, 0xee})}, 1002},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl, s := mustConnect(t, Config{}, answer{})
			for _, f := range c.frames {
				b, _ := ws.CompileFrame(f)
				s.conn.Write(b) // the client may have had enough already
			}
			if err := cl.Wait(); err == nil {
				t.Errorf("%s: no error", name)
			}
			m := <-s.got
			if code, _ := ws.ParseCloseFrameData(m.payload); m.op != ws.OpClose || code != c.code {
				t.Errorf("%s: answers %v % x", name, m.op, m.payload)
			}
		})
	}
}

// What the server sends together with its response is not lost.
func TestBytesBehindTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &line.Roster{People: []line.Person{{ID: alice, Name: "Alice"}}}
		b, _ := ws.CompileFrame(ws.NewTextFrame(line.AppendRoster(nil, r)))
		c, s := mustConnect(t, Config{}, answer{extra: b})
		s.send(ws.OpPing, nil)
		synctest.Wait()
		if !reflect.DeepEqual(c.Roster(), r) {
			t.Errorf("%+v", c.Roster())
		}
	})
}

func TestDialIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go io.Copy(io.Discard, there)
		_, err := Dial(ctx, Config{URL: "ws://x", Dial: func(context.Context, string, string) (net.Conn, error) { return here, nil }})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Over a real socket, net/http and TLS: what one client says, sounds.
func TestOverTLS(t *testing.T) {
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/base/voice" || caps.FromHeaders(r.Header) != most {
			http.Error(w, "401", http.StatusUnauthorized)
			return
		}
		echo := http.Header{}
		most.ToHeaders(echo)
		conn, _, _, err := ws.HTTPUpgrader{Header: echo}.Upgrade(r, w)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		for {
			m, err := readMessage(conn)
			if err != nil {
				return
			}
			switch m.op {
			case ws.OpBinary: // an echo at half the loudness
				in, err := wire.ParseC2S(wire.C2SV2, m.payload)
				if err != nil {
					t.Error(err)
				}
				ws.WriteFrame(conn, ws.NewBinaryFrame(wire.AppendS2C(nil, wire.S2CSpatial, &wire.S2C{Source: alice, Gain: 128, DX: 3, DZ: -4, Stream: in.Stream, Seq: in.Seq, Opus: in.Opus})))
			case ws.OpClose:
				ws.WriteFrame(conn, ws.NewCloseFrame(m.payload))
				return
			}
		}
	}))
	defer web.Close()
	heard := make(chan Sound, 100)
	config := web.Client().Transport.(*http.Transport).TLSClientConfig
	c, err := Dial(t.Context(), Config{URL: web.URL + "/base", Player: alice, Ask: most, TLS: config, Sound: func(s Sound) {
		s.PCM = slices.Clone(s.PCM)
		heard <- s
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := c.Speak(tone(i)); err != nil {
			t.Fatal(err)
		}
		s := <-heard
		if s.Seq != int64(i) || s.Gain != 128.0/255 || s.DX != 3 || s.DZ != -4 || i >= 10 && level(s.PCM) < 9000 {
			t.Errorf("frame %d: %d at %.2f, %.0f %.0f, 440 Hz at %.0f", i, s.Seq, s.Gain, s.DX, s.DZ, level(s.PCM))
		}
	}
	c.Close()
	if err := c.Wait(); err != ErrClosed {
		t.Error(err)
	}
	var refused *Refused
	if _, err := Dial(t.Context(), Config{URL: web.URL, Player: alice, TLS: config}); !errors.As(err, &refused) || *refused != (Refused{401, "401"}) {
		t.Error(err)
	}
}

// tone returns frame i of a 440 Hz sine.
func tone(i int) []int16 {
	pcm := make([]int16, opus.FrameSize)
	for k := range pcm {
		pcm[k] = int16(10_000 * math.Sin(2*math.Pi*440*float64(i*opus.FrameSize+k)/opus.SampleRate))
	}
	return pcm
}

// FuzzInbox: any bytes are messages within the limits or an error, in bounded memory.
func FuzzInbox(f *testing.F) {
	for _, m := range []ws.Frame{ws.NewTextFrame([]byte("SSVC_POSE_V1 0.00 0.00 0.00 0.00 dw==")), ws.NewBinaryFrame(make([]byte, 60)),
		ws.NewPingFrame([]byte("x")), ws.NewCloseFrame(ws.NewCloseFrameBody(4001, "replaced")), ws.NewFrame(ws.OpText, false, []byte("ab")), ws.NewFrame(ws.OpContinuation, true, []byte("ab"))} {
		b, _ := ws.CompileFrame(m)
		f.Add(b)
		f.Add(append(b, b...))
	}
	f.Add([]byte{0x82, 127, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		in := newInbox(fixed{bytes.NewReader(b)}, nil, false)
		for range len(b) + 1 {
			op, p, err := in.next()
			if err != nil {
				if cap(in.buf) > 2*len(b)+3*len(zeros) {
					t.Fatalf("%d bytes took %d of memory", len(b), cap(in.buf))
				}
				return
			}
			if op.IsReserved() || op == ws.OpContinuation || op == ws.OpClose || len(p) > len(b) || op == ws.OpBinary && len(p) > wire.MaxS2C {
				t.Fatal(op, len(p))
			}
		}
		t.Fatal("more messages than bytes")
	})
}

type fixed struct{ io.Reader }

func (fixed) Write(p []byte) (int, error)      { return len(p), nil }
func (fixed) Close() error                     { return nil }
func (fixed) LocalAddr() net.Addr              { return nil }
func (fixed) RemoteAddr() net.Addr             { return nil }
func (fixed) SetDeadline(time.Time) error      { return nil }
func (fixed) SetReadDeadline(time.Time) error  { return nil }
func (fixed) SetWriteDeadline(time.Time) error { return nil }

// A segment begins with an encoder that knows nothing of what was said before.
func TestBeginForgetsTheSound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: most}, answer{echo: most})
		var first []byte
		for range 2 {
			if err := c.Begin(); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				if err := c.Speak(tone(i)); err != nil {
					t.Fatal(err)
				}
			}
			got := s.frames(wire.C2SV2)
			if len(got) != 5 || first != nil && !bytes.Equal(first, got[0].Opus) {
				t.Errorf("%d frames; the first of a segment is encoded after what was said before", len(got))
			}
			first = got[0].Opus
			if bytes.Equal(first, got[4].Opus) {
				t.Fatal("the tone has no memory to forget")
			}
		}
	})
}
