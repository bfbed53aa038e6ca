package itest

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/proxy/limbo"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
)

// TestLimboWithBots lets real players into the built-in world, without a proxy between: they land on its floor, walk,
// fall into the void and out of it, see each other and chat.
func TestLimboWithBots(t *testing.T) {
	versions, long := peer.Core, long()
	if long {
		versions = peer.Versions
	}
	for i, v := range versions {
		alongside(t, v.Name, func(t *testing.T) {
			limboBots(t, v, long || i == 0 || i == len(versions)-1)
			if long || i%4 == 0 || i == len(versions)-1 {
				limboBodies(t, v)
			}
		})
	}
}

func limboBots(t *testing.T, v peer.Version, fall bool) {
	const welcome = "welcome to the floor"
	w := limbo.New(limbo.Config{Welcome: packet.Plain(welcome)})
	addr := serveLimbo(t, w)
	crowd := peer.NewBots(t, v.Name)
	ids := map[string]string{}
	join := func(name string) *peer.Bot {
		id := uuid.NewMD5(uuid.NameSpaceOID, []byte(name)).String()
		ids[name] = id
		b := crowd.DialAs(addr, name, "localhost\x00127.0.0.1\x00"+strings.ReplaceAll(id, "-", "")+"\x00[]")
		b.Spawned()
		b.Await("chat", saying(welcome))
		return b
	}
	ann, bob := join("Ann"), join("Bob")
	for _, pair := range [][2]*peer.Bot{{ann, bob}, {bob, ann}} {
		if e := pair[0].Await("listed", saying(pair[1].Name)); e.UUID != ids[pair[1].Name] {
			t.Errorf("%s is listed as %s", pair[1].Name, e.UUID)
		}
	}

	if e := ann.Goto(12, 3); e.Y != 70 || math.Hypot(e.X-12, e.Z-3) > 1 {
		t.Errorf("Ann walked to %v %v %v", e.X, e.Y, e.Z)
	}
	if e := ann.Where(); e.Mode != "adventure" {
		t.Errorf("Ann plays in mode %v", e.Mode)
	}
	ann.Chat("is anybody here?")
	for _, b := range []*peer.Bot{ann, bob} {
		b.Await("chat", saying("<Ann> is anybody here?"))
	}

	if fall { // east for 11 seconds: 40 blocks to the edge, down to 0 and back; long enough for a keep-alive
		ann.Look(-90, 0)
		ann.Skip("moved")
		ann.Walk(220)
		ann.Await("pos", func(e peer.Event) bool { return e.Y < 20 })
		ann.Await("moved", func(e peer.Event) bool { return e.Y == 70 })
		if e := ann.Goto(12, 3); e.Y != 70 {
			t.Errorf("after the rescue Ann stands at %v %v %v", e.X, e.Y, e.Z)
		}
	}

	bob.Quit()
	ann.Await("unlisted", saying("Bob"))
	w.Close()
	ann.Await("kicked", func(e peer.Event) bool {
		return strings.Contains(e.Text, "server_shutdown") || e.Text == "Server closed"
	})
}

// limboBodies: a raw client sees another one appear, walk and vanish.
func limboBodies(t *testing.T, v peer.Version) {
	addr := serveLimbo(t, limbo.New(limbo.Config{}))
	crowd := peer.NewRaw(t, v.Name)
	join := func(name string) (*peer.Raw, string) {
		id := uuid.NewMD5(uuid.NameSpaceOID, []byte(name)).String()
		r := crowd.Dial(addr, peer.Login{Name: name, Host: "localhost\x00127.0.0.1\x00" + id + "\x00[]"})
		r.Await("moved", nil)
		return r, id
	}
	type entity struct {
		EntityID   int32 `json:"entityId"`
		PlayerUUID string
		ObjectUUID string
		X, Y, Z    float64
	}
	see := func(r *peer.Raw, packets ...string) (e entity) {
		p := r.Await("packet", func(e peer.Event) bool { return slices.Contains(packets, e.Packet) })
		if err := json.Unmarshal(p.Params, &e); err != nil {
			t.Errorf("%s: %v", p.Params, err)
		}
		if v.Protocol < proto.V1_9 {
			e.X, e.Y, e.Z = e.X/32, e.Y/32, e.Z/32
		}
		return e
	}
	ann, _ := join("Ann")
	ann.Watch("named_entity_spawn", "spawn_entity", "entity_teleport", "sync_entity_position", "entity_destroy", "destroy_entity")
	bob, id := join("Bob")
	body := see(ann, "named_entity_spawn", "spawn_entity")
	if body.PlayerUUID+body.ObjectUUID != id || body.X != 8 || body.Y != 70 || body.Z != 8 {
		t.Errorf("%+v appears, want %s at 8 70 8", body, id)
	}
	bob.Move(9.5, 70, 4)
	to := see(ann, "entity_teleport", "sync_entity_position")
	if to.X == 8 { // its answer to being put there
		to = see(ann, "entity_teleport", "sync_entity_position")
	}
	if to.EntityID != body.EntityID || to.X != 9.5 || to.Y != 70 || to.Z != 4 {
		t.Errorf("%+v moves to %+v, want 9.5 70 4", body, to)
	}
	bob.Vanish()
	see(ann, "entity_destroy", "destroy_entity")
}

func saying(text string) func(peer.Event) bool {
	return func(e peer.Event) bool { return e.Text == text }
}

// serveLimbo opens a port to the world, as a proxy's backend code would reach it.
func serveLimbo(t *testing.T, w *limbo.World) (addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			out, err := ln.Accept()
			if err != nil {
				return
			}
			in, err := w.Dial(context.Background())
			if err != nil {
				out.Close()
				continue
			}
			// A player who is told why it ends may be talking still: with that unread, closing would take the reason
			// back.
			tasks.Go(func() {
				defer out.Close()
				io.Copy(in, out)
				in.Close()
				io.Copy(io.Discard, out)
			})
			tasks.Go(func() {
				io.Copy(out, in)
				out.(*net.TCPConn).CloseWrite()
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		w.Close()
		tasks.Wait()
	})
	return ln.Addr().String()
}

// TestLimboIsGenerated: what is checked in is what the generator makes of the packages that are installed.
func TestLimboIsGenerated(t *testing.T) {
	versions := []string{"1.8", "1.16.2", "26.1", "26.2", "26.3"}
	if long() {
		versions = nil // all of them take half a minute
	}
	args := append([]string{"../proxy/limbo/gen/generate.js", "--check"}, versions...)
	if out, err := exec.Command("node", args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLimboTexts: players in the built-in world read a text that is for players; how to send them elsewhere is told to
// whoever may reload, and to everybody while there are no servers. A text of the settings takes the place of ours.
func TestLimboTexts(t *testing.T) {
	const settings = "online: false\ntry: [limbo]\npermissions: {players: {Mod: {nodes: [earshot.command.earshot.reload]}}}\n"
	const room, hint = "You are in the waiting room of this network. /server shows where you can go.", "name them under servers and try in earshot.yml."
	bots := peer.NewBots(t, "1.21.4")
	p := start(t, settings+"servers: {game: '127.0.0.1:1'}\n")
	reads := func(name string, want ...string) {
		t.Helper()
		bot := bots.Join(p.addr, name)
		var got []string
		bot.Chat("/ping") // answered after all that was said at the join
		bot.Await("chat", func(e peer.Event) bool {
			if strings.Contains(e.Text, "ping") {
				return true
			}
			got = append(got, e.Text)
			return false
		})
		fits := len(got) == len(want)
		for i := 0; fits && i < len(want); i++ {
			fits = strings.Contains(got[i], want[i])
		}
		if !fits {
			t.Errorf("%s reads %q, want %q", name, got, want)
		}
		bot.Quit()
	}
	reads("Ann", room)
	reads("Mod", room, hint)
	p.write(settings)
	p.says(1, "the configuration was read again")
	reads("Bob", hint)
	reads("Mod", hint)
	p.write(settings + "limbo: {message: 'to the <red>floor'}\n")
	p.says(2, "the configuration was read again")
	reads("Cleo", "to the floor")
	reads("Mod", "to the floor", hint)
	p.write(settings + "limbo: {message: off}\n")
	p.says(3, "the configuration was read again")
	reads("Dan")
	reads("Mod")
}
