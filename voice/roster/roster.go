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
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Ration is how long a reader waits for the next snapshot after one was sent because something had changed. A flush
// pass is not bound by it, so that no change is lost.
const Ration = 250 * time.Millisecond

// Person is who stands in the roster, and how.
type Person struct {
	ID       uuid.UUID
	Name     string // no blanks, no control characters
	Deafened bool
	Tier     talk.Tier // normal where the server does not offer the tier that the person has chosen
}

// Entry is a person as readers get it. It is not to be changed; a change makes another one.
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

// Snapshot is a roster as one or many readers get it. It is not to be changed.
type Snapshot struct {
	talk.Texts
	entries  []*Entry // of the whole book
	seen     []uint64
	who, how uint64
}

// All yields who is in the roster, in the order of slots.
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

// New returns an empty book.
func New() *Book {
	return &Book{snapshots: make(map[string]*Snapshot), seed: maphash.MakeSeed()}
}

// Put writes a person into a slot, in place of whoever was there.
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
		}
	}
	b.snapshots[string(b.key)] = s
	return s
}

// mix is odd, so that nothing of a hash is lost by it.
const mix = 0x9e3779b97f4a7c15

// Copy is what one reader has: the zero value is nothing yet.
type Copy struct {
	has        bool
	book, view uint64 // versions it was last compared at
	sum        uint64
	at         time.Time // of the last sending
}

// Fresh tells whether the copy was compared with this version of the book and this version of what its reader may see,
// so that there is nothing to do.
func (c *Copy) Fresh(book, view uint64) bool { return c.has && c.book == book && c.view == view }

// Due tells whether a stale copy may be replaced now: in a flush pass always, else no sooner than Ration after the
// last time. What is not due stays stale until it is.
func (c *Copy) Due(now time.Time, flush bool) bool {
	return flush || !c.has || now.Sub(c.at) >= Ration
}

// Take records that the reader has, from now on, the given snapshot of these versions, and tells whether it has to be
// sent: an unchanged one is not, since even that would betray that somebody came whom the reader may not see. status is
// whether the reader is told how people are, and not only who they are.
func (c *Copy) Take(s *Snapshot, status bool, book, view uint64, now time.Time) (send bool) {
	sum := s.who
	if status {
		sum = s.how
	}
	send = !c.has || c.sum != sum
	if send {
		c.at = now
	}
	c.has, c.book, c.view, c.sum = true, book, view, sum
	return send
}
