// Package cert keeps the certificates of the port: from files, from an authority that speaks ACME (RFC 8555; Let's
// Encrypt is one), or made here for trials. It promises that it replaces a certificate without cutting a connection,
// that it serves an old one for as long as there is no better one, and that it warns the administrator before one runs
// out.
package cert

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// Times of certificates.
const (
	Warn      = 14 * 24 * time.Hour // before one runs out, the log says so
	renew     = 30 * 24 * time.Hour // before one of an authority runs out, the next is asked for
	lookEvery = time.Hour           // between looks at what there is
	warnEvery = 24 * time.Hour      // between two warnings of one thing
	fetchTime = 5 * time.Minute     // of an authority
	selfLife  = 397 * 24 * time.Hour
)

// Terms say where certificates come from. The first of Files, ACME and SelfSigned that is set counts; with none, the
// port speaks no TLS.
type Terms struct {
	Files      *tls.Certificate
	ACME       *ACME
	SelfSigned []string // names and addresses of a certificate to be made here
}

// ACME is an authority that gives certificates for host names, once it has reached this port at them: at port 80 by
// HTTP (http-01), or at 443 by TLS (tls-alpn-01).
type ACME struct {
	Hosts     []string
	Email     string         // for news of the authority; may be empty
	Directory string         // URL; empty: Let's Encrypt
	Roots     *x509.CertPool // of the directory; nil: the system's
}

func (a *ACME) equal(b *ACME) bool {
	return a != nil && b != nil && slices.Equal(a.Hosts, b.Hosts) && a.Email == b.Email && a.Directory == b.Directory &&
		(a.Roots == nil) == (b.Roots == nil) && (a.Roots == nil || a.Roots.Equal(b.Roots))
}

// Certs holds the current certificates. Its methods may be called from any goroutine.
type Certs struct {
	dir string
	log *slog.Logger

	applying sync.Mutex
	now      atomic.Pointer[source]
	look     chan struct{}
	last     atomic.Pointer[[]State]
}

// source gets certificates under some terms.
type source struct {
	terms   Terms
	one     *tls.Certificate  // files or self-signed
	manager *autocert.Manager // or this
	answers http.Handler      // the manager's, to an authority that asks by HTTP
	warned  map[string]time.Time
}

// New returns Certs that hold no certificate yet. It keeps what it makes and fetches in dir, and makes dir when needed.
func New(dir string, log *slog.Logger) *Certs {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Certs{dir: dir, log: log, look: make(chan struct{}, 1)}
	c.now.Store(&source{})
	return c
}

// Apply puts other terms in force from the next connection on. It fails, and changes nothing, where a certificate of
// our own cannot be made or kept.
func (c *Certs) Apply(t Terms) error {
	c.applying.Lock()
	defer c.applying.Unlock()
	was, s := c.now.Load(), &source{terms: t, warned: map[string]time.Time{}}
	switch {
	case t.Files != nil:
		s.one = t.Files
	case t.ACME != nil:
		if s.terms.ACME.equal(was.terms.ACME) && was.manager != nil {
			s.manager, s.answers = was.manager, was.answers // with its certificates and those it is waiting for
			break
		}
		s.manager = &autocert.Manager{
			Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(filepath.Join(c.dir, "acme")), Email: t.ACME.Email,
			HostPolicy: autocert.HostWhitelist(t.ACME.Hosts...), RenewBefore: renew,
			Client: &acme.Client{DirectoryURL: t.ACME.Directory, UserAgent: "earshot", RetryBackoff: backoff, HTTPClient: &http.Client{
				Timeout:   fetchTime,
				Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: t.ACME.Roots}, DisableKeepAlives: true},
			}},
		}
		s.answers = s.manager.HTTPHandler(nil) // from now on it has authorities ask by HTTP, too
	case len(t.SelfSigned) > 0:
		one, err := c.selfSigned(t.SelfSigned)
		if err != nil {
			return err
		}
		s.one = one
	}
	c.now.Store(s)
	select {
	case c.look <- struct{}{}:
	default:
	}
	return nil
}

// backoff returns the wait for an authority that is busy, three times; [Certs.Run] and later visitors try again.
func backoff(n int, _ *http.Request, _ *http.Response) time.Duration {
	if n > 3 {
		return -1
	}
	return time.Duration(n) * 500 * time.Millisecond
}

// On reports whether the port speaks TLS.
func (c *Certs) On() bool { s := c.now.Load(); return s.one != nil || s.manager != nil }

// Trusted reports whether browsers take the certificates without asking, as far as that is known here.
func (c *Certs) Trusted() bool { s := c.now.Load(); return s.terms.Files != nil || s.manager != nil }

// errNone ends a TLS handshake that came in while the certificates were taken away.
var errNone = errors.New("there is no certificate any more")

// TLS returns how the port speaks TLS. Each connection gets the current certificate.
func (c *Certs) TLS() *tls.Config {
	base := &tls.Config{
		GetCertificate: c.get, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
		DynamicRecordSizingDisabled: true, // a batch of frames is one record
	}
	challenged := base.Clone()
	challenged.NextProtos = []string{"http/1.1", acme.ALPNProto}
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if c.now.Load().manager != nil {
			return challenged, nil
		}
		return nil, nil
	}
	return base
}

func (c *Certs) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s := c.now.Load()
	switch {
	case s.one != nil:
		return s.one, nil
	case s.manager == nil:
		return nil, errNone
	case hello.ServerName == "": // by address, or an old program
		named := *hello
		named.ServerName = s.terms.ACME.Hosts[0]
		hello = &named
	}
	return s.manager.GetCertificate(hello)
}

// challenges is the path at which an authority looks for an answer: RFC 8555, 8.3.
const challenges = "/.well-known/acme-challenge/"

// Challenge answers authorities, by http, and hands everything else on.
func (c *Certs) Challenge(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s := c.now.Load(); s.manager != nil && r.TLS == nil && strings.HasPrefix(r.URL.Path, challenges) {
			asked := new(http.Request)
			*asked = *r
			if host, _, err := net.SplitHostPort(r.Host); err == nil { // not at port 80, with nobody in front
				asked.Host = host
			}
			s.answers.ServeHTTP(w, asked)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// State describes one certificate that is there, or should be.
type State struct {
	Names []string
	Until time.Time // zero: there is none yet
	Err   error     // why not
}

// Of returns the state of one certificate.
func Of(c *tls.Certificate) State {
	leaf, err := leafOf(c)
	if err != nil {
		return State{Err: err}
	}
	return State{Names: append(slices.Clone(leaf.DNSNames), addresses(leaf.IPAddresses)...), Until: leaf.NotAfter}
}

// Last returns the states as they were last seen, without waiting for anything.
func (c *Certs) Last() []State {
	if last := c.last.Load(); last != nil {
		return *last
	}
	return nil
}

// States returns the states of all certificates. With ACME it asks for missing ones and waits for them, each at most as
// long as ctx.
func (c *Certs) States(ctx context.Context) (all []State) {
	s := c.now.Load()
	if s.one != nil {
		return []State{Of(s.one)}
	}
	if s.manager == nil {
		return nil
	}
	for _, host := range s.terms.ACME.Hosts {
		st := State{Names: []string{host}}
		// Ask as a browser of today, which takes the smaller kind of certificate.
		one, err := within(ctx, func() (*tls.Certificate, error) {
			return s.manager.GetCertificate(&tls.ClientHelloInfo{
				ServerName: host, SupportedVersions: []uint16{tls.VersionTLS13, tls.VersionTLS12},
				SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}, SupportedCurves: []tls.CurveID{tls.CurveP256},
				CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
			})
		})
		if err == nil {
			var leaf *x509.Certificate
			if leaf, err = leafOf(one); err == nil {
				st.Until = leaf.NotAfter
			}
		}
		st.Err = err
		all = append(all, st)
	}
	return all
}

// within gives up waiting for f when ctx is done; f ends by itself.
func within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("gave up: %w", ctx.Err())
	}
}

// Run fetches missing certificates, and warns of faults and of certificates that run out, until ctx is done.
func (c *Certs) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.look:
		case <-tick.C:
		}
		c.report(ctx, time.Now())
	}
}

func (c *Certs) report(ctx context.Context, now time.Time) {
	s := c.now.Load()
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	all := c.States(ctx)
	c.last.Store(&all)
	for _, st := range all {
		name := strings.Join(st.Names, ", ")
		if ctx.Err() != nil && st.Err != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return // the program ends
		}
		what := st.Advice(now)
		if what == "" {
			delete(s.warned, name)
			continue
		}
		if last, ok := s.warned[name]; ok && now.Sub(last) < warnEvery {
			continue
		}
		s.warned[name] = now
		c.log.Warn(what, "names", name, "error", st.Err)
	}
}

// Advice says what is wrong with a certificate and what to do; empty: nothing is.
func (s State) Advice(now time.Time) string {
	switch {
	case s.Err != nil:
		return "there is no certificate for this name: the authority has to reach this program under it, at port 80 or 443; forward one of them to the port of listen, and look at the DNS of the name"
	case !now.Before(s.Until):
		return "the certificate has run out; browsers refuse it, and nobody gets into the voice page"
	case s.Until.Sub(now) < Warn:
		return fmt.Sprintf("the certificate runs out on %s: renew the files, or see why the authority cannot reach this program at port 80 or 443", s.Until.UTC().Format("2 January 2006"))
	}
	return ""
}

func leafOf(c *tls.Certificate) (*x509.Certificate, error) {
	if c.Leaf != nil {
		return c.Leaf, nil
	}
	if len(c.Certificate) == 0 {
		return nil, errNone
	}
	return x509.ParseCertificate(c.Certificate[0])
}

func addresses(ips []net.IP) (out []string) {
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	return out
}

// selfSigned returns the certificate in dir for these names, or makes it. It stays the same from start to start, so
// that a browser that has accepted it is not asked again.
func (c *Certs) selfSigned(names []string) (*tls.Certificate, error) {
	file := filepath.Join(c.dir, "self-signed.pem")
	if one, err := tls.LoadX509KeyPair(file, file); err == nil {
		if leaf, err := leafOf(&one); err == nil && time.Until(leaf.NotAfter) > Warn &&
			slices.Equal(append(slices.Clone(leaf.DNSNames), addresses(leaf.IPAddresses)...), sorted(names)) {
			return &one, nil
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Earshot, for trials"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(selfLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("keeping a certificate: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("keeping a certificate: %w", err)
	}
	one, err := tls.X509KeyPair(text, text)
	return &one, err
}

// sorted puts names before addresses, as a certificate does.
func sorted(names []string) (out []string) {
	var ips []string
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			ips = append(ips, ip.String())
		} else {
			out = append(out, n)
		}
	}
	return append(out, ips...)
}
