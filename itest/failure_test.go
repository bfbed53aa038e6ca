package itest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/voice/client"
)

// phased are one version of each way in which a client can be told something: JSON in play, NBT in play, in
// configuration, and before there was one.
var phased = []string{"1.8.8", "1.19.4", "1.20.4", "1.21.4"}

// cable is a connection between the program and a backend that a test can cut.
type cable struct {
	addr string

	mu     sync.Mutex
	cut    bool
	frozen chan struct{} // closed: nothing is read from the program any more
	ends   []*net.TCPConn
}

func newCable(t *testing.T, to string) *cable {
	c := &cable{frozen: make(chan struct{})}
	over := make(chan struct{})
	c.addr = serving(t, func(in net.Conn) {
		out, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer out.Close()
		c.mu.Lock()
		c.ends = append(c.ends, in.(*net.TCPConn), out.(*net.TCPConn))
		cut := c.cut
		c.mu.Unlock()
		if cut {
			return
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			io.Copy(in, out)
			in.Close()
		}()
		buf := make([]byte, 4096)
		for {
			select {
			case <-c.frozen:
				<-over
			default:
			}
			n, err := in.Read(buf)
			if err != nil {
				break
			}
			out.Write(buf[:n])
		}
		out.Close()
		<-done
	})
	t.Cleanup(func() { // before serving's: a frozen one has to end
		close(over)
		c.kill()
	})
	return c
}

// kill ends the connections as the death of the backend's process does, and lets nobody connect any more.
func (c *cable) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, e := range c.ends {
		e.SetLinger(0)
		e.Close()
	}
}

// mend lets new connections through again.
func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = false
}

// TestKicked: a backend's own words reach the player in the phase the player is in; and a player who can go elsewhere
// does.
func TestKicked(t *testing.T) {
	for _, version := range phased {
		alongside(t, version, func(t *testing.T) {
			server, clients := peer.Backend(t, version, peer.None, ""), peer.NewRaw(t, version)
			line := newCable(t, server.Addr)
			settings := fmt.Sprintf("online: false\nservers: {game: {address: %q}}\ntimeouts: {backend-dial: 2s}\n", line.addr)
			// Names are compared without case.
			goesOn(t, start(t, settings+"try: [GAME, Limbo]\nfallback: {return: false}\n"), server, clients, line)
			line.mend()
			kicked(t, start(t, settings+"try: [game]\n"), server, clients, line)
		})
	}
}

// phasesOf returns the phases in which a backend can refuse a player, and the one in which the client is at that time.
func phasesOf(c *peer.RawCrowd) map[string]string {
	if c.Protocol < 764 {
		return map[string]string{"login": "play", "play": "play"}
	}
	return map[string]string{"login": "configuration", "config": "configuration", "play": "play"}
}

// kicked is for players who have nowhere else to go.
func kicked(t *testing.T, p *program, server *peer.Server, clients *peer.RawCrowd, line *cable) {
	told := func(r *peer.Raw, what, text, state string) {
		t.Helper()
		if e := r.Await("kicked", nil); !strings.Contains(e.Text, text) || e.State != state {
			t.Errorf("%s: the player is told %q in %s, want %q in %s", what, e.Text, e.State, text, state)
		}
		r.Await("end", nil)
	}
	in := func() *peer.Raw {
		t.Helper()
		r := clients.Join(p.addr, "Ann")
		server.Joined("Ann")
		return r
	}
	for phase, state := range phasesOf(clients) {
		reason := "no room in " + phase + ", sorry ✓"
		server.Refuse("Ann", phase, reason)
		told(clients.Dial(p.addr, peer.Login{Name: "Ann"}), "refused in "+phase, reason, state)
	}
	server.Refuse("Ann", "", "")

	ann := in()
	server.Kick("Ann", "out, and stay out")
	told(ann, "kicked in the middle of the game", "out, and stay out", "play")
	if clients.Protocol >= 764 {
		ann = in()
		server.Skip("configuring", "Ann")
		server.Reconfigure("Ann", true)
		server.Await("configuring", "Ann", nil)
		server.Kick("Ann", "not like this")
		told(ann, "kicked in a later configuration", "not like this", "configuration")
	}
	ann = in()
	server.Drop("Ann")
	told(ann, "dropped without a word", "game", "play")
	ann = in()
	line.kill()
	told(ann, "the backend died", "game", "play")
	r := clients.Dial(p.addr, peer.Login{Name: "Ann"})
	if e := r.Await("kicked", nil); !strings.Contains(e.Text, "game") || strings.Contains(e.Text, "127.0.0.1") {
		t.Errorf("with the backend dead the player is told %q", e.Text)
	}
}

// goesOn is for players who have: they lose their server and keep their connection, and their voice.
func goesOn(t *testing.T, p *program, server *peer.Server, clients *peer.RawCrowd, line *cable) {
	for phase := range phasesOf(clients) {
		server.Refuse("Bob", phase, "no room")
		r := clients.Dial(p.addr, peer.Login{Name: "Bob"})
		r.Await("moved", nil)
		r.Quit()
		r.Await("end", nil)
		if n := r.Count("kicked"); n != 0 {
			t.Errorf("refused in %s: the player was told to go", phase)
		}
	}
	if n := p.metric("earshot_backend_dial_failures_total"); n != 1 { // the refusal in login
		t.Errorf("%v failures to log in were counted", n)
	}
	server.Refuse("Bob", "login", "You are BANNED from here") // that is meant for good
	r := clients.Dial(p.addr, peer.Login{Name: "Bob"})
	if e := r.Await("kicked", nil); e.Text != "You are BANNED from here" {
		t.Errorf("a banned player is told %q", e.Text)
	}
	r.Await("end", nil)
	server.Refuse("Bob", "", "")

	join := func(name string) *talker {
		r := clients.Join(p.addr, name)
		r.Watch("chat", "system_chat")
		s := newTalker(t, p, &peer.Bot{Client: r.Client}, server)
		s.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1}})
		return s
	}
	follow := func(s *talker, why string) {
		t.Helper()
		s.bot.Await("packet", func(e peer.Event) bool { return strings.Contains(string(e.Params), why) })
	}
	ann, bob := join("Cat"), join("Bob")
	bob.hears(ann, 1, 0, 0)
	server.Kick("Cat", "move along, please")
	follow(ann, "move along, please")
	bob.hearsNothingFrom(ann, "elsewhere now")
	line.kill()
	follow(bob, "game")
	bob.hears(ann, 1, 0, 0) // both are in limbo, at the same place, with the sockets they had
	ann.hears(bob, 1, 0, 0)
	p.counts("earshot_players", 2)
}

// TestStuckBackends: a backend may stop at any point of its login; each costs the player the time that the settings
// say, and no more.
func TestStuckBackends(t *testing.T) {
	for _, version := range phased {
		alongside(t, version, func(t *testing.T) {
			stuckBackends(t, version)
		})
	}
}

func stuckBackends(t *testing.T, version string) {
	protocol := peer.Protocol(version)
	compression := framed(3, field.AppendVarInt(nil, 256))
	stages := map[string]func(net.Conn){
		"accepts": hold,
		"half": func(c net.Conn) {
			if _, err := arrive(c); err == nil {
				c.Write(compression)
				hold(c)
			}
		},
		"dribbles": func(c net.Conn) { // its login never ends although something always comes
			name, err := arrive(c)
			if err != nil {
				return
			}
			for _, b := range success(protocol, name) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(200 * time.Millisecond)
			}
		},
		"silent": func(c net.Conn) { // no join game, or nothing in configuration
			if name, err := arrive(c); err == nil {
				c.Write(success(protocol, name))
				hold(c)
			}
		},
		"hangs-up": func(c net.Conn) { arrive(c) },
		"babbles": func(c net.Conn) {
			arrive(c)
			c.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nThis is no game server.\r\n"))
			hold(c)
		},
	}
	servers := fmt.Sprintf("  dead: {address: %q}\n", freeAddr(t))
	for name, fn := range stages {
		servers += fmt.Sprintf("  %s: {address: %q}\n", name, serving(t, fn))
	}
	settings := func(try string) string {
		return "online: false\ntry: [" + try + "]\nservers:\n" + servers +
			"timeouts: {backend-dial: 1s, backend-login: 1s, backend-join: 1s, backend-configuration: 1s}\n"
	}
	clients := peer.NewRaw(t, version)
	p := start(t, settings("dead, accepts, half, dribbles, silent, hangs-up, babbles, limbo"))
	begin := time.Now()
	ann := clients.Join(p.addr, "Ann")
	if d := time.Since(begin); d < 4*time.Second || d > 30*time.Second { // four of them wait for their second
		t.Errorf("seven backends took %v", d)
	}
	if n := p.metric("earshot_backend_dial_failures_total"); n != 6 { // the silent one has taken the player
		t.Errorf("%v backends refused", n)
	}
	for _, name := range []string{"dead", "accepts", "half", "dribbles", "silent", "hangs-up", "babbles"} {
		p.says(1, "backend="+name)
	}
	if ann.Count("kicked") != 0 {
		t.Error("the player was told of it")
	}

	if protocol == 765 {
		for name, want := range map[string]string{
			"dead": "Cannot connect to server dead", "accepts": "accepts does not answer", "silent": "silent", "babbles": "server babbles",
		} {
			q := start(t, settings(name))
			r := clients.Dial(q.addr, peer.Login{Name: "Bob"})
			if e := r.Await("kicked", nil); !strings.Contains(e.Text, want) || e.State != "configuration" {
				t.Errorf("the player of a backend that is %s is told %q in %s", name, e.Text, e.State)
			}
			r.Await("end", nil)
		}
	}
	if protocol >= 764 { // the client is told that the configuration is over, and then nothing
		v := proto.Lookup(protocol)
		finish, _ := v.ID(proto.Config, proto.Clientbound, proto.FinishConfiguration)
		stages["joinless"] = func(c net.Conn) {
			if name, err := arrive(c); err == nil {
				c.Write(append(success(protocol, name), framed(finish, nil)...))
				hold(c)
			}
		}
		servers += fmt.Sprintf("  joinless: {address: %q}\n", serving(t, stages["joinless"]))
		r := clients.Dial(start(t, settings("joinless")).addr, peer.Login{Name: "Bob"})
		if e := r.Await("kicked", nil); !strings.Contains(e.Text, "joinless does not let you in") || e.State != "play" {
			t.Errorf("the player of a backend without a join game is told %q in %s", e.Text, e.State)
		}
		r.Await("end", nil)
		clients.Join(start(t, settings("joinless, limbo")).addr, "Bob") // from play back to configuration
	}
}

// TestReconfiguration: a backend sends its players back to configuration, twice in a row; they walk and talk on as if
// nothing had been.
func TestReconfiguration(t *testing.T) {
	versions := []string{"1.20.4", "1.21.4", "26.1", "26.3"}
	if long() {
		versions = nil
		for _, v := range peer.Versions {
			if v.Protocol >= 764 {
				versions = append(versions, v.Name)
			}
		}
	}
	for _, version := range versions {
		alongside(t, version, func(t *testing.T) { reconfiguration(t, version) })
	}
}

func reconfiguration(t *testing.T, version string) {
	server := peer.Backend(t, version, peer.Modern, secret)
	p := start(t, fmt.Sprintf("online: false\ntry: [game]\nservers: {game: {address: %q, forwarding: modern, secret: %q}}\n", server.Addr, secret))
	bots := peer.NewBots(t, version)
	ann, bob := newTalker(t, p, bots.Join(p.addr, "Ann"), server), newTalker(t, p, bots.Join(p.addr, "Bob"), server)
	ann.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1, Status: 1, Pose: 1}})
	bob.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1}})
	for range 2 {
		for _, s := range []*talker{ann, bob} {
			server.Reconfigure(s.bot.Name, false)
			server.Joined(s.bot.Name)
		}
	}
	server.Skip("reconfiguring", "Ann")
	server.Reconfigure("Ann", true) // and once more, with a pause in it
	server.Await("reconfiguring", "Ann", nil)
	server.Finish("Ann")
	server.Joined("Ann")

	server.Skip("pos", "Ann")
	server.Teleport("Ann", 2, 70, 2, 0, 0)
	server.At("Ann", 2, 70, 2)
	a := ann.bot.Goto(10, 5)
	server.At("Ann", a.X, a.Y, a.Z)
	server.Teleport("Bob", 0, 70, 0, 0, 0)
	server.At("Bob", 0, 70, 0)
	gain := math.Round(255*(1-math.Hypot(a.X, a.Z)/48)) / 255
	bob.hears(ann, gain, a.X, a.Z)
	ann.hears(bob, gain, -a.X, -a.Z)
	ann.bot.Chat("still here")
	server.Await("chat", "Ann", func(e peer.Event) bool { return e.Text == "still here" })
	p.counts("earshot_players", 2)
	if n := p.metric("earshot_undecoded_total"); n != 0 {
		t.Errorf("%v packets were not understood", n)
	}
}

// tide counts bytes that are written, and tells when nobody takes them any more.
type tide struct {
	mu    sync.Mutex
	taken int
	at    time.Time
}

func (x *tide) wrote(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.taken, x.at = x.taken+n, time.Now()
}

// still waits until something has been taken, and then nothing for a second.
func (x *tide) still(t *testing.T, what string) {
	t.Helper()
	testkit.Until(t, what+" to stand still", func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.taken > 1<<20 && time.Since(x.at) > time.Second
	})
}

// message returns a plugin message that does not compress.
func message() []byte {
	b := make([]byte, 16<<10)
	rand.Read(b)
	return packet.AppendPluginMessage(nil, packet.PluginMessage{Channel: "test", Data: b})
}

// TestStopsWhateverIsStuck: on SIGTERM the program has ten seconds, and nobody who does not listen takes more of them
// from it.
func TestStopsWhateverIsStuck(t *testing.T) {
	server := peer.Backend(t, "1.8.8", peer.None, "", peer.Quiet("payload"))
	line := newCable(t, server.Addr)
	p := start(t, fmt.Sprintf("online: false\ntry: [game]\nservers: {game: {address: %q}}\n", line.addr))
	clients := peer.NewRaw(t, "1.8.8")
	bob := listen(t, p, clients.Join(p.addr, "Bob"))
	ann := logIn(t, p.addr, "Ann")
	ann.until(proto.JoinGame)

	// A backend that reads nothing any more, before a client that never stops.
	close(line.frozen)
	var up, down tide
	var pushing sync.WaitGroup
	defer pushing.Wait()
	pushing.Go(func() {
		for b := message(); ; up.wrote(len(b)) {
			if ann.w.Packet(0x17, b) != nil {
				return
			}
		}
	})
	up.still(t, "the client")

	// A client that takes nothing, before a backend that never stops.
	flood := serving(t, func(c net.Conn) {
		name, err := arrive(c)
		if err != nil {
			return
		}
		c.Write(append(success(proto.V1_8, name), joinGame()...))
		for b := framed(0x3f, message()); ; {
			n, err := c.Write(b)
			if down.wrote(n); err != nil {
				return
			}
		}
	})
	q := start(t, fmt.Sprintf("online: false\ntry: [flood]\nservers: {flood: {address: %q}}\n", flood))
	slow := logIn(t, q.addr, "Slow")
	slow.until(proto.JoinGame)
	down.still(t, "the backend")

	// A voice socket that is not read, a login that stands still, an HTTP request that is never finished, and somebody
	// who says nothing.
	bob.ice.freeze()
	half, asking := dial(t, p.addr, ""), dial(t, p.addr, "")
	write(t, half, hello(47, "localhost", packet.IntentLogin))
	write(t, asking, []byte("GET /healthz HTTP/1.1\r\nHost: x\r\n"))
	dial(t, p.addr, "")

	for _, s := range []*program{p, q} {
		s.stop() // fails if it takes longer than ten seconds, or if the watchdog had to end it
	}
}

// TestStopsAtOnce: who asks twice does not want to wait for anybody.
func TestStopsAtOnce(t *testing.T) {
	p := start(t, "", "--offline")
	logIn(t, p.addr, "Ann").until(proto.JoinGame) // and will not hang up
	p.once.Do(func() {
		p.cmd.Process.Signal(syscall.SIGTERM)
		testkit.Until(t, "the program to begin to stop", func() bool { return strings.Contains(p.log.String(), "stopping") })
		p.cmd.Process.Signal(syscall.SIGTERM)
		<-p.done
		// By its own devices it ends with 0, or as late as the watchdog has it, which says so.
		if p.cmd.ProcessState.ExitCode() != 1 || strings.Contains(p.log.String(), "still not stopped") {
			t.Errorf("after the second signal it ends with %v:\n%s", p.err, p.log.String())
		}
	})
}

// TestFrozenListener: a listener whose socket is not read any more costs nobody else a frame, and when it is read again
// it is not behind.
func TestFrozenListener(t *testing.T) {
	p := start(t, "", "--offline")
	clients := peer.NewRaw(t, "1.16.5")
	ann := newTalker(t, p, &peer.Bot{Client: clients.Join(p.addr, "Ann").Client}, nil)
	ann.connect(client.Config{Ask: caps.Set{Audio: 2}})
	bob, eve := listen(t, p, clients.Join(p.addr, "Bob")), listen(t, p, clients.Join(p.addr, "Eve"))

	// The largest frames there are, so that what the kernel holds for Eve is soon full.
	sound := make([]byte, 1275)
	sound[0] = 0xf8 // 20 ms of mono, one frame
	var sent []time.Time
	if err := ann.c.Begin(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	speak := func(frames int) {
		t.Helper()
		for range frames {
			<-tick.C
			sent = append(sent, time.Now())
			if err := ann.c.SendOpus(sound); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, l := range []*listener{bob, eve} {
		testkit.Until(t, l.bot.Name+" to hear Ann", func() bool { speak(1); return len(l.take()) > 0 })
	}

	eve.ice.freeze()
	begin, lost := len(sent), `earshot_voice_frames_lost_total`
	bob.take()
	was := p.metric(lost)
	testkit.Until(t, "frames for Eve to be dropped", func() bool { speak(25); return p.metric(lost) > was+100 })
	var heard []arrival
	testkit.Until(t, "Bob to hear every frame", func() bool {
		heard = append(heard, bob.take()...)
		return len(heard) > 0 && heard[len(heard)-1].seq == int64(len(sent)-1)
	})
	late := 0
	for _, a := range heard {
		if int(a.seq) >= begin && a.at.Sub(sent[a.seq]) > 100*time.Millisecond {
			late++
		}
	}
	if n := len(sent) - begin; len(heard) < n || late > n/10 {
		t.Errorf("while Eve was frozen Bob heard %d of %d frames, %d of them late", len(heard), n, late)
	}
	if n := bob.c.Counters(); n.Gaps != 0 || n.Stale != 0 || n.Invalid != 0 {
		t.Errorf("Bob's counters are %+v", n)
	}

	eve.take()
	resumed := time.Now()
	eve.ice.resume()
	var fresh, after, behind int
	testkit.Until(t, "Eve to catch up", func() bool {
		speak(1)
		for _, a := range eve.take() {
			delay := a.at.Sub(sent[a.seq])
			switch {
			case delay < 200*time.Millisecond:
				if fresh++; fresh == 1 && a.at.Sub(resumed) > time.Second {
					t.Errorf("Eve was up to date only %v after she was back", a.at.Sub(resumed))
				}
			case fresh > 0:
				behind++
			}
			after++
		}
		return fresh >= 50
	})
	if behind > 5 {
		t.Errorf("after Eve had caught up, %d of %d frames were old again", behind, after)
	}
	if n := eve.c.Counters(); n.Gaps < 50 {
		t.Errorf("Eve's counters are %+v: what she could not take was not dropped", n)
	}
}

// listener is a player whose voice socket notes when each frame came, and can stop being read.
type listener struct {
	*talker
	ice *icy

	mu   sync.Mutex
	came []arrival
}

type arrival struct {
	seq int64
	at  time.Time
}

func listen(t *testing.T, p *program, player *peer.Raw) *listener {
	t.Helper()
	l := &listener{talker: newTalker(t, p, &peer.Bot{Client: player.Client}, nil), ice: &icy{}}
	o := l.invited()
	c, err := client.Dial(t.Context(), client.Config{
		URL: o.URL, Token: o.Token, Player: l.id, Ask: caps.Set{Audio: 2, Spatial: 1}, NoDecode: true,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			l.ice.Conn = c
			return l.ice, err
		},
		Sound: func(s client.Sound) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.came = append(l.came, arrival{s.Seq, time.Now()})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.c = c
	t.Cleanup(func() {
		l.ice.resume()
		c.Close()
	})
	return l
}

// take returns what has come since the last take.
func (l *listener) take() []arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.came
	l.came = nil
	return c
}

// icy is a connection whose reader can be stopped.
type icy struct {
	net.Conn
	mu   sync.Mutex
	thaw chan struct{} // nil: it flows
}

func (c *icy) freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.thaw = make(chan struct{})
}

func (c *icy) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.thaw != nil {
		close(c.thaw)
		c.thaw = nil
	}
}

func (c *icy) Read(b []byte) (int, error) {
	c.mu.Lock()
	thaw := c.thaw
	c.mu.Unlock()
	if thaw != nil {
		<-thaw
	}
	return c.Conn.Read(b)
}
