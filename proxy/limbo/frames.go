package limbo

import (
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
)

// adventure is everybody's game mode here, in the packets of the generator too: the floor stays whole.
const adventure = 2

// appendFrame appends a packet as it goes over the wire. A version that lacks the packet gets nothing.
func appendFrame(dst []byte, v *proto.Version, s proto.State, p proto.Packet, body []byte) []byte {
	id, ok := v.ID(s, proto.Clientbound, p)
	if !ok {
		return dst
	}
	dst = field.AppendVarInt(dst, int32(field.VarIntLen(id)+len(body)))
	return append(field.AppendVarInt(dst, id), body...)
}

// appendSay appends a line of chat.
func appendSay(dst []byte, v *proto.Version, t packet.Text) []byte {
	p, body := packet.SystemMessage(v.Protocol, t)
	return appendFrame(dst, v, proto.Play, p, body)
}

// appendShow puts players on the list. That is not only decoration: the proxy lets two players hear each other only
// when their backend shows them to each other.
func appendShow(dst []byte, v *proto.Version, players ...*player) []byte {
	info := packet.PlayerInfo{Actions: packet.InfoAdd | packet.InfoMode | packet.InfoListed | packet.InfoLatency}
	for _, p := range players {
		info.Players = append(info.Players, packet.ListedPlayer{ID: p.id, Name: p.name, Properties: p.properties, Mode: adventure, Listed: true})
	}
	return appendFrame(dst, v, proto.Play, proto.PlayerInfo, packet.AppendPlayerInfo(nil, v.Protocol, info))
}

// appendHide takes a player off the list.
func appendHide(dst []byte, v *proto.Version, id uuid.UUID) []byte {
	p := proto.PlayerRemove
	if !v.Has(proto.PlayerInfoBits) {
		p = proto.PlayerInfo
	}
	return appendFrame(dst, v, proto.Play, p, packet.AppendPlayerRemove(nil, v.Protocol, id))
}

// appendSpawn moves a player to the middle of the floor.
func appendSpawn(dst []byte, v *proto.Version, teleport int32) []byte {
	t := packet.Teleport{ID: teleport, X: spawnX, Y: spawnY, Z: spawnZ}
	return appendFrame(dst, v, proto.Play, proto.Position, packet.AppendTeleport(nil, v.Protocol, t))
}

func appendKeepAlive(dst []byte, v *proto.Version, id int32) []byte {
	return appendFrame(dst, v, proto.Play, proto.KeepAlive, packet.AppendKeepAlive(nil, v.Protocol, int64(id)))
}

func appendDisconnect(dst []byte, v *proto.Version, s proto.State, reason packet.Text) []byte {
	return appendFrame(dst, v, s, proto.Disconnect, packet.AppendDisconnect(nil, v.Protocol, s, reason))
}
