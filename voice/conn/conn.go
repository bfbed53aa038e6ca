// Package conn is one client of the voice gateway: what it sends is checked, counted and handed to the route or the
// hub; what it is to get is written in the format that it negotiated.
//
// It promises that nothing a client sends costs more than its budget, that everything thrown away is counted with its
// reason, and that a client never receives a byte that it did not negotiate.
package conn

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/voice/hub"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/wire"
)

// Budgets of one client.
const (
	FramesPerSecond = 60 // of the microphone, with one second of burst; the excess is dropped
	TextsPerSecond  = 60 // with one second of credit; more closes with 4008

	// FloodTime bounds the excess of frames: what the budget has in this time at once, and as much again with the time;
	// more closes with 4008. It is longer than socket.DeadAfter, so that nothing that a line has held up is so much.
	FloodTime = 30 * time.Second

	// BadFrames discarded within BadTime close with 1007.
	BadFrames = 100
	BadTime   = 10 * time.Second
)

// Drop says why a frame of a client was not routed.
type Drop uint8

// The reasons, in the order of the checks, first those of the microphone.
const (
	BadLength Drop = iota
	BadStream
	BadSequence
	BadOpus   // not one 20 ms mono frame
	TooMany   // over the budget
	NotListed // the client joined or left in this very moment
	NoPose    // it is not known where the player is
	BadKind
	ClipRate     // over the soundboard's budget
	ClipStart    // of a clip that comes too soon after another one, or of one of too many
	ClipOver     // of a clip that another one has taken the place of
	ClipsOff     // the soundboard is switched off
	ClipsRefused // the player may not use it
	Silenced     // the server has muted the player
	Forbidden    // the player may not speak
	numDrops
)

// Drops lists all reasons, for counters that start at zero.
func Drops() []Drop {
	all := make([]Drop, numDrops)
	for i := range all {
		all[i] = Drop(i)
	}
	return all
}

// String is the reason in a word or two, fit for a metric label.
func (d Drop) String() string {
	return [numDrops]string{"bad_length", "bad_stream", "bad_sequence", "bad_opus", "rate", "not_listed", "no_position",
		"bad_kind", "clip_rate", "clip_start", "clip_over", "clips_off", "clips_refused", "muted", "no_permission"}[d]
}

// Stats count what all clients sent. The zero value is ready.
type Stats struct {
	Frames    atomic.Uint64 // binary messages that have been seen to, whatever became of them
	Delivered atomic.Uint64 // frames handed to listeners' sockets
	Drops     [numDrops]atomic.Uint64
}

// Config is what all clients share.
type Config struct {
	Hub    *hub.Hub
	Stats  *Stats
	Log    *slog.Logger
	OpusOK func(opus []byte) bool // what passes as one frame of speech; nil is wire.OpusOK

	Speakers Speakers // nil: there are none

	// Notice has a player told, on the action bar, why nobody hears what the player sends: at most once per NoticeEvery
	// and reason. It must not block. nil tells nobody.
	Notice func(player uuid.UUID, why Reason)
}

// Speakers is what clients need of the speaker channels.
type Speakers interface {
	// Mic takes a frame of a microphone that has passed all checks, for the channels that carry it.
	Mic(from *route.Member, stream, seq int64, opus []byte)
	// Join has show called with each new snapshot for the player until leave is.
	Join(player uuid.UUID, show func(s *talk.Speakers)) (leave func())
}

// Conn is one client; it is the [hub.Client] and the [socket.Handler] of its socket.
type Conn struct {
	cfg    Config
	sock   *socket.Socket
	caps   caps.Set
	in     wire.C2SFormat
	out    wire.S2CFormat
	member *hub.Member
	mic    *route.Source

	// The reader's.
	clips     clips
	told      [numReasons]time.Time
	asked     time.Time // about groups
	frames    ration    // of the microphone
	texts     socket.Budget
	bad       []time.Time // of the last BadFrames discarded frames, in a ring
	discarded int
}

// New makes a client of an upgraded socket. [Conn.Run] has to be called.
func New(cfg Config, sock *socket.Socket, p *world.Player, c caps.Set) *Conn {
	if cfg.OpusOK == nil {
		cfg.OpusOK = wire.OpusOK
	}
	k := &Conn{cfg: cfg, sock: sock, caps: c}
	k.frames, k.texts = newRation(FramesPerSecond), second(TextsPerSecond)
	if c.Audio == 2 {
		k.in, k.out = wire.C2SV2, wire.S2CV2
		if c.Spatial == 1 {
			k.out = wire.S2CSpatial
		}
	}
	if c.Soundboard != 0 {
		k.in = wire.C2SBoard
		k.clips.init(c.Soundboard)
	}
	k.member = cfg.Hub.Join(p, k, wants(c))
	k.mic = route.NewSource(&k.member.Member)
	return k
}

// Run serves the client until its socket ends, and tells why it did.
func (k *Conn) Run(ctx context.Context) error {
	defer k.cfg.Hub.Leave(k.member)
	if k.caps.Speakers == 1 && k.cfg.Speakers != nil {
		defer k.cfg.Speakers.Join(k.member.Player.ID, k.ShowSpeakers)()
	}
	return k.sock.Run(ctx, k)
}

// Close ends the client; Run returns soon after.
func (k *Conn) Close(code socket.Code) { k.sock.Close(code, "") }

// Binary takes a frame of the microphone, or of a clip.
func (k *Conn) Binary(p []byte) {
	k.frame(p)
	k.cfg.Stats.Frames.Add(1)
}

func (k *Conn) frame(p []byte) {
	now := time.Now()
	f, err := wire.ParseC2S(k.in, p)
	if err != nil {
		k.discard(now, reason(err))
		return
	}
	if !k.cfg.OpusOK(f.Opus) {
		k.discard(now, BadOpus)
		return
	}
	if f.Source == wire.Board {
		k.clip(now, &f)
		return
	}
	if !k.frames.Take(now, 1) {
		k.drop(TooMany)
		if !k.frames.excess.Take(now, 1) {
			k.flood("frames of the microphone")
		}
		return
	}
	k.route(k.mic, &f)
	if k.cfg.Speakers != nil {
		k.cfg.Speakers.Mic(&k.member.Member, f.Stream, f.Seq, f.Opus)
	}
}

// route sends a frame that has passed the checks to whoever hears it.
func (k *Conn) route(src *route.Source, f *wire.C2S) {
	n, outcome := src.Send(k.cfg.Hub.Table(), f.Stream, f.Seq, f.Opus)
	switch outcome {
	case route.NotListed:
		k.drop(NotListed)
	case route.NoPose:
		k.drop(NoPose)
	case route.Muted:
		k.refuse(time.Now(), Silenced, ServerMuted)
	case route.NoSpeak:
		k.refuse(time.Now(), Forbidden, SpeakRefused)
	case route.SoundboardOff:
		k.refuse(time.Now(), ClipsOff, SoundboardOff)
	case route.NoSoundboard:
		k.refuse(time.Now(), ClipsRefused, SoundboardRefused)
	}
	if n > 0 {
		k.cfg.Stats.Delivered.Add(uint64(n))
	}
}

// reason is the counter of a frame that does not parse.
func reason(err error) Drop {
	switch err {
	case wire.BadStream:
		return BadStream
	case wire.BadSequence:
		return BadSequence
	case wire.BadKind:
		return BadKind
	}
	return BadLength
}

func (k *Conn) drop(why Drop) { k.cfg.Stats.Drops[why].Add(1) }

// discard drops a frame that no proper client sends, and closes on the last of too many.
func (k *Conn) discard(now time.Time, why Drop) {
	k.drop(why)
	if k.bad == nil {
		k.bad = make([]time.Time, BadFrames)
	}
	k.bad[k.discarded%BadFrames] = now
	k.discarded++
	if oldest := k.bad[k.discarded%BadFrames]; k.discarded >= BadFrames && now.Sub(oldest) <= BadTime {
		k.end(socket.InvalidData, "too many bad frames, the last for its "+why.String())
	}
}

// Text takes a request.
func (k *Conn) Text(p []byte) {
	if !k.texts.Take(time.Now(), 1) {
		k.flood("text messages")
		return
	}
	if k.caps.Status != 1 {
		k.end(socket.Unsupported, "text without status 1")
		return
	}
	l, err := line.ParseC2S(p)
	switch {
	case err != nil:
		k.end(socket.Unsupported, "unknown text")
	case l.Request == line.Deafen:
		k.cfg.Hub.SetDeafened(k.member, l.Deafened)
	case l.Request == line.Range:
		k.cfg.Hub.SetTier(k.member, l.Tier)
	default:
		k.group(&l.Group)
	}
}

// GroupEvery is the least time between two requests about groups; one that comes sooner is lost.
const GroupEvery = 200 * time.Millisecond

// group takes a request about groups.
func (k *Conn) group(r *talk.GroupRequest) {
	if k.caps.Groups != 2 || r.Verb.Edits() && k.caps.GroupEdit != 1 || !k.cfg.Hub.GroupsEnabled() {
		k.end(socket.Unsupported, "request that was not negotiated")
		return
	}
	now := time.Now()
	if now.Sub(k.asked) < GroupEvery {
		return
	}
	k.asked = now
	k.cfg.Hub.Ask(k.member, *r)
}

// end closes the socket for what the client did.
func (k *Conn) end(code socket.Code, why string) {
	k.cfg.Log.Debug("voice client closed", "player", k.member.Player.Name, "code", code, "why", why)
	k.Close(code)
}

// flood closes the socket of a client that sends too much of what.
func (k *Conn) flood(what string) {
	k.cfg.Log.Debug("voice client closed", "player", k.member.Player.Name, "code", socket.Flood, "why", "too many "+what)
	k.sock.CloseFlood(what)
}

// Deliver writes a frame in the client's format.
func (k *Conn) Deliver(f *route.Frame) {
	var head [wire.HeadS2CChannel]byte
	s := wire.S2C{Source: f.Speaker, Gain: f.Gain, DX: f.DX, DZ: f.DZ, Stream: f.Stream, Seq: f.Seq}
	switch f.Kind {
	case route.Clip:
		s.Kind = wire.KindBoard
	case route.Channel:
		s.Kind, s.Source, s.Origin = wire.KindChannel, f.Channel, f.Speaker
	}
	if h := wire.AppendS2CHead(head[:0], k.out, &s); len(h) > 0 { // the format has the kind
		k.sock.Audio(h, f.Opus)
	}
}

// Retract takes back what is queued of a speaker channel.
func (k *Conn) Retract(channel uuid.UUID) {
	if k.out == wire.S2CSpatial {
		k.sock.Retract(append([]byte{byte(wire.KindChannel)}, channel[:]...))
	}
}

// Left ends the client of a player who has left the network.
func (k *Conn) Left() { k.Close(socket.Left) }

// second is a budget with one second of burst.
func second(rate int) socket.Budget { return socket.Budget{PerSecond: rate, AtOnce: rate} }

// ration is a budget of frames, and how many may be in excess of it.
type ration struct {
	socket.Budget
	excess socket.Budget
}

func newRation(rate int) ration {
	return ration{second(rate), socket.Budget{PerSecond: rate, AtOnce: rate * int(FloodTime/time.Second)}}
}
