package itest

import (
	"bytes"
	"fmt"
	"net"
	"testing"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// TestUndecoded: a packet that cannot be read, for voice or for the proxy's own purposes, reaches the player as it is,
// and /metrics counts it once.
func TestUndecoded(t *testing.T) {
	unreadable := []struct {
		packet proto.Packet
		id     int32
		body   []byte
	}{
		{proto.EntityStatus, 0x1a, []byte{0, 0}},                             // half an entity
		{proto.PlayerInfo, 0x38, []byte{0, 1, 7}},                            // one player with a byte left
		{proto.CustomPayload, 0x3f, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 1}}, // a channel of negative length
	}
	addr := serving(t, func(c net.Conn) {
		name, err := arrive(c)
		if err != nil {
			return
		}
		c.Write(append(success(proto.V1_8, name), joinGame()...))
		for _, u := range unreadable {
			c.Write(framed(u.id, u.body))
		}
		hold(c)
	})
	p := start(t, fmt.Sprintf("online: false\ntry: [game]\nservers: {game: {address: %q}}\n", addr))
	p.counts("earshot_undecoded_total", 0)
	ann := logIn(t, p.addr, "Ann")
	for _, u := range unreadable {
		if got := ann.until(u.packet); !bytes.Equal(got, u.body) {
			t.Errorf("%v arrives as % x, not % x", u.packet, got, u.body)
		}
	}
	for _, u := range unreadable {
		p.counts(fmt.Sprintf("earshot_undecoded_total{packet=%q,version=\"47\"}", u.packet), 1)
	}
	p.counts("earshot_undecoded_total", float64(len(unreadable)))
	p.counts(`earshot_commands_total{what="unreadable"}`, 0)
	if err := ann.w.Packet(0x01, []byte{0xff, 0xff, 0xff, 0xff, 0x0f}); err != nil { // chat of negative length
		t.Fatal(err)
	}
	p.counts(`earshot_commands_total{what="unreadable"}`, 1)
	for _, name := range []string{"earshot_clientbound_frames_total", `earshot_bytes_total{direction="clientbound"}`} {
		testkit.Until(t, name+" to be counted", func() bool { return p.metric(name) > 0 })
	}
}
