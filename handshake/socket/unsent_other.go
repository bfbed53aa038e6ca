//go:build !linux

package socket

// limitUnsent does nothing where the kernel has no such bound.
func limitUnsent(uintptr) {}
