package packet

import (
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// ParseDisconnect reads the reason of a disconnect in login, configuration or play (where the game calls it kick).
//
// Layout: login/toClient/disconnect, configuration/toClient/disconnect and play/toClient/kick_disconnect.
func ParseDisconnect(protocol int32, s proto.State, body []byte) (Text, error) {
	r := field.NewReader(body)
	return done(r, "disconnect", ReadText(r, protocol, s))
}

// AppendDisconnect writes a reason. In login it is JSON in every version.
func AppendDisconnect(dst []byte, protocol int32, s proto.State, reason Text) []byte {
	return reason.Append(dst, protocol, s)
}

// ParseStatusResponse reads the JSON of a status. It ignores the bytes behind it: some mods put data there.
//
// Layout: status/toClient/server_info.
func ParseStatusResponse(body []byte) ([]byte, error) {
	r := field.NewReader(body)
	json := append([]byte{}, r.StringBytes(maxStatus)...)
	r.Rest()
	return done(r, "status response", json)
}

// AppendStatusResponse writes a status.
func AppendStatusResponse(dst, json []byte) []byte { return field.AppendBytes(dst, json) }

// maxStatus bounds a status in characters. The game allows 32767; servers of mod packs exceed that with lists of mods.
const maxStatus = 262144

// ParseStatusPing reads the number of a ping; the answer repeats it.
//
// Layout: status/toServer/ping and status/toClient/ping.
func ParseStatusPing(body []byte) (int64, error) {
	r := field.NewReader(body)
	return done(r, "status ping", r.I64())
}

// AppendStatusPing writes a ping or its answer.
func AppendStatusPing(dst []byte, n int64) []byte { return field.AppendI64(dst, n) }

// ParseKeepAlive reads the id of a keep-alive in either direction, play or configuration; the answer repeats it.
//
// Layout: play/toClient/keep_alive and play/toServer/keep_alive.
func ParseKeepAlive(protocol int32, body []byte) (int64, error) {
	r := field.NewReader(body)
	var id int64
	if proto.Has(protocol, proto.KeepAliveI64) {
		id = r.I64()
	} else {
		id = int64(r.VarInt())
	}
	return done(r, "keep alive", id)
}

// AppendKeepAlive writes a keep-alive; below 340 (1.12.2) only the lower 32 bits of id go out.
func AppendKeepAlive(dst []byte, protocol int32, id int64) []byte {
	if proto.Has(protocol, proto.KeepAliveI64) {
		return field.AppendI64(dst, id)
	}
	return field.AppendVarInt(dst, int32(id))
}

// PluginMessage is data on a named channel, either way, in play or configuration.
type PluginMessage struct {
	Channel string
	Data    []byte // aliases the body
}

// ParsePluginMessage reads a plugin message; the layout is the same in every version.
//
// Layout: play/toClient/custom_payload and play/toServer/custom_payload.
func ParsePluginMessage(body []byte) (PluginMessage, error) {
	r := field.NewReader(body)
	return done(r, "plugin message", PluginMessage{r.String(maxIdentifier), r.Rest()})
}

// PluginChannel returns the channel of a plugin message, aliasing body and without allocating; nil when body is not
// one. It serves to look at a message before deciding whether it is of interest.
//
// Layout: play/toClient/custom_payload and play/toServer/custom_payload.
func PluginChannel(body []byte) []byte { return field.NewReader(body).StringBytes(maxIdentifier) }

// AppendPluginMessage writes a plugin message.
func AppendPluginMessage(dst []byte, m PluginMessage) []byte {
	return append(field.AppendString(dst, m.Channel), m.Data...)
}

// SystemMessage returns a line for a client's chat: the packet that protocol has for it in play, and its body.
//
// Layout: play/toClient/system_chat, before it play/toClient/chat.
func SystemMessage(protocol int32, t Text) (proto.Packet, []byte) {
	body := t.Append(nil, protocol, proto.Play)
	switch {
	case proto.Has(protocol, proto.SystemChatTyped):
		return proto.SystemChat, field.AppendVarInt(body, 1) // chat type: system
	case proto.Has(protocol, proto.SignedChat):
		return proto.SystemChat, field.AppendBool(body, false)
	}
	return proto.Chat, appendSender(append(body, 1), protocol) // position: system message
}

// ActionBarMessage returns a text above a client's inventory bar: the packet that protocol has for it in play, and its
// body.
//
// Layout: play/toClient/action_bar, before it play/toClient/title, before that play/toClient/chat.
func ActionBarMessage(protocol int32, t Text) (proto.Packet, []byte) {
	switch {
	case proto.Has(protocol, proto.TitlePackets):
		return proto.ActionBar, t.Append(nil, protocol, proto.Play)
	case proto.Has(protocol, proto.TitleWithActionBar):
		return proto.Title, t.Append([]byte{2}, protocol, proto.Play)
	}
	// These versions show only § codes there.
	return proto.Chat, append(Plain(t.Legacy()).Append(nil, protocol, proto.Play), 2)
}

// appendSender appends the sender of a chat line, which it has from 735 to 758; nobody is the zero UUID.
func appendSender(dst []byte, protocol int32) []byte {
	if proto.Has(protocol, proto.ChatSender) {
		dst = append(dst, make([]byte, 16)...)
	}
	return dst
}

// ClientInformation holds a client's settings, in configuration or play.
type ClientInformation struct {
	Locale       string
	ViewDistance int8
	ChatMode     int32
	Colors       bool
	SkinParts    uint8
	MainHand     int32 // 107 on; 0 left, 1 right
	Filtering    bool  // 755 on
	Listed       bool  // 757 on; before, true: the player may be shown in the status
	Particles    int32 // 768 on; 0 all
}

// ParseClientInformation reads the settings.
//
// Layout: play/toServer/settings and configuration/toServer/settings.
func ParseClientInformation(protocol int32, body []byte) (ClientInformation, error) {
	r := field.NewReader(body)
	c := ClientInformation{Locale: r.String(16), ViewDistance: r.I8(), Listed: true}
	if proto.Has(protocol, proto.OffHand) {
		c.ChatMode = r.VarInt()
	} else {
		c.ChatMode = int32(r.I8())
	}
	c.Colors, c.SkinParts = r.Bool(), r.U8()
	if proto.Has(protocol, proto.OffHand) {
		c.MainHand = r.VarInt()
	}
	if proto.Has(protocol, proto.ClientFiltering) {
		c.Filtering = r.Bool()
	}
	if proto.Has(protocol, proto.ClientListed) {
		c.Listed = r.Bool()
	}
	if proto.Has(protocol, proto.ClientParticles) {
		c.Particles = r.VarInt()
	}
	return done(r, "client information", c)
}

// AppendClientInformation writes the settings with those parts that the version has.
func AppendClientInformation(dst []byte, protocol int32, c ClientInformation) []byte {
	dst = append(field.AppendString(dst, c.Locale), byte(c.ViewDistance))
	if proto.Has(protocol, proto.OffHand) {
		dst = field.AppendVarInt(dst, c.ChatMode)
	} else {
		dst = append(dst, byte(c.ChatMode))
	}
	dst = append(field.AppendBool(dst, c.Colors), c.SkinParts)
	if proto.Has(protocol, proto.OffHand) {
		dst = field.AppendVarInt(dst, c.MainHand)
	}
	if proto.Has(protocol, proto.ClientFiltering) {
		dst = field.AppendBool(dst, c.Filtering)
	}
	if proto.Has(protocol, proto.ClientListed) {
		dst = field.AppendBool(dst, c.Listed)
	}
	if proto.Has(protocol, proto.ClientParticles) {
		dst = field.AppendVarInt(dst, c.Particles)
	}
	return dst
}
