package socket

import "syscall"

// maxUnsent bounds the unsent bytes in the kernel. Its own bound adapts to megabytes: a minute of sound that nobody
// could take back from a peer that stopped reading.
const maxUnsent = 16 << 10

// limitUnsent sets TCP_NOTSENT_LOWAT (tcp(7)). On anything but TCP it fails, which does no harm.
func limitUnsent(fd uintptr) {
	const tcpNotsentLowat = 25
	syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotsentLowat, maxUnsent)
}
