package itest

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/bridge/track"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/proxy"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/google/uuid"
)

// TestBridge lets real players do everything that changes where they are and whom they see, and compares what the
// bridge makes of their packets with what the players and the server say themselves.
func TestBridge(t *testing.T) {
	versions := []string{"1.8.8", "1.12.2", "1.16.5", "1.19.4", "1.20.4", "1.21.4", "26.1", "26.2", "26.3"}
	if long() {
		versions = versions[:0]
		for _, v := range peer.Versions {
			versions = append(versions, v.Name)
		}
	}
	for _, version := range versions {
		alongside(t, version, func(t *testing.T) { bridgeAlong(t, version) })
	}
}

const (
	bridgeOverworld = "minecraft:overworld"
	bridgeNether    = "minecraft:the_nether"
)

func bridgeAlong(t *testing.T, version string) {
	server := peer.Backend(t, version, peer.Legacy, "")
	b := newBridgeServer(t, true, backend.Server{Name: "lobby", Address: server.Addr, Forwarding: backend.Legacy})
	crowd := peer.NewBots(t, version)
	annBot, bobBot := crowd.Join(b.addr, "Ann"), crowd.Join(b.addr, "Bob")
	ann, bob := b.player(server, annBot.Name), b.player(server, bobBot.Name)
	ann.stands(8, 70, 8)
	ann.place("lobby", bridgeOverworld)

	// On foot.
	for _, to := range [][2]float64{{12, 3}, {2, -5}} {
		at := annBot.Goto(to[0], to[1])
		if math.Hypot(at.X-to[0], at.Z-to[1]) > 1 { // a bot on a busy machine stops a little late
			t.Fatalf("the bot went to %v %v", at.X, at.Z)
		}
		ann.follows(annBot)
	}
	annBot.Look(90, 0)
	ann.looks(90)
	annBot.Look(-45, 30)
	ann.looks(-45)
	bob.stands(8, 70, 8) // and nobody else was moved

	// Moved by the server.
	server.Teleport("Ann", 20.5, 70, -10.25, 30, 0)
	ann.stands(20.5, 70, -10.25)
	ann.looks(30)
	server.Teleport("Ann", 2, 70, -3, 15, 0, "x", "z", "yaw")
	ann.stands(22.5, 70, -13.25)
	ann.looks(45)
	annBot.Goto(18, -8)
	ann.follows(annBot)

	// Mode, operator level, sight.
	for _, mode := range []int{3, 1, 2, 0} {
		server.GameMode("Ann", mode)
		ann.has(fmt.Sprint("game mode ", mode), func(f world.Facts) bool { return int(f.Mode) == mode })
	}
	for level := range 5 {
		server.Op("Ann", level)
		ann.has(fmt.Sprint("operator level ", level), func(f world.Facts) bool { return int(f.OpLevel) == level })
	}
	ann.sees(bob, true)
	bob.sees(ann, true)
	server.Hide("Ann", "Bob")
	ann.sees(bob, false)
	bob.sees(ann, true)
	server.Show("Ann", "Bob")
	ann.sees(bob, true)

	// Death, and other worlds.
	server.Kill("Ann", 5, 70, 5)
	server.Await("respawned", "Ann", nil)
	ann.stands(5, 70, 5)
	ann.place("lobby", bridgeOverworld)
	server.Respawn("Ann", bridgeNether, 0, 10, 70, 10)
	ann.place("lobby", bridgeNether)
	ann.stands(10, 70, 10)
	if bob.Facts().Place == ann.Facts().Place {
		t.Error("two worlds are one place")
	}
	server.Respawn("Ann", bridgeOverworld, 0, 8, 70, 8)
	ann.place("lobby", bridgeOverworld)
	ann.stands(8, 70, 8)
	if bob.Facts().Place != ann.Facts().Place {
		t.Error("one world is two places")
	}

	// As a passenger: the bot sends nothing of its place, and leaves with its vehicle.
	ways := []string{peer.Relative, peer.MoveLook, peer.Teleport, peer.Relative}
	if server.Protocol >= 768 {
		ways = append(ways, peer.Sync, peer.Relative, peer.Minecart, peer.Relative)
	}
	for _, kind := range []string{"minecart", "boat"} {
		p := ann.Pose()
		vehicle := server.Vehicle(kind, p.X, p.Y, p.Z)
		other := server.Vehicle(kind, p.X, p.Y, p.Z)
		server.Seat(vehicle, "Ann")
		ann.has("the vehicle", func(f world.Facts) bool { return f.Riding && f.Vehicle == vehicle })
		for i, way := range ways {
			server.Drive(other, peer.Relative, 1, 0, 0)
			to := server.Drive(vehicle, way, 1.25, 0.5*float64(i%2), -0.75)
			ann.stands(to.X, to.Y, to.Z)
		}
		server.Destroy(vehicle)
		ann.has("no vehicle", func(f world.Facts) bool { return !f.Riding && f.Vehicle == 0 })
		server.Destroy(other) // the bot will tell its place: it did not know that it moved
		server.Teleport("Ann", 8, 70, 8, 0, 0)
		ann.stands(8, 70, 8)
	}

	bridgeRaw(t, b, server, version, ann)

	annBot.Quit()
	server.Await("leave", "Ann", nil)
	b.until("Ann to be gone", func() bool { return b.reg.Get(ann.ID) == nil && ann.Pose() == nil })
	bob.sees(ann, false)
	b.understood()
}

// bridgeRaw has a client that sends exactly what it is told, for what mineflayer does not do: drive a vehicle, get off
// it, and wait in a configuration phase.
func bridgeRaw(t *testing.T, b *bridgeServer, server *peer.Server, version string, ann bridgePlayer) {
	client := peer.NewRaw(t, version).Join(b.addr, "Cid")
	cid := b.player(server, "Cid")
	cid.stands(8, 70, 8)
	client.MoveLook(3, 71, 4, 120, 0)
	cid.stands(3, 71, 4)
	cid.looks(120)

	boat := server.Vehicle("boat", 3, 71, 4)
	server.Seat(boat, "Cid", "Ann")
	cid.has("the boat", func(f world.Facts) bool { return f.Riding && f.Vehicle == boat })
	ann.has("the boat", func(f world.Facts) bool { return f.Riding && f.Vehicle == boat })
	if server.Protocol >= proto.V1_9 {
		for i := range 5 {
			x := 5 + float64(i)
			client.MoveVehicle(x, 71, 4)
			cid.stands(x, 71, 4)
			server.Drive(boat, peer.Relative, 1, 0, 0) // the server's word for what the driver did
		}
		server.Await("vehicle", "Cid", nil)
		cid.stands(9, 71, 4)
		server.CorrectVehicle("Cid", 6, 71, 4)
		cid.stands(6, 71, 4)
	} else {
		to := server.Drive(boat, peer.Relative, 1, 0, 0)
		cid.stands(to.X, to.Y, to.Z)
	}
	client.Look(-30, 0)
	cid.looks(-30)

	server.Seat(boat)
	for _, p := range []bridgePlayer{cid, ann} {
		p.has("no vehicle", func(f world.Facts) bool { return !f.Riding && f.Vehicle == 0 })
	}
	client.Move(1, 72, 1)
	cid.stands(1, 72, 1)
	server.Drive(boat, peer.Relative, 1, 0, 0)
	client.Look(10, 0)
	cid.looks(10)
	cid.stands(1, 72, 1)
	server.Destroy(boat)

	boat, other := server.Vehicle("boat", 1, 72, 1), server.Vehicle("boat", 1, 72, 1)
	server.Seat(boat, "Cid")
	cid.has("the boat", func(f world.Facts) bool { return f.Riding && f.Vehicle == boat })
	to := server.Drive(boat, peer.Relative, 1.25, 0.5, 0)
	cid.stands(to.X, to.Y, to.Z)
	server.Destroy(boat)
	cid.has("no vehicle", func(f world.Facts) bool { return !f.Riding && f.Vehicle == 0 })
	server.Drive(other, peer.Relative, 1, 0, 0)
	client.Look(20, 0) // comes after all of it
	cid.looks(20)
	cid.stands(to.X, to.Y, to.Z)
	server.Destroy(other)

	if server.Protocol < proto.V1_20_2 {
		return
	}
	cid.sees(ann, true)
	server.Reconfigure("Cid", true)
	server.Await("reconfiguring", "Cid", nil)
	cid.has("no place in configuration", func(f world.Facts) bool { return f == world.Facts{} })
	if p := cid.Pose(); p != nil {
		t.Errorf("a player in configuration stands at %+v", p)
	}
	cid.sees(ann, false)
	server.Finish("Cid")
	server.Await("join", "Cid", nil)
	cid.stands(8, 70, 8)
	cid.place("lobby", bridgeOverworld)
	cid.sees(ann, true)
}

// bridgeServer is a proxy with nothing but the bridge at it, and without tap not even that.
type bridgeServer struct {
	t        testing.TB
	addr     string
	reg      *world.Registry
	failures track.Failures
}

func newBridgeServer(t testing.TB, tap bool, servers ...backend.Server) *bridgeServer {
	t.Helper()
	b := &bridgeServer{t: t, reg: world.New()}
	b.failures.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	var settings proxy.Settings
	settings.Servers = servers
	settings.Threshold = 256
	for _, s := range servers {
		settings.Try = append(settings.Try, s.Name)
	}
	var watch session.Watch
	if tap {
		watch = b
	}
	c, err := proxy.Compile(settings)
	if err != nil {
		t.Fatal(err)
	}
	p := proxy.New(c, proxy.Dependencies{Watch: []session.Watch{watch}}, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- p.Serve(ln) }()
	t.Cleanup(func() {
		if err := p.Shutdown(context.Background(), "the test is over"); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if n := len(b.reg.All()); n != 0 {
			t.Errorf("%d players are left in the registry", n)
		}
	})
	return b
}

func (b *bridgeServer) Wants(v *proto.Version, s proto.State, d proto.Dir) []proto.Packet {
	return track.Wants(v, s, d)
}

func (b *bridgeServer) Watch(p session.Player) session.Observer {
	player := b.reg.Add(p.ID(), p.Name())
	tr := track.New(player, b.reg, proto.Lookup(p.Protocol()))
	tr.Failures = &b.failures
	return bridgeTracked{tr, b.reg, player}
}

type bridgeTracked struct {
	*track.Track
	reg    *world.Registry
	player *world.Player
}

func (o bridgeTracked) Close() {
	o.Track.Close()
	o.reg.Remove(o.player)
}

// until waits for a condition. Poses wake nobody, so it looks every few milliseconds.
func (b *bridgeServer) until(what string, done func() bool) {
	b.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(peer.Patience); !done(); <-look.C {
		if time.Now().After(end) {
			b.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// understood fails the test if a packet was not.
func (b *bridgeServer) understood() {
	b.t.Helper()
	b.failures.Each(func(_ int32, p proto.Packet, n uint64) {
		if n > 0 {
			b.t.Errorf("%d packets %v were not understood", n, p)
		}
	})
}

type bridgePlayer struct {
	*world.Player
	b *bridgeServer
}

// player returns who the server says has joined under this name.
func (b *bridgeServer) player(server *peer.Server, name string) bridgePlayer {
	b.t.Helper()
	id, err := uuid.Parse(server.Joined(name).UUID)
	if err != nil {
		b.t.Fatal(err)
	}
	p := b.reg.Get(id)
	if p == nil || p.Name != name {
		b.t.Fatalf("the registry has %v for %s", p, name)
	}
	return bridgePlayer{p, b}
}

func (p bridgePlayer) stands(x, y, z float64) {
	p.b.t.Helper()
	p.until(fmt.Sprintf("%s to stand at %.3f %.3f %.3f", p.Name, x, y, z), func() bool { return p.at(x, y, z) })
}

// follows waits until the player stands where the bot says, which may still be sliding a little.
func (p bridgePlayer) follows(bot *peer.Bot) {
	p.b.t.Helper()
	p.until(p.Name+" to stand where the bot does", func() bool {
		at := bot.Where()
		return p.at(at.X, at.Y, at.Z)
	})
}

func (p bridgePlayer) at(x, y, z float64) bool {
	at := p.Pose()
	return at != nil && math.Abs(at.X-x) < 0.001 && math.Abs(at.Y-y) < 0.001 && math.Abs(at.Z-z) < 0.001
}

func (p bridgePlayer) looks(yaw float64) {
	p.b.t.Helper()
	p.until(fmt.Sprintf("%s to look to %v", p.Name, yaw), func() bool {
		at := p.Pose()
		return at != nil && math.Abs(math.Remainder(float64(at.Yaw)-yaw, 360)) < 0.1
	})
}

func (p bridgePlayer) place(backend, name string) {
	p.b.t.Helper()
	p.has("the place "+backend+"/"+name, func(f world.Facts) bool { return f.Place == p.b.reg.Place(backend, name) })
}

func (p bridgePlayer) has(what string, ok func(world.Facts) bool) {
	p.b.t.Helper()
	p.until(p.Name+" to have "+what, func() bool { return ok(*p.Facts()) })
}

func (p bridgePlayer) sees(other bridgePlayer, want bool) {
	p.b.t.Helper()
	p.until(fmt.Sprintf("%s to see %s: %v", p.Name, other.Name, want), func() bool {
		p.b.reg.Settle(time.Now()) // which voice does with each turn
		return p.Sees(other.Player) == want
	})
}

// until says what is known of the player when the wait is in vain.
func (p bridgePlayer) until(what string, done func() bool) {
	p.b.t.Helper()
	defer func() {
		if p.b.t.Failed() {
			p.b.t.Logf("facts %+v, pose %+v", p.Facts(), p.Pose())
		}
	}()
	p.b.until(what, done)
}
