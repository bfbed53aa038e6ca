package itest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/offer"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/voice/client"
)

// askVoice asks for voice and returns the answer.
func (c *wire) askVoice() packet.PluginMessage {
	c.t.Helper()
	hello := packet.AppendPluginMessage(nil, packet.PluginMessage{Channel: offer.Hello, Data: offer.AppendHello(nil)})
	id, _ := c.v.ID(proto.Play, proto.Serverbound, proto.CustomPayload)
	if err := c.w.Packet(id, hello); err != nil {
		c.t.Fatal(err)
	}
	for {
		m, err := packet.ParsePluginMessage(c.until(proto.CustomPayload))
		if err != nil {
			c.t.Fatal(err)
		}
		if strings.HasPrefix(m.Channel, offer.Prefix) {
			return m
		}
	}
}

// invited asks for voice and returns what is offered.
func (c *wire) invited() offer.Offer {
	c.t.Helper()
	m := c.askVoice()
	o, err := offer.ParseHandshake(m.Data)
	if m.Channel != offer.Handshake || err != nil {
		c.t.Fatalf("the answer on %s: %v", m.Channel, err)
	}
	return o
}

// TestNoVoiceForOldClients: a client of 1.8 is told why there is no voice, on a channel whose name it can read.
func TestNoVoiceForOldClients(t *testing.T) {
	p := start(t, "online: false\nvoice: {enabled: false}\n")
	m := logIn(t, p.addr, "Ann").askVoice()
	if r, err := offer.ParseUnavailable(m.Data); m.Channel != offer.Unavail || r != offer.Disabled || err != nil {
		t.Errorf("the answer on %s is %q, %v", m.Channel, r, err)
	}
}

// reverseProxy returns one that connects from an address of this machine, and tells by X-Forwarded-For who has asked
// it.
func reverseProxy(t *testing.T, to, from string) (base string) {
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: to}) // it asks by that host, as they do unless told otherwise
		for _, name := range []string{"Forwarded", "X-Forwarded-For"} {
			r.Out.Header[name] = r.In.Header[name]
		}
		r.SetXForwarded()
	}}
	tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(ctx, network, addr)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	proxy.Transport = tr
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL
}

// TestReverseProxies: behind one that http-proxies names each client is itself, for /metrics and for failures; through
// any other one nobody is from here.
func TestReverseProxies(t *testing.T) {
	const frontend, outside = "127.0.0.2", "127.0.0.9"
	t.Setenv("EARSHOT_LIMITS_CONNECTIONS", "{per-second: 1000, burst: 1000}")
	p := newProgram(t, "")
	trusted, stranger := reverseProxy(t, p.addr, frontend), reverseProxy(t, p.addr, "127.0.0.4")
	public := strings.Replace(trusted, "http:", "ws:", 1) + "/earshot/"
	p.write(fmt.Sprintf("online: false\nhttp-proxies: [%s]\nadmin: {networks: [127.0.0.1]}\nvoice: {public-url: %q}\n", frontend, public))
	p.run()

	ask := func(base, from string, headers ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequest("GET", base+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			if r.Header.Set(name, value); name == "Host" {
				r.Host = value
			}
		}
		resp, err := through(t, from, nil, nil).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b := make([]byte, 200)
		n, _ := resp.Body.Read(b)
		return resp.StatusCode, string(b[:n])
	}
	direct := "http://" + p.addr
	for _, c := range []struct {
		name, base, from string
		headers          []string
		status           int
		says             string
	}{
		{"from here", direct, "127.0.0.1", nil, 200, ""},
		{"from elsewhere", direct, outside, nil, 403, "admin.networks"},
		{"from here, through the reverse proxy", trusted, "127.0.0.1", nil, 200, ""},
		{"from elsewhere, through the reverse proxy", trusted, outside, nil, 403, "admin.networks"},
		{"the same, and says it was from here", trusted, outside, []string{"X-Forwarded-For: 127.0.0.1"}, 403, "admin.networks"},
		{"the same in the other header", trusted, outside, []string{"Forwarded: for=127.0.0.1"}, 403, ""},
		{"from here, through another one", stranger, "127.0.0.1", nil, 403, ""},
		{"from here, with a header of its own", direct, "127.0.0.1", []string{"X-Forwarded-For: 127.0.0.1"}, 403, "http-proxies"},
		{"by a name that is none of ours", direct, "127.0.0.1", []string{"Host: evil.example"}, 403, "admin.hosts"},
	} {
		if status, body := ask(c.base, c.from, c.headers...); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %q", c.name, status, body)
		}
	}

	// Failures are those of the client, not of the reverse proxy, and whoever has a good token is let in.
	ann := logIn(t, p.addr, "Ann")
	o := ann.invited()
	if want := trusted + "/earshot"; o.URL != want {
		t.Errorf("the base URL is %s, want %s", o.URL, want)
	}
	bad := through(t, outside, nil, nil)
	statuses := map[int]int{}
	for range 22 {
		status, _ := get(t, bad, trusted+"/earshot/voice")
		statuses[status]++
	}
	if statuses[400] != 20 || statuses[429] != 2 {
		t.Errorf("22 plain requests of one address: %v", statuses)
	}
	if status, body := get(t, through(t, "127.0.0.10", nil, nil), trusted+"/voice"); status != 400 {
		t.Errorf("another address behind the same reverse proxy: %d %s", status, body)
	}
	dialVoice := func(o offer.Offer, origin string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c, err := client.Dial(ctx, client.Config{
			URL: o.URL, Token: o.Token, Player: offlineID("Ann"), Ask: caps.Set{Audio: 2}, Subprotocol: true, Header: http.Header{"Origin": {origin}},
		})
		if err == nil {
			c.Close()
		}
		return err
	}
	if err := dialVoice(o, trusted); err != nil { // a page of public-url's host, asked for by another
		t.Error(err)
	}
	var refused *client.Refused
	if err := dialVoice(ann.invited(), "https://evil.example"); !errors.As(err, &refused) || refused.Status != 403 {
		t.Errorf("a page from elsewhere: %v", err)
	}
}

// TestOneStrangerShutsNobodyOut: while somebody at the same address fails all the time, others' tokens are good.
func TestOneStrangerShutsNobodyOut(t *testing.T) {
	t.Setenv("EARSHOT_LIMITS_CONNECTIONS", "{per-second: 1000, burst: 1000}")
	p := start(t, "online: false\n")
	ann := logIn(t, p.addr, "Ann")
	web := through(t, "", nil, nil)
	for i := range 25 {
		if i%2 == 0 {
			get(t, web, "http://"+p.addr+"/voice")
			continue
		}
		_, err := client.Dial(t.Context(), client.Config{URL: "http://" + p.addr, Token: strings.Repeat("x", 43), Player: offlineID("Ann")})
		var refused *client.Refused
		if !errors.As(err, &refused) {
			t.Fatal(err)
		}
	}
	for range 3 {
		o := ann.invited()
		c, err := client.Dial(t.Context(), client.Config{URL: "http://" + p.addr, Token: o.Token, Player: offlineID("Ann")})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if p.metric(`earshot_voice_refused_total{reason="rate_limited"}`) == 0 {
		t.Error("no failure was slowed down: that was no test")
	}
}
