package session

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// change puts other settings in force.
func (e *env) change(f func(s *Settings)) {
	set := *e.core.settings.Load()
	set.Servers = slices.Clone(set.Servers)
	f(&set)
	e.core.Apply(set)
}

// TestServersThatMayNot: a server that may not send its players elsewhere, nor use their cookies, does not, in
// configuration and in play; it is told that there are no cookies, the player of the transfer, and the log what to set,
// once. A reload counts for those who are on.
func TestServersThatMayNot(t *testing.T) {
	each(t, []int32{766, 767, 769, 775}, func(t *testing.T, protocol int32) {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, func(c *Config) { c.Settings.Servers[0].NoTransfers, c.Settings.Servers[0].NoCookies = true, true }, b)
		c := e.login(protocol, "Steve")
		s := b.next()
		transfer := field.AppendVarInt(field.AppendString(nil, "other.example.net"), 25565)
		try := func() {
			t.Helper()
			s.send(proto.StoreCookie, []byte("as it is"))
			s.send(proto.Transfer, transfer)
			s.send(proto.CookieRequest, packet.AppendCookieRequest(nil, "a:b"))
			a, err := packet.ParseCookieResponse(s.await(proto.CookieResponse))
			if err != nil || a.Key != "a:b" || a.Found {
				t.Errorf("answered %+v, %v", a, err)
			}
		}
		try()
		done := make(chan struct{})
		go func() { defer close(done); s.admit() }()
		for {
			q, _, _, err := c.try()
			if err != nil {
				t.Fatal(err)
			}
			if q == proto.FinishConfiguration {
				break
			}
			t.Errorf("the client got %v", q)
		}
		c.in = proto.Play
		c.send(proto.FinishConfiguration, nil)
		c.out = proto.Play
		<-done
		c.chat("wanted to send you to another address")
		try()
		c.chat("wanted to send you to another address")
		if n := e.core.Counters.NotAllowed.Transfers.Load(); n != 2 {
			t.Errorf("%d transfers counted", n)
		}
		if n := e.core.Counters.NotAllowed.Cookies.Load(); n != 4 {
			t.Errorf("%d uses of cookies counted", n)
		}
		log := e.log.String()
		if strings.Count(log, "transfers: allow") != 1 || strings.Count(log, "cookies: allow") != 1 {
			t.Errorf("the log has %s", log)
		}
		e.change(func(s *Settings) { s.Servers[0].NoTransfers, s.Servers[0].NoCookies = false, false })
		s.send(proto.StoreCookie, []byte("as it is"))
		c.expect(proto.StoreCookie)
		s.send(proto.Transfer, transfer)
		if got := c.expect(proto.Transfer); string(got) != string(transfer) {
			t.Errorf("sent to %q", got)
		}
	})
}

// TestRestricted: only those who may join a restricted server are sent there, as newcomers, when their server is lost,
// when it is emptied, and out of the built-in world; others go on to the next, or are told why there is none.
func TestRestricted(t *testing.T) {
	each(t, []int32{340, 767}, func(t *testing.T, protocol int32) {
		var may atomic.Bool
		vip, lobby := newBackend(t, "vip", nil), newBackend(t, "lobby", nil)
		e := newEnv(t, func(c *Config) {
			c.Settings.Servers[0].Restricted = true
			c.Admit = func(p Player, server string) bool {
				if p.Name() == "" || server != "vip" {
					t.Errorf("asked for %q and %s", p.Name(), server)
				}
				return may.Load()
			}
		}, vip, lobby)
		c, s := e.settle(protocol, lobby)
		e.settled("Steve")
		if err := e.core.Drain("lobby", true, false, nil); err != nil {
			t.Fatal(err)
		}
		if got := e.login(protocol, "Alex").kicked(); !strings.Contains(got, "You may not join server vip") {
			t.Errorf("a newcomer is told %q", got)
		}
		done := make(chan Emptied, 1)
		e.core.Drain("lobby", true, true, func(x Emptied) { done <- x })
		if got := <-done; len(got.Nowhere) != 1 {
			t.Errorf("reported: %+v", got)
		}
		e.core.Drain("lobby", false, false, nil)
		may.Store(true)
		second := e.login(protocol, "Eve")
		second.moved(vip)
		s.conn.Close()
		c.moved(vip)
	})
}
