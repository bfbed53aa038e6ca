// Package roster makes the snapshots of who is in voice, one for each set of people that a reader may know about, and
// keeps for each reader whether its copy is stale and whether it may be replaced now.
//
// It promises that a snapshot never holds, and never changes because of, somebody whom its reader may not see.
package roster

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/line"
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

// Book holds everybody in voice by slot. It belongs to the one goroutine that runs the turns.
type Book struct {
	people  []entry
	version uint64
	texts   map[string]*Snapshot // of this version, by the set of slots and whether the reader has the extra rows
	key     []byte
	seed    maphash.Seed
}

type entry struct {
	Person
	row []byte // nil in a free slot
}

// Snapshot is a roster as one or many readers get it. It is not to be changed.
type Snapshot struct {
	Text []byte
	sum  uint64
}

// New returns an empty book.
func New() *Book {
	return &Book{texts: make(map[string]*Snapshot), seed: maphash.MakeSeed()}
}

// Put writes a person into a slot, in place of whoever was there.
func (b *Book) Put(slot int, p Person) {
	for slot >= len(b.people) {
		b.people = append(b.people, entry{})
	}
	if e := &b.people[slot]; e.row == nil || e.Person != p {
		*e = entry{p, line.AppendPerson(nil, line.Person{ID: p.ID, Name: p.Name})}
		b.turnOver()
	}
}

// Drop empties a slot.
func (b *Book) Drop(slot int) {
	b.people[slot] = entry{}
	b.turnOver()
}

func (b *Book) turnOver() {
	b.version++
	clear(b.texts)
}

// Version counts the changes of the book.
func (b *Book) Version() uint64 { return b.version }

// Snapshot is the roster of those whose slots are in the set, one bit each, in the order of slots; with status also
// the rows of who is deafened, whispers and shouts. Readers of equal sets share one.
func (b *Book) Snapshot(seen []uint64, status bool) *Snapshot {
	b.key = b.key[:0]
	for _, word := range seen {
		b.key = binary.LittleEndian.AppendUint64(b.key, word)
	}
	if status {
		b.key = append(b.key, 1)
	}
	if s := b.texts[string(b.key)]; s != nil {
		return s
	}
	var text []byte
	var deafened, whispering, shouting []uuid.UUID
	for i, word := range seen {
		for ; word != 0; word &= word - 1 {
			e := &b.people[i*64+bits.TrailingZeros64(word)]
			text = append(text, e.row...)
			if e.Deafened {
				deafened = append(deafened, e.ID)
			}
			switch e.Tier {
			case talk.Whisper:
				whispering = append(whispering, e.ID)
			case talk.Shout:
				shouting = append(shouting, e.ID)
			}
		}
	}
	if status {
		text = line.AppendStatus(text, deafened, whispering, shouting)
	}
	s := &Snapshot{Text: text, sum: maphash.Bytes(b.seed, text)}
	b.texts[string(b.key)] = s
	return s
}

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
// sent: an unchanged one is not, since even that would betray that somebody came whom the reader may not see.
func (c *Copy) Take(s *Snapshot, book, view uint64, now time.Time) (send bool) {
	send = !c.has || c.sum != s.sum
	if send {
		c.at = now
	}
	c.has, c.book, c.view, c.sum = true, book, view, s.sum
	return send
}
