package session

import (
	"sync"

	"github.com/earshot-mc/earshot/proxy/proto"
)

// class says what the relay does with a packet id besides forwarding it. The zero class is a pass: the frame is never
// opened. Bits combine.
type class uint8

const (
	observed  class = 1 << iota // shown to the observer
	held                        // waits for the owner's decision
	channeled                   // a plugin message: held only when its channel concerns the proxy
	noted                       // changes a flag of the relay itself
	recorded                    // adds to what has to be cleaned away when the player leaves the backend
)

// classes is the class of each id in one state and direction. Ids from 256 on do not exist and pass.
type classes [256]class

// needs is what the proxy itself looks at; who is not listed passes.
var needs = [...]struct {
	state   proto.State
	dir     proto.Dir
	class   class
	packets []proto.Packet
}{
	{proto.Config, proto.Clientbound, held, []proto.Packet{proto.KeepAlive, proto.Disconnect, proto.FinishConfiguration,
		proto.Ping, proto.CookieRequest, proto.StoreCookie, proto.Transfer, proto.ResourcePackSend, proto.AddResourcePack, proto.RemoveResourcePack}},
	{proto.Config, proto.Clientbound, noted, []proto.Packet{proto.RegistryData, proto.SelectKnownPacks, proto.PostEffects}},
	{proto.Config, proto.Serverbound, held, []proto.Packet{proto.KeepAlive, proto.FinishConfiguration, proto.ClientInformation,
		proto.SelectKnownPacks, proto.Pong, proto.CookieResponse, proto.ResourcePackReceive}},
	{proto.Play, proto.Clientbound, held, []proto.Packet{proto.KeepAlive, proto.Disconnect, proto.JoinGame,
		proto.StartConfiguration, proto.SetCompression, proto.ServerData, proto.CookieRequest, proto.StoreCookie, proto.Transfer,
		proto.ResourcePackSend, proto.AddResourcePack, proto.RemoveResourcePack}},
	{proto.Play, proto.Clientbound, noted, []proto.Packet{proto.BundleDelimiter, proto.PostEffects}},
	{proto.Play, proto.Serverbound, held, []proto.Packet{proto.KeepAlive, proto.ConfigurationAcknowledged,
		proto.ClientInformation, proto.ChatSessionUpdate, proto.CookieResponse, proto.ResourcePackReceive}},
	{proto.Config, proto.Clientbound, channeled, []proto.Packet{proto.CustomPayload}},
	{proto.Config, proto.Serverbound, channeled, []proto.Packet{proto.CustomPayload}},
	{proto.Play, proto.Clientbound, channeled, []proto.Packet{proto.CustomPayload}},
	{proto.Play, proto.Serverbound, channeled, []proto.Packet{proto.CustomPayload}},
}

// classTables compiles each table once and keeps it; what Watch and Hooks want of a version never changes.
type classTables struct {
	watch Watch
	hooks Hooks
	mu    sync.Mutex
	done  map[classKey]*classes
}

type classKey struct {
	v *proto.Version
	s proto.State
	d proto.Dir
}

func (t *classTables) get(v *proto.Version, s proto.State, d proto.Dir) *classes {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := classKey{v, s, d}
	if c := t.done[key]; c != nil {
		return c
	}
	c := new(classes)
	add := func(p proto.Packet, bits class) {
		if id, ok := v.ID(s, d, p); ok {
			c[id] |= bits
		}
	}
	for _, n := range needs {
		if n.state == s && n.dir == d {
			for _, p := range n.packets {
				add(p, n.class)
			}
		}
	}
	if s == proto.Play && d == proto.Clientbound && !v.HasConfiguration() {
		for _, p := range []proto.Packet{proto.PlayerInfo, proto.PlayerRemove, proto.BossBar} {
			add(p, recorded)
		}
	}
	if t.hooks != nil && s == proto.Play {
		for _, p := range t.hooks.Wants(v, d) {
			add(p, held)
		}
	}
	if t.watch != nil && (s == proto.Config || s == proto.Play) {
		for _, p := range t.watch.Wants(v, s, d) {
			add(p, observed)
		}
	}
	if t.done == nil {
		t.done = map[classKey]*classes{}
	}
	t.done[key] = c
	return c
}
