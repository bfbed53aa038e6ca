// Package mute holds whom the server has muted, one by one or all at once, until when and why.
//
// It promises that a mute which is over is over for whoever reads it, whether or not anybody has swept it away, and that
// two readings of one state are equal, so that a client is told of a change and not of every second that passes. It is
// pure; a [Book] belongs to the one goroutine that runs the turns.
package mute

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/line"
)

// Everybody is the player of the server-wide mute.
var Everybody = uuid.Nil

// Record is one mute, as it is listed and stored.
type Record struct {
	Player uuid.UUID `json:"player"`           // or Everybody
	Name   string    `json:"name,omitempty"`   // of the player when it was muted, for lists
	By     string    `json:"by,omitempty"`     // who did it, for lists
	Since  time.Time `json:"since"`            // for lists
	Until  time.Time `json:"until,omitzero"`   // zero: until it is lifted
	Reason string    `json:"reason,omitempty"` // see [line.ValidReason]
}

// Check tells what is wrong with a record.
func (r *Record) Check() error {
	if r.Reason != "" && !line.ValidReason(r.Reason) {
		return fmt.Errorf("%q is no reason: write 1 to %d characters, without line ends or formatting", r.Reason, line.MaxReason)
	}
	return nil
}

// over tells whether the mute has lapsed.
func (r *Record) over(now time.Time) bool { return !r.Until.IsZero() && !now.Before(r.Until) }

// State is what holds for one player. States are compared with ==: what is equal has been told.
type State struct {
	Kind   line.MuteKind
	Until  time.Time // zero: until it is lifted
	Reason string
}

// Line is the state as it is told to the player at this moment.
func (s State) Line(now time.Time) line.Mute {
	m := line.Mute{Kind: s.Kind, Reason: s.Reason}
	if !s.Until.IsZero() {
		m.Timed = true
		m.Seconds = int((s.Until.Sub(now) + time.Second - 1) / time.Second)
	}
	return m
}

// Book holds the mutes.
type Book struct {
	records  map[uuid.UUID]Record
	due      time.Time // no later than the first that lapses; zero: none does
	revision uint64
	dirty    map[uuid.UUID]struct{} // what the store does not know
}

// New returns a book without mutes.
func New() *Book {
	return &Book{records: make(map[uuid.UUID]Record), dirty: make(map[uuid.UUID]struct{})}
}

// Revision counts the changes of what [Book.State] may say, those by time only as [Book.Expire] finds them.
func (b *Book) Revision() uint64 { return b.revision }

// Mute puts a mute into force, in place of the former one of that player.
func (b *Book) Mute(r Record, now time.Time) error {
	if r.over(now) {
		return fmt.Errorf("a mute cannot end at %s, which is past", r.Until.Format(time.DateTime))
	}
	if err := b.Apply(r); err != nil {
		return err
	}
	b.dirty[r.Player] = struct{}{}
	return nil
}

// Lift ends a mute. It tells whether there was one in force.
func (b *Book) Lift(player uuid.UUID, now time.Time) bool {
	r, ok := b.records[player]
	if ok {
		b.Remove(player)
		b.dirty[player] = struct{}{}
	}
	return ok && !r.over(now)
}

// Apply takes a mute from the store. One that is over by now does no harm.
func (b *Book) Apply(r Record) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("mute of %s: %w", r.Player, err)
	}
	// Neither the time zone nor a monotonic reading may make equal states differ.
	r.Since, r.Until = r.Since.Round(0).UTC(), r.Until.Round(0).UTC()
	b.records[r.Player] = r
	if !r.Until.IsZero() && (b.due.IsZero() || r.Until.Before(b.due)) {
		b.due = r.Until
	}
	b.revision++
	return nil
}

// Remove ends a mute that is gone from the store.
func (b *Book) Remove(player uuid.UUID) {
	delete(b.records, player)
	b.revision++
}

// State says what holds for a player now. Exempt players are outside the server-wide mute, but not outside their own.
func (b *Book) State(player uuid.UUID, exempt bool, now time.Time) State {
	if r, ok := b.records[Everybody]; ok && !exempt && !r.over(now) {
		return State{line.MutedServer, r.Until, r.Reason}
	}
	if r, ok := b.records[player]; ok && player != Everybody && !r.over(now) {
		return State{line.MutedPlayer, r.Until, r.Reason}
	}
	return State{}
}

// Len is how many mutes are in force, or have lapsed since the last [Book.Expire].
func (b *Book) Len() int { return len(b.records) }

// List is every mute in force, the server-wide one first and then by player.
func (b *Book) List(now time.Time) []Record {
	var all []Record
	for _, r := range b.records {
		if !r.over(now) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(x, y Record) int { return bytes.Compare(x.Player[:], y.Player[:]) })
	return all
}

// Expire forgets what is over. next is when it has to be called again, zero when nothing lapses; whoever compiles states
// into something has to do it anew then. It is cheap to call when nothing is due.
func (b *Book) Expire(now time.Time) (next time.Time) {
	if b.due.IsZero() || now.Before(b.due) {
		return b.due
	}
	b.due = time.Time{}
	for id, r := range b.records {
		switch {
		case r.Until.IsZero():
		case r.over(now):
			b.Remove(id)
			b.dirty[id] = struct{}{}
		case b.due.IsZero() || r.Until.Before(b.due):
			b.due = r.Until
		}
	}
	return b.due
}

// Changes returns the mutes that were made here since the last call, and whose were lifted or have lapsed. What came by
// [Book.Apply] or [Book.Remove] is not among them.
func (b *Book) Changes() (put []Record, gone []uuid.UUID) {
	for id := range b.dirty {
		if r, ok := b.records[id]; ok {
			put = append(put, r)
		} else {
			gone = append(gone, id)
		}
	}
	clear(b.dirty)
	return put, gone
}
