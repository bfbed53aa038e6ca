package group

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/talk"
)

var (
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	open  = Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}, Passwords: true, Persistent: true}
	all   = talk.GroupCaps{Use: true, Create: true, Invite: true} // but administration
	admin = talk.GroupCaps{Use: true, Create: true, Invite: true, Admin: true}
)

func person(n int) uuid.UUID { return uuid.UUID{0: 1, 15: byte(n)} }

var anna, ben, cleo, dora = person(0), person(1), person(2), person(3)

// table is a state with people who are connected, in the slots of their numbers.
type table struct {
	t   *testing.T
	s   *State
	now time.Time
}

func sit(t *testing.T, l Limits, people int) *table {
	s := New(l)
	for i := range people {
		s.Enter(person(i), i)
	}
	return &table{t, s, start}
}

func (b *table) do(who uuid.UUID, may talk.GroupCaps, r talk.GroupRequest) talk.Code {
	return b.s.Do(Actor{ID: who, May: may, Keep: true}, &r, b.now)
}

// ask expects a code.
func (b *table) ask(who uuid.UUID, want talk.Code, r talk.GroupRequest) {
	b.t.Helper()
	if got := b.do(who, all, r); got != want {
		b.t.Errorf("%v: %v, want %v", r.Verb, got, want)
	}
}

// create makes a group and returns its id.
func (b *table) create(who uuid.UUID, name string, change ...func(*talk.GroupRequest)) uuid.UUID {
	b.t.Helper()
	r := talk.GroupRequest{Verb: talk.Create, Name: name}
	for _, f := range change {
		f(&r)
	}
	if got := b.do(who, admin, r); got != talk.OK {
		b.t.Fatalf("create %q: %v", name, got)
	}
	g, _ := b.s.Of(who)
	return g.ID
}

func typed(t talk.GroupType) func(*talk.GroupRequest) {
	return func(r *talk.GroupRequest) { r.Type = t }
}
func locked(p string) func(*talk.GroupRequest) { return func(r *talk.GroupRequest) { r.Password = p } }
func persistent(r *talk.GroupRequest)          { r.Persistent = true }

func join(g uuid.UUID, password string) talk.GroupRequest {
	return talk.GroupRequest{Verb: talk.Join, Group: g, Password: password}
}
func invites(g, p uuid.UUID) talk.GroupRequest {
	return talk.GroupRequest{Verb: talk.Invite, Group: g, Player: p}
}
func on(v talk.Verb, g uuid.UUID) talk.GroupRequest { return talk.GroupRequest{Verb: v, Group: g} }

func (b *table) in(who, g uuid.UUID) {
	b.t.Helper()
	if row, _ := b.s.Of(who); row.ID != g {
		b.t.Errorf("%v is in %v, not in %v", who, row.ID, g)
	}
}

// written returns a page as text lines, and how many rows did not fit.
func written(p *Page) (text []byte, left int) {
	var invites []line.Invitation
	for _, i := range p.Invites {
		invites = append(invites, line.Invitation{Group: i.Group, From: i.From, Seconds: int((i.Until.Sub(p.At) + time.Second - 1) / time.Second)})
	}
	rows, left := line.GroupRows(p.Rows.Groups, p.Rows.Members)
	return append(line.AppendGroupsHead(nil, p.May, invites), rows...), left
}

// page returns the snapshot that a reader gets, as a client reads it.
func (b *table) page(who uuid.UUID, seen []uint64) *line.Groups {
	b.t.Helper()
	text, _ := written(b.s.Page(who, all, seen, b.now))
	m, err := line.ParseS2C(text)
	if err != nil {
		b.t.Fatalf("the snapshot does not parse: %v\n%s", err, text)
	}
	return m.(*line.Groups)
}

func TestDisabledAndNoPermissionApplyToEveryRequest(t *testing.T) {
	for v := talk.Create; v <= talk.Delete; v++ {
		b := sit(t, open, 2)
		g := b.create(anna, "g")
		r := talk.GroupRequest{Verb: v, Group: g, Player: ben, Name: "n"}
		if got := b.do(anna, talk.GroupCaps{Create: true, Admin: true, Invite: true}, r); got != talk.NoPermission {
			t.Errorf("%v without use: %v", v, got)
		}
		b.s.SetLimits(Limits{})
		if got := b.do(anna, admin, r); got != talk.Disabled {
			t.Errorf("%v while off: %v", v, got)
		}
		b.s.SetLimits(open)
		b.in(anna, g) // and nothing has changed
	}
}

func TestCreate(t *testing.T) {
	one := func(f func(*Limits)) Limits { l := open; f(&l); return l }
	for _, c := range []struct {
		name string
		l    Limits
		r    talk.GroupRequest
		want talk.Code
	}{
		{"plain", open, talk.GroupRequest{Name: "new"}, talk.OK},
		{"all of it", open, talk.GroupRequest{Name: "new", Password: "p", Persistent: true, Type: talk.IsolatedGroup}, talk.OK},
		{"no name", open, talk.GroupRequest{}, talk.InvalidName},
		{"name too long", open, talk.GroupRequest{Name: strings.Repeat("a", 25)}, talk.InvalidName},
		{"password too long", open, talk.GroupRequest{Name: "new", Password: strings.Repeat("a", 65)}, talk.InvalidPassword},
		{"password with a control", open, talk.GroupRequest{Name: "new", Password: "a\n"}, talk.InvalidPassword},
		{"name taken", open, talk.GroupRequest{Name: "GRÜN"}, talk.NameTaken},
		// The kelvin sign.
		{"name taken, by another folding", open, talk.GroupRequest{Name: "\u212Aelvin"}, talk.NameTaken},
		{"type off", one(func(l *Limits) { l.Types[talk.IsolatedGroup] = false }), talk.GroupRequest{Name: "new", Type: talk.IsolatedGroup}, talk.TypeNotAllowed},
		{"other types stay on", one(func(l *Limits) { l.Types[talk.IsolatedGroup] = false }), talk.GroupRequest{Name: "new", Type: talk.OpenGroup}, talk.OK},
		{"passwords off", one(func(l *Limits) { l.Passwords = false }), talk.GroupRequest{Name: "new", Password: "p"}, talk.PasswordsNotAllowed},
		{"persistence off", one(func(l *Limits) { l.Persistent = false }), talk.GroupRequest{Name: "new", Persistent: true}, talk.PersistentNotAllowed},
		{"too many", one(func(l *Limits) { l.Groups = 2 }), talk.GroupRequest{Name: "new"}, talk.TooManyGroups},
		{"just not too many", one(func(l *Limits) { l.Groups = 3 }), talk.GroupRequest{Name: "new"}, talk.OK},
	} {
		b := sit(t, open, 3)
		b.create(anna, "grün")
		b.create(ben, "kelvin")
		b.s.SetLimits(c.l)
		c.r.Verb = talk.Create
		if got := b.do(cleo, talk.GroupCaps{Use: true}, c.r); got != talk.NoPermission {
			t.Errorf("%s: without the permission: %v", c.name, got)
		}
		got := b.do(cleo, all, c.r)
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		row, in := b.s.Of(cleo)
		if in != (got == talk.OK) {
			t.Errorf("%s: is in a group: %v", c.name, in)
		}
		if in && (row.Name != c.r.Name || row.Owner != cleo || row.Type != c.r.Type || row.Locked != (c.r.Password != "") || row.Persistent != c.r.Persistent) {
			t.Errorf("%s: made %+v", c.name, row)
		}
		if in {
			b.ask(cleo, talk.AlreadyInGroup, talk.GroupRequest{Verb: talk.Create, Name: "another"})
		}
	}
}

func TestJoinAndLeave(t *testing.T) {
	l := open
	l.Members = 2
	b := sit(t, l, 4)
	g := b.create(anna, "g", locked("sesame"))
	b.ask(ben, talk.NotFound, join(uuid.New(), ""))
	b.ask(ben, talk.WrongPassword, join(g, ""))
	b.ask(ben, talk.WrongPassword, join(g, "Sesame"))
	b.ask(ben, talk.OK, join(g, "sesame"))
	b.in(ben, g)
	b.ask(ben, talk.AlreadyInGroup, join(g, "sesame"))
	b.ask(cleo, talk.GroupFull, join(g, "sesame"))
	b.ask(ben, talk.OK, on(talk.Leave, uuid.Nil))
	b.in(ben, uuid.Nil)
	b.ask(ben, talk.NotInGroup, on(talk.Leave, uuid.Nil))
	b.ask(cleo, talk.OK, join(g, "sesame"))
	other := b.create(ben, "other")
	b.ask(dora, talk.OK, join(other, "not needed"))
}

func TestFiveMissesAMinute(t *testing.T) {
	b := sit(t, open, 4)
	g, other := b.create(anna, "g", locked("right")), b.create(dora, "other", locked("right"))
	b.ask(ben, talk.WrongPassword, join(g, "")) // no guess
	for range Misses {
		b.ask(ben, talk.WrongPassword, join(g, "wrong"))
		b.now = b.now.Add(10 * time.Second)
	}
	b.ask(ben, talk.WrongPassword, join(g, "right"))
	b.ask(ben, talk.OK, join(other, "right")) // it is about one group
	b.ask(ben, talk.OK, on(talk.Leave, uuid.Nil))
	b.s.Exit(ben, b.now) // to come back is no way around it
	b.s.Enter(ben, 1)
	b.now = start.Add(MissTime - time.Nanosecond)
	b.ask(ben, talk.WrongPassword, join(g, "right"))
	b.now = start.Add(MissTime)
	b.ask(ben, talk.OK, join(g, "right"))
	b.ask(ben, talk.OK, on(talk.Leave, uuid.Nil))
	for range Misses - 1 {
		b.ask(ben, talk.WrongPassword, join(g, "wrong"))
	}
	b.ask(ben, talk.OK, join(g, "right"))
	// A new password starts over.
	for range Misses {
		b.ask(cleo, talk.WrongPassword, join(g, "wrong"))
	}
	b.ask(cleo, talk.WrongPassword, join(g, "right"))
	b.ask(anna, talk.OK, talk.GroupRequest{Verb: talk.Password, Group: g, Password: "new"})
	b.ask(cleo, talk.OK, join(g, "new"))
}

// A player who guesses at a group's password shuts out nobody else: neither one stranger nor a crowd of them. A crowd
// has one guess a minute each.
func TestNobodyIsLockedOutByTheGuessesOfOthers(t *testing.T) {
	b := sit(t, open, 250)
	g := b.create(anna, "g", locked("right"))
	for minute := range 3 {
		b.now = start.Add(time.Duration(minute) * MissTime)
		for range 100 {
			b.ask(cleo, talk.WrongPassword, join(g, "wrong"))
		}
		b.ask(ben, talk.OK, join(g, "right"))
		b.ask(ben, talk.OK, on(talk.Leave, uuid.Nil))
	}
	b.now = b.now.Add(MissTime)
	for i := 4; i < 200; i++ {
		b.ask(person(i), talk.WrongPassword, join(g, "wrong"))
	}
	b.ask(ben, talk.OK, join(g, "right"))
	b.ask(ben, talk.OK, on(talk.Leave, uuid.Nil))
	b.ask(person(199), talk.WrongPassword, join(g, "right")) // a second guess of the crowd
	b.ask(person(200), talk.WrongPassword, join(g, "wrong")) // and a first
	b.ask(person(200), talk.WrongPassword, join(g, "right"))
	b.now = b.now.Add(MissTime)
	b.ask(person(199), talk.OK, join(g, "right"))
	if n := len(b.s.groups[g].misses.by); n > maxGuessers {
		t.Errorf("%d guessers are remembered", n)
	}
}

// A bound for each owner keeps one player from taking all places for good, however ownership is passed on.
func TestPersistentGroupsAreBoundedByOwner(t *testing.T) {
	l := open
	l.Groups, l.Owned = 200, 3
	b := sit(t, l, 4)
	make := func(who uuid.UUID, n int, want talk.Code) {
		t.Helper()
		b.ask(who, want, talk.GroupRequest{Verb: talk.Create, Name: fmt.Sprint(who[15], "spam", n), Persistent: true})
	}
	for n := range 3 {
		make(anna, n, talk.OK)
		b.ask(anna, talk.OK, on(talk.Leave, uuid.Nil))
	}
	make(anna, 3, talk.TooManyGroups)
	b.ask(anna, talk.OK, talk.GroupRequest{Verb: talk.Create, Name: "just for now"})
	b.ask(anna, talk.OK, on(talk.Leave, uuid.Nil))
	// Handed on to a friend, as far as the friend has room: ben gets three, and the others stay anna's.
	groups := append([]*group(nil), b.s.order...)
	for n := 4; ; n++ {
		if got := b.do(anna, all, talk.GroupRequest{Verb: talk.Create, Name: fmt.Sprint("on", n), Persistent: true}); got != talk.OK {
			if got != talk.TooManyGroups || n > 8 {
				t.Errorf("%v after %d", got, n)
			}
			for _, g := range groups {
				b.do(ben, all, join(g.ID, ""))
				b.do(anna, all, join(g.ID, ""))
				b.do(anna, all, on(talk.Leave, uuid.Nil))
				b.do(ben, all, on(talk.Leave, uuid.Nil))
			}
			if b.s.owned(anna) == 3 {
				break
			}
			continue
		}
		groups = append(groups, b.s.order[len(b.s.order)-1])
		b.ask(anna, talk.OK, on(talk.Leave, uuid.Nil))
	}
	if a, c := b.s.owned(anna), b.s.owned(ben); a > 3 || c > 3 {
		t.Errorf("anna owns %d, ben %d", a, c)
	}
	make(cleo, 1, talk.OK)
	b.ask(cleo, talk.OK, on(talk.Leave, uuid.Nil))
	for n := range 5 {
		if got := b.do(dora, admin, talk.GroupRequest{Verb: talk.Create, Name: fmt.Sprint("staff", n), Persistent: true}); got != talk.OK {
			t.Errorf("staff: %v", got)
		}
		b.ask(dora, talk.OK, on(talk.Leave, uuid.Nil))
	}
	if got := b.s.Do(Actor{ID: cleo, May: all}, &talk.GroupRequest{Verb: talk.Create, Name: "x", Persistent: true}, b.now); got != talk.PersistentNotAllowed {
		t.Errorf("without the permission: %v", got)
	}
}

// Members whose time away is over all at once leave in the order in which they went, and so a persistent group that
// they empty is owned by who was there last, however they joined.
func TestAnEmptiedPersistentGroupIsOwnedByWhoWentLast(t *testing.T) {
	const people = 8
	for range 20 { // the order of a map is another each time
		b := sit(t, open, people)
		g := b.create(anna, "g", persistent)
		for i := 1; i < people; i++ {
			b.ask(person(i), talk.OK, join(g, ""))
		}
		// The owner first, and then the others from the newest to the oldest, but for one.
		last := person(3)
		for _, i := range []int{0, 7, 6, 5, 4, 2, 1, 3} {
			b.s.Exit(person(i), b.now)
			b.now = b.now.Add(time.Second)
		}
		b.now = b.now.Add(Away)
		b.s.Expire(b.now)
		row := b.s.groups[g]
		if row == nil || len(row.members) != 0 {
			t.Fatalf("the group is %+v", row)
		}
		if row.Owner != last {
			t.Fatalf("owned by %v, not by %v", row.Owner, last)
		}
	}
}

// A persistent group that nobody is in ends after the time set, by a clock that has not just jumped; one that is used
// stays.
func TestUnusedPersistentGroupsEnd(t *testing.T) {
	l := open
	l.Unused = 30 * 24 * time.Hour
	b := sit(t, l, 4)
	unused := b.create(anna, "unused", persistent)
	b.ask(anna, talk.OK, on(talk.Leave, uuid.Nil))
	used := b.create(anna, "used", persistent)
	b.ask(anna, talk.OK, on(talk.Leave, uuid.Nil))
	occupied := b.create(ben, "occupied", persistent)
	b.s.Changes()
	there := func(want ...uuid.UUID) {
		t.Helper()
		var got []uuid.UUID
		for _, i := range b.s.List() {
			got = append(got, i.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %v: %v, want %v", b.now.Sub(start), got, want)
		}
	}
	pass := func(d time.Duration) {
		for end := b.now.Add(d); b.now.Before(end); {
			b.now = b.now.Add(min(end.Sub(b.now), 6*time.Hour))
			b.s.Expire(b.now)
		}
	}
	pass(20 * 24 * time.Hour)
	if put, gone := b.s.Changes(); len(gone) != 0 || len(put) != 1 || put[0].ID != occupied {
		t.Errorf("that it is in use is stored: %v %v", put, gone)
	}
	b.ask(cleo, talk.OK, join(used, ""))
	b.ask(cleo, talk.OK, on(talk.Leave, uuid.Nil))
	there(unused, used, occupied)
	pass(9 * 24 * time.Hour)
	// The clock jumps a year ahead for half an hour.
	right := b.now
	for m := range 30 {
		b.now = right.Add(365*24*time.Hour + time.Duration(m)*time.Minute)
		b.s.Expire(b.now)
	}
	there(unused, used, occupied)
	b.now = right.Add(30 * time.Minute)
	b.s.soon() // a turn of the clock put right
	b.s.Expire(b.now)
	pass(2 * 24 * time.Hour)
	there(used, occupied)
	if put, gone := b.s.Changes(); !slices.Equal(gone, []uuid.UUID{unused}) {
		t.Errorf("stored: %v %v", put, gone)
	}
	l.Unused = 0
	b.s.SetLimits(l)
	pass(90 * 24 * time.Hour)
	there(used, occupied)
	l.Unused = 24 * time.Hour // and with a reload it is in force
	b.s.SetLimits(l)
	pass(24 * time.Hour)
	there(occupied)
}

// After two declines within a minute nobody can ask for that group again until the minute is over, whoever invites, and
// whether or not the player comes back by another connection.
func TestTwoDeclinesAMinute(t *testing.T) {
	b := sit(t, open, 4)
	g := b.create(anna, "g")
	b.ask(cleo, talk.OK, join(g, ""))
	h := b.create(dora, "h")
	for i := range Declines {
		b.ask(anna, talk.OK, invites(g, ben))
		b.now = b.now.Add(10 * time.Second)
		b.ask(ben, talk.OK, on(talk.Decline, g))
		b.now = start.Add(time.Duration(i+1) * 15 * time.Second)
	}
	b.ask(anna, talk.AlreadyInvited, invites(g, ben))
	b.ask(cleo, talk.AlreadyInvited, invites(g, ben))
	b.ask(dora, talk.OK, invites(h, ben)) // it is about one group
	b.s.Exit(ben, b.now)
	b.s.Enter(ben, 1)
	b.now = start.Add(10*time.Second + MissTime - 1)
	b.ask(anna, talk.AlreadyInvited, invites(g, ben))
	b.ask(ben, talk.OK, join(g, "")) // to join is always open
	b.ask(ben, talk.OK, on(talk.Leave, uuid.Nil))
	b.now = b.now.Add(1)
	b.ask(anna, talk.OK, invites(g, ben))
	// One decline does not count, nor does one that is a minute ago, nor an invitation that has lapsed.
	b.now = b.now.Add(2 * MissTime)
	b.ask(anna, talk.OK, invites(g, ben))
	b.ask(ben, talk.OK, on(talk.Decline, g))
	b.now = b.now.Add(MissTime)
	b.ask(anna, talk.OK, invites(g, ben))
	b.ask(ben, talk.OK, on(talk.Decline, g))
	b.ask(anna, talk.OK, invites(g, ben))
	b.now = b.now.Add(3 * MissTime)
	b.s.Expire(b.now)
	b.s.Exit(ben, b.now)
	if _, known := b.s.players[ben]; known {
		t.Error("ben is remembered for ever")
	}
}

// Names that cannot be told apart are one, and names that cannot be seen are none.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"Staff": "Staff", " Staff\t": "Staff", "\u3000a\u3000": "a", "\uff33taff": "Staff", "gru\u0308n": "grün", "ﬁre": "fire", "a b": "a b",
		"日本語": "日本語", "Ünïté 1": "Ünïté 1", "\U0001f600": "\U0001f600", "★": "★",
		"": "", " ": "", "\u200b": "", "\u3164": "", "\u115f": "", "\u2800": "", "\u2800 \u2800": "", "Sta\u034fff": "", "Staff\ufe0f": "", "\u00ad": "",
		"a\u2028b": "", "a\u2029b": "", "\u202eABC": "", "x\u00a7cred": "", "\u0301\u0301": "", "\U000e0100a": "", "\U000e0041a": "", "\u180ba": "", "\u17b4x": "",
		"\ufdfa\ufdfa":          "", // which is 36 characters by their form
		strings.Repeat("a", 24): strings.Repeat("a", 24), strings.Repeat("a", 25): "", strings.Repeat("ﬃ", 9): "",
	} {
		got, ok := cleanName(name)
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%q is kept as %q, want %q", name, got, want)
		}
	}
	for name, others := range map[string][]string{
		"Staff":  {"staff", "STAFF", "Staff ", "St\u0430ff", "\u0455taff", "\uff33\uff34\uff21\uff26\uff26", "\U0001d412taff"},
		"admin":  {"ADMlN", "adrnin", "\u0430dmin"},
		"Iron":   {"lron", "1ron", "|ron", "IRON"},
		"Team 0": {"Team O", "team o", "Team\u00a00", "Team  0"},
		"грим":   {"ГРИМ", "\u0433\u0440\u0438\u043c"},
	} {
		b := sit(t, open, 2)
		b.create(anna, name)
		for _, o := range others {
			if got := b.do(ben, all, talk.GroupRequest{Verb: talk.Create, Name: o}); got != talk.NameTaken {
				t.Fatalf("%q beside %q: %v", o, name, got)
			}
		}
		g := b.create(ben, "something else")
		b.ask(ben, talk.NameTaken, talk.GroupRequest{Verb: talk.Rename, Group: g, Name: others[0]})
		own, _ := b.s.Of(anna)
		b.ask(anna, talk.OK, talk.GroupRequest{Verb: talk.Rename, Group: own.ID, Name: others[0]}) // one's own may
		b.ask(anna, talk.OK, talk.GroupRequest{Verb: talk.Delete, Group: own.ID})
		b.ask(ben, talk.OK, talk.GroupRequest{Verb: talk.Rename, Group: g, Name: others[0]}) // and it is free again
		b.ask(ben, talk.OK, talk.GroupRequest{Verb: talk.Delete, Group: g})
		if len(b.s.names)+len(b.s.looks) > 0 {
			t.Errorf("%d names, %d looks are left", len(b.s.names), len(b.s.looks))
		}
	}
	// And these are two.
	for a, o := range map[string]string{"mail": "mall", "Red": "Bed", "one": "two", "Team 1": "Team 2"} {
		b := sit(t, open, 2)
		b.create(anna, a)
		b.ask(ben, talk.OK, talk.GroupRequest{Verb: talk.Create, Name: o})
	}
	// What is stored already stays, whatever it looks like.
	b := sit(t, open, 1)
	for _, n := range []string{"Staff", "St\u0430ff", " Staff"} {
		if err := b.s.Apply(Record{ID: uuid.New(), Name: n, Type: "OPEN"}); err != nil {
			t.Error(err)
		}
	}
	b.ask(anna, talk.NameTaken, talk.GroupRequest{Verb: talk.Create, Name: "STAFF"})
}

// The same letters are the same password, however they were typed.
func TestPasswordsAreOneHoweverTheyWereTyped(t *testing.T) {
	b := sit(t, open, 3)
	g := b.create(anna, "g", locked("grün"))
	b.ask(ben, talk.OK, join(g, "gru\u0308n"))
	b.ask(anna, talk.OK, talk.GroupRequest{Verb: talk.Password, Group: g, Password: "e\u0301te\u0301"})
	b.ask(cleo, talk.WrongPassword, join(g, "ete"))
	b.ask(cleo, talk.OK, join(g, "\u00e9t\u00e9"))
	old := newHash("u\u0308") // of an Earshot that took it as it came
	b.s.groups[g].lock(old)
	b.ask(cleo, talk.OK, on(talk.Leave, uuid.Nil))
	b.ask(cleo, talk.OK, join(g, "u\u0308"))
	b.ask(anna, talk.InvalidPassword, talk.GroupRequest{Verb: talk.Password, Group: g, Password: talk.Garbled})
}

// Staff rule every group, whoever owns it and while groups are off, and see who is in it.
func TestStaffRuleGroups(t *testing.T) {
	b := sit(t, open, 4)
	g := b.create(anna, "g", persistent, locked("p"))
	b.ask(ben, talk.OK, join(g, "p"))
	b.s.Exit(ben, b.now)
	b.create(cleo, "other")
	b.s.SetLimits(Limits{})
	if all := b.s.List(); len(all) != 2 || !slices.Equal(all[0].Members, []uuid.UUID{anna, ben}) || all[0].Owner != anna || !all[0].Used.Equal(start) || !all[0].Locked {
		t.Errorf("listed %+v", all)
	}
	for _, c := range []struct {
		r    talk.GroupRequest
		want talk.Code
	}{
		{talk.GroupRequest{Verb: talk.Rename, Group: uuid.New(), Name: "x"}, talk.NotFound},
		{talk.GroupRequest{Verb: talk.Rename, Group: g, Name: "OTHER"}, talk.NameTaken},
		{talk.GroupRequest{Verb: talk.Rename, Group: g, Name: "\u200b"}, talk.InvalidName},
		{talk.GroupRequest{Verb: talk.Rename, Group: g, Name: "new"}, talk.OK},
		{talk.GroupRequest{Verb: talk.Kick, Group: g, Player: cleo}, talk.NotInGroup},
		{talk.GroupRequest{Verb: talk.Kick, Group: g, Player: ben}, talk.OK}, // who is away
		{talk.GroupRequest{Verb: talk.Move, Group: g, Player: ben}, talk.NoPermission},
		{talk.GroupRequest{Verb: talk.Delete, Group: g}, talk.OK},
		{talk.GroupRequest{Verb: talk.Delete, Group: g}, talk.NotFound},
	} {
		if got := b.s.Rule(&c.r); got != c.want {
			t.Errorf("%v: %v, want %v", c.r, got, c.want)
		}
	}
	if put, gone := b.s.Changes(); len(put) != 0 || !slices.Equal(gone, []uuid.UUID{g}) || len(b.s.List()) != 1 {
		t.Errorf("stored %v %v", put, gone)
	}
}

func TestInvitations(t *testing.T) {
	l := open
	l.Members = 2
	b := sit(t, l, 20)
	g := b.create(anna, "g", locked("p"))
	if got := b.do(anna, talk.GroupCaps{Use: true}, invites(g, ben)); got != talk.NoPermission {
		t.Errorf("without the permission: %v", got)
	}
	b.ask(ben, talk.NotInGroup, invites(g, cleo))
	b.ask(anna, talk.NotFound, invites(uuid.New(), ben))
	b.ask(anna, talk.NotFound, invites(g, person(99)))
	b.ask(anna, talk.AlreadyInvited, invites(g, anna))
	b.ask(ben, talk.NotFound, on(talk.Accept, g))
	b.ask(anna, talk.OK, invites(g, ben))
	b.ask(anna, talk.AlreadyInvited, invites(g, ben))
	want := []line.Invitation{{Group: g, From: anna, Seconds: 60}}
	if got := b.page(ben, nil).Invites; !slices.Equal(got, want) {
		t.Errorf("inbox %v", got)
	}
	if got := b.page(cleo, nil).Invites; len(got) != 0 {
		t.Errorf("another's inbox shows %v", got)
	}
	b.ask(ben, talk.OK, on(talk.Decline, g))
	b.ask(ben, talk.NotFound, on(talk.Decline, g))
	b.ask(anna, talk.OK, invites(g, ben))
	b.ask(anna, talk.OK, invites(g, cleo))
	b.ask(ben, talk.OK, on(talk.Accept, g)) // needs no password
	b.in(ben, g)
	b.ask(ben, talk.OK, invites(g, dora)) // any member may
	b.ask(cleo, talk.GroupFull, on(talk.Accept, g))
	b.ask(ben, talk.OK, on(talk.Leave, uuid.Nil))
	b.ask(cleo, talk.OK, on(talk.Accept, g)) // it has waited
	b.ask(cleo, talk.NotFound, on(talk.Accept, g))

	// Joining by the password makes the invitation pointless.
	b.ask(cleo, talk.OK, on(talk.Leave, uuid.Nil))
	b.ask(anna, talk.OK, invites(g, cleo))
	b.ask(cleo, talk.OK, join(g, "p"))
	b.ask(cleo, talk.OK, on(talk.Leave, uuid.Nil))
	b.ask(cleo, talk.NotFound, on(talk.Accept, g))
}

func TestInvitationsLiveAMinute(t *testing.T) {
	b := sit(t, open, 3)
	g := b.create(anna, "g")
	b.ask(anna, talk.OK, invites(g, ben))
	b.now = start.Add(500 * time.Millisecond)
	if got := b.page(ben, nil).Invites; got[0].Seconds != 60 {
		t.Errorf("after half a second %d", got[0].Seconds)
	}
	b.now = start.Add(InviteTime - time.Nanosecond)
	if next := b.s.Expire(b.now); !next.Equal(start.Add(InviteTime)) {
		t.Errorf("due at %v", next)
	}
	page, revision := b.s.Page(ben, all, nil, b.now), b.s.Revision()
	if got := b.page(ben, nil).Invites; len(got) != 1 || got[0].Seconds != 1 {
		t.Errorf("in the last moment %v", got)
	}
	b.now = start.Add(InviteTime)
	if next := b.s.Expire(b.now); !next.IsZero() || b.s.Revision() == revision {
		t.Errorf("the invitation is not over: due at %v, revision %d", next, b.s.Revision())
	}
	if b.s.Page(ben, all, nil, b.now).Same(page) {
		t.Error("the page is the same")
	}
	b.ask(ben, talk.NotFound, on(talk.Accept, g))
	b.ask(anna, talk.OK, invites(g, ben)) // and another one may follow
	b.ask(ben, talk.OK, on(talk.Accept, g))
}

func TestInboxHoldsEight(t *testing.T) {
	b := sit(t, open, 20)
	var groups []uuid.UUID
	for i := range talk.MaxInvitations + 1 {
		groups = append(groups, b.create(person(i), fmt.Sprint("g", i)))
		want := talk.OK
		if i == talk.MaxInvitations {
			want = talk.InboxFull
		}
		b.ask(person(i), want, invites(groups[i], person(19)))
		b.now = b.now.Add(time.Second)
	}
	if got := len(b.page(person(19), nil).Invites); got != talk.MaxInvitations {
		t.Errorf("%d in the inbox", got)
	}
	b.now = start.Add(InviteTime) // the first is over
	last := len(groups) - 1
	b.ask(person(last), talk.OK, invites(groups[last], person(19)))
	// A group that ends takes its invitations along.
	b.ask(person(1), talk.OK, on(talk.Leave, uuid.Nil))
	for _, i := range b.page(person(19), nil).Invites {
		if i.Group == groups[1] {
			t.Error("an invitation into a group that is gone")
		}
	}
}

func TestAcceptingAndBeingMovedLeaveTheFormerGroup(t *testing.T) {
	b := sit(t, open, 4)
	red, blue := b.create(anna, "red"), b.create(ben, "blue")
	b.ask(anna, talk.OK, invites(red, ben))
	b.ask(ben, talk.OK, on(talk.Accept, red))
	b.in(ben, red)
	b.ask(cleo, talk.NotFound, join(blue, "")) // it ended with ben's leaving
	green := b.create(cleo, "green")
	if got := b.do(dora, admin, talk.GroupRequest{Verb: talk.Move, Player: ben, Group: green}); got != talk.OK {
		t.Errorf("move: %v", got)
	}
	b.in(ben, green)
}

func TestMove(t *testing.T) {
	l := open
	l.Members = 2
	b := sit(t, l, 6)
	red, blue := b.create(anna, "red", locked("p")), b.create(ben, "blue")
	move := func(player, g uuid.UUID) talk.GroupRequest {
		return talk.GroupRequest{Verb: talk.Move, Player: player, Group: g, Out: g == uuid.Nil}
	}
	b.ask(anna, talk.NoPermission, move(cleo, red)) // its owner may not
	for _, c := range []struct {
		player, g, in uuid.UUID
		want          talk.Code
	}{
		{cleo, uuid.New(), uuid.Nil, talk.NotFound},
		{person(99), red, uuid.Nil, talk.NotFound},
		{cleo, red, red, talk.OK},
		{cleo, red, red, talk.OK},
		{dora, red, uuid.Nil, talk.GroupFull},
		{anna, blue, blue, talk.OK}, // an owner too
		{dora, blue, uuid.Nil, talk.GroupFull},
		{cleo, uuid.Nil, uuid.Nil, talk.OK},
		{cleo, uuid.Nil, uuid.Nil, talk.OK},
	} {
		if got := b.do(dora, admin, move(c.player, c.g)); got != c.want {
			t.Errorf("move %v to %v: %v, want %v", c.player, c.g, got, c.want)
		}
		b.in(c.player, c.in)
	}
	if got := b.do(dora, admin, talk.GroupRequest{Verb: talk.Move, Player: ben, Group: red}); got != talk.NotFound {
		t.Errorf("red had no members left: %v", got)
	}
	// Out of every group is not the same as into a group of no id.
	if got := b.do(dora, admin, talk.GroupRequest{Verb: talk.Move, Player: ben}); got != talk.NotFound {
		t.Errorf("the zero group: %v", got)
	}
}

func TestEdits(t *testing.T) {
	name := func(n string) talk.GroupRequest { return talk.GroupRequest{Verb: talk.Rename, Name: n} }
	pass := func(p string) talk.GroupRequest { return talk.GroupRequest{Verb: talk.Password, Password: p} }
	kind := func(k talk.GroupType) talk.GroupRequest { return talk.GroupRequest{Verb: talk.Type, Type: k} }
	kick := func(p uuid.UUID) talk.GroupRequest { return talk.GroupRequest{Verb: talk.Kick, Player: p} }
	strict := Limits{Enabled: true, Types: [talk.GroupTypes]bool{talk.OpenGroup: true}}
	for _, c := range []struct {
		name string
		l    Limits
		r    talk.GroupRequest
		want talk.Code
		row  func(talk.GroupRow) bool
	}{
		{"rename", open, name("new"), talk.OK, func(r talk.GroupRow) bool { return r.Name == "new" }},
		{"rename, case only", open, name("RED"), talk.OK, func(r talk.GroupRow) bool { return r.Name == "RED" }},
		{"rename, taken", open, name("BLUE"), talk.NameTaken, nil},
		{"rename, bad", open, name(""), talk.InvalidName, nil},
		{"password", open, pass("new"), talk.OK, func(r talk.GroupRow) bool { return r.Locked }},
		{"password, none", open, pass(""), talk.OK, func(r talk.GroupRow) bool { return !r.Locked }},
		{"password, garbled", open, pass(talk.Garbled), talk.InvalidPassword, nil},
		{"password, too long", open, pass(strings.Repeat("a", 65)), talk.InvalidPassword, nil},
		{"password, not allowed", strict, pass("new"), talk.PasswordsNotAllowed, nil},
		{"password, none, not allowed", strict, pass(""), talk.OK, func(r talk.GroupRow) bool { return !r.Locked }},
		{"password, garbled, not allowed", strict, pass(talk.Garbled), talk.InvalidPassword, nil},
		{"type", open, kind(talk.IsolatedGroup), talk.OK, func(r talk.GroupRow) bool { return r.Type == talk.IsolatedGroup }},
		{"type, not allowed", strict, kind(talk.IsolatedGroup), talk.TypeNotAllowed, nil},
		{"kick", open, kick(ben), talk.OK, nil},
		{"kick, not a member", open, kick(dora), talk.NotInGroup, nil},
		{"kick, not there", open, kick(person(99)), talk.NotInGroup, nil},
		{"delete", open, on(talk.Delete, uuid.Nil), talk.OK, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for who, may := range map[uuid.UUID]talk.GroupCaps{anna: all, dora: admin} { // the owner; an administrator
				b := sit(t, open, 5)
				g := b.create(anna, "red", locked("old"))
				b.ask(ben, talk.OK, join(g, "old"))
				b.create(cleo, "blue")
				b.s.SetLimits(c.l)
				before, _ := b.s.Of(anna)
				c.r.Group = g
				b.ask(ben, talk.NoPermission, c.r)
				if got := b.do(who, may, c.r); got != c.want {
					t.Fatalf("%v, want %v", got, c.want)
				}
				after, in := b.s.Of(anna)
				switch {
				case c.row != nil && !c.row(after):
					t.Errorf("now %+v", after)
				case c.want != talk.OK && after != before:
					t.Errorf("refused, but now %+v", after)
				case c.r.Verb == talk.Delete && in:
					t.Error("still there")
				case c.r.Verb == talk.Kick && c.want == talk.OK:
					b.in(ben, uuid.Nil)
				}
				if _, left := b.s.Of(ben); c.want != talk.OK && !left {
					t.Error("refused, but a member is gone")
				}
				c.r.Group = uuid.New()
				if got := b.do(who, may, c.r); got != talk.NotFound {
					t.Errorf("without a group: %v", got)
				}
			}
		})
	}
}

func TestRenamedGroupsGiveTheirNamesBack(t *testing.T) {
	b := sit(t, open, 2)
	g := b.create(anna, "Red")
	b.ask(anna, talk.OK, talk.GroupRequest{Verb: talk.Rename, Group: g, Name: "Blue"})
	b.create(ben, "red")
	b.ask(ben, talk.OK, on(talk.Leave, uuid.Nil))
	b.create(ben, "RED")
}

func TestOwnershipPassesToTheLongestStanding(t *testing.T) {
	b := sit(t, open, 4)
	g := b.create(anna, "g")
	for _, p := range []uuid.UUID{ben, cleo, dora} {
		b.ask(p, talk.OK, join(g, ""))
	}
	owner := func(want uuid.UUID) {
		t.Helper()
		if row, _ := b.s.Of(dora); row.Owner != want {
			t.Errorf("owner %v, want %v", row.Owner, want)
		}
	}
	b.ask(ben, talk.OK, on(talk.Leave, uuid.Nil))
	owner(anna)
	b.ask(ben, talk.OK, join(g, "")) // ben's time starts over
	b.ask(anna, talk.OK, on(talk.Leave, uuid.Nil))
	owner(cleo)
	b.ask(cleo, talk.OK, talk.GroupRequest{Verb: talk.Kick, Group: g, Player: cleo})
	owner(dora)
	b.ask(anna, talk.NoPermission, on(talk.Delete, g))
	b.ask(dora, talk.OK, on(talk.Leave, uuid.Nil))
	b.ask(ben, talk.OK, on(talk.Delete, g)) // ben has inherited it
}

func TestGroupsEndWithTheirLastMemberUnlessPersistent(t *testing.T) {
	b := sit(t, open, 4)
	g, kept := b.create(anna, "g"), b.create(ben, "kept", persistent)
	b.ask(anna, talk.OK, on(talk.Leave, uuid.Nil))
	b.ask(ben, talk.OK, on(talk.Leave, uuid.Nil))
	b.ask(cleo, talk.NotFound, join(g, ""))
	b.ask(cleo, talk.OK, join(kept, ""))
	b.ask(cleo, talk.NoPermission, on(talk.Delete, kept)) // coming first does not give the group to cleo
	b.ask(ben, talk.OK, on(talk.Delete, kept))
	b.in(cleo, uuid.Nil)
	b.create(dora, "KEPT") // and its name is free
}

func TestReconnectingKeepsThePlace(t *testing.T) {
	b := sit(t, open, 3)
	g := b.create(anna, "g")
	b.s.Exit(anna, b.now)
	if got := b.page(ben, nil); len(got.Members) != 0 || len(got.Groups) != 0 {
		t.Errorf("who is away is shown: %+v", got)
	}
	b.now = b.now.Add(Away - time.Nanosecond)
	b.s.Expire(b.now)
	b.s.Enter(anna, 7)
	b.in(anna, g)
	if row, _ := b.s.Of(anna); row.Owner != anna {
		t.Error("lost the ownership")
	}
	b.s.Exit(anna, b.now)
	b.s.Enter(anna, 0)
	b.now = b.now.Add(time.Hour)
	b.s.Expire(b.now)
	b.in(anna, g) // the first absence has ended
	b.ask(ben, talk.OK, join(g, ""))
	b.s.Exit(anna, b.now)
	if next := b.s.Expire(b.now.Add(Away)); !next.IsZero() {
		t.Errorf("still due at %v", next)
	}
	b.in(anna, uuid.Nil)
	if row, _ := b.s.Of(ben); row.Owner != ben {
		t.Error("the absent one still owns it")
	}
	b.s.Exit(ben, b.now)
	b.s.Leave(ben) // off the network: at once
	if got := b.page(cleo, nil); len(got.Groups) != 0 {
		t.Errorf("left behind %+v", got.Groups)
	}
	if n := len(b.s.players); n != 1 {
		t.Errorf("%d players are remembered, want cleo alone", n)
	}
}

func TestPagesShowNobodyWhoIsHidden(t *testing.T) {
	b := sit(t, open, 4)
	red := b.create(anna, "red")
	blue := b.create(ben, "blue", persistent)
	b.ask(cleo, talk.OK, join(red, ""))
	b.ask(anna, talk.OK, invites(red, dora))
	full := b.page(dora, nil)
	if len(full.Members) != 3 || len(full.Groups) != 2 || full.Groups[0].Owner != anna || full.Invites[0].From != anna || full.May != all {
		t.Fatalf("seen whole: %+v", full)
	}
	same := b.s.Page(dora, all, nil, b.now)
	if !b.s.Page(dora, all, []uint64{0b1111}, b.now).Same(same) {
		t.Error("seeing everybody is not seeing everybody")
	}
	vanished := func(hidden ...uuid.UUID) *line.Groups {
		seen := []uint64{0b1111}
		for _, h := range hidden {
			seen[0] &^= 1 << h[15]
		}
		g := b.page(dora, seen)
		if text := fmt.Sprint(g); slices.ContainsFunc(hidden, func(h uuid.UUID) bool { return strings.Contains(text, h.String()) }) {
			t.Errorf("somebody hidden is in %s", text)
		}
		return g
	}
	if g := vanished(anna); len(g.Groups) != 2 || len(g.Members) != 2 || g.Groups[0].Owner != uuid.Nil || g.Invites[0].From != uuid.Nil {
		t.Errorf("without anna: %+v", g)
	}
	if g := vanished(anna, cleo); len(g.Groups) != 1 || g.Groups[0].ID != blue {
		t.Errorf("a group of hidden people only: %+v", g)
	}
	if g := vanished(ben); len(g.Groups) != 2 || g.Groups[1].Owner != uuid.Nil {
		t.Errorf("a persistent group of hidden people: %+v", g)
	}
	// Nor can they be acted on.
	a := Actor{ID: dora, May: admin, Sees: []uint64{0b1011}} // all but cleo
	for v, want := range map[talk.Verb]talk.Code{talk.Move: talk.NotFound, talk.Kick: talk.NotInGroup} {
		if got := b.s.Do(a, &talk.GroupRequest{Verb: v, Group: red, Player: cleo}, b.now); got != want {
			t.Errorf("%v of somebody hidden: %v", v, got)
		}
	}
	if got := b.s.Do(Actor{ID: ben, May: all, Sees: []uint64{0b0010}}, &talk.GroupRequest{Verb: talk.Invite, Group: blue, Player: cleo}, b.now); got != talk.NotFound {
		t.Errorf("invite of somebody hidden: %v", got)
	}
	b.in(cleo, red)
}

func TestPagesChangeOnlyWithWhatTheyShow(t *testing.T) {
	b := sit(t, open, 6)
	red := b.create(anna, "red")
	b.ask(anna, talk.OK, invites(red, ben))
	page := func(who uuid.UUID, seen []uint64) *Page { return b.s.Page(who, all, seen, b.now) }
	everybody, few := []uint64{^uint64(0)}, []uint64{0b001111}
	of := map[string]*Page{"ben": page(ben, everybody), "cleo": page(cleo, everybody), "dora, who sees few": page(dora, few)}
	b.now = b.now.Add(5 * time.Second)
	if !page(ben, everybody).Same(of["ben"]) {
		t.Error("a second that has passed makes a new page")
	}
	b.ask(anna, talk.OK, invites(red, cleo))
	if !page(ben, everybody).Same(of["ben"]) || page(cleo, everybody).Same(of["cleo"]) {
		t.Error("an invitation concerns its reader only")
	}
	of["cleo"] = page(cleo, everybody)
	b.create(person(4), "hidden from dora")
	if !page(dora, few).Same(of["dora, who sees few"]) || page(ben, everybody).Same(of["ben"]) {
		t.Error("a group of people whom dora does not see concerns the others")
	}
	if p := b.s.Page(ben, talk.GroupCaps{Use: true}, everybody, b.now); p.Same(page(ben, everybody)) {
		t.Error("another permission makes no new page")
	}
	b.s.SetLimits(Limits{})
	if g := b.page(ben, nil); g.May != (talk.GroupCaps{}) || len(g.Groups)+len(g.Members)+len(g.Invites) != 0 {
		t.Errorf("while off: %+v", g)
	}
}

func TestTooManyRowsAreSaid(t *testing.T) {
	s := New(open)
	for i := range 4000 {
		id := uuid.UUID{14: byte(i >> 8), 15: byte(i)}
		s.Enter(id, i)
		s.Do(Actor{ID: id, May: all}, &talk.GroupRequest{Verb: talk.Create, Name: fmt.Sprint("group ", i)}, start)
	}
	text, left := written(s.Page(anna, all, nil, start))
	if _, err := line.ParseS2C(text); err != nil || len(text) > line.MaxS2C || left == 0 {
		t.Errorf("%d characters, %d rows cut: %v", len(text), left, err)
	}
}

// What the routing table of the protocol says, cell by cell.
func TestDecide(t *testing.T) {
	b := sit(t, open, 9)
	// 0, 1 are in no group; then two in each of three types, and one in another isolated group.
	for i, g := range []talk.GroupType{talk.NormalGroup, talk.OpenGroup, talk.IsolatedGroup} {
		id := b.create(person(2+2*i), g.String(), typed(g))
		b.ask(person(3+2*i), talk.OK, join(id, ""))
	}
	b.create(person(8), "another", typed(talk.IsolatedGroup))
	const (
		s = Silent
		d = Distance
		w = Together
	)
	want := [9][9]Decision{ // by talker, then listener
		// none normal open isolated
		{d, d, d, d, d, d, s, s, s},
		{d, d, d, d, d, d, s, s, s},
		{s, s, w, w, s, s, s, s, s},
		{s, s, w, w, s, s, s, s, s},
		{d, d, d, d, w, w, s, s, s},
		{d, d, d, d, w, w, s, s, s},
		{s, s, s, s, s, s, w, w, s},
		{s, s, s, s, s, s, w, w, s},
		{s, s, s, s, s, s, s, s, w},
	}
	for i := range want {
		for j := range want[i] {
			if got := b.s.Decide(person(i), person(j)); got != want[i][j] {
				t.Errorf("%d to %d: %v, want %v", i, j, got, want[i][j])
			}
		}
	}
	if err := splits(b.s, 9); err != nil {
		t.Error(err)
	}
	b.s.SetLimits(Limits{})
	for i := range want {
		for j := range want[i] {
			if got := b.s.Decide(person(i), person(j)); got != Distance {
				t.Errorf("while off, %d to %d: %v", i, j, got)
			}
		}
	}
	if err := splits(b.s, 9); err != nil {
		t.Errorf("while off: %v", err)
	}
}

func (s *State) connected(slot int) bool { return slot < len(s.slots) && s.slots[slot] != nil }

// splits holds Split against Decide, for all pairs.
func splits(s *State, people int) error {
	words := (people + 63) / 64
	for i := range people {
		for _, with := range []uint64{^uint64(0), 0x5555555555555555} {
			ears, together := make([]uint64, words), make([]uint64, words)
			for w := range ears {
				ears[w], together[w] = with, 0xdead
			}
			s.Split(i, 0, ears, together)
			for j := range people {
				if !s.connected(i) || !s.connected(j) {
					continue
				}
				bit := func(set []uint64) bool { return set[j/64]>>(j%64)&1 == 1 }
				d := s.Decide(person(i), person(j))
				if with>>(j%64)&1 == 0 {
					d = Silent
				}
				if bit(together) != (d == Together) || bit(ears) != (d == Distance) {
					return fmt.Errorf("%d to %d: %v, but together %v and by distance %v", i, j, d, bit(together), bit(ears))
				}
			}
		}
	}
	return nil
}

func TestPasswordsDoNotShow(t *testing.T) {
	b := sit(t, open, 2)
	b.create(anna, "g", locked("s3cr3t"), persistent)
	b.create(ben, "h", locked("s3cr3t"), persistent)
	put, _ := b.s.Changes()
	if put[0].Password == put[1].Password {
		t.Error("equal passwords have equal hashes: there is no salt")
	}
	hash, err := put[0].Password.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "record", put[0], "hash", put[0].Password)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "record", put[0], "hash", put[0].Password)
	page, _ := written(b.s.Page(anna, all, nil, b.now))
	for _, text := range []string{
		log.String(), string(page), fmt.Sprintf("%v %+v %#v %s", put[0], put[0], put[0], put[0]),
		fmt.Sprintf("%v %+v %#v", put[0].Password, &put[0].Password, put[0].Password),
	} {
		if strings.Contains(text, "s3cr3t") || strings.Contains(text, string(hash[8:])) || strings.Contains(text, fmt.Sprint(put[0].Password.sum[:4])[1:]) {
			t.Errorf("a password or hash is in %s", text)
		}
	}
	if strings.Contains(string(hash), "s3cr3t") {
		t.Error("the password itself is stored")
	}
}
