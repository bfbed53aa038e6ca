package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/perm"
	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/packet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type network struct {
	players  []*player
	servers  []Server
	vanished string
}

func (n *network) Players() (out []Player) {
	for _, p := range n.players {
		out = append(out, p)
	}
	return out
}
func (n *network) Shown(to Player) []Player {
	return slices.DeleteFunc(n.Players(), func(p Player) bool { return p.Name() == n.vanished && p.ID() != to.ID() })
}
func (n *network) Player(name string) (Player, bool) {
	for _, p := range n.players {
		if strings.EqualFold(p.name, name) {
			return p, true
		}
	}
	return nil, false
}
func (n *network) Servers() []Server { return n.servers }

type player struct {
	name, server, locale string
	protocol             int32
	ping                 time.Duration
	refuse               error
	elsewhere            bool // the server the player is on has got another address
	did                  []string
}

func (p *player) ID() uuid.UUID       { return uuid.NewMD5(uuid.Nil, []byte(p.name)) }
func (p *player) Name() string        { return p.name }
func (p *player) Protocol() int32     { return p.protocol }
func (p *player) Relayed() bool       { return p.protocol == 900 }
func (p *player) Locale() string      { return p.locale }
func (p *player) Server() string      { return p.server }
func (p *player) Ping() time.Duration { return p.ping }
func (p *player) Connect(server string) error {
	switch {
	case p.refuse != nil:
		return p.refuse
	case strings.EqualFold(server, p.server) && !p.elsewhere:
		return errors.New("already connected")
	}
	p.did = append(p.did, "connect "+server)
	return nil
}
func (p *player) Transfer(host string, port uint16) error {
	if p.refuse == nil {
		p.did = append(p.did, fmt.Sprintf("transfer %s %d", host, port))
	}
	return p.refuse
}
func (p *player) SendChat(t packet.Text) error {
	p.did = append(p.did, t.String())
	return nil
}

// source is a player or the console that types; it may do all but denied.
type source struct {
	player *player
	denied []string
	only   []string // what it may do instead, if not nil
	heard  []packet.Text
}

func (s *source) Allowed(permission string) bool {
	if s.only != nil {
		return slices.Contains(s.only, permission)
	}
	return !slices.Contains(s.denied, permission)
}
func (s *source) Name() string {
	if s.player == nil {
		return "console"
	}
	return s.player.name
}
func (s *source) Player() Player {
	if s.player == nil {
		return nil
	}
	return s.player
}
func (s *source) Locale() string {
	if s.player == nil {
		return ""
	}
	return s.player.locale
}
func (s *source) Send(t packet.Text) { s.heard = append(s.heard, t) }
func (s *source) answers() (out []string) {
	for _, t := range s.heard {
		out = append(out, t.String())
	}
	return out
}

// setup returns three servers with two, one and no players, somebody who is on none, and a server that is down.
func setup() (*network, Config) {
	n := &network{
		players: []*player{
			{name: "Notch", server: "lobby", protocol: 775, ping: 42 * time.Millisecond},
			{name: "jeb_", server: "Survival", protocol: 765, ping: 300 * time.Microsecond},
			{name: "alice", server: "lobby", protocol: 47},
			{name: "new", protocol: 775},
		},
		servers: []Server{{Name: "lobby"}, {Name: "Survival"}, {Name: "broken", Down: true}, {Name: "empty"}},
	}
	return n, Config{Network: n, Hubs: []string{"broken", "gone", "lobby"}, Program: Program{
		Version: "1.2.3",
		Status: func() []Fact {
			return []Fact{{"status-players", []string{"count", "4"}}, {"status-draining", []string{"server", "<5>"}}}
		},
		Reload: func(context.Context) ([]string, []string, error) {
			return []string{"servers.lobby", "try"}, []string{"listen"}, nil
		},
		Dump:     func(context.Context) (string, error) { return "/tmp/dump.txt", nil },
		Shutdown: func(context.Context, string) {},
	}}
}

// refused is an error of another room with a text of the table.
type refused struct{ key, server string }

func (r refused) Error() string            { return "for logs" }
func (r refused) Told() (string, []string) { return r.key, []string{"server", r.server} }

// TestFailure: an error with a text of its own is told in it, in the language of the reader; others are told as they
// are.
func TestFailure(t *testing.T) {
	texts, err := NewTexts(map[string]map[string]string{"de": {"connecting-already": "Schon unterwegs zu <server>."}})
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Errorf("wrapped: %w", refused{"connecting-already", "<red>a"})
	for locale, want := range map[string]string{"de_at": "Schon unterwegs zu <red>a.", "en_us": "Already on the way to <red>a."} {
		if got := texts.Failure(locale, own).String(); got != want {
			t.Errorf("%s: %q, want %q", locale, got, want)
		}
	}
	if got := texts.Failure("", errors.New("disk <full>")).String(); got != "That did not work: disk <full>" {
		t.Error(got)
	}
}

func must(t testing.TB, cfg Config) *Commands {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const servers = "lobby, Survival, broken, empty"

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		who, text string
		want      []string // answers to who typed
		did       []string // what the others were told or had to do
	}{
		{"Notch", "server", []string{"You are on lobby.", "Servers: " + servers}, nil},
		{"new", "server", []string{"You are on no server yet.", "Servers: " + servers}, nil},
		{"", "server", []string{"Servers: " + servers}, nil},
		{"Notch", "server SURVIVAL", []string{"To Survival …"}, []string{"Notch: connect Survival"}},
		{"Notch", "server Lobby", []string{"You are on lobby already."}, nil},
		{"Notch", "server x<red>", []string{"There is no server x<red>. Servers: " + servers + "."}, nil},
		{"", "server lobby", []string{"Only somebody in the game can do that."}, nil},
		{"Notch", "server a b", []string{"Type /server [server]."}, nil},

		{"Notch", "glist", []string{"lobby (2)", "Survival (1)", "broken (0) does not answer", "empty (0)", "Players online: 4."}, nil},
		{"", "glist ALL", []string{"lobby (2): alice, Notch", "Survival (1): jeb_", "broken (0) does not answer", "empty (0)", "Players online: 4."}, nil},
		{"", "glist survival", []string{"Survival (1): jeb_"}, nil},
		{"", "glist nowhere", []string{"There is no server nowhere. Servers: " + servers + "."}, nil},

		{"", "find JEB_", []string{"jeb_ is on Survival."}, nil},
		{"", "find new", []string{"new is on no server yet."}, nil},
		{"", "find x", []string{"There is no player x here."}, nil},
		{"", "find", []string{"Type /find <player>."}, nil},

		{"", "send jeb_ LOBBY", []string{"On the way to lobby: 1."}, []string{"jeb_: connect lobby", "jeb_: console sends you to lobby."}},
		{"Notch", "send notch survival", []string{"On the way to Survival: 1."}, []string{"Notch: connect Survival"}},
		{"", "send all lobby", []string{"On the way to lobby: 2."}, []string{"jeb_: connect lobby", "jeb_: console sends you to lobby.", "new: connect lobby", "new: console sends you to lobby."}},
		{"Notch", "send current survival", []string{"On the way to Survival: 2."}, []string{"Notch: connect Survival", "alice: connect Survival", "alice: Notch sends you to Survival."}},
		{"jeb_", "send +LOBBY empty", []string{"On the way to empty: 2."}, []string{"Notch: connect empty", "Notch: jeb_ sends you to empty.", "alice: connect empty", "alice: jeb_ sends you to empty."}},
		{"", "send server:survival empty", []string{"On the way to empty: 1."}, []string{"jeb_: connect empty", "jeb_: console sends you to empty."}},
		{"", "send +empty lobby", []string{"There is nobody to send to lobby."}, nil},
		{"", "send +x lobby", []string{"There is no server x. Servers: " + servers + "."}, nil},
		{"", "send jeb_ x", []string{"There is no server x. Servers: " + servers + "."}, nil},
		{"", "send x lobby", []string{"There is no player x here."}, nil},
		{"", "send current lobby", []string{"Only somebody in the game can do that."}, nil},
		{"", "send jeb_ survival", []string{"jeb_ is on Survival already."}, nil},
		{"", "send jeb_", []string{"Type /send <player|all|current|+server> <server>."}, nil},

		{"jeb_", "hub", []string{"To lobby …"}, []string{"jeb_: connect lobby"}},
		{"Notch", "hub", []string{"You are in the lobby already."}, nil},
		{"", "hub", []string{"Only somebody in the game can do that."}, nil},

		{"", "alert mind <red>the</red> gap", nil, []string{"Notch: [Alert] mind the gap", "alice: [Alert] mind the gap", "jeb_: [Alert] mind the gap", "new: [Alert] mind the gap"}},
		{"", "alert &chi &<", nil, []string{"Notch: [Alert] hi &<", "alice: [Alert] hi &<", "jeb_: [Alert] hi &<", "new: [Alert] hi &<"}},
		{"", `alert {"text": broken}`, []string{"That did not work: text begins like a JSON component and is not valid JSON; correct it, or write it as MiniMessage"}, nil},

		{"Notch", "ping", []string{"Your ping: 42 ms."}, nil},
		{"Notch", "ping Notch", []string{"Your ping: 42 ms."}, nil},
		{"Notch", "ping JEB_", []string{"Ping of jeb_: 1 ms."}, nil},
		{"", "ping Notch", []string{"Ping of Notch: 42 ms."}, nil},
		{"", "ping alice", []string{"The ping of alice is not known yet."}, nil},
		{"", "ping x", []string{"There is no player x here."}, nil},
		{"", "ping", []string{"Only somebody in the game can do that."}, nil},

		{"", "transfer all other.example.org", []string{"These clients are too old to be transferred (1.20.5 or later needed): jeb_, alice.", "On the way to other.example.org: 2."}, []string{"Notch: transfer other.example.org 25565", "new: transfer other.example.org 25565"}},
		{"", "transfer Notch 10.0.0.1:25570", []string{"On the way to 10.0.0.1:25570: 1."}, []string{"Notch: transfer 10.0.0.1 25570"}},
		{"", "transfer Notch [2001:db8::1]:25570", []string{"On the way to [2001:db8::1]:25570: 1."}, []string{"Notch: transfer 2001:db8::1 25570"}},
		{"", "transfer Notch 2001:db8::1", []string{"On the way to 2001:db8::1: 1."}, []string{"Notch: transfer 2001:db8::1 25565"}},
		{"", "transfer jeb_ x", []string{"These clients are too old to be transferred (1.20.5 or later needed): jeb_."}, nil},
		{"", "transfer +empty x", []string{"There is nobody to transfer."}, nil},
		{"", "transfer Notch a:0", []string{"a:0 is no address: write host or host:port."}, nil},
		{"", "transfer Notch a:65536", []string{"a:65536 is no address: write host or host:port."}, nil},
		{"", "transfer Notch a/b", []string{"a/b is no address: write host or host:port."}, nil},
		{"", "transfer Notch :5", []string{":5 is no address: write host or host:port."}, nil},

		{"", "earshot version", []string{"Earshot 1.2.3"}, nil},
		{"", "EARSHOT Status", []string{"players: 4", "server <5>: draining"}, nil},
		{"", "earshot reload", []string{"In force now: servers.lobby", "In force now: try", "Not in force: listen"}, nil},
		{"", "earshot dump", []string{"Written to /tmp/dump.txt."}, nil},
		{"", "earshot", []string{"Type /earshot <version|status|reload|dump|help> [command]."}, nil},
		{"", "earshot frobnicate", []string{"Type /earshot <version|status|reload|dump|help>."}, nil},
		{"", "shutdown", []string{"Stopping."}, nil},
		{"", "shutdown we <move>", []string{"Stopping: we <move>"}, nil},
	} {
		n, cfg := setup()
		src := &source{}
		for _, p := range n.players {
			if p.name == c.who {
				src.player = p
			}
		}
		if !must(t, cfg).Execute(t.Context(), src, c.text) {
			t.Errorf("%q is not a command", c.text)
		}
		var did []string
		for _, p := range n.players {
			for _, d := range p.did {
				did = append(did, p.name+": "+d)
			}
		}
		slices.Sort(c.did)
		slices.Sort(did)
		if got := src.answers(); !slices.Equal(got, c.want) || !slices.Equal(did, c.did) {
			t.Errorf("%s: %q:\nhave %q\nwant %q\ndid  %q\nwant %q", src.Name(), c.text, got, c.want, did, c.did)
		}
	}
}

func TestFailures(t *testing.T) {
	n, cfg := setup()
	broken := errors.New("no <red>luck")
	for _, p := range n.players {
		p.refuse = broken
	}
	cfg.Program.Reload = func(context.Context) ([]string, []string, error) { return nil, nil, errors.New("line 3: x") }
	cfg.Program.Dump = func(context.Context) (string, error) { return "", broken }
	cfg.Hubs = []string{"broken"}
	c := must(t, cfg)
	for text, want := range map[string]string{
		"server lobby":       "That did not work: no <red>luck",
		"send all empty":     "That did not work: no <red>luck",
		"transfer new x":     "That did not work: no <red>luck",
		"earshot dump":       "That did not work: no <red>luck",
		"earshot reload":     "Nothing was changed: line 3: x",
		"hub":                "There is no lobby to go to at the moment.",
		"proxy:earshot dump": "That did not work: no <red>luck",
	} {
		src := &source{player: n.players[1]}
		c.Execute(t.Context(), src, text)
		if got := src.answers(); !slices.Equal(got, []string{want}) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	cfg.Program.Reload = func(context.Context) ([]string, []string, error) { return nil, nil, nil }
	src := &source{}
	must(t, cfg).Execute(t.Context(), src, "earshot reload")
	if got := src.answers(); !slices.Equal(got, []string{"Reloaded: nothing changed."}) {
		t.Errorf("%q", got)
	}
}

// The reason given to shutdown reaches the program, and the answer comes before it.
func TestShutdown(t *testing.T) {
	_, cfg := setup()
	src := &source{}
	var reasons []string
	cfg.Program.Shutdown = func(_ context.Context, reason string) {
		reasons = append(reasons, reason)
		if len(src.heard) != len(reasons) {
			t.Error("the answer does not come first")
		}
	}
	c := must(t, cfg)
	c.Execute(t.Context(), src, "shutdown")
	c.Execute(t.Context(), src, "shutdown  for repairs ")
	if !slices.Equal(reasons, []string{"", "for repairs"}) {
		t.Errorf("%q", reasons)
	}
}

// What is typed without the permission is the backend's, as is a command whose function the program does not have.
func TestPermissions(t *testing.T) {
	n, cfg := setup()
	full := must(t, cfg)
	src := &source{}
	for _, cmd := range full.Table().Allowed(src) {
		if cmd.Permission != "earshot.command."+cmd.Name {
			t.Errorf("/%s needs %s", cmd.Name, cmd.Permission)
		}
		src.denied = append(append(src.denied, cmd.Permission), cmd.Parts...)
	}
	if n := len(full.Table().Allowed(&source{})); n != 10 {
		t.Errorf("%d commands", n)
	}
	for _, text := range []string{"server", "glist", "find x", "send a b", "hub", "alert x", "ping", "transfer a b", "earshot version", "shutdown"} {
		if full.Execute(t.Context(), src, text) || len(src.heard) != 0 {
			t.Errorf("%q ran", text)
		}
	}
	src = &source{denied: []string{"earshot.command.earshot.reload", "earshot.command.ping.others"}}
	full.Execute(t.Context(), src, "earshot reload")
	full.Execute(t.Context(), src, "ping Notch")
	if got := src.answers(); !slices.Equal(got, []string{"You may not do that.", "You may not do that."}) {
		t.Errorf("%q", got)
	}
	s, _ := full.Table().Complete(src, "/earshot ")
	if len(s.Matches) != 4 || s.Matches[0].Text != "dump" {
		t.Errorf("completed with %v", s.Matches)
	}
	// The permission of a part is enough for that part, and for no other.
	for node, runs := range map[string]string{
		"earshot.command.ping.others": "ping jeb_", "earshot.command.earshot.reload": "earshot reload", "earshot.command.earshot": "earshot version",
	} {
		src := &source{player: n.players[0], only: []string{node}}
		if full.Execute(t.Context(), src, runs); slices.Contains(src.answers(), "You may not do that.") || len(src.heard) == 0 {
			t.Errorf("%s: %q", node, src.answers())
		}
		for _, text := range []string{"ping", "earshot dump"} {
			if src.heard = nil; full.Execute(t.Context(), src, text) && !slices.Equal(src.answers(), []string{"You may not do that."}) {
				t.Errorf("%s is enough for %q: %q", node, text, src.answers())
			}
		}
		name, _, _ := strings.Cut(runs, " ")
		if names := full.Table().CompleteName(src, ""); !slices.Contains(names, name) {
			t.Errorf("%s shows %v", node, names)
		}
	}
	bare := must(t, Config{Network: cfg.Network})
	for _, text := range []string{"hub", "shutdown"} {
		if bare.Execute(t.Context(), src, text) {
			t.Errorf("%q is there", text)
		}
	}
	// What everybody may do by default is what commands there are.
	for _, node := range perm.Defaults() {
		if name, ok := strings.CutPrefix(node, "earshot.command."); ok {
			if slices.Contains(Nodes(), node) && strings.Contains(name, ".") { // of a part
				continue
			}
			if c, _ := full.Table().Find(&source{}, name); c == nil {
				t.Errorf("%s is allowed by default, and there is no such command", node)
			}
		}
	}
}

func TestLimit(t *testing.T) {
	n, cfg := setup()
	asked := 0
	cfg.Limit = func(p Player) bool { asked++; return p.Name() != "Notch" }
	c := must(t, cfg)
	for _, p := range n.players[:2] {
		src := &source{player: p}
		if !c.Execute(t.Context(), src, "ping") {
			t.Error("not ours")
		}
		if got := src.answers()[0] == "Not so fast, please."; got != (p.name == "Notch") {
			t.Errorf("%s: %q", p.name, src.answers())
		}
	}
	c.Execute(t.Context(), &source{}, "earshot version") // never limited
	c.Execute(t.Context(), &source{player: n.players[0]}, "help")
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

func TestAlertConsole(t *testing.T) {
	_, cfg := setup()
	var shown string
	cfg.Alert = func(t packet.Text) { shown = t.String() }
	must(t, cfg).Execute(t.Context(), &source{}, "alert <bold>x")
	if shown != "[Alert] x" {
		t.Error(shown)
	}
}

func TestNew(t *testing.T) {
	_, cfg := setup()
	cfg.Aliases = map[string][]string{"hub": {"lobby", "l"}, "glist": {"online"}}
	cfg.Extra = []command.Command[Source]{{Name: "voice", Permission: "x", Run: func(_ context.Context, s Source, _ []string) error {
		s.Send(packet.Plain("v"))
		return nil
	}}}
	c := must(t, cfg)
	for _, text := range []string{"l", "proxy:lobby", "online", "earshot:voice"} {
		if !c.Execute(t.Context(), &source{}, text) {
			t.Errorf("%q is no command", text)
		}
	}
	for want, aliases := range map[string]map[string][]string{
		`"send" is that of /`:                      {"hub": {"send"}},
		`command name "Lobby": use letters`:        {"hub": {"Lobby"}},
		`aliases of "x": there is no such command`: {"x": {"y"}},
	} {
		cfg.Aliases = aliases
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
}

func TestCompletion(t *testing.T) {
	n, cfg := setup()
	c := must(t, cfg)
	for text, want := range map[string]string{
		"/server ":         "broken empty lobby Survival",
		"/glist ":          "all broken empty lobby Survival",
		"/glist a":         "all",
		"/find n":          "new Notch",
		"/send +":          "+broken +empty +lobby +Survival",
		"/send a":          "alice all",
		"/send c":          "current",
		"/send alice s":    "Survival",
		"/transfer new a":  "",
		"/earshot ":        "dump help reload status version",
		"/ping j":          "jeb_",
		"/alert n":         "",
		"/shutdown reason": "",
	} {
		s, ours := c.Table().Complete(&source{player: n.players[0]}, text)
		var got []string
		for _, m := range s.Matches {
			got = append(got, m.Text)
		}
		if !ours || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	s, _ := c.Table().Complete(&source{player: n.players[0]}, "/server ")
	for i, want := range []string{"Not reachable at the moment.", "Players: 0. Click to go there.", "Players: 2. You are here.", "Players: 1. Click to go there."} {
		if got := s.Matches[i].Tooltip.String(); got != want {
			t.Errorf("%s: %q, want %q", s.Matches[i].Text, got, want)
		}
	}
	if s, _ = c.Table().Complete(&source{}, "/send c"); len(s.Matches) != 0 {
		t.Error("the console is on no server to be current")
	}
}

// The list of servers can be clicked, in the form each version has for it.
func TestServerList(t *testing.T) {
	n, cfg := setup()
	c := must(t, cfg)
	for protocol, want := range map[int32]string{
		47:  `{"clickEvent":{"action":"run_command","value":"/server Survival"},"extra":[{"color":"yellow","text":"Survival"}],"hoverEvent":{"action":"show_text","value":{"text":"Players: 1. Click to go there."}},"text":""}`,
		754: `{"clickEvent":{"action":"run_command","value":"/server Survival"},"extra":[{"color":"yellow","text":"Survival"}],"hoverEvent":{"action":"show_text","contents":{"text":"Players: 1. Click to go there."}},"text":""}`,
		769: `{"clickEvent":{"action":"run_command","value":"/server Survival"},"extra":[{"color":"yellow","text":"Survival"}],"hoverEvent":{"action":"show_text","contents":{"text":"Players: 1. Click to go there."}},"text":""}`,
		770: `{"click_event":{"action":"run_command","command":"/server Survival"},"extra":[{"color":"yellow","text":"Survival"}],"hover_event":{"action":"show_text","value":{"text":"Players: 1. Click to go there."}},"text":""}`,
	} {
		p := n.players[0]
		p.protocol = protocol
		src := &source{player: p}
		c.Execute(t.Context(), src, "server")
		var line struct{ Extra []json.RawMessage }
		if err := json.Unmarshal(src.heard[1].JSON(protocol), &line); err != nil {
			t.Fatal(err)
		}
		if got := string(line.Extra[3]); got != want {
			t.Errorf("%d:\nhave %s\nwant %s", protocol, got, want)
		}
		if here := string(line.Extra[1]); strings.Contains(here, "run_command") || !strings.Contains(here, "bold") || !strings.Contains(here, "You are here") {
			t.Errorf("%d: here: %s", protocol, here)
		}
		if down := string(line.Extra[5]); !strings.Contains(down, "strikethrough") || !strings.Contains(down, "Not reachable") {
			t.Errorf("%d: down: %s", protocol, down)
		}
	}
}

// A list of names has a limit, and says how many are missing.
func TestLongList(t *testing.T) {
	n, cfg := setup()
	for i := range 250 {
		n.players = append(n.players, &player{name: fmt.Sprintf("p%d", i), server: "empty"})
	}
	src := &source{}
	must(t, cfg).Execute(t.Context(), src, "glist empty")
	got := src.answers()[0]
	if !strings.HasPrefix(got, "empty (250): p0, p1, p10, ") || !strings.HasSuffix(got, ", and 150 more") || strings.Count(got, ",") != 100 {
		t.Error(got)
	}
}

func TestTexts(t *testing.T) {
	for _, k := range Keys() {
		template := english[key(k)]
		var named []string
		for _, v := range values(template) {
			named = append(named, v, "VALUE")
		}
		if got := fill(template, named...).String(); strings.ContainsAny(got, "<>\\") || strings.Count(got, "VALUE") != len(named)/2 {
			t.Errorf("%s: %q", k, got)
		}
	}
	texts, err := NewTexts(map[string]map[string]string{
		"de":    {"ping": "<gray>Ping: <bold><ping></bold> ms.", "find-none": "<player> ist nirgends."},
		"De_AT": {"ping": "Servus <ping>"},
		"en":    {"shutdown": "Bye."},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ locale, key, want string }{
		{"de_DE", "ping", "Ping: 7 ms."}, {"DE_at", "ping", "Servus 7"}, {"de_at", "find-none", "x ist nirgends."},
		{"de_DE", "shutdown", "Bye."}, {"fr_FR", "ping", "Your ping: 7 ms."}, {"", "shutdown", "Bye."}, {"d", "ping", "Your ping: 7 ms."},
	} {
		if got := texts.text(c.locale, key(c.key), "ping", "7", "player", "x").String(); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.locale, c.key, got, c.want)
		}
	}
	for want, languages := range map[string]map[string]map[string]string{
		"de.pong: there is no such text; earshot texts prints":                {"de": {"pong": "x"}},
		"de.ping: <pin> is neither a tag nor a value here; values are [ping]": {"de": {"ping": "<pin>"}},
		"de: this language is there twice":                                    {"de": {}, "DE": {}},
	} {
		if _, err := NewTexts(languages); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
	// Each player reads their own language.
	n, cfg := setup()
	cfg.Texts = texts
	n.players[0].locale = "de_AT"
	src := &source{player: n.players[0]}
	must(t, cfg).Execute(t.Context(), src, "ping")
	if got := src.answers(); got[0] != "Servus 42" {
		t.Errorf("%q", got)
	}
}

// A value never becomes more than text: no tag, no code, no style of its own.
func FuzzFill(f *testing.F) {
	for _, s := range []string{"", "Notch", "<red>x", `\<red>`, `\\`, `x\`, "§cx", "&cx", `{"text":"x"}`, "<server>", "</yellow>", "<gradient:red:blue>x", "\xc2§\xa7cx"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := fill("<yellow>(<value>)</yellow>", "value", s)
		want := packet.Plain("(" + strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "§", "") + ")").String()
		var c struct{ Text, Color string }
		if err := json.Unmarshal(got.JSON(775), &c); err != nil || c.Color != "yellow" || got.String() != want {
			t.Fatalf("%q became %s, as text %q, want %q", s, got.JSON(775), got.String(), want)
		}
	})
}

// TestServerElsewhere: whoever is on a server that has got another address is taken there by its name, as to any other.
func TestServerElsewhere(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		for text, answer := range map[string][2]string{
			"server survival":     {"You are on Survival already.", "To Survival"},
			"hub":                 {"You are in the lobby already.", "To Survival"},
			"send Notch survival": {"Notch is on Survival already.", "On the way to Survival: 1."},
		} {
			n, cfg := setup()
			cfg.Hubs = []string{"Survival"}
			p := n.players[0]
			p.server, p.elsewhere = "Survival", elsewhere
			src := &source{player: p}
			must(t, cfg).Execute(t.Context(), src, text)
			want := answer[0]
			if elsewhere {
				want = answer[1]
			}
			if got := strings.Join(append(src.answers(), p.did...), "|"); !strings.Contains(got, want) || strings.Contains(got, "connect Survival") != elsewhere {
				t.Errorf("%s, another address %v: %q, want %q", text, elsewhere, got, want)
			}
		}
	}
}

// TestRestrictedServers: a server that takes a permission is left out of lists and completion, and refused, for those
// without it; those with it, and who drains servers, see no difference.
func TestRestrictedServers(t *testing.T) {
	for _, c := range []struct{ text, with, without string }{
		{"server survival", "To Survival", "Server Survival is not for everybody: you need the permission earshot.server.survival."},
		{"server nowhere", "Servers: lobby, Survival, broken, empty.", "Servers: lobby, broken, empty."},
		{"server", "Survival", "-Survival"},
		{"glist", "Players online: 4.", "Players online: 3."},
		{"glist", "Survival (1)", "-Survival"},
		{"glist all", "jeb_", "-jeb_"},
		{"glist survival", "Survival (1)", "is not for everybody"},
		{"find jeb_", "jeb_ is on Survival.", "jeb_ is on a server that you may not join."},
		{"send alice survival", "On the way to Survival: 1.", "is not for everybody"},
		{"send +survival lobby", "On the way to lobby: 1.", "is not for everybody"},
		{"hub", "To Survival", "To lobby"},
		{"earshot drain survival", "takes no new players", "takes no new players"},
	} {
		for _, may := range []bool{true, false} {
			n, cfg, _ := drained()
			n.servers[1].Restricted = true
			cfg.Hubs = []string{"Survival", "lobby"}
			src := &source{player: n.players[0]}
			if c.text == "hub" {
				src.player.server = "broken"
			}
			want := c.with
			if !may {
				src.denied, want = []string{"earshot.server.survival"}, c.without
			}
			must(t, cfg).Execute(t.Context(), src, c.text)
			got := strings.Join(append(src.answers(), src.player.did...), "|")
			if wrong, not := strings.CutPrefix(want, "-"); strings.Contains(got, wrong) == not {
				t.Errorf("%q, with the permission %v: %q, want %q", c.text, may, got, want)
			}
		}
	}
	n, cfg := setup()
	n.servers[1].Restricted = true
	table := must(t, cfg).Table()
	for text, has := range map[string]string{"server ": "Survival", "send Notch ": "Survival", "send ": "+Survival", "glist ": "Survival"} {
		for _, may := range []bool{true, false} {
			src := &source{player: n.players[0]}
			if !may {
				src.denied = []string{"earshot.server.survival"}
			}
			s, _ := table.Complete(src, text)
			if got := slices.ContainsFunc(s.Matches, func(m packet.Suggestion) bool { return m.Text == has }); got != may {
				t.Errorf("%q, with the permission %v: completed to %v", text, may, s.Matches)
			}
		}
	}
}
