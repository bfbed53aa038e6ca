package configs

import (
	"net/netip"
	"net/url"
	"strings"
)

// check checks the sources of certificates.
func (t *TLS) check(p *problems) {
	if (t.Certificate == "") != (t.Key == "") {
		p.bad("tls", "needs both certificate and key")
	}
	ways := 0
	for _, on := range []bool{t.Certificate != "", len(t.ACME.Hosts) > 0, t.SelfSigned} {
		if on {
			ways++
		}
	}
	if ways > 1 {
		p.bad("tls", "certificates come from one place: certificate and key, or acme, or self-signed")
	}
	a := &t.ACME
	for _, h := range a.Hosts {
		_, err := netip.ParseAddr(h)
		if err == nil || !strings.Contains(strings.Trim(h, "."), ".") || strings.ContainsAny(h, "/:* ") {
			p.bad("tls.acme.hosts", "%q is no host name that an authority gives a certificate for: write play.example.net, without https:// and port", h)
		}
	}
	if len(a.Hosts) == 0 && (a.Email != "" || a.Directory != "" || a.RootCA != "") {
		p.bad("tls.acme.hosts", "names no host, so that nothing is asked for")
	}
	if a.Email != "" && !strings.Contains(a.Email, "@") {
		p.bad("tls.acme.email", "%q is no address", a.Email)
	}
	if a.Directory != "" {
		if u, err := url.Parse(a.Directory); err != nil || u.Scheme != "https" || u.Host == "" {
			p.bad("tls.acme.directory", "%q is no URL of an authority: it begins with https://", a.Directory)
		}
	}
}
