package relation

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Book holds the declarations that stand until they are withdrawn: the ones by administrators. It belongs to the one
// goroutine that runs the turns. The zero value is empty.
type Book struct {
	Domains Ledger[Domain]
	Listens Ledger[Listen]
	Edges   Ledger[Edge]

	fixed     Declarations
	revisions uint64 // of fixed
}

// Declarations are all declarations of one source.
type Declarations struct {
	Domains []Domain
	Listens []Listen
	Edges   []Edge
}

// Fix takes the declarations of the configuration, in place of its former ones. They add to the ledgers, and only
// another call withdraws them. With an error nothing has changed.
func (b *Book) Fix(d Declarations) error {
	if err := errors.Join(check(d.Domains), check(d.Listens), check(d.Edges)); err != nil {
		return err
	}
	b.fixed = d
	b.revisions++
	return nil
}

func check[R record](all []R) error {
	for _, r := range all {
		if err := r.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Fixed returns the declarations of [Book.Fix]. They are the book's: do not write to them.
func (b *Book) Fixed() Declarations { return b.fixed }

// Revision counts the changes.
func (b *Book) Revision() uint64 {
	return b.revisions + b.Domains.revision + b.Listens.revision + b.Edges.revision
}

// Empty tells whether nothing is declared.
func (b *Book) Empty() bool {
	return len(b.fixed.Domains)+len(b.fixed.Listens)+len(b.fixed.Edges)+len(b.Domains.records)+len(b.Listens.records)+len(b.Edges.records) == 0
}

// Domain is a standing domain.
type Domain struct {
	Name    string      `json:"name"`
	Members []uuid.UUID `json:"members"`
}

// Listen is a standing listen.
type Listen struct {
	Listener uuid.UUID `json:"listener"`
	Domain   string    `json:"domain"`
}

// Edge is a standing edge.
type Edge struct {
	Talker   uuid.UUID `json:"speaker"`
	Listener uuid.UUID `json:"listener"`
}

// Key returns the name.
func (d Domain) Key() string { return d.Name }

// Key returns "<listener>/<domain>".
func (l Listen) Key() string { return l.Listener.String() + "/" + l.Domain }

// Key returns "<talker>/<listener>".
func (e Edge) Key() string { return e.Talker.String() + "/" + e.Listener.String() }

// MaxName bounds a domain's name, in bytes.
const MaxName = 64

// MaxMembers bounds the members that [Book.AddMembers] gives a domain, so that it can be stored.
const MaxMembers = 1500

// checkName returns what is wrong with a domain's name.
func checkName(name string) error {
	if name == "" || len(name) > MaxName || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return fmt.Errorf("%q is no name for a domain: write 1 to %d bytes without blanks", name, MaxName)
	}
	return nil
}

// Check returns what is wrong with the record.
func (d Domain) Check() error { return checkName(d.Name) }

// Check returns what is wrong with the record. Its domain need not have been declared.
func (l Listen) Check() error { return checkName(l.Domain) }

// Check returns what is wrong with the record.
func (e Edge) Check() error {
	if e.Talker == e.Listener {
		return errors.New("an edge leads from one player to another one: nobody hears their own voice")
	}
	return nil
}

// Names returns the names of all domains, sorted.
func (b *Book) Names() (names []string) {
	each(b.fixed.Domains, b.Domains.records, func(d Domain) { names = append(names, d.Name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// AddMembers puts players into a domain. It makes the domain if it is not there.
func (b *Book) AddMembers(domain string, players ...uuid.UUID) error {
	d, _ := b.Domains.Get(domain)
	members := slices.Clone(d.Members)
	for _, p := range players {
		if !slices.Contains(members, p) {
			members = append(members, p)
		}
	}
	if len(members) > MaxMembers {
		return fmt.Errorf("a domain has room for %d players: make another one", MaxMembers)
	}
	return b.Domains.Put(Domain{domain, members})
}

// RemoveMember takes a player out of a domain, which stays, and tells whether they were in it.
func (b *Book) RemoveMember(domain string, player uuid.UUID) bool {
	d, _ := b.Domains.Get(domain)
	i := slices.Index(d.Members, player)
	if i < 0 {
		return false
	}
	return b.Domains.Put(Domain{domain, slices.Delete(slices.Clone(d.Members), i, i+1)}) == nil
}

// Declare declares everything for a turn. slot finds the connection of a player; a player without one takes part in
// nothing.
func (b *Book) Declare(t *Turn, slot func(player uuid.UUID) (int, bool)) {
	each(b.fixed.Domains, b.Domains.records, func(d Domain) {
		t.Domain(d.Name) // even when none of it is there
		for _, m := range d.Members {
			if s, ok := slot(m); ok {
				t.Domain(d.Name, s)
			}
		}
	})
	each(b.fixed.Listens, b.Listens.records, func(l Listen) {
		if s, ok := slot(l.Listener); ok {
			t.Listen(s, l.Domain)
		}
	})
	each(b.fixed.Edges, b.Edges.records, func(e Edge) {
		from, ok := slot(e.Talker)
		to, too := slot(e.Listener)
		if ok && too {
			t.Edge(from, to)
		}
	})
}

func each[R record](fixed []R, records map[string]R, do func(R)) {
	for _, r := range fixed {
		do(r)
	}
	for _, r := range records {
		do(r)
	}
}

// record is anything that a ledger can hold.
type record interface {
	Domain | Listen | Edge
	Key() string
	Check() error
}

// Ledger holds the records of one kind by their keys, and the changes that the store does not know of.
type Ledger[R record] struct {
	records  map[string]R
	dirty    map[string]struct{}
	revision uint64
}

// Put takes a record in, in place of the one with its key.
func (l *Ledger[R]) Put(r R) error {
	if err := l.Apply(r); err != nil {
		return err
	}
	l.mark(r.Key())
	return nil
}

func (l *Ledger[R]) mark(key string) {
	if l.dirty == nil {
		l.dirty = make(map[string]struct{})
	}
	l.dirty[key] = struct{}{}
}

// Delete drops a record and tells whether it was there.
func (l *Ledger[R]) Delete(key string) bool {
	_, ok := l.records[key]
	if ok {
		l.Remove(key)
		l.mark(key)
	}
	return ok
}

// Apply takes in a record from the store.
func (l *Ledger[R]) Apply(r R) error {
	if err := r.Check(); err != nil {
		return err
	}
	if d, ok := any(&r).(*Domain); ok { // sort sets, so that equal ones are stored alike
		d.Members = slices.Clone(d.Members)
		slices.SortFunc(d.Members, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
		d.Members = slices.Compact(d.Members)
	}
	if l.records == nil {
		l.records = make(map[string]R)
	}
	l.records[r.Key()] = r
	l.revision++
	return nil
}

// Remove drops a record that is gone from the store.
func (l *Ledger[R]) Remove(key string) {
	delete(l.records, key)
	l.revision++
}

// Get finds a record.
func (l *Ledger[R]) Get(key string) (r R, ok bool) {
	r, ok = l.records[key]
	return r, ok
}

// All returns the records in the order of their keys.
func (l *Ledger[R]) All() []R {
	var all []R
	for _, key := range slices.Sorted(maps.Keys(l.records)) {
		all = append(all, l.records[key])
	}
	return all
}

// Changes returns the records that were put here since the last call, and the keys of those that were deleted. It
// leaves out those of [Ledger.Apply] and [Ledger.Remove].
func (l *Ledger[R]) Changes() (put []R, gone []string) {
	for _, key := range slices.Sorted(maps.Keys(l.dirty)) {
		if r, ok := l.records[key]; ok {
			put = append(put, r)
		} else {
			gone = append(gone, key)
		}
	}
	clear(l.dirty)
	return put, gone
}
