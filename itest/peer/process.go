// Package peer starts Minecraft clients and servers that nobody of this project wrote and lets a test talk to them:
// mineflayer players, raw minecraft-protocol clients, a stub backend that does whatever it is told, and flying-squid.
// It promises that a peer never outlives its test, that no wait is without a bound, and that any complaint of a peer
// about the packets it got fails the test.
package peer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience bounds every wait for a peer. It is long because test machines are slow, and never used up when things work.
const Patience = 45 * time.Second

// Event is one line a peer printed. Which fields are set depends on Kind; what a peer prints is told in the scripts
// beside it.
type Event struct {
	Kind string `json:"ev"`
	ID   int    `json:"id"`   // of the command this answers
	Name string `json:"name"` // the player it is about

	X, Y, Z    float64
	Yaw, Pitch float64
	Entity     int32
	Vehicle    int32
	Teleport   int32
	Port       int
	Protocol   int32
	Host       string // the handshake's, with everything behind a zero byte
	From       string // the socket's address
	UUID       string
	State      string
	Channel    string
	Data       []byte
	Text       string
	World      string
	Mode       any // a number or a word
	Names      []string
	Encrypted  bool
	Packet     string
	Params     json.RawMessage
	Seen       map[string]int
	Forwarded  *Forwarded
	Bedrock    *Bedrock

	Raw string `json:"-"` // the whole line
}

// Bedrock is what a backend with Floodgate was told of a player of Bedrock Edition.
type Bedrock struct{ Name, XUID, IP string }

// Forwarded is the identity a backend was given by the proxy.
type Forwarded struct {
	Version    int // of modern forwarding, 0 in the others
	Host       string
	Address    string
	UUID       string
	Name       string
	Properties []Property
	Key        *struct{ Expires, Public, Signature string }
	Signer     string
}

// Property is a signed fact of a profile.
type Property struct{ Name, Value, Signature string }

// command is what goes to a peer's stdin.
type command map[string]any

// process is a node process and what it has said so far.
type process struct {
	t     testing.TB
	what  string
	cmd   *exec.Cmd
	stdin io.WriteCloser

	mu      sync.Mutex
	events  []Event
	news    chan struct{} // closed and replaced at each event
	broken  string        // why the test must fail
	ending  bool          // it may go now
	nextID  int
	read    map[string]int // by kind and name: where the next Await begins
	stderr  tail
	reading sync.WaitGroup
}

// tail keeps the end of what was written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.b = append(w.b, p...); len(w.b) > 16<<10 {
		w.b = append([]byte(nil), w.b[len(w.b)-8<<10:]...)
	}
	return len(p), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.b)
}

// scripts returns the directory of the node scripts.
func scripts(t testing.TB) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(filepath.Dir(file)), "peers")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "minecraft-protocol")); err != nil {
		t.Fatalf("the third-party clients and servers are not installed: run make deps (%v)", err)
	}
	return dir
}

func start(t testing.TB, script string, options command) *process {
	t.Helper()
	dir := scripts(t)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("node is not installed: run make deps (%v)", err)
	}
	arg, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, what: fmt.Sprintf("%s %s", script, options["version"]), news: make(chan struct{}), read: map[string]int{}}
	p.cmd = exec.Command(node, script, string(arg))
	p.cmd.Dir = dir
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", p.what, err)
	}
	p.reading.Add(1)
	go p.listen(out)
	t.Cleanup(p.stop)
	return p
}

// listen takes in what the peer says until it ends.
func (p *process) listen(out io.Reader) {
	defer p.reading.Done()
	lines := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			p.hear(bytes.TrimSpace(line))
		}
		if err != nil {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ending {
		p.fail("ended by itself")
	}
	p.wake()
}

func (p *process) hear(line []byte) {
	e := Event{Raw: string(line)}
	err := json.Unmarshal(line, &e)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil || e.Kind == "":
		p.fail("complains: " + string(line))
	case e.Kind == "broken":
		p.fail(fmt.Sprintf("got packets it cannot read (%s): %s", e.Name, e.Text))
	}
	p.events = append(p.events, e)
	p.wake()
}

// fail notes the first reason to fail; a goroutine of ours may not end the test itself.
func (p *process) fail(why string) {
	if p.broken == "" {
		p.broken = why
	}
}

func (p *process) wake() {
	close(p.news)
	p.news = make(chan struct{})
}

// stop ends the peer with its stdin, and by force if that is not enough.
func (p *process) stop() {
	p.t.Helper()
	p.mu.Lock()
	p.ending = true
	p.mu.Unlock()
	p.stdin.Close()
	force := time.AfterFunc(10*time.Second, func() { p.cmd.Process.Kill() })
	p.reading.Wait()
	err := p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !force.Stop() {
		p.fail("did not end with its stdin and was killed")
	} else if err != nil {
		p.fail(err.Error())
	}
	if p.broken != "" {
		p.t.Errorf("%s %s%s", p.what, p.broken, p.history())
	}
}

// history returns the peer's last events, for failures. The lock is held.
func (p *process) history() string {
	var b strings.Builder
	for _, e := range p.events[max(0, len(p.events)-25):] {
		fmt.Fprintf(&b, "\n\t%.300s", e.Raw)
	}
	if s := strings.TrimSpace(p.stderr.String()); s != "" {
		b.WriteString("\n\tstderr: " + strings.ReplaceAll(s, "\n", "\n\t\t"))
	}
	return b.String()
}

// waitFor returns the first event from the from-th on that matches, and its place.
func (p *process) waitFor(from int, what string, match func(Event) bool) (Event, int) {
	p.t.Helper()
	e, at := p.seek(from, Patience, what, match)
	if at < 0 {
		p.mu.Lock()
		h := p.history()
		p.mu.Unlock()
		p.t.Fatalf("%s: no %s within %v%s", p.what, what, Patience, h)
	}
	return e, at
}

// seek does as waitFor, with a time of its own; after that the place is -1.
func (p *process) seek(from int, within time.Duration, what string, match func(Event) bool) (Event, int) {
	p.t.Helper()
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	for {
		p.mu.Lock()
		for ; from < len(p.events); from++ {
			if e := p.events[from]; match(e) {
				p.mu.Unlock()
				return e, from
			}
		}
		broken, news := p.broken, p.news
		if broken != "" {
			h := p.history()
			p.mu.Unlock()
			p.t.Fatalf("waiting for %s: %s %s%s", what, p.what, broken, h)
		}
		p.mu.Unlock()
		select {
		case <-news:
		case <-timeout.C:
			return Event{}, -1
		}
	}
}

// next implements the Next of a client.
func (p *process) next(within time.Duration, name string, kinds []string) (Event, bool) {
	p.t.Helper()
	key := kinds[0] + "\x00" + name
	p.mu.Lock()
	from := p.read[key]
	p.mu.Unlock()
	e, at := p.seek(from, within, fmt.Sprintf("%q event about %q", kinds, name), func(e Event) bool {
		return e.Name == name && slices.Contains(kinds, e.Kind)
	})
	if at < 0 {
		return e, false
	}
	p.mu.Lock()
	p.read[key] = at + 1
	p.mu.Unlock()
	return e, true
}

// await returns the next event of a kind about a player ("" is about anybody or nobody) that matches (nil: any). Each
// call goes on behind the event the last call for the same kind and player returned, so nothing is missed and nothing
// is seen twice.
func (p *process) await(kind, name string, match func(Event) bool) Event {
	p.t.Helper()
	key := kind + "\x00" + name
	p.mu.Lock()
	from := p.read[key]
	p.mu.Unlock()
	e, at := p.waitFor(from, fmt.Sprintf("%q event about %q", kind, name), func(e Event) bool {
		return e.Kind == kind && (name == "" || e.Name == name) && (match == nil || match(e))
	})
	p.mu.Lock()
	p.read[key] = at + 1
	p.mu.Unlock()
	return e
}

// count says how many events of a kind about a player there have been.
func (p *process) count(kind, name string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Kind == kind && (name == "" || e.Name == name) {
			n++
		}
	}
	return n
}

// skip makes the next Await of a kind about a player look at what is still to come only.
func (p *process) skip(kind, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read[kind+"\x00"+name] = len(p.events)
}

// do gives a command and returns its answer, which comes once it has been carried out.
func (p *process) do(c command) Event {
	p.t.Helper()
	e, err := p.try(c)
	if err != nil {
		p.t.Fatal(err)
	}
	return e
}

// try does as do, for commands that may fail.
func (p *process) try(c command) (Event, error) {
	p.t.Helper()
	p.mu.Lock()
	p.nextID++
	id, from := p.nextID, len(p.events)
	p.mu.Unlock()
	c["id"] = id
	b, err := json.Marshal(c)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.stdin.Write(append(b, '\n')); err != nil {
		p.mu.Lock()
		h := p.history()
		p.mu.Unlock()
		p.t.Fatalf("%s takes no commands any more: %v%s", p.what, err, h)
	}
	e, _ := p.waitFor(from, fmt.Sprintf("answer to %s", b), func(e Event) bool {
		return e.ID == id && (e.Kind == "done" || e.Kind == "failed")
	})
	if e.Kind == "failed" {
		return e, fmt.Errorf("%s: %s", p.what, e.Text)
	}
	return e, nil
}

// hostPort splits an address for the peers.
func hostPort(t testing.TB, addr string) (string, int) {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatalf("address of the server to join: %v", err)
	}
	return a.IP.String(), a.Port
}
