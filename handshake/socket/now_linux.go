//go:build !race

package socket

import (
	"syscall"
	"unsafe"
)

// readNow and writeNow make one system call on a descriptor without waiting for it. Go's own tell the scheduler that
// the thread may be away for long, which costs a third of a short write. The race detector takes its order of events
// from Go's own.
func readNow(fd uintptr, p []byte) (int, error)  { return now(syscall.SYS_READ, fd, p) }
func writeNow(fd uintptr, p []byte) (int, error) { return now(syscall.SYS_WRITE, fd, p) }

func now(call, fd uintptr, p []byte) (int, error) {
	n, _, e := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}
