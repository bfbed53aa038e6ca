package itest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/proxy/limbo"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/google/uuid"
)

// TestLimboWithBots lets real players into the built-in world, without a proxy between: they land on its floor, walk,
// fall into the void and out of it, see each other on the list and chat.
func TestLimboWithBots(t *testing.T) {
	versions := []string{"1.8.8", "1.12.2", "1.16.5", "1.19.4", "1.20.1", "1.20.4", "1.21.4", "1.21.11", "26.1"}
	long := os.Getenv("EARSHOT_LONG") != ""
	if long {
		versions = []string{"1.8.8", "1.9", "1.9.2", "1.9.4", "1.10.2", "1.11", "1.11.2", "1.12", "1.12.1", "1.12.2", "1.13", "1.13.1",
			"1.13.2", "1.14", "1.14.1", "1.14.3", "1.14.4", "1.15", "1.15.1", "1.15.2", "1.16", "1.16.1", "1.16.2", "1.16.3", "1.16.5",
			"1.17", "1.17.1", "1.18", "1.18.2", "1.19", "1.19.2", "1.19.3", "1.19.4", "1.20.1", "1.20.2", "1.20.4", "1.20.6", "1.21.1",
			"1.21.3", "1.21.4", "1.21.5", "1.21.6", "1.21.8", "1.21.9", "1.21.11", "26.1"}
	}
	for i, version := range versions { // one after the other: a bot's process takes 100 MB
		t.Run(version, func(t *testing.T) {
			limboBots(t, version, long || i == 0 || i == len(versions)-1)
		})
	}
}

func limboBots(t *testing.T, version string, fall bool) {
	const welcome = "welcome to the floor"
	w := limbo.New(limbo.Config{Welcome: packet.Plain(welcome)})
	port := serveLimbo(t, w)
	bots := startBots(t, version)
	ids := map[string]uuid.UUID{}
	join := func(name string) {
		id := uuid.NewMD5(uuid.NameSpaceOID, []byte(name))
		ids[name] = id
		host := "localhost\x00127.0.0.1\x00" + strings.ReplaceAll(id.String(), "-", "") + "\x00[]"
		bots.do(map[string]any{"cmd": "join", "name": name, "host": "127.0.0.1", "port": port, "fakeHost": host})
		bots.wait(name+" to spawn", func(e limboEvent) bool { return e.Ev == "spawn" && e.Name == name })
		bots.wait(name+"'s welcome", func(e limboEvent) bool { return e.Ev == "chat" && e.Name == name && e.Text == welcome })
	}
	join("Ann")
	join("Bob")
	for _, pair := range [][2]string{{"Ann", "Bob"}, {"Bob", "Ann"}} {
		e := bots.wait(pair[1]+" on the list of "+pair[0], func(e limboEvent) bool { return e.Ev == "listed" && e.Name == pair[0] && e.Text == pair[1] })
		if e.UUID != ids[pair[1]].String() {
			t.Errorf("%s is listed as %s", pair[1], e.UUID)
		}
	}

	if e := bots.do(map[string]any{"cmd": "goto", "name": "Ann", "x": 12, "z": 3}); e.Y != 70 || math.Hypot(e.X-12, e.Z-3) > 1 {
		t.Errorf("Ann walked to %v %v %v", e.X, e.Y, e.Z)
	}
	if e := bots.do(map[string]any{"cmd": "where", "name": "Ann"}); e.Mode != "adventure" {
		t.Errorf("Ann plays in mode %q", e.Mode)
	}
	bots.do(map[string]any{"cmd": "chat", "name": "Ann", "text": "is anybody here?"})
	for _, name := range []string{"Ann", "Bob"} {
		bots.wait("Ann's line at "+name, func(e limboEvent) bool { return e.Ev == "chat" && e.Name == name && e.Text == "<Ann> is anybody here?" })
	}

	if fall { // 40 blocks to the east, over the edge, down to 0 and back; long enough for a keep-alive
		bots.do(map[string]any{"cmd": "look", "name": "Ann", "yaw": -90, "pitch": 0})
		walked := make(chan struct{})
		go func() { // steers on through the fall, so that where it ends tells who ended it
			defer close(walked)
			bots.do(map[string]any{"cmd": "walk", "name": "Ann", "ticks": 220})
		}()
		bots.wait("Ann to fall", func(e limboEvent) bool { return e.Ev == "pos" && e.Name == "Ann" && e.Y < 20 })
		bots.wait("Ann's rescue", func(e limboEvent) bool { return e.Ev == "moved" && e.Name == "Ann" && e.nth > 1 })
		<-walked
		if e := bots.do(map[string]any{"cmd": "goto", "name": "Ann", "x": 12, "z": 3}); e.Y != 70 {
			t.Errorf("after the rescue Ann stands at %v %v %v", e.X, e.Y, e.Z)
		}
	}

	bots.do(map[string]any{"cmd": "quit", "name": "Bob"})
	bots.wait("Bob off the list", func(e limboEvent) bool { return e.Ev == "unlisted" && e.Name == "Ann" && e.Text == "Bob" })
	w.Close()
	bots.wait("Ann's goodbye", func(e limboEvent) bool {
		return e.Ev == "kicked" && e.Name == "Ann" && strings.Contains(e.Text, "closing")
	})
}

// serveLimbo opens a port to the world, as a proxy's backend code would reach it.
func serveLimbo(t *testing.T, w *limbo.World) (port int) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			out, err := ln.Accept()
			if err != nil {
				return
			}
			in, err := w.Dial(context.Background())
			if err != nil {
				out.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				tasks.Go(func() {
					io.Copy(way[0], way[1])
					if tcp, ok := way[0].(*net.TCPConn); ok {
						tcp.CloseWrite() // the last packet must arrive
					} else {
						way[0].Close()
					}
				})
			}
		}
	})
	t.Cleanup(func() {
		ln.Close()
		w.Close()
		tasks.Wait()
	})
	return ln.Addr().(*net.TCPAddr).Port
}

// limboEvent is one line of peers/bot.js.
type limboEvent struct {
	Ev, Name, Text, UUID, Mode string
	ID                         int
	X, Y, Z                    float64

	nth int // how many of this Ev and Name there have been, with this one
}

// limboBotProcess is a running peers/bot.js.
type limboBotProcess struct {
	t     *testing.T
	stdin io.Writer
	mu    sync.Mutex
	seen  []limboEvent
	ended bool
	more  chan struct{} // closed and replaced at each event
	id    int
}

func startBots(t *testing.T, version string) *limboBotProcess {
	arg, _ := json.Marshal(map[string]string{"version": version})
	cmd := exec.Command("node", "bot.js", string(arg))
	cmd.Dir = "peers"
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("node: %v (make deps-node installs it)", err)
	}
	p := &limboBotProcess{t: t, stdin: stdin, more: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.read(stdout)
	}()
	t.Cleanup(func() {
		stdin.Close()
		patience := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		<-done
		if err := cmd.Wait(); err != nil {
			t.Errorf("node: %v", err)
		}
		patience.Stop()
		if stderr.Len() > 0 {
			t.Logf("node says:\n%s", stderr.String())
		}
	})
	p.wait("bots to be ready", func(e limboEvent) bool { return e.Ev == "ready" })
	return p
}

// read collects events. Anything that is not one is a library's complaint about a packet.
func (p *limboBotProcess) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	count := map[string]int{}
	for lines.Scan() {
		var e limboEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			p.t.Errorf("node prints: %s", lines.Text())
			continue
		}
		if e.Ev == "broken" || e.Ev == "lost" {
			p.t.Errorf("%s", lines.Text())
		}
		count[e.Ev+e.Name]++
		e.nth = count[e.Ev+e.Name]
		p.mu.Lock()
		p.seen = append(p.seen, e)
		p.wake()
		p.mu.Unlock()
	}
	p.mu.Lock()
	p.ended = true
	p.wake()
	p.mu.Unlock()
}

func (p *limboBotProcess) wake() {
	close(p.more)
	p.more = make(chan struct{})
}

// wait returns the first event, of all since the start, that match likes.
func (p *limboBotProcess) wait(what string, match func(limboEvent) bool) limboEvent {
	p.t.Helper()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	for at := 0; ; {
		p.mu.Lock()
		for ; at < len(p.seen); at++ {
			if match(p.seen[at]) {
				e := p.seen[at]
				p.mu.Unlock()
				return e
			}
		}
		ended, more := p.ended, p.more
		p.mu.Unlock()
		if ended {
			p.t.Fatalf("node ended before %s", what)
		}
		select {
		case <-more:
		case <-timeout.C:
			p.t.Fatalf("waited in vain for %s; the last events: %+v", what, p.seen[max(0, len(p.seen)-10):])
		}
	}
}

// do gives a command and waits until it is done.
func (p *limboBotProcess) do(q map[string]any) limboEvent {
	p.t.Helper()
	p.mu.Lock()
	p.id++
	id := p.id
	q["id"] = id
	line, _ := json.Marshal(q)
	_, err := fmt.Fprintf(p.stdin, "%s\n", line)
	p.mu.Unlock()
	if err != nil {
		p.t.Fatal(err)
	}
	e := p.wait(fmt.Sprint(q["cmd"]), func(e limboEvent) bool { return e.ID == id && (e.Ev == "done" || e.Ev == "failed") })
	if e.Ev == "failed" {
		p.t.Fatal(e.Text)
	}
	return e
}
