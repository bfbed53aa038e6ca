package session

import (
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/health"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// route says where a player is and where they go next. It is the owner's, except for where.
type route struct {
	current  *link   // the backend the player is on; nil before the first join
	inflight *link   // the backend the player is on the way to
	attempt  *dialed // the backend being dialled
	plan     plan    // where to try next
	hold     hold    // about waiting in the built-in world
	draining string  // the draining server that the player had to leave, or never reached; empty: none
	where    whereabouts
}

// partner returns the backend that hears the client: the one it is on the way to as long as there is no other.
func (r *route) partner() *link {
	if r.current != nil {
		return r.current
	}
	return r.inflight
}

// has reports whether l is a backend that has not been given up.
func (r *route) has(l *link) bool { return l != nil && (l == r.current || l == r.inflight) }

// readBy returns the backend that p reads, nil when that has been given up.
func (r *route) readBy(p *relay.Pump) *link {
	for l := range r.links() {
		if l.pump == p {
			return l
		}
	}
	return nil
}

// writtenBy returns the backend that an outlet writes to, nil when that has been given up.
func (r *route) writtenBy(to *relay.Outlet) *link {
	for l := range r.links() {
		if l.takes(to) {
			return l
		}
	}
	return nil
}

// links returns the backends, one or two.
func (r *route) links() iter.Seq[*link] {
	return func(yield func(*link) bool) {
		if l := r.current; l != nil && !yield(l) {
			return
		}
		if l := r.inflight; l != nil {
			yield(l)
		}
	}
}

// link is a connection to a backend, from its login success on.
type link struct {
	name    string
	server  *backend.Server
	planned bool // along the list, not at somebody's request
	conn    *backend.Conn
	pump    *relay.Pump // reads it; pump.State() is how it is decoded
	out     proto.State // how it is encoded
	to      *relay.Outlet
	ready   bool // it has heard the client's earlier words; the client's packets may follow
	alive   keepAlives
	begun   bool      // with a configuration phase, or Forge's handshake: the player is being handed over to it
	started bool      // pump is running
	packs   int       // how often the client has told it its known packs
	since   time.Time // when its first join game came
	cookies questions // it asked the client for
	pings   questions // it sent the client in configuration
}

// takes reports whether an outlet writes to this backend. The backend has had another one for each threshold.
func (l *link) takes(to *relay.Outlet) bool { return to.Writer == l.to.Writer }

// recompress changes the compression of the connection in both directions.
func (l *link) recompress(threshold int) {
	l.conn.Reader.SetCompression(threshold)
	l.conn.Writer.SetCompression(threshold)
	l.to = &relay.Outlet{Writer: l.to.Writer, Threshold: threshold}
}

// dialed is the outcome of dialling.
type dialed struct {
	server  *backend.Server
	planned bool
	conn    *backend.Conn
	err     error
}

// plan says which servers of the list a player without a backend has still to try. The list is looked up at each step.
type plan struct {
	failed map[string]string // servers that failed, in lower case, with the address: each is tried once
	first  *failure          // why the player lost their server; nil for a newcomer
	last   *failure
	notice *packet.Text // text for the player once they are on another server
	tried  int          // of names, the built-in world apart
	until  time.Time    // when to stop trying; zero: nothing was tried yet
}

// fail notes a server that must not be tried again.
func (p *plan) fail(b *backend.Server, f failure) {
	if p.failed == nil {
		p.failed = map[string]string{}
	}
	p.failed[strings.ToLower(b.Name)] = b.Address
	p.last = &f
}

// has reports whether a server has failed, at its present address.
func (p *plan) has(b *backend.Server) bool {
	at, ok := p.failed[strings.ToLower(b.Name)]
	return ok && at == b.Address
}

// failure says why a backend did not take the player.
type failure struct {
	ending Ending
	reason reason
}

// hold is about a player who waits in the built-in world because no server took them.
type hold struct {
	on     bool
	next   time.Time            // when to look for a server
	wait   time.Duration        // from a refusal to the next look; zero: nobody has refused
	missed map[string]time.Time // by lower-case name: when a server last lost or refused the player
	told   string               // the last refusal that the player was told
}

// miss notes that a server must not be tried for this player until it shows life.
func (h *hold) miss(server string) {
	if h.missed == nil {
		h.missed = map[string]time.Time{}
	}
	h.missed[strings.ToLower(server)] = time.Now()
}

// delay does as miss, and makes the player wait longer than the last time.
func (h *hold) delay(server string) {
	h.miss(server)
	h.wait = min(max(2*h.wait, firstRefusal), lastRefusal)
	h.next = time.Now().Add(health.Jitter(h.wait))
}

// whereabouts says where a player is and is on the way to, for other goroutines. The owner and Connect write it, so a
// player goes one way at a time.
type whereabouts struct {
	mu      sync.Mutex
	at, to  string
	address string // of the server that the player is on
}

// set notes both.
func (w *whereabouts) set(at, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.to = at, to
}

// arrive notes that the player is on a server.
func (w *whereabouts) arrive(at *backend.Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.to, w.address = at.Name, "", at.Address
}

func (w *whereabouts) get() (at, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at, w.to
}

// head notes a new direction, unless the player is there or has one. A server with a new address is another server.
func (w *whereabouts) head(to *backend.Server) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.to != "":
		return refusal("already connecting to "+w.to, "connecting-already", "server", w.to)
	case strings.EqualFold(w.at, to.Name) && w.address == to.Address:
		return refusal("already connected to "+to.Name, "connected-already", "server", to.Name)
	}
	w.to = to.Name
	return nil
}
