package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/gobwas/ws"
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
)

// Refused is the server's answer over HTTP instead of an upgrade.
type Refused struct {
	Status int
	Reason string // first line of the body
}

// Error implements error.
func (r *Refused) Error() string {
	return fmt.Sprintf("voice: the server refuses the connection: %d %s", r.Status, r.Reason)
}

// upgrade dials and settles the capabilities by the response alone: it uses none that the response does not echo, or
// echoes in another version.
func upgrade(ctx context.Context, cfg *Config) (net.Conn, *bufio.Reader, caps.Set, error) {
	address, err := endpoint(cfg.URL, cfg.Token, cfg.Player)
	if err != nil {
		return nil, nil, caps.Set{}, err
	}
	ask, echoed := http.Header{}, http.Header{}
	for name, values := range cfg.Header {
		ask[name] = values
	}
	d := ws.Dialer{NetDial: cfg.Dial, TLSConfig: cfg.TLS, Header: ws.HandshakeHeaderHTTP(ask)}
	if cfg.Subprotocol {
		d.Protocols = tokens(cfg.Ask)
	} else {
		cfg.Ask.ToHeaders(ask)
	}
	d.OnHeader = func(key, value []byte) error {
		echoed[string(key)] = append(echoed[string(key)], string(value))
		return nil
	}
	var refused *Refused
	d.OnStatusError = func(status int, _ []byte, resp io.Reader) { refused = readRefusal(status, resp) }
	conn, br, hs, err := d.Dial(ctx, address)
	if err != nil {
		if refused != nil {
			err = refused
		}
		return nil, nil, caps.Set{}, fmt.Errorf("voice: dial: %w", err)
	}
	var granted caps.Set
	if cfg.Subprotocol {
		granted, _ = caps.FromToken(hs.Protocol) // one of ours, or none: nothing granted
	} else {
		granted = settle(cfg.Ask, caps.FromHeaders(echoed))
	}
	return conn, br, granted, nil
}

// settle returns what both sides agreed on: asked and echoed in the same version, along with all that it builds on.
func settle(asked, echoed caps.Set) caps.Set {
	if echoed.Soundboard != asked.Soundboard {
		asked.Soundboard = 0 // a server with version 2 serves version 1, but by echoing 1
	}
	return asked.Negotiate(echoed)
}

// tokens returns the subprotocols to offer: first everything that is asked for, then less and less, giving up first
// what this client needs least, and nothing at last.
func tokens(ask caps.Set) []string {
	s := ask.Negotiate(ask)
	all := []string{s.Token()}
	for _, give := range []func(){
		func() { s.Roster = 0 },
		func() { s.GroupEdit = 0 }, func() { s.Groups, s.GroupEdit = 0, 0 }, func() { s.Soundboard = 0 }, func() { s.Speakers = 0 },
		func() { s.Pose = 0 }, func() { s.Spatial = 0 }, func() { s.Status = 0 }, func() { s.Audio = 0 },
	} {
		give()
		s = s.Negotiate(s)
		if t := s.Token(); t != all[len(all)-1] {
			all = append(all, t)
		}
	}
	return all
}

// endpoint returns the address of the socket under a base URL.
func endpoint(base, token string, player uuid.UUID) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("voice: base URL: %w", err)
	}
	switch u.Scheme {
	case "http", "ws":
		u.Scheme = "ws"
	case "https", "wss":
		u.Scheme = "wss"
	default:
		return "", fmt.Errorf("voice: base URL %q must begin with ws, wss, http or https", base)
	}
	if u.Host == "" {
		return "", fmt.Errorf("voice: base URL %q names no host", base)
	}
	u = u.JoinPath("voice")
	u.RawQuery, u.Fragment = url.Values{"token": {token}, "uuid": {player.String()}}.Encode(), ""
	return u.String(), nil
}

func readRefusal(status int, resp io.Reader) *Refused {
	r := &Refused{Status: status}
	answer, err := http.ReadResponse(bufio.NewReader(resp), nil)
	if err != nil {
		return r
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, 512))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return r
	}
	r.Reason, _, _ = strings.Cut(string(body), "\n")
	return r
}
