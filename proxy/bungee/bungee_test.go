package bungee

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
)

// network is a Network of fakes that note what is done to them.
type network struct {
	players []Player
	servers []Server
}

func (n *network) Players() []Player { return n.players }
func (n *network) Servers() []Server { return n.servers }
func (n *network) Player(name string) (Player, bool) {
	for _, p := range n.players {
		if strings.EqualFold(p.Name(), name) {
			return p, true
		}
	}
	return nil, false
}
func (n *network) Server(name string) (Server, bool) {
	for _, s := range n.servers {
		if strings.EqualFold(s.Name, name) {
			return s, true
		}
	}
	return Server{}, false
}

type player struct {
	name, server string
	id           uuid.UUID
	addr         netip.AddrPort
	protocol     int32
	broken       bool
	did          *[]string
}

func (p *player) ID() uuid.UUID              { return p.id }
func (p *player) Name() string               { return p.name }
func (p *player) Server() string             { return p.server }
func (p *player) RemoteAddr() netip.AddrPort { return p.addr }
func (p *player) Protocol() int32            { return p.protocol }
func (p *player) note(format string, args ...any) {
	*p.did = append(*p.did, p.name+" "+fmt.Sprintf(format, args...))
}
func (p *player) Connect(server string) { p.note("connect %s", server) }
func (p *player) SendChat(t packet.Text) error {
	p.note("message %s", t.JSON(775))
	return nil
}
func (p *player) Kick(t packet.Text) { p.note("kick %s", t.JSON(775)) }
func (p *player) ToServer(channel string, data []byte) error {
	if p.broken || p.server == "" {
		return errors.New("no connection")
	}
	p.note("to %s: %s %q", p.server, channel, data)
	return nil
}

// backend is a connection to a server; what it is answered is noted beside what is done to players.
type backend struct {
	server string
	player Player
	did    *[]string
	broken bool
}

func (b backend) Server() string { return b.server }
func (b backend) Player() Player { return b.player }
func (b backend) SendPlugin(channel string, data []byte) error {
	if b.broken {
		return errors.New("closed")
	}
	*b.did = append(*b.did, fmt.Sprintf("reply to %s: %s %q", b.server, channel, data))
	return nil
}

// setup returns two servers with a player on each, one of 1.8 and one of 26.1, an empty server, and somebody who is on
// none.
func setup(mode Mode, queue int) (m *Messages, from backend, did *[]string) {
	did = new([]string)
	notch := &player{"Notch", "lobby", uuid.MustParse("069a79f4-44e9-4726-a5be-fca90e38aaf5"), netip.MustParseAddrPort("[::ffff:192.0.2.7]:50000"), 47, false, did}
	jeb := &player{"jeb_", "Survival", uuid.MustParse("853c80ef-3c37-49fd-aa49-938b674adae6"), netip.MustParseAddrPort("[2001:db8::1%eth0]:65535"), 775, false, did}
	new := &player{"new", "", uuid.UUID{15: 1}, netip.AddrPort{}, 775, false, did}
	n := &network{[]Player{notch, jeb, new}, []Server{
		{"lobby", netip.MustParseAddrPort("10.0.0.1:25565")}, {"Survival", netip.MustParseAddrPort("10.0.0.2:40000")}, {"empty", netip.AddrPort{}},
	}}
	m = New(Config{Network: n, Queue: queue, Mode: func(server string) Mode {
		if server != "lobby" {
			return Off
		}
		return mode
	}})
	return m, backend{"lobby", notch, did, false}, did
}

// msg returns a message of UTF fields, as Java's DataOutput writes plain text.
func msg(fields ...string) (b []byte) {
	for _, f := range fields {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(f))), f...)
	}
	return b
}

// u writes a UTF field of an expected answer.
func u(s string) string { return string(msg(s)) }

func TestSubchannels(t *testing.T) {
	inner := "\x00\x05inner\x00\x03\x00\xff\xfe"
	reply := func(s string) string { return fmt.Sprintf("reply to lobby: BungeeCord %q", s) }
	for _, c := range []struct {
		name string
		data []byte
		full []string
		self string // "": the same; else what is done instead, "refused" for nothing
	}{
		{"Connect", msg("Connect", "SURVIVAL"), []string{"Notch connect Survival"}, ""},
		{"Connect nowhere", msg("Connect", "x"), nil, ""},
		{"ConnectOther", msg("ConnectOther", "JEB_", "lobby"), []string{"jeb_ connect lobby"}, "refused"},
		{"ConnectOther own", msg("ConnectOther", "notch", "empty"), []string{"Notch connect empty"}, ""},
		{"ConnectOther of nobody", msg("ConnectOther", "x", "lobby"), nil, ""},
		{"ConnectOther nowhere", msg("ConnectOther", "jeb_", "x"), nil, ""},
		{"ConnectOther from nowhere", msg("ConnectOther", "new", "lobby"), []string{"new connect lobby"}, "refused"},
		{"IP", msg("IP"), []string{reply(u("IP") + u("192.0.2.7") + "\x00\x00\xc3\x50")}, ""},
		{"IPOther", msg("IPOther", "Jeb_"), []string{reply(u("IPOther") + u("jeb_") + u("2001:db8::1") + "\x00\x00\xff\xff")}, "refused"},
		{"IPOther own", msg("IPOther", "Notch"), []string{reply(u("IPOther") + u("Notch") + u("192.0.2.7") + "\x00\x00\xc3\x50")}, ""},
		{"IPOther of nobody", msg("IPOther", "x"), nil, ""},
		{"IPOther without address", msg("IPOther", "new"), nil, "refused"},
		{"PlayerCount", msg("PlayerCount", "survival"), []string{reply(u("PlayerCount") + u("Survival") + "\x00\x00\x00\x01")}, ""},
		{"PlayerCount of all", msg("PlayerCount", "ALL"), []string{reply(u("PlayerCount") + u("ALL") + "\x00\x00\x00\x03")}, ""},
		{"PlayerCount of none", msg("PlayerCount", "empty"), []string{reply(u("PlayerCount") + u("empty") + "\x00\x00\x00\x00")}, ""},
		{"PlayerCount nowhere", msg("PlayerCount", "x"), nil, ""},
		{"PlayerList", msg("PlayerList", "lobby"), []string{reply(u("PlayerList") + u("lobby") + u("Notch"))}, ""},
		{"PlayerList of all", msg("PlayerList", "ALL"), []string{reply(u("PlayerList") + u("ALL") + u("Notch, jeb_, new"))}, ""},
		{"PlayerList of none", msg("PlayerList", "empty"), []string{reply(u("PlayerList") + u("empty") + u(""))}, ""},
		{"PlayerList nowhere", msg("PlayerList", ""), nil, ""},
		{"GetServers", msg("GetServers"), []string{reply(u("GetServers") + u("lobby, Survival, empty"))}, ""},
		{"GetServer", msg("GetServer"), []string{reply(u("GetServer") + u("lobby"))}, ""},
		{"GetPlayerServer", msg("GetPlayerServer", "jeb_"), []string{reply(u("GetPlayerServer") + u("jeb_") + u("Survival"))}, "refused"},
		{"GetPlayerServer own", msg("GetPlayerServer", "notch"), []string{reply(u("GetPlayerServer") + u("Notch") + u("lobby"))}, ""},
		{"GetPlayerServer of nobody", msg("GetPlayerServer", "X"), []string{reply(u("GetPlayerServer") + u("X") + u(""))}, ""},
		{"UUID", msg("UUID"), []string{reply(u("UUID") + u("069a79f444e94726a5befca90e38aaf5"))}, ""},
		{"UUIDOther", msg("UUIDOther", "jeb_"), []string{reply(u("UUIDOther") + u("jeb_") + u("853c80ef3c3749fdaa49938b674adae6"))}, "refused"},
		{"UUIDOther of nobody", msg("UUIDOther", "x"), nil, ""},
		{"ServerIP", msg("ServerIP", "Survival"), []string{reply(u("ServerIP") + u("Survival") + u("10.0.0.2") + "\x9c\x40")}, ""},
		{"ServerIP unknown", msg("ServerIP", "empty"), nil, ""},
		{"Message", append(msg("Message", "jeb_"), "\x00\x0e\xc2\xa7chi <red>&a\\"...), []string{`jeb_ message {"color":"red","text":"hi <red>&a\\"}`}, "refused"},
		{"Message to all", msg("Message", "ALL", "hi"), []string{`Notch message {"text":"hi"}`, `jeb_ message {"text":"hi"}`, `new message {"text":"hi"}`}, `Notch message {"text":"hi"}`},
		{"Message to nobody", msg("Message", "x", "hi"), nil, ""},
		{"MessageRaw", msg("MessageRaw", "Notch", `{"text":"a","bold":true}`), []string{`Notch message {"text":"a","bold":true}`}, ""},
		{"MessageRaw to all", msg("MessageRaw", "ALL", `"x"`), []string{`Notch message "x"`, `jeb_ message "x"`, `new message "x"`}, `Notch message "x"`},
		{"KickPlayer", msg("KickPlayer", "jeb_", "bye"), []string{`jeb_ kick {"text":"bye"}`}, "refused"},
		{"KickPlayer own", msg("KickPlayer", "NOTCH", "bye"), []string{`Notch kick {"text":"bye"}`}, ""},
		{"KickPlayer ALL", msg("KickPlayer", "ALL", "bye"), nil, ""}, // a name like any other
		{"KickPlayerRaw", msg("KickPlayerRaw", "jeb_", `{"text":"bye"}`), []string{`jeb_ kick {"text":"bye"}`}, "refused"},
		{"Forward", append(msg("Forward", "SURVIVAL"), inner...), []string{fmt.Sprintf("jeb_ to Survival: bungeecord:main %q", inner)}, "refused"},
		{"Forward to itself", append(msg("Forward", "lobby"), inner...), []string{fmt.Sprintf("Notch to lobby: BungeeCord %q", inner)}, ""},
		{"Forward to all", append(msg("Forward", "ALL"), inner...), []string{fmt.Sprintf("jeb_ to Survival: bungeecord:main %q", inner)}, "refused"},
		{"Forward to those online", append(msg("Forward", "ONLINE"), inner...), []string{fmt.Sprintf("jeb_ to Survival: bungeecord:main %q", inner)}, "refused"},
		{"Forward nowhere", append(msg("Forward", "x"), inner...), nil, "refused"},
		{"Forward to an empty server", append(msg("Forward", "empty"), inner...), nil, "refused"},
		{"ForwardToPlayer", append(msg("ForwardToPlayer", "jeb_"), inner...), []string{fmt.Sprintf("jeb_ to Survival: bungeecord:main %q", inner)}, "refused"},
		{"ForwardToPlayer own", append(msg("ForwardToPlayer", "notch"), inner...), []string{fmt.Sprintf("Notch to lobby: BungeeCord %q", inner)}, ""},
		{"ForwardToPlayer to nobody", append(msg("ForwardToPlayer", "x"), inner...), nil, ""},
		{"ForwardToPlayer nowhere", append(msg("ForwardToPlayer", "new"), inner...), nil, "refused"},
		{"bytes behind", append(msg("Connect", "lobby"), 1, 2, 3), []string{"Notch connect lobby"}, ""},
	} {
		m, from, did := setup(Full, 0)
		m.Handle(from, LegacyChannel, c.data)
		if !slices.Equal(*did, c.full) || m.Handled.Load() != 1 || m.Malformed.Load()+m.Refused.Load()+m.Unknown.Load() != 0 {
			t.Errorf("%s:\nhave %q\nwant %q", c.name, *did, c.full)
		}
		want, refused := c.full, uint64(0)
		switch c.self {
		case "":
		case "refused":
			want, refused = nil, 1
		default:
			want = []string{c.self}
		}
		m, from, did = setup(Self, 0)
		m.Handle(from, LegacyChannel, c.data)
		if !slices.Equal(*did, want) || m.Refused.Load() != refused {
			t.Errorf("%s, own players only:\nhave %q, %d refused\nwant %q, %d", c.name, *did, m.Refused.Load(), want, refused)
		}
		m, from, did = setup(Off, 0)
		m.Handle(from, LegacyChannel, c.data)
		if len(*did) != 0 || m.Refused.Load() != 1 {
			t.Errorf("%s, off: %q", c.name, *did)
		}
		// Each byte is needed, but those behind the first to be forwarded, and those that follow a whole message.
		spare := 0
		if strings.HasPrefix(c.name, "Forward") {
			spare = len(inner) - 1
		} else if c.name == "bytes behind" {
			spare = 3
		}
		for n := range len(c.data) - spare {
			m, from, did = setup(Full, 0)
			m.Handle(from, Channel, c.data[:n])
			if m.Malformed.Load() != 1 || len(*did) != 0 {
				t.Errorf("%s: %d of %d bytes were enough: %q", c.name, n, len(c.data), *did)
				break
			}
		}
	}
	if len(subchannels) != 18 {
		t.Errorf("%d subchannels", len(subchannels))
	}
}

// An answer goes to the server that asked, by the name it asked on, wherever the player is by now.
func TestReplyToAsker(t *testing.T) {
	m, from, did := setup(Full, 0)
	from.player.(*player).server = "Survival"
	m.Handle(from, Channel, msg("GetServer"))
	if want := []string{fmt.Sprintf("reply to lobby: bungeecord:main %q", u("GetServer")+u("lobby"))}; !slices.Equal(*did, want) {
		t.Errorf("%q", *did)
	}
	from.broken = true
	m.Handle(from, Channel, msg("GetServer")) // its end is no reason to fail
	if len(*did) != 1 {
		t.Errorf("%q", *did)
	}
}

func TestMalformed(t *testing.T) {
	for name, data := range map[string][]byte{
		"empty": {}, "one byte": {0}, "long name": {0, 9, 'I', 'P'}, "not modified UTF-8": {0, 2, 0xc3, 0x28},
		"four-byte UTF-8": append([]byte{0, 4}, "\U0001f600"...), "no argument": msg("Connect"), "half an argument": append(msg("Connect"), 0, 9, 'x'),
		"not JSON": msg("MessageRaw", "Notch", "{"), "kick not JSON": msg("KickPlayerRaw", "Notch", "bye"), "nothing to forward": msg("Forward", "ALL"),
		"nothing for the player": msg("ForwardToPlayer", "jeb_"),
	} {
		m, from, did := setup(Full, 0)
		m.Handle(from, Channel, data)
		if m.Malformed.Load() != 1 || m.Handled.Load() != 0 || len(*did) != 0 {
			t.Errorf("%s: %q", name, *did)
		}
	}
}

func TestUnknown(t *testing.T) {
	m, from, did := setup(Full, 0)
	m.Handle(from, Channel, msg("Other", "x"))
	if m.Unknown.Load() != 1 || len(*did) != 0 {
		t.Errorf("%q", *did)
	}
	var got string
	m.cfg.Unknown = func(from Backend, sub string, data []byte) { got = fmt.Sprintf("%s %s %q", from.Server(), sub, data) }
	m.Handle(from, Channel, msg("Other", "x"))
	if got != `lobby Other "\x00\x01x"` {
		t.Error(got)
	}
}

// Messages for an empty server wait for the first player there, the newest of them.
func TestQueue(t *testing.T) {
	m, from, did := setup(Full, 2)
	for _, data := range []string{"1", "2", "3"} {
		m.Handle(from, Channel, append(msg("Forward", "ALL"), data...))
	}
	m.Handle(from, Channel, append(msg("Forward", "ONLINE"), '4'))
	if m.Lost.Load() != 2 { // the first of three, and the one that does not wait
		t.Errorf("%d lost", m.Lost.Load())
	}
	*did = nil
	p, _ := m.cfg.Network.Player("new")
	m.Joined(p)
	p.(*player).server = "Empty"
	m.Joined(p)
	m.Joined(p)
	if want := []string{`new to Empty: bungeecord:main "2"`, `new to Empty: bungeecord:main "3"`}; !slices.Equal(*did, want) {
		t.Errorf("%q", *did)
	}
	for range 40 {
		p.(*player).server = ""
		m.Handle(from, Channel, append(msg("Forward", "empty"), make([]byte, maxWaiting/16)...))
	}
	if w := m.waiting["empty"]; len(w.messages) != 2 || w.size != 2*maxWaiting/16 {
		t.Errorf("%d wait, %d bytes", len(w.messages), w.size)
	}
	m.cfg.Queue = 1000
	for range 40 {
		m.Handle(from, Channel, append(msg("Forward", "empty"), make([]byte, maxWaiting/16)...))
	}
	if w := m.waiting["empty"]; len(w.messages) != 16 || w.size != maxWaiting {
		t.Errorf("%d wait, %d bytes", len(w.messages), w.size)
	}
	p.(*player).server, p.(*player).broken = "empty", true
	before := m.Lost.Load()
	m.Joined(p)
	if m.Lost.Load() != before+16 {
		t.Errorf("%d lost with a connection", m.Lost.Load()-before)
	}
}

// Through the next player where the first has no connection any more.
func TestForwardNextPlayer(t *testing.T) {
	m, from, did := setup(Full, 0)
	n := m.cfg.Network.(*network)
	jeb := n.players[1].(*player)
	other := *jeb
	other.name, jeb.broken = "other", true
	n.players = append(n.players, &other)
	m.Handle(from, Channel, append(msg("Forward", "Survival"), 'x'))
	if want := []string{`other to Survival: bungeecord:main "x"`}; !slices.Equal(*did, want) {
		t.Errorf("%q", *did)
	}
}

func TestUTF(t *testing.T) {
	for s, want := range map[string]string{
		"":           "\x00\x00",
		"Größe":      "\x00\x07Gr\xc3\xb6\xc3\x9fe",
		"€":          "\x00\x03\xe2\x82\xac",
		"a\x00b":     "\x00\x04a\xc0\x80b",
		"\U0001f600": "\x00\x06\xed\xa0\xbd\xed\xb8\x80",
	} {
		if got := appendUTF(nil, s); string(got) != want {
			t.Errorf("%q: wrote %q, want %q", s, got, want)
		}
		if got, rest, err := readUTF([]byte(want + "rest")); got != s || string(rest) != "rest" || err != nil {
			t.Errorf("%q: read %q, %q, %v", s, got, rest, err)
		}
	}
	if got, _, err := readUTF([]byte("\x00\x03\xed\xa0\xbd")); got != "�" || err != nil {
		t.Errorf("half a pair: %q, %v", got, err)
	}
	for _, c := range []string{"x", "é", "\U0001f600"} {
		b := appendUTF([]byte("before"), strings.Repeat(c, 70000))
		s, rest, err := readUTF(b[6:])
		if err != nil || len(rest) != 0 || len(b) > 6+2+maxUTF || len(b) < maxUTF || strings.Trim(s, c) != "" {
			t.Errorf("%q too often: %d bytes, %v", c, len(b), err)
		}
	}
	// A list is cut between names.
	names := slices.Repeat([]string{"abcdefghijklmnop"}, 5000)
	list := join(names)
	if len(list) > maxUTF || len(list) < maxUTF-20 || !strings.HasSuffix(list, ", abcdefghijklmnop") {
		t.Errorf("list of %d bytes", len(list))
	}
}

func TestNames(t *testing.T) {
	for channel, ours := range map[string]bool{"BungeeCord": true, "bungeecord:main": true, "bungeecord": false, "bungeecord:other": false, "": false} {
		if Owns(channel) != ours {
			t.Errorf("%q", channel)
		}
	}
	for protocol, want := range map[int32][2]string{47: {"REGISTER", "BungeeCord"}, 340: {"REGISTER", "BungeeCord"}, 393: {"minecraft:register", "bungeecord:main"}, 775: {"minecraft:register", "bungeecord:main"}} {
		if a := Announcement(protocol); a.Channel != want[0] || string(a.Data) != want[1] || ChannelFor(protocol) != want[1] {
			t.Errorf("%d: %q %q", protocol, a.Channel, a.Data)
		}
	}
	for _, s := range []string{"off", "self", "full"} {
		if _, err := ParseMode(s); err != nil {
			t.Error(err)
		}
	}
	if _, err := ParseMode("on"); err == nil {
		t.Error("on")
	}
}

func FuzzHandle(f *testing.F) {
	for name := range subchannels {
		f.Add(msg(name, "Notch", "lobby"), true)
		f.Add(msg(name, "ALL", `{"text":"x"}`), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, full bool) {
		mode := Self
		if full {
			mode = Full
		}
		m, from, did := setup(mode, 3)
		m.Handle(from, Channel, data)
		if m.Handled.Load()+m.Malformed.Load()+m.Unknown.Load() != 1 {
			t.Fatalf("%x is counted %d, %d, %d times", data, m.Handled.Load(), m.Malformed.Load(), m.Unknown.Load())
		}
		for _, d := range *did {
			if !full && !strings.HasPrefix(d, "Notch ") && !strings.HasPrefix(d, "reply to lobby: ") {
				t.Fatalf("own players only: %x does %q", data, d)
			}
		}
		// What a UTF can hold comes back as it went.
		if s, rest, err := readUTF(data); err == nil {
			again, _, err := readUTF(appendUTF(nil, s))
			if err != nil || again != s && len(data)-len(rest) < maxUTF {
				t.Fatalf("%q became %q, %v", s, again, err)
			}
		}
	})
}

// TestBudget: what a server sends over its budget is dropped, counted, and said in the log, not each time; other
// servers have their own, and a new rate counts at once.
func TestBudget(t *testing.T) {
	m, from, did := setup(Self, 0)
	rate := limit.Rate{PerSecond: 0.001, Burst: 3}
	var log testkit.Log
	m.cfg.Budget, m.cfg.Log = func() limit.Rate { return rate }, log.Logger(slog.LevelInfo)
	m.cfg.Mode = func(string) Mode { return Self }
	ask := func(b backend) int {
		n := len(*did)
		for range 10 {
			m.Handle(b, LegacyChannel, msg("GetServer"))
		}
		return len(*did) - n
	}
	if n := ask(from); n != 3 || m.Limited.Load() != 7 || m.Handled.Load() != 3 {
		t.Errorf("%d answers, %d handled, %d over the budget", n, m.Handled.Load(), m.Limited.Load())
	}
	if n := ask(backend{"LOBBY", from.player, did, false}); n != 0 {
		t.Errorf("%d answers under the name in capitals", n)
	}
	if n := ask(backend{"Survival", from.player, did, false}); n != 3 {
		t.Errorf("%d answers to another server", n)
	}
	rate.Burst = 5
	if n := ask(from); n != 5 {
		t.Errorf("%d answers with another rate", n)
	}
	if n := strings.Count(log.String(), "limits.bungeecord"); n != 2 {
		t.Errorf("%d lines in the log: %s", n, log.String())
	}
}

// TestRefusalsAreLogged: a plugin that may not do something is in the log once a minute, with the setting.
func TestRefusalsAreLogged(t *testing.T) {
	m, from, did := setup(Self, 0)
	var log testkit.Log
	m.cfg.Log = log.Logger(slog.LevelInfo)
	for range 5 {
		m.Handle(from, LegacyChannel, msg("KickPlayer", "jeb_", "out"))
	}
	if n := strings.Count(log.String(), "bungeecord: full"); n != 1 || len(*did) != 0 || m.Refused.Load() != 5 {
		t.Errorf("%d lines in the log, %v done: %s", n, *did, log.String())
	}
}
