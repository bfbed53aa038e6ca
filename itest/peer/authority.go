package peer

import (
	"crypto/x509"
	"encoding/pem"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/letsencrypt/challtestsrv"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"go.uber.org/goleak"
)

// AuthorityLeft names the goroutines that an [Authority] leaves behind, which never end.
func AuthorityLeft() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/letsencrypt/pebble/v2/va.VAImpl.processTasks")
}

// Authority is Let's Encrypt's own server for tests, which knows every name as this machine and reaches it at the two
// ports.
type Authority struct {
	URL     string         // of its directory
	Roots   *x509.CertPool // of that URL
	RootCA  string         // the same as a file
	Issuer  *x509.CertPool // of its certificates
	Refuses atomic.Bool    // everything, for now
}

// NewAuthority starts one that comes to httpPort and tlsPort in place of 80 and 443.
func NewAuthority(t *testing.T, httpPort, tlsPort int) *Authority {
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

	a := &Authority{Issuer: x509.NewCertPool()}
	memory := db.NewMemoryStore()
	issuer := ca.New(quiet, memory, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "the default"}})
	front := wfe.New(quiet, memory, va.New(quiet, httpPort, tlsPort, false, dns, memory), issuer, []string{"example"}, false, false, 1, 1)
	handler := front.Handler()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.Refuses.Load() {
			http.Error(w, "closed for today", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	a.URL = server.URL + wfe.DirectoryPath
	a.Roots = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	root, err := x509.ParseCertificate(issuer.GetRootCert(0).DER)
	if err != nil {
		t.Fatal(err)
	}
	a.Issuer.AddCert(root)
	a.RootCA = filepath.Join(t.TempDir(), "root.pem")
	if err := os.WriteFile(a.RootCA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	return a
}
