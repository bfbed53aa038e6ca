// Package voice is the voice gateway's public face: clients go in, such as sockets that have been upgraded, and players
// hear each other by distance.
//
// It promises one client per player, the newest, that every client has ended when Close returns, and counters that are
// all there from the start.
package voice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/voice/conn"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/hub"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/speaker"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/talker"
	"github.com/earshot-mc/earshot/voice/wire"
)

// Config holds the settings of a gateway.
type Config struct {
	Policy route.Policy
	Log    *slog.Logger // nil is slog's default

	// OpusOK replaces the check that a frame is 20 ms of mono sound, for load generators that send no Opus. nil checks.
	OpusOK func(opus []byte) bool

	SoundboardOff bool // at the start; see [Gateway.SetSoundboard]

	// Permissions returns what a player may do. It is called for every connected player in each turn and must not
	// block. nil gives [Open] to everybody.
	Permissions func(player uuid.UUID) Bits

	Groups group.Limits // the zero value switches groups off; see [Gateway.SetGroups]

	// Declared holds the declarations of the configuration; see [Gateway.SetDeclared].
	Declared relation.Declarations

	// Store keeps lasting state; nil keeps nothing. [State] is one.
	Store Store

	// Sounds is the directory of the files that administrators' speakers play; empty: none. Speakers stores these
	// speakers; nil stores nothing. [State.Speakers] is one.
	Sounds   string
	Convert  speaker.Converter // of files that cannot be sent as they are; nil: they are not played
	Speakers SpeakerStore

	// Notice tells a player why nobody hears them, at most once per five seconds and reason. It must not block. nil
	// tells nobody.
	Notice func(player uuid.UUID, why Reason)

	// Flooded is called when a client has been sent away, with the kind of thing that it sent too much of. It must not
	// block. May be nil.
	Flooded func(what string)

	// Muted tells a player of their mute and of the former one; the Kind of either may be none. It is called for
	// everybody on the network, with a voice connection or without, once for each change and when a muted player joins.
	// It must not block. nil tells nobody.
	Muted func(player uuid.UUID, was, is mute.State)
}

// Reason says why a player is told that nobody hears something; its String is a sentence for the player.
type Reason = talker.Reason

// The reasons.
const (
	SoundboardOff     = talker.SoundboardOff
	SoundboardRefused = talker.SoundboardRefused
	ServerMuted       = talker.ServerMuted
	SpeakRefused      = talker.SpeakRefused
)

// Gateway joins sockets to the players of a world. Make one with [New].
type Gateway struct {
	reg      *world.Registry
	log      *slog.Logger
	talk     talker.Config
	flooded  func(what string)
	stats    talker.Stats
	hub      *hub.Hub
	speakers *speaker.Set
	book     *speaker.Book
	unsaved  unsaved

	ctx     context.Context // of the clients, and of following
	cancel  context.CancelFunc
	stopHub func() // and waits for it

	following sync.WaitGroup // of changes by others in the store of speakers

	mu       sync.Mutex
	closed   bool
	off      bool
	serving  sync.WaitGroup // calls of Serve; grows with mu held and while closed is unset
	clients  map[uuid.UUID]Client
	live     map[Client]struct{} // that have not ended, replaced ones included
	accepted uint64
	past     hub.Sent // by those that have
	ends     map[string]uint64
}

// Offers returns what every gateway can negotiate.
func Offers() caps.Set {
	return caps.Set{Audio: 2, Status: 1, Spatial: 1, Speakers: 1, Soundboard: 2, Pose: 1, Page: 1, Roster: 2}
}

// New starts a gateway on a world.
func New(cfg Config, reg *world.Registry) *Gateway {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Flooded == nil {
		cfg.Flooded = func(string) {}
	}
	g := &Gateway{
		reg: reg, log: cfg.Log, flooded: cfg.Flooded,
		clients: make(map[uuid.UUID]Client),
		live:    make(map[Client]struct{}),
		ends:    make(map[string]uint64),
		past:    hub.Sent{Lost: make(map[string]uint64)},
	}
	for _, e := range conn.Endings() {
		g.ends[e] = 0
	}
	for _, why := range conn.Lost() {
		g.past.Lost[why] = 0
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	h := hub.New(reg, cfg.Policy)
	h.Log, h.Permissions, h.Store, h.Muted = cfg.Log, cfg.Permissions, cfg.Store, cfg.Muted
	g.hub = h
	g.speakers = speaker.New(speaker.Config{Table: h.Table, Place: reg.Place})
	g.talk = talker.Config{Hub: h, Stats: &g.stats, OpusOK: cfg.OpusOK, Speakers: g.speakers, Notice: cfg.Notice}
	if cfg.OpusOK == nil {
		g.talk.OpusOK = wire.OpusOK
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	g.stopHub = func() { cancel(); <-done }
	h.SetSoundboard(!cfg.SoundboardOff)
	h.SetGroups(cfg.Groups)
	if err := g.SetDeclared(cfg.Declared); err != nil { // and now the stored declarations and these are in force
		g.log.Error("the declarations of the configuration cannot be used", "error", err)
	}
	g.keepSpeakers(cfg.Sounds, cfg.Convert, cfg.Speakers)
	return g
}

// Client is one player's connection to voice, of any kind: a WebSocket is one. It is shown and told values. It can be
// compared, as a pointer can.
type Client interface {
	hub.Client
	// ShowSpeakers shows the speakers that the player may hear, as Show calls of [hub.Client] do.
	ShowSpeakers(s *talk.Speakers)
	// Serve takes what the player sends, gives it to the talker, and returns the reason when the connection has ended.
	// It ends soon after the end of ctx, or after the first call of End, which may come before it. An error with a
	// method Label names the ending under which the client is counted; one with Flood names what it sent too much of.
	Serve(ctx context.Context, t *talker.Talker) error
	// Count adds the client's counts so far.
	Count(to *hub.Sent)
}

// Refused is the error of a client that was not taken.
type Refused struct{ Why hub.End }

// Error implements error.
func (r *Refused) Error() string {
	if r.Why == hub.PlayerLeft {
		return "the player is not on the network"
	}
	return "voice is being shut down"
}

// Serve takes a client of a player on the proxy and returns when it has ended. It ends the player's former client. When
// it does not take the client, it calls End and not Serve, and returns [*Refused]; else nil. about are names and values
// for the log.
func (g *Gateway) Serve(c Client, player uuid.UUID, w hub.Wants, about ...any) error {
	g.mu.Lock()
	if g.closed || g.off {
		g.mu.Unlock()
		c.End(hub.ShuttingDown)
		return &Refused{hub.ShuttingDown}
	}
	p := g.reg.Get(player)
	if p == nil { // left since they were let in
		g.mu.Unlock()
		c.End(hub.PlayerLeft)
		return &Refused{hub.PlayerLeft}
	}
	g.serving.Add(1)
	defer g.serving.Done()
	former, member := g.clients[player], g.hub.Join(p, c, w)
	g.clients[player] = c
	g.live[c] = struct{}{}
	g.accepted++
	g.mu.Unlock()
	if former != nil {
		former.End(hub.Replaced)
	}
	g.log.Info("voice connected", append([]any{"player", p.Name}, about...)...)

	var err error
	defer func() {
		g.mu.Lock()
		if g.clients[player] == c {
			delete(g.clients, player)
		}
		delete(g.live, c)
		c.Count(&g.past)
		g.mu.Unlock()
		g.ended(err)
	}()
	defer g.hub.Leave(member)
	if w.Speakers {
		defer g.speakers.Join(player, c.ShowSpeakers)()
	}
	err = c.Serve(g.ctx, talker.New(g.talk, member))
	g.log.Info("voice disconnected", "player", p.Name, "why", err)
	return nil
}

// ended counts the ending of a client.
func (g *Gateway) ended(err error) {
	ending := "broken"
	var label interface{ Label() string }
	if errors.As(err, &label) {
		ending = label.Label()
	}
	g.mu.Lock()
	g.ends[ending]++
	g.mu.Unlock()
	var flood interface{ Flood() string }
	if errors.As(err, &flood) && flood.Flood() != "" {
		g.flooded(flood.Flood())
	}
}

// Accept serves the socket of a player on the proxy until it ends. It ends the player's former client, a socket with
// [socket.Replaced]. c was negotiated, out of [Offers].
func (g *Gateway) Accept(sock *socket.Socket, player uuid.UUID, c caps.Set) {
	k := conn.New(sock, c, g.log)
	if g.Serve(k, player, k.Wants(), "audio", max(1, c.Audio), "spatial", c.Spatial == 1) != nil {
		g.ended(k.Refuse())
	}
}

// Speakers returns the speaker channels: sound from places, with names. It works until [Gateway.Close], which closes
// them. They sound for players who join later, too. They are not stored.
func (g *Gateway) Speakers() *speaker.Set { return g.speakers }

// SetSoundboard switches the soundboard on or off. When it returns, that is in force for the next frame. While it is
// off clients still negotiate it, so that they do not send clips by the microphone, and their clips are dropped.
func (g *Gateway) SetSoundboard(on bool) error { return g.hub.SetSoundboard(on) }

// SetEnabled switches voice off, which ends all clients and refuses new ones, or on again.
func (g *Gateway) SetEnabled(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.off = !on; on {
		return
	}
	for _, c := range g.clients {
		c.End(hub.ShuttingDown)
	}
}

// Freeze keeps the lasting state as it is: players who are sent off the network from now on lose nothing by it, such as
// groups that they own. Sound goes on until [Gateway.Close], but nobody joins any more.
func (g *Gateway) Freeze() { g.stopHub() }

// Close ends all clients, sockets with [socket.ShuttingDown], closes the speakers, and waits for all of them and for
// the hub. Accept and Serve refuse from now on. When ctx ends first, the remaining clients end on their own, sockets
// within two seconds.
func (g *Gateway) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	done := make(chan struct{})
	go func() {
		g.serving.Wait()
		g.following.Wait()
		g.speakers.Close()
		g.stopHub()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("voice clients are still closing: %w", ctx.Err())
	}
}

// Stats holds a gateway's counters since its start. The maps have all their labels from the start on.
type Stats struct {
	Sockets   int    // and other clients, now
	Accepted  uint64 // of these
	Frames    uint64 // that came in, or binary messages that were meant as one
	Delivered uint64 // frames handed to listeners' clients
	Sent      uint64 // of these, those that went out
	Writes    uint64 // system calls for all that went out

	Dropped map[string]uint64 // frames that came in and were not routed, by reason
	Lost    map[string]uint64 // frames that listeners' clients could not take, by reason
	Ended   map[string]uint64 // clients; sockets by close code of ours, or "peer", "dead" and "broken"

	Counts // now
}

// Stats reads the counters.
func (g *Gateway) Stats() Stats {
	s := Stats{
		Frames: g.stats.Frames.Load(), Delivered: g.stats.Delivered.Load() + g.speakers.Delivered(),
		Counts: g.hub.Counts(), Dropped: make(map[string]uint64), Ended: make(map[string]uint64),
	}
	for _, d := range talker.Drops() {
		s.Dropped[d.String()] = g.stats.Drops[d].Load()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	out := hub.Sent{Frames: g.past.Frames, Writes: g.past.Writes, Lost: maps.Clone(g.past.Lost)}
	for c := range g.live {
		c.Count(&out)
	}
	s.Sockets, s.Accepted, s.Sent, s.Writes, s.Lost = len(g.live), g.accepted, out.Frames, out.Writes, out.Lost
	for e, n := range g.ends {
		s.Ended[e] = n
	}
	return s
}
