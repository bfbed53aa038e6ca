package speaker

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/route"
)

// Channel is one speaker. Make one with [Set.Open].
type Channel struct {
	set  *Set
	id   uuid.UUID
	spec Spec // with the set's lock
	loud atomic.Pointer[route.Loud]

	mu    sync.Mutex
	out   *route.ChannelSource // nil once it is closed
	input *Input               // the present sound, or nil
}

// ID returns the channel's id; clients know it by that.
func (c *Channel) ID() uuid.UUID { return c.id }

// Spec returns what the channel is now.
func (c *Channel) Spec() Spec {
	c.set.mu.Lock()
	defer c.set.mu.Unlock()
	spec := c.spec
	spec.Allow = slices.Clone(spec.Allow)
	return spec
}

// Change makes the channel another one, with the same id: that of the spec has to be the channel's, or zero. Its sound
// goes on.
func (c *Channel) Change(spec Spec) error {
	if spec.ID == uuid.Nil {
		spec.ID = c.id
	}
	if spec.ID != c.id {
		return fmt.Errorf("speaker: the id of a channel does not change from %v to %v; open another one", c.id, spec.ID)
	}
	if err := spec.check(); err != nil {
		return err
	}
	c.set.mu.Lock()
	defer c.set.mu.Unlock()
	if c.set.channels[c.id] != c {
		return ErrClosed
	}
	c.become(spec)
	return nil
}

// become takes a spec over. The set's lock is held.
func (c *Channel) become(spec Spec) {
	spec.Allow = slices.Clone(spec.Allow)
	loud := &route.Loud{
		Place: c.set.cfg.Place(spec.Backend, spec.World), X: spec.X, Y: spec.Y, Z: spec.Z, Volume: spec.Volume, Range: spec.Range,
	}
	if spec.Allow != nil {
		loud.Allow = make(map[uuid.UUID]struct{}, len(spec.Allow))
		for _, id := range spec.Allow {
			loud.Allow[id] = struct{}{}
		}
	}
	c.spec = spec
	c.loud.Store(loud)
	c.set.changed()
}

// Input returns the present sound, or nil.
func (c *Channel) Input() *Input {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.input
}

// Retracter is a [route.Receiver] that can take back its queued frames of a channel.
type Retracter interface{ Retract(channel uuid.UUID) }

// Close ends the sound, takes back the queued frames and forgets the channel. It waits as little as [Input.Stop] does.
// The next snapshot lacks it. Frames at clients still play out: there is no message that stops them.
func (c *Channel) Close() {
	s := c.set
	s.mu.Lock()
	if s.channels[c.id] != c {
		s.mu.Unlock()
		return
	}
	delete(s.channels, c.id)
	s.order = slices.DeleteFunc(s.order, func(o *Channel) bool { return o == c })
	s.changed()
	c.mu.Lock()
	in := c.input
	c.input, c.out = nil, nil
	c.mu.Unlock()
	s.index()
	s.mu.Unlock()
	if in != nil {
		in.end(ErrStopped)
	}
	c.retract()
}

// retract takes back the queued frames.
func (c *Channel) retract() {
	c.set.cfg.Table().Each(func(r route.Receiver) {
		if r, ok := r.(Retracter); ok {
			r.Retract(c.id)
		}
	})
}
