package session

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// TestRegistryByIdentity: whoever is not in takes nobody out, whatever it is called.
func TestRegistryByIdentity(t *testing.T) {
	r := newRegistry()
	a, b := &Session{}, &Session{}
	id, other := uuid.New(), uuid.New()
	if r.claim(a, id, "Steve") != nil {
		t.Fatal("an empty registry is taken")
	}
	if r.claim(b, id, "Alex") != a || r.claim(b, other, "sTEVE") != a {
		t.Error("the UUID or the name was given away twice")
	}
	r.release(b, id, "Steve")
	r.release(b, other, "Steve")
	if r.get(id) != a || r.len() != 1 || r.claim(b, other, "steve") != a {
		t.Error("somebody else took the player off the list")
	}
	r.release(a, id, "STEVE")
	if r.len() != 0 || r.claim(b, other, "Steve") != nil {
		t.Error("a name was not given back")
	}
}

// TestReasonArrives: a client that has just sent much, and reads late, still gets the reason: closing a socket with
// unread bytes in it would throw the reason away.
func TestReasonArrives(t *testing.T) {
	for _, protocol := range []int32{47, 767} {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, nil, b)
		c, s := e.play(protocol, "Steve", b)
		busy, said := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(said)
			for i := range 5000 {
				if i == 1000 {
					close(busy)
				}
				if c.w.Packet(0xf0, make([]byte, 200)) != nil {
					return
				}
			}
		}()
		go s.sink()
		<-busy
		e.core.Players()[0].Disconnect("late news")
		<-said
		text, err := packet.ParseDisconnect(protocol, c.in, c.await(proto.Disconnect))
		if err != nil || text.String() != "late news" {
			t.Errorf("protocol %d: told %q, %v", protocol, text, err)
		}
		// A close would by now answer whatever else the client says with a reset, which on some systems takes the
		// reason with it.
		for range 3 {
			if err := c.w.Packet(0xf0, make([]byte, 200)); err != nil {
				t.Errorf("protocol %d: %v", protocol, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	// In the login as well.
	e := newEnv(t, nil)
	c := e.connect(767, packet.IntentLogin)
	c.send(proto.LoginStart, packet.AppendLoginStart(nil, 767, packet.LoginStart{Name: "not allowed"}))
	for range 100 {
		if c.w.Packet(1, make([]byte, 1000)) != nil {
			break
		}
	}
	time.Sleep(10 * time.Millisecond) // longer than a reset would need
	c.kicked()
}

// TestStandingFactsOnce: what the client says between two backends reaches the second one once.
func TestStandingFactsOnce(t *testing.T) {
	gate := make(chan struct{})
	first := newBackend(t, "first", nil)
	second := newBackend(t, "second", func(b *fakeBackend) { b.refuse = func(*peer) bool { <-gate; return false } })
	e := newEnv(t, nil, first, second)
	c := e.login(767, "Steve")
	s := first.next()
	c.send(proto.CustomPayload, message("minecraft:brand", "\x03old"))
	s.expect(proto.CustomPayload)
	s.conn.Close()
	until(t, func() bool { return e.core.Counters.Dials.Load() == 2 }, "the second backend is not dialled", func() []any { return nil })
	held := &e.core.Counters.Traffic[proto.Serverbound].Held
	before := held.Load()
	c.send(proto.ClientInformation, information(767))
	c.send(proto.CustomPayload, message("a:b", "between"))
	until(t, func() bool { return held.Load() >= before+2 }, "the client was not heard", func() []any { return nil })
	close(gate)
	s = second.next()
	if got := s.expect(proto.ClientInformation); !bytes.Equal(got, information(767)) {
		t.Errorf("got %q", got)
	}
	if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message("minecraft:brand", "\x03old")) {
		t.Errorf("got %q, want the brand", got)
	}
	if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message("a:b", "between")) {
		t.Errorf("got %q, want what was said in between", got)
	}
}
