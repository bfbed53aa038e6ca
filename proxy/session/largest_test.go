package session

import (
	"bytes"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// TestLargest: what the game can frame arrives, both ways and whatever the compression on either side; what one side
// takes only compressed and the other does not compress is the sender's fault, and nobody else's: a client is told so
// and keeps no other player from anything, and a player whose server sent it goes on to the next one.
func TestLargest(t *testing.T) {
	plain := func(size int) []byte { return bytes.Repeat([]byte("mods "), size)[:size-2] } // 2: the id 0xf0
	for _, c := range []struct {
		client, backend int // thresholds
		up, down        int // the largest sizes of a packet
	}{
		{256, 256, frame.MaxInflatedStrict, frame.MaxInflated},
		{256, -1, frame.MaxFrame, frame.MaxFrame},
		{-1, 256, frame.MaxFrame, frame.MaxFrame},
		{-1, -1, frame.MaxFrame, frame.MaxFrame},
		{256, frame.MaxFrame, frame.MaxInflatedStrict, frame.MaxInflated},
	} {
		change := func(b *fakeBackend) { b.threshold = c.backend }
		b, next := newBackend(t, "b", change), newBackend(t, "next", change)
		e := newEnv(t, func(cfg *Config) { cfg.Settings.Threshold = c.client }, b, next)
		client, server := e.play(767, "Steve", b)
		client.raw(0xf0, plain(c.up))
		if got := server.expectID(0xf0); !bytes.Equal(got, plain(c.up)) {
			t.Errorf("%+v: %d bytes up arrived as %d", c, c.up, len(got))
		}
		server.raw(0xf0, plain(c.down))
		if got := client.expectID(0xf0); !bytes.Equal(got, plain(c.down)) {
			t.Errorf("%+v: %d bytes down arrived as %d", c, c.down, len(got))
		}

		if c.client >= 0 && c.up < frame.MaxInflatedStrict {
			client.raw(0xf0, []byte("before"))
			client.raw(0xf0, plain(c.up+1))
			if got := server.expectID(0xf0); string(got) != "before" {
				t.Errorf("%+v: %q", c, got)
			}
			if got := client.kicked(); !strings.Contains(got, "too large") {
				t.Errorf("%+v: the client was told %q", c, got)
			}
			e.ended(EndProtocol, 1)
		} else if c.backend >= 0 && c.client < 0 {
			server.raw(0xf0, []byte("before"))
			server.raw(0xf0, plain(c.down+1))
			if got := client.expectID(0xf0); string(got) != "before" {
				t.Errorf("%+v: %q", c, got)
			}
			next.next()
			if log := e.log.String(); !strings.Contains(log, "compression.threshold") {
				t.Error("the log does not say what to do")
			}
			client.await(proto.StartConfiguration)
		}
	}
}
