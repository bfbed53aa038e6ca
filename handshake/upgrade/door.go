package upgrade

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"

	"github.com/earshot-mc/earshot/handshake/front"
	"github.com/earshot-mc/earshot/handshake/socket"
)

// Guest is the sender of a request that is upgraded.
type Guest struct {
	Name   string      // in logs
	Header http.Header // of the answer; may be nil
	Limits socket.Limits
	// Accept owns the socket and runs it; the connection is closed when it returns.
	Accept func(ctx context.Context, s *socket.Socket)
}

// DoorConfig has what a door needs. All fields except Origins, Failures and Log are required.
type DoorConfig struct {
	What    string // is served, in logs
	Sweeper *socket.Sweeper
	// Admit returns who asks, or a refusal. It is called last, when nothing else is wrong with the request.
	Admit func(r *http.Request) (*Guest, *Refusal)
	// Count is told the reason of every refusal and its origin: an IPv4 address or an IPv6 /64.
	Count func(reason string, from netip.Addr)
	// Origins are further pages that may connect, as browsers name them: scheme://host[:port]. A page of the requested
	// host always may.
	Origins []string
	// Failures counts the failures of all addresses; doors may share it. Nil: the door has its own.
	Failures *front.Failures
	Log      *slog.Logger
}

// An address may fail this often: at once, and then one more each time the interval is over. A household of players
// with stale links stays below it.
const (
	failBurst = 20
	failEvery = 3 * time.Second
)

// writeTimeout is how long the answer to an upgrade may take.
const writeTimeout = 5 * time.Second

// Answers to an address that fails too often are held back for slowFor, so many at a time; all further ones go at once.
const (
	slowFor   = time.Second
	maxSlowed = 64
)

// Door upgrades the requests of a path, or refuses them.
type Door struct {
	cfg     DoorConfig
	origins atomic.Pointer[[]string]
	mu      sync.Mutex  // held while stopped is set and while serving grows
	stopped atomic.Bool // readable without it
	stop    chan struct{}
	serving sync.WaitGroup
	slowed  atomic.Int32 // answers that are being held back
}

// NewDoor makes a door.
func NewDoor(cfg DoorConfig) *Door {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Failures == nil {
		cfg.Failures = &front.Failures{Burst: failBurst, Every: failEvery}
	}
	d := &Door{cfg: cfg, stop: make(chan struct{})}
	d.SetOrigins(cfg.Origins)
	return d
}

// Failures returns the count of all addresses' failures, for another door.
func (d *Door) Failures() *front.Failures { return d.cfg.Failures }

// SetOrigins replaces [DoorConfig].Origins for requests from now on.
func (d *Door) SetOrigins(origins []string) { d.origins.Store(&origins) }

// Stop refuses every request from now on. Sockets that are open stay so.
func (d *Door) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopped.Swap(true) {
		close(d.stop)
	}
}

// Wait returns when every socket that was handed on has ended; call Stop first.
func (d *Door) Wait() { d.serving.Wait() }

// ServeHTTP refuses, or upgrades and hands the socket on.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	addr := front.Address(r.RemoteAddr)
	guest, no := d.check(r)
	if no != nil {
		d.refuse(w, r, addr, no)
		return
	}
	conn, rw, _, err := ws.HTTPUpgrader{Header: guest.Header, Timeout: writeTimeout}.Upgrade(r, w)
	if err != nil {
		if conn != nil {
			conn.Close()
		}
		d.cfg.Count(failed.Reason, addr)
		d.cfg.Log.Debug(d.cfg.What+" upgrade failed", "addr", addr, "player", guest.Name, "err", err)
		return
	}
	// The goroutine of net/http would hold the request, two buffers and a deep stack for as long as the socket lives:
	// more than a quiet socket itself needs.
	sock := socket.New(conn, rw.Reader, d.cfg.Sweeper)
	sock.SetLimits(guest.Limits)
	d.mu.Lock()
	if d.stopped.Load() { // since it was checked
		d.mu.Unlock()
		conn.Close()
		return
	}
	d.serving.Add(1) // under mu, so that it is before any Wait
	d.mu.Unlock()
	name, accept := guest.Name, guest.Accept
	go func() {
		defer d.serving.Done()
		defer conn.Close()
		defer func() { // a fault of ours ends this socket and no other
			if fault := recover(); fault != nil {
				d.cfg.Log.Error(d.cfg.What+" socket ended by a bug; please report this", "player", name, "panic", fault, "stack", string(debug.Stack()))
			}
		}()
		accept(context.Background(), sock)
	}()
}

// slow holds an answer back. Its cost is bounded: the connection, for as long as it may be silent anyway.
func (d *Door) slow(r *http.Request) {
	defer d.slowed.Add(-1)
	if d.slowed.Add(1) > maxSlowed {
		return
	}
	t := time.NewTimer(slowFor)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	case <-d.stop:
	}
}

// check returns who asks, or a refusal. A good token counts whatever else has come from its address: failures are
// counted after it has been tried, so that nobody can shut out others at the same address.
func (d *Door) check(r *http.Request) (*Guest, *Refusal) {
	switch {
	case d.stopped.Load():
		return nil, &shuttingDown
	case !isUpgrade(r):
		return nil, &notWebSocket
	case r.Header.Get("Sec-WebSocket-Version") != "13":
		return nil, &badVersion
	case !front.Ours(r, *d.origins.Load()):
		return nil, &badOrigin
	}
	return d.cfg.Admit(r)
}

func (d *Door) refuse(w http.ResponseWriter, r *http.Request, addr netip.Addr, why *Refusal) {
	if !why.Free && d.cfg.Failures.Add(addr) {
		d.slow(r)
		why = &rateLimited
		w.Header().Set("Retry-After", strconv.Itoa(int(failEvery/time.Second)))
	}
	d.cfg.Count(why.Reason, addr)
	d.cfg.Log.Debug(d.cfg.What+" connection refused", "addr", addr, "reason", why.Reason)
	if why == &badVersion {
		w.Header()["Sec-WebSocket-Version"] = []string{"13"}
	}
	http.Error(w, why.Text, why.Status)
}
