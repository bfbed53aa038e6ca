package session

import (
	"strings"
	"sync"

	"github.com/google/uuid"
)

// registry holds the players by UUID and by lower-case name. Both entries are made and removed in one critical section,
// and a session removes only its own entries. Else a refused newcomer would take the real player off the list, who
// could then be joined twice.
type registry struct {
	mu     sync.Mutex
	byID   map[uuid.UUID]*Session
	byName map[string]*Session
}

func newRegistry() *registry {
	return &registry{byID: map[uuid.UUID]*Session{}, byName: map[string]*Session{}}
}

// claim enters s unless its UUID or its name is taken, and returns who holds it then (nil when s is in).
func (r *registry) claim(s *Session, id uuid.UUID, name string) (holder *Session) {
	name = strings.ToLower(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.byID[id]; h != nil {
		return h
	}
	if h := r.byName[name]; h != nil {
		return h
	}
	r.byID[id], r.byName[name] = s, s
	return nil
}

// release takes s out, if it is in.
func (r *registry) release(s *Session, id uuid.UUID, name string) {
	name = strings.ToLower(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[id] == s {
		delete(r.byID, id)
	}
	if r.byName[name] == s {
		delete(r.byName, name)
	}
}

// all returns the players, in no order.
func (r *registry) all() []*Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*Session, 0, len(r.byID))
	for _, s := range r.byID {
		list = append(list, s)
	}
	return list
}

// each calls f for the players until it returns false, in an order that differs from call to call. It holds the lock.
func (r *registry) each(f func(*Session) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.byID {
		if !f(s) {
			return
		}
	}
}

func (r *registry) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}

// get finds a player by UUID; nil: there is none.
func (r *registry) get(id uuid.UUID) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}
