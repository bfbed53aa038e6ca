package itest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// gatekeeper is what the program takes for the session server. It passes on to the peers' one, unless it is told to
// behave in another way; names are the account's without regard to case, as at the real one.
type gatekeeper struct {
	url      string
	accounts []*peer.Account

	mu        sync.Mutex
	behaviour string
	asked     []url.Values
	hung      chan struct{} // one each time the program has given up on an answer
}

// How a gatekeeper behaves.
const (
	honest  = ""
	denies  = "denies"
	down    = "down"
	silent  = "silent"
	rambles = "rambles" // answers 200 with more than any profile has
)

func keepGate(t *testing.T, accounts ...*peer.Account) *gatekeeper {
	g := &gatekeeper{accounts: accounts, hung: make(chan struct{}, 64)}
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections() })
	g.url = srv.URL
	return g
}

func (g *gatekeeper) be(behaviour string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.behaviour = behaviour
}

func (g *gatekeeper) questions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.asked)
}

func (g *gatekeeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	g.mu.Lock()
	g.asked = append(g.asked, r.URL.Query())
	behaviour := g.behaviour
	g.mu.Unlock()
	switch behaviour {
	case denies:
		w.WriteHeader(http.StatusNoContent)
		return
	case down:
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	case silent:
		<-r.Context().Done()
		g.hung <- struct{}{}
		return
	case rambles:
		w.Write([]byte(`{"id":"` + strings.Repeat("0", 1<<20) + `"}`))
		return
	}
	for _, a := range g.accounts {
		if !strings.EqualFold(a.Name, q.Get("username")) {
			continue
		}
		q.Set("username", a.Name)
		resp, err := http.Get(a.URL + r.URL.Path + "?" + q.Encode())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// TestOnline is the encrypted login: what the session server says of a player is what the client and the backend are
// told, in every forwarding mode.
func TestOnline(t *testing.T) {
	cases := []struct{ version, mode string }{
		{"1.8.8", peer.BungeeGuard}, {"1.16.5", peer.Modern}, {"1.19.2", peer.Modern}, {"1.20.2", peer.Legacy},
		{"1.21.4", peer.BungeeGuard}, {"26.1", peer.Modern}, {"26.2", peer.Legacy}, {"26.3", peer.Modern},
	}
	if long() {
		cases = nil
		for _, v := range peer.Versions {
			for _, mode := range []string{peer.Legacy, peer.BungeeGuard, peer.Modern} {
				if v.Protocol >= 393 || mode != peer.Modern {
					cases = append(cases, struct{ version, mode string }{v.Name, mode})
				}
			}
		}
	}
	for _, c := range cases {
		alongside(t, c.version+" "+c.mode, func(t *testing.T) { online(t, c.version, c.mode) })
	}
}

func online(t *testing.T, version, mode string) {
	sessions := peer.NewSessions(t)
	skin := []peer.Property{
		{Name: "textures", Value: strings.Repeat("skin", 400), Signature: strings.Repeat("sign", 150)},
		{Name: "rank", Value: "näive \"quotes\" \\"},
	}
	// A profile could try to pass for the proxy; its token must not get through beside the real one.
	account := sessions.Account("Ann", append(skin, peer.Property{Name: "bungeeguard-token", Value: "forged"})...)
	gate := keepGate(t, account)
	server := peer.Backend(t, version, mode, secret)
	p := start(t, fmt.Sprintf("session-server: %q\ntry: [game]\nservers: {game: {address: %q, forwarding: %s, secret: %q}}\n", gate.url, server.Addr, mode, secret))
	clients := peer.NewRaw(t, version)
	id := uuid.MustParse(account.ID).String()

	// The client writes its name its own way; the account's spelling counts.
	ann := clients.Dial(p.addr, peer.Login{Name: "ANN", Account: account})
	e := ann.Await("success", nil)
	if e.Text != "Ann" || e.UUID != id || !e.Encrypted {
		t.Errorf("the client is let in as %s %s, encrypted %v; want Ann %s", e.Text, e.UUID, e.Encrypted, id)
	}
	if peer.Protocol(version) >= 759 { // from here on login success holds the profile
		var got []peer.Property
		if err := json.Unmarshal(e.Params, &got); err != nil || len(got) < 2 || !reflect.DeepEqual(got[:2], skin) {
			t.Errorf("the client is told %.200s (%v)", e.Params, err)
		}
	}
	ann.Await("moved", nil)
	joined := server.Joined("Ann")
	f := joined.Forwarded
	if f == nil || f.UUID != id || f.Address != "127.0.0.1" || joined.UUID != id {
		t.Fatalf("the backend was told %s", joined.Raw)
	}
	var properties []peer.Property
	for _, p := range f.Properties {
		if p.Name != "bungeeguard-token" {
			properties = append(properties, p)
		}
	}
	if !reflect.DeepEqual(properties, skin) {
		t.Errorf("the backend was told the properties %v", properties)
	}
	// The backend has checked and removed the real one.
	if mode == peer.BungeeGuard && len(f.Properties) != len(properties) {
		t.Errorf("a forged token reached the backend: %v", f.Properties)
	}
	gate.mu.Lock()
	q := gate.asked[len(gate.asked)-1]
	gate.mu.Unlock()
	if q.Get("username") != "ANN" || q.Get("serverId") == "" || q.Has("ip") {
		t.Errorf("the session server was asked %v", q)
	}

	// The same account once more: the newcomer has proved to be its owner, so the other one goes, on the backend too
	// and there first.
	again := clients.Dial(p.addr, peer.Login{Name: "Ann", Account: account})
	replaced := "duplicate_login"
	if peer.Protocol(version) < proto.V1_12 { // which has no such word
		replaced = "You logged in from another location"
	}
	if e := ann.Await("kicked", nil); !strings.Contains(e.Text, replaced) || e.State != "play" {
		t.Errorf("the replaced player is told %q in %s", e.Text, e.State)
	}
	again.Await("moved", nil)
	server.Joined("Ann")
	if n := server.Count("leave", "Ann"); n != 1 {
		t.Errorf("the second one joined when the first had left %d times", n)
	}
	p.counts("earshot_players", 1)
	again.Move(8.5, 70, 8.5) // the session of the one that stays is whole
	server.At("Ann", 8.5, 70, 8.5)
}

// TestNotAuthenticated: everybody who cannot be authenticated is told why, in good time, and reaches no backend.
func TestNotAuthenticated(t *testing.T) {
	for _, version := range []string{"1.8.8", "1.21.4"} {
		alongside(t, version, func(t *testing.T) { notAuthenticated(t, version) })
	}
}

func notAuthenticated(t *testing.T, version string) {
	sessions := peer.NewSessions(t)
	account := sessions.Account("Ann")
	gate := keepGate(t, account)
	p := start(t, fmt.Sprintf("session-server: %q\ntimeouts: {session-server: 1s}\n", gate.url))
	clients := peer.NewRaw(t, version)
	unverified, serversDown := "unverified_username", "authservers_down"
	if peer.Protocol(version) < proto.V1_12 { // which has no such words
		unverified, serversDown = "Failed to verify username", "Authentication servers are down"
	}
	refused := func(behaviour, reason, why string) {
		t.Helper()
		gate.be(behaviour)
		begin := time.Now()
		ann := clients.Dial(p.addr, peer.Login{Name: "Ann", Account: account})
		if e := ann.Await("kicked", nil); !strings.Contains(e.Text, reason) || e.State != "login" {
			t.Errorf("a session server that is %s: the player is told %q in %s", behaviour, e.Text, e.State)
		}
		if d := time.Since(begin); d > 8*time.Second {
			t.Errorf("a session server that is %s: the player waited %v", behaviour, d)
		}
		if n := ann.Count("success"); n != 0 {
			t.Errorf("a session server that is %s: the player was let in", behaviour)
		}
		ann.Await("end", nil)
		p.counted(`earshot_connections_ended_total{why="`+why+`"}`, behaviour)
	}
	refused(denies, unverified, "unauthenticated")
	refused(down, serversDown, "auth_down")
	refused(rambles, serversDown, "auth_down")
	refused(silent, serversDown, "auth_down")
	<-gate.hung

	// Somebody who claims a name without having its account.
	gate.be(honest)
	c := newWire(t, dial(t, p.addr, ""), 47)
	write(t, c, hello(47, "localhost", 2), loginStart(47, "Ann"))
	if f, err := c.r.Next(); err != nil || f.ID != 1 {
		t.Errorf("no encryption request, but %d, %v", f.ID, err)
	}
	write(t, c, framed(1, make([]byte, 64))) // nobody's answer to it
	if b, d := ended(t, c); len(b) != 0 || d > 5*time.Second {
		t.Errorf("a forged answer got %q after %v", b, d)
	}

	// And when all is well again, so is this player.
	gate.be(honest)
	ann := clients.Dial(p.addr, peer.Login{Name: "Ann", Account: account})
	ann.Await("moved", nil)
	p.counts("earshot_logins_total", 1)

	// Nobody goes on asking about a player who has left.
	gate.be(silent)
	patient := start(t, fmt.Sprintf("session-server: %q\ntimeouts: {session-server: 25s}\n", gate.url))
	n := gate.questions()
	ben := clients.Dial(patient.addr, peer.Login{Name: "Ben", Account: sessions.Account("Ben")})
	testkit.Until(t, "the question", func() bool { return gate.questions() > n })
	begin := time.Now()
	ben.Vanish()
	<-gate.hung
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("the question about a player who had left was dropped after %v", d)
	}

	// A session server that is not there at all.
	alone := start(t, fmt.Sprintf("session-server: %q\n", "http://"+freeAddr(t)))
	eve := clients.Dial(alone.addr, peer.Login{Name: "Eve", Account: sessions.Account("Eve")})
	if e := eve.Await("kicked", nil); !strings.Contains(e.Text, serversDown) {
		t.Errorf("no session server: the player is told %q", e.Text)
	}
	alone.says(1, "players cannot be authenticated")
}

// TestOfflineNames: without accounts a name belongs to whoever has it first, however it is written, and only names that
// are names come in.
func TestOfflineNames(t *testing.T) {
	p := start(t, "", "--offline")
	ann := logIn(t, p.addr, "Ann")
	ann.until(proto.JoinGame)
	for _, name := range []string{"Ann", "aNN"} {
		if r := refusal(t, p.addr, proto.V1_8, name); !strings.Contains(r, "already playing") {
			t.Errorf("a second %s is refused with %s", name, r)
		}
	}
	for _, name := range []string{"§kmagic", "a b", "", "Änn", "../../etc"} {
		if r := refusal(t, p.addr, proto.V1_8, name); !strings.Contains(r, "not allowed") {
			t.Errorf("%q is refused with %s", name, r)
		}
	}
	p.counts("earshot_players", 1)
	ann.Close()
	testkit.Until(t, "Ann to be gone", func() bool { return p.metric("earshot_players") == 0 })
	logIn(t, p.addr, "ANN").until(proto.JoinGame)
}

// counted waits until a metric is above zero.
func (p *program) counted(name, why string) {
	p.t.Helper()
	testkit.Until(p.t, name+" after "+why, func() bool { return p.metric(name) > 0 })
}
