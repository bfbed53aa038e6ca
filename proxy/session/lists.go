package session

import (
	"sync"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/proto"
)

// watchers are all observers. Each is shown what it wants, and nothing that only others want.
type watchers struct {
	list []Watch
	done sync.Map // *proto.Version to []*wants, in the order of list; what a Watch wants of a version never changes
}

// wants says which packets one Watch wants, by whether it is the state Play, by direction and by packet.
type wants [2][2][256]bool

func (w *wants) has(s proto.State, d proto.Dir, p proto.Packet) bool {
	return w[index(s == proto.Play)][index(d == proto.Serverbound)][p]
}

func index(second bool) int {
	if second {
		return 1
	}
	return 0
}

// wants lists the packets that any of them wants.
func (w *watchers) wants(v *proto.Version, s proto.State, d proto.Dir) (all []proto.Packet) {
	for _, one := range w.list {
		all = append(all, one.Wants(v, s, d)...)
	}
	return all
}

// watch returns the observers of a player, nil if there are none.
func (w *watchers) watch(p Player, v *proto.Version) Observer {
	var all observers
	for i, one := range w.list {
		if o := one.Watch(p); o != nil {
			all = append(all, observer{o, w.of(v)[i]})
		}
	}
	switch {
	case all == nil:
		return nil
	case len(w.list) == 1:
		return all[0].Observer
	}
	return all
}

// of returns what each of them wants of a version.
func (w *watchers) of(v *proto.Version) []*wants {
	if done, ok := w.done.Load(v); ok {
		return done.([]*wants)
	}
	all := make([]*wants, len(w.list))
	for i, one := range w.list {
		all[i] = new(wants)
		for _, s := range []proto.State{proto.Config, proto.Play} {
			for _, d := range []proto.Dir{proto.Clientbound, proto.Serverbound} {
				for _, p := range one.Wants(v, s, d) {
					all[i][index(s == proto.Play)][index(d == proto.Serverbound)][p] = true
				}
			}
		}
	}
	done, _ := w.done.LoadOrStore(v, all)
	return done.([]*wants)
}

// observers observe one player.
type observers []observer

type observer struct {
	Observer
	wants *wants
}

func (all observers) Backend(name string, id uuid.UUID) {
	for _, o := range all {
		o.Observer.Backend(name, id)
	}
}

func (all observers) Clientbound(s proto.State, p proto.Packet, body []byte) {
	for _, o := range all {
		if o.wants.has(s, proto.Clientbound, p) {
			o.Observer.Clientbound(s, p, body)
		}
	}
}

func (all observers) Serverbound(s proto.State, p proto.Packet, body []byte) {
	for _, o := range all {
		if o.wants.has(s, proto.Serverbound, p) {
			o.Observer.Serverbound(s, p, body)
		}
	}
}

// Close closes all of them, even when one panics.
func (all observers) Close() {
	if len(all) > 0 {
		defer all[1:].Close()
		all[0].Observer.Close()
	}
}

// owners are all owners of plugin channels. Of two that own the same one, the first gets its messages.
type owners []Channels

// of returns the owner of a channel, or nil.
func (all owners) of(channel []byte) Channels {
	for _, c := range all {
		if c.Owns(string(channel)) {
			return c
		}
	}
	return nil
}

func (all owners) registered(p Player, channels []string) {
	for _, c := range all {
		c.Registered(p, channels)
	}
}

func (all owners) joined(p Player) {
	for _, c := range all {
		c.Joined(p)
	}
}

// left tells all of them, even when one panics.
func (all owners) left(p Player) {
	if len(all) > 0 {
		defer all[1:].left(p)
		all[0].Left(p)
	}
}
