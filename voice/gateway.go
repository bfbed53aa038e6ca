// Package voice is the voice gateway's public face: sockets that have been upgraded go in, and players hear each other
// by distance.
//
// It promises one socket per player, the newest, that every socket has ended when Close returns, and counters that are
// all there from the start.
package voice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"

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
)

// Config is how a gateway behaves.
type Config struct {
	Policy route.Policy
	Log    *slog.Logger // nil is slog's default

	// OpusOK replaces the check that a frame is 20 ms of mono sound, for load generators that send no Opus. nil checks.
	OpusOK func(opus []byte) bool

	SoundboardOff bool // at the start; see [Gateway.SetSoundboard]

	// Permissions tells what a player may do. It is asked for every connected player in each turn and must not block. nil
	// gives [Open] to everybody.
	Permissions func(player uuid.UUID) Bits

	Groups group.Limits // the zero value switches groups off; see [Gateway.SetGroups]

	// Declared is what the configuration declares; see [Gateway.SetDeclared].
	Declared relation.Declarations

	// Store keeps state that lasts; nil keeps nothing. [State] is one.
	Store Store

	// Sounds is the directory of the files that administrators' speakers play; empty is none. Speakers keeps what they are;
	// nil keeps nothing. [State.Speakers] is one.
	Sounds   string
	Convert  speaker.Converter // of files that cannot be sent as they are; nil: they are not played
	Speakers SpeakerStore

	// Notice has a player told why nobody hears what the player sends, at most once per five seconds and reason. It must
	// not block. nil tells nobody.
	Notice func(player uuid.UUID, why Reason)

	// Flooded is told when a client has been sent away, and what it sent too much of. It must not block. nil is not told.
	Flooded func(what string)

	// Muted has a player told of the mute that is on the player now and of what it was before; the Kind of either may be
	// none. It is called for whoever is on the network, with a voice connection or without, once for each change and when
	// somebody who is muted joins. It must not block. nil tells nobody.
	Muted func(player uuid.UUID, was, is mute.State)
}

// Reason is why a player is told that nobody hears something; its String is a sentence for the player.
type Reason = conn.Reason

// The reasons.
const (
	SoundboardOff     = conn.SoundboardOff
	SoundboardRefused = conn.SoundboardRefused
	ServerMuted       = conn.ServerMuted
	SpeakRefused      = conn.SpeakRefused
)

// Gateway joins sockets to the players of a world. Make one with [New].
type Gateway struct {
	reg      *world.Registry
	log      *slog.Logger
	conf     conn.Config
	flooded  func(what string)
	stats    conn.Stats
	hub      *hub.Hub
	speakers *speaker.Set
	book     *speaker.Book
	saved    atomic.Pointer[chan struct{}] // closed when the last change of the book is stored

	ctx     context.Context // of the sockets, and of following
	cancel  context.CancelFunc
	stopHub func() // and waits for it

	following sync.WaitGroup // of what others store of speakers

	mu       sync.Mutex
	closed   bool
	off      bool
	serving  sync.WaitGroup // calls of Accept; grows with mu held and closed unset only
	conns    map[uuid.UUID]*conn.Conn
	sockets  map[*socket.Socket]struct{} // that have not ended, replaced ones included
	accepted uint64
	past     socket.Stats // of those that have
	ends     map[string]uint64
}

// Offers is what every gateway can negotiate.
func Offers() caps.Set {
	return caps.Set{Audio: 2, Status: 1, Spatial: 1, Speakers: 1, Soundboard: 2, Pose: 1}
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
		conns:   make(map[uuid.UUID]*conn.Conn),
		sockets: make(map[*socket.Socket]struct{}),
		ends:    make(map[string]uint64),
	}
	for _, e := range ends {
		g.ends[e] = 0
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	h := hub.New(reg, cfg.Policy)
	h.Log, h.Permissions, h.Store, h.Muted = cfg.Log, cfg.Permissions, cfg.Store, cfg.Muted
	g.hub = h
	g.speakers = speaker.New(speaker.Config{Table: h.Table, Place: reg.Place})
	g.conf = conn.Config{
		Hub: h, Stats: &g.stats, Log: cfg.Log, OpusOK: cfg.OpusOK, Speakers: g.speakers, Notice: cfg.Notice,
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	g.stopHub = func() { cancel(); <-done }
	h.SetSoundboard(!cfg.SoundboardOff)
	h.SetGroups(cfg.Groups)
	if err := g.SetDeclared(cfg.Declared); err != nil { // and now everything is in force that was there before
		g.log.Error("what the configuration declares cannot be used", "error", err)
	}
	g.keepSpeakers(cfg.Sounds, cfg.Convert, cfg.Speakers)
	return g
}

// Accept serves the socket of a player who is on the proxy until it ends. A former socket of the player is closed
// with [socket.Replaced]. c is what was negotiated, out of [Offers].
func (g *Gateway) Accept(sock *socket.Socket, player uuid.UUID, c caps.Set) {
	g.mu.Lock()
	if g.closed || g.off {
		g.mu.Unlock()
		g.refuse(sock, socket.ShuttingDown)
		return
	}
	p := g.reg.Get(player)
	if p == nil { // left since the upgrade was granted
		g.mu.Unlock()
		g.refuse(sock, socket.Left)
		return
	}
	g.serving.Add(1)
	defer g.serving.Done()
	former, k := g.conns[player], conn.New(g.conf, sock, p, c)
	g.conns[player] = k
	g.sockets[sock] = struct{}{}
	g.accepted++
	g.mu.Unlock()
	if former != nil {
		former.Close(socket.Replaced)
	}
	g.log.Info("voice connected", "player", p.Name, "audio", max(1, c.Audio), "spatial", c.Spatial == 1)

	var err error
	defer func() {
		g.mu.Lock()
		if g.conns[player] == k {
			delete(g.conns, player)
		}
		delete(g.sockets, sock)
		add(&g.past, sock.Stats())
		g.ends[ending(err)]++
		g.mu.Unlock()
	}()
	err = k.Run(g.ctx)
	var closed *socket.Closed
	if errors.As(err, &closed) && closed.What != "" {
		g.flooded(closed.What)
	}
	g.log.Info("voice disconnected", "player", p.Name, "why", err)
}

// refuse ends a socket that gets no client.
func (g *Gateway) refuse(sock *socket.Socket, code socket.Code) {
	sock.Close(code, "")
	err := sock.Run(context.Background(), deaf{}) // within two seconds
	g.mu.Lock()
	g.ends[ending(err)]++
	g.mu.Unlock()
}

// deaf takes what a refused client still says.
type deaf struct{}

func (deaf) Binary([]byte) {}
func (deaf) Text([]byte)   {}

// Speakers are the speaker channels: sound from places, with names. It works until [Gateway.Close], which closes them.
// They begin to sound for players who join later, too; what they are is not kept anywhere else.
func (g *Gateway) Speakers() *speaker.Set { return g.speakers }

// SetSoundboard switches the soundboard on or off; that is in force for the next frame when it returns. While it is off
// clients still negotiate it, and all that they send by it is dropped, so that they do not send it by the microphone.
func (g *Gateway) SetSoundboard(on bool) error { return g.hub.SetSoundboard(on) }

// SetEnabled switches voice off, which ends all sockets with [socket.ShuttingDown] and refuses new ones, or on again.
func (g *Gateway) SetEnabled(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.off = !on; on {
		return
	}
	for _, k := range g.conns {
		k.Close(socket.ShuttingDown)
	}
}

// Freeze leaves the state that lasts as it is: who is sent off the network from now on loses nothing by it, as the groups
// that he owns. Sound goes on until [Gateway.Close], but nobody joins it any more.
func (g *Gateway) Freeze() { g.stopHub() }

// Close ends all sockets with [socket.ShuttingDown], closes the speakers, and waits for all of them and for the hub. Accept
// refuses from now on.
// When ctx ends first, the sockets that are left end within two seconds on their own.
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
		return fmt.Errorf("voice sockets are still closing: %w", ctx.Err())
	}
}

// codes are the closes of ours.
var codes = []socket.Code{
	socket.ShuttingDown, socket.Protocol, socket.Unsupported, socket.InvalidData, socket.TooBig, socket.Failed,
	socket.Replaced, socket.Left, socket.Flood,
}

// ends are the endings of a socket as labels: the code that it was closed with, or else what happened.
var ends = func() []string {
	all := []string{"peer", "dead", "broken"}
	for _, c := range codes {
		all = append(all, strconv.Itoa(int(c)))
	}
	return all
}()

// ending is the label of how a socket ended.
func ending(err error) string {
	var closed *socket.Closed
	switch {
	case errors.As(err, &closed) && closed.Peer:
		return "peer"
	case errors.As(err, &closed):
		return strconv.Itoa(int(closed.Code))
	case errors.Is(err, socket.ErrDead):
		return "dead"
	}
	return "broken"
}

// Stats are a gateway's counters since its start. The maps have every label that there is, from the start on.
type Stats struct {
	Sockets   int    // now
	Accepted  uint64 // sockets
	Frames    uint64 // binary messages that came in
	Delivered uint64 // frames handed to listeners' sockets
	Sent      uint64 // of these, those that went out
	Writes    uint64 // system calls for all that went out

	Dropped map[string]uint64 // frames that came in and were not routed, by reason
	Lost    map[string]uint64 // frames that listeners' sockets could not take, by reason
	Ended   map[string]uint64 // sockets, by close code of ours, or "peer", "dead" and "broken"

	Counts // now
}

// Stats reads the counters.
func (g *Gateway) Stats() Stats {
	s := Stats{
		Frames: g.stats.Frames.Load(), Delivered: g.stats.Delivered.Load() + g.speakers.Delivered(),
		Counts: g.hub.Counts(), Dropped: make(map[string]uint64), Lost: make(map[string]uint64), Ended: make(map[string]uint64),
	}
	for _, d := range conn.Drops() {
		s.Dropped[d.String()] = g.stats.Drops[d].Load()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.past
	for sock := range g.sockets {
		add(&out, sock.Stats())
	}
	s.Sockets, s.Accepted, s.Sent, s.Writes = len(g.sockets), g.accepted, out.Sent, out.Writes
	for _, d := range socket.Drops() {
		s.Lost[d.String()] = out.Drops[d]
	}
	for e, n := range g.ends {
		s.Ended[e] = n
	}
	return s
}

func add(to *socket.Stats, s socket.Stats) {
	to.Sent += s.Sent
	to.Writes += s.Writes
	for i, n := range s.Drops {
		to.Drops[i] += n
	}
}
