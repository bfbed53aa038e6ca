package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/packet"
)

// maxProfile bounds the body of a session server's answer in bytes; a skin with its signature is 2 KiB.
const maxProfile = 64 << 10

// Bounds of a profile. A client accepts no more properties and no longer ones.
const (
	maxProperties = 64
	maxPropName   = 64
	maxPropValue  = 32767
	maxPropSign   = 1024
)

func newHTTPClient(connections int) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = connections
	t.MaxIdleConns = 2 * connections
	t.ResponseHeaderTimeout = 0 // the question's context has the deadline
	t.IdleConnTimeout = time.Minute
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// hasJoined asks the session servers in order, until one knows the login. If none does, a server that gave no answer
// counts for more than one that said no.
func (a *Auth) hasJoined(ctx context.Context, name, hash string, addr netip.Addr) (Profile, error) {
	within, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
	defer cancel()
	p, err := a.askAll(within, name, hash, addr)
	if err != nil && ctx.Err() != nil {
		return Profile{}, ctx.Err()
	}
	return p, err
}

func (a *Auth) askAll(ctx context.Context, name, hash string, addr netip.Addr) (Profile, error) {
	select {
	case a.asking <- struct{}{}:
		defer func() { <-a.asking }()
	case <-ctx.Done():
		return Profile{}, fmt.Errorf("%w: too many logins wait for one", ErrServersDown)
	}
	err := ErrUnverified
	for _, u := range a.urls {
		p, failed := a.ask(ctx, u, name, hash, addr)
		if failed == nil {
			return p, nil
		}
		if !errors.Is(failed, ErrUnverified) {
			err = failed
		}
	}
	return Profile{}, err
}

func (a *Auth) ask(ctx context.Context, to *url.URL, name, hash string, addr netip.Addr) (Profile, error) {
	u := *to
	q := u.Query()
	q.Set("username", name)
	q.Set("serverId", hash)
	if a.cfg.SendAddress && addr.IsValid() {
		q.Set("ip", addr.Unmap().WithZone("").String())
	}
	u.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Profile{}, fmt.Errorf("%w: %w", ErrServersDown, err)
	}
	req.Header.Set("User-Agent", "Earshot")
	resp, err := a.http.Do(req)
	if err != nil {
		return Profile{}, fmt.Errorf("%w: %w", ErrServersDown, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProfile+1))
	switch {
	case err != nil:
		return Profile{}, fmt.Errorf("%w: %w", ErrServersDown, err)
	case len(body) > maxProfile:
		return Profile{}, fmt.Errorf("%w: %s answers with more than %d bytes", ErrServersDown, to.Host, maxProfile)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		if len(body) == 0 {
			return Profile{}, ErrUnverified
		}
		p, err := parseProfile(body)
		if err != nil {
			return Profile{}, fmt.Errorf("%w: %s: %w", ErrServersDown, to.Host, err)
		}
		return p, nil
	case http.StatusNoContent, http.StatusUnauthorized, http.StatusForbidden:
		return Profile{}, ErrUnverified
	}
	return Profile{}, fmt.Errorf("%w: %s answers %s", ErrServersDown, to.Host, resp.Status)
}

// parseProfile reads the answer to hasJoined. It has to fit what clients and backends accept.
func parseProfile(body []byte) (Profile, error) {
	var in struct {
		ID         string
		Name       string
		Properties []packet.Property
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Profile{}, fmt.Errorf("profile: %w", err)
	}
	id, err := uuid.Parse(in.ID)
	if err != nil || len(in.ID) != 32 && len(in.ID) != 36 {
		return Profile{}, errors.New("profile: id is no uuid")
	}
	if in.Name == "" || len(in.Name) > packet.MaxName {
		return Profile{}, fmt.Errorf("profile: name of %d characters", len(in.Name))
	}
	if len(in.Properties) > maxProperties {
		return Profile{}, fmt.Errorf("profile: %d properties", len(in.Properties))
	}
	for _, p := range in.Properties {
		if len(p.Name) > maxPropName || len(p.Value) > maxPropValue || len(p.Signature) > maxPropSign {
			return Profile{}, errors.New("profile: a property is longer than clients accept")
		}
	}
	return Profile{id, in.Name, in.Properties}, nil
}
