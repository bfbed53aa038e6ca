package command

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"unique"

	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Wants lists the play packets of a direction that a [Filter] has to decide about.
func Wants(v *proto.Version, d proto.Dir) []proto.Packet {
	all := []proto.Packet{proto.DeclareCommands, proto.TabComplete}
	if d == proto.Serverbound {
		all = []proto.Packet{proto.Chat, proto.ChatMessage, proto.ChatCommand, proto.ChatCommandSigned, proto.TabComplete}
	}
	var out []proto.Packet
	for _, p := range all {
		if _, has := v.ID(proto.Play, d, p); has && (d == proto.Serverbound || p != proto.TabComplete || !v.Has(proto.CommandTree)) {
			out = append(out, p)
		}
	}
	return out
}

// Options hold the rules of a Filter. The zero Options limit nothing and announce commands. They are never changed, but
// replaced.
type Options struct {
	Commands    limit.Rate // commands of a player; those in excess go to the backend, whatever they are
	Suggestions limit.Rate // requests for completion; those in excess are dropped
	KickAfter   int        // so many of either in excess within a minute end the session; 0: never
	// SuggestionsKickAfter is KickAfter for requests for completion alone.
	SuggestionsKickAfter int
	Quiet                bool // ours are neither in the backend's tree nor among the names it completes
	// Strict ends the session of a client that signed the arguments of a command of ours. The backend never sees that
	// signature, so it refuses everything that the client signs from then on. Without Strict the player finds that out.
	Strict bool
}

// Counters count what the Filters that share them have met.
type Counters struct {
	Commands    atomic.Uint64 // run here
	Suggestions atomic.Uint64 // answered here
	Limited     atomic.Uint64 // commands and requests over a limit
	Malformed   atomic.Uint64 // packets that could not be read, and passed
	Illegal     atomic.Uint64 // text nobody can type, or messages older than the one before
	Signed      atomic.Uint64 // commands run here that the client had signed
	Trees       atomic.Uint64 // command trees changed
	Unwrapped   atomic.Uint64 // trees with mods' parsers in wrappers
	Blind       atomic.Uint64 // trees not every node of which could be read
	Refused     atomic.Uint64 // trees too odd for our commands
}

// tree counts the outcome of a command tree.
func (c *Counters) tree(how Outcome) {
	// As the bits of Outcome.
	for bit, n := range [...]*atomic.Uint64{&c.Trees, &c.Unwrapped, nil, &c.Blind, &c.Refused} {
		if n != nil && how&(1<<bit) != 0 {
			n.Add(1)
		}
	}
}

// Filter decides about one client's chat, commands and completion. Serverbound and Reset are for one goroutine,
// Clientbound may be called from another; none waits.
type Filter[S Source] struct {
	table    func() *Table[S]
	src      S
	protocol int32
	options  func() *Options
	counters *Counters

	opt                            *Options // that the buckets are for
	commands, suggestions, strikes *limit.Bucket
	requests                       *limit.Bucket // for completion that are in excess
	last                           int64         // when the newest message was written, in ms since 1970

	mu          sync.Mutex
	outstanding *packet.SuggestionsRequest // below 393: the backend's answer is to be merged with ours
	tree        unique.Handle[string]      // as the backend announced it; most players have the same
	sent        uint64                     // what became of it, as a hash
}

// NewFilter returns the filter of a client that speaks protocol. table and options are called each time, so that new
// ones count at once.
func NewFilter[S Source](table func() *Table[S], src S, protocol int32, options func() *Options, c *Counters) *Filter[S] {
	return &Filter[S]{table: table, src: src, protocol: protocol, options: options, counters: c}
}

// judged returns the options in force. New rates begin with full buckets.
func (f *Filter[S]) judged() *Options {
	o := f.options()
	if o == f.opt {
		return o
	}
	if f.opt == nil || o.Commands != f.opt.Commands {
		f.commands = limit.NewBucket(o.Commands)
	}
	if f.opt == nil || o.Suggestions != f.opt.Suggestions {
		f.suggestions = limit.NewBucket(o.Suggestions)
	}
	if f.opt == nil || o.KickAfter != f.opt.KickAfter {
		f.strikes = perMinute(o.KickAfter)
	}
	if f.opt == nil || o.SuggestionsKickAfter != f.opt.SuggestionsKickAfter {
		f.requests = perMinute(o.SuggestionsKickAfter)
	}
	f.opt = o
	return o
}

func perMinute(n int) *limit.Bucket {
	return limit.NewBucket(limit.Rate{PerSecond: float64(n) / 60, Burst: n})
}

// excess counts something over a limit and decides what follows; the strikes run out when it is too often.
func (f *Filter[S]) excess(otherwise Action, strikes ...*limit.Bucket) Decision {
	f.counters.Limited.Add(1)
	for _, b := range strikes {
		if !b.Allow() {
			return Decision{Action: Flood, Reason: packet.Translatable("disconnect.spam")}
		}
	}
	return Decision{Action: otherwise}
}

// Action says what to do with a packet.
type Action uint8

// The actions. The zero Action forwards the packet as it came.
const (
	Pass   Action = iota
	Run           // drop it, send Ack to the backend if there is one, and execute Command
	Answer        // drop it, and send Body to the client as a TabComplete
	Drop
	Kick  // end the session with Reason
	Flood // the same, for the client sends too much
)

// Decision is a Filter's decision about a packet of the client's.
type Decision struct {
	Action  Action
	Command string // without slash, for [Table.Execute]
	// Ack is the body of a MessageAcknowledgement; nil: none. The client said in this packet which messages it has
	// seen, and a backend that does not hear of it refuses the client's next message.
	Ack    []byte
	Body   []byte
	Reason packet.Text
}

// Serverbound decides about a packet of the client's, one of those in [Wants]. Packets must come in order, and
// decisions must be carried out in order: a client's messages carry the time, and backends refuse one that is older
// than the one before. Unreadable packets pass: it is for the backend to refuse them.
func (f *Filter[S]) Serverbound(p proto.Packet, body []byte) Decision {
	switch p {
	case proto.Chat, proto.ChatMessage:
		m, err := packet.ParseChat(f.protocol, body)
		if err != nil {
			return f.malformed()
		}
		if p == proto.Chat && m.Text != "" && m.Text[0] == '/' {
			return f.command(packet.ChatCommand{Text: m.Text[1:]})
		}
		return f.judge(m.Text, m.Time)
	case proto.ChatCommand, proto.ChatCommandSigned:
		c, err := packet.ParseChatCommand(f.protocol, p, body)
		if err != nil {
			return f.malformed()
		}
		return f.command(c)
	case proto.TabComplete:
		return f.complete(body)
	}
	return Decision{}
}

func (f *Filter[S]) malformed() Decision {
	f.counters.Malformed.Add(1)
	return Decision{}
}

// judge looks at text and time as the game does. Packets without a time have the time 0.
func (f *Filter[S]) judge(text string, time int64) Decision {
	if packet.CheckChat(text) != nil {
		f.counters.Illegal.Add(1)
		return Decision{Action: Kick, Reason: packet.IllegalCharacters(f.protocol)}
	}
	if time != 0 {
		if time < f.last {
			f.counters.Illegal.Add(1)
			return Decision{Action: Kick, Reason: packet.OutOfOrderChat()}
		}
		f.last = time
	}
	return Decision{}
}

func (f *Filter[S]) command(c packet.ChatCommand) Decision {
	if d := f.judge(c.Text, c.Time); d.Action != Pass {
		return d
	}
	opt := f.judged()
	if !f.commands.Allow() {
		return f.excess(Pass, f.strikes)
	}
	if ours, _ := f.table().Find(f.src, c.Text); ours == nil {
		return Decision{}
	}
	f.counters.Commands.Add(1)
	if len(c.Arguments) > 0 {
		f.counters.Signed.Add(1)
		if opt.Strict {
			return Decision{Action: Kick, Reason: packet.Translatable("multiplayer.disconnect.chat_validation_failed")}
		}
	}
	d := Decision{Action: Run, Command: c.Text}
	if s := c.Seen; s.Offset != 0 || len(s.Messages) > 0 || s.Last != nil {
		d.Ack = packet.AppendAcknowledgement(nil, f.protocol, s)
	}
	return d
}

func (f *Filter[S]) complete(body []byte) Decision {
	opt := f.judged()
	if !f.suggestions.Allow() {
		return f.excess(Drop, f.strikes, f.requests)
	}
	q, err := packet.ParseSuggestionsRequest(f.protocol, body)
	if err != nil {
		return f.malformed()
	}
	f.expect(nil)
	t := f.table()
	if len(q.Text) == 0 || q.Text[0] != '/' || q.InBlock {
		return Decision{}
	}
	s, ours := t.Complete(f.src, q.Text)
	if !ours {
		if !opt.Quiet && t.merges(f.src, f.protocol, q) {
			f.expect(&q)
		}
		return Decision{}
	}
	f.counters.Suggestions.Add(1)
	s.ID = q.ID
	return Decision{Action: Answer, Body: packet.AppendSuggestions(nil, f.protocol, s)}
}

// expect remembers a request that the backend will answer; nil forgets it.
func (f *Filter[S]) expect(q *packet.SuggestionsRequest) {
	f.mu.Lock()
	f.outstanding = q
	f.mu.Unlock()
}

// Clientbound returns the body that a backend's DeclareCommands or TabComplete is to have; nil: it passes as it came.
func (f *Filter[S]) Clientbound(p proto.Packet, body []byte) []byte {
	switch p {
	case proto.DeclareCommands:
		return f.announce(body)
	case proto.TabComplete:
		return f.merge(body)
	}
	return nil
}

func (f *Filter[S]) announce(body []byte) []byte {
	out, how := f.splice(body)
	f.counters.tree(how)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tree, f.sent = unique.Make(string(body)), maphash.Bytes(seed, out)
	return out
}

var seed = maphash.MakeSeed()

func (f *Filter[S]) splice(body []byte) ([]byte, Outcome) {
	if f.options().Quiet {
		return Unwrap(f.protocol, nil, body)
	}
	return f.table().Splice(f.src, f.protocol, nil, body)
}

// Announce returns the body of the DeclareCommands that tells the client its commands now; nil: the client knows them
// since the last Reset. It may be called from any goroutine.
func (f *Filter[S]) Announce() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tree == (unique.Handle[string]{}) {
		return nil
	}
	body := []byte(f.tree.Value())
	out, _ := f.splice(body)
	sum := maphash.Bytes(seed, out)
	if sum == f.sent {
		return nil
	}
	f.sent = sum
	if out == nil { // as the backend had it
		return body
	}
	return out
}

func (f *Filter[S]) merge(body []byte) []byte {
	f.mu.Lock()
	q := f.outstanding
	f.outstanding = nil
	f.mu.Unlock()
	if q == nil || proto.Has(f.protocol, proto.CommandTree) {
		return nil
	}
	s, err := packet.ParseSuggestions(f.protocol, body)
	if err != nil {
		f.counters.Malformed.Add(1)
		return nil
	}
	f.table().merge(f.src, q.Text, &s)
	return packet.AppendSuggestions(nil, f.protocol, s)
}

// Reset forgets everything about the backend that the player has left. It is called at each join game and each start of
// a configuration.
func (f *Filter[S]) Reset() {
	f.last = 0
	f.mu.Lock()
	f.outstanding, f.tree = nil, unique.Handle[string]{}
	f.mu.Unlock()
}
