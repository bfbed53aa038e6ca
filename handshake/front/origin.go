package front

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Ours reports whether a request may use something that belongs to a player. Browsers name in Origin the page that
// asks, as WebSockets are not bound to one site. A page of the requested host may, and those in more, as
// scheme://host[:port]. Programs that are not browsers send no origin and may.
func Ours(r *http.Request, more []string) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	if len(origins) > 1 {
		return false
	}
	u, err := url.Parse(origins[0])
	if err != nil {
		return false
	}
	if u.Host != "" && strings.EqualFold(withoutPort(u.Host, u.Scheme), withoutPort(r.Host, u.Scheme)) {
		return true
	}
	return slices.ContainsFunc(more, func(o string) bool { return strings.EqualFold(o, origins[0]) })
}

// withoutPort drops the port that the scheme implies.
func withoutPort(host, scheme string) string {
	switch scheme {
	case "http":
		return strings.TrimSuffix(host, ":80")
	case "https":
		return strings.TrimSuffix(host, ":443")
	}
	return host
}
