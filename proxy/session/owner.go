package session

import (
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// owner is a Session as its pumps see it.
type owner Session

var _ relay.Owner = (*owner)(nil)

func (o *owner) Version() *proto.Version     { return o.client.version }
func (o *owner) Events() chan<- *relay.Event { return o.events }
func (o *owner) Undecoded(p proto.Packet)    { (*Session)(o).undecoded(p) }
func (o *owner) Panicked(v any)              { (*Session)(o).panicked(v) }

func (o *owner) Concerns(d proto.Dir, channel []byte, size int) bool {
	return (*Session)(o).concerns(d, channel, size)
}

func (o *owner) Observer() relay.Observer {
	if o.observer == nil {
		return nil
	}
	return o.observer
}
