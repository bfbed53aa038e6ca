package session

import (
	"strconv"
	"testing"

	"github.com/earshot-mc/earshot/proxy/proto"
)

func each(t *testing.T, versions []int32, f func(t *testing.T, protocol int32)) {
	for _, v := range versions {
		t.Run(strconv.Itoa(int(v)), func(t *testing.T) { t.Parallel(); f(t, v) })
	}
}

func all() (list []int32) {
	for _, v := range proto.Supported() {
		list = append(list, v.Protocol)
	}
	return list
}

// TestJoin takes a client of every version through login, configuration and join game, and packets both ways.
func TestJoin(t *testing.T) {
	each(t, all(), func(t *testing.T, protocol int32) {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, nil, b)
		c, s := e.play(protocol, "Steve", b)
		if s.handshake.Host != "play.example.org" || s.login.Name != "Steve" {
			t.Errorf("backend was told %+v, %+v", s.handshake, s.login)
		}
		const unknown = 0xf0
		s.raw(unknown, []byte("down"))
		if got := c.expectID(unknown); string(got) != "down" {
			t.Errorf("client got %q", got)
		}
		c.raw(unknown, []byte("up"))
		if got := s.expectID(unknown); string(got) != "up" {
			t.Errorf("backend got %q", got)
		}
		c.conn.Close()
		s.closed()
		e.ended(EndLeft, 1)
	})
}
