// Package front tells which client an HTTP request is from when reverse proxies stand in front. It promises that it
// believes only the named ones, that no client of theirs can forge what they say, and that a request through any other
// proxy never counts as one from this machine or its network.
package front

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
)

// The headers in which reverse proxies name the client: the first two are read (RFC 7239 has the second), all of them
// show that somebody stands in between.
const (
	forwardedFor = "X-Forwarded-For"
	forwarded    = "Forwarded"
)

var passedOn = []string{forwardedFor, forwarded, "X-Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server",
	"X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Via"}

// Direct reports whether only trusted proxies stand between the client and this process. [Front] takes away the headers
// that it has believed; if one is left in a request, its origin is unknown.
func Direct(r *http.Request) bool {
	for _, name := range passedOn {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	return true
}

// warnEvery is how often an administrator is told of a reverse proxy that no setting names.
const warnEvery = 5 * time.Minute

// Front is the handler before all others.
type Front struct {
	next    http.Handler
	log     *slog.Logger
	trusted atomic.Pointer[[]netip.Prefix]
	warned  atomic.Int64 // unix ns
}

// New puts a Front before next. log may be nil.
func New(next http.Handler, log *slog.Logger) *Front {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := &Front{next: next, log: log}
	f.SetTrusted(nil)
	return f
}

// SetTrusted replaces the networks of trusted reverse proxies, for requests from now on. nil: none.
func (f *Front) SetTrusted(networks []netip.Prefix) { f.trusted.Store(&networks) }

// Trusts reports whether addr is that of a trusted reverse proxy, with many clients behind it.
func (f *Front) Trusts(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, n := range *f.trusted.Load() {
		if n.Contains(addr) {
			return true
		}
	}
	return false
}

// ServeHTTP hands the request on with the client's address as its RemoteAddr; the port is 0 where a header named it.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !Direct(r) {
		r = f.resolve(r)
	}
	f.next.ServeHTTP(w, r)
}

func (f *Front) resolve(r *http.Request) *http.Request {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r
	}
	if !f.Trusts(peer.Addr()) {
		if a := peer.Addr().Unmap(); a.IsLoopback() || a.IsPrivate() { // a stranger with made-up headers is no news
			f.warn("a request came through a reverse proxy that is not trusted; its clients count as one. Is it yours? http-proxies names those", a)
		}
		return r
	}
	client, ok := f.client(r.Header, peer.Addr().Unmap().WithZone(""))
	if !ok {
		f.warn("a trusted reverse proxy does not name the client, or not clearly: it has to set one of X-Forwarded-For and Forwarded, and remove the other", peer.Addr().Unmap())
	}
	out := new(http.Request)
	*out = *r
	if client.IsValid() && client != peer.Addr().Unmap().WithZone("") {
		out.RemoteAddr = netip.AddrPortFrom(client, 0).String()
	}
	if ok {
		out.Header = r.Header.Clone()
		for _, name := range passedOn {
			out.Header.Del(name)
		}
	}
	return out
}

func (f *Front) warn(what string, peer netip.Addr) {
	now, last := time.Now().UnixNano(), f.warned.Load()
	if (last == 0 || now-last >= int64(warnEvery)) && f.warned.CompareAndSwap(last, now) {
		f.log.Warn(what, "peer", peer)
	}
}

// client returns the address of the client of the first trusted proxy in a row; peer is the last of these. sure is
// false where the address is not certain: then it is the last one that is known.
func (f *Front) client(h http.Header, peer netip.Addr) (netip.Addr, bool) {
	one, other := split(h[forwardedFor], false), split(h[forwarded], true)
	switch {
	case len(one) == 0 && len(other) == 0:
		return peer, false
	case len(other) == 0:
		return f.last(one, peer)
	case len(one) == 0:
		return f.last(other, peer)
	}
	// A proxy sets one of them and passes on what the client put into the other.
	a, aok := f.last(one, peer)
	b, bok := f.last(other, peer)
	if a != b || !aok || !bok {
		return peer, false
	}
	return a, true
}

// last returns the last address of a chain that is not trusted. Where all are, it returns the first one.
func (f *Front) last(chain []string, peer netip.Addr) (netip.Addr, bool) {
	for i := len(chain) - 1; i >= 0; i-- {
		a, ok := address(chain[i])
		if !ok {
			return peer, false
		}
		if peer = a; !f.Trusts(a) {
			break
		}
	}
	return peer, true
}

// split takes the lines of a header apart; of Forwarded it gives the for of each element.
func split(lines []string, pairs bool) (chain []string) {
	for _, line := range lines {
		for element := range fields(line, ',') {
			if !pairs {
				chain = append(chain, element)
				continue
			}
			whom := ""
			for pair := range fields(element, ';') {
				if name, value, _ := strings.Cut(pair, "="); strings.EqualFold(strings.TrimSpace(name), "for") {
					whom = strings.Trim(strings.TrimSpace(value), `"`)
				}
			}
			chain = append(chain, whom)
		}
	}
	return chain
}

// fields returns the parts of s between separators outside quotes, without the space around them.
func fields(s string, sep byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		quoted, begin := false, 0
		for i := 0; i <= len(s); i++ {
			switch {
			case i == len(s) || s[i] == sep && !quoted:
				if !yield(strings.TrimSpace(s[begin:i])) {
					return
				}
				begin = i + 1
			case s[i] == '"':
				quoted = !quoted
			case s[i] == '\\' && quoted:
				i++
			}
		}
	}
}

// address reads 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1] and [2001:db8::1]:80.
func address(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		p, perr := netip.ParseAddrPort(s)
		if perr != nil {
			return netip.Addr{}, false
		}
		a = p.Addr()
	}
	return a.Unmap().WithZone(""), true
}
