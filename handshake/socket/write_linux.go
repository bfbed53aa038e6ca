//go:build !race

package socket

import (
	"syscall"
	"unsafe"
)

// writeNow is one write on a descriptor that is not waited for. Go's own tells the scheduler that the thread may be away
// for long, which costs a third of what the write itself does. The race detector takes its order of events from Go's own.
func writeNow(fd uintptr, p []byte) (int, error) {
	n, _, e := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}
