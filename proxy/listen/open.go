package listen

import (
	"context"
	"fmt"
	"net"
	"time"
)

// probing finds half-open connections, which no read deadline of an idle HTTP connection would.
var probing = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}

// Open listens on a TCP address for [New]. Connections accepted from it are probed when they are idle, so that
// half-open ones end.
func Open(ctx context.Context, addr string) (net.Listener, error) {
	lc := listenConfig()
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for players: %w", err)
	}
	return ln, nil
}
