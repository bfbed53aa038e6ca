package itest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/limbo"
	"github.com/earshot-mc/earshot/proxy/packet"
)

// arena is a game server for players of any version: the built-in world behind a port of its own. It knows who is
// there, kicks everybody and crashes.
type arena struct {
	name, addr string

	mu    sync.Mutex
	world *limbo.World
	here  map[string]*net.TCPConn
}

func newArena(t *testing.T, name string) *arena {
	a := &arena{name: name, world: limbo.New(limbo.Config{}), here: map[string]*net.TCPConn{}}
	t.Cleanup(func() { a.world.Close() }) // after serving's
	a.addr = serving(t, func(c net.Conn) { a.serve(c.(*net.TCPConn)) })
	return a
}

// serve takes a player in: what it says until its name is known, and all the rest, goes to the world.
func (a *arena) serve(c *net.TCPConn) {
	var head bytes.Buffer
	r := frame.NewReader(io.TeeReader(c, &head), frame.Limits{})
	defer r.Release()
	c.SetReadDeadline(time.Now().Add(peer.Patience))
	var protocol int32
	var name string
	for i := range 2 {
		f, err := r.Next()
		if err != nil {
			return
		}
		body, err := r.Body(f)
		if err != nil {
			return
		}
		if i == 0 {
			protocol = field.NewReader(body).VarInt()
			continue
		}
		start, err := packet.ParseLoginStart(protocol, body)
		if err != nil {
			return
		}
		name = start.Name
	}
	c.SetReadDeadline(time.Time{})
	a.mu.Lock()
	world := a.world
	a.mu.Unlock()
	in, err := world.Dial(context.Background())
	if err != nil {
		return
	}
	a.mu.Lock()
	a.here[name] = c
	a.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() {
		io.Copy(c, in)
		c.CloseWrite()
	})
	in.Write(head.Bytes())
	io.Copy(in, c)
	in.Close()
	back.Wait()
	a.mu.Lock()
	if a.here[name] == c {
		delete(a.here, name)
	}
	a.mu.Unlock()
}

func (a *arena) has(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.here[name] != nil
}

// kick throws everybody out, with a reason; whoever comes next is let in.
func (a *arena) kick() {
	a.mu.Lock()
	old := a.world
	a.world = limbo.New(limbo.Config{})
	a.mu.Unlock()
	old.Close()
}

// crash resets every connection.
func (a *arena) crash() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.here {
		c.SetLinger(0)
		c.Close()
	}
}

// soaker is one player.
type soaker struct {
	*peer.Raw
	crowd *peer.RawCrowd
	in    bool // as far as it has been told
}

// soak is everything of TestSoak.
type soak struct {
	t       *testing.T
	p       *program
	a, b    *arena
	players []*soaker
}

// TestSoak: whatever servers and players do, for EARSHOT_SOAK (5 s without it) and with EARSHOT_SOAK_BOTS players (6,
// or 50 with EARSHOT_LONG), nobody is stuck for good and nothing is left of it. Rounds of switches, kicks, crashes,
// crashes in the middle of switches and players who come and go, all at once; after each everybody switches once more.
func TestSoak(t *testing.T) {
	versions, bots, length := soakSize(t)
	k := &soak{t: t, a: newArena(t, "a"), b: newArena(t, "b")}
	k.p = start(t, fmt.Sprintf("online: false\ntry: [a, b]\nforwarding: {mode: legacy}\nservers: {a: {address: %q}, b: {address: %q}}\n", k.a.addr, k.b.addr))
	var crowds []*peer.RawCrowd
	for _, v := range versions {
		crowds = append(crowds, peer.NewRaw(t, v.Name))
	}
	for i := range bots {
		c := crowds[i%len(crowds)]
		name := fmt.Sprintf("Soak%d", i)
		k.players = append(k.players, &soaker{Raw: c.Nobody(name), crowd: c})
	}
	// What is made once is made now.
	k.each(k.players, k.live)
	k.each(k.players, k.leave)
	k.gone()
	before := k.p.cost()

	rounds := map[string]int{}
	begin := time.Now()
	told := begin
	for time.Since(begin) < length && !t.Failed() {
		what := []string{"switch", "kick", "crash", "crash on the way", "come and go"}[rand.IntN(5)]
		rounds[what]++
		some := slices.DeleteFunc(slices.Clone(k.players), func(*soaker) bool { return rand.IntN(2) == 0 })
		target := []*arena{k.a, k.b}[rand.IntN(2)]
		switch what {
		case "kick":
			target.kick()
		case "crash":
			target.crash()
		case "crash on the way":
			k.each(some, k.send)
			time.Sleep(rand.N(50 * time.Millisecond))
			target.crash()
		case "come and go":
			k.each(some, func(s *soaker) {
				if s.in && rand.IntN(2) == 0 {
					s.Vanish()
				} else if s.in {
					s.Quit()
				}
			})
		}
		k.each(k.players, k.live)
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			t.Logf("%v of %v: rounds %v; %v switches, %v rescues, %v players; %+v", time.Since(begin).Round(time.Second), length, rounds,
				k.p.metric(`earshot_switches_total{how="done"}`), k.p.metric(`earshot_switches_total{how="rescued"}`), k.p.metric("earshot_players"), k.p.cost())
		}
	}
	k.each(k.players, k.leave)
	k.gone()
	k.p.returnsTo(before)
	if resp, err := http.Get("http://" + k.p.addr + "/healthz"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	for _, a := range []*arena{k.a, k.b} {
		testkit.Until(t, "the servers to be empty", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.here) == 0 })
	}
	if n := k.p.metric(`earshot_switches_total{how="done"}`); n < float64(bots) {
		t.Errorf("only %v switches", n)
	}
	if n := k.p.metric("earshot_undecoded_total"); n != 0 {
		t.Errorf("%v packets were not understood", n)
	}
	t.Logf("rounds %v; %v switches, %v rescues", rounds, k.p.metric(`earshot_switches_total{how="done"}`), k.p.metric(`earshot_switches_total{how="rescued"}`))
}

// soakSize returns who plays and for how long.
func soakSize(t *testing.T) ([]peer.Version, int, time.Duration) {
	t.Helper()
	versions, bots, length := []peer.Version{{Name: "1.16.5", Protocol: 754}, {Name: "1.21.4", Protocol: 769}}, 6, 5*time.Second
	if long() {
		versions, bots, length = peer.Core, 50, time.Minute
	}
	length = soakLength(t, length)
	if s := os.Getenv("EARSHOT_SOAK_BOTS"); s != "" {
		var err error
		if bots, err = strconv.Atoi(s); err != nil || bots < 1 {
			t.Fatalf("EARSHOT_SOAK_BOTS: %q is no number of players", s)
		}
	}
	return versions, bots, length
}

// soakLength is EARSHOT_SOAK, or without it what is given.
func soakLength(t *testing.T, length time.Duration) time.Duration {
	t.Helper()
	s := os.Getenv("EARSHOT_SOAK")
	if s == "" {
		return length
	}
	length, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("EARSHOT_SOAK: %v", err)
	}
	return length
}

// each does it for all of them at once.
func (k *soak) each(some []*soaker, do func(*soaker)) {
	k.t.Helper()
	var all sync.WaitGroup
	for _, s := range some {
		all.Go(func() { do(s) })
	}
	all.Wait()
	if k.t.Failed() {
		k.t.FailNow()
	}
}

// send gives the command to go to the other server and does not wait. One who is being disconnected just now says
// nothing.
func (k *soak) send(s *soaker) {
	if !s.in {
		return
	}
	to := k.a
	if k.a.has(s.Name) {
		to = k.b
	}
	if s.Command("server "+to.name) != nil {
		s.in = false
	}
}

// live is a player who is not stuck: in, or able to come in, and able to go to the other server. It may take several
// attempts, since others have just been doing what they could to prevent it.
func (k *soak) live(s *soaker) {
	for end := time.Now().Add(2 * peer.Patience); time.Now().Before(end); {
		if s.in { // else the login that counts may have come while the end of the former connection was looked at
			s.Skip("login")
			k.send(s)
		}
		if !s.in {
			s.crowd.Again(k.p.addr, s.Raw)
		}
		switch e, ok := s.Next(2*time.Second, "login", "end"); {
		case !ok:
		case e.Kind == "end":
			s.in = false
			time.Sleep(20 * time.Millisecond)
		case s.in:
			return
		default:
			s.in = true
		}
	}
	k.t.Errorf("%s is stuck", s.Name)
}

// leave is the end of it.
func (k *soak) leave(s *soaker) {
	if s.in {
		s.Quit()
		s.Next(peer.Patience, "login", "end")
		s.in = false
	}
}

// gone waits until the program has no player left.
func (k *soak) gone() {
	k.t.Helper()
	testkit.Until(k.t, "everybody to be gone", func() bool { return k.p.metric("earshot_players") == 0 })
}
