package client

import (
	"errors"
	"time"

	"github.com/earshot-mc/earshot/voice/opus"
	"github.com/earshot-mc/earshot/voice/wire"
)

// Bounds of the soundboard that the protocol sets.
const (
	maxClips  = 10                     // at once, of version 2
	clipEvery = 300 * time.Millisecond // between the starts of two, in version 1
)

// ErrCooldown refuses a clip when the last one has only just begun.
var ErrCooldown = errors.New("voice: a clip began less than 300 ms ago")

// ErrClipOver is the error of sending for a clip that has ended, by End or because another one took its place.
var ErrClipOver = errors.New("voice: the clip is over")

// A Clip is one sound of the soundboard: a stream beside the microphone's.
type Clip struct {
	c           *Client
	stream, seq int64
	enc         *opus.Encoder
	over        bool // with c.mu
}

// StartClip begins a clip. With soundboard 2 up to ten go on at once, and the eleventh ends the oldest; with soundboard
// 1 the new one ends the former, and may not begin within 300 ms of it. Where the server granted neither, the
// microphone carries the clip, as a segment of its own.
func (c *Client) StartClip() (*Clip, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	most := 1
	switch c.caps.Soundboard {
	case 1:
		if now.Sub(c.clipAt) < clipEvery {
			return nil, ErrCooldown
		}
	case 2:
		most = maxClips
	}
	if len(c.clips) == most {
		c.clips[0].end()
	}
	k := &Clip{c: c, stream: newStream()}
	if c.caps.Soundboard == 0 {
		if err := c.begin(); err != nil {
			return nil, err
		}
	}
	c.clips, c.clipAt = append(c.clips, k), now
	return k, nil
}

// End ends the clip. It says nothing to the server: a stream that ends just stops.
func (k *Clip) End() {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	k.end()
}

func (k *Clip) end() {
	for i, o := range k.c.clips {
		if o == k {
			k.c.clips = append(k.c.clips[:i], k.c.clips[i+1:]...)
			break
		}
	}
	k.over = true
}

// Speak sends 20 ms of the clip, opus.FrameSize samples.
func (k *Clip) Speak(pcm []int16) error {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	if k.enc == nil {
		enc, err := opus.NewEncoder()
		if err != nil {
			return err
		}
		k.enc = enc
	}
	packet, err := k.enc.Encode(pcm, make([]byte, 0, opus.MaxPacket))
	if err != nil {
		return err
	}
	return k.send(packet)
}

// SendOpus does as Speak, for encoded sound: 1 to 1275 bytes.
func (k *Clip) SendOpus(packet []byte) error {
	if err := checkSize(packet); err != nil {
		return err
	}
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return k.send(packet)
}

func (k *Clip) send(packet []byte) error {
	if k.over {
		return ErrClipOver
	}
	if k.c.caps.Soundboard == 0 {
		return k.c.send(packet)
	}
	seq := k.seq
	k.seq++ // before the queue, so that a drop is a gap
	return k.c.transmit(wire.C2S{Source: wire.Board, Stream: k.stream, Seq: seq, Opus: packet})
}
