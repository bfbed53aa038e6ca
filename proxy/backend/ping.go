package backend

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
)

// idStatus is the id of the request and of its answer, in every version.
const idStatus = 0

// Question says who asks a server for its status.
type Question struct {
	Protocol int32
	Host     string // empty: the server's own
}

// Ping asks a server for its entry in the server list and returns its JSON, unchecked. The whole takes no longer than
// within, and no longer than ctx.
func Ping(ctx context.Context, s Server, q Question, within time.Duration) ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	n, err := s.Open(ctx, netip.AddrPort{}, within)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	stop := context.AfterFunc(ctx, func() { n.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	host, port, _ := s.split() // a Dial of its own may go without an address
	if q.Host != "" {
		host = q.Host
	}
	w := frame.NewWriter(n)
	w.Append(0, packet.AppendHandshake(nil, packet.Handshake{Protocol: q.Protocol, Host: host, Port: port, Intent: packet.IntentStatus}))
	w.Append(idStatus, nil)
	if err := w.Flush(); err != nil {
		return nil, s.failed(fmt.Errorf("it does not take a ping: %w", err))
	}
	r := frame.NewReader(n, frame.Limits{})
	defer r.Release()
	f, err := r.Next()
	if err != nil {
		return nil, s.failed(fmt.Errorf("it does not answer a ping: %w", err))
	}
	body, err := r.Body(f)
	if err == nil && f.ID != idStatus {
		err = fmt.Errorf("packet %d instead of a status", f.ID)
	}
	if err != nil {
		return nil, s.failed(err)
	}
	json, err := packet.ParseStatusResponse(body)
	if err != nil {
		return nil, s.failed(err)
	}
	return json, nil
}
