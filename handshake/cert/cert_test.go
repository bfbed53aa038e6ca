package cert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letsencrypt/challtestsrv"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The authority under test has no end.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/letsencrypt/pebble/v2/va.VAImpl.processTasks"))
}

// authority is Let's Encrypt's own server for tests, which knows every name as this machine and reaches it at the two ports.
type authority struct {
	url     string
	roots   *x509.CertPool // of its URL
	issuer  *x509.CertPool // of what it gives
	refuses atomic.Bool
}

func newAuthority(t *testing.T, httpPort, tlsPort int) *authority {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "0")
	quiet := stdlog.New(io.Discard, "", 0)
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dns := free.LocalAddr().String()
	free.Close()
	names, err := challtestsrv.New(challtestsrv.Config{DNSAddrs: []string{dns}, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	names.SetDefaultDNSIPv6("")
	go names.Run()
	t.Cleanup(names.Shutdown)

	a := &authority{issuer: x509.NewCertPool()}
	memory := db.NewMemoryStore()
	issuer := ca.New(quiet, memory, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "the default"}})
	front := wfe.New(quiet, memory, va.New(quiet, httpPort, tlsPort, false, dns, memory), issuer, []string{"example"}, false, false, 1, 1)
	handler := front.Handler()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.refuses.Load() {
			http.Error(w, "closed for today", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL + wfe.DirectoryPath
	a.roots = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	root, err := x509.ParseCertificate(issuer.GetRootCert(0).DER)
	if err != nil {
		t.Fatal(err)
	}
	a.issuer.AddCert(root)
	return a
}

// port serves c, by HTTP and TLS on ports of their own, and counts who asks for a page.
func port(t *testing.T, c *Certs) (httpPort, tlsPort int) {
	t.Helper()
	listen := func() net.Listener {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	plain, secure := listen(), listen()
	s := &http.Server{ErrorLog: stdlog.New(io.Discard, "", 0), Handler: c.Challenge(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "page") }))}
	go s.Serve(plain)
	go s.Serve(tls.NewListener(secure, c.TLS()))
	t.Cleanup(func() { s.Close() })
	return plain.Addr().(*net.TCPAddr).Port, secure.Addr().(*net.TCPAddr).Port
}

// visit opens the page by https under a name, as a browser does that trusts roots.
func visit(t *testing.T, port int, name string, roots *x509.CertPool) (*x509.Certificate, error) {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{ServerName: name, RootCAs: roots})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// closed is a port at which nobody listens.
func closed(t *testing.T) int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// TestAuthority: a certificate comes from a real ACME server that reaches the port by HTTP alone or by TLS alone, for the
// names that were set and no others, and is kept for the next start.
func TestAuthority(t *testing.T) {
	for _, way := range []string{"http", "tls"} {
		t.Run(way, func(t *testing.T) {
			dir := t.TempDir()
			c := New(dir, nil)
			byHTTP, byTLS := port(t, c)
			a := newAuthority(t, byHTTP, closed(t))
			if way == "tls" {
				a = newAuthority(t, closed(t), byTLS)
			}
			terms := Terms{ACME: &ACME{Hosts: []string{"play.example.net", "voice.example.net"}, Directory: a.url, Roots: a.roots}}
			if err := c.Apply(terms); err != nil {
				t.Fatal(err)
			}
			for _, st := range c.States(t.Context()) {
				if st.Err != nil || time.Until(st.Until) < time.Hour || st.Advice(time.Now()) != "" {
					t.Fatalf("%+v", st)
				}
			}
			leaf, err := visit(t, byTLS, "play.example.net", a.issuer)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := visit(t, byTLS, "evil.example.net", a.issuer); err == nil {
				t.Error("a certificate for a name that was not set")
			}
			if res, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", byHTTP)); err != nil || res.StatusCode != 200 {
				t.Error("the page by http:", err)
			} else {
				res.Body.Close()
			}
			a.refuses.Store(true)
			again := New(dir, nil)
			if err := again.Apply(terms); err != nil {
				t.Fatal(err)
			}
			_, byTLS = port(t, again)
			if now, err := visit(t, byTLS, "play.example.net", a.issuer); err != nil || !now.Equal(leaf) {
				t.Error("after a restart:", err)
			}
		})
	}
}

// TestAuthorityRefuses: what is wrong is in the log once, with what to do, and nobody waits for ever.
func TestAuthorityRefuses(t *testing.T) {
	var log bytes.Buffer
	c := New(t.TempDir(), slog.New(slog.NewTextHandler(&log, nil)))
	byHTTP, byTLS := port(t, c)
	a := newAuthority(t, byHTTP, byTLS)
	a.refuses.Store(true)
	if err := c.Apply(Terms{ACME: &ACME{Hosts: []string{"play.example.net"}, Directory: a.url, Roots: a.roots}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.report(t.Context(), time.Now())
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "port 80 or 443") || !strings.Contains(log.String(), "play.example.net") {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	if !c.On() || !c.Trusted() {
		t.Error("TLS is off")
	}
}

// TestTermsChange: a swap cuts no connection, and is there with the next one.
func TestTermsChange(t *testing.T) {
	c := New(t.TempDir(), nil)
	_, at := port(t, c)
	if _, err := visit(t, at, "a.example", nil); err == nil || c.On() {
		t.Fatal("TLS without a certificate")
	}
	if err := c.Apply(Terms{SelfSigned: []string{"127.0.0.1", "a.example"}}); err != nil {
		t.Fatal(err)
	}
	roots := func() *x509.CertPool {
		p, one := x509.NewCertPool(), c.now.Load().one
		leaf, err := leafOf(one)
		if err != nil {
			t.Fatal(err)
		}
		p.AddCert(leaf)
		return p
	}
	first := roots()
	open, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", at), &tls.Config{ServerName: "a.example", RootCAs: first})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if err := c.Apply(Terms{SelfSigned: []string{"b.example"}}); err != nil {
		t.Fatal(err)
	}
	if leaf, err := visit(t, at, "b.example", roots()); err != nil {
		t.Error(err, leaf)
	}
	fmt.Fprintf(open, "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
	if b, err := io.ReadAll(open); err != nil || !strings.HasSuffix(string(b), "page") {
		t.Errorf("the open connection: %q, %v", b, err)
	}
	if c.Trusted() {
		t.Error("a certificate of our own counts as trusted")
	}
	if err := c.Apply(Terms{}); err != nil || c.On() {
		t.Error("TLS is still on:", err)
	}
}

// TestSelfSignedStays: from start to start, as long as it is good for the names.
func TestSelfSignedStays(t *testing.T) {
	dir := t.TempDir()
	get := func(names ...string) []byte {
		c := New(dir, nil)
		if err := c.Apply(Terms{SelfSigned: names}); err != nil {
			t.Fatal(err)
		}
		return c.now.Load().one.Certificate[0]
	}
	first := get("::1", "127.0.0.1", "localhost")
	if !bytes.Equal(first, get("::1", "127.0.0.1", "localhost")) {
		t.Error("made anew")
	}
	if info, err := os.Stat(dir + "/self-signed.pem"); err != nil || info.Mode().Perm() != 0o600 {
		t.Error("others may read the key:", err, info.Mode())
	}
	if bytes.Equal(first, get("localhost", "play.example.net")) {
		t.Error("not for the new names")
	}
	c := New(dir+"/self-signed.pem/not-a-folder", nil)
	if err := c.Apply(Terms{SelfSigned: []string{"localhost"}}); err == nil || c.On() {
		t.Error("kept nowhere")
	}
}

func TestAdvice(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		s    State
		want string
	}{
		{State{Until: now.Add(15 * 24 * time.Hour)}, ""},
		{State{Until: now.Add(13 * 24 * time.Hour)}, "runs out on 14 December 2026"},
		{State{Until: now}, "has run out"},
		{State{Err: errors.New("refused")}, "port 80 or 443"},
	} {
		if got := c.s.Advice(now); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.s, got, c.want)
		}
	}
}
