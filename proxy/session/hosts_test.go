package session

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/status"
)

// TestHostNames: exact before the longest wildcard before the star, and nothing by accident.
func TestHostNames(t *testing.T) {
	h := newHosts([]Host{
		{Name: "example.net"}, {Name: "Survival.Example.NET."}, {Name: "*.example.net"}, {Name: "*.eu.example.net"},
		{Name: "a.eu.example.net"}, {Name: "*.net"}, {Name: "::1"}, {Name: "*.Example.ORG"},
	})
	for name, want := range map[string]string{
		"example.net": "example.net", "survival.example.net": "Survival.Example.NET.", "other.example.net": "*.example.net",
		"a.b.c.example.net": "*.example.net", "eu.example.net": "*.example.net", "x.eu.example.net": "*.eu.example.net",
		"a.eu.example.net": "a.eu.example.net", "b.a.eu.example.net": "*.eu.example.net", "net": "", "other.net": "*.net",
		"badexample.net": "*.net", ".example.net": "*.net", "example.net.evil.org": "", "example.org": "", "x.example.org": "*.Example.ORG",
		"": "", ".": "", "*": "", "*.net": "*.net", "::1": "::1", strings.Repeat(".", 319): "",
	} {
		got := ""
		if e := h.find(name); e != nil {
			got = e.Name
		}
		if got != want {
			t.Errorf("%q is taken for %q, want %q", name, got, want)
		}
	}
	all := newHosts([]Host{{Name: "*"}, {Name: "*.a"}})
	for name, want := range map[string]string{"": "*", "a": "*", "b.a": "*.a", "x.y": "*", ".a": "*"} {
		if got := all.find(name); got == nil || got.Name != want {
			t.Errorf("%q is taken for %+v, want %q", name, got, want)
		}
	}
	if newHosts(nil).find("x") != nil {
		t.Error("found where there is nothing")
	}
}

// TestHostNamesAgainstTheRule compares with the rule said plainly, on names of few letters so that they meet.
func TestHostNamesAgainstTheRule(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, r.IntN(6))
		for i := range b {
			b[i] = "ab."[r.IntN(3)]
		}
		return string(b)
	}
	for range 20_000 {
		var list []Host
		seen := map[string]bool{}
		for range 6 {
			name := strings.TrimRight(word(), ".")
			if r.IntN(2) == 0 {
				name = "*." + strings.Trim(name, ".")
			}
			if name != "" && name != "*." && !seen[name] {
				seen[name] = true
				list = append(list, Host{Name: name})
			}
		}
		name, want := word(), ""
		for _, e := range list {
			tail, any := strings.CutPrefix(e.Name, "*")
			switch {
			case e.Name == name:
				want = name
			case any && strings.HasSuffix(name, tail) && len(name) > len(tail) && want != name && len(e.Name) > len(want):
				want = e.Name
			}
		}
		got := ""
		if e := newHosts(list).find(name); e != nil {
			got = e.Name
		}
		if got != want {
			t.Fatalf("%q among %+v is taken for %q, want %q", name, list, got, want)
		}
	}
}

// TestForcedHosts: the name by which a player comes decides where they go, whatever clients, mod loaders and proxies
// put behind it; and where they go next.
func TestForcedHosts(t *testing.T) {
	lobby, survival, games := newBackend(t, "lobby", nil), newBackend(t, "survival", nil), newBackend(t, "games", nil)
	e := newEnv(t, func(c *Config) {
		c.Settings.Try = []string{"lobby"}
		c.Settings.Hosts = []Host{
			{Name: "survival.example.net", Try: []string{"nowhere", "Survival", "games"}},
			{Name: "*.example.net", Try: []string{"games"}}, {Name: "plain.example.net"},
		}
	}, lobby, survival, games)
	for i, c := range []struct {
		protocol int32
		host     string
		to       *fakeBackend
		told     string
	}{
		{767, "survival.example.net", survival, "survival.example.net"},
		{47, "SURVIVAL.Example.Net.:25566", survival, "survival.example.net"},
		{340, "survival.example.net\x00FML\x00", survival, "survival.example.net\x00FML\x00"},
		{754, "survival.example.net.\x00FML2\x00", survival, "survival.example.net\x00FML2\x00"},
		{767, "survival.example.net\x00FORGE", survival, "survival.example.net\x00FORGE"},
		{767, "survival.example.net\x001.2.3.4\x00069a79f444e94726a5befca90e38aaf5", survival, "survival.example.net"},
		{767, "survival.example.net///1.2.3.4:1///2", survival, "survival.example.net"},
		{767, "bedwars.example.net", games, "bedwars.example.net"},
		{767, "plain.example.net", lobby, "plain.example.net"},
		{767, "example.net", lobby, "example.net"},
		{767, "survival.example.net.evil.org", lobby, "survival.example.net.evil.org"},
		{767, "", lobby, "127.0.0.1"},
	} {
		name := "Steve" + string(rune('A'+i))
		p := e.come(c.protocol, c.host, packet.IntentLogin)
		p.send(proto.LoginStart, packet.AppendLoginStart(nil, c.protocol, packet.LoginStart{Name: name}))
		p.loggedIn()
		if s := c.to.next(); s.login.Name != name || s.handshake.Host != c.told {
			t.Errorf("by %q: %q told %q, want %q told %q", c.host, s.login.Name, s.handshake.Host, name, c.told)
		}
		p.conn.Close()
	}

	// A player who loses a server goes on by the list of their host, also when that began a new chain of attempts.
	for _, long := range []bool{false, true} {
		p := e.come(767, "survival.example.net", packet.IntentLogin)
		p.send(proto.LoginStart, packet.AppendLoginStart(nil, 767, packet.LoginStart{Name: "Alex"}))
		p.loggedIn()
		s := survival.next()
		done := make(chan struct{})
		go func() { defer close(done); s.admit() }()
		p.join()
		<-done
		if long {
			e.settled("Alex")
		}
		s.conn.Close()
		if s := games.next(); s.login.Name != "Alex" {
			t.Errorf("%q fell back", s.login.Name)
		}
		p.conn.Close()
		until(t, func() bool { return e.core.Online() == 0 }, "a player is left", func() []any { return nil })
	}
}

// settled makes believe that a player has been on the server for longer than a chain of attempts goes back.
func (e *env) settled(name string) {
	e.t.Helper()
	done := make(chan bool, 1)
	for _, s := range e.core.players.all() {
		if s.client.name != name {
			continue
		}
		s.post(letter{do: func() {
			if s.route.current != nil {
				s.route.current.since = time.Now().Add(-time.Hour)
			}
			done <- s.route.current != nil
		}})
	}
	select {
	case ok := <-done:
		if !ok {
			e.t.Fatalf("%s is on no server", name)
		}
	case <-time.After(patienceInTests):
		e.t.Fatalf("%s is not in play", name)
	}
}

// answering returns a Status with a text.
func answering(t testing.TB, motd string) *status.Status {
	t.Helper()
	st, err := status.New(status.Config{MOTD: packet.Plain(motd)})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// ping asks for the status and returns the JSON.
func (e *env) ping(protocol int32, host string) string {
	e.t.Helper()
	p := e.come(protocol, host, packet.IntentStatus)
	p.state(proto.Status)
	p.send(proto.StatusRequest, nil)
	b, err := packet.ParseStatusResponse(p.expect(proto.StatusResponse))
	if err != nil {
		e.t.Fatal(err)
	}
	p.conn.Close()
	return string(b)
}

// TestHostStatus: each name has its own answer, or the one for all.
func TestHostStatus(t *testing.T) {
	e := newEnv(t, func(c *Config) {
		c.Settings.Status = answering(t, "general")
		c.Settings.Hosts = []Host{{Name: "*.example.net", Status: answering(t, "wild")}, {Name: "a.example.net", Status: answering(t, "exact")}, {Name: "b.example.net"}}
	})
	for host, want := range map[string]string{"A.example.net.": "exact", "x.example.net\x00FML\x00": "wild", "b.example.net": "general", "example.net": "general", "": "general"} {
		if got := e.ping(340, host); !strings.Contains(got, `"`+want+`"`) {
			t.Errorf("by %q: %s, want %q", host, got, want)
		}
	}
	e.ended(EndStatus, 5)
}

// TestUnwantedHosts: names that are refused learn nothing, and players by them what to do.
func TestUnwantedHosts(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	e := newEnv(t, func(c *Config) {
		c.Settings.Status = answering(t, "hello")
		c.Settings.Hosts = []Host{{Name: "*", Refuse: true}, {Name: "play.example.net"}}
	}, b)
	for _, host := range []string{"203.0.113.7", "", "example.net", "x.play.example.net"} {
		p := e.come(767, host, packet.IntentLogin)
		if got := p.kicked(); !strings.Contains(got, "address") {
			t.Errorf("by %q told %q", host, got)
		}
		e.come(767, host, packet.IntentStatus).closed()
	}
	e.ended(EndUnknownHost, 8)
	p := e.come(767, "play.example.net", packet.IntentLogin)
	p.send(proto.LoginStart, packet.AppendLoginStart(nil, 767, packet.LoginStart{Name: "Steve"}))
	p.loggedIn()
	b.next()
}

// TestReloadReachesThoseWhoAreOn: a player's servers are looked up when one is needed: other lists, other names for the
// same server, other entries for the host and other addresses count for players who are on already.
func TestReloadReachesThoseWhoAreOn(t *testing.T) {
	for name, change := range map[string]func(s *Settings, a, d *fakeBackend){
		"another list": func(s *Settings, a, d *fakeBackend) { s.Try = []string{"d"} },
		"the old one is gone": func(s *Settings, a, d *fakeBackend) {
			s.Try, s.Servers = []string{"d"}, slices.DeleteFunc(slices.Clone(s.Servers), func(b backend.Server) bool { return b.Name == "a" })
		},
		"another name": func(s *Settings, a, d *fakeBackend) {
			s.Servers = append(slices.Clone(s.Servers), backend.Server{Name: "lobby", Address: d.ln.Addr().String()})
			s.Try = []string{"lobby"}
		},
		"another address": func(s *Settings, a, d *fakeBackend) {
			s.Servers = slices.Clone(s.Servers)
			s.Servers[0].Address = d.ln.Addr().String()
		},
		"his host": func(s *Settings, a, d *fakeBackend) { s.Hosts = []Host{{Name: "play.example.org", Try: []string{"d"}}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, []int32{340, 763, 765, 775}, func(t *testing.T, protocol int32) {
				a, b, d := newBackend(t, "a", nil), newBackend(t, "b", nil), newBackend(t, "d", nil)
				e := newEnv(t, func(c *Config) { c.Settings.Try = []string{"a"} }, a, b, d)
				c, _ := e.settle(protocol, a)
				if err := e.player().Connect("b"); err != nil {
					t.Fatal(err)
				}
				_, s := c.moved(b)
				e.on("b")
				set := *e.core.settings.Load()
				change(&set, a, d)
				e.core.Apply(set)
				s.conn.Close()
				c.moved(d)
			})
		})
	}
}

// TestServerWithAnotherAddress: a server that has got another address is another one: whoever is on it can go there,
// once.
func TestServerWithAnotherAddress(t *testing.T) {
	each(t, []int32{47, 763, 764, 775}, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, nil, a)
		c, s := e.settle(protocol, a)
		if err := e.player().Connect("a"); err == nil {
			t.Fatal("to where he is already")
		}
		set := *e.core.settings.Load()
		set.Servers = []backend.Server{{Name: "a", Address: b.ln.Addr().String()}}
		e.core.Apply(set)
		if err := e.player().Connect("A"); err != nil {
			t.Fatal(err)
		}
		c.moved(b)
		s.closed()
		e.on("a")
		if err := e.player().Connect("a"); err == nil {
			t.Error("and again")
		}
	})
}
