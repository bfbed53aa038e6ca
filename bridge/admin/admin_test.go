package admin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

func get(h http.Handler, from string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr, r.Host = from, "127.0.0.1:25565"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const here, there = "127.0.0.1:1234", "192.0.2.1:1234"

func running() Health {
	return Health{OK: true, State: "running", Details: map[string]any{"players": 3}}
}

func TestMetricsAreThereFromTheStart(t *testing.T) {
	a := New(nil, running)
	players := 2.0
	a.Gauge("earshot_players", "Players.", func() float64 { return players })
	a.Counter("earshot_frames_total", "Frames.", func() float64 { return 7 })
	drops := map[string]float64{"full": 0, "stale": 3}
	a.Counters("earshot_drops_total", "Drops.", "reason", func(emit func(string, float64)) {
		for reason, n := range drops {
			emit(reason, n)
		}
	})
	refused := a.Tally("earshot_refusals_total", "Refusals.", "reason", []string{"token", "origin"})
	want := func(lines ...string) {
		t.Helper()
		w := get(a.Metrics(), here)
		if w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
		for _, l := range lines {
			if !strings.Contains(w.Body.String(), "\n"+l+"\n") {
				t.Errorf("no line %q in\n%s", l, w.Body)
			}
		}
	}
	want("earshot_players 2", "earshot_frames_total 7", `earshot_drops_total{reason="full"} 0`, `earshot_drops_total{reason="stale"} 3`,
		`earshot_refusals_total{reason="token"} 0`, `earshot_refusals_total{reason="origin"} 0`, `earshot_refusals_total{reason="other"} 0`,
		"# TYPE earshot_drops_total counter", "# TYPE earshot_players gauge")
	players, drops["full"] = 5, 1
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			refused("token")
			refused("never heard of")
		})
	}
	wg.Wait()
	want("earshot_players 5", `earshot_drops_total{reason="full"} 1`, `earshot_refusals_total{reason="token"} 10`, `earshot_refusals_total{reason="other"} 10`)
	if body := get(a.Metrics(), here).Body.String(); strings.Contains(body, "never heard of") || !strings.Contains(body, "go_goroutines") || !strings.Contains(body, "process_") {
		t.Error(body)
	}
}

// TestWhatIsNoNameOfOurs: a page that a browser asks for by a stranger's name, and a request that somebody else passed
// on, are not from here, whatever the address.
func TestWhatIsNoNameOfOurs(t *testing.T) {
	a := New(nil, running)
	a.SetHosts([]string{"Mc.example.net", "*.voice.example", "*"})
	for _, c := range []struct {
		host, header string
		why          string // part of the answer
	}{
		{"127.0.0.1:25565", "", ""}, {"[::1]:25565", "", ""}, {"::1", "", ""}, {"192.0.2.7", "", ""}, {"", "", ""},
		{"localhost:25565", "", ""}, {"LOCALHOST.", "", ""}, {"mc.Example.net:25565", "", ""}, {"eu.voice.example", "", ""},
		{"evil.example", "", "admin.hosts"}, {"voice.example", "", "admin.hosts"}, {"localhost.evil.example:25565", "", "admin.hosts"},
		{"127.0.0.1.evil.example", "", "admin.hosts"}, {"mc.example.net.evil.example", "", "admin.hosts"}, {"evilvoice.example", "", "admin.hosts"},
		{"localhost", "X-Forwarded-For", "http-proxies"}, {"localhost", "Forwarded", "http-proxies"}, {"localhost", "X-Real-Ip", "http-proxies"},
	} {
		for _, h := range []http.Handler{a.Metrics(), a.Healthz()} {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr, r.Host = here, c.host
			if c.header != "" {
				r.Header.Set(c.header, "127.0.0.1")
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			body := w.Body.String()
			if seen := strings.Contains(body, "go_goroutines") || strings.Contains(body, "players"); seen != (c.why == "") {
				t.Errorf("%q %s: %d %.80s", c.host, c.header, w.Code, body)
			}
			if w.Code == http.StatusForbidden && !strings.Contains(body, c.why) {
				t.Errorf("%q %s: %s", c.host, c.header, body)
			}
		}
	}
}

func TestWhoMaySee(t *testing.T) {
	for _, c := range []struct {
		name     string
		networks []netip.Prefix
		from     string
		allowed  bool
	}{
		{"loopback by default", nil, here, true},
		{"loopback of IPv6", nil, "[::1]:1", true},
		{"loopback, mapped", nil, "[::ffff:127.0.0.1]:1", true},
		{"stranger by default", nil, there, false},
		{"named network", []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, there, true},
		{"loopback where not named", []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, here, false},
		{"nobody", []netip.Prefix{}, here, false},
		{"no address", nil, "pipe", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := New(c.networks, running)
			if w := get(a.Metrics(), c.from); (w.Code == 200) != c.allowed || !c.allowed && (w.Code != 403 || strings.Count(w.Body.String(), "\n") != 1) {
				t.Errorf("metrics: %d %s", w.Code, w.Body)
			}
			w := get(a.Healthz(), c.from)
			var body map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if _, details := body["players"]; w.Code != 200 || details != c.allowed || body["state"] != "running" {
				t.Errorf("health: %d %s", w.Code, w.Body)
			}
		})
	}
}

func TestStopping(t *testing.T) {
	a := New(nil, func() Health { return Health{State: "stopping"} })
	if w := get(a.Healthz(), there); w.Code != 503 || w.Body.String() != `{"state":"stopping"}`+"\n" || w.Header().Get("Content-Type") != "application/json" {
		t.Error(w.Code, w.Body)
	}
	a = New(nil, func() Health { return Health{OK: true, Details: map[string]any{"bad": func() {}}} })
	if w := get(a.Healthz(), here); w.Code != 500 {
		t.Error(w.Code, w.Body)
	}
}

func TestOnlyReading(t *testing.T) {
	a := New(nil, running)
	for _, h := range []http.Handler{a.Healthz(), a.Metrics()} {
		r := httptest.NewRequest("POST", "/", strings.NewReader("x"))
		r.RemoteAddr, r.Host = here, "localhost"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 405 || w.Header().Get("Allow") == "" {
			t.Error(w.Code)
		}
	}
}

func TestNamesAreChecked(t *testing.T) {
	a := New(nil, running)
	a.Counter("earshot_x_total", "X.", func() float64 { return 0 })
	defer func() {
		if recover() == nil {
			t.Error("a name was taken twice")
		}
	}()
	a.Gauge("earshot_x_total", "X.", func() float64 { return 0 })
}

// TestSetNetworks: who may see everything can be changed while it is served.
func TestSetNetworks(t *testing.T) {
	a := New(nil, running)
	a.SetNetworks([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})
	if near, far := get(a.Metrics(), here).Code, get(a.Metrics(), there).Code; near != 403 || far != 200 {
		t.Error(near, far)
	}
	a.SetNetworks(nil)
	if near, far := get(a.Metrics(), here).Code, get(a.Metrics(), there).Code; near != 200 || far != 403 {
		t.Error(near, far)
	}
}
