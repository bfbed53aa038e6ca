package command

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

func newFilter(t testing.TB, protocol int32, opt Options) (*Filter[*user], *Counters) {
	table, c := testTable(t), new(Counters)
	return NewFilter(func() *Table[*user] { return table }, &user{denied: []string{"send"}}, protocol, func() *Options { return &opt }, c), c
}

func chatBody(protocol int32, text string) (proto.Packet, []byte) {
	p := proto.ChatMessage
	if protocol < proto.V1_19 {
		p = proto.Chat
	}
	return p, packet.AppendChat(nil, protocol, packet.ChatMessage{Text: text})
}

// commandBody returns a command as a client of that version sends it, having seen something.
func commandBody(protocol int32, text string, seen packet.Seen) (proto.Packet, []byte) {
	if protocol < proto.V1_19 {
		return proto.Chat, packet.AppendChat(nil, protocol, packet.ChatMessage{Text: "/" + text})
	}
	return proto.ChatCommand, packet.AppendChatCommand(nil, protocol, proto.ChatCommand, packet.ChatCommand{Text: text, Time: 1, Salt: 2, Seen: seen})
}

func TestFilterCommands(t *testing.T) {
	for _, ver := range proto.Supported() {
		f, c := newFilter(t, ver.Protocol, Options{})
		for text, run := range map[string]bool{"server lobby": true, "Proxy:HUB": true, "help": false, "": false, "send a b": false, "serverx": false} {
			d := f.Serverbound(commandBody(ver.Protocol, text, packet.Seen{}))
			if (d.Action == Run) != run || run && d.Command != text || !run && d.Action != Pass || d.Ack != nil {
				t.Errorf("%d: %q: %+v", ver.Protocol, text, d)
			}
		}
		if d := f.Serverbound(chatBody(ver.Protocol, "server lobby")); d.Action != Pass {
			t.Errorf("%d: chat: %+v", ver.Protocol, d)
		}
		if n := c.Commands.Load(); n != 2 {
			t.Errorf("%d: %d counted", ver.Protocol, n)
		}
	}
}

// What a swallowed command says the client has seen reaches the backend: decided by how far the window moved, not by
// what is marked in it.
func TestFilterAcknowledges(t *testing.T) {
	last := packet.SeenMessage{Sender: uuid.UUID{1}, Signature: []byte{7, 8}}
	for _, c := range []struct {
		protocol int32
		seen     packet.Seen
		want     []byte
	}{
		{759, packet.Seen{}, nil},
		{760, packet.Seen{}, nil},
		{760, packet.Seen{Messages: []packet.SeenMessage{last}}, slices.Concat([]byte{1, 1}, make([]byte, 15), []byte{2, 7, 8, 0})},
		{760, packet.Seen{Last: &last}, slices.Concat([]byte{0, 1, 1}, make([]byte, 15), []byte{2, 7, 8})},
		{761, packet.Seen{}, nil},
		{761, packet.Seen{Offset: 3}, []byte{3}},
		{761, packet.Seen{Bits: [3]byte{255, 255, 15}}, nil},
		{763, packet.Seen{Offset: 1}, []byte{1}},
		{764, packet.Seen{Offset: 300, Bits: [3]byte{1}}, []byte{0xac, 2}},
		{765, packet.Seen{Offset: 2}, []byte{2}},
	} {
		f, _ := newFilter(t, c.protocol, Options{})
		d := f.Serverbound(commandBody(c.protocol, "server", c.seen))
		if d.Action != Run || !bytes.Equal(d.Ack, c.want) {
			t.Errorf("%d %+v: %+v, want %x", c.protocol, c.seen, d, c.want)
		}
		if _, err := packet.ParseAcknowledgement(c.protocol, d.Ack); d.Ack != nil && err != nil {
			t.Errorf("%d: %v", c.protocol, err)
		}
		if d := f.Serverbound(commandBody(c.protocol, "help", c.seen)); d.Action != Pass || d.Ack != nil {
			t.Errorf("%d: a backend's command: %+v", c.protocol, d)
		}
	}
}

// From 766 on a command without signatures says nothing of what was seen, so nothing is made up. A signed one of ours
// runs, and is acknowledged; with Strict it ends the session.
func TestFilterSigned(t *testing.T) {
	signature := packet.ArgumentSignature{Name: "x", Signature: make([]byte, 256)}
	for _, protocol := range []int32{761, 765, 766, 769, 770, 775} {
		p := proto.ChatCommandSigned
		if protocol < 766 {
			p = proto.ChatCommand
		}
		body := packet.AppendChatCommand(nil, protocol, p, packet.ChatCommand{Text: "alert hi", Time: 5, Arguments: []packet.ArgumentSignature{signature}, Seen: packet.Seen{Offset: 4, Checksum: 9}})
		f, c := newFilter(t, protocol, Options{})
		if d := f.Serverbound(p, body); d.Action != Run || d.Command != "alert hi" || !bytes.Equal(d.Ack, []byte{4}) || c.Signed.Load() != 1 {
			t.Errorf("%d: %+v", protocol, d)
		}
		if protocol >= 766 {
			if d := f.Serverbound(proto.ChatCommand, field.AppendString(nil, "alert hi")); d.Action != Run || d.Ack != nil || c.Signed.Load() != 1 {
				t.Errorf("%d: unsigned: %+v", protocol, d)
			}
		}
		f, _ = newFilter(t, protocol, Options{Strict: true})
		if d := f.Serverbound(p, body); d.Action != Kick || !strings.Contains(string(d.Reason.JSON(protocol)), "chat_validation_failed") {
			t.Errorf("%d strict: %+v", protocol, d)
		}
		body = packet.AppendChatCommand(nil, protocol, p, packet.ChatCommand{Text: "help", Time: 6, Arguments: []packet.ArgumentSignature{signature}})
		if d := f.Serverbound(p, body); d.Action != Pass {
			t.Errorf("%d strict, not ours: %+v", protocol, d)
		}
	}
}

func TestFilterIllegal(t *testing.T) {
	for _, protocol := range []int32{47, 340, 758, 759, 760, 761, 766, 775} {
		for _, text := range []string{"a\x01", "§chi", "\x7f"} {
			f, c := newFilter(t, protocol, Options{})
			if d := f.Serverbound(chatBody(protocol, text)); d.Action != Kick || !strings.Contains(strings.ToLower(string(d.Reason.JSON(protocol))), "illegal") {
				t.Errorf("%d: chat %q: %+v", protocol, text, d)
			}
			if d := f.Serverbound(commandBody(protocol, "server "+text, packet.Seen{})); d.Action != Kick || c.Illegal.Load() != 2 {
				t.Errorf("%d: command %q: %+v", protocol, text, d)
			}
		}
	}
}

func TestFilterOrder(t *testing.T) {
	f, c := newFilter(t, 765, Options{})
	say := func(at int64) Action {
		return f.Serverbound(proto.ChatMessage, packet.AppendChat(nil, 765, packet.ChatMessage{Text: "x", Time: at})).Action
	}
	command := func(at int64) Action {
		return f.Serverbound(proto.ChatCommand, packet.AppendChatCommand(nil, 765, proto.ChatCommand, packet.ChatCommand{Text: "help", Time: at})).Action
	}
	if say(10) != Pass || command(10) != Pass || say(11) != Pass || command(12) != Pass {
		t.Error("in order, and refused")
	}
	if say(11) != Kick || command(11) != Kick || c.Illegal.Load() != 2 {
		t.Error("out of order, and passed")
	}
	f.Reset()
	if say(1) != Pass {
		t.Error("the order of the server before counts")
	}
}

func TestFilterMalformed(t *testing.T) {
	f, c := newFilter(t, 765, Options{})
	for i, p := range []proto.Packet{proto.ChatMessage, proto.ChatCommand, proto.TabComplete} {
		if d := f.Serverbound(p, []byte{200}); d.Action != Pass || c.Malformed.Load() != uint64(i+1) {
			t.Errorf("%v: %+v", p, d)
		}
	}
	if d := f.Serverbound(proto.KeepAlive, nil); d.Action != Pass {
		t.Errorf("another packet: %+v", d)
	}
}

func TestFilterLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFilter(t, 765, Options{Commands: limit.Rate{PerSecond: 20, Burst: 40}, Suggestions: limit.Rate{PerSecond: 20, Burst: 50}})
		command := func() Action { return f.Serverbound(commandBody(765, "hub", packet.Seen{Offset: 1})).Action }
		complete := func() Action {
			return f.Serverbound(proto.TabComplete, packet.AppendSuggestionsRequest(nil, 765, packet.SuggestionsRequest{Text: "/server "})).Action
		}
		for i := range 40 {
			if command() != Run {
				t.Fatalf("command %d refused", i)
			}
		}
		if f.Serverbound(commandBody(765, "hub", packet.Seen{Offset: 1})).Action != Pass { // with its acknowledgement
			t.Error("no limit on commands")
		}
		for i := range 50 {
			if complete() != Answer {
				t.Fatalf("request %d refused", i)
			}
		}
		if complete() != Drop || c.Limited.Load() != 2 {
			t.Error("no limit on requests")
		}
		time.Sleep(50 * time.Millisecond)
		if command() != Run || command() != Pass || complete() != Answer || complete() != Drop {
			t.Error("not one more after a twentieth of a second")
		}
	})
}

// TestFilterKicks: who goes on beyond the rates is disconnected, if that is set, and not for a burst now and then.
func TestFilterKicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newFilter(t, 765, Options{Commands: limit.Rate{PerSecond: 1, Burst: 1}, Suggestions: limit.Rate{PerSecond: 1, Burst: 1}, KickAfter: 10})
		command := func() Action { return f.Serverbound(commandBody(765, "help", packet.Seen{})).Action }
		complete := func() Action {
			return f.Serverbound(proto.TabComplete, packet.AppendSuggestionsRequest(nil, 765, packet.SuggestionsRequest{Text: "/server "})).Action
		}
		for range 20 {
			for range 6 { // one of each within the rate, ten of both beyond it
				command()
				if complete() == Flood {
					t.Fatal("kicked for a burst once in a minute")
				}
			}
			time.Sleep(time.Minute)
		}
		command()
		complete()
		for i := range 10 {
			if command() == Flood {
				t.Fatalf("kicked after %d", i)
			}
		}
		if complete() != Flood || command() != Flood {
			t.Error("not kicked")
		}
	})
}

// TestFloodOfRequests: who asks for completion far beyond the rate is disconnected, and no other: not a mod that asks
// with each key, nor one that asks for everything once, nor whoever gives many commands.
func TestFloodOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newFilter(t, 765, Options{Commands: limit.Rate{PerSecond: 20, Burst: 40}, Suggestions: limit.Rate{PerSecond: 20, Burst: 50}, SuggestionsKickAfter: 2000})
		ask := func(n int) (last Action) {
			for range n {
				last = f.Serverbound(proto.TabComplete, packet.AppendSuggestionsRequest(nil, 765, packet.SuggestionsRequest{Text: "/server "})).Action
			}
			return last
		}
		for range 600 {
			if ask(30) == Flood { // a key held down
				t.Fatal("kicked for typing")
			}
			for range 100 {
				if f.Serverbound(commandBody(765, "help", packet.Seen{})).Action == Flood {
					t.Fatal("kicked for commands")
				}
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		if ask(50+2000) != Drop {
			t.Error("kicked within the budget, or more is answered than the rate")
		}
		if ask(1) != Flood {
			t.Error("not kicked")
		}
	})
}

// TestFilterOptions: other rates count for those who are there already, and equal ones forget nothing.
func TestFilterOptions(t *testing.T) {
	table, opt := testTable(t), &Options{Commands: limit.Rate{PerSecond: 0.001, Burst: 2}}
	f := NewFilter(func() *Table[*user] { return table }, &user{}, 765, func() *Options { return opt }, new(Counters))
	command := func() Action { return f.Serverbound(commandBody(765, "hub", packet.Seen{})).Action }
	for i, want := range []Action{Run, Run, Pass} {
		if got := command(); got != want {
			t.Errorf("command %d of a burst of 2: %v", i, got)
		}
	}
	opt = &Options{Commands: opt.Commands, Quiet: true}
	if command() != Pass {
		t.Error("the bucket is full again without a change of its rate")
	}
	opt = &Options{Commands: limit.Rate{PerSecond: 0.001, Burst: 1}}
	if command() != Run || command() != Pass {
		t.Error("another rate does not count")
	}
}

func TestFilterSuggestions(t *testing.T) {
	for _, ver := range proto.Supported() {
		p := ver.Protocol
		f, c := newFilter(t, p, Options{})
		ask := func(q packet.SuggestionsRequest) Decision {
			return f.Serverbound(proto.TabComplete, packet.AppendSuggestionsRequest(nil, p, q))
		}
		d := ask(packet.SuggestionsRequest{ID: 77, Text: "/server lo"})
		want := packet.Suggestions{Matches: texts("lobby", "Lobby-2")}
		if p >= 393 {
			want.ID, want.Start, want.Length = 77, 8, 2
		}
		if d.Action != Answer || !bytes.Equal(d.Body, packet.AppendSuggestions(nil, p, want)) || c.Suggestions.Load() != 1 {
			t.Errorf("%d: %+v", p, d)
		}
		for _, text := range []string{"/help x", "", "server lo", "/send a", "hi"} {
			if d := ask(packet.SuggestionsRequest{Text: text}); d.Action != Pass {
				t.Errorf("%d: %q: %+v", p, text, d)
			}
		}
		// Below 1.13 a backend completes the names of commands, and ours are added to its answer, once.
		answer := packet.AppendSuggestions(nil, p, packet.Suggestions{Matches: texts("/stop", "/seed", "/server")})
		ask(packet.SuggestionsRequest{Text: "/se"})
		out := f.Clientbound(proto.TabComplete, answer)
		if p >= 393 {
			if out != nil {
				t.Errorf("%d: merged", p)
			}
			continue
		}
		if want := packet.AppendSuggestions(nil, p, packet.Suggestions{Matches: texts("/seed", "/server", "/stop")}); !bytes.Equal(out, want) {
			t.Errorf("%d: %x, want %x", p, out, want)
		}
		if out := f.Clientbound(proto.TabComplete, answer); out != nil {
			t.Errorf("%d: merged twice", p)
		}
		for name, q := range map[string]packet.SuggestionsRequest{"names of players": {Text: "No"}, "another's command": {Text: "/help x"}, "nothing of ours": {Text: "/zz"}} {
			ask(packet.SuggestionsRequest{Text: "/se"})
			ask(q)
			if out := f.Clientbound(proto.TabComplete, answer); out != nil {
				t.Errorf("%d: %s: merged", p, name)
			}
		}
		ask(packet.SuggestionsRequest{Text: "/se"})
		if f.Clientbound(proto.TabComplete, []byte{200}) != nil || c.Malformed.Load() != 1 {
			t.Errorf("%d: a broken answer is touched", p)
		}
		f.options = func() *Options { return &Options{Quiet: true} }
		ask(packet.SuggestionsRequest{Text: "/se"})
		if f.Clientbound(proto.TabComplete, answer) != nil {
			t.Errorf("%d: commands that are not to be announced are in an answer", p)
		}
		f.options = func() *Options { return new(Options) }
		ask(packet.SuggestionsRequest{Text: "/se"})
		f.Reset()
		if f.Clientbound(proto.TabComplete, answer) != nil {
			t.Errorf("%d: an answer of another backend is touched", p)
		}
		if p >= 107 {
			ask(packet.SuggestionsRequest{Text: "/se", InBlock: true})
			if f.Clientbound(proto.TabComplete, answer) != nil || ask(packet.SuggestionsRequest{Text: "/server ", InBlock: true}).Action != Pass {
				t.Errorf("%d: a command block is completed", p)
			}
		}
	}
}

func TestFilterTree(t *testing.T) {
	for _, p := range []int32{393, 758, 759, 775} {
		plain, odd := vectorOf(t, "rivals", p), vectorOf(t, "wrapped", p)
		f, c := newFilter(t, p, Options{})
		out := f.Clientbound(proto.DeclareCommands, plain)
		want, _ := testTable(t).Splice(&user{denied: []string{"send"}}, p, nil, plain)
		if !bytes.Equal(out, want) || c.Trees.Load() != 1 || c.Blind.Load()+c.Refused.Load()+c.Unwrapped.Load() != 0 {
			t.Errorf("%d: %x", p, out)
		}
		if f.Clientbound(proto.DeclareCommands, odd) == nil || c.Unwrapped.Load() != 1 || c.Trees.Load() != 2 {
			t.Errorf("%d: not unwrapped", p)
		}
		if f.Clientbound(proto.DeclareCommands, []byte{0, 0}) != nil || c.Refused.Load() != 1 || c.Trees.Load() != 2 {
			t.Errorf("%d: not refused", p)
		}
		f, c = newFilter(t, p, Options{Quiet: true})
		if f.Clientbound(proto.DeclareCommands, plain) != nil {
			t.Errorf("%d: announced", p)
		}
		if out := f.Clientbound(proto.DeclareCommands, odd); out == nil || bytes.Contains(out, []byte("glist")) || c.Unwrapped.Load() != 1 {
			t.Errorf("%d: %x", p, out)
		}
		if f.Clientbound(proto.KeepAlive, nil) != nil {
			t.Errorf("%d: another packet is touched", p)
		}
	}
}

// TestAnnounce: a client is told of its commands again where they have changed for it, and then once.
func TestAnnounce(t *testing.T) {
	for _, p := range []int32{393, 758, 759, 775} {
		plain := vectorOf(t, "rivals", p)
		table, opt, u := testTable(t), &Options{}, &user{denied: []string{"send"}}
		f := NewFilter(func() *Table[*user] { return table }, u, p, func() *Options { return opt }, new(Counters))
		if f.Announce() != nil {
			t.Errorf("%d: told before the backend has said anything", p)
		}
		body := slices.Clone(plain)
		f.Clientbound(proto.DeclareCommands, body)
		clear(body) // it is the session's again
		if f.Announce() != nil {
			t.Errorf("%d: told without a change", p)
		}
		u.denied = nil
		want, _ := table.Splice(u, p, nil, plain)
		if got := f.Announce(); !bytes.Equal(got, want) || f.Announce() != nil {
			t.Errorf("%d: after a change of what he may do: %x", p, got)
		}
		opt = &Options{Quiet: true}
		if got := f.Announce(); !bytes.Equal(got, plain) || f.Announce() != nil {
			t.Errorf("%d: not the backend's alone: %x", p, got)
		}
		opt = &Options{}
		f.Reset()
		if f.Announce() != nil {
			t.Errorf("%d: told of the commands of a backend that is left", p)
		}
	}
}

func TestWants(t *testing.T) {
	for protocol, want := range map[int32][2][]proto.Packet{
		47:  {{proto.Chat, proto.TabComplete}, {proto.TabComplete}},
		340: {{proto.Chat, proto.TabComplete}, {proto.TabComplete}},
		393: {{proto.Chat, proto.TabComplete}, {proto.DeclareCommands}},
		759: {{proto.ChatMessage, proto.ChatCommand, proto.TabComplete}, {proto.DeclareCommands}},
		765: {{proto.ChatMessage, proto.ChatCommand, proto.TabComplete}, {proto.DeclareCommands}},
		766: {{proto.ChatMessage, proto.ChatCommand, proto.ChatCommandSigned, proto.TabComplete}, {proto.DeclareCommands}},
	} {
		v := proto.Lookup(protocol)
		if got := Wants(v, proto.Serverbound); !slices.Equal(got, want[0]) {
			t.Errorf("%d serverbound: %v", protocol, got)
		}
		if got := Wants(v, proto.Clientbound); !slices.Equal(got, want[1]) {
			t.Errorf("%d clientbound: %v", protocol, got)
		}
	}
}

// Whatever a client sends, it passes unless it is ours: nothing waits, nothing panics.
func FuzzFilter(f *testing.F) {
	for _, p := range []int32{47, 340, 393, 758, 759, 760, 761, 766, 775} {
		at := uint8(slices.IndexFunc(proto.Supported(), func(v *proto.Version) bool { return v.Protocol == p }))
		_, body := commandBody(p, "server lobby", packet.Seen{Offset: 1})
		f.Add(body, at, uint8(0))
		f.Add(packet.AppendSuggestionsRequest(nil, p, packet.SuggestionsRequest{Text: "/server \U0001f600 "}), at, uint8(1))
		_, body = chatBody(p, "/hub")
		f.Add(body, at, uint8(2))
	}
	table := testTable(f)
	f.Fuzz(func(t *testing.T, body []byte, version, which uint8) {
		v := proto.Supported()[int(version)%len(proto.Supported())]
		wants := Wants(v, proto.Serverbound)
		p := wants[int(which)%len(wants)]
		filter := NewFilter(func() *Table[*user] { return table }, &user{}, v.Protocol, func() *Options { return new(Options) }, new(Counters))
		d := filter.Serverbound(p, body)
		switch d.Action {
		case Run:
			if c, _ := table.Find(&user{}, d.Command); c == nil {
				t.Fatalf("%q is not ours", d.Command)
			}
			if _, err := packet.ParseAcknowledgement(v.Protocol, d.Ack); d.Ack != nil && err != nil {
				t.Fatalf("acknowledgement %x: %v", d.Ack, err)
			}
		case Answer:
			s, err := packet.ParseSuggestions(v.Protocol, d.Body)
			q, _ := packet.ParseSuggestionsRequest(v.Protocol, body)
			if err != nil || s.Start < 0 || s.Length < 0 || int(s.Start+s.Length) > utf16Len(q.Text) && v.Protocol >= proto.V1_13 {
				t.Fatalf("answer %+v, %v to %q", s, err, q.Text)
			}
		}
		filter.Clientbound(proto.TabComplete, body)
		filter.Clientbound(proto.DeclareCommands, body)
	})
}
