// Package commands is what players and the console can tell the proxy to do, and what they are answered.
//
// It promises that typed words and names stay text in an answer, that a failed command tells the person who can act
// what to do, and that it knows the rest of the program only through small interfaces.
package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Permission returns the node that a command needs; the nodes of a command's parts follow it:
// earshot.command.ping.others. The node of a part is enough for that part, and shows the command.
func Permission(name string) string { return "earshot.command." + name }

// Enter returns the node that it takes to join a restricted server.
func Enter(server string) string { return "earshot.server." + strings.ToLower(server) }

// Source gives a command: a player or the console.
type Source interface {
	// Allowed tells whether the source has a permission; the console has all.
	Allowed(permission string) bool
	Name() string
	Player() Player // nil: the console
	Locale() string // as the client says, de_at; empty: not known
	Send(packet.Text)
}

// Player is one player. Its methods must not wait.
type Player interface {
	ID() uuid.UUID
	Name() string
	Protocol() int32
	Relayed() bool // the version of their game is unknown: nothing can be said to them
	Locale() string
	Server() string              // the server they are on; empty: on none yet
	Ping() time.Duration         // 0: not known yet
	Connect(server string) error // begins to; they are told of a later failure
	Transfer(host string, port uint16) error
	SendChat(packet.Text) error // fails when too much is waiting, or they have left
}

// Server is one registered server.
type Server struct {
	Name     string
	Down     bool // known not to take players at the moment
	Draining bool // is to get no new players

	Restricted bool // takes the permission [Enter] to join, and to be shown
}

// Network holds the players and servers. Names of players are compared without regard to case. Its methods must not
// wait.
type Network interface {
	Players() []Player // in any order
	// Shown returns the players that to may know about, without those its server hides from it.
	Shown(to Player) []Player
	Player(name string) (Player, bool)
	Servers() []Server // in the order in which to show them
}

// Past knows who was here once. Its methods must not wait.
type Past interface {
	Name(player uuid.UUID) string // the last one; empty: not known
	Find(name string) []Once      // those with that last name, whatever the case, the newest first
}

// Once is a player who was here.
type Once struct {
	ID   uuid.UUID
	Name string
	Seen time.Time
}

// Fact is one line of a status: a text of the table, with names and values in turn.
type Fact struct {
	Key   string
	Named []string
}

// Program holds the operations on the whole program. A command whose function is nil is not there.
type Program struct {
	Version string
	Status  func() []Fact
	// Reload puts a changed configuration in force, whole or not at all. It returns what changed, and what would have
	// but needs a restart.
	Reload func(context.Context) (changes, restart []string, err error)
	// Drain keeps new players off a server, or no longer; move sends its players elsewhere, a few at a time, and calls
	// done when each has been tried, from another goroutine.
	Drain func(server string, on, move bool, done func(Emptied)) error
	// Dump writes a file that helps to find a fault, and returns its name.
	Dump func(context.Context) (file string, err error)
	// Shutdown begins the end of the program and returns. Players are told the reason if there is one.
	Shutdown func(ctx context.Context, reason string)
}

// Emptied reports on the players who were on a server when it was to be emptied.
type Emptied struct {
	Players, Moved, Left int      // all; of these, on another server now; and gone from the proxy
	Nowhere, Refused     []string // still there: no other server of the list is up; no other took them
}

// Config holds what the commands work with. Network is required.
type Config struct {
	Network Network
	Program Program
	Voice   Voice               // nil: there is no /voice
	Page    Page                // nil: there is no voice page
	Past    Past                // nil: players who are not here have no names
	Hubs    []string            // servers that /hub goes to, the first that is up; empty: there is no /hub
	Aliases map[string][]string // other names of commands
	Texts   *Texts              // nil: English
	// Allowed tells whether a player has a permission, for commands about several players. nil: nobody has.
	Allowed func(p Player, permission string) bool
	Limit   func(Player) bool         // false: this player is too fast; nil: nobody is. Asked once for each command.
	Alert   func(packet.Text)         // shows an alert in the console or log; nil: nowhere
	Extra   []command.Command[Source] // commands of others, in the same table
	Log     *slog.Logger              // of commands carried out; nil: none
}

// Commands holds the commands of one configuration. It may be used from any goroutine.
type Commands struct {
	cfg   Config
	table *command.Table[Source]
}

// Namespaces returns the words that can be written before a command's name with a colon, to reach ours where a
// backend's is meant otherwise.
func Namespaces() []string { return []string{"earshot", "proxy"} }

// New makes the commands. The error names the command at fault: an alias that is taken or is no name.
func New(cfg Config) (*Commands, error) {
	if cfg.Texts == nil {
		cfg.Texts = &Texts{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Commands{cfg: cfg}
	all := append(c.playerCommands(), c.programCommands()...)
	if cfg.Voice != nil {
		all = append(all, c.voiceCommand())
	}
	for i := range all {
		all[i].Permission = Permission(all[i].Name)
		all[i].Aliases = cfg.Aliases[all[i].Name]
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Aliases)) {
		if !slices.ContainsFunc(all, func(cmd command.Command[Source]) bool { return cmd.Name == name }) {
			stray := &StrayError{Name: name}
			for _, cmd := range all {
				stray.Commands = append(stray.Commands, cmd.Name)
			}
			return nil, stray
		}
	}
	var err error
	c.table, err = command.New[Source](names{c}, Namespaces(), append(all, cfg.Extra...)...)
	return c, err
}

// StrayError is that of other names for a command that there is none of.
type StrayError struct {
	Name     string
	Commands []string // that there are
}

// Error implements error.
func (e *StrayError) Error() string {
	return fmt.Sprintf("aliases of %q: there is no such command", e.Name)
}

// Nodes lists the permissions that any command or part of one needs, whether the configuration has that command or not.
func Nodes() (all []string) {
	c := &Commands{cfg: Config{Hubs: []string{""}, Page: noPage{}, Program: Program{
		Status: func() []Fact { return nil }, Reload: func(context.Context) ([]string, []string, error) { return nil, nil, nil },
		Drain: func(string, bool, bool, func(Emptied)) error { return nil }, Dump: func(context.Context) (string, error) { return "", nil }, Shutdown: func(context.Context, string) {},
	}}}
	for _, cmd := range append(append(c.playerCommands(), c.programCommands()...), c.voiceCommand()) {
		all = append(append(all, Permission(cmd.Name)), cmd.Parts...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// noPage stands for any page.
type noPage struct{ Page }

// Table returns the table for announcing, finding and completing the commands. To run one, use Execute, which also
// answers.
func (c *Commands) Table() *command.Table[Source] { return c.table }

// problem is an error that is a text of ours.
type problem struct {
	key   key
	named []string
}

// Error implements error, for logs.
func (p *problem) Error() string { return fill(english[p.key], p.named...).String() }

// Told returns the text.
func (p *problem) Told() (string, []string) { return string(p.key), p.named }

func fail(k key, named ...string) error { return &problem{k, named} }

// Execute runs the command that text calls, without its slash, and tells src what went wrong. It returns false when
// there is no such command for src. It may wait as long as the command does; ctx ends it.
func (c *Commands) Execute(ctx context.Context, src Source, text string) bool {
	cmd, _ := c.table.Find(src, text)
	if cmd == nil {
		return false
	}
	if p := src.Player(); p != nil && c.cfg.Limit != nil && !c.cfg.Limit(p) {
		c.answer(src, "too-fast")
		return true
	}
	_, err := c.table.Execute(ctx, src, text)
	level := slog.LevelInfo
	if AtTerminal(ctx) { // whoever typed it there sees it
		level = slog.LevelDebug
	}
	c.cfg.Log.Log(ctx, level, "command", "by", src.Name(), "command", cmd.Name, "text", text, "err", err)
	var usage *command.UsageError
	switch {
	case err == nil:
	case errors.As(err, &usage):
		c.answer(src, "usage", "usage", usage.Usage)
	default:
		src.Send(c.cfg.Texts.Failure(src.Locale(), err))
	}
	return true
}

// text returns a text for src.
func (c *Commands) text(src Source, k key, named ...string) packet.Text {
	return c.cfg.Texts.text(src.Locale(), k, named...)
}

// Texts returns the texts of answers.
func (c *Commands) Texts() *Texts { return c.cfg.Texts }

func (c *Commands) answer(src Source, k key, named ...string) { src.Send(c.text(src, k, named...)) }

// protocolOf returns the protocol whose form of texts src reads.
func protocolOf(src Source) int32 {
	if p := src.Player(); p != nil {
		return p.Protocol()
	}
	return proto.Max
}

// names completes names of players and servers.
type names struct{ *Commands }

// Players implements command.Names.
func (n names) Players(src Source) []packet.Suggestion {
	var out []packet.Suggestion
	for _, p := range n.shown(src) {
		out = append(out, packet.Suggestion{Text: p.Name()})
	}
	return out
}

// Servers implements command.Names.
func (n names) Servers(src Source) []packet.Suggestion {
	count := n.counts(src)
	var out []packet.Suggestion
	for _, s := range n.servers(src) {
		tip := n.hover(src, s, count)
		out = append(out, packet.Suggestion{Text: s.Name, Tooltip: &tip})
	}
	return out
}
