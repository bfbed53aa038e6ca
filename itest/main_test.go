package itest

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/itest/peer"
)

// TestMain sees to it that no test leaves a goroutine or a file behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(tidy{m}, peer.AuthorityLeft()) }

type tidy struct{ *testing.M }

// Run gives all tests one folder for their temporary files, the built program among them, and takes it away.
func (m tidy) Run() int {
	dir, err := os.MkdirTemp("", "earshot-itest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	code := m.M.Run()
	http.DefaultClient.CloseIdleConnections() // kept by the client on purpose
	return code
}

// alongside runs a subtest beside its siblings, as many at a time as there are cores: each has processes of its own,
// and most of it is waiting for them.
func alongside(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		f(t)
	})
}
