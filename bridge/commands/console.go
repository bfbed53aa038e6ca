package commands

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/Tnze/go-mc/chat"
	"golang.org/x/term"

	"github.com/earshot-mc/earshot/proxy/packet"
)

// ErrQuit is the error of Run when somebody at the terminal has pressed Ctrl-C or Ctrl-D on an empty line.
var ErrQuit = errors.New("ended from the console")

// maxLine bounds the lines of an input that is no terminal, in bytes. A longer one is no command.
const maxLine = 64 << 10

// Console takes commands from the standard input: with editing, history and completion on a terminal, else line by
// line. Write logs to it meanwhile, so that they do not run into the line that is being typed.
type Console struct {
	in       *os.File
	out      *os.File
	commands func() *Commands

	// Colours says that answers have the colours of the game. Set it before Run, for an out that is a terminal.
	Colours bool

	mu       sync.RWMutex
	terminal *term.Terminal // while Run edits lines
}

// NewConsole makes a console. commands is called for each line.
func NewConsole(in, out *os.File, commands func() *Commands) *Console {
	return &Console{in: in, out: out, commands: commands}
}

// IsTerminal tells whether f is a terminal, with a person who types or reads.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Write shows text above the line that is being typed.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.terminal != nil {
		return c.terminal.Write(p)
	}
	return c.out.Write(p)
}

// Run carries out commands, one after the other, until ctx ends or the input does. Then it returns nil, but ErrQuit
// from a terminal. When it returns the terminal is as it was.
func (c *Console) Run(ctx context.Context) error {
	in, err := newInput(c.in)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	defer in.Close()
	defer context.AfterFunc(ctx, in.Stop)()
	next := c.lines(in)
	typing := IsTerminal(c.in)
	if typing && !inForeground(c.in) {
		return nil // the system stops a background program that reads a terminal
	}
	if typing && IsTerminal(c.out) {
		restore, err := c.edit(in)
		if err != nil {
			return fmt.Errorf("console: %w", err)
		}
		defer restore()
		next = c.typed
		ctx = context.WithValue(ctx, atTerminal{}, true)
	}
	for {
		line, err := next()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == errEnd:
			return nil
		case err == io.EOF:
			return ErrQuit
		case err != nil:
			return fmt.Errorf("console: %w", err)
		}
		c.execute(ctx, line)
	}
}

// errEnd is the end of an input that is no terminal.
var errEnd = errors.New("end of input")

// lines reads an input that is no terminal.
func (c *Console) lines(in io.Reader) func() (string, error) {
	buf := bufio.NewReaderSize(in, maxLine)
	return func() (string, error) {
		line, err := buf.ReadSlice('\n')
		for long := false; ; line, err = buf.ReadSlice('\n') {
			switch {
			case err == bufio.ErrBufferFull: // the rest of it is no command either
				long = true
				continue
			case err == io.EOF && len(line) == 0:
				return "", errEnd
			case err != nil && err != io.EOF:
				return "", err
			case long:
				c.commands().answer(console{c}, "line-long", "count", strconv.Itoa(maxLine))
				line = nil
			}
			return string(line), nil
		}
	}
}

// keys reads what is typed at a terminal. Ctrl-C clears a line with something on it; the terminal itself would end with
// it.
type keys struct {
	in     io.Reader
	typing bool   // since the line began, or was cleared
	rest   []byte // of what was read
}

// Read implements io.Reader.
func (k *keys) Read(p []byte) (int, error) {
	if len(k.rest) == 0 {
		read := make([]byte, 256)
		n, err := k.in.Read(read)
		for _, b := range read[:n] {
			switch {
			case b == 0x03 && k.typing:
				k.typing = false
				k.rest = append(k.rest, 0x05, 0x15) // Ctrl-E, Ctrl-U: to the end of the line, delete all before
				continue
			case b == '\r' || b == '\n':
				k.typing = false
			case b >= ' ', b == 0x1b, b == 0x0e, b == 0x10: // fetching a former line is typing too
				k.typing = true
			}
			k.rest = append(k.rest, b)
		}
		if len(k.rest) == 0 {
			return 0, err
		}
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// edit puts the terminal into the state in which each key comes at once, and returns the way back.
func (c *Console) edit(in io.Reader) (restore func(), err error) {
	fd := int(c.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, err
	}
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&keys{in: in}, c.out}, "> ")
	t.AutoCompleteCallback = c.complete
	c.mu.Lock()
	c.terminal = t
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.terminal = nil
		fmt.Fprint(c.out, "\r\n")
		term.Restore(fd, before)
	}, nil
}

// typed reads a line at the terminal.
func (c *Console) typed() (string, error) {
	if w, h, err := term.GetSize(int(c.out.Fd())); err == nil && w > 0 { // 0: not known
		c.terminal.SetSize(w, h)
	}
	return c.terminal.ReadLine()
}

func (c *Console) execute(ctx context.Context, line string) {
	c.commands().Line(ctx, console{c}, line)
}

// Line carries out a line as it is typed at the console: with or without a slash, help as well. It may wait as long as
// the command does; ctx ends it.
func (c *Commands) Line(ctx context.Context, src Source, line string) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "/")
	if line == "" {
		return
	}
	if name, topic, _ := strings.Cut(line, " "); isHelp(name) {
		c.help(src, strings.TrimSpace(topic))
	} else if !c.Execute(ctx, src, line) {
		c.unknown(src, line)
	}
}

// complete answers the Tab key: it goes as far as all choices agree, and if that is nowhere, shows them.
func (c *Console) complete(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	head, tail := line[:pos], line[pos:]
	at := strings.LastIndexByte(head, ' ') + 1
	var words []string
	if table := c.commands().Table(); at == 0 {
		if strings.HasPrefix(head, "/") {
			at = 1
		}
		words = table.CompleteName(console{c}, head[at:])
	} else {
		s, _ := table.Complete(console{c}, head)
		for _, m := range s.Matches {
			words = append(words, m.Text)
		}
	}
	if len(words) == 0 {
		return line, pos, true
	}
	common := commonPrefix(words)
	switch {
	case len(words) == 1:
		common += " "
	case len(common) <= len(head)-at:
		fmt.Fprintln(c, strings.Join(words, "  "))
		return line, pos, true
	}
	return head[:at] + common + tail, at + len(common), true
}

// commonPrefix returns the common beginning of all words, whatever the case.
func commonPrefix(words []string) string {
	first := words[0]
	for n := len(first); n > 0; {
		if !slices.ContainsFunc(words, func(w string) bool { return len(w) < n || !strings.EqualFold(w[:n], first[:n]) }) {
			return first[:n]
		}
		_, size := utf8.DecodeLastRuneInString(first[:n])
		n -= size
	}
	return ""
}

// console is the console as a Source.
type console struct{ c *Console }

// Allowed implements Source.
func (console) Allowed(string) bool { return true }

// Name implements Source.
func (console) Name() string { return "console" }

// Player implements Source.
func (console) Player() Player { return nil }

// Locale implements Source.
func (console) Locale() string { return "" }

// Send implements Source.
func (s console) Send(t packet.Text) {
	if s.c.Colours {
		fmt.Fprintln(s.c, coloured(t))
	} else {
		fmt.Fprintln(s.c, t.String())
	}
}

// coloured returns a text with the codes by which terminals have colours. Each piece ends its own, and has no other
// control characters, whatever somebody is called or a server says.
func coloured(t packet.Text) string {
	var b strings.Builder
	for _, r := range t.Runs() {
		b.WriteString(chat.Message{
			Text: r.Text, Color: r.Color, Bold: r.Bold, Italic: r.Italic, UnderLined: r.Underlined, StrikeThrough: r.Strikethrough,
		}.String())
	}
	return b.String()
}
