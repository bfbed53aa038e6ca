package upgrade

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gobwas/ws"
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
)

// dictated is a connection that keeps what is written to it and never answers.
type dictated struct {
	net.Conn
	bytes.Buffer
}

func (d *dictated) Read([]byte) (int, error)    { return 0, errors.New("nobody is there") }
func (d *dictated) Write(b []byte) (int, error) { return d.Buffer.Write(b) }

// said returns what a client that somebody else wrote sends.
func said(d ws.Dialer, address string) []byte {
	var c dictated
	u, _ := url.Parse(address)
	d.Upgrade(&c, u)
	return c.Bytes()
}

// redeemer knows one token, and whether anybody tried it.
type redeemer struct{ asked, redeemed bool }

func (r *redeemer) Redeem(token string, player uuid.UUID) bool {
	r.asked = true
	r.redeemed = token == "good" && player == ann
	return r.redeemed
}

// FuzzRequest: of all that net/http takes for a request, only a whole one with the token gets a socket, with nothing
// negotiated that is not offered, and a token is tried only by one that lacks nothing else.
func FuzzRequest(f *testing.F) {
	s := &stand{tokens: &tokens{left: map[string]uuid.UUID{}}, t: new(testing.T)}
	id := "&uuid=" + ann.String()
	for _, change := range [][]string{
		nil,
		{"> GET /voice?token=good%zz" + id + " HTTP/1.1"},
		{"> GET /voice?token=bad&token=good" + id + " HTTP/1.1"},
		{"> POST /voice?token=good" + id + " HTTP/1.1", "Transfer-Encoding: chunked"},
		{"Origin: http://voice.example:25565", "Sec-WebSocket-Version: 14"},
		{"Origin: https://panel.example", "Sec-WebSocket-Protocol: " + caps.Newest().Token() + "\nSec-WebSocket-Protocol: socketsvc"},
		{"Origin: https://evil.example"},
		{"X-SocketSVC-Audio: 2", "x-socketsvc-spatial: 1", "X-SocketSVC-Pose: 1, 2", "X-SocketSVC-Status: 9999999999"},
	} {
		f.Add([]byte(s.request(change...)))
	}
	for _, d := range []ws.Dialer{{}, {
		Protocols: []string{caps.Newest().Token(), "socketsvc.audio-2", "socketsvc"},
		Header:    ws.HandshakeHeaderHTTP{"Origin": {"https://panel.example"}},
	}} {
		f.Add(said(d, "ws://voice.example:25565/voice?token=good"+id))
	}
	offered := caps.Set{Audio: 2, Status: 1, Spatial: 1, Pose: 1}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		var tokens redeemer
		h := New(Config{Tokens: &tokens, Offered: func() caps.Set { return offered }, Online: func(id uuid.UUID) bool { return id == ann }, Origins: []string{"https://panel.example"}})
		guest, no := h.check(r)
		if (no == nil) != (guest != nil && guest.Name == ann.String()) || (no == nil) != tokens.redeemed {
			t.Fatalf("%q: %+v, refusal %+v, token redeemed: %v", raw, guest, no, tokens.redeemed)
		}
		if tokens.asked && no != nil && no != &badToken {
			t.Fatalf("%q tried a token and was refused as %s", raw, no.Reason)
		}
		token, set := negotiate(r.Header, offered)
		if set.Negotiate(offered) != set.Set {
			t.Fatalf("%q: negotiated %+v", raw, set)
		}
		if token != "" && !slices.Contains(list(r.Header, "Sec-WebSocket-Protocol"), token) {
			t.Fatalf("%q: answered by the subprotocol %q", raw, token)
		}
		if strings.ContainsAny(token, "\r\n") {
			t.Fatalf("%q ends its header", token)
		}
	})
}
