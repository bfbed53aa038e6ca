package natsd

import (
	"net"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server that was stopped is gone, and one that is started again has the address that it had.
func TestStopAndStart(t *testing.T) {
	s := Run(t)
	there := func() bool {
		c, err := net.Dial("tcp", net.JoinHostPort(s.Options.Host, strconv.Itoa(s.Options.Port)))
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	before := s.URL()
	if !there() {
		t.Error("it cannot be reached")
	}
	s.Stop()
	if there() {
		t.Error("it is still there")
	}
	s.Start()
	if !there() || s.URL() != before {
		t.Errorf("it was at %s, and is at %s", before, s.URL())
	}
}
