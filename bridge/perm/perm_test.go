package perm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

var notch = uuid.MustParse("069a79f4-44e9-4726-a5be-fca90e38aaf5")

func must(t testing.TB, cfg Config) *Perm {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDefaults(t *testing.T) {
	s := must(t, Config{}).Of(notch, "Notch", 0)
	for node, want := range map[string]bool{
		"earshot.command.server": true, "earshot.command.glist": false, "earshot.command.send": false, "earshot.command.shutdown": false,
		Speak: true, Listen: true, Soundboard: true, Groups: true, GroupsCreate: true, GroupsInvite: true, GroupsAdmin: false, MuteExempt: false,
		"anything": false, "": false, "earshot.command": false, "socketsvc.": false,
	} {
		if got := s.Allows(node); got != want {
			t.Errorf("%q: %v", node, got)
		}
	}
	if (Set{}).Allows(Speak) {
		t.Error("the zero Set allows")
	}
}

func TestRules(t *testing.T) {
	p := must(t, Config{
		Groups: map[string]Group{
			"default": {Nodes: []string{"-socketsvc.soundboard", "earshot.command.glist"}},
			"mods":    {Parents: []string{"helpers"}, Nodes: []string{"earshot.command.*", "-earshot.command.shutdown"}},
			"helpers": {Nodes: []string{"earshot.command.shutdown", "earshot.help", "x.y.z"}},
			"admins":  {Parents: []string{"mods"}, Nodes: []string{"*"}},
			"muted":   {Nodes: []string{"-socketsvc.speak"}},
		},
		Players: map[string]Player{
			"Notch":                            {Groups: []string{"mods"}, Nodes: []string{"-earshot.command.alert"}},
			"069a79f444e94726a5befca90e38aaf5": {Groups: []string{"admins"}, Nodes: []string{"-x.*", "x.y.*", "-x.y.q"}},
			"Both":                             {Groups: []string{"muted", "admins"}},
			"boTH2":                            {Groups: []string{"admins", "muted"}},
		},
		Operators: map[int]string{2: "helpers", 4: "admins"},
	})
	someone := uuid.New()
	for _, c := range []struct {
		id    uuid.UUID
		name  string
		level uint8
		node  string
		want  bool
	}{
		{someone, "x", 0, Soundboard, false},
		{someone, "x", 0, Speak, true},
		{someone, "x", 0, "earshot.command.glist", true},
		{someone, "x", 0, "earshot.help", false},
		{someone, "x", 1, "earshot.help", false},
		{someone, "x", 2, "earshot.help", true},
		{someone, "x", 3, "earshot.help", true},
		{someone, "x", 3, GroupsAdmin, false},
		{someone, "x", 4, GroupsAdmin, true},
		{someone, "x", 200, GroupsAdmin, true},
		{someone, "x", 4, "earshot.command.shutdown", true}, // * of a group goes before all of its parents

		{someone, "NOTCH", 0, "earshot.command.send", true},
		{someone, "NOTCH", 0, "earshot.command.shutdown", false}, // the nearer group's word
		{someone, "NOTCH", 0, "earshot.command.alert", false},    // the player's own
		{someone, "NOTCH", 0, "earshot.help", true},              // inherited
		{someone, "NOTCH", 0, "earshot.command", false},          // a.* is not a
		{someone, "NOTCH", 0, "earshot.command.a.b", true},
		{someone, "NOTCH", 0, "earshot.commands.send", false},
		{someone, "NOTCH", 4, "earshot.command.shutdown", false}, // their own before their level's

		{notch, "Notch", 0, "earshot.command.alert", true}, // by UUID, so not by name
		{notch, "Notch", 0, "x.a", false},
		{notch, "Notch", 0, "x.y.z", true},
		{notch, "Notch", 0, "x.y.q", false},
		{notch, "Notch", 0, "x", true},

		{someone, "both", 0, Speak, false},
		{someone, "both", 0, Listen, true},
		{someone, "both2", 0, Speak, true}, // the order in which the groups are written
	} {
		if got := p.Of(c.id, c.name, c.level).Allows(c.node); got != c.want {
			t.Errorf("%s level %d %s: %v", c.name, c.level, c.node, got)
		}
	}
}

// A node that is both given and taken away in one list is taken away, in whichever order.
func TestSameList(t *testing.T) {
	for _, nodes := range [][]string{{"a.b", "-a.b"}, {"-a.b", "a.b"}, {"a.*", "-a.*"}, {"A.B", "-a.b", "a.b"}} {
		p := must(t, Config{Groups: map[string]Group{"default": {Nodes: nodes}}})
		if p.Of(notch, "", 0).Allows("a.b") {
			t.Errorf("%q allows", nodes)
		}
	}
}

func TestErrors(t *testing.T) {
	groups := func(g map[string]Group) Config { return Config{Groups: g} }
	players := func(name string, p Player) Config {
		return Config{Groups: map[string]Group{"a": {}, "b": {}}, Players: map[string]Player{name: p, "69a79f44-44e9-4726-a5be-fca90e38aaf5": {}, "Jeb": {}}}
	}
	for want, cfg := range map[string]Config{
		`permissions.groups.a.parents: there is no group "x"; there are a, b`:        groups(map[string]Group{"a": {Parents: []string{"b", "x"}}, "b": {}}),
		`permissions.groups.a.parents: a → a goes round`:                             groups(map[string]Group{"a": {Parents: []string{"a"}}}),
		`permissions.groups.d.parents: b → c → d → b goes round`:                     groups(map[string]Group{"a": {Parents: []string{"b"}}, "b": {Parents: []string{"c"}}, "c": {Parents: []string{"d"}}, "d": {Parents: []string{"b"}}}),
		`permissions.groups.a.nodes: "a..b" is no permission`:                        groups(map[string]Group{"a": {Nodes: []string{"a..b"}}}),
		`permissions.groups.a.nodes: "" is no permission`:                            groups(map[string]Group{"a": {Nodes: []string{""}}}),
		`permissions.groups.a.nodes: "-" is no permission`:                           groups(map[string]Group{"a": {Nodes: []string{"-"}}}),
		`permissions.groups.a.nodes: "a.*.b" is no permission`:                       groups(map[string]Group{"a": {Nodes: []string{"ok", "a.*.b"}}}),
		`permissions.groups.a.nodes: "a*" is no permission`:                          groups(map[string]Group{"a": {Nodes: []string{"a*"}}}),
		`permissions.groups.a.nodes: "--a" is no permission`:                         groups(map[string]Group{"a": {Nodes: []string{"--a"}}}),
		`permissions.groups.a.nodes: "a b" is no permission`:                         groups(map[string]Group{"a": {Nodes: []string{"a b"}}}),
		`permissions.players.Notch.groups: there is no group "c"; there are a, b`:    players("Notch", Player{Groups: []string{"a", "c"}}),
		`permissions.players.Notch.groups: there is no group "c", nor any other`:     {Players: map[string]Player{"Notch": {Groups: []string{"c"}}}},
		`permissions.players.Notch.nodes: "*.a" is no permission`:                    players("Notch", Player{Nodes: []string{"*.a"}}),
		`permissions.players.jeb: this name is there twice`:                          players("jeb", Player{}),
		`permissions.players.69a79f4444e94726a5befca90e38aaf5: this UUID is there`:   players("69a79f4444e94726a5befca90e38aaf5", Player{}),
		`permissions.players.: is neither`:                                           players("", Player{}),
		`permissions.players.a b: is neither`:                                        players("a b", Player{}),
		`permissions.operators.0: operator levels are 1 to 4`:                        {Operators: map[int]string{0: "a"}, Groups: map[string]Group{"a": {}}},
		`permissions.operators.5: operator levels are 1 to 4`:                        {Operators: map[int]string{5: "a"}, Groups: map[string]Group{"a": {}}},
		`permissions.operators.3: there is no group "admin"; there are a`:            {Operators: map[int]string{3: "admin"}, Groups: map[string]Group{"a": {}}},
		"permissions.players." + strings.Repeat("x", 65) + ": is neither a player's": players(strings.Repeat("x", 65), Player{}),
	} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %s\nhave %v", want, err)
		}
	}
}

// A change counts whole or not at all, and is seen by its version.
func TestReplace(t *testing.T) {
	p := must(t, Config{Groups: map[string]Group{"default": {Nodes: []string{"a"}}}})
	before, version := p.Of(notch, "n", 0), p.Version()
	if err := p.Replace(Config{Groups: map[string]Group{"default": {Nodes: []string{"b", "*.c"}}}}); err == nil {
		t.Fatal("a broken one is taken")
	}
	if s := p.Of(notch, "n", 0); p.Version() != version || !s.Allows("a") || s.Allows("b") {
		t.Error("a broken one counts in part")
	}
	if err := p.Replace(Config{Groups: map[string]Group{"default": {Nodes: []string{"b"}}}}); err != nil {
		t.Fatal(err)
	}
	if s := p.Of(notch, "n", 0); p.Version() == version || s.Allows("a") || !s.Allows("b") {
		t.Error("the new one does not count")
	}
	if !before.Allows("a") || before.Allows("b") {
		t.Error("a set changed under its holder")
	}
}

// Diamonds upon diamonds of inheritance take no longer than their number.
func TestManyParents(t *testing.T) {
	groups := map[string]Group{"g0": {Nodes: []string{"deep"}}}
	for i := 1; i < 100; i++ {
		groups[fmt.Sprintf("g%d", i)] = Group{Parents: []string{fmt.Sprintf("h%d", i), fmt.Sprintf("i%d", i)}}
		for _, side := range "hi" {
			groups[fmt.Sprintf("%c%d", side, i)] = Group{Parents: []string{fmt.Sprintf("g%d", i-1)}}
		}
	}
	p := must(t, Config{Groups: groups, Players: map[string]Player{"x": {Groups: []string{"g99"}}}})
	if !p.Of(notch, "X", 0).Allows("deep") {
		t.Error("not inherited")
	}
}

// slow answers as the package comment says, without compiling anything.
func slow(cfg Config, name string, level int, node string) bool {
	var lists [][]string
	seen := map[string]bool{}
	var add func(group string)
	add = func(group string) {
		if g, ok := cfg.Groups[group]; ok && !seen[group] {
			seen[group] = true
			lists = append(lists, g.Nodes)
			for _, parent := range g.Parents {
				add(parent)
			}
		}
	}
	if player, ok := cfg.Players[name]; ok {
		lists = append(lists, player.Nodes)
		for _, g := range player.Groups {
			add(g)
		}
	}
	clear(seen)
	for l := level; l > 0; l-- {
		if g, ok := cfg.Operators[l]; ok {
			add(g)
			break
		}
	}
	add(DefaultGroup)
	for _, list := range append(lists, Defaults()) {
		longest, allowed := -1, false
		for _, n := range list {
			pattern, denied := strings.CutPrefix(n, "-")
			prefix, wild := strings.CutSuffix(pattern, "*")
			if pattern != node && !(wild && strings.HasPrefix(node, prefix)) {
				continue
			}
			length := len(prefix)
			if !wild {
				length = 1000
			}
			if length > longest {
				longest, allowed = length, !denied
			} else if length == longest && denied {
				allowed = false
			}
		}
		if longest >= 0 {
			return allowed
		}
	}
	return false
}

// Compiled rules answer like a plain reading of the same configuration, for thousands of random ones.
func TestAgainstPlainReading(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	words := []string{"a", "b", "c"}
	node := func() string {
		n := make([]string, 1+rnd.IntN(3))
		for i := range n {
			n[i] = words[rnd.IntN(len(words))]
		}
		return strings.Join(n, ".")
	}
	list := func() []string {
		var out []string
		for range rnd.IntN(4) {
			n := node()
			if rnd.IntN(3) == 0 {
				n += ".*"
			} else if rnd.IntN(10) == 0 {
				n = "*"
			}
			if rnd.IntN(2) == 0 {
				n = "-" + n
			}
			out = append(out, n)
		}
		return out
	}
	groups := []string{DefaultGroup, "g1", "g2", "g3"}
	said := map[bool]int{}
	for range 5000 {
		cfg := Config{Groups: map[string]Group{}, Players: map[string]Player{}, Operators: map[int]string{}}
		for i, g := range groups {
			var parents []string
			for _, parent := range groups[i+1:] {
				if rnd.IntN(3) == 0 {
					parents = append(parents, parent)
				}
			}
			cfg.Groups[g] = Group{parents, list()}
		}
		var own []string
		for range rnd.IntN(3) {
			own = append(own, groups[rnd.IntN(len(groups))])
		}
		cfg.Players["p"] = Player{own, list()}
		cfg.Operators[1+rnd.IntN(4)] = groups[rnd.IntN(len(groups))]
		p := must(t, cfg)
		for range 20 {
			n, level, name := node(), rnd.IntN(5), []string{"p", "q"}[rnd.IntN(2)]
			got, want := p.Of(uuid.UUID{}, name, uint8(level)).Allows(n), slow(cfg, name, level, n)
			if got != want {
				t.Fatalf("%s level %d %s: %v, want %v\n%+v", name, level, n, got, want, cfg)
			}
			said[got]++
		}
	}
	if said[true] < 1000 || said[false] < 1000 {
		t.Errorf("%v: too few of one kind to prove anything", said)
	}
}

func TestNoAllocations(t *testing.T) {
	p := must(t, Config{Groups: map[string]Group{"g": {Nodes: []string{"a.*", "-a.b.c"}}}, Players: map[string]Player{"Notch": {Groups: []string{"g"}}}})
	if n := testing.AllocsPerRun(100, func() {
		s := p.Of(notch, "NOTCH", 3)
		if !s.Allows("a.x.y.z") || s.Allows("a.b.c") || !s.Allows(Speak) || s.Allows("no.such.thing") || p.Version() == 0 {
			t.Error("wrong answer")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzNodes(f *testing.F) {
	for _, n := range append(Defaults(), "*", "-*", "a.*", "-a.b", "", "-", "a..b", "a.*.b", "Ä.é", "a\tb") {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, node string) {
		p, err := New(Config{Groups: map[string]Group{"default": {Nodes: []string{node}}}})
		if err != nil {
			return
		}
		name := strings.ToLower(strings.TrimPrefix(node, "-"))
		want := !strings.HasPrefix(node, "-")
		if strings.HasSuffix(name, "*") {
			name = strings.TrimSuffix(name, "*") + "word"
		}
		if !slices.Contains(Defaults(), name) && p.Of(notch, "", 0).Allows(name) != want {
			t.Fatalf("%q: %q is %v", node, name, !want)
		}
	})
}

func BenchmarkAllows(b *testing.B) {
	p := must(b, Config{Groups: map[string]Group{"g": {Nodes: []string{"earshot.command.*"}}}, Players: map[string]Player{"Notch": {Groups: []string{"g"}}}})
	s := p.Of(notch, "Notch", 0)
	b.ReportAllocs()
	for b.Loop() {
		s.Allows(GroupsInvite)
	}
}
