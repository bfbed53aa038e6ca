// Package bungee is the plugin channel by which plugins on backends ask a proxy to move, count and message players, in
// the bytes that BungeeCord made common.
//
// It promises that only a backend can use it, that a backend with the mode Self does not act on players of others, that
// answers go to the backend that asked, and that a malformed message costs nobody anything. Nothing here waits.
//
// Layout: https://www.spigotmc.org/wiki/bukkit-bungee-plugin-messaging-channel/, and DownstreamBridge in
// https://github.com/SpigotMC/BungeeCord, proxy, package net.md_5.bungee.connection, for what that page leaves out.
package bungee

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// The names of the channel. Both are accepted, and an answer has the name of its question.
const (
	Channel       = "bungeecord:main" // 393 (1.13) on
	LegacyChannel = "BungeeCord"
)

// Owns tells whether channel is ours. Messages on it must never reach a client, and those of clients are dropped: they
// could move and kick players.
func Owns(channel string) bool { return channel == Channel || channel == LegacyChannel }

// ChannelFor returns the name of the channel for a backend of protocol.
func ChannelFor(protocol int32) string {
	if proto.Has(protocol, proto.NamespacedChannels) {
		return Channel
	}
	return LegacyChannel
}

// Announcement returns the plugin message that tells a backend, once it is in play, that somebody listens on the
// channel.
func Announcement(protocol int32) packet.PluginMessage {
	return packet.PluginMessage{Channel: packet.RegisterChannel(protocol), Data: packet.AppendChannels(nil, []string{ChannelFor(protocol)})}
}

// Mode says what a backend may do.
type Mode uint8

// The modes.
const (
	Off  Mode = iota // nothing
	Self             // ask for players, their servers and numbers; act on players of its own
	Full             // act on all players and servers
)

// ParseMode reads a mode's name: off, self or full.
func ParseMode(s string) (Mode, error) {
	switch s {
	case "off":
		return Off, nil
	case "self":
		return Self, nil
	case "full":
		return Full, nil
	}
	return Off, fmt.Errorf("mode %q: use full, self or off", s)
}

// Network is the proxy as seen from here. Its methods must not wait. Names are compared without regard to case.
type Network interface {
	Players() []Player // all that have logged in, in any order
	Player(name string) (Player, bool)
	Servers() []Server // in the order in which to show them
	Server(name string) (Server, bool)
}

// Server is one registered server.
type Server struct {
	Name string
	Addr netip.AddrPort // not valid: not known, or no address of the internet
}

// Player is one player. Its methods must not wait.
type Player interface {
	ID() uuid.UUID
	Name() string
	RemoteAddr() netip.AddrPort
	Protocol() int32
	Server() string        // the name of the server they are on; empty: none yet
	Connect(server string) // begins to; the player is told of a failure
	SendChat(packet.Text) error
	Kick(packet.Text)
	// ToServer sends a plugin message to the player's server, as if the client had.
	ToServer(channel string, data []byte) error
}

// Backend is a connection between the proxy and a server, on behalf of one player. Its methods must not wait.
type Backend interface {
	Server() string
	Player() Player
	SendPlugin(channel string, data []byte) error // to this server, also while the player is on the way to another
}

// Config holds the settings of the channel. Network is required.
type Config struct {
	Network Network
	Mode    func(server string) Mode // nil: Full for all
	// Budget returns how many messages each server may send, whichever players are on it; messages over it are dropped.
	// It is called for each message. nil: no limit.
	Budget func() limit.Rate
	// Queue bounds the messages that wait for a server while nobody is on it; 0: none does.
	Queue int
	// Unknown gets messages on other subchannels; nil: they are dropped. data begins behind the subchannel's name, and
	// is valid during the call.
	Unknown func(from Backend, subchannel string, data []byte)
	Log     *slog.Logger // nil: none
}

// Messages answers what backends ask. Its methods may be called from any goroutine.
type Messages struct {
	cfg Config

	mu      sync.Mutex
	waiting map[string]*queue   // by server, in lower case
	spent   map[string]*account // likewise

	// Counts since the start.
	Handled   atomic.Uint64
	Malformed atomic.Uint64
	Refused   atomic.Uint64 // the server's mode did not allow it
	Limited   atomic.Uint64 // over the server's budget
	Unknown   atomic.Uint64 // on no subchannel of ours
	Lost      atomic.Uint64 // forwarded, and nobody there to take it, or too much waiting
}

// New makes the channel.
func New(cfg Config) *Messages {
	if cfg.Mode == nil {
		cfg.Mode = func(string) Mode { return Full }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Messages{cfg: cfg, waiting: map[string]*queue{}, spent: map[string]*account{}}
}

// account is what one server has used up, and when it was last complained about.
type account struct {
	rate   limit.Rate
	bucket *limit.Bucket
	warned map[string]time.Time // by what was wrong
}

// warnEvery is how often the log says the same of one server.
const warnEvery = time.Minute

// account returns a server's account. mu is held.
func (m *Messages) account(server string) *account {
	key := strings.ToLower(server)
	a := m.spent[key]
	if a == nil {
		a = &account{warned: map[string]time.Time{}}
		m.spent[key] = a
	}
	return a
}

// affords reports whether a server has not used up its budget.
func (m *Messages) affords(server string) bool {
	if m.cfg.Budget == nil {
		return true
	}
	rate := m.cfg.Budget()
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.account(server)
	if a.bucket == nil || a.rate != rate {
		a.rate, a.bucket = rate, limit.NewBucket(rate)
	}
	return a.bucket.Allow()
}

// warn logs a line about a server, now and then.
func (m *Messages) warn(server, what string, more ...any) {
	m.mu.Lock()
	a, now := m.account(server), time.Now()
	again := now.Sub(a.warned[what]) < warnEvery
	if !again {
		a.warned[what] = now
	}
	m.mu.Unlock()
	if !again {
		m.cfg.Log.Warn(what, append([]any{"server", server}, more...)...)
	}
}

// request is one message, taken apart.
type request struct {
	*Messages
	from    Backend
	channel string
	self    bool     // acts on the server's own players only
	sub     string   // the subchannel
	args    []string // its fields
	rest    []byte   // the bytes behind them
}

// subchannel describes one kind of message: how many UTF fields it has, what else must be there, and what it does.
type subchannel struct {
	fields int
	more   more
	do     func(*request)
}

type more uint8

const (
	nothing   more = iota
	rest           // something behind the fields
	component      // the last field is JSON
)

var subchannels = map[string]subchannel{
	"Connect":         {1, nothing, (*request).connect},
	"ConnectOther":    {2, nothing, (*request).connectOther},
	"IP":              {0, nothing, func(q *request) { q.ip(q.from.Player(), false) }},
	"IPOther":         {1, nothing, func(q *request) { q.ifPlayer(func(p Player) { q.ip(p, true) }) }},
	"PlayerCount":     {1, nothing, (*request).playerCount},
	"PlayerList":      {1, nothing, (*request).playerList},
	"GetServers":      {0, nothing, (*request).getServers},
	"GetServer":       {0, nothing, func(q *request) { q.reply(utf(q.from.Server())) }},
	"GetPlayerServer": {1, nothing, (*request).getPlayerServer},
	"UUID":            {0, nothing, func(q *request) { q.reply(id(q.from.Player())) }},
	"UUIDOther":       {1, nothing, func(q *request) { q.ifPlayer(func(p Player) { q.reply(utf(p.Name()), id(p)) }) }},
	"ServerIP":        {1, nothing, (*request).serverIP},
	"Message":         {2, nothing, func(q *request) { q.message(legacyText(q.args[1])) }},
	"MessageRaw":      {2, component, func(q *request) { q.message(packet.JSONText([]byte(q.args[1]))) }},
	"KickPlayer":      {2, nothing, func(q *request) { q.kick(legacyText(q.args[1])) }},
	"KickPlayerRaw":   {2, component, func(q *request) { q.kick(packet.JSONText([]byte(q.args[1]))) }},
	"Forward":         {1, rest, (*request).forward},
	"ForwardToPlayer": {1, rest, (*request).forwardToPlayer},
}

// Handle takes a message that a backend sent on a channel of ours, see [Owns]. data is not kept.
func (m *Messages) Handle(from Backend, channel string, data []byte) {
	mode := m.cfg.Mode(from.Server())
	if mode == Off {
		m.Refused.Add(1)
		return
	}
	if !m.affords(from.Server()) {
		m.Limited.Add(1)
		m.warn(from.Server(), "a server sends more on BungeeCord's channel than its budget; the rest is dropped. limits.bungeecord allows more")
		return
	}
	name, tail, err := readUTF(data)
	if err != nil {
		m.malformed(from, "", err)
		return
	}
	s, ok := subchannels[name]
	if !ok {
		m.Unknown.Add(1)
		if m.cfg.Unknown != nil {
			m.cfg.Unknown(from, name, tail)
		}
		return
	}
	q := &request{Messages: m, from: from, channel: channel, self: mode == Self, sub: name}
	for range s.fields {
		var arg string
		if arg, tail, err = readUTF(tail); err != nil {
			m.malformed(from, name, err)
			return
		}
		q.args = append(q.args, arg)
	}
	switch {
	case s.more == rest && len(tail) == 0:
		err = errShort
	case s.more == component && !json.Valid([]byte(q.args[1])):
		err = errJSON
	}
	if err != nil {
		m.malformed(from, name, err)
		return
	}
	m.Handled.Add(1)
	q.rest = tail
	s.do(q)
}

var errJSON = errors.New("text component is not JSON")

func (m *Messages) malformed(from Backend, sub string, err error) {
	m.Malformed.Add(1)
	m.cfg.Log.Debug("malformed message on the BungeeCord channel ignored", "server", from.Server(), "subchannel", sub, "err", err)
}

// refuse counts a request that the mode does not allow.
func (q *request) refuse() {
	q.Refused.Add(1)
	q.warn(q.from.Server(), "a plugin of a server wanted to act on players of other servers, which it may not. bungeecord: full, for this server, allows it",
		"subchannel", q.sub)
}

// part is one field of an answer.
type part func(dst []byte) []byte

func utf(s string) part    { return func(dst []byte) []byte { return appendUTF(dst, s) } }
func i32(n int) part       { return func(dst []byte) []byte { return field.AppendI32(dst, int32(n)) } }
func u16(n uint16) part    { return func(dst []byte) []byte { return field.AppendU16(dst, n) } }
func id(p Player) part     { id := p.ID(); return utf(hex.EncodeToString(id[:])) }
func ip(a netip.Addr) part { return utf(a.Unmap().WithZone("").String()) }

// reply answers the server that asked: the subchannel, and then parts.
func (q *request) reply(parts ...part) {
	b := appendUTF(nil, q.sub)
	for _, p := range parts {
		b = p(b)
	}
	if err := q.from.SendPlugin(q.channel, b); err != nil {
		q.cfg.Log.Debug("answer on the BungeeCord channel not sent", "server", q.from.Server(), "err", err)
	}
}

// on tells whether p is on the server that asked.
func (q *request) on(p Player) bool { return same(p.Server(), q.from.Server()) }

func same(a, b string) bool { return a != "" && strings.EqualFold(a, b) }

// ifPlayer calls f with the player that the first field names, if they are here and the server may act on them.
func (q *request) ifPlayer(f func(Player)) {
	p, ok := q.cfg.Network.Player(q.args[0])
	switch {
	case !ok:
	case q.self && !q.on(p):
		q.refuse()
	default:
		f(p)
	}
}

func (q *request) connect() {
	if s, ok := q.cfg.Network.Server(q.args[0]); ok {
		q.from.Player().Connect(s.Name)
	}
}

func (q *request) connectOther() {
	if s, ok := q.cfg.Network.Server(q.args[1]); ok {
		q.ifPlayer(func(p Player) { p.Connect(s.Name) })
	}
}

func (q *request) ip(p Player, named bool) {
	at := p.RemoteAddr()
	if !at.IsValid() {
		return
	}
	parts := []part{ip(at.Addr()), i32(int(at.Port()))}
	if named {
		parts = append([]part{utf(p.Name())}, parts...)
	}
	q.reply(parts...)
}

const all = "ALL"

// players returns the players on the server that the first field names, and its name; all of them for ALL. ok is false
// when there is no such server.
func (q *request) players() (list []Player, server string, ok bool) {
	server = all
	if q.args[0] != all {
		s, ok := q.cfg.Network.Server(q.args[0])
		if !ok {
			return nil, "", false
		}
		server = s.Name
	}
	for _, p := range q.cfg.Network.Players() {
		if server == all || same(p.Server(), server) {
			list = append(list, p)
		}
	}
	return list, server, true
}

func (q *request) playerCount() {
	if list, server, ok := q.players(); ok {
		q.reply(utf(server), i32(len(list)))
	}
}

func (q *request) playerList() {
	if list, server, ok := q.players(); ok {
		names := make([]string, len(list))
		for i, p := range list {
			names[i] = p.Name()
		}
		q.reply(utf(server), utf(join(names)))
	}
}

func (q *request) getServers() {
	var names []string
	for _, s := range q.cfg.Network.Servers() {
		names = append(names, s.Name)
	}
	q.reply(utf(join(names)))
}

func (q *request) getPlayerServer() {
	p, ok := q.cfg.Network.Player(q.args[0])
	switch {
	case !ok:
		q.reply(utf(q.args[0]), utf(""))
	case q.self && !q.on(p):
		q.refuse()
	default:
		q.reply(utf(p.Name()), utf(p.Server()))
	}
}

func (q *request) serverIP() {
	if s, ok := q.cfg.Network.Server(q.args[0]); ok && s.Addr.IsValid() {
		q.reply(utf(s.Name), ip(s.Addr.Addr()), u16(s.Addr.Port()))
	}
}

// message sends a text to a player, or to all that the server may reach.
func (q *request) message(t packet.Text) {
	if q.args[0] != all {
		q.ifPlayer(func(p Player) { p.SendChat(t) })
		return
	}
	for _, p := range q.cfg.Network.Players() {
		if !q.self || q.on(p) {
			p.SendChat(t)
		}
	}
}

func (q *request) kick(t packet.Text) { q.ifPlayer(func(p Player) { p.Kick(t) }) }

// legacyText reads § codes and nothing else.
func legacyText(s string) packet.Text {
	// A tag makes the parser leave & alone; everything that could be another tag is quoted.
	t, _ := packet.ParseText("<reset>" + strings.NewReplacer(`\`, `\\`, `<`, `\<`).Replace(s))
	return t
}
