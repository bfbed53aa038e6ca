package itest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
)

// secured asks /healthz under a name over https, and returns the certificate.
func secured(addr, name string, roots *x509.CertPool) (*x509.Certificate, error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: peer.Patience}, "tcp", addr, &tls.Config{ServerName: name, RootCAs: roots})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(peer.Patience))
	fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name)
	b := make([]byte, 12)
	if _, err := conn.Read(b); err != nil || string(b) != "HTTP/1.1 200" {
		return nil, fmt.Errorf("%q, %v", b, err)
	}
	return conn.ConnectionState().PeerCertificates[0], nil
}

// TestCertificateForTrials: one setting, in force while the program runs, and the same certificate after a restart.
func TestCertificateForTrials(t *testing.T) {
	p := newProgram(t, "")
	settings := "online: false\nadmin: {hosts: [voice.example]}\n"
	p.write(settings)
	p.run()
	p.write(settings + "tls: {self-signed: true}\n")
	roots := x509.NewCertPool()
	file := filepath.Join(p.dir, "tls", "self-signed.pem")
	testkit.Until(t, "a certificate in "+file, func() bool {
		b, err := os.ReadFile(file)
		return err == nil && roots.AppendCertsFromPEM(b)
	})
	var first *x509.Certificate
	for end := time.Now().Add(peer.Patience); first == nil; time.Sleep(20 * time.Millisecond) {
		var err error
		if first, err = secured(p.addr, "voice.example", roots); err != nil && time.Now().After(end) {
			t.Fatal(err)
		}
	}
	p.stop()
	p.run()
	if now, err := secured(p.addr, "localhost", roots); err != nil || !now.Equal(first) {
		t.Error("after a restart:", err)
	}
	res, err := http.Get("http://" + p.addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(b), `earshot_tls_certificate_expires_seconds{names="`) {
		t.Error("the certificate is not in /metrics:", err)
	}
}

// TestCertificateFromAnAuthority: the program asks for it by itself, answers the authority on its own port, and a name
// that gets none is in the log with what to do.
func TestCertificateFromAnAuthority(t *testing.T) {
	p := newProgram(t, "")
	_, portText, _ := net.SplitHostPort(p.addr)
	port, _ := strconv.Atoi(portText)
	a := peer.NewAuthority(t, port, port)
	a.Refuses.Store(true)
	p.write(fmt.Sprintf("online: false\ntls: {acme: {hosts: [play.example.net], directory: %q, root-ca: %q}}\n", a.URL, a.RootCA))
	p.run()
	p.says(1, "port 80 or 443")
	if res, err := http.Get("http://" + p.addr + "/healthz"); err != nil || res.StatusCode != 200 {
		t.Error("plain http, meanwhile:", err)
	} else {
		res.Body.Close()
	}
	p.stop()
	a.Refuses.Store(false)
	p.run()
	if _, err := secured(p.addr, "play.example.net", a.Issuer); err != nil {
		t.Error(err)
	}
	if _, err := secured(p.addr, "evil.example.net", a.Issuer); err == nil {
		t.Error("a certificate for a name that is not set")
	}
}
