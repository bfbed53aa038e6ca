// Package roster makes the snapshots of who is in voice, one for each set of people that a reader may know about, and
// keeps for each reader whether its copy is stale and whether it may be replaced now.
//
// It promises that a snapshot never holds, and never changes because of, somebody whom its reader may not see.
package roster

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Ration is how long a reader waits for the next snapshot after one was sent because something had changed. A flush
// pass is not bound by it, so that no change is lost.
const Ration = 250 * time.Millisecond

// Rate is how many bytes of rosters a reader gets in a second, on the average over some seconds.
const Rate = 128 << 10

// First is how many bytes the first roster of a reader has at most: when thousands come at once, each of them is told
// soon of those around them.
const First = 24 << 10

// Form is what a reader gets of a roster: all of it each time, or what has changed. The sizes are those of text lines,
// the only form that there is so far.
type Form struct {
	Most      int  // bytes that a roster may have: what readers take
	row, mark int  // bytes of a row without the name, and of a mark that somebody is deafened, or has a tier
	whole     bool // each time
}

// The forms. Lines end in three lists of UUIDs.
var (
	Lines     = Form{Most: 262_144 - 128, row: 38, mark: 37, whole: true}
	Revisions = Form{Most: 1<<20 - 128, row: 50}
)

// Person is one row of the roster, with its state.
type Person struct {
	ID       uuid.UUID
	Name     string // no blanks, no control characters
	Deafened bool
	Tier     talk.Tier // normal where the server does not offer the tier that the person has chosen
}

// Entry is a person as readers get it. It must not be changed; a change makes another one.
type Entry struct {
	Person
	talk.Texts
	who, how uint64 // hashes of who it is, and of that and its state
}

// Book holds everybody in voice by slot. It belongs to the one goroutine that runs the turns.
type Book struct {
	entries   []*Entry // nil in a free slot
	lent      bool     // entries belongs to snapshots, too
	version   uint64
	snapshots map[string]*Snapshot // of this version, by the set of slots
	key       []byte
	seed      maphash.Seed
}

// Snapshot is a roster as one or many readers get it. It must not be changed.
type Snapshot struct {
	talk.Texts
	entries  []*Entry // of the whole book
	seen     []uint64
	who, how uint64

	people, names, marks int // how many, bytes of names, and how many are deafened or have a tier

	mu    sync.Mutex
	since map[uint64]*Changes // by the revision that they begin at
}

// Changes are what has changed from one snapshot to another one. They are not to be changed.
type Changes struct {
	talk.Texts
	Put  []*Entry    // who is new, or is otherwise than before, in the order of slots
	Gone []uuid.UUID // who is not there any more
}

// Many tells whether the changes are so many that a reader gets the whole snapshot instead, which others get as well.
func (c *Changes) Many(of *Snapshot) bool { return 2*(len(c.Put)+len(c.Gone)) >= of.Len() }

// Revision names who is in the snapshot and how they are: of one book, two snapshots of one revision hold the same. It
// is not a count, which would tell a reader of somebody they may not see.
func (s *Snapshot) Revision() uint64 { return s.how }

// Since returns what has changed since a former snapshot of the same book. Those who had the same one share the
// changes.
func (s *Snapshot) Since(was *Snapshot) *Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.since[was.how]; c != nil {
		return c
	}
	c := &Changes{}
	word := func(seen []uint64, i int) uint64 {
		if i < len(seen) {
			return seen[i]
		}
		return 0
	}
	for i := range max(len(s.seen), len(was.seen)) {
		now, then := word(s.seen, i), word(was.seen, i)
		for both := now | then; both != 0; both &= both - 1 {
			bit := both & -both
			at := i*64 + bits.TrailingZeros64(both)
			switch {
			case then&bit == 0:
				c.Put = append(c.Put, s.entries[at])
			case now&bit == 0:
				c.Gone = append(c.Gone, was.entries[at].ID)
			case s.entries[at] != was.entries[at]:
				if s.entries[at].ID != was.entries[at].ID { // another one in the same slot
					c.Gone = append(c.Gone, was.entries[at].ID)
				}
				c.Put = append(c.Put, s.entries[at])
			}
		}
	}
	// A person who has come back in another slot is not gone.
	if len(c.Gone) > 0 && len(c.Put) > 0 {
		put := make(map[uuid.UUID]bool, len(c.Put))
		for _, e := range c.Put {
			put[e.ID] = true
		}
		c.Gone = slices.DeleteFunc(c.Gone, func(id uuid.UUID) bool { return put[id] })
	}
	if s.since == nil {
		s.since = make(map[uint64]*Changes)
	}
	s.since[was.how] = c
	return c
}

// All yields the people in the roster, in the order of slots.
func (s *Snapshot) All() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for i, word := range s.seen {
			for ; word != 0; word &= word - 1 {
				if !yield(s.entries[i*64+bits.TrailingZeros64(word)]) {
					return
				}
			}
		}
	}
}

// Len returns how many are in the roster.
func (s *Snapshot) Len() (n int) {
	for _, word := range s.seen {
		n += bits.OnesCount64(word)
	}
	return n
}

// Size returns how many bytes the roster has in a form, as nearly as it takes to stay within [Form.Most].
func (s *Snapshot) Size(f Form) int { return s.people*f.row + s.names + s.marks*f.mark }

func (e *Entry) marks() (n int) {
	if e.Deafened {
		n++
	}
	if e.Tier != talk.Normal {
		n++
	}
	return n
}

// New returns an empty book.
func New() *Book {
	return &Book{snapshots: make(map[string]*Snapshot), seed: maphash.MakeSeed()}
}

// Put writes a person into a slot, in place of the former one.
func (b *Book) Put(slot int, p Person) {
	if slot < len(b.entries) && b.entries[slot] != nil && b.entries[slot].Person == p {
		return
	}
	who := Person{ID: p.ID, Name: p.Name}
	b.set(slot, &Entry{Person: p, who: maphash.Comparable(b.seed, who), how: maphash.Comparable(b.seed, p)})
}

// Drop empties a slot.
func (b *Book) Drop(slot int) { b.set(slot, nil) }

func (b *Book) set(slot int, e *Entry) {
	if b.lent {
		b.entries, b.lent = slices.Clone(b.entries), false
	}
	for slot >= len(b.entries) {
		b.entries = append(b.entries, nil)
	}
	b.entries[slot] = e
	b.version++
	clear(b.snapshots)
}

// Version counts the changes of the book.
func (b *Book) Version() uint64 { return b.version }

// Snapshot returns the roster of those whose slots are in the set, one bit each. Readers of equal sets share one.
func (b *Book) Snapshot(seen []uint64) *Snapshot {
	b.key = b.key[:0]
	for _, word := range seen {
		b.key = binary.LittleEndian.AppendUint64(b.key, word)
	}
	if s := b.snapshots[string(b.key)]; s != nil {
		return s
	}
	b.lent = true
	s := &Snapshot{entries: b.entries, seen: slices.Clone(seen)}
	for i, word := range seen {
		for ; word != 0; word &= word - 1 {
			e := b.entries[i*64+bits.TrailingZeros64(word)]
			s.who, s.how = (s.who+e.who)*mix, (s.how+e.how)*mix // the order counts
			s.people, s.names, s.marks = s.people+1, s.names+len(e.Name), s.marks+e.marks()
		}
	}
	if len(b.snapshots) > keep { // of sets that change while nobody comes or goes
		clear(b.snapshots)
	}
	b.snapshots[string(b.key)] = s
	return s
}

// Size returns how many bytes of a form somebody takes.
func (b *Book) Size(slot int, f Form) int {
	e := b.entries[slot]
	return f.row + len(e.Name) + e.marks()*f.mark
}

// keep is how many snapshots of one version are kept.
const keep = 8192

// mix is odd, so that nothing of a hash is lost by it.
const mix = 0x9e3779b97f4a7c15

// Copy is what one reader has: the zero value is nothing yet.
type Copy struct {
	has        bool
	book, view uint64 // versions it was last compared at
	sum        uint64
	last       *Snapshot
	at         time.Time // of the last sending
	wait       time.Duration
}

// Again records that a reader's roster, for which others were too many, was compared and found to be the one that it
// has.
func (c *Copy) Again(now time.Time) { c.at = now }

// Empty tells whether the reader has nothing yet.
func (c *Copy) Empty() bool { return !c.has }

// Fresh tells whether the copy was compared with this version of the book and this version of its reader's sight, so
// that there is nothing to do.
func (c *Copy) Fresh(book, view uint64) bool { return c.has && c.book == book && c.view == view }

// Due tells whether a stale copy may be replaced now: no sooner than Ration after the last time, but for a flush pass,
// and as much later as [Rate] asks for what was sent then. What is not due stays stale until it is.
func (c *Copy) Due(now time.Time, flush bool) bool {
	since := now.Sub(c.at)
	return !c.has || since >= c.wait && (flush || since >= Ration)
}

// Take records that the reader has, from now on, the given snapshot of these versions, and tells whether to send it. An
// unchanged one is not sent, since even that would betray somebody the reader may not see. status tells whether the
// reader is told the state of people, and not only who they are.
func (c *Copy) Take(s *Snapshot, status bool, f Form, book, view uint64, now time.Time) (send bool) {
	sum := s.who
	if status {
		sum = s.how
	}
	send = !c.has || c.sum != sum
	if send {
		c.at, c.wait = now, 0
		if f.whole || c.last == nil || s.Since(c.last).Many(s) {
			c.wait = time.Duration(s.Size(f)) * time.Second / Rate
		}
	}
	c.has, c.book, c.view, c.sum, c.last = true, book, view, sum, s
	return send
}
