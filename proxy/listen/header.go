package listen

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/pires/go-proxyproto"
)

// The PROXY protocol: https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt
const (
	sigV1 = "PROXY "
	sigV2 = "\r\n\r\n\x00\r\nQUIT\n"
	maxV1 = 107        // bytes of a v1 line with its line end
	maxV2 = 16 + 4<<10 // bytes of a v2 header we accept; a client certificate takes one or two KiB
	local = 0x20       // v2 command LOCAL: a health check of the balancer itself
	tcp4  = 0x11       // v2 families; any other one is to be taken for UNSPEC
	tcp6  = 0x21
)

var errNoHeader = errors.New("listen: no PROXY header")

// headerLen returns the length of the PROXY header that b begins with, 0 while more bytes are needed, or errNoHeader,
// or refusal(ProxyInvalid).
func headerLen(b []byte) (int, error) {
	switch {
	case begins(b, sigV1):
		if i := bytes.IndexByte(b[:min(len(b), maxV1)], '\n'); i >= 0 {
			return i + 1, nil
		}
		if len(b) >= maxV1 {
			return 0, refusal(ProxyInvalid)
		}
	case begins(b, sigV2):
		if len(b) < 16 {
			return 0, nil
		}
		n := 16 + int(binary.BigEndian.Uint16(b[14:]))
		if n > maxV2 {
			return 0, refusal(ProxyInvalid)
		}
		return n, nil
	default:
		return 0, errNoHeader
	}
	return 0, nil
}

// begins reports whether b and sig agree as far as both go.
func begins(b []byte, sig string) bool {
	n := min(len(b), len(sig))
	return string(b[:n]) == sig[:n]
}

// hasHeader reports whether b looks like a PROXY header and like nothing else that we know. Two bytes are enough for
// that.
func hasHeader(b []byte) bool { return len(b) >= 2 && (begins(b, sigV1) || begins(b, sigV2)) }

// source returns the client's address in the whole header h, or peer if h names none on purpose.
func source(h []byte, peer netip.AddrPort) (netip.AddrPort, error) {
	if len(h) >= 16 && begins(h, sigV2) {
		if family := h[13]; h[12] == local || h[12] == local+1 && family != tcp4 && family != tcp6 {
			// Nobody can have connected here so: a Unix socket, a datagram, or something that is not known yet.
			return peer, nil
		}
	}
	// The library reads v1 lines only from a buffer that has them whole, which this one does.
	p, err := proxyproto.Read(bufio.NewReaderSize(bytes.NewReader(h), len(h)))
	if err != nil {
		return peer, refusal(ProxyInvalid)
	}
	if p.Command.IsLocal() {
		return peer, nil
	}
	a, ok := p.SourceAddr.(*net.TCPAddr)
	if !ok { // UDP or a Unix socket: nobody can have connected here so
		return peer, refusal(ProxyInvalid)
	}
	from := unmap(a.AddrPort())
	if !from.Addr().IsValid() {
		return peer, refusal(ProxyInvalid)
	}
	return from, nil
}

// readHeader reads a PROXY header from c, a trusted peer, for at most limit, and returns the client's address and the
// bytes read that follow it. Without a header, unless one is required, it returns peer's.
func readHeader(c socket, peer netip.AddrPort, buf []byte, limit time.Duration, required bool) (netip.AddrPort, []byte, error) {
	end := time.Now().Add(limit)
	for {
		n, err := headerLen(buf)
		switch {
		case err == errNoHeader && required:
			return peer, buf, refusal(ProxyMissing)
		case err == errNoHeader:
			return peer, buf, nil
		case err != nil:
			return peer, buf, err
		case n > 0 && len(buf) >= n:
			from, err := source(buf[:n], peer)
			return from, buf[n:], err
		}
		had := len(buf)
		if buf, err = readMore(c, buf, end); err != nil {
			switch {
			case !errors.Is(err, os.ErrDeadlineExceeded):
				return peer, buf, refusal(HungUp)
			case had == 0 && required:
				return peer, buf, refusal(ProxyMissing)
			case had == 0:
				return peer, buf, refusal(Silent)
			}
			return peer, buf, refusal(ProxySlow)
		}
	}
}
