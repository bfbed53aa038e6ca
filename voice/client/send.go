package client

import (
	"bytes"
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gobwas/ws"

	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/opus"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/wire"
)

type message struct {
	op      ws.OpCode
	payload []byte
}

// Begin starts a speech segment: a fresh stream, its sequence from zero, and an encoder without a past.
func (c *Client) Begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begin()
}

func (c *Client) begin() error {
	c.stream, c.seq = newStream(), 0
	if c.enc == nil {
		return nil // made by the first Speak
	}
	return c.enc.Reset()
}

// newStream returns a random positive stream ID.
func newStream() int64 {
	for {
		var b [8]byte
		crand.Read(b[:])
		if id := int64(binary.BigEndian.Uint64(b[:]) >> 1); id > 0 {
			return id
		}
	}
}

// Speak sends 20 ms of sound, opus.FrameSize samples, in the current segment; the first call begins one. When the
// outgoing queue is full the frame is dropped and counted, and its sequence number is gone.
func (c *Client) Speak(pcm []int16) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.enc == nil {
		enc, err := opus.NewEncoder()
		if err != nil {
			return err
		}
		c.enc = enc
	}
	packet, err := c.enc.Encode(pcm, make([]byte, 0, opus.MaxPacket))
	if err != nil {
		return err
	}
	return c.send(packet)
}

// SendOpus does as Speak, for encoded sound: 1 to 1275 bytes.
func (c *Client) SendOpus(packet []byte) error {
	if err := checkSize(packet); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.send(packet)
}

func checkSize(packet []byte) error {
	if len(packet) == 0 || len(packet) > wire.MaxOpus {
		return fmt.Errorf("voice: an opus packet has 1 to %d bytes, not %d", wire.MaxOpus, len(packet))
	}
	return nil
}

func (c *Client) send(packet []byte) error {
	if c.stream == 0 {
		if err := c.begin(); err != nil {
			return err
		}
	}
	seq := c.seq
	c.seq++ // before the queue, so that a drop is a gap
	return c.transmit(wire.C2S{Source: wire.Mic, Stream: c.stream, Seq: seq, Opus: packet})
}

// transmit queues one frame, or counts it as dropped. c.mu is held.
func (c *Client) transmit(f wire.C2S) error {
	b := wire.AppendC2S(make([]byte, 0, wire.HeadC2SBoard+len(f.Opus)), c2sFormat(c.caps), &f)
	ok, err := c.enqueue(message{ws.OpBinary, b})
	if err != nil {
		return err
	}
	c.frames++
	if !ok {
		c.dropped++
	}
	return nil
}

// SendBinary sends a message as it is, for tests of servers; false when the queue is full.
func (c *Client) SendBinary(b []byte) (bool, error) {
	return c.enqueue(message{ws.OpBinary, bytes.Clone(b)})
}

// SendText does as SendBinary, for text.
func (c *Client) SendText(s string) (bool, error) {
	return c.enqueue(message{ws.OpText, []byte(s)})
}

func (c *Client) enqueue(m message) (bool, error) {
	select {
	case <-c.cancel:
		return false, ErrClosed
	case <-c.closing:
		return false, ErrClosed
	default:
	}
	select {
	case c.queue <- m:
		return true, nil
	default:
		return false, nil
	}
}

// SetDeafened stops or resumes all sound here at once, and tells the server where it understands: at most once a
// second, the latest state.
func (c *Client) SetDeafened(on bool) {
	c.recv.setDeafened(on)
	c.want(&c.deafen, deafenLine(on))
}

// SetTier sets how loudly the player speaks from now on. The server hears the latest tier, at most ten times a second.
func (c *Client) SetTier(t talk.Tier) { c.want(&c.tier, tierLine(t)) }

func (c *Client) want(l *latest, text string) {
	c.mu.Lock()
	l.want = text
	c.mu.Unlock()
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

func deafenLine(on bool) string {
	return string(line.AppendC2S(nil, &line.C2S{Request: line.Deafen, Deafened: on}))
}

func tierLine(t talk.Tier) string {
	return string(line.AppendC2S(nil, &line.C2S{Request: line.Range, Tier: t}))
}

// latest is a piece of state for the server, as a line.
type latest struct {
	want, sent string
	every      time.Duration // least time between two lines
	at         time.Time     // of the last line
}

// due returns the line to send now, or how long to wait until there is one; 0 when the server knows already.
func (l *latest) due(now time.Time) (text string, wait time.Duration) {
	if l.want == l.sent {
		return "", 0
	}
	if wait = l.at.Add(l.every).Sub(now); wait > 0 {
		return "", wait
	}
	l.sent, l.at = l.want, now
	return l.want, 0
}

// write runs the one goroutine that writes. Everything gathered goes out in one write.
func (c *Client) write() error {
	defer c.end()
	var out bytes.Buffer
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	sweep := time.NewTicker(time.Second)
	defer sweep.Stop()
	timer := time.NewTimer(0) // the next control line
	defer timer.Stop()
	for {
		select {
		case m := <-c.queue:
			put(&out, m)
			for range len(c.queue) {
				put(&out, <-c.queue)
			}
		case p := <-c.pongs:
			put(&out, message{ws.OpPong, p})
		case now := <-sweep.C:
			c.recv.expire(now)
		case <-tick.C:
			put(&out, message{ws.OpPing, nil})
		case <-c.poke:
		case <-timer.C:
		case <-c.closing:
			for range len(c.queue) { // earlier frames are still heard after Close
				put(&out, <-c.queue)
			}
			put(&out, message{ws.OpClose, ws.NewCloseFrameBody(ws.StatusNormalClosure, "")})
			return c.flush(&out)
		case <-c.cancel:
			return nil
		}
		if wait := c.controls(&out, time.Now()); wait > 0 {
			timer.Reset(wait)
		}
		if err := c.flush(&out); err != nil {
			return err
		}
	}
}

// end gives the reader a last second: for the answer to our close frame, or for the server's, if that is why writing
// failed.
func (c *Client) end() {
	c.endBy = time.Now().Add(endWithin)
	close(c.ending)
	c.conn.SetReadDeadline(c.endBy)
}

// controls writes the control lines that are due and returns when to come back.
func (c *Client) controls(out *bytes.Buffer, now time.Time) (wait time.Duration) {
	if c.caps.Status == 0 {
		return 0 // an older server would close the connection
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range []*latest{&c.deafen, &c.tier} {
		text, w := l.due(now)
		if text != "" {
			put(out, message{ws.OpText, []byte(text)})
		}
		if w > 0 && (wait == 0 || w < wait) {
			wait = w
		}
	}
	return wait
}

// put frames m behind out, masking it in place.
func put(out *bytes.Buffer, m message) {
	ws.WriteFrame(out, ws.MaskFrameInPlace(ws.NewFrame(m.op, true, m.payload))) // to memory
}

func (c *Client) flush(out *bytes.Buffer) error {
	if out.Len() == 0 {
		return nil
	}
	c.conn.SetWriteDeadline(time.Now().Add(writeWithin))
	select {
	case <-c.cancel: // whose shorter deadline must stay
		c.conn.SetWriteDeadline(time.Now().Add(endWithin))
	default:
	}
	_, err := c.conn.Write(out.Bytes())
	out.Reset()
	return err
}
