package front

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/itest/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func networks(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// ask tells whom the next handler takes a request to be from, and whether it takes that for certain.
func ask(f *Front, peer string, headers ...string) (client string, direct bool) {
	f.next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { client, direct = r.RemoteAddr, Direct(r) })
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = peer
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	before := r.Header.Clone()
	f.ServeHTTP(httptest.NewRecorder(), r)
	if len(before) != len(r.Header) {
		panic("the server's own request was changed")
	}
	return client, direct
}

func TestClientAddress(t *testing.T) {
	const near, far = "127.0.0.1:999", "192.0.2.7:999"
	for _, c := range []struct {
		name, peer string
		headers    []string
		client     string
		direct     bool
	}{
		{"nothing in front", far, nil, far, true},
		{"a trusted one itself", near, nil, near, true},
		{"one in front", near, []string{"X-Forwarded-For: 203.0.113.9"}, "203.0.113.9:0", true},
		{"with a port", near, []string{"X-Forwarded-For: 203.0.113.9:1234"}, "203.0.113.9:0", true},
		{"IPv6", near, []string{"X-Forwarded-For: 2001:db8::9"}, "[2001:db8::9]:0", true},
		{"IPv6 in brackets", near, []string{"X-Forwarded-For: [2001:db8::9]"}, "[2001:db8::9]:0", true},
		{"IPv6 with a port", near, []string{"X-Forwarded-For: [2001:db8::9]:1234"}, "[2001:db8::9]:0", true},
		{"mapped", "[::ffff:127.0.0.1]:999", []string{"X-Forwarded-For: ::ffff:203.0.113.9"}, "203.0.113.9:0", true},
		{"what the client put there is not believed", near, []string{"X-Forwarded-For: 127.0.0.1, 203.0.113.9"}, "203.0.113.9:0", true},
		{"nor in a line of its own", near, []string{"X-Forwarded-For: 127.0.0.1", "X-Forwarded-For: 203.0.113.9"}, "203.0.113.9:0", true},
		{"nor as garbage", near, []string{"X-Forwarded-For: , x y;, 203.0.113.9"}, "203.0.113.9:0", true},
		{"two trusted ones", near, []string{"X-Forwarded-For: 127.0.0.1,203.0.113.9,10.0.0.3"}, "203.0.113.9:0", true},
		{"all are trusted", near, []string{"X-Forwarded-For: 10.0.0.9, 10.0.0.3"}, "10.0.0.9:0", true},
		{"Forwarded", near, []string{"Forwarded: for=203.0.113.9;proto=https;by=10.0.0.3"}, "203.0.113.9:0", true},
		{"Forwarded, IPv6, quoted, any case", near, []string{`Forwarded: Proto=https; FOR="[2001:db8::9]:4711"`}, "[2001:db8::9]:0", true},
		{"Forwarded, forged", near, []string{`Forwarded: for=127.0.0.1, for="203.0.113.9"`}, "203.0.113.9:0", true},
		{"Forwarded, forged by quotes", near, []string{`Forwarded: for="127.0.0.1, for=203.0.113.9`}, near, false},
		{"both agree", near, []string{"X-Forwarded-For: 203.0.113.9", "Forwarded: for=203.0.113.9"}, "203.0.113.9:0", true},
		{"both differ: one is the client's", near, []string{"X-Forwarded-For: 127.0.0.1", "Forwarded: for=203.0.113.9"}, near, false},
		{"both differ the other way", near, []string{"X-Forwarded-For: 203.0.113.9", "Forwarded: for=127.0.0.1"}, near, false},
		{"hidden", near, []string{"Forwarded: for=_hidden"}, near, false},
		{"unknown behind a second one", near, []string{"X-Forwarded-For: unknown, 10.0.0.3"}, "10.0.0.3:0", false},
		{"no for", near, []string{"Forwarded: proto=https"}, near, false},
		{"empty", near, []string{"X-Forwarded-For: "}, near, false},
		{"only what is not read", near, []string{"X-Real-IP: 203.0.113.9"}, near, false},
		{"what is not read goes with what is", near, []string{"X-Forwarded-For: 203.0.113.9", "X-Real-IP: 127.0.0.1", "Via: 1.1 x"}, "203.0.113.9:0", true},
		{"from elsewhere", far, []string{"X-Forwarded-For: 127.0.0.1"}, far, false},
		{"Forwarded from elsewhere", far, []string{"Forwarded: for=127.0.0.1"}, far, false},
		{"X-Real-IP from elsewhere", far, []string{"X-Real-IP: 127.0.0.1"}, far, false},
		{"Via from elsewhere", far, []string{"Via: 1.1 x"}, far, false},
		{"from no address", "pipe", []string{"X-Forwarded-For: 127.0.0.1"}, "pipe", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := New(nil, nil)
			f.SetTrusted(networks("127.0.0.0/8", "10.0.0.0/24"))
			if client, direct := ask(f, c.peer, c.headers...); client != c.client || direct != c.direct {
				t.Errorf("%s, %v; want %s, %v", client, direct, c.client, c.direct)
			}
		})
	}
}

// TestNobodyIsTrustedByDefault: a header from this very machine is not believed either, and the request not local.
func TestNobodyIsTrustedByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		f := New(nil, log.Logger(slog.LevelInfo))
		for range 3 {
			if client, direct := ask(f, "127.0.0.1:9", "X-Forwarded-For: 127.0.0.1"); client != "127.0.0.1:9" || direct {
				t.Error(client, direct)
			}
			ask(f, "203.0.113.4:9", "X-Forwarded-For: 127.0.0.1")
		}
		if strings.Count(log.String(), "http-proxies") != 1 || strings.Contains(log.String(), "203.0.113.4") {
			t.Errorf("log: %s", &log)
		}
	})
}

func FuzzChain(f *testing.F) {
	for _, s := range []string{"203.0.113.9", "127.0.0.1, 203.0.113.9:80", `for="[2001:db8::9]:4711";proto=https, for=_x`, `for="a\`, `"`, ",,;=;"} {
		f.Add(s)
	}
	front := New(nil, nil)
	front.SetTrusted(networks("127.0.0.0/8"))
	f.Fuzz(func(t *testing.T, s string) {
		for _, name := range []string{"X-Forwarded-For: ", "Forwarded: "} {
			// Whatever a client writes in front, the proxy's own element decides.
			if client, direct := ask(front, "127.0.0.1:9", name+s, name+map[bool]string{true: "for="}[name == "Forwarded: "]+"203.0.113.9"); client != "203.0.113.9:0" || !direct {
				t.Errorf("%q: %s %v", s, client, direct)
			}
			ask(front, "127.0.0.1:9", name+s)
		}
	})
}
