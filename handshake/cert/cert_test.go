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
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, peer.AuthorityLeft()) }

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

// closed returns a port at which nobody listens.
func closed(t *testing.T) int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// TestAuthority: a certificate comes from a real ACME server that reaches the port by HTTP alone or by TLS alone, for
// the names that were set and no others, and is kept for the next start.
func TestAuthority(t *testing.T) {
	for _, way := range []string{"http", "tls"} {
		t.Run(way, func(t *testing.T) {
			dir := t.TempDir()
			c := New(dir, nil)
			byHTTP, byTLS := port(t, c)
			a := peer.NewAuthority(t, byHTTP, closed(t))
			if way == "tls" {
				a = peer.NewAuthority(t, closed(t), byTLS)
			}
			terms := Terms{ACME: &ACME{Hosts: []string{"play.example.net", "voice.example.net"}, Directory: a.URL, Roots: a.Roots}}
			if err := c.Apply(terms); err != nil {
				t.Fatal(err)
			}
			for _, st := range c.States(t.Context()) {
				if st.Err != nil || time.Until(st.Until) < time.Hour || st.Advice(time.Now()) != "" {
					t.Fatalf("%+v", st)
				}
			}
			leaf, err := visit(t, byTLS, "play.example.net", a.Issuer)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := visit(t, byTLS, "evil.example.net", a.Issuer); err == nil {
				t.Error("a certificate for a name that was not set")
			}
			if res, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", byHTTP)); err != nil || res.StatusCode != 200 {
				t.Error("the page by http:", err)
			} else {
				res.Body.Close()
			}
			a.Refuses.Store(true)
			again := New(dir, nil)
			if err := again.Apply(terms); err != nil {
				t.Fatal(err)
			}
			_, byTLS = port(t, again)
			if now, err := visit(t, byTLS, "play.example.net", a.Issuer); err != nil || !now.Equal(leaf) {
				t.Error("after a restart:", err)
			}
		})
	}
}

// TestAuthorityRefuses: what is wrong is in the log once, with what to do, and nobody waits for ever.
func TestAuthorityRefuses(t *testing.T) {
	var log testkit.Log
	c := New(t.TempDir(), log.Logger(slog.LevelInfo))
	byHTTP, byTLS := port(t, c)
	a := peer.NewAuthority(t, byHTTP, byTLS)
	a.Refuses.Store(true)
	if err := c.Apply(Terms{ACME: &ACME{Hosts: []string{"play.example.net"}, Directory: a.URL, Roots: a.Roots}}); err != nil {
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
