package command

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/proxy/packet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// user is a Source: what it may do, and what it ran.
type user struct {
	denied []string
	ran    []string
}

func (u *user) Allowed(permission string) bool { return !slices.Contains(u.denied, permission) }

type directory struct{}

func texts(all ...string) (out []packet.Suggestion) {
	for _, s := range all {
		out = append(out, packet.Suggestion{Text: s})
	}
	return out
}
func (directory) Players(*user) []packet.Suggestion {
	return texts("Notch", "jeb_", "notable", "Dinnerbone", "Notch")
}
func (directory) Servers(*user) []packet.Suggestion { return texts("survival", "lobby", "Lobby-2") }

// commands returns those whose nodes testdata/trees.js builds too.
func commands() []Command[*user] {
	run := func(name string) func(context.Context, *user, []string) error {
		return func(_ context.Context, u *user, args []string) error {
			u.ran = append(u.ran, strings.Join(append([]string{name}, args...), "|"))
			return nil
		}
	}
	return []Command[*user]{
		{Name: "server", Permission: "server", Args: []Arg[*user]{{Name: "server", Kind: Server, Optional: true}}, Run: run("server")},
		{Name: "send", Permission: "send", Args: []Arg[*user]{
			{Name: "who", Kind: Token, Suggest: func(*user, []string) []packet.Suggestion { return texts("all", "current", "+lobby") }},
			{Name: "server", Kind: Server},
		}, Run: run("send")},
		{Name: "glist", Aliases: []string{"online"}, Args: []Arg[*user]{{Name: "what", Optional: true,
			Suggest: func(_ *user, before []string) []packet.Suggestion { return texts("all", "alone") }}}, Run: run("glist")},
		{Name: "find", Args: []Arg[*user]{{Name: "player", Kind: Player}}, Run: run("find")},
		{Name: "alert", Args: []Arg[*user]{{Name: "message", Kind: Greedy}}, Run: run("alert")},
		{Name: "hub", Aliases: []string{"lobby"}, Run: run("hub")},
		{Name: "earshot", Args: []Arg[*user]{{Name: "detail", Optional: true}, {Name: "reason", Kind: Greedy, Optional: true}}, Run: run("earshot")},
	}
}

func testTable(t testing.TB) *Table[*user] {
	t.Helper()
	table, err := New(directory{}, []string{"earshot", "proxy"}, commands()...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestExecute(t *testing.T) {
	table := testTable(t)
	for _, c := range []struct{ text, ran, usage string }{
		{"server", "server", ""},
		{"server lobby", "server|lobby", ""},
		{"SERVER  Lobby ", "server|Lobby", ""},
		{"proxy:server lobby", "server|lobby", ""},
		{"Earshot:Hub", "hub", ""},
		{"server a b", "", "/server [server]"},
		{"send", "", "/send <who> <server>"},
		{"send all", "", "/send <who> <server>"},
		{"send +lobby survival", "send|+lobby|survival", ""},
		{"online all", "glist|all", ""},
		{"alert  mind <red>the gap </red>", "alert|mind <red>the gap </red>", ""},
		{"alert   ", "", "/alert <message>"},
		{"earshot", "earshot", ""},
		{"earshot stop for a while", "earshot|stop|for a while", ""},
		{"hub now", "", "/hub"},
	} {
		u := &user{}
		ours, err := table.Execute(t.Context(), u, c.text)
		var usage *UsageError
		switch errors.As(err, &usage); {
		case !ours, c.usage == "" && err != nil, c.usage != "" && (usage == nil || usage.Usage != c.usage):
			t.Errorf("%q: %v, %v", c.text, ours, err)
		case strings.Join(u.ran, ",") != c.ran:
			t.Errorf("%q ran %v, want %s", c.text, u.ran, c.ran)
		}
	}
	for _, text := range []string{"", " ", " server", "server:x", "other:server", "minecraft:server", "serve", "servers", "/server", "\tserver", strings.Repeat("x", 40000)} {
		u := &user{}
		if ours, err := table.Execute(t.Context(), u, text); ours || err != nil || u.ran != nil {
			t.Errorf("%.20q is taken for ours: %v %v", text, err, u.ran)
		}
	}
}

// A player who may not use a command of ours reaches the backend's command of that name, with and without namespace.
func TestNotAllowed(t *testing.T) {
	table := testTable(t)
	u := &user{denied: []string{"server"}}
	for _, text := range []string{"server", "proxy:server lobby"} {
		if ours, _ := table.Execute(t.Context(), u, text); ours {
			t.Errorf("%q ran", text)
		}
	}
	if _, ours := table.Complete(u, "/server l"); ours {
		t.Error("completed")
	}
	if names := table.CompleteName(u, "SE"); !slices.Equal(names, []string{"send"}) {
		t.Errorf("names %v", names)
	}
	if n := len(table.Allowed(u)); n != len(commands())-1 {
		t.Errorf("%d allowed", n)
	}
}

func TestRunError(t *testing.T) {
	bad := errors.New("no")
	table, err := New(directory{}, nil, Command[*user]{Name: "x", Run: func(context.Context, *user, []string) error { return bad }})
	if err != nil {
		t.Fatal(err)
	}
	if ours, err := table.Execute(t.Context(), &user{}, "x"); !ours || err != bad {
		t.Error(ours, err)
	}
}

func TestNewRefuses(t *testing.T) {
	arg := func(kind Kind, optional bool) Arg[*user] {
		return Arg[*user]{Name: "a", Kind: kind, Optional: optional}
	}
	for what, commands := range map[string][]Command[*user]{
		`command name "Server": use letters`: {{Name: "Server"}},
		`command name "": use letters`:       {{Name: "a", Aliases: []string{""}}},
		`"b" is that of /a and of /b`:        {{Name: "a", Aliases: []string{"b"}}, {Name: "b"}},
		`/a: argument "a" cannot stand`:      {{Name: "a", Args: []Arg[*user]{arg(Word, true), arg(Word, false)}}},
		`/c: argument "a" cannot stand`:      {{Name: "c", Args: []Arg[*user]{arg(Greedy, false), arg(Word, false)}}},
		`65 commands`:                        make([]Command[*user], 65),
	} {
		if _, err := New(directory{}, nil, commands...); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want %q, have %v", what, err)
		}
	}
}

func TestComplete(t *testing.T) {
	table := testTable(t)
	for _, c := range []struct {
		text          string
		start, length int32
		want          []string
	}{
		{"/server ", 8, 0, []string{"lobby", "Lobby-2", "survival"}},
		{"/server LO", 8, 2, []string{"lobby", "Lobby-2"}},
		{"server lo", 7, 2, []string{"lobby", "Lobby-2"}}, // from a console, without slash
		{"/Proxy:SERVER lo", 14, 2, []string{"lobby", "Lobby-2"}},
		{"/server lobby x", 14, 1, nil},
		{"/find no", 6, 2, []string{"notable", "Notch"}},
		{"/find   no", 8, 2, []string{"notable", "Notch"}},
		{"/find \U0001f600\U0001f600 no", 11, 2, nil}, // two units each
		{"/alert \U0001f600 no", 10, 2, nil},
		{"/send c", 6, 1, []string{"current"}},
		{"/send +", 6, 1, []string{"+lobby"}},
		{"/send all s", 10, 1, []string{"survival"}},
		{"/glist al", 7, 2, []string{"all", "alone"}},
		{"/online all", 8, 3, []string{"all"}},
		{"/hub ", 5, 0, nil},
		{"/alert a b c", 11, 1, nil},
	} {
		s, ours := table.Complete(&user{}, c.text)
		var got []string
		for _, m := range s.Matches {
			got = append(got, m.Text)
		}
		slices.Sort(c.want)
		sorted := slices.Clone(got)
		slices.Sort(sorted)
		if !ours || s.Start != c.start || s.Length != c.length || !slices.Equal(sorted, c.want) {
			t.Errorf("%q: %v %d+%d %q, want %d+%d %q", c.text, ours, s.Start, s.Length, got, c.start, c.length, c.want)
		}
	}
	for _, text := range []string{"", "/", "/server", "/se", "/foo bar", "hello there", " /server x"} {
		if _, ours := table.Complete(&user{}, text); ours {
			t.Errorf("%q is completed here", text)
		}
	}
	s, _ := table.Complete(&user{}, "/find ")
	if got := []string{s.Matches[0].Text, s.Matches[1].Text, s.Matches[2].Text, s.Matches[3].Text}; !slices.Equal(got, []string{"Dinnerbone", "jeb_", "notable", "Notch"}) || len(s.Matches) != 4 {
		t.Errorf("order %q", got)
	}
}

// The arguments before the one to complete are handed over, whatever the spacing.
func TestCompleteBefore(t *testing.T) {
	var got []string
	arg := Arg[*user]{Name: "a", Optional: true, Suggest: func(_ *user, before []string) []packet.Suggestion {
		got = slices.Clone(before)
		return texts(make([]string, 2*maxMatches)...)
	}}
	table, err := New(directory{}, nil, Command[*user]{Name: "x", Args: []Arg[*user]{arg, arg, arg}})
	if err != nil {
		t.Fatal(err)
	}
	table.Complete(&user{}, "/x  one   two  thr")
	if !reflect.DeepEqual(got, []string{"one", "two"}) {
		t.Errorf("before %q", got)
	}
	many := make([]packet.Suggestion, 0, 2*maxMatches)
	for i := range cap(many) {
		many = append(many, packet.Suggestion{Text: strings.Repeat("x", i)})
	}
	if n := len(matching(many, "")); n != maxMatches {
		t.Errorf("%d matches", n)
	}
}
