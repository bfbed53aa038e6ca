package speaker

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/wire"
)

// FrameTime is how long one frame sounds.
const FrameTime = 20 * time.Millisecond

// late bounds how far the pace may fall behind and still catch up; beyond that, missed frames are given up. A busy
// machine wakes us late by some 100 ms again and again, and a song must not lose its words to that.
const late = time.Second

// ErrStopped is the end of an input before its sound was over: by Stop, another input, or Close.
var ErrStopped = errors.New("speaker: stopped")

// errNoFrame is the error of a packet that must not be sent.
var errNoFrame = fmt.Errorf("speaker: a packet has to be one 20 ms mono Opus frame of 1 to %d bytes", wire.MaxOpus)

// Frames is a row of Opus packets, each one 20 ms mono frame.
type Frames interface {
	// Next appends the next packet to dst, which has the room, and returns it. Nothing appended is 20 ms without sound,
	// and [io.EOF] the end. It is called every 20 ms and may take a part of that, but must not wait. Frames that are
	// also an [io.Closer] are closed when they are no longer played.
	Next(dst []byte) ([]byte, error)
}

// Input is something that a channel plays, or has played. A channel plays one at a time: the next one ends it, and
// every listener gets a new stream.
type Input struct {
	c      *Channel
	origin uuid.UUID // of a relay
	paced  bool      // a goroutine plays it

	once sync.Once
	quit chan struct{}
	why  error // set before quit is closed
	done chan struct{}
	err  error // set before done is closed

	// With the channel's lock.
	seq  int64
	from *route.Member // of a relay: the member of the last frame
}

// Done returns a channel that is closed when the input has ended.
func (in *Input) Done() <-chan struct{} { return in.done }

// Err waits for the end and returns its reason: nil when all has been played, [ErrStopped], or the fault of the source.
func (in *Input) Err() error {
	<-in.done
	return in.err
}

// Stop ends the input and takes back its queued frames. Nothing of it is sent afterwards. It does not wait for a source
// that is slow to give its next frame; [Input.Err] does.
func (in *Input) Stop() {
	played := in.leave()
	in.end(ErrStopped)
	if played {
		in.c.retract()
	}
}

// Origin returns the player that the input's sound comes from, or zero.
func (in *Input) Origin() uuid.UUID { return in.origin }

// Play plays frames, one every 20 ms.
func (c *Channel) Play(f Frames) (*Input, error) {
	in := c.newInput(uuid.Nil)
	in.paced = true
	// Count it before the set can be closed.
	err := c.start(in, func() {
		c.set.running.Go(func() {
			err := in.play(f)
			in.leave()
			if closer, ok := f.(io.Closer); ok {
				if bad := closer.Close(); bad != nil && err == nil {
					err = fmt.Errorf("speaker: %w", bad)
				}
			}
			in.err = err
			close(in.done)
		})
	})
	if err != nil {
		return nil, err
	}
	return in, nil
}

// PlayPCM plays samples, which e encodes. The encoder is the input's from now on.
func (c *Channel) PlayPCM(s Samples, e Encoder) (*Input, error) { return c.Play(Encode(s, e)) }

// Relay plays a player's microphone from now on, whenever the player speaks and wherever they are.
func (c *Channel) Relay(origin uuid.UUID) (*Input, error) {
	if origin == uuid.Nil {
		return nil, errors.New("speaker: a relay needs a player's id")
	}
	in := c.newInput(origin)
	if err := c.start(in, func() {}); err != nil {
		return nil, err
	}
	return in, nil
}

// Live is an input that sends frames the moment they come.
type Live struct{ *Input }

// Live plays the packets that are sent through it.
func (c *Channel) Live() (Live, error) {
	in := c.newInput(uuid.Nil)
	return Live{in}, c.start(in, func() {})
}

// Send sends one packet and returns the number of its listeners. Keeping the pace is up to the caller. The bytes are
// not kept.
func (l Live) Send(opus []byte) (delivered int, err error) {
	if !wire.OpusOK(opus) {
		return 0, errNoFrame
	}
	delivered, on := l.send(opus)
	if !on {
		return 0, ErrStopped
	}
	return delivered, nil
}

func (c *Channel) newInput(origin uuid.UUID) *Input {
	return &Input{c: c, origin: origin, quit: make(chan struct{}), done: make(chan struct{})}
}

// start makes in the channel's input in place of the present one, and calls begin unless the channel is closed.
func (c *Channel) start(in *Input, begin func()) error {
	s := c.set
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mu.Lock()
	if c.out == nil {
		c.mu.Unlock()
		return ErrClosed
	}
	old := c.input
	c.input = in
	c.out.Restart()
	c.mu.Unlock()
	begin()
	s.index()
	if old != nil {
		old.end(ErrStopped)
	}
	return nil
}

// leave takes the input off its channel, and tells whether it was there.
func (in *Input) leave() (was bool) {
	s, c := in.c.set, in.c
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mu.Lock()
	if was = c.input == in; was {
		c.input = nil
	}
	c.mu.Unlock()
	s.index()
	return was
}

// end tells the input to end.
func (in *Input) end(why error) {
	in.once.Do(func() {
		in.why = why
		close(in.quit)
		if !in.paced {
			in.err = why
			close(in.done)
		}
	})
}

// index finds the relays. s.mu is held.
func (s *Set) index() {
	relays := make(map[uuid.UUID][]*Input)
	for _, c := range s.order {
		if in := c.Input(); in != nil && in.origin != uuid.Nil {
			relays[in.origin] = append(relays[in.origin], in)
		}
	}
	if len(relays) == 0 {
		s.relays.Store(nil)
		return
	}
	s.relays.Store(&relays)
}

// play sends the frames at their pace.
func (in *Input) play(f Frames) error {
	var room [wire.MaxOpus]byte
	next := time.Now()
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-in.quit:
			return in.why
		case <-tick.C:
		}
		packet, err := f.Next(room[:0])
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("speaker: %w", err)
		case len(packet) == 0:
		case !wire.OpusOK(packet):
			return errNoFrame
		default:
			if _, on := in.send(packet); !on {
				<-in.quit
				return in.why
			}
		}
		next = next.Add(FrameTime)
		if now := time.Now(); now.Sub(next) > late {
			next = now
		}
		tick.Reset(time.Until(next))
	}
}

// send sends a frame of the server's own sound. on is false when the channel plays something else by now.
func (in *Input) send(opus []byte) (delivered int, on bool) {
	c := in.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.input != in {
		return 0, false
	}
	in.seq++
	return c.deliver(nil, 1, in.seq-1, opus), true
}

// relay sends a frame of the origin's microphone.
func (in *Input) relay(from *route.Member, stream, seq int64, opus []byte) {
	c := in.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.input != in {
		return
	}
	if in.from != from { // another connection with streams of its own
		in.from = from
		c.out.Restart()
	}
	if stream == 0 { // a legacy client: nobody knows what it lost
		stream, seq = 1, in.seq
		in.seq++
	}
	c.deliver(from, stream, seq, opus)
}

// deliver sends a frame out, and nothing else does. c.mu is held, and the channel is open.
func (c *Channel) deliver(origin *route.Member, stream, seq int64, opus []byte) int {
	n := c.out.Send(c.set.cfg.Table(), c.loud.Load(), origin, stream, seq, opus)
	if n > 0 {
		c.set.delivered.Add(uint64(n))
	}
	return n
}
