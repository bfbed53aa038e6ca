package group

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Hash is a password's salted SHA-256. It can be compared and stored; printing it gives nothing away. The zero value is
// no password.
type Hash struct {
	salt [16]byte
	sum  [sha256.Size]byte
}

func newHash(password string) Hash {
	var h Hash
	rand.Read(h.salt[:]) // never fails
	h.sum = h.of(password)
	return h
}

func (h *Hash) of(password string) [sha256.Size]byte {
	return sha256.Sum256(append(h.salt[:], password...))
}

// Matches compares in constant time.
func (h *Hash) Matches(password string) bool {
	sum := h.of(password)
	return subtle.ConstantTimeCompare(sum[:], h.sum[:]) == 1
}

// IsZero tells whether there is no password.
func (h Hash) IsZero() bool { return h == Hash{} }

// String hides the value.
func (h Hash) String() string {
	if h.IsZero() {
		return ""
	}
	return "(hidden)"
}

// GoString hides the value from %#v.
func (h Hash) GoString() string { return `"` + h.String() + `"` }

// LogValue hides the value.
func (h Hash) LogValue() slog.Value { return slog.StringValue(h.String()) }

const hashScheme = "sha256:"

// MarshalText writes the value for the store: "sha256:", then salt and sum in base64.
func (h Hash) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode([]byte(hashScheme), append(h.salt[:], h.sum[:]...)), nil
}

// UnmarshalText reads the text of MarshalText.
func (h *Hash) UnmarshalText(b []byte) error {
	text, ok := strings.CutPrefix(string(b), hashScheme)
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	var read Hash
	if ok = ok && err == nil && len(raw) == len(h.salt)+len(h.sum) && !strings.ContainsAny(text, "\r\n"); ok {
		copy(read.salt[:], raw)
		copy(read.sum[:], raw[len(h.salt):])
	}
	if !ok || read.IsZero() { // which would open the group
		return errors.New("not a password hash of this program") // and not a word about what it is
	}
	*h = read
	return nil
}

// Record is a persistent group as the store keeps it.
type Record struct {
	ID       uuid.UUID `json:"id"`
	Name     string    `json:"name"`
	Type     string    `json:"type"` // the word that travels
	Owner    uuid.UUID `json:"owner"`
	Password Hash      `json:"password,omitzero"`
	Used     time.Time `json:"used,omitzero"` // when somebody was in it, to a day; zero: not known
}

// LogValue returns the record as it may stand in a log.
func (r Record) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", r.ID.String()), slog.String("name", r.Name))
}

// Check returns what is wrong with a record.
func (r *Record) Check() error {
	if r.ID == uuid.Nil {
		return errors.New("the group has no id")
	}
	if !talk.ValidGroupName(r.Name) {
		return fmt.Errorf("%q is no name for a group", r.Name)
	}
	if _, ok := talk.ParseGroupType(r.Type); !ok {
		return fmt.Errorf("%q is no type of group", r.Type)
	}
	return nil
}

func (g *group) record() Record {
	return Record{g.ID, g.Name, g.Type.String(), g.Owner, g.hash, g.used}
}

// store notes that the store has to learn of a change.
func (s *State) store(g *group) {
	if g.Persistent {
		s.dirty[g.ID] = struct{}{}
	}
}

// Changes returns the persistent groups that were made or changed here since the last call, and the ids of those that
// ended. It leaves out those that came by [State.Apply] or [State.Remove].
func (s *State) Changes() (put []Record, gone []uuid.UUID) {
	for id := range s.dirty {
		if g := s.groups[id]; g != nil {
			put = append(put, g.record())
		} else {
			gone = append(gone, id)
		}
	}
	clear(s.dirty)
	slices.SortFunc(put, func(a, b Record) int { return cmp.Compare(a.Name, b.Name) })
	return put, gone
}

// Records returns all persistent groups.
func (s *State) Records() (all []Record) {
	for _, g := range s.order {
		if g.Persistent {
			all = append(all, g.record())
		}
	}
	return all
}

// Apply takes a persistent group from the store, a new one or a new state of one; its members stay. The limits do not
// count for it.
func (s *State) Apply(r Record) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("group %s: %w", r.ID, err)
	}
	if other := s.names[fold(r.Name)]; other != nil && other.ID != r.ID {
		return fmt.Errorf("group %s: the name %q is taken by %s: rename one of them", r.ID, r.Name, other.ID)
	}
	t, _ := talk.ParseGroupType(r.Type)
	g := s.groups[r.ID]
	if g == nil {
		g = s.add(talk.GroupRow{ID: r.ID, Name: r.Name, Type: t, Persistent: true})
	}
	s.rename(g, r.Name)
	s.retype(g, t)
	g.Persistent, g.Owner, g.used = true, r.Owner, r.Used.Round(0).UTC()
	s.soon()
	if g.hash != r.Password {
		g.lock(r.Password)
	}
	s.turnOver()
	return nil
}

// Remove ends a group that is gone from the store.
func (s *State) Remove(id uuid.UUID) {
	if g := s.groups[id]; g != nil {
		s.remove(g)
		delete(s.dirty, id)
	}
}
