package voice

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// PlayerName is the last name of a player who was here.
type PlayerName struct {
	Player uuid.UUID `json:"player"`
	Name   string    `json:"name"`
	Seen   time.Time `json:"seen"` // the day when the player was here last
}

// maxPlayerName bounds the names that are kept, in bytes: those of the game have 16, Geyser's a prefix.
const maxPlayerName = 64

// Check returns what is wrong with a record.
func (n *PlayerName) Check() error {
	if n.Player == uuid.Nil || n.Name == "" || len(n.Name) > maxPlayerName {
		return fmt.Errorf("%q is no name of a player %s: 1 to %d bytes", n.Name, n.Player, maxPlayerName)
	}
	return nil
}

// seenEvery is how long a record may stay as it is while its player comes and goes: a network's regulars are not
// written at each of their joins.
const seenEvery = 24 * time.Hour

// Names remembers the names of players who were here, so that administrators can name them when they have left. It
// keeps the newest. Its methods may be called from any goroutine and do not wait for the store. Get one from
// [State.Names].
type Names struct {
	bucket *kept[PlayerName]
	max    int
	news   atomic.Bool // others have stored something

	mu     sync.Mutex
	byID   map[uuid.UUID]PlayerName
	byName map[string][]uuid.UUID // by name in lower case
}

// Names returns the names of players who were here, at most most; with 0 none are kept, and stored ones are deleted. It
// may be called once.
func (s *State) Names(most int) *Names {
	n := &Names{bucket: s.names, max: most, byID: make(map[uuid.UUID]PlayerName), byName: make(map[string][]uuid.UUID)}
	for _, r := range s.names.all() {
		n.put(r)
	}
	n.prune()
	s.names.Watch(func() { n.news.Store(true) })
	return n
}

// Seen notes that a player is here. It returns when it was noted last, to a day; zero: never, or long ago.
func (n *Names) Seen(player uuid.UUID, name string, now time.Time) (last time.Time) {
	r := PlayerName{player, name, now.UTC().Truncate(time.Second)}
	if n.max <= 0 || r.Check() != nil {
		return time.Time{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.takeNews()
	if was, ok := n.byID[player]; ok && was.Name == name && now.Sub(was.Seen) < seenEvery {
		return was.Seen
	} else if ok {
		last = was.Seen
	}
	n.put(r)
	n.bucket.Set(player.String(), r, nil) // the store takes it later if it cannot now
	n.prune()
	return last
}

// Name returns a player's last name; empty when it is not known.
func (n *Names) Name(player uuid.UUID) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.takeNews()
	return n.byID[player].Name
}

// Find returns the players with that last name, whatever the case, the newest first.
func (n *Names) Find(name string) (all []PlayerName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.takeNews()
	for _, id := range n.byName[strings.ToLower(name)] {
		all = append(all, n.byID[id])
	}
	slices.SortFunc(all, func(a, b PlayerName) int {
		return cmp.Or(b.Seen.Compare(a.Seen), slices.Compare(a.Player[:], b.Player[:]))
	})
	return all
}

// takeNews takes in what others have stored. n is locked.
func (n *Names) takeNews() {
	if !n.news.Swap(false) {
		return
	}
	put, gone := n.bucket.take()
	for _, id := range ids(gone) {
		n.remove(id)
	}
	for _, r := range put {
		n.put(r)
	}
}

func (n *Names) put(r PlayerName) {
	n.remove(r.Player)
	n.byID[r.Player] = r
	key := strings.ToLower(r.Name)
	n.byName[key] = append(n.byName[key], r.Player)
}

func (n *Names) remove(id uuid.UUID) {
	r, ok := n.byID[id]
	if !ok {
		return
	}
	delete(n.byID, id)
	key := strings.ToLower(r.Name)
	if n.byName[key] = slices.DeleteFunc(n.byName[key], func(o uuid.UUID) bool { return o == id }); len(n.byName[key]) == 0 {
		delete(n.byName, key)
	}
}

// prune forgets the players who were here longest ago, a few more than it must, so that it does not look through all of
// them at each newcomer.
func (n *Names) prune() {
	over := len(n.byID) - n.max
	if over <= 0 {
		return
	}
	all := make([]PlayerName, 0, len(n.byID))
	for _, r := range n.byID {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b PlayerName) int { return a.Seen.Compare(b.Seen) })
	for _, r := range all[:min(len(all), over+n.max/100)] {
		n.remove(r.Player)
		n.bucket.Unset(r.Player.String(), nil)
	}
}
