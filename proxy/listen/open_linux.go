package listen

import (
	"net"
	"syscall"
	"time"
)

// listenConfig sets up probing on the listening socket, from which Linux copies it to each connection: asking for it on
// each would cost eight system calls, a tenth of a server list ping. Clients speak first here, so Linux is asked to
// hand a connection out when its first bytes are there, or after about a second without: nobody has to be woken for
// them a second time.
func listenConfig() net.ListenConfig {
	return net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		cerr := c.Control(func(fd uintptr) {
			for _, o := range []struct{ level, option, value int }{
				{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
				{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, int(probing.Idle / time.Second)},
				{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, int(probing.Interval / time.Second)},
				{syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, probing.Count},
				{syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, 1},
			} {
				if err == nil {
					err = syscall.SetsockoptInt(int(fd), o.level, o.option, o.value)
				}
			}
		})
		if cerr != nil {
			return cerr
		}
		return err
	}}
}
