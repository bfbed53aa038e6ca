// Package client is a client of rooms: it joins, shows what the room shows, comes back when its transport is lost, and
// keeps the bounds that the Rooms protocol sets to clients. It promises that every state it shows is one that the room
// was in, whatever is lost or comes late.
//
// It compiles for browsers (GOOS=js GOARCH=wasm), except [WebSocket], which needs a socket.
package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
	"github.com/earshot-mc/earshot/handshake/budget"
)

// Transport carries frames to a room and back.
type Transport interface {
	// Send sends a text frame. It does not keep the bytes.
	Send(frame []byte) error
	// Receive waits for a frame, which stays as it is. Its error is a [*frame.Ended] where the room has closed, and any
	// other where the transport broke.
	Receive() (b []byte, binary bool, err error)
	// Close ends the transport, and with it Receive. It may be called at any time, from any goroutine.
	Close(code frame.Code, reason string)
}

// Codec reads binary states, as [*packed.Schema] does by [Packed].
type Codec interface {
	Name() string
	// Apply does with a binary frame what [state.Decoder.Apply] does with one in JSON.
	Apply(b []byte, d *state.Decoder) (*state.Snapshot, state.Result, error)
}

// Config says who a client is, and what it does with the room's news. Its functions are called one at a time, from a
// goroutine of the client's.
type Config struct {
	Dial   func(context.Context) (Transport, error)
	Name   string
	Fields state.Object // of the game, in the join
	Codec  Codec        // nil: states come as JSON

	AckDelay time.Duration // that acknowledgements may wait for others, at most 250 ms
	Grace    time.Duration // that the room keeps the place of a peer that has gone; 0: 15 s

	OnWelcome func(*Welcome)                   // after each join and return
	OnState   func(*state.Snapshot)            // each state that is shown
	OnRoster  func(*Roster)                    // whenever it changes
	OnChat    func(frame.Message)              // each message, those of the history not
	OnPing    func(frame.Pinged)               //
	OnNotice  func(text string)                // a request of ours was refused
	OnLost    func(err error)                  // the transport is lost; the client tries to come back
	OnFrame   func(typ string, o state.Object) // one of a type that the protocol does not have
}

// Welcome is a room's greeting to a peer that comes in.
type Welcome struct {
	ID       string
	Capacity int64
	Resumed  bool         // this is the place that we had
	Fields   state.Object // of the whole frame
}

// Roster lists who is in a room.
type Roster struct {
	Leader  string // empty: nobody leads
	Locked  bool
	Members []frame.Member
	History []frame.Message // nil but for the first after a welcome
}

// Limits of what is sent and shown.
const (
	// A transport that stands still for a moment makes a burst of frames that were sent in time, so this is less than
	// the room takes.
	perSecond   = frame.FramesPerSecond - 10
	atOnce      = frame.FramesPerSecond - 20
	maxAckDelay = 250 * time.Millisecond
	// pingFor and bubbleFor are how long pings and messages are shown.
	pingFor   = frame.PingExpiryMs * time.Millisecond
	bubbleFor = frame.BubbleMs * time.Millisecond
)

// Errors of sending.
var (
	ErrLong = errors.New("client: a frame of more than 4096 characters")
	ErrRate = errors.New("client: more than 120 frames a second")
	ErrAway = errors.New("client: not in the room at the moment")
)

// RefusedError says that the room wants no more of us: it sent an error, has removed us, or its server does not let us
// in.
type RefusedError struct{ Message string }

// Error implements error.
func (e *RefusedError) Error() string { return "the room refused: " + e.Message }

// Client is in a room, or on its way back. Its methods may be called from any goroutine.
type Client struct {
	conf Config
	stop context.CancelFunc
	done chan struct{}
	in   chan struct{} // closed once there is something to show

	mu       sync.Mutex // guards these
	err      error      // why it is over
	out      Transport  // nil: away
	rate     budget.Budget
	welcome  *Welcome
	token    string
	seq      int64
	shown    *state.Snapshot
	roster   *Roster
	history  []frame.Message
	pings    []timed[frame.Pinged]
	bubbles  []timed[frame.Message]
	unacked  int64 // tick; 0: all are
	ackTimer *time.Timer

	decoder state.Decoder // of the client's goroutine
	binary  bool          // states may be
}

type timed[T any] struct {
	what T
	till time.Time
}

// Join comes into a room, and stays there until ctx ends, or [Client.Leave] or the room ends it. It returns once it is
// in and has a state to show.
func Join(ctx context.Context, conf Config) (*Client, error) {
	if conf.Grace <= 0 {
		conf.Grace = frame.GraceMs * time.Millisecond
	}
	conf.AckDelay = min(conf.AckDelay, maxAckDelay)
	ctx, stop := context.WithCancel(ctx)
	c := &Client{conf: conf, stop: stop, done: make(chan struct{}), in: make(chan struct{}), binary: conf.Codec != nil}
	go c.run(ctx)
	select {
	case <-c.in:
		return c, nil
	case <-c.done:
		return nil, c.err
	}
}

// Done returns a channel that is closed when the client is out of the room for good.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the client is out of the room; nil: it is in, or has left by itself.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the client without leaving: the room keeps the place for a while. It waits for the end.
func (c *Client) Close() {
	c.stop()
	<-c.done
}

// errLeft ends a client that has left.
var errLeft = errors.New("left")

// retry says whether there is to be another try, and how.
type retry uint8

const (
	never retry = iota
	fresh       // as somebody new
	back        // to our place
)

func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	defer c.stop()
	var lost time.Time // since when we are away; zero: we were never in
	for tries := 0; ; tries++ {
		if !lost.IsZero() && time.Since(lost) > c.conf.Grace {
			c.forget()
		}
		was := c.entered()
		again, err := c.attempt(ctx)
		if c.entered() != was { // we were in
			lost, tries = time.Now(), -1
		}
		switch {
		case errors.Is(err, errLeft):
			return
		case ctx.Err() != nil:
			c.fail(ctx.Err())
			return
		case again == never || c.Welcome() == nil && again == back:
			c.fail(err)
			return
		case again == fresh:
			c.forget()
		}
		if c.conf.OnLost != nil && tries < 0 {
			c.conf.OnLost(err)
		}
		wait := 250 * time.Millisecond << min(max(tries, 0), 4)
		wait = time.Duration(float64(wait) * (0.8 + 0.4*rand.Float64()))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// forget gives our place up.
func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = ""
}

// entered returns a pointer that changes with each welcome.
func (c *Client) entered() *Welcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.welcome
}

// attempt runs one transport, from its join to its end.
func (c *Client) attempt(ctx context.Context) (retry, error) {
	t, err := c.conf.Dial(ctx)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return never, err
	}
	if err != nil {
		return back, err
	}
	defer context.AfterFunc(ctx, func() { t.Close(frame.GoingAway, "") })()
	defer t.Close(frame.Normal, "")
	c.mu.Lock()
	token := c.token
	join := c.join(token)
	c.rate = budget.Budget{PerSecond: perSecond, AtOnce: atOnce}
	c.mu.Unlock()
	c.decoder = state.Decoder{}
	if err := t.Send(join); err != nil {
		return back, err
	}
	defer func() {
		c.mu.Lock()
		c.out, c.unacked = nil, 0
		if c.ackTimer != nil {
			c.ackTimer.Stop()
			c.ackTimer = nil
		}
		c.mu.Unlock()
	}()
	refused := ""
	for {
		b, binary, err := t.Receive()
		if err != nil {
			var ended *frame.Ended
			errors.As(err, &ended)
			switch {
			case refused != "" && token != "" && !c.connected():
				return fresh, &RefusedError{refused} // our place is not there any more
			case refused != "":
				return never, &RefusedError{refused}
			case ended != nil && ended.Code == frame.GoingAway && ended.Reason == frame.Closed:
				return fresh, err
			case ended != nil && (ended.Code == frame.Normal || ended.Code == frame.Policy):
				return never, err
			}
			return back, err
		}
		if binary {
			err = c.applyBinary(b)
		} else {
			var left bool
			left, refused, err = c.apply(t, b, token, refused)
			if left {
				return never, errLeft
			}
		}
		if errors.Is(err, errCodec) {
			c.binary = false
			return fresh, err
		}
		if err != nil {
			return back, err
		}
	}
}

func (c *Client) connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out != nil
}

func (c *Client) join(token string) []byte {
	b := append([]byte(nil), `{"type":"join","protocol":`...)
	b = state.OfInt(frame.Protocol).AppendJSON(b)
	if token != "" {
		b = state.AppendStr(append(b, `,"resume":`...), token)
	} else {
		b = state.AppendStr(append(b, `,"name":`...), c.conf.Name)
	}
	if c.binary {
		b = append(b, `,"binaryStates":true`...)
	}
	return append(state.AppendFull(b, c.conf.Fields), '}')
}

// errCodec says that states come in an unknown codec.
var errCodec = errors.New("client: an unknown codec of states")

// apply obeys a frame in JSON.
func (c *Client) apply(t Transport, b []byte, token, refused string) (left bool, why string, err error) {
	v, err := state.Parse(b)
	if err != nil || v.Kind() != state.Obj {
		return false, refused, fmt.Errorf("client: a frame that is none: %w", errors.Join(err, state.ErrFrame))
	}
	o := v.Obj()
	switch typ := str(o, "type"); typ {
	case frame.Welcome:
		codec, _ := o.Get("stateCodec")
		if codec.Str() != "" && (c.conf.Codec == nil || codec.Str() != c.conf.Codec.Name()) {
			t.Send([]byte(`{"type":"leave"}`))
			return false, refused, errCodec
		}
		w := &Welcome{ID: str(o, "id"), Capacity: num(o, "capacity"), Resumed: token != "", Fields: o}
		c.mu.Lock()
		c.welcome, c.token, c.seq, c.out = w, str(o, "resume"), num(o, "sequence"), t
		c.roster = &Roster{}
		c.mu.Unlock()
		if c.conf.OnWelcome != nil {
			c.conf.OnWelcome(w)
		}
	case frame.Baseline, frame.Snapshot, frame.State:
		s, r, err := c.decoder.Apply(o)
		if err != nil {
			return false, refused, err
		}
		c.show(s, r)
	case frame.Social:
		c.social(o)
	case frame.Chat:
		m, _ := o.Get("message")
		said := message(m.Obj())
		c.mu.Lock()
		c.history = append(c.history, said)
		c.history = c.history[max(len(c.history)-frame.History, 0):]
		if !said.System {
			c.bubbles = slices.DeleteFunc(c.bubbles, func(x timed[frame.Message]) bool { return x.what.PlayerID == said.PlayerID })
			c.bubbles = append(c.bubbles, timed[frame.Message]{said, time.Now().Add(bubbleFor)})
		}
		c.mu.Unlock()
		if c.conf.OnChat != nil {
			c.conf.OnChat(said)
		}
	case frame.Ping:
		v, _ := o.Get("ping")
		p := v.Obj()
		at, _ := p.Get("location")
		ping := frame.Pinged{ID: num(p, "id"), PlayerID: str(p, "playerId"), PlayerName: str(p, "playerName"), Kind: str(p, "kind"),
			At: frame.Location{X: float(at.Obj(), "x"), Y: float(at.Obj(), "y"), Z: float(at.Obj(), "z"), Epoch: num(at.Obj(), "epoch")}}
		c.mu.Lock()
		c.pings = append(c.pings, timed[frame.Pinged]{ping, time.Now().Add(pingFor)})
		c.mu.Unlock()
		if c.conf.OnPing != nil {
			c.conf.OnPing(ping)
		}
	case frame.Notice:
		if c.conf.OnNotice != nil {
			c.conf.OnNotice(str(o, "message"))
		}
	case frame.Left:
		return true, refused, nil
	case frame.Remove, frame.Error:
		return false, str(o, "message"), nil
	default:
		if c.conf.OnFrame != nil {
			c.conf.OnFrame(typ, o)
		}
	}
	return false, refused, nil
}

func (c *Client) applyBinary(b []byte) error {
	if c.conf.Codec == nil {
		return errCodec
	}
	s, r, err := c.conf.Codec.Apply(b, &c.decoder)
	if err == nil {
		c.show(s, r)
	}
	return err
}

// show takes a decoded state, and acknowledges it.
func (c *Client) show(s *state.Snapshot, r state.Result) {
	if r != state.Applied {
		return
	}
	c.mu.Lock()
	if c.shown == nil {
		defer close(c.in)
	}
	c.shown = s
	c.unacked = s.Tick
	switch {
	case s.Initial || c.conf.AckDelay <= 0:
		c.acknowledge()
	case c.ackTimer == nil:
		c.ackTimer = time.AfterFunc(c.conf.AckDelay, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.ackTimer = nil; c.out != nil {
				c.acknowledge()
			}
		})
	}
	c.mu.Unlock()
	if c.conf.OnState != nil {
		c.conf.OnState(s)
	}
}

// acknowledge tells the room the last state that was shown, and so those before. c.mu is held.
func (c *Client) acknowledge() {
	if c.out == nil || !c.rate.Take(time.Now(), 1) {
		return // another one follows
	}
	b := state.OfInt(c.unacked).AppendJSON([]byte(`{"type":"ack","ack":`))
	c.unacked = 0
	c.out.Send(append(b, '}'))
}

func (c *Client) social(o state.Object) {
	r := &Roster{Leader: str(o, "leaderId")}
	locked, _ := o.Get("locked")
	r.Locked = locked.Bool()
	members, _ := o.Get("members")
	for i := range members.Len() {
		m := members.At(i).Obj()
		there, _ := m.Get("connected")
		ban, _ := m.Get("canBan")
		r.Members = append(r.Members, frame.Member{ID: str(m, "id"), Name: str(m, "name"), Connected: there.Bool(), CanBan: ban.Bool()})
	}
	if said, ok := o.Get("history"); ok {
		r.History = []frame.Message{}
		for i := range said.Len() {
			r.History = append(r.History, message(said.At(i).Obj()))
		}
	}
	c.mu.Lock()
	c.roster = r
	if r.History != nil {
		c.history = slices.Clone(r.History)
	}
	c.mu.Unlock()
	if c.conf.OnRoster != nil {
		c.conf.OnRoster(r)
	}
}

func message(o state.Object) frame.Message {
	system, _ := o.Get("system")
	return frame.Message{ID: num(o, "id"), PlayerID: str(o, "playerId"), PlayerName: str(o, "playerName"), Text: str(o, "text"), System: system.Bool()}
}

func str(o state.Object, key string) string    { v, _ := o.Get(key); return v.Str() }
func num(o state.Object, key string) int64     { v, _ := o.Get(key); return v.Int() }
func float(o state.Object, key string) float64 { v, _ := o.Get(key); return v.Float() }

// Welcome returns the room's last greeting.
func (c *Client) Welcome() *Welcome { return c.entered() }

// Shown returns the state that is shown.
func (c *Client) Shown() *state.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown
}

// Roster returns who is in the room.
func (c *Client) Roster() *Roster {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.roster
}

// History returns the messages, the oldest first: a hundred at most.
func (c *Client) History() []frame.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.history)
}

// Pings returns the present pings. A ping is shown for eight seconds.
func (c *Client) Pings() []frame.Pinged {
	c.mu.Lock()
	defer c.mu.Unlock()
	return alive(&c.pings)
}

// Bubbles returns the last message of each peer in the last ten seconds.
func (c *Client) Bubbles() []frame.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return alive(&c.bubbles)
}

func alive[T any](all *[]timed[T]) (out []T) {
	now := time.Now()
	*all = slices.DeleteFunc(*all, func(x timed[T]) bool { return !now.Before(x.till) })
	for _, x := range *all {
		out = append(out, x.what)
	}
	return out
}

// send checks a frame against the bounds, and sends it.
func (c *Client) send(b []byte) error {
	if frame.Units(string(b)) > frame.MaxChars {
		return ErrLong
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.out == nil:
		return ErrAway
	case !c.rate.Take(time.Now(), 1):
		return ErrRate
	}
	return c.out.Send(b)
}

// Command sends a frame of the game, numbered, and with the epoch and tick that are shown. Fields must not have type,
// seq, epoch or tick.
func (c *Client) Command(typ string, fields state.Object) error {
	c.mu.Lock()
	c.seq++
	b := state.AppendStr([]byte(`{"type":`), typ)
	b = state.OfInt(c.seq).AppendJSON(append(b, `,"seq":`...))
	if s := c.shown; s != nil {
		b = state.OfInt(s.Epoch).AppendJSON(append(b, `,"epoch":`...))
		b = state.OfInt(s.Tick).AppendJSON(append(b, `,"tick":`...))
	}
	c.mu.Unlock()
	return c.send(append(state.AppendFull(b, fields), '}'))
}

// Chat says something to all.
func (c *Client) Chat(text string) error {
	return c.send(append(state.AppendStr([]byte(`{"type":"chat","text":`), text), '}'))
}

// Ping points at where we are: here, help or ball.
func (c *Client) Ping(kind string) error {
	return c.send(append(state.AppendStr([]byte(`{"type":"ping","kind":`), kind), '}'))
}

// Lock keeps others out of the room. Only the leader may.
func (c *Client) Lock(locked bool) error {
	return c.send(append(state.OfBool(locked).AppendJSON([]byte(`{"type":"moderate","action":"lock","locked":`)), '}'))
}

// Kick sends somebody away. Only the leader may.
func (c *Client) Kick(id string) error {
	return c.send(append(state.AppendStr([]byte(`{"type":"moderate","action":"kick","playerId":`), id), '}'))
}

// Ban sends somebody away for good. Only the leader may.
func (c *Client) Ban(id string) error {
	return c.send(append(state.AppendStr([]byte(`{"type":"moderate","action":"ban","playerId":`), id), '}'))
}

// Leave gives our place up and waits until the room knows, or ctx ends.
func (c *Client) Leave(ctx context.Context) error {
	if err := c.send([]byte(`{"type":"leave"}`)); err != nil {
		c.Close()
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		c.Close()
		return ctx.Err()
	}
}

// Typed is a client of one game.
type Typed[T any] struct {
	*Client
	decode func(state.Object) (T, error)
}

// Of turns a client that knows no game into one of a game.
func Of[T any](c *Client, decode func(state.Object) (T, error)) *Typed[T] {
	return &Typed[T]{c, decode}
}

// State returns the present state, as the game has it. ok is false where there is nothing yet.
func (t *Typed[T]) State() (game T, ok bool, err error) {
	s := t.Shown()
	if s == nil {
		return game, false, nil
	}
	game, err = t.decode(s.State)
	return game, err == nil, err
}
