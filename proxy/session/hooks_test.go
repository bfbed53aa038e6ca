package session

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// hooks is Hooks and Hook of one player, and writes down what it is asked.
type hooks struct {
	answer map[string]Answer // by body
	mu     sync.Mutex
	calls  []string

	commands []byte
}

func (h *hooks) Wants(v *proto.Version, d proto.Dir) []proto.Packet {
	if d == proto.Clientbound {
		return []proto.Packet{proto.TabComplete}
	}
	return []proto.Packet{proto.TabComplete}
}
func (h *hooks) Hook(Player) Hook { return h }
func (h *hooks) note(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, what)
}
func (h *hooks) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.calls, "; ")
}
func (h *hooks) Serverbound(p proto.Packet, body []byte) Answer {
	h.note(fmt.Sprintf("up %v %s", p, body))
	return h.answer[string(body)]
}
func (h *hooks) Clientbound(p proto.Packet, body []byte) []byte {
	if string(body) == "change" {
		return []byte("changed")
	}
	return nil
}
func (h *hooks) Announce() []byte {
	h.note("announce")
	return h.commands
}
func (h *hooks) Reset() { h.note("reset") }
func (h *hooks) Close() { h.note("close") }

// TestHooks: each answer is done to the packet it is about, in order, in every era; and the hook hears when what
// belonged to a backend is over.
func TestHooks(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		gone := packet.Plain("out with you")
		h := &hooks{answer: map[string]Answer{
			"drop": {Drop: true}, "ack": {Ack: []byte("seen")}, "reply": {Reply: []byte("answer")}, "kick": {Kick: &gone}, "flood": {Kick: &gone, Flood: true},
		}}
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, func(c *Config) { c.Hooks = h }, a, b)
		c, s := e.settle(protocol, a)
		_, acks := c.v.ID(proto.Play, proto.Serverbound, proto.MessageAcknowledgement)
		for _, x := range []string{"drop", "pass", "reply", "ack", "pass"} {
			c.send(proto.TabComplete, []byte(x))
		}
		for _, want := range []string{"pass", "seen", "pass"} {
			q := proto.TabComplete
			if want == "seen" {
				if !acks {
					continue
				}
				q = proto.MessageAcknowledgement
			}
			if got := s.expect(q); string(got) != want {
				t.Errorf("the backend got %q, want %q", got, want)
			}
		}
		if got := c.expect(proto.TabComplete); string(got) != "answer" {
			t.Errorf("the client got %q", got)
		}
		for sent, want := range map[string]string{"change": "changed", "leave": "leave"} {
			s.send(proto.TabComplete, []byte(sent))
			if got := c.expect(proto.TabComplete); string(got) != want {
				t.Errorf("%q came as %q", sent, got)
			}
		}
		if _, ok := c.v.ID(proto.Play, proto.Clientbound, proto.DeclareCommands); ok {
			h.commands = []byte("commands")
			e.core.Announce()
			if got := c.expect(proto.DeclareCommands); string(got) != "commands" {
				t.Errorf("told of %q", got)
			}
		} else {
			h.note("announce")
		}
		if err := e.player().Connect("b"); err != nil {
			t.Fatal(err)
		}
		c.moved(b)
		c.send(proto.TabComplete, []byte("kick"))
		if got := c.kicked(); got != gone.String() {
			t.Errorf("told %q", got)
		}
		e.ended(EndDisconnected, 1)
		heard := h.all()
		c, _ = e.settle(protocol, a)
		c.send(proto.TabComplete, []byte("flood"))
		if got := c.kicked(); got != gone.String() {
			t.Errorf("told %q", got)
		}
		e.ended(EndFlood, 1)
		tab := proto.TabComplete.String()
		want := "reset; up T drop; up T pass; up T reply; up T ack; up T pass; announce; reset; up T kick; close"
		if protocol >= 764 { // at the start of the configuration, and at the join game
			want = strings.Replace(want, "announce; reset; up", "announce; reset; reset; up", 1)
		}
		if got := strings.ReplaceAll(heard, tab, "T"); got != want {
			t.Errorf("the hook was asked\n%s, want\n%s", got, want)
		}
	})
}

// backchannel is a Backchannel that answers everything to the backend that asked.
type backchannel struct {
	mu   sync.Mutex
	seen []string
	last Backend
}

func (b *backchannel) Message(from Backend, channel string, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, fmt.Sprintf("%s of %s: %s", from.Server(), from.Player().Name(), data))
	b.last = from
	from.SendPlugin(channel, append([]byte("re: "), data...))
}

func (b *backchannel) Joined(on Backend) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, "joined "+on.Server())
}

func (b *backchannel) all() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.seen, "; ")
}

// TestBackchannel: what a backend says on BungeeCord's channel reaches no client and is answered on its own connection;
// what a client says there reaches nobody; and an answer to a backend that was left goes nowhere.
func TestBackchannel(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		channel := "bungeecord:main"
		if protocol < 393 {
			channel = "BungeeCord"
		}
		x := &backchannel{}
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, func(c *Config) { c.Backends = x }, a, b)
		c, s := e.settle(protocol, a)
		s.send(proto.CustomPayload, message(channel, "where am I?"))
		if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message(channel, "re: where am I?")) {
			t.Errorf("the backend got %q", got)
		}
		c.send(proto.CustomPayload, message(channel, "forged"))
		if err := e.player().ToServer("some:channel", []byte("through him")); err != nil {
			t.Fatal(err)
		}
		if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message("some:channel", "through him")) {
			t.Errorf("the backend got %q", got)
		}
		s.raw(0xf5, nil)
		c.expectID(0xf5) // and nothing before it
		old := x.last
		e.player().Connect("b")
		_, s = c.moved(b)
		old.SendPlugin(channel, []byte("too late"))
		s.send(proto.CustomPayload, message(channel, "and now?"))
		if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message(channel, "re: and now?")) {
			t.Errorf("the new backend got %q", got)
		}
		if got, want := x.all(), "joined a; a of Steve: where am I?; joined b; b of Steve: and now?"; got != want {
			t.Errorf("heard\n%s, want\n%s", got, want)
		}
	})
}

// TestToldByOthers: what other goroutines have a player told or asked arrives as its packet.
func TestToldByOthers(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		a := newBackend(t, "a", nil)
		e := newEnv(t, nil, a)
		c, s := e.settle(protocol, a)
		p := e.player()
		if err := p.SendChat(packet.Plain("hello there")); err != nil {
			t.Fatal(err)
		}
		c.chat("hello there")
		c.send(proto.ClientInformation, information(protocol))
		s.expect(proto.ClientInformation)
		if got := p.Locale(); got != "en_us" {
			t.Errorf("locale %q", got)
		}
		err := p.Transfer("elsewhere.example.org", 25566)
		if protocol < 766 {
			if err == nil {
				t.Error("a client that knows no transfer was transferred")
			}
		} else if got := c.expect(proto.Transfer); string(got) != "\x15elsewhere.example.org\xde\xc7\x01" {
			t.Errorf("transfer %q", got)
		}
		p.Kick(packet.Plain("bye"))
		if got := c.kicked(); got != "bye" {
			t.Errorf("told %q", got)
		}
	})
}

// TestManySwitches: to and fro by a client that is quick, by one that takes its time and by one that never answers a
// keep-alive, in each class of versions, and none of it leaves anything behind. A hundred times each, but for the slow
// one without EARSHOT_LONG.
func TestManySwitches(t *testing.T) {
	for _, protocol := range []int32{340, 758, 763, 764, 765, 769, 775} {
		for _, kind := range []string{"quick", "slow", "mute"} {
			t.Run(fmt.Sprint(protocol, " ", kind), func(t *testing.T) {
				t.Parallel()
				times, slow := 100, time.Duration(0)
				if kind == "slow" {
					slow = 500 * time.Millisecond
					if !long() {
						times = 4
					}
				}
				a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
				e := newEnv(t, nil, a, b)
				c, _ := e.settle(protocol, a)
				c.slow, c.mute = slow, kind == "mute"
				for i := range times {
					to := []*fakeBackend{b, a}[i%2]
					if err := e.player().Connect(to.name); err != nil {
						t.Fatal(err)
					}
					c.moved(to)
					e.on(to.name)
				}
				if n := e.core.Counters.Switches.Done.Load(); n != uint64(times) {
					t.Errorf("%d switches, want %d", n, times)
				}
				k := &e.player().sockets
				k.mu.Lock()
				defer k.mu.Unlock()
				if len(k.open) != 1 {
					t.Errorf("%d sockets to backends are open, want 1", len(k.open))
				}
			})
		}
	}
}
