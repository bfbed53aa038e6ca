package session

import (
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/proxy/proto"
)

// TestSeveralObservers: each sees what it wants, and not what only another one wants; one that panics at the end does
// not keep the end from the others.
func TestSeveralObservers(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	wants := func(in proto.Packet, out ...proto.Packet) func(*proto.Version, proto.State, proto.Dir) []proto.Packet {
		return func(_ *proto.Version, s proto.State, d proto.Dir) []proto.Packet {
			switch {
			case s != proto.Play:
				return nil
			case d == proto.Serverbound:
				return []proto.Packet{in}
			}
			return out
		}
	}
	first := &watch{wants: wants(proto.PositionLook, proto.MapChunk, proto.UpdateHealth), on: func(_ Player, what string) {
		if what == "closed" {
			panic("boom")
		}
	}}
	second := &watch{wants: wants(proto.Position, proto.UpdateHealth)}
	e := newEnv(t, func(c *Config) { c.Watch, c.Log = []Watch{first, nobody{}, second}, nil }, b)
	for range 2 { // the second player goes by what is kept of the version
		c, s := e.play(767, "Steve", b)
		s.send(proto.MapChunk, body(20000, 2))
		s.send(proto.UpdateHealth, body(10, 3))
		c.await(proto.UpdateHealth)
		c.send(proto.Position, body(25, 4))
		c.send(proto.PositionLook, body(33, 5))
		s.await(proto.PositionLook)
		s.conn.Close()
		c.kicked()
		until(t, func() bool {
			return strings.HasSuffix(first.all(), "closed") && strings.HasSuffix(second.all(), "closed")
		},
			"seen %q and %q, want the end of both", func() []any { return []any{first.all(), second.all()} })
	}
	for _, c := range []struct {
		who  *watch
		want string
	}{
		{first, "on lobby; play down map_chunk 20000; play down update_health 10; play up position_look 33; closed"},
		{second, "on lobby; play down update_health 10; play up position 25; closed"},
	} {
		if got, want := c.who.all(), c.want+"; "+c.want; got != want {
			t.Errorf("seen %q, want %q", got, want)
		}
	}
}

// nobody is a Watch that has an Observer for no player.
type nobody struct{}

func (nobody) Wants(*proto.Version, proto.State, proto.Dir) []proto.Packet {
	return []proto.Packet{proto.MapChunk}
}
func (nobody) Watch(Player) Observer { return nil }

// TestSeveralOwnersOfChannels: a message goes to who owns its channel, the first of two, and everything else to all;
// what none owns crosses the proxy.
func TestSeveralOwnersOfChannels(t *testing.T) {
	first, second := &recorder{}, &recorder{prefix: "other:"}
	third := &recorder{prefix: "other:up"}
	b := newBackend(t, "lobby", nil)
	e := newEnv(t, func(c *Config) { c.Channels = []Channels{first, second, third} }, b)
	c, s := e.play(767, "Steve", b)
	c.send(proto.CustomPayload, message("socketsvc:hello", "one"))
	c.send(proto.CustomPayload, message("other:up", "two"))
	c.send(proto.CustomPayload, message("minecraft:register", "third:x"))
	c.send(proto.CustomPayload, message("third:x", "three"))
	for {
		if got := string(s.await(proto.CustomPayload)); strings.HasSuffix(got, "three") {
			break
		} else if strings.Contains(got, "one") || strings.Contains(got, "two") {
			t.Errorf("the server got %q", got)
		}
	}
	c.conn.Close()
	for r, says := range map[*recorder]string{first: "Steve says one on socketsvc:hello; ", second: "Steve says two on other:up; ", third: ""} {
		r.heardUntil(t, "leaves")
		if want := "Steve joins; " + says + "Steve registers third:x; Steve leaves"; r.all() != want {
			t.Errorf("heard %q, want %q", r.all(), want)
		}
	}
}
