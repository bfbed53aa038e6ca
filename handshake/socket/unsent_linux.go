package socket

import "syscall"

// maxUnsent is how much the kernel may hold that it has not sent yet, in bytes.
// Its own bound adapts to megabytes, which is a minute of sound that nobody
// could take back from a peer that stopped reading.
const maxUnsent = 16 << 10

// limitUnsent sets TCP_NOTSENT_LOWAT (tcp(7)). On anything but TCP it fails,
// and nothing is lost by that.
func limitUnsent(fd uintptr) {
	const tcpNotsentLowat = 25
	syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotsentLowat, maxUnsent)
}
