package network

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/perm"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/bungee"
	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/store"
)

// desk joins commands, permissions and BungeeCord's channel to the sessions.
type desk struct {
	version  string
	log      *slog.Logger
	perms    *perm.Perm
	office   atomic.Pointer[office]
	messages *bungee.Messages
	counters command.Counters
	since    time.Time
	quit     chan quit // from /shutdown
	reload   func(context.Context) (changes, restart []string, err error)
	dump     func(context.Context) (file string, err error)

	world  *world.Registry // these five since start
	names  *voice.Names
	server *proxy.Server
	voice  *voice.Gateway
	store  *store.Store

	ending sync.WaitGroup // commands of players who have left
}

// office is what the desk goes by.
type office struct {
	hubs    []string
	aliases map[string][]string
	texts   map[string]map[string]string
	record  bool         // who gave which command
	talk    bool         // there is /voice
	welcome *packet.Text // to the built-in world; nil: a text of the table
	alone   bool         // there are no servers
	options command.Options
	servers []commands.Server
	modes   map[string]bungee.Mode // by server, in lower case
	mode    bungee.Mode            // of all others
	budget  limit.Rate             // of each server's messages on BungeeCord's channel
	addrs   map[string]netip.AddrPort

	restricted map[string]bool // servers that take a permission to join, in lower case

	commands *commands.Commands // by desk.compile
}

func newDesk(
	version string, log *slog.Logger, reload func(context.Context) ([]string, []string, error), dump func(context.Context) (string, error),
) *desk {
	d := &desk{version: version, log: log, since: time.Now(), quit: make(chan quit, 1), reload: reload, dump: dump}
	d.perms, _ = perm.New(perm.Config{}) // there is nothing wrong with none
	d.messages = bungee.New(bungee.Config{Network: network{d}, Mode: d.modeOf, Budget: func() limit.Rate { return d.office.Load().budget }, Queue: 64, Log: log})
	return d
}

func newOffice(l *configs.Loaded, servers []backend.Server) (o office, err error) {
	c := &l.Commands
	o = office{
		hubs: c.Hubs, aliases: c.Aliases, texts: l.Texts, record: c.Record, talk: l.Voice.Enabled,
		modes: map[string]bungee.Mode{}, addrs: map[string]netip.AddrPort{}, restricted: map[string]bool{},
		options: command.Options{Commands: rate(c.Rate), Suggestions: rate(c.Completions), KickAfter: c.KickAfter, Strict: c.Strict, Quiet: !c.Announce},
	}
	o.budget = rate(l.Limits.BungeeCord)
	o.alone = len(l.Servers) == 0
	if m := l.Limbo.Message; m == "off" {
		o.welcome = &packet.Text{}
	} else if m != "" {
		text, err := parse("limbo.message", m)
		if err != nil {
			return o, err
		}
		o.welcome = &text
	}
	if o.mode, err = bungee.ParseMode(l.BungeeCord); err != nil {
		return o, fmt.Errorf("bungeecord: %w", err)
	}
	for name, s := range l.Servers {
		if s.BungeeCord == "" {
			continue
		}
		if o.modes[strings.ToLower(name)], err = bungee.ParseMode(s.BungeeCord); err != nil {
			return o, fmt.Errorf("servers.%s.bungeecord: %w", name, err)
		}
	}
	o.list(l.Try, servers)
	return o, nil
}

// compile makes an office's commands.
func (d *desk) compile(o *office) (err error) {
	cfg := commands.Config{
		Network: commandNetwork{d}, Past: past{d}, Hubs: o.hubs, Aliases: o.aliases,
		Program: commands.Program{Version: d.version, Status: d.status, Reload: d.reload, Dump: d.dump, Drain: d.drain, Shutdown: d.shutdown},
		Allowed: func(p commands.Player, permission string) bool {
			return d.perms.Of(p.ID(), p.Name(), d.level(p.ID())).Allows(permission)
		},
		Alert: func(t packet.Text) { d.log.Info("alert", "text", t.String()) },
	}
	if cfg.Texts, err = commands.NewTexts(o.texts); err != nil {
		return fmt.Errorf("languages: %w", err)
	}
	if o.talk {
		cfg.Voice = voices{d}
	}
	if o.record {
		cfg.Log = d.log
	}
	if o.commands, err = commands.New(cfg); err != nil {
		return fmt.Errorf("commands: %w", err)
	}
	return nil
}

// apply has the desk go by other settings.
func (d *desk) apply(s *settings) error {
	d.office.Store(&s.office)
	return d.perms.Replace(s.perms)
}

// list puts the servers into the order in which they are shown: that of the try list, then by name. The built-in world
// is one of them only where players are sent to it.
func (o *office) list(try []string, servers []backend.Server) {
	place := func(name string) int {
		at := slices.IndexFunc(try, func(s string) bool { return strings.EqualFold(s, name) })
		if at < 0 {
			return len(try)
		}
		return at
	}
	sorted := slices.Clone(servers)
	if place(configs.LimboName) < len(try) {
		sorted = append(sorted, backend.Server{Name: configs.LimboName})
	}
	slices.SortFunc(sorted, func(a, b backend.Server) int {
		return cmp.Or(cmp.Compare(place(a.Name), place(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range sorted {
		o.servers = append(o.servers, commands.Server{Name: s.Name, Restricted: s.Restricted})
		if s.Restricted {
			o.restricted[strings.ToLower(s.Name)] = true
		}
		if at, err := netip.ParseAddrPort(s.Address); err == nil {
			o.addrs[s.Name] = at
		}
	}
}

// table and options are those of the moment, for filters.
func (d *desk) table() *command.Table[commands.Source] { return d.office.Load().commands.Table() }
func (d *desk) options() *command.Options              { return &d.office.Load().options }

func (d *desk) modeOf(server string) bungee.Mode {
	o := d.office.Load()
	if m, ok := o.modes[strings.ToLower(server)]; ok {
		return m
	}
	return o.mode
}

// close waits for commands that run. The sessions are over by then.
func (d *desk) close() { d.ending.Wait() }

// quit is why the program is to stop, and whether whoever wants that has been told so where the log is.
type quit struct {
	reason string
	told   bool
}

func (d *desk) shutdown(ctx context.Context, reason string) {
	select {
	case d.quit <- quit{reason, commands.AtTerminal(ctx)}:
	default: // it stops already
	}
}

func (d *desk) status() []commands.Fact {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return append([]commands.Fact{
		{Key: "status-players", Named: []string{"count", fmt.Sprint(d.server.Online())}},
		{Key: "status-uptime", Named: []string{"duration", time.Since(d.since).Round(time.Second).String()}},
		{Key: "status-memory", Named: []string{"count", fmt.Sprint(m.HeapAlloc >> 20)}},
		{Key: "status-goroutines", Named: []string{"count", fmt.Sprint(runtime.NumGoroutine())}},
	}, troubles(d.server.Health())...)
}

// say is a text of the table.
func (d *desk) say(locale, key string, named ...string) packet.Text {
	return d.office.Load().commands.Texts().Say(locale, key, named...)
}

// commandNetwork is the network as commands see it.
type commandNetwork struct{ d *desk }

func (n commandNetwork) Players() (all []commands.Player) {
	for _, p := range n.d.server.Players() {
		all = append(all, p)
	}
	return all
}

// Shown goes by the rule that voice goes by.
func (n commandNetwork) Shown(to commands.Player) []commands.Player {
	viewer := n.d.world.Get(to.ID())
	return slices.DeleteFunc(n.Players(), func(p commands.Player) bool {
		other := n.d.world.Get(p.ID())
		return viewer != nil && other != nil && other != viewer && !viewer.Knows(other)
	})
}

// listed tells who may be named to strangers, in the server list.
func listed(reg *world.Registry) func(player uuid.UUID) bool {
	return func(id uuid.UUID) bool {
		p := reg.Get(id)
		return p == nil || p.Sight.Public()
	}
}

func (n commandNetwork) Player(name string) (commands.Player, bool) {
	return n.d.named(name)
}

func (n commandNetwork) Servers() []commands.Server {
	return judged(n.d.office.Load().servers, n.d.server.Health())
}

func (d *desk) named(name string) (session.Player, bool) {
	for _, p := range d.server.Players() {
		if strings.EqualFold(p.Name(), name) {
			return p, true
		}
	}
	return nil, false
}

// voices is the voice gateway as commands see it.
type voices struct{ d *desk }

func (v voices) Mute(m commands.Mute) error {
	return v.d.voice.Mute(mute.Record{Player: m.Player, Name: m.Name, By: m.By, Until: m.Until, Reason: m.Reason}) // uuid.Nil is mute.Everybody
}

func (v voices) Unstored() (changes int, problem string) {
	h := v.d.store.Health()
	if h.OK { // and what waits is being stored
		return 0, ""
	}
	return h.Waiting, h.Problem
}

func (v voices) Unmute(player uuid.UUID) (bool, error) { return v.d.voice.Unmute(player) }

func (v voices) Mutes() (all []commands.Mute, err error) {
	list, err := v.d.voice.Mutes()
	for _, r := range list {
		all = append(all, commands.Mute{Player: r.Player, Name: r.Name, By: r.By, Until: r.Until, Reason: r.Reason})
	}
	return all, err
}

func (v voices) Why(speaker, listener uuid.UUID) (all []commands.Clause, err error) {
	w, err := v.d.voice.Why(speaker, listener)
	if p := v.d.world.Get(speaker); p != nil { // who has no voice connection has no name there
		w.Speaker = p.Name
	}
	if p := v.d.world.Get(listener); p != nil {
		w.Listener = p.Name
	}
	for _, c := range w.Clauses() {
		all = append(all, commands.Clause(c))
	}
	return all, err
}

// past is who was here once.
type past struct{ d *desk }

func (p past) Name(player uuid.UUID) string { return p.d.names.Name(player) }

func (p past) Find(name string) (all []commands.Once) {
	for _, n := range p.d.names.Find(name) {
		all = append(all, commands.Once{ID: n.Player, Name: n.Name, Seen: n.Seen})
	}
	return all
}

// network is the network as plugins of backends see it.
type network struct{ d *desk }

func (n network) Players() (all []bungee.Player) {
	for _, p := range n.d.server.Players() {
		all = append(all, passenger{p, n.d})
	}
	return all
}

func (n network) Player(name string) (bungee.Player, bool) {
	p, ok := n.d.named(name)
	return passenger{p, n.d}, ok
}

func (n network) Servers() (all []bungee.Server) {
	o := n.d.office.Load()
	for _, s := range o.servers {
		all = append(all, bungee.Server{Name: s.Name, Addr: o.addrs[s.Name]})
	}
	return all
}

func (n network) Server(name string) (bungee.Server, bool) {
	for _, s := range n.Servers() {
		if strings.EqualFold(s.Name, name) {
			return s, true
		}
	}
	return bungee.Server{}, false
}

// passenger is a player whom a plugin moves.
type passenger struct {
	session.Player
	desk *desk
}

// Connect implements bungee.Player.
func (p passenger) Connect(server string) {
	if o := p.desk.office.Load(); o.restricted[strings.ToLower(server)] && !p.desk.admit(p.Player, server) {
		p.SendChat(p.desk.say(p.Locale(), "server-restricted", "server", server, "permission", commands.Enter(server)))
		return
	}
	if p.desk.draining(server) {
		p.SendChat(p.desk.say(p.Locale(), "draining", "server", server))
		return
	}
	if err := p.Player.Connect(server); err != nil {
		p.SendChat(p.desk.office.Load().commands.Texts().Failure(p.Locale(), err))
	}
}

// asker is a connection to a backend as the channel sees it.
type asker struct {
	session.Backend
	desk *desk
}

// Player implements bungee.Backend.
func (a asker) Player() bungee.Player { return passenger{a.Backend.Player(), a.desk} }

// Message implements session.Backchannel.
func (d *desk) Message(from session.Backend, channel string, data []byte) {
	d.messages.Handle(asker{from, d}, channel, data)
}

// welcome tells a player who has come to the built-in world what that is; and to whom it is up to, or who is likely to be
// the one as long as there is nothing else, how to send players elsewhere.
func (d *desk) welcome(p session.Player) {
	o := d.office.Load()
	switch {
	case o.welcome != nil && o.welcome.String() != "":
		p.SendChat(*o.welcome)
	case o.welcome == nil && !o.alone:
		p.SendChat(d.say(p.Locale(), "limbo"))
	}
	off := o.welcome != nil && o.welcome.String() == ""
	mayReload := d.perms.Of(p.ID(), p.Name(), d.level(p.ID())).Allows(commands.Permission("earshot.reload"))
	if !off && (mayReload || o.alone && o.welcome == nil) {
		p.SendChat(d.say(p.Locale(), "limbo-servers"))
	}
}

// Joined implements session.Backchannel.
func (d *desk) Joined(on session.Backend) {
	if strings.EqualFold(on.Server(), configs.LimboName) {
		d.welcome(on.Player())
	}
	if d.modeOf(on.Server()) == bungee.Off {
		return
	}
	m := bungee.Announcement(on.Player().Protocol())
	if err := on.SendPlugin(m.Channel, m.Data); err != nil {
		d.log.Debug("BungeeCord's channel not announced", "server", on.Server(), "error", err)
	}
	d.messages.Joined(asker{on, d}.Player())
}

// Wants implements session.Hooks.
func (d *desk) Wants(v *proto.Version, dir proto.Dir) []proto.Packet { return command.Wants(v, dir) }

// Hook implements session.Hooks.
func (d *desk) Hook(p session.Player) session.Hook {
	h := &hook{desk: d, src: &source{player: p, desk: d}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.filter = command.NewFilter[commands.Source](d.table, h.src, p.Protocol(), d.options, &d.counters)
	return h
}

// hook is what stands in the way of one player's commands.
type hook struct {
	*desk
	src    *source
	filter *command.Filter[commands.Source]
	queue  command.Queue
	ctx    context.Context
	cancel func()
}

// Serverbound implements session.Hook.
func (h *hook) Serverbound(p proto.Packet, body []byte) session.Answer {
	d := h.filter.Serverbound(p, body)
	switch d.Action {
	case command.Run:
		if !h.queue.Post(func() { h.run(d.Command) }) {
			h.src.Send(h.say(h.src.Locale(), "too-fast"))
		}
		return session.Answer{Drop: true, Ack: d.Ack}
	case command.Answer:
		return session.Answer{Reply: d.Body}
	case command.Drop:
		return session.Answer{Drop: true}
	case command.Kick:
		return session.Answer{Kick: &d.Reason}
	}
	return session.Answer{}
}

// run carries a command out. A panic costs the command only.
func (h *hook) run(text string) {
	defer func() {
		if v := recover(); v != nil {
			h.log.Error("panic in a command", "by", h.src.Name(), "text", text, "panic", v, "stack", string(debug.Stack()))
			h.src.Send(h.say(h.src.Locale(), "internal"))
		}
	}()
	h.office.Load().commands.Execute(h.ctx, h.src, text)
}

// Clientbound implements session.Hook.
func (h *hook) Clientbound(p proto.Packet, body []byte) []byte { return h.filter.Clientbound(p, body) }

// Announce implements session.Hook.
func (h *hook) Announce() []byte { return h.filter.Announce() }

// Reset implements session.Hook.
func (h *hook) Reset() {
	h.filter.Reset()
	h.queue.Drop()
}

// Close implements session.Hook.
func (h *hook) Close() {
	h.cancel()
	h.ending.Go(h.queue.Close)
}

// source is a player who types.
type source struct {
	player session.Player
	desk   *desk
	may    atomic.Pointer[allowed]
}

// allowed is what a player may do, as long as neither the rules nor his operator level change.
type allowed struct {
	version uint64
	level   uint8
	set     perm.Set
}

// Allowed implements commands.Source.
func (s *source) Allowed(permission string) bool {
	version, level := s.desk.perms.Version(), s.desk.level(s.player.ID())
	a := s.may.Load()
	if a == nil || a.version != version || a.level != level {
		a = &allowed{version, level, s.desk.perms.Of(s.player.ID(), s.Name(), level)}
		s.may.Store(a)
	}
	return a.set.Allows(permission)
}

// Player implements commands.Source, as the methods below do.
func (s *source) Player() commands.Player { return s.player }
func (s *source) Name() string            { return s.player.Name() }
func (s *source) Locale() string          { return s.player.Locale() }

// What a full queue refuses is lost.
func (s *source) Send(t packet.Text) { s.player.SendChat(t) }

// admit implements session.Config's Admit.
func (d *desk) admit(p session.Player, server string) bool {
	return d.perms.Of(p.ID(), p.Name(), d.level(p.ID())).Allows(commands.Enter(server))
}

// level is a player's operator level on his server.
func (d *desk) level(id uuid.UUID) uint8 {
	if p := d.world.Get(id); p != nil {
		return p.Facts().OpLevel
	}
	return 0
}
