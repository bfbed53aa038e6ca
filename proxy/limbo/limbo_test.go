package limbo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
)

func start(t testing.TB, cfg Config) *World {
	w := New(cfg)
	t.Cleanup(func() { w.Close() })
	return w
}

func TestJoinWithEveryProtocol(t *testing.T) {
	w := start(t, Config{Welcome: packet.Plain("Hello.\nGo away.")})
	var drains sync.WaitGroup
	defer drains.Wait()
	defer w.Close()
	entities := map[int32]int32{}
	for _, p := range Protocols() {
		c := dial(t, w, p, fmt.Sprint("P", p))
		got := map[proto.Packet]int{}
		count := func(s seen) { got[s.name]++ }

		first, err := c.next()
		if err != nil || first.name != proto.LoginSuccess {
			t.Fatalf("%d: %v, %v", p, first.name, err)
		}
		ls, err := packet.ParseLoginSuccess(p, first.body)
		if err != nil || ls.ID != c.id || ls.Name != c.name {
			t.Errorf("%d: login success %+v, %v", p, ls, err)
		}
		if p >= proto.V1_19 && (len(ls.Properties) != 1 || ls.Properties[0].Signature != "c2ln") {
			t.Errorf("%d: properties %+v", p, ls.Properties)
		}
		if c.v.HasConfiguration() {
			c.until("the end of configuration", func(s seen) bool {
				count(s)
				checkConfig(t, p, s)
				return s.name == proto.FinishConfiguration
			})
		}
		login, err := c.next()
		if err != nil || login.name != proto.JoinGame {
			t.Fatalf("%d: play begins with %s, %v", p, login.name, err)
		}
		if j, err := packet.ParseJoinGame(p, login.body); err != nil || j.Mode != adventure {
			t.Errorf("%d: join game %+v, %v", p, j, err)
		}
		entity := field.NewReader(login.body).I32()
		if other, taken := entities[entity]; taken || entity == 0 {
			t.Errorf("%d: entity id %d, as of %d", p, entity, other)
		}
		entities[entity] = p
		place := c.until("a place", func(s seen) bool { count(s); checkPlay(t, p, s); return s.name == proto.Position })
		if tp, err := packet.ParseTeleport(p, place.body); err != nil || (tp.X != spawnX || tp.Y != spawnY || tp.Z != spawnZ) || p >= proto.V1_9 && tp.ID != 1 {
			t.Errorf("%d: put at %+v, %v", p, tp, err)
		}
		if got[proto.MapChunk] != 49 || got[proto.UpdateHealth] != 1 || got[proto.CustomPayload] != 1 {
			t.Errorf("%d: got %v", p, got)
		}
		list := c.until("the list", func(s seen) bool { return len(c.shown(s)) > 0 })
		if ids := c.shown(list); !slices.Contains(ids, c.id) || len(ids) != len(entities) {
			t.Errorf("%d: shown %d players of %d", p, len(ids), len(entities))
		}
		if line := c.said(); line != "Hello.\nGo away." {
			t.Errorf("%d: welcome %q", p, line)
		}
		drains.Go(func() { c.drain() })
	}
}

// checkConfig parses what it can of a configuration packet to the last byte.
func checkConfig(t *testing.T, p int32, s seen) {
	r := field.NewReader(s.body)
	switch s.name {
	case proto.CustomPayload:
		checkBrand(t, p, s.body)
		return
	case proto.FeatureFlags:
		for range r.Count(1) {
			r.String(100)
		}
	case proto.RegistryData:
		if p < proto.V1_20_5 {
			r.SkipNBT(false)
			break
		}
		name := r.String(100)
		n := r.Count(2)
		if n == 0 {
			t.Errorf("%d: the registry %s is empty", p, name)
		}
		for range n {
			key := r.String(100)
			if !r.Bool() {
				t.Errorf("%d: %s of %s relies on a pack of the client", p, key, name)
				continue
			}
			r.SkipNBT(false)
		}
	case proto.Tags:
		for range r.Count(2) {
			registry := r.String(100)
			for range r.Count(2) {
				tag, n := r.String(100), r.Count(1)
				// What numbers the blocks and items of 26.2 and later have is not known here; their tags are only
				// there.
				unknown := p >= proto.V26_2 && (registry == "minecraft:block" || registry == "minecraft:item")
				if n == 0 && registry != "minecraft:dialog" && !unknown {
					t.Errorf("%d: nothing is %s of %s", p, tag, registry)
				}
				for range n {
					r.VarInt()
				}
			}
		}
	}
	if err := r.End(); err != nil && s.name != proto.FinishConfiguration {
		t.Errorf("%d: %s: %v", p, s.name, err)
	}
}

func checkBrand(t *testing.T, p int32, body []byte) {
	m, err := packet.ParsePluginMessage(body)
	channel := "minecraft:brand"
	if p < proto.V1_13 {
		channel = "MC|Brand"
	}
	if brand, err2 := packet.ParseBrand(m.Data); err != nil || err2 != nil || m.Channel != channel || brand != "Earshot" {
		t.Errorf("%d: brand %q on %q, %v, %v", p, brand, m.Channel, err, err2)
	}
}

func checkPlay(t *testing.T, p int32, s seen) {
	switch s.name {
	case proto.CustomPayload:
		checkBrand(t, p, s.body)
	case proto.GameStateChange:
		if g, err := packet.ParseGameStateChange(s.body); err != nil || g.Reason != 13 {
			t.Errorf("%d: game state %+v, %v", p, g, err)
		}
	case proto.MapChunk:
		r := field.NewReader(s.body)
		if x, z := r.I32(), r.I32(); x < -3 || x > 3 || z < -3 || z > 3 {
			t.Errorf("%d: chunk %d %d", p, x, z)
		}
	}
}

func TestPlayersSeeAndHearEachOther(t *testing.T) {
	w := start(t, Config{})
	for _, p := range Protocols() {
		name := fmt.Sprint("A", p)
		a, b := enter(t, w, p, name), enter(t, w, proto.Max, "B")
		a.until("B", func(s seen) bool { return slices.Contains(a.shown(s), b.id) })
		b.until(name, func(s seen) bool { return slices.Contains(b.shown(s), a.id) })
		a.say("/nothing")
		a.say("tea? §cnow\a")
		for _, c := range []*client{a, b} {
			if line, want := c.said(), "<"+name+"> tea? now"; line != want {
				t.Errorf("%d: %s reads %q, want %q", p, c.name, line, want)
			}
		}
		b.conn.Close()
		a.until("B to go", func(s seen) bool { return slices.Contains(a.hidden(s), b.id) })
		a.conn.Close()
	}
}

func TestBodies(t *testing.T) {
	w := start(t, Config{})
	for _, p := range Protocols() {
		name := fmt.Sprint("A", p)
		b := enter(t, w, proto.Max, "B")
		a := enter(t, w, p, name)
		entityA, entityB := a.player(w).entity, b.player(w).entity
		appears := func(c *client, of int32) {
			t.Helper()
			c.until("a body", func(s seen) bool {
				if s.name != proto.NamedEntitySpawn && s.name != proto.SpawnEntity {
					return false
				}
				e, err := packet.ParseSpawn(c.v.Protocol, s.name, s.body)
				if err != nil || e.ID != of || e.X != spawnX || e.Y != spawnY || e.Z != spawnZ {
					t.Errorf("%d: sees %+v, %v; want %d", c.v.Protocol, e, err, of)
				}
				return true
			})
		}
		appears(a, entityB)
		appears(b, entityA)
		b.send(proto.PositionLook, append(field.AppendF32(field.AppendF32(field.AppendF64(field.AppendF64(field.AppendF64(nil, 10.5), 70), -3), 90), 0), 1))
		a.until("a step", func(s seen) bool {
			if s.name != proto.EntityTeleport && s.name != proto.SyncEntityPosition {
				return false
			}
			m, err := packet.ParseEntityMove(p, s.name, s.body)
			if err != nil || m.ID != entityB || m.X != 10.5 || m.Y != 70 || m.Z != -3 {
				t.Errorf("%d: moved %+v, %v", p, m, err)
			}
			return true
		})
		a.until("a turn of the head", func(s seen) bool {
			r := field.NewReader(s.body)
			if s.name != proto.EntityHeadRotation {
				return false
			}
			if id, yaw := r.VarInt(), r.U8(); id != entityB || yaw != 64 || r.End() != nil {
				t.Errorf("%d: %d turned to %d, %v", p, id, yaw, r.End())
			}
			return true
		})
		b.conn.Close()
		a.until("the body to vanish", func(s seen) bool {
			if s.name != proto.EntityDestroy && s.name != proto.DestroyEntity {
				return false
			}
			ids, err := packet.ParseDestroyed(nil, s.name, s.body)
			if err != nil || !slices.Equal(ids, []int32{entityB}) {
				t.Errorf("%d: %v vanished, %v", p, ids, err)
			}
			return true
		})
		a.conn.Close()
		w.mu.Lock()
		for len(w.players) > 0 { // until the world has noticed
			w.mu.Unlock()
			runtime.Gosched()
			w.mu.Lock()
		}
		if w.bodies != 0 {
			t.Errorf("%d: %d bodies remain", p, w.bodies)
		}
		w.mu.Unlock()
	}
}

// However often a player moves, the others are told ten times a second, and of the last step in any case.
func TestStepsAreRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, Config{})
		a, b := enter(t, w, proto.Max, "A"), enter(t, w, proto.Max, "B")
		var steps []float64
		var reader sync.WaitGroup
		reader.Go(func() {
			for {
				s, err := a.next()
				if err != nil {
					return
				}
				if s.name == proto.SyncEntityPosition {
					m, err := packet.ParseEntityMove(proto.Max, s.name, s.body)
					if err != nil {
						t.Error(err)
					}
					steps = append(steps, m.X)
				}
			}
		})
		reader.Go(func() { b.drain() })
		for i := range 101 { // two seconds
			b.move(float64(i)/10, 70, 0)
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Second)
		w.Close()
		reader.Wait()
		if n := len(steps); n < 20 || n > 22 || steps[n-1] != 10 {
			t.Errorf("told of %d steps: %v", n, steps)
		}
	})
}

// Only so many have a body, and one that is left is taken over.
func TestBodiesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, Config{})
		var all []*client
		var drains sync.WaitGroup
		for i := range maxBodies + 2 {
			c := enter(t, w, proto.V1_17, fmt.Sprint("N", i))
			all = append(all, c)
			drains.Go(func() { c.drain() })
		}
		synctest.Wait()
		with := func() (n int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, p := range w.players {
				if p.body {
					n++
				}
			}
			return n
		}
		if n := with(); n != maxBodies {
			t.Errorf("%d of %d have bodies", n, len(all))
		}
		all[0].conn.Close()
		all[1].conn.Close()
		synctest.Wait()
		if n := with(); n != maxBodies {
			t.Errorf("%d have bodies after two of %d left", n, len(all))
		}
		all[2].conn.Close()
		synctest.Wait()
		if n := with(); n != maxBodies-1 {
			t.Errorf("%d of %d have bodies", n, maxBodies-1)
		}
		w.Close()
		drains.Wait()
	})
}

func TestNonsensePlacesAreNotShown(t *testing.T) {
	for _, m := range []packet.Move{
		{HasPlace: true, X: math.NaN()}, {HasPlace: true, Y: math.Inf(1)}, {HasPlace: true, Z: -1e300},
		{HasLook: true, Yaw: float32(math.NaN())}, {HasLook: true, Pitch: float32(math.Inf(-1))}, {HasLook: true, Yaw: 1e30},
	} {
		if at := spawnPose; at.update(m) {
			t.Errorf("%+v is shown", m)
		}
	}
	if at := spawnPose; !at.update(packet.Move{HasLook: true, Yaw: -90}) || at.y != spawnY || angle(at.yaw) != 192 {
		t.Errorf("looking about leads to %+v", at)
	}
}

func TestFallingEndsAtSpawn(t *testing.T) {
	w := start(t, Config{})
	for _, p := range Protocols() {
		c := enter(t, w, p, fmt.Sprint("F", p))
		expect := func(id int32) {
			t.Helper()
			s := c.until("rescue", func(s seen) bool { return s.name == proto.Position })
			if tp, err := packet.ParseTeleport(p, s.body); err != nil || tp.Y != spawnY || tp.X != spawnX || p >= proto.V1_9 && tp.ID != id {
				t.Errorf("%d: rescued to %+v, %v; want id %d", p, tp, err, id)
			}
		}
		c.move(8, 70, 8)
		c.move(8, 0, 8)
		c.move(8, -0.1, 8)
		c.move(8, -1, 8) // still falling: not once more
		expect(2)
		c.move(8, 70, 8)
		c.move(70, 70, 8) // over the edge of the last chunk
		expect(3)
		c.move(8, 70, 8)
		c.move(8, 70, -50)
		expect(4)
		c.conn.Close()
	}
}

func TestRefusals(t *testing.T) {
	w := start(t, Config{})
	hello := func(h packet.Handshake) (reason string, err error) {
		conn, err := w.Dial(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		out := frame.NewWriter(conn)
		in := frame.NewReader(conn, frame.Limits{})
		defer in.Release()
		out.Packet(0, packet.AppendHandshake(nil, h))
		go out.Packet(0, packet.AppendLoginStart(nil, proto.Max, packet.LoginStart{Name: "x"}))
		f, err := in.Next()
		if err != nil {
			return "", err
		}
		body, _ := in.Body(f)
		text, err := packet.ParseDisconnect(proto.Max, proto.Login, body)
		if f.ID != 0 || err != nil {
			t.Errorf("answer %d %v", f.ID, err)
		}
		if _, err := in.Next(); err == nil {
			t.Error("the connection goes on")
		}
		return text.String(), nil
	}
	good := hostOf(uuid.New())
	for _, c := range []struct {
		h    packet.Handshake
		want string
	}{
		{packet.Handshake{Protocol: 5, Host: good, Intent: 2}, "(protocol 5). It works with 1.8 to 26.3"},
		{packet.Handshake{Protocol: 9999, Host: good, Intent: 3}, "(protocol 9999)"},
		{packet.Handshake{Protocol: proto.Max, Host: "play.example", Intent: 2}, "through its proxy"},
		{packet.Handshake{Protocol: proto.Max, Host: "h\x00a\x00nonsense", Intent: 2}, "through its proxy"},
		{packet.Handshake{Protocol: proto.Max, Host: good + "{", Intent: 2}, "through its proxy"},
	} {
		if got, err := hello(c.h); err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, %v, want %q", c.h, got, err, c.want)
		}
	}
	if got, err := hello(packet.Handshake{Protocol: proto.Max, Host: good, Intent: 1}); err == nil {
		t.Errorf("a status request is answered with %q", got)
	}
}

func TestJoiningTwice(t *testing.T) {
	w := start(t, Config{})
	first := enter(t, w, proto.Max, "Twin")
	other := enter(t, w, proto.V1_8, "Other")
	ended := make(chan string)
	go func() {
		reason, _ := first.drain()
		ended <- reason
	}()
	second := enter(t, w, proto.V1_16, "Twin")
	if reason := <-ended; !strings.Contains(reason, "duplicate_login") {
		t.Errorf("first left with %q", reason)
	}
	// The end of the first must not take the second off the list.
	second.say("me")
	changes := []bool{}
	for {
		s, err := other.next()
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(other.shown(s), second.id) {
			changes = append(changes, true)
		} else if slices.Contains(other.hidden(s), second.id) {
			changes = append(changes, false)
		}
		if s.name == proto.Chat {
			break
		}
	}
	if !slices.Equal(changes, []bool{true, false, true}) {
		t.Errorf("the list changed as %v", changes)
	}
}

func TestKeepAlive(t *testing.T) {
	for _, p := range []int32{proto.V1_8, proto.V1_12_2, proto.Max} {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, Config{})
			c := enter(t, w, p, "Alive")
			ended := make(chan string, 1)
			began := time.Now()
			stop := began.Add(5 * time.Minute)
			go func() {
				for {
					s, err := c.next()
					switch {
					case err != nil:
						ended <- ""
						return
					case s.name == proto.KeepAlive && time.Now().Before(stop):
						c.send(proto.KeepAlive, s.body)
					case s.name == proto.KeepAlive && time.Now().Before(stop.Add(15*time.Second)):
						c.send(proto.KeepAlive, packet.AppendKeepAlive(nil, p, 12345)) // not what was asked
					case s.name == proto.Disconnect:
						text, _ := packet.ParseDisconnect(p, proto.Play, s.body)
						ended <- text.String()
						return
					}
				}
			}()
			if reason := <-ended; reason != "disconnect.timeout" {
				t.Errorf("%d: ended with %q", p, reason)
			}
			if d := time.Since(stop); d < 20*time.Second || d > 45*time.Second {
				t.Errorf("%d: thrown out %v after the last answer", p, d)
			}
		})
	}
}

// A player who takes nothing is thrown out, and nobody else waits for that.
func TestStalledPlayer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, Config{})
		stalled := enter(t, w, proto.Max, "Stalled")
		lively := enter(t, w, proto.Max, "Lively")
		began := time.Now()
		gone := make(chan time.Duration)
		go func() {
			for {
				s, err := lively.next()
				if err != nil {
					return
				}
				if s.name == proto.KeepAlive {
					lively.send(proto.KeepAlive, s.body)
				}
				if slices.Contains(lively.hidden(s), stalled.id) {
					gone <- time.Since(began)
				}
			}
		}()
		if d := <-gone; d < writeWithin || d > 2*writeWithin {
			t.Errorf("gone after %v", d)
		}
	})
}

func TestOutboxOverflow(t *testing.T) {
	w := start(t, Config{})
	stalled := enter(t, w, proto.Max, "Stalled")
	p := stalled.player(w)
	line := appendSay(nil, p.version, packet.Plain(strings.Repeat("x", 4000)))
	for range 2 * outboxLimit / len(line) {
		p.out.send(line)
	}
	p.out.mu.Lock()
	full, waiting := p.out.full, len(p.out.runs)
	p.out.mu.Unlock()
	if !full || waiting > 0 {
		t.Errorf("full %v with %d runs", full, waiting)
	}
	if _, err := stalled.drain(); err == nil {
		t.Error("goes on")
	}
}

func TestNobodyLingersInLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, Config{})
		silent, err := w.Dial(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		half := dial(t, w, proto.Max, "Half")
		half.in.Next() // login success, never acknowledged
		began := time.Now()
		for _, c := range []net.Conn{silent, half.conn} {
			if _, err := io.Copy(io.Discard, c); err != nil {
				t.Error(err)
			}
		}
		if d := time.Since(began); d != joinWithin {
			t.Errorf("ended after %v", d)
		}
	})
}

func TestClose(t *testing.T) {
	w := New(Config{})
	var all sync.WaitGroup
	for i, p := range []int32{proto.V1_8, proto.V1_20_2, proto.Max} {
		c := enter(t, w, p, fmt.Sprint("C", i))
		all.Go(func() {
			if reason, _ := c.drain(); !strings.Contains(reason, "server_shutdown") && !strings.Contains(reason, "Server closed") {
				t.Errorf("%d: left with %q", p, reason)
			}
		})
	}
	stalled := enter(t, w, proto.Max, "Stalled") // takes its whole goodbye time
	half, err := w.Dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w.Close()
	if d := time.Since(began); d > 3*goodbyeWithin {
		t.Errorf("close took %v", d)
	}
	all.Wait()
	for _, c := range []net.Conn{stalled.conn, half} {
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.Dial(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("dial after close: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error("second close:", err)
	}
}

func TestDialWithEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := start(t, Config{}).Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestChatIsRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, Config{})
		c := enter(t, w, proto.Max, "Loud")
		lines := make(chan string, 100)
		go func() {
			defer close(lines)
			for {
				s, err := c.next()
				if err != nil {
					return
				}
				if s.name == proto.SystemChat {
					lines <- s.name.String()
				}
			}
		}()
		for range 50 {
			c.say("x")
		}
		synctest.Wait()
		if n := len(lines); n != linesAtOnce {
			t.Errorf("%d of 50 lines came through at once", n)
		}
		time.Sleep(time.Second)
		for range 50 {
			c.say("y")
		}
		synctest.Wait()
		if n := len(lines); n != linesAtOnce+linesPerSecond {
			t.Errorf("%d lines a second later", n)
		}
		c.conn.Close()
	})
}

// Several hundred players: each sees all others, a line reaches all, and the world costs what its protocols cost.
func TestCrowd(t *testing.T) {
	const crowd = 300
	w := start(t, Config{})
	all := Protocols()
	for _, p := range all {
		worlds()[p].open() // not counted below
	}
	before := heap()
	var joined, heard, left sync.WaitGroup
	for i := range crowd {
		joined.Add(1)
		heard.Add(1)
		c := dial(t, w, all[i%len(all)], fmt.Sprint("N", i))
		left.Go(func() {
			known := map[uuid.UUID]bool{}
			for {
				s, err := c.next()
				if err != nil {
					return
				}
				n := len(known)
				for _, id := range c.shown(s) {
					known[id] = true
				}
				if n < crowd && len(known) == crowd {
					joined.Done()
				}
				if s.name == proto.SystemChat || s.name == proto.Chat {
					heard.Done()
				}
			}
		})
	}
	joined.Wait()
	each := (heap() - before) / crowd
	t.Logf("%d bytes of heap a player, client included", each)
	if each > 100_000 {
		t.Errorf("%d bytes of heap a player", each)
	}
	w.say(packet.Plain("all"))
	heard.Wait()
	w.Close()
	left.Wait()
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Whatever a client sends, the connection ends and the World goes on.
func FuzzServe(f *testing.F) {
	for _, p := range []int32{47, 340, 758, 759, 764, 775} {
		hello := field.AppendBytes(nil, append([]byte{0}, packet.AppendHandshake(nil, packet.Handshake{Protocol: p, Host: hostOf(uuid.Nil), Intent: 2})...))
		hello = field.AppendBytes(hello, append([]byte{0}, packet.AppendLoginStart(nil, p, packet.LoginStart{Name: "Fuzz"})...))
		f.Add(hello)
		f.Add(append(hello, 1, 3, 1, 3, 5, 6, 2, 'h', 'i'))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, sent []byte) {
		w := New(Config{})
		c, err := w.Dial(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var reader sync.WaitGroup
		reader.Go(func() { io.Copy(io.Discard, c) })
		c.Write(sent)
		c.Close()
		w.Close()
		reader.Wait()
	})
}

func FuzzForwarded(f *testing.F) {
	f.Add(hostOf(uuid.Nil))
	f.Add("a\x00b\x00" + uuid.Nil.String())
	f.Add("play.example")
	f.Add("a\x00b\x00" + uuid.Nil.String() + "\x00[{}")
	f.Fuzz(func(t *testing.T, host string) {
		id, properties, err := forwarded(host)
		if err != nil && len(properties) > 0 && id == uuid.Nil {
			t.Errorf("%q: properties of nobody", host)
		}
	})
}

func BenchmarkJoin(b *testing.B) {
	for _, p := range []int32{proto.V1_8, proto.V1_16_2, proto.Max} {
		b.Run(fmt.Sprint(p), func(b *testing.B) {
			w := start(b, Config{})
			b.ReportAllocs()
			for b.Loop() {
				c := enter(b, w, p, "Bench")
				c.conn.Close()
			}
		})
	}
}
