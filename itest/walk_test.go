package itest

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	walking "github.com/earshot-mc/earshot/bridge/walk/wire"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
)

// TestWalkOnThePort: acceptance 18 and 19 of the walk protocol. Guests walk at /ws/game on the port, in areas that the
// settings have; a reload that switches it off closes all sockets, and /ws/game is not found; the program's end closes
// them too.
func TestWalkOnThePort(t *testing.T) {
	p := newProgram(t, "")
	const with = "online: false\nwalk: {enabled: true, areas: {plaza: {world: limbo/overworld, from: [-200, -100], to: [200, 150.5], spawn: [0, 25]}}}\n"
	p.write(with)
	p.run()
	p.says(1, "walk.areas.plaza is open to everybody who reaches the port")
	enter := func() (net.Conn, error) {
		conn, _, _, err := ws.Dial(t.Context(), "ws://"+p.addr+"/ws/game?area=plaza")
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(30 * time.Second))
		if err := wsutil.WriteClientBinary(conn, []byte{1, 1, 3, 'A', 'n', 'n'}); err != nil {
			return nil, err
		}
		m, _, err := wsutil.ReadServerData(conn)
		if want := "8101010000001400" + "00c84300807a43"; err != nil || fmt.Sprintf("%x", m) != want {
			t.Errorf("the Welcome is %x, %v, want %s", m, err, want)
		}
		return conn, nil
	}
	closes := func(conn net.Conn) string {
		for {
			_, _, err := wsutil.ReadServerData(conn)
			if c, ok := err.(wsutil.ClosedError); ok {
				return fmt.Sprint(uint16(c.Code), " ", c.Reason)
			} else if err != nil {
				return err.Error()
			}
		}
	}
	conn, err := enter()
	if err != nil {
		t.Fatal(err)
	}
	p.counts(`earshot_walk_guests{area="plaza"}`, 1)
	p.counts(`earshot_walk_messages_total{type="hello"}`, 1)
	p.write("online: false\nwalk: {enabled: false, areas: {plaza: {world: limbo/overworld, from: [-200, -100], to: [200, 150.5], spawn: [0, 25]}}}\n")
	if end := closes(conn); end != "1001 area closed" {
		t.Error(end)
	}
	if _, err := enter(); err == nil || err != ws.StatusError(http.StatusNotFound) {
		t.Errorf("switched off: %v", err)
	}
	p.says(1, "turned away: a guest who asks for an area that there is not")
	p.counts(`earshot_walk_closed_total{code="1001"}`, 1)
	p.write(with)
	p.says(1, "walk.enabled")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if conn, err = enter(); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	p.stop()
	if end := closes(conn); end != "1001 shutting down" {
		t.Error(end)
	}
}

// TestWalkWithAnotherClient: acceptance 21 of the walk protocol. A client that was written from the protocol's
// document, without our code, plays through all that the document promises.
func TestWalkWithAnotherClient(t *testing.T) {
	p := start(t, "online: false\nwalk: {enabled: true, areas: {plaza: {world: limbo/overworld, from: [-200, -100], to: [200, 150.5], spawn: [0, 25], "+
		"obstacles: [{at: [10.5, 5], radius: 3}]}}}\n")
	plays(t, 13, "walk.js", "ws://"+p.addr+"/ws/game")
}

// TestGuestSeesPlayers: acceptance 12 of the walk protocol, with a player whom nobody here wrote. A guest is shown
// where the player stands, within 0.05 blocks, and no longer once the player has left.
func TestGuestSeesPlayers(t *testing.T) {
	p := start(t, "online: false\ntry: [limbo]\nwalk: {enabled: true, areas: {floor: {world: limbo/overworld, from: [-200, -100], to: [200, 150.5], spawn: [30, 30]}}}\n")
	ann := peer.NewBots(t, "1.21.4").Join(p.addr, "Ann")
	conn, _, _, err := ws.Dial(t.Context(), "ws://"+p.addr+"/ws/game")
	if err != nil {
		t.Fatal(err)
	}
	if err := wsutil.WriteClientBinary(conn, walking.Hello{Version: walking.Version, Name: "Zoe"}.Append(nil)); err != nil {
		t.Fatal(err)
	}
	var own atomic.Uint32
	var last atomic.Pointer[walking.Snapshot]
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			b, _, err := wsutil.ReadServerData(conn)
			if err != nil {
				return
			}
			switch m, _ := walking.ParseServer(b); m := m.(type) {
			case walking.Welcome:
				own.Store(m.Own)
			case walking.Snapshot:
				last.Store(&m)
			}
		}
	}()
	defer func() { conn.Close(); <-done }()
	others := func() (all []walking.Entity) {
		if s := last.Load(); s != nil {
			for _, e := range s.Entities {
				if e.ID != own.Load() {
					all = append(all, e)
				}
			}
		}
		return all
	}
	testkit.Until(t, "Ann to be in a snapshot", func() bool { return len(others()) == 1 })
	id := others()[0].ID
	ann.Goto(12, 3)
	testkit.Until(t, "the snapshot to have Ann where she stands", func() bool {
		at, all := ann.Where(), others()
		return len(all) == 1 && all[0].ID == id && all[0].Kind == walking.KindPlayer &&
			math.Hypot(float64(all[0].X)-(at.X+200), float64(all[0].Y)-(at.Z+100)) < 0.05 && math.Abs(at.X-12) < 1.5
	})
	ann.Quit()
	testkit.Until(t, "Ann to be gone", func() bool { return last.Load() != nil && len(others()) == 0 })
}
