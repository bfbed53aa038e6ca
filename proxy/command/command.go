// Package command is the proxy's part in what players type: a table of commands, their place in the command tree a
// backend announces, completion, and the rules by which a client's chat packets may be kept from the backend.
//
// It promises that a backend's own commands survive, whatever mods put among them: the announced tree is changed as
// bytes, and what is not understood is left alone and counted. It promises that a backend hears of everything a client
// acknowledges, and that nothing here waits except [Queue.Close].
package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/earshot-mc/earshot/proxy/packet"
)

// Source gives commands: a player, or the console.
type Source interface {
	// Allowed tells whether the source has a permission.
	Allowed(permission string) bool
}

// Kind says what an argument may be, how a client shows it and how it is completed.
type Kind uint8

// The kinds of argument. A client shows text that a kind does not allow in red, and sends it all the same.
const (
	Word   Kind = iota // letters, digits and _ - . +
	Token              // anything without spaces
	Greedy             // all the rest; only as the last one
	Player             // a player's name, completed from [Names]
	Server             // a server's name, completed from [Names]
)

// Arg is one argument of a command.
type Arg[S Source] struct {
	Name     string // as the usage shows it
	Kind     Kind
	Optional bool // and so are all that follow
	// Suggest adds completions of its own; before are the arguments already there. Those that do not begin with what
	// was typed are left out afterwards. May be nil.
	Suggest func(src S, before []string) []packet.Suggestion
}

// Command is one command of the proxy.
type Command[S Source] struct {
	Name       string   // lower case, without slash
	Aliases    []string // likewise
	Permission string   // empty: everybody's
	// Parts are permissions of parts of the command. Any of them is enough to reach it; Run checks the one that a part
	// needs, and Permission for everything else.
	Parts []string
	Args  []Arg[S]
	// Run carries the command out. args has one element for each argument given, at least the required ones. The error
	// is for the source to be told.
	Run func(ctx context.Context, src S, args []string) error
}

// allows tells whether src may use the command, or a part of it.
func (c *Command[S]) allows(src S) bool {
	return c.Permission == "" || src.Allowed(c.Permission) || slices.ContainsFunc(c.Parts, src.Allowed)
}

// Usage returns what to type: a slash, the name, <required> and [optional] arguments.
func (c *Command[S]) Usage() string {
	var b strings.Builder
	b.WriteString("/" + c.Name)
	for _, a := range c.Args {
		if a.Optional {
			b.WriteString(" [" + a.Name + "]")
		} else {
			b.WriteString(" <" + a.Name + ">")
		}
	}
	return b.String()
}

// UsageError says that a command was typed with too few or too many arguments.
type UsageError struct{ Usage string } // what to type, as [Command.Usage] has it

// Error implements error.
func (e *UsageError) Error() string { return "type " + e.Usage }

// arguments takes apart the text behind the command's name.
func (c *Command[S]) arguments(rest string) ([]string, error) {
	args := make([]string, 0, len(c.Args))
	rest = strings.TrimRight(rest, " ")
	for _, a := range c.Args {
		rest = strings.TrimLeft(rest, " ")
		switch {
		case rest != "" && a.Kind == Greedy:
			args, rest = append(args, rest), ""
		case rest != "":
			var arg string
			arg, rest, _ = strings.Cut(rest, " ")
			args = append(args, arg)
		case !a.Optional:
			return nil, &UsageError{c.Usage()}
		}
	}
	if rest != "" {
		return nil, &UsageError{c.Usage()}
	}
	return args, nil
}

// Names completes arguments that name players and servers: those that src may know of, in any order.
type Names[S Source] interface {
	Players(src S) []packet.Suggestion
	Servers(src S) []packet.Suggestion
}

// maxCommands is the number of bits by which announced trees are told apart.
const maxCommands = 64

// Table is a set of commands. It never changes and may be used from any goroutine.
type Table[S Source] struct {
	names      Names[S]
	namespaces []string // each with its colon
	commands   []Command[S]
	byName     map[string]*Command[S]

	mu    sync.Mutex
	trees map[treeKey]*tree
}

// New makes a table of at most 64 commands. Each of the namespaces may stand before a command's name: /proxy:server.
// The error names the command at fault.
func New[S Source](names Names[S], namespaces []string, commands ...Command[S]) (*Table[S], error) {
	if len(commands) > maxCommands {
		return nil, fmt.Errorf("%d commands, at most %d can be told apart", len(commands), maxCommands)
	}
	t := &Table[S]{names: names, commands: slices.Clone(commands), byName: map[string]*Command[S]{}, trees: map[treeKey]*tree{}}
	for _, n := range namespaces {
		t.namespaces = append(t.namespaces, n+":")
	}
	for i := range t.commands {
		c := &t.commands[i]
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			if !validName(name) {
				return nil, fmt.Errorf("command name %q: use letters a to z, digits and _ - . alone", name)
			}
			if other, taken := t.byName[name]; taken {
				return nil, fmt.Errorf("command name %q is that of /%s and of /%s", name, other.Name, c.Name)
			}
			t.byName[name] = c
		}
		for j, a := range c.Args {
			if j > 0 && c.Args[j-1].Optional && !a.Optional || j < len(c.Args)-1 && a.Kind == Greedy {
				return nil, fmt.Errorf("/%s: argument %q cannot stand where it does", c.Name, a.Name)
			}
		}
	}
	return t, nil
}

const maxNameLength = 64

func validName(name string) bool {
	return name != "" && len(name) <= maxNameLength && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.") == ""
}

// Find returns the command of ours that text calls, and the text behind its name. text has no slash; case does not
// matter. It returns nil when there is none or src may not use it: then the text is for the backend.
func (t *Table[S]) Find(src S, text string) (c *Command[S], rest string) {
	name, rest, _ := strings.Cut(text, " ")
	c = t.lookup(name)
	if c == nil || !c.allows(src) {
		return nil, ""
	}
	return c, rest
}

func (t *Table[S]) lookup(name string) *Command[S] {
	if len(name) > 2*maxNameLength {
		return nil
	}
	name = strings.ToLower(name)
	for _, n := range t.namespaces {
		if bare, ok := strings.CutPrefix(name, n); ok {
			name = bare
			break
		}
	}
	return t.byName[name]
}

// Execute runs the command that text calls; text has no slash. ours is false when there is none that src may use. The
// error is a [*UsageError] or what the command returned.
func (t *Table[S]) Execute(ctx context.Context, src S, text string) (ours bool, err error) {
	c, rest := t.Find(src, text)
	if c == nil {
		return false, nil
	}
	args, err := c.arguments(rest)
	if err != nil {
		return true, err
	}
	return true, c.Run(ctx, src, args)
}

// Allowed lists the commands that src may use, in the order of the table.
func (t *Table[S]) Allowed(src S) []*Command[S] {
	var out []*Command[S]
	for i := range t.commands {
		if c := &t.commands[i]; c.allows(src) {
			out = append(out, c)
		}
	}
	return out
}

// allowedBits returns Allowed as one bit for each command.
func (t *Table[S]) allowedBits(src S) (bits uint64) {
	for i := range t.commands {
		if t.commands[i].allows(src) {
			bits |= 1 << i
		}
	}
	return bits
}
