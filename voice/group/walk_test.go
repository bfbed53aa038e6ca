package group

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/talk"
)

// walk drives a state by the bytes of a script and checks after every step what has to be true of every state.
type walk struct {
	s      *State
	now    time.Time
	known  []uuid.UUID // groups that there were, and one that there never was
	mirror *State      // gets what the store would
	pages  map[uuid.UUID]*Page
	script *bytes.Reader
	codes  map[talk.Code]int // how often each was answered
}

const crowdSize = 12 // more than an inbox holds

var (
	walkNames     = []string{"red", "RED", "blue", "", "Grün", "GRÜN", " r\u0435d ", "\u2028", strings.Repeat("x", 24), strings.Repeat("y", 25)}
	walkPasswords = []string{"", "", "", "p", "q", talk.Garbled, strings.Repeat("z", 65)}
)

func newWalk(script []byte) *walk {
	l := open
	l.Groups, l.Members, l.Owned = 2, 3, 1
	return &walk{New(l), start, []uuid.UUID{{15: 0xff}}, New(Limits{}), map[uuid.UUID]*Page{}, bytes.NewReader(script), map[talk.Code]int{}}
}

func (w *walk) n(below int) int {
	b, err := w.script.ReadByte()
	if err != nil {
		return 0
	}
	return int(b) % below
}

func pick[T any](w *walk, from []T) T { return from[w.n(len(from))] }

// run returns what was not as it should be.
func (w *walk) run() error {
	for step := 0; w.script.Len() > 0; step++ {
		revision := w.s.Revision()
		what, refused := w.step()
		if put, gone := w.s.Changes(); refused && len(put)+len(gone) > 0 {
			return fmt.Errorf("step %d, %s: refused, but stored %v %v", step, what, put, gone)
		} else {
			for _, id := range gone {
				w.mirror.Remove(id)
			}
			for _, r := range put {
				// A name may have changed hands within one step only if somebody is renamed twice; steps are single.
				if err := w.mirror.Apply(r); err != nil {
					return fmt.Errorf("step %d, %s: the store's reader refuses: %w", step, what, err)
				}
			}
		}
		if err := w.check(refused, w.s.Revision() == revision); err != nil {
			return fmt.Errorf("step %d, %s: %w", step, what, err)
		}
	}
	return nil
}

// step does one thing and tells whether it was refused, so that it must not have changed anything.
func (w *walk) step() (what string, refused bool) {
	who := w.n(crowdSize)
	switch w.n(16) {
	case 0:
		if w.s.slots == nil || len(w.s.slots) <= who || w.s.slots[who] == nil {
			w.s.Enter(person(who), who)
			return fmt.Sprint("enter ", who), false
		}
		w.s.Exit(person(who), w.now)
		return fmt.Sprint("exit ", who), false
	case 1:
		w.s.Leave(person(who))
		return fmt.Sprint("leave ", who), false
	case 2:
		w.now = w.now.Add(time.Duration(w.n(256)) * 300 * time.Millisecond)
		w.s.Expire(w.now)
		return "time passes", false
	case 3:
		l := w.s.Limits()
		l.Enabled, l.Passwords, l.Persistent = w.n(4) > 0, w.n(4) > 0, w.n(4) > 0
		for t := range l.Types {
			l.Types[t] = w.n(4) > 0
		}
		w.s.SetLimits(l)
		return fmt.Sprintf("limits %+v", l), false
	}
	caps := w.n(256)
	a := Actor{ID: person(who), Keep: caps%5 > 0, May: talk.GroupCaps{Use: caps&7 > 0, Create: caps&0x18 > 0, Invite: caps&0x60 > 0, Admin: caps&0x80 > 0}}
	r := talk.GroupRequest{
		Verb: talk.Verb(w.n(12)), Group: pick(w, w.known), Player: person(w.n(crowdSize + 1)), Out: w.n(4) == 0,
		Type: talk.GroupType(w.n(talk.GroupTypes)), Persistent: w.n(3) == 0, Name: pick(w, walkNames), Password: pick(w, walkPasswords),
	}
	w.s.Expire(w.now) // which Do does, but it is no part of the request
	w.remember()
	code := w.s.Do(a, &r, w.now)
	w.codes[code]++
	for _, g := range w.s.order {
		if !slices.Contains(w.known, g.ID) {
			w.known = append(w.known, g.ID)
		}
	}
	return fmt.Sprintf("%d asks %+v: %v", who, r, code), code != talk.OK
}

func (w *walk) page(who int) *Page {
	return w.s.Page(person(who), talk.GroupCaps{Use: true}, nil, w.now)
}

func (w *walk) remember() {
	for i := range crowdSize {
		w.pages[person(i)] = w.page(i)
	}
}

func (w *walk) check(refused, sameRevision bool) error {
	s := w.s
	w.s.Expire(w.now)
	if len(s.order) != len(s.groups) || len(s.names) != len(s.groups) {
		return fmt.Errorf("%d groups in order, %d by id, %d by name", len(s.order), len(s.groups), len(s.names))
	}
	isolated := make(set, s.words)
	in := map[uuid.UUID]bool{}
	for _, g := range s.order {
		if s.groups[g.ID] != g || s.names[fold(g.Name)] != g {
			return fmt.Errorf("%q is not found by its id and name", g.Name)
		}
		if len(g.members) == 0 && !g.Persistent {
			return fmt.Errorf("%q has no members", g.Name)
		}
		if s.limits.Members > 0 && len(g.members) > s.limits.Members {
			return fmt.Errorf("%q has %d members", g.Name, len(g.members))
		}
		if g.Locked != !g.hash.IsZero() {
			return fmt.Errorf("%q: locked is %v", g.Name, g.Locked)
		}
		members := make(set, s.words)
		owned := g.Persistent
		for _, m := range g.members {
			if m.group != g || in[m.id] || s.players[m.id] != m {
				return fmt.Errorf("%v is in %q and elsewhere", m.id, g.Name)
			}
			in[m.id] = true
			owned = owned || g.Owner == m.id
			if m.slot >= 0 {
				members.add(m.slot)
				if g.Type == talk.IsolatedGroup {
					isolated.add(m.slot)
				}
			}
		}
		if !owned {
			return fmt.Errorf("%q belongs to nobody in it", g.Name)
		}
		if !slices.Equal(g.set, members) {
			return fmt.Errorf("%q: set %x, members %x", g.Name, g.set, members)
		}
	}
	if !slices.Equal(s.isolated, isolated) {
		return fmt.Errorf("isolated %x, want %x", s.isolated, isolated)
	}
	for id, p := range s.players {
		if p.group != nil && !in[id] {
			return fmt.Errorf("%v thinks to be in %q", id, p.group.Name)
		}
		if p.slot < 0 && p.group == nil && len(p.invites) == 0 && len(p.declined) == 0 {
			return fmt.Errorf("%v is remembered for nothing", id)
		}
		if len(p.invites) > talk.MaxInvitations {
			return fmt.Errorf("%v has %d invitations", id, len(p.invites))
		}
		into := map[*group]bool{}
		for _, i := range p.invites {
			if into[i.group] || i.group == p.group || s.groups[i.group.ID] != i.group || !w.now.Before(i.until) {
				return fmt.Errorf("%v has a bad invitation %+v", id, i)
			}
			into[i.group] = true
		}
	}
	for i := range crowdSize {
		page := w.page(i)
		if before, known := w.pages[person(i)]; known && !page.Same(before) && (refused || sameRevision) {
			return fmt.Errorf("refused %v, same revision %v, but another page for %d", refused, sameRevision, i)
		}
		w.pages[person(i)] = page
	}
	if err := w.parses(); err != nil {
		return err
	}
	if got, want := w.mirror.Records(), s.Records(); !sameRecords(got, want) {
		return fmt.Errorf("the store has %v, the groups are %v", got, want)
	}
	return splits(s, crowdSize)
}

func sameRecords(a, b []Record) bool {
	by := func(x, y Record) int { return bytes.Compare(x.ID[:], y.ID[:]) }
	slices.SortFunc(a, by)
	slices.SortFunc(b, by)
	return slices.Equal(a, b)
}

// parses reads the snapshot of a seeing reader and holds it against the state.
func (w *walk) parses() error {
	who := person(0)
	text, _ := written(w.s.Page(who, talk.GroupCaps{Use: true, Create: true}, nil, w.now))
	m, err := line.ParseS2C(text)
	if err != nil {
		return err
	}
	want := &line.Groups{}
	if w.s.limits.Enabled {
		want.May = talk.GroupCaps{Use: true, Create: true}
		if p := w.s.players[who]; p != nil {
			for _, i := range p.invites {
				v := line.Invitation{Group: i.group.ID, Seconds: int((i.until.Sub(w.now) + time.Second - 1) / time.Second)}
				if from := w.s.players[i.from]; from != nil && from.slot >= 0 {
					v.From = i.from
				}
				want.Invites = append(want.Invites, v)
			}
		}
		for _, g := range w.s.order {
			row, shown := g.GroupRow, g.Persistent
			if o := w.s.players[g.Owner]; o == nil || o.slot < 0 {
				row.Owner = uuid.Nil
			}
			for _, m := range g.members {
				if m.slot >= 0 {
					shown = true
					want.Members = append(want.Members, talk.GroupMember{Group: g.ID, Player: m.id})
				}
			}
			if shown {
				want.Groups = append(want.Groups, row)
			}
		}
	}
	if !reflect.DeepEqual(m, want) {
		return fmt.Errorf("the snapshot says %+v, want %+v", m, want)
	}
	return nil
}

func TestWhateverIsAskedTheStateIsSound(t *testing.T) {
	codes := map[talk.Code]int{}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		script := make([]byte, 3000)
		for i := range script {
			script[i] = byte(r.Uint32())
		}
		w := newWalk(script)
		for i := range crowdSize {
			w.s.Enter(person(i), i)
		}
		if err := w.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for c, n := range w.codes {
			codes[c] += n
		}
	}
	// What the walks are worth. A full inbox takes nine groups and is tested apart.
	for c := talk.OK; c < talk.InboxFull; c++ {
		if codes[c] < 5 {
			t.Errorf("the walks have led to %v %d times", c, codes[c])
		}
	}
}

func FuzzState(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		script := []byte{}
		for i := range crowdSize {
			script = append(script, byte(i), 0) // everybody enters
		}
		for range 300 {
			script = append(script, byte(r.Uint32()))
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if err := newWalk(script[:min(len(script), 2000)]).run(); err != nil {
			t.Fatal(err)
		}
	})
}

// A turn asks for all talkers.
func BenchmarkSplit1000(b *testing.B) {
	s, now := New(open), start
	s.limits.Types[talk.IsolatedGroup] = true
	for i := range 1000 {
		id := uuid.UUID{14: byte(i >> 8), 15: byte(i)}
		s.Enter(id, i)
		if i < 50 {
			s.Do(Actor{ID: id, May: all}, &talk.GroupRequest{Verb: talk.Create, Name: fmt.Sprint("group ", i), Type: talk.GroupType(i % 3)}, now)
		} else if i < 800 {
			s.Do(Actor{ID: id, May: all}, &talk.GroupRequest{Verb: talk.Join, Group: s.order[i%50].ID}, now)
		}
	}
	ears, together := make([]uint64, s.words), make([]uint64, s.words)
	b.ReportAllocs()
	for b.Loop() {
		for i := range 1000 {
			s.Split(i, 0, ears, together)
		}
	}
}

// Every one of 1,000 readers looks, and all see the same.
func BenchmarkPages1000(b *testing.B) {
	s := New(open)
	for i := range 1000 {
		id := uuid.UUID{14: byte(i >> 8), 15: byte(i)}
		s.Enter(id, i)
		if i < 50 {
			s.Do(Actor{ID: id, May: all}, &talk.GroupRequest{Verb: talk.Create, Name: fmt.Sprint("group ", i)}, start)
		} else {
			s.Do(Actor{ID: id, May: all}, &talk.GroupRequest{Verb: talk.Join, Group: s.order[i%50].ID}, start)
		}
	}
	seen := make([]uint64, s.words)
	for i := range seen {
		seen[i] = ^uint64(0)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.turnOver()
		for i := range 1000 {
			s.Page(s.slots[i].id, all, seen, start)
		}
	}
}
