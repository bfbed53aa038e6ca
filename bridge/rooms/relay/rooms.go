package relay

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync"

	"github.com/earshot-mc/earshot/bridge/rooms"
)

// Room is a declared room.
type Room struct {
	Capacity int
	Token    string // that opens it; empty: it is open to all
}

// Rooms holds relay rooms by their keys. Any goroutine may call its methods.
type Rooms struct {
	conf rooms.Config

	mu     sync.Mutex
	rooms  map[string]*declared
	closed bool
}

type declared struct {
	Room
	hub   *rooms.Hub
	relay *Relay
}

// NewRooms returns Rooms that hold no room yet. c says how to run them.
func NewRooms(c rooms.Config) *Rooms { return &Rooms{conf: c, rooms: map[string]*declared{}} }

// Set replaces the declarations. A room that is declared already goes on, with its new capacity and token; all others
// are closed.
func (r *Rooms) Set(want map[string]Room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	for key, d := range r.rooms {
		if _, stays := want[key]; !stays {
			d.hub.Close()
			delete(r.rooms, key)
		}
	}
	for key, w := range want {
		d := r.rooms[key]
		if d == nil {
			d = &declared{relay: New(w.Capacity)}
			c := r.conf
			if c.Log != nil {
				c.Log = c.Log.With("key", key)
			}
			d.hub = rooms.New(d.relay, c)
			r.rooms[key] = d
		}
		d.Room = w
		d.relay.SetCapacity(w.Capacity)
	}
}

// Enter does what [serve.Config] asks of it. Nobody has an identity here: a token opens a room for a whole team.
func (r *Rooms) Enter(token, key string) (identity string, open func() (*rooms.Hub, error), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.rooms[key]
	if token != "" {
		want := ""
		if d != nil {
			want = d.Token
		}
		a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(want))
		if subtle.ConstantTimeCompare(a[:], b[:]) != 1 || want == "" {
			return "", nil, false
		}
	}
	if d == nil || token != d.Token {
		return "", func() (*rooms.Hub, error) { return nil, rooms.ErrEnter }, true
	}
	return "", func() (*rooms.Hub, error) { return d.hub, nil }, true
}

// Close closes all rooms.
func (r *Rooms) Close() {
	r.Set(nil)
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
}
