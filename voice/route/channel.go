package route

import (
	"math/bits"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
)

// Loud says where a channel sounds and how far.
type Loud struct {
	Place   *world.Place
	X, Y, Z float64
	Volume  float64                // 0 to 1
	Range   float64                // blocks at which it has faded to nothing
	Allow   map[uuid.UUID]struct{} // nobody else hears it; nil: everybody
}

// ChannelSource is the sound of one speaker channel. Only one goroutine at a time may call its methods.
type ChannelSource struct {
	streams
	frame Frame
}

// NewChannel returns the sound of a channel.
func NewChannel(id uuid.UUID) *ChannelSource {
	return &ChannelSource{frame: Frame{Kind: Channel, Channel: id}}
}

// Restart makes the next frame the first of a stream for every listener: another sound begins.
func (c *ChannelSource) Restart() { c.count++ }

// Send delivers one frame and returns the number of its listeners: those in the place and in range who take channels,
// are not deafened and are allowed. With an origin the frame comes from that member's microphone: it carries the
// origin's UUID, and is kept from the origin and from all who may not hear the origin, wherever that one is. stream
// must be positive; streams, and when a listener gets a new one, are as in [Source.Send].
func (c *ChannelSource) Send(t *Table, at *Loud, origin *Member, stream, seq int64, opus []byte) (delivered int) {
	c.next(stream)
	if t == nil {
		return 0
	}
	ears, may := t.channels[at.Place], set(nil)
	f := &c.frame
	f.Talker = uuid.Nil
	if origin != nil {
		slot := origin.Slot()
		if slot < 0 || slot >= len(t.rows) || t.rows[slot] == nil || t.rows[slot].member != origin {
			return 0
		}
		if may = t.rows[slot].may; may == nil || t.rows[slot].deny[Voice] != Routed {
			return 0 // nobody knows where the origin is, or it may not be heard at all
		}
		f.Talker = origin.Player.ID
	}
	f.Seq, f.Opus = seq, opus
	for i, word := range ears {
		if may != nil {
			word &= may[i]
		}
		for ; word != 0; word &= word - 1 {
			slot := i*64 + bits.TrailingZeros64(word)
			p := t.players[slot]
			ear := p.Pose()
			if ear == nil || ear.Place.Whole() != at.Place {
				continue
			}
			dx, dy, dz := at.X-ear.X, at.Y-ear.Y, at.Z-ear.Z
			if f.Gain = gain.Level(at.Volume, dx*dx+dy*dy+dz*dz, at.Range); f.Gain == 0 {
				continue
			}
			if at.Allow != nil {
				if _, ok := at.Allow[p.ID]; !ok {
					continue
				}
			}
			l := &t.listeners[slot]
			f.DX, f.DZ = float32(dx), float32(dz)
			f.Stream = c.to(slot, l.epoch)
			l.receiver.Deliver(f)
			delivered++
		}
	}
	f.Opus = nil
	return delivered
}

// Each calls do for every receiver in the table, whatever it hears.
func (t *Table) Each(do func(Receiver)) {
	if t == nil {
		return
	}
	for _, l := range t.listeners {
		if l.receiver != nil {
			do(l.receiver)
		}
	}
}
