// Package conn is one client of the voice gateway on its socket: it reads what the client sends and hands it to the
// client's talker, and writes to the client in the negotiated format.
//
// It promises that a client never receives a byte that it did not negotiate, and that a client that breaks the
// protocol, or sends more than anybody needs, is closed with the code for that.
package conn

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/budget"
	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/voice/hub"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/render"
	"github.com/earshot-mc/earshot/voice/roster"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/talker"
	"github.com/earshot-mc/earshot/voice/wire"
)

// TextsPerSecond is the budget of one client's texts, with one second of credit; more closes with 4008.
const TextsPerSecond = 60

// Conn is one client; it is the [hub.Client] and the [socket.Handler] of its socket.
type Conn struct {
	log  *slog.Logger
	sock *socket.Socket
	caps caps.Set
	in   wire.C2SFormat
	out  wire.S2CFormat

	roster *roster.Snapshot // the turn's: what the client was sent last, with roster 2

	// The reader's.
	talker *talker.Talker
	texts  budget.Budget
}

// New makes a client of an upgraded socket. [Conn.Serve] or [Conn.Refuse] has to be called.
func New(sock *socket.Socket, c caps.Set, log *slog.Logger) *Conn {
	k := &Conn{log: log, sock: sock, caps: c, texts: budget.Second(TextsPerSecond)}
	if c.Audio == 2 {
		k.in, k.out = wire.C2SV2, wire.S2CV2
		if c.Spatial == 1 {
			k.out = wire.S2CSpatial
		}
	}
	if c.Soundboard != 0 {
		k.in = wire.C2SBoard
	}
	return k
}

// Wants returns what the client takes, as it has negotiated.
func (k *Conn) Wants() hub.Wants {
	c := &k.caps
	return hub.Wants{
		Status: c.Status == 1, Pose: c.Pose == 1, Groups: c.Groups == 2, Speakers: c.Speakers == 1,
		Clips: c.Soundboard != 0, Channels: c.Spatial == 1, Page: c.Page == 1, Changes: c.Roster == 2,
	}
}

// Serve serves the client until its socket ends, and returns why it did: [*Ended].
func (k *Conn) Serve(ctx context.Context, t *talker.Talker) error {
	k.seat(t)
	return ended(k.sock.Run(ctx, k))
}

func (k *Conn) seat(t *talker.Talker) {
	k.talker = t
	if k.caps.Soundboard == 1 {
		t.OneClip()
	}
}

// Refuse waits for the end of a client that gets no talker, after [Conn.End], and returns as Serve does. It takes two
// seconds at most.
func (k *Conn) Refuse() error { return ended(k.sock.Run(context.Background(), deaf{})) }

// deaf drops everything that a refused client still sends.
type deaf struct{}

func (deaf) Binary([]byte) {}
func (deaf) Text([]byte)   {}

// End closes the socket; Serve returns soon after.
func (k *Conn) End(why hub.End) {
	k.close([...]socket.Code{
		hub.PlayerLeft: socket.Left, hub.Replaced: socket.Replaced, hub.ShuttingDown: socket.ShuttingDown,
	}[why])
}

func (k *Conn) close(code socket.Code) { k.sock.Close(code, "") }

// Count adds the socket's counts so far.
func (k *Conn) Count(to *hub.Sent) {
	s := k.sock.Stats()
	to.Frames += s.Sent
	to.Writes += s.Writes
	for i, n := range s.Drops {
		to.Lost[socket.Drop(i).String()] += n
	}
}

// Lost lists why frames do not leave a socket, as [Conn.Count] calls it.
func Lost() (all []string) {
	for _, d := range socket.Drops() {
		all = append(all, d.String())
	}
	return all
}

// Binary takes a frame of the microphone, or of a clip.
func (k *Conn) Binary(p []byte) {
	f, err := wire.ParseC2S(k.in, p)
	switch {
	case err != nil:
		err = k.talker.Bad(reason(err))
	case f.Source == wire.Board:
		err = k.talker.Clip(f.Stream, f.Seq, f.Opus)
	default:
		err = k.talker.Mic(f.Stream, f.Seq, f.Opus)
	}
	if err != nil {
		k.over(err)
	}
}

// over closes the socket of a client that has exhausted its talker's patience.
func (k *Conn) over(err error) {
	var flood *talker.Flood
	if errors.As(err, &flood) {
		k.flood(flood.What)
		return
	}
	k.end(socket.InvalidData, err.Error())
}

// reason returns the counter of a frame that does not parse.
func reason(err error) talker.Drop {
	switch err {
	case wire.BadStream:
		return talker.BadStream
	case wire.BadSequence:
		return talker.BadSequence
	case wire.BadKind:
		return talker.BadKind
	}
	return talker.BadLength
}

// Text takes a request.
func (k *Conn) Text(p []byte) {
	if !k.texts.Take(time.Now(), 1) {
		k.flood("text messages")
		return
	}
	l, err := line.ParseC2S(p)
	switch {
	case err == nil && l.Request == line.Beat && k.caps.Page == 1:
		k.sock.View(viewBeat, render.Beaten(l.Beat, k.talker.Beat()))
	case k.caps.Status != 1:
		k.end(socket.Unsupported, "text without status 1")
	case err != nil || l.Request == line.Beat:
		k.end(socket.Unsupported, "unknown text")
	case l.Request == line.Deafen:
		k.talker.SetDeafened(l.Deafened)
	case l.Request == line.Range:
		k.talker.SetTier(l.Tier)
	default:
		k.group(&l.Group)
	}
}

// group takes a request about groups.
func (k *Conn) group(r *talk.GroupRequest) {
	if k.caps.Groups != 2 || r.Verb.Edits() && k.caps.GroupEdit != 1 || !k.talker.GroupsEnabled() {
		k.end(socket.Unsupported, "request that was not negotiated")
		return
	}
	k.talker.Ask(*r)
}

// end closes the socket for something that the client did.
func (k *Conn) end(code socket.Code, why string) {
	k.log.Debug("voice client closed", "player", k.talker.Player().Name, "code", code, "why", why)
	k.close(code)
}

// flood closes the socket of a client that sends too much of what.
func (k *Conn) flood(what string) {
	k.log.Debug("voice client closed", "player", k.talker.Player().Name, "code", socket.Flood, "why", "too many "+what)
	k.sock.CloseFlood(what)
}

// Deliver writes a frame in the client's format.
func (k *Conn) Deliver(f *route.Frame) {
	var head [wire.HeadS2CChannel]byte
	s := wire.S2C{Source: f.Talker, Gain: f.Gain, DX: f.DX, DZ: f.DZ, Stream: f.Stream, Seq: f.Seq}
	switch f.Kind {
	case route.Clip:
		s.Kind = wire.KindBoard
	case route.Channel:
		s.Kind, s.Source, s.Origin = wire.KindChannel, f.Channel, f.Talker
	}
	if h := wire.AppendS2CHead(head[:0], k.out, &s); len(h) > 0 { // the format has the kind
		k.sock.Audio(h, f.Opus)
	}
}

// Retract takes back the queued frames of a speaker channel.
func (k *Conn) Retract(channel uuid.UUID) {
	if k.out == wire.S2CSpatial {
		k.sock.Retract(append([]byte{byte(wire.KindChannel)}, channel[:]...))
	}
}

// Ended says why a client's socket has ended, see [socket.Socket.Run].
type Ended struct{ Err error }

func ended(err error) error {
	if err == nil {
		return nil
	}
	return &Ended{err}
}

// Error implements error.
func (e *Ended) Error() string { return e.Err.Error() }

// Unwrap returns the socket's error.
func (e *Ended) Unwrap() error { return e.Err }

// Label returns the ending as one of [Endings].
func (e *Ended) Label() string {
	var closed *socket.Closed
	switch {
	case errors.As(e.Err, &closed) && closed.Peer:
		return "peer"
	case errors.As(e.Err, &closed):
		return strconv.Itoa(int(closed.Code))
	case errors.Is(e.Err, socket.ErrDead):
		return "dead"
	}
	return "broken"
}

// Flood returns what the client sent too much of; empty: it has ended for another reason.
func (e *Ended) Flood() string {
	var closed *socket.Closed
	if errors.As(e.Err, &closed) {
		return closed.What
	}
	return ""
}

// Endings lists how sockets end: by our code that closed it, or else by what happened.
func Endings() []string {
	all := []string{"peer", "dead", "broken"}
	for _, c := range []socket.Code{
		socket.ShuttingDown, socket.Protocol, socket.Unsupported, socket.InvalidData, socket.TooBig, socket.Failed,
		socket.Replaced, socket.Left, socket.Flood,
	} {
		all = append(all, strconv.Itoa(int(c)))
	}
	return all
}
