package itest

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"github.com/earshot-mc/earshot/bridge/rooms/client"
	"github.com/earshot-mc/earshot/bridge/rooms/frame"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

// TestRoomsOnThePort: a declared room is at /play/ on the port, for everybody who has its token; a reload takes it
// away, and what happens is counted and logged.
func TestRoomsOnThePort(t *testing.T) {
	p := newProgram(t, "")
	if err := os.WriteFile(filepath.Join(p.dir, "board.token"), []byte("a token that is long\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	with := "online: false\nrooms: {declared: {board: {capacity: 3, token-file: board.token}, open: {}}}\n"
	p.write(with)
	p.run()
	p.says(1, "rooms.declared.open is open to everybody who reaches the port")
	url := func(rest string) string { return "ws://" + p.addr + "/play/" + rest }
	join := func(rest, name string) (*client.Client, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		t.Cleanup(cancel)
		return client.Join(ctx, client.Config{Dial: client.WebSocket(url(rest), ws.Dialer{}), Name: name, Grace: time.Second})
	}
	if _, err := join("board?token=wrong", "Eve"); err == nil || !strings.Contains(err.Error(), "401") {
		t.Error("a wrong token:", err)
	}
	for _, rest := range []string{"board", "nowhere"} {
		if _, err := join(rest, "Eve"); err == nil || !strings.Contains(err.Error(), "You may not enter this room") {
			t.Errorf("%s without a token: %v", rest, err)
		}
	}
	// A room's token opens no voice, and the other way round.
	for path, want := range map[string]int{"/voice?token=a+token+that+is+long&uuid=" + offlineID("Ann").String(): 401, "/play/board?token=" + strings.Repeat("A", 43): 401} {
		if got := askedFor(t, p.addr, path); got != want {
			t.Errorf("%s: status %d, want %d", path, got, want)
		}
	}
	a, err := join("board?token=a+token+that+is+long", "Ann")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := join("board?token=a+token+that+is+long", "Bob")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := a.Command("publish", state.Object{{Key: "state", Value: state.OfObj(state.Object{{Key: "score", Value: state.OfInt(7)}})}}); err != nil {
		t.Fatal(err)
	}
	score := func() int64 {
		v, _ := b.Shown().State.Get("peers")
		v, _ = v.Obj().Get("p1")
		v, _ = v.Obj().Get("score")
		return v.Int()
	}
	for deadline := time.Now().Add(10 * time.Second); score() != 7; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what Ann has published does not come to Bob")
		}
	}
	p.counts("earshot_rooms", 2)
	p.counts("earshot_rooms_peers", 2)
	p.counts(`earshot_rooms_sockets_refused_total{reason="token"}`, 2)
	p.says(1, "turned away: a room's socket with a token that is not valid")
	resp, err := http.Get("http://" + p.addr + "/spec/rooms-protocol.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "application/json" {
		t.Error(resp.Status, got)
	}
	p.write("online: false\nrooms: {declared: {open: {}}}\n")
	select {
	case <-b.Done():
		if got := b.Err().Error(); !strings.Contains(got, "401") && !strings.Contains(got, "may not enter") {
			t.Error(got)
		}
	case <-time.After(20 * time.Second):
		t.Error("a room that is gone keeps its peers")
	}
	c, err := join("open", "Cid")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p.stop()
	if s := string(frame.SpecFile); !strings.Contains(s, "Host closed the room") {
		t.Error(s)
	}
}

// askedFor asks for a WebSocket and returns the status of the answer.
func askedFor(t *testing.T, addr, path string) int {
	t.Helper()
	conn := dial(t, addr, "")
	defer conn.Close()
	write(t, conn, []byte("GET "+path+" HTTP/1.1\r\nHost: "+addr+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode
}

// plays runs a client that was written from a protocol's document, a script of the peers, against url. The client
// says of n things whether they were as the document has it.
func plays(t *testing.T, n int, script, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--experimental-websocket", "--no-warnings", script, url)
	cmd.Dir = "peers"
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	looked := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var r struct {
			Check, Why string
			OK         bool
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Errorf("%s: %v", lines.Bytes(), err)
			continue
		}
		if looked++; !r.OK {
			t.Errorf("%s: %s", r.Check, r.Why)
		}
	}
	if err := cmd.Wait(); err != nil || looked != n {
		t.Errorf("%d of %d things were looked at: %v", looked, n, err)
	}
}

// TestRoomsWithAnotherClient: a client that was written from the protocol's document, without our code, plays through
// all that the document promises.
func TestRoomsWithAnotherClient(t *testing.T) {
	p := start(t, "online: false\nrooms: {declared: {board: {capacity: 50}}}\n")
	plays(t, 12, "rooms.js", "ws://"+p.addr+"/play/board")
}
