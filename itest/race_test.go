//go:build race

package itest

// raced says that this test, and so the program it builds, has the race detector, which takes several times the memory
// and the time.
const raced = true
