//go:build !unix

package store

import (
	"fmt"
	"os"
)

// lock keeps nobody out where the system has no such locks.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot use the data directory: %w", err)
	}
	return f, nil
}
