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

// route is where a player is and where they go next. The owner's, except for where.
type route struct {
	current  *link   // the backend the player is on; nil before the first join
	inflight *link   // the backend the player is on the way to
	attempt  *dialed // the backend being dialled
	plan     plan    // where to try next
	hold     hold    // what there is to know about waiting in the built-in world
	draining string  // the server whose emptying sent the player on the way, or cost it; empty: none
	where    whereabouts
}

// partner is the backend that hears the client: the one it is on the way to as long as there is no other.
func (r *route) partner() *link {
	if r.current != nil {
		return r.current
	}
	return r.inflight
}

// has reports whether l is a backend that has not been given up.
func (r *route) has(l *link) bool { return l != nil && (l == r.current || l == r.inflight) }

// readBy is the backend that p reads, nil when that has been given up.
func (r *route) readBy(p *relay.Pump) *link {
	for l := range r.links() {
		if l.pump == p {
			return l
		}
	}
	return nil
}

// writtenBy is the backend that is written to, nil when that has been given up.
func (r *route) writtenBy(to *relay.Outlet) *link {
	for l := range r.links() {
		if l.takes(to) {
			return l
		}
	}
	return nil
}

// links are the backends that there are.
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
	ready   bool // it has heard what the client said before; the client's packets may follow
	alive   keepAlives
	begun   bool      // with a configuration phase, or Forge's handshake: the player is being handed over to it
	started bool      // pump is running
	packs   int       // how often the client has told it its known packs
	since   time.Time // when its first join game came
	cookies questions // it asked the client for
	pings   questions // it sent the client in configuration
}

// takes reports whether what is written to an outlet goes to this backend. It has had another one for each threshold.
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

// plan is how a player without a backend is to be tried on those of the list, which is looked up at each step.
type plan struct {
	failed map[string]string // servers that failed, in lower case, with the address: each is tried once
	first  *failure          // why the player lost the server it was on; nil for a newcomer
	last   *failure
	notice *packet.Text // what the player is told once it is on another server
	tried  int          // of names, besides the built-in world
	until  time.Time    // when to stop trying; zero: nothing was tried yet
}

// fail notes a server not to be tried again.
func (p *plan) fail(b *backend.Server, f failure) {
	if p.failed == nil {
		p.failed = map[string]string{}
	}
	p.failed[strings.ToLower(b.Name)] = b.Address
	p.last = &f
}

// has reports whether a server has failed, where it is now.
func (p *plan) has(b *backend.Server) bool {
	at, ok := p.failed[strings.ToLower(b.Name)]
	return ok && at == b.Address
}

// failure is why a backend did not take the player.
type failure struct {
	ending Ending
	reason reason
}

// hold is what there is to know of a player who waits in the built-in world because no server took them.
type hold struct {
	on     bool
	next   time.Time            // when to look for a server
	wait   time.Duration        // from a refusal to the next look; zero: nobody has refused
	missed map[string]time.Time // by lower-case name: when a server last lost or refused the player
	told   string               // the last refusal that the player was told
}

// miss notes that a server is not to be tried for this player before it has given a sign of life.
func (h *hold) miss(server string) {
	if h.missed == nil {
		h.missed = map[string]time.Time{}
	}
	h.missed[strings.ToLower(server)] = time.Now()
}

// delay is miss, and makes the player wait longer than the last time.
func (h *hold) delay(server string) {
	h.miss(server)
	h.wait = min(max(2*h.wait, firstRefusal), lastRefusal)
	h.next = time.Now().Add(health.Jitter(h.wait))
}

// whereabouts is where a player is and on the way to, for other goroutines to see. The owner writes it, and Connect,
// which thereby makes sure that a player goes one way at a time.
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

// head notes a new direction, unless the player is there or has one. A server that has got another address is another one.
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
