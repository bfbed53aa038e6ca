package session

import (
	"slices"

	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// needs lists the packets that the owner itself looks at; all others pass.
var needs = [...]struct {
	state   proto.State
	dir     proto.Dir
	class   relay.Class
	packets []proto.Packet
}{
	{proto.Config, proto.Clientbound, relay.Held, []proto.Packet{proto.KeepAlive, proto.Disconnect, proto.FinishConfiguration,
		proto.Ping, proto.CookieRequest, proto.StoreCookie, proto.Transfer, proto.ResourcePackSend, proto.AddResourcePack, proto.RemoveResourcePack}},
	{proto.Config, proto.Serverbound, relay.Held, []proto.Packet{proto.KeepAlive, proto.FinishConfiguration, proto.ClientInformation,
		proto.SelectKnownPacks, proto.Pong, proto.CookieResponse, proto.ResourcePackReceive}},
	{proto.Play, proto.Clientbound, relay.Held, []proto.Packet{proto.KeepAlive, proto.Disconnect, proto.JoinGame,
		proto.StartConfiguration, proto.SetCompression, proto.ServerData, proto.CookieRequest, proto.StoreCookie, proto.Transfer,
		proto.ResourcePackSend, proto.AddResourcePack, proto.RemoveResourcePack}},
	{proto.Play, proto.Serverbound, relay.Held, []proto.Packet{proto.KeepAlive, proto.ConfigurationAcknowledged,
		proto.ClientInformation, proto.ChatSessionUpdate, proto.CookieResponse, proto.ResourcePackReceive}},
	{proto.Config, proto.Clientbound, relay.Channeled, []proto.Packet{proto.CustomPayload}},
	{proto.Config, proto.Serverbound, relay.Channeled, []proto.Packet{proto.CustomPayload}},
	{proto.Play, proto.Clientbound, relay.Channeled, []proto.Packet{proto.CustomPayload}},
	{proto.Play, proto.Serverbound, relay.Channeled, []proto.Packet{proto.CustomPayload}},
}

// wants adds the packets to look at: for the owner, the Hooks and the Watch.
func (c *Core) wants(v *proto.Version, s proto.State, d proto.Dir, add func(relay.Class, ...proto.Packet)) {
	for _, n := range needs {
		if n.state == s && n.dir == d {
			add(n.class, n.packets...)
		}
	}
	if h := c.cfg.Hooks; h != nil && s == proto.Play {
		add(relay.Held, h.Wants(v, d)...)
	}
	if s == proto.Config || s == proto.Play {
		add(relay.Observed, c.watchers.wants(v, s, d)...)
	}
}

// Reads lists the packets that a session itself reads. Others are read for an observer, who counts those it cannot
// decode.
func Reads() []proto.Packet {
	read := relay.Reads()
	for _, n := range needs {
		read = append(read, n.packets...)
	}
	slices.Sort(read)
	return slices.Compact(read)
}
