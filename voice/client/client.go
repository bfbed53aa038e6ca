// Package client is a voice client: for bots, tests and benchmarks, and the other end against which the server's
// protocol is proved. It keeps every rule that binds a client: it uses only what the server granted, numbers its frames
// before they can be dropped, and hears gaps only where they are proven.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gobwas/ws"
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/opus"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/wire"
)

// Config says where to connect, what to ask for, and who listens. Only URL, Token and Player are needed. The callbacks
// must not block. Each is called one at a time, and Close must not be called from them.
type Config struct {
	URL    string // base URL as the handshake gives it: ws, wss, http or https
	Token  string
	Player uuid.UUID

	Ask         caps.Set // zero: plain v1
	Subprotocol bool     // ask as a browser does, not by headers
	Header      map[string][]string
	TLS         *tls.Config
	Dial        func(ctx context.Context, network, addr string) (net.Conn, error) // nil: TCP

	Deafened bool // from the start; sent once the server is known to understand it
	Queue    int  // outgoing messages; 0: DefaultQueue

	// Jitter is how many frames of a source wait before they are played, one per 20 ms; 0 hands each frame on as it
	// comes.
	Jitter   int
	NoDecode bool // Sound.PCM stays nil; gaps are counted, nothing is concealed

	Volumes *Volumes // for Sound.Volume; nil: all 1

	Sound    func(Sound)
	Roster   func(*line.Roster)
	Pose     func(*line.Pose)
	Speakers func(*line.Speakers)
	Text     func(string) // every other text, as it is
}

// DefaultQueue is one second of speech.
const DefaultQueue = 50

// Timings that the protocol or this product fixes.
const (
	pingEvery   = 10 * time.Second
	deadAfter   = 2 * pingEvery
	writeWithin = 10 * time.Second
	endWithin   = time.Second // for the other side's part of closing
	deafenEvery = time.Second
	tierEvery   = 100 * time.Millisecond
)

// Closed says how the server ended the connection.
type Closed struct {
	Code   int // 1005 when it gave none
	Reason string
}

// Error implements error.
func (c *Closed) Error() string {
	return fmt.Sprintf("voice: the server closed the connection: %d %s", c.Code, c.Reason)
}

// ErrClosed is the error of Wait, and of sending, after Close.
var ErrClosed = errors.New("voice: client closed")

// A Client is one voice connection. Its methods may be called by any goroutine.
type Client struct {
	cfg  Config
	conn net.Conn
	caps caps.Set
	recv receiver
	in   *inbox

	queue   chan message
	poke    chan struct{} // a control line changed
	pongs   chan []byte
	closing chan struct{} // Close was called
	ending  chan struct{} // nothing more will be written; the reader has until endBy
	cancel  chan struct{} // the reader is done
	done    chan struct{}
	once    sync.Once
	endBy   time.Time // set before ending is closed
	err     error     // set before done is closed

	mu       sync.Mutex
	enc      *opus.Encoder
	stream   int64 // 0: no segment begun
	seq      int64
	frames   uint64 // sent or dropped
	dropped  uint64
	deafen   latest
	tier     latest
	clips    []*Clip   // that go on, oldest first
	clipAt   time.Time // when the last one began
	roster   *line.Roster
	roll     roll // of roster 2
	pose     *line.Pose
	speakers *line.Speakers
	groups   *line.Groups
	groupsAt time.Time // when they came; see the seconds in them
	mute     line.Mute
	muteAt   time.Time
	ranges   line.Ranges
	badText  uint64
}

// Dial connects and upgrades. A refusal over HTTP is a *Refused. ctx bounds only the dialing.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	if cfg.Queue == 0 {
		cfg.Queue = DefaultQueue
	}
	conn, br, granted, err := upgrade(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, conn: conn, caps: granted, in: newInbox(conn, br, granted.Roster == 2),
		queue: make(chan message, cfg.Queue), poke: make(chan struct{}, 1), pongs: make(chan []byte, 1),
		closing: make(chan struct{}), ending: make(chan struct{}), cancel: make(chan struct{}), done: make(chan struct{}),
		deafen: latest{want: deafenLine(cfg.Deafened), sent: deafenLine(false), every: deafenEvery},
		tier:   latest{want: tierLine(talk.Normal), sent: tierLine(talk.Normal), every: tierEvery},
	}
	c.recv.init(s2cFormat(granted), granted.Soundboard != 0, cfg)
	go c.run()
	return c, nil
}

// Caps returns what the server granted.
func (c *Client) Caps() caps.Set { return c.caps }

// Done returns a channel that is closed when the connection is over and nothing is running any more.
func (c *Client) Done() <-chan struct{} { return c.done }

// Wait waits for the end and returns its reason: a *Closed, ErrClosed, or a fault.
func (c *Client) Wait() error {
	<-c.done
	return c.err
}

// Close says goodbye to the server, ends the connection and waits for the end.
func (c *Client) Close() {
	c.once.Do(func() { close(c.closing) })
	<-c.done
}

// Roster returns the latest roster. It is nil before the first and, like all news of the server, when the connection is
// over.
func (c *Client) Roster() *line.Roster {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.roster
}

// Pose returns where the server says that the player is, nil before it does.
func (c *Client) Pose() *line.Pose {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pose
}

// Speakers returns the server's named speakers, nil before it names them.
func (c *Client) Speakers() *line.Speakers {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.speakers
}

// Counters returns the counts so far.
func (c *Client) Counters() Counters {
	n := c.recv.counters()
	c.mu.Lock()
	defer c.mu.Unlock()
	n.Sent, n.SendDropped, n.BadText = c.frames-c.dropped, c.dropped, c.badText
	return n
}

// run owns the connection: it reads, and ends everything else when that ends.
func (c *Client) run() {
	var others sync.WaitGroup
	var failed error // of writing
	others.Go(func() { failed = c.write() })
	if c.cfg.Jitter > 0 {
		others.Go(c.play)
	}
	err := c.read()
	close(c.cancel)
	c.conn.SetWriteDeadline(time.Now().Add(endWithin)) // free a stuck writer
	others.Wait()
	var closed *Closed
	switch byServer := errors.As(err, &closed); {
	case c.isClosing() && (!byServer || closed.Code == int(ws.StatusNormalClosure)):
		err = ErrClosed
	case failed != nil && !byServer: // else the server had said why before it stopped reading
		err = fmt.Errorf("voice: write: %w", failed)
	default:
		c.goodbye(err)
	}
	c.conn.Close()
	c.forget()
	c.err = err
	close(c.done)
}

// forget drops the server's news, which holds no longer.
func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roster, c.pose, c.speakers, c.groups = nil, nil, nil, nil
	c.mute, c.ranges, c.roll = line.Mute{}, line.Ranges{}, roll{}
}

func (c *Client) isClosing() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// goodbye answers a close frame, or says why we close.
func (c *Client) goodbye(err error) {
	var closed *Closed
	var bad ws.ProtocolError
	var body []byte
	switch {
	case errors.As(err, &closed) && closed.Code == int(ws.StatusNoStatusRcvd):
	case errors.As(err, &closed):
		body = ws.NewCloseFrameBody(ws.StatusCode(closed.Code), "")
	case errors.As(err, &bad):
		body = ws.NewCloseFrameBody(ws.StatusProtocolError, "")
	case errors.Is(err, errTooBig):
		body = ws.NewCloseFrameBody(ws.StatusMessageTooBig, "")
	default:
		return // the connection is broken
	}
	b, _ := ws.CompileFrame(ws.MaskFrameInPlace(ws.NewCloseFrame(body)))
	c.conn.SetWriteDeadline(time.Now().Add(endWithin))
	c.conn.Write(b)
}

// read takes messages until the connection ends.
func (c *Client) read() error {
	for {
		c.conn.SetReadDeadline(time.Now().Add(deadAfter))
		select {
		case <-c.ending: // and its deadline must stay
			c.conn.SetReadDeadline(c.endBy)
		default:
		}
		op, payload, err := c.in.next()
		if err != nil {
			return err
		}
		switch op {
		case ws.OpPing:
			c.pong(payload)
		case ws.OpBinary:
			c.recv.frame(time.Now(), payload)
		case ws.OpText:
			c.text(payload)
		}
	}
}

// pong asks the writer to answer a ping; only the latest needs an answer.
func (c *Client) pong(payload []byte) {
	p := append([]byte(nil), payload...)
	for {
		select {
		case c.pongs <- p:
			return
		default:
		}
		select {
		case <-c.pongs:
		default:
		}
	}
}

func (c *Client) text(b []byte) {
	v, err := line.ParseS2C(b)
	c.mu.Lock()
	if changes, ok := v.(*line.Changes); ok && c.caps.Roster == 2 {
		var r *line.Roster
		if r, err = c.roll.apply(changes); err == nil {
			v = r
		}
	}
	switch v := v.(type) {
	case *line.Roster:
		c.roster = v
	case *line.Pose:
		if c.caps.Pose != 0 {
			c.pose = v
		}
	case *line.Speakers:
		if c.caps.Speakers != 0 {
			c.speakers = v
		}
	default:
		c.control(v)
	}
	if err != nil {
		c.badText++
	}
	c.mu.Unlock()
	switch v := v.(type) {
	case *line.Roster:
		if c.cfg.Roster != nil {
			c.cfg.Roster(v)
		}
	case *line.Pose:
		if c.cfg.Pose != nil && c.caps.Pose != 0 {
			c.cfg.Pose(v)
		}
	case *line.Speakers:
		if c.cfg.Speakers != nil && c.caps.Speakers != 0 {
			c.cfg.Speakers(v)
		}
	case *line.Changes: // not negotiated, or of another roster
	default:
		if c.cfg.Text != nil && err == nil {
			c.cfg.Text(string(b))
		}
	}
}

// play takes frames out of the jitter queues in real time.
func (c *Client) play() {
	tick := time.NewTicker(frameTime)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			c.recv.tick(now)
		case <-c.cancel:
			return
		}
	}
}

func s2cFormat(s caps.Set) wire.S2CFormat {
	switch {
	case s.Spatial != 0:
		return wire.S2CSpatial
	case s.Audio == 2:
		return wire.S2CV2
	}
	return wire.S2CV1
}

func c2sFormat(s caps.Set) wire.C2SFormat {
	switch {
	case s.Soundboard != 0:
		return wire.C2SBoard
	case s.Audio == 2:
		return wire.C2SV2
	}
	return wire.C2SV1
}
