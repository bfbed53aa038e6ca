package packet

import (
	"fmt"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
)

// InfoBits are the parts of a player list entry that a packet carries, numbered as on the wire from 761 on. Older
// packets carry one action each, written as its bit; there InfoAdd stands for the whole entry.
type InfoBits byte

// The parts. Sources disagree on the last two: the game's own order is list order, then hat, and some published data
// has them the other way round. Both are a VarInt or a bool that reads the same as one, and on the wire the lower bit's
// part comes first, so nothing depends on the names.
const (
	InfoAdd InfoBits = 1 << iota
	InfoChat
	InfoMode
	InfoListed
	InfoLatency
	InfoDisplayName
	InfoBit6 // 768 and later
	InfoBit7 // 769 and later
)

// PlayerInfo is a change of the list of players that the backend shows to a client.
type PlayerInfo struct {
	Actions InfoBits
	Remove  bool // up to 760: the players leave the list; Actions is 0 then
	Players []ListedPlayer
}

// ListedPlayer is an entry; only the parts in the packet's actions mean anything.
type ListedPlayer struct {
	ID          uuid.UUID
	Name        string
	Properties  []Property
	ChatKey     []byte // the encoded chat session (761 on) or key (759-760) without its leading bool; nil: none
	Mode        int32
	Listed      bool // false: not shown in the tab overlay, though the client knows the player and sees the body
	Latency     int32
	DisplayName []byte // an encoded component in the form of the protocol; nil for none
	Bit6, Bit7  int32
}

const (
	minInfoEntry = 16 // a UUID
	maxProfile   = 32767
	maxKey       = 512
	maxSignature = 4096
	maxComponent = 262144
)

// ParsePlayerInfo reads a player_info; its byte slices alias the body.
//
// Layout: play/toClient/player_info.
func ParsePlayerInfo(protocol int32, body []byte) (p PlayerInfo, err error) {
	r := field.NewReader(body)
	p.Actions, p.Remove = readInfoActions(r, protocol)
	p.Players = make([]ListedPlayer, r.Count(minInfoEntry))
	for i := range p.Players {
		readListed(r, protocol, p.Actions, &p.Players[i], true)
	}
	return p, r.End()
}

// AppendPlayerInfo writes a player_info. Before 761 it writes the one action that Actions or Remove stands for; an add
// takes the mode, latency and name along, so the bits for these may be set beside InfoAdd for all versions alike.
func AppendPlayerInfo(dst []byte, protocol int32, p PlayerInfo) []byte {
	actions := p.Actions & infoBitsOf(protocol)
	if proto.Has(protocol, proto.PlayerInfoBits) {
		dst = append(dst, byte(actions))
	} else {
		dst, actions = appendInfoAction(dst, p)
	}
	dst = field.AppendVarInt(dst, int32(len(p.Players)))
	for i := range p.Players {
		dst = appendListed(dst, protocol, actions, &p.Players[i])
	}
	return dst
}

// InfoChange says how a player_info changes the set of players that a client knows.
type InfoChange byte

// The changes.
const (
	InfoNoChange InfoChange = iota
	InfoShown
	InfoHidden
)

// PlayersChanged does as ParsePlayerInfo, for a reader that only wants to know who is shown or hidden: it appends their
// ids to dst and allocates nothing else. The commonest packets, which show or hide nobody, cost one byte. With an
// error, ids are those that came before it.
//
// Layout: play/toClient/player_info.
func PlayersChanged(dst []uuid.UUID, protocol int32, body []byte) (ids []uuid.UUID, change InfoChange, err error) {
	r := field.NewReader(body)
	actions, remove := readInfoActions(r, protocol)
	switch {
	case remove:
		change = InfoHidden
	case actions&InfoAdd != 0:
		change = InfoShown
	default:
		return dst, InfoNoChange, r.Err()
	}
	var p ListedPlayer
	for n := r.Count(minInfoEntry); n > 0; n-- {
		readListed(r, protocol, actions, &p, false)
		if r.Err() != nil {
			break
		}
		dst = append(dst, p.ID)
	}
	return dst, change, r.End()
}

// AppendPlayerRemove writes the body that takes players off the list: a player_remove from 761 on, before that a
// player_info.
func AppendPlayerRemove(dst []byte, protocol int32, ids ...uuid.UUID) []byte {
	if !proto.Has(protocol, proto.PlayerInfoBits) {
		dst = field.AppendVarInt(dst, 4)
	}
	dst = field.AppendVarInt(dst, int32(len(ids)))
	for _, id := range ids {
		dst = field.AppendUUID(dst, id)
	}
	return dst
}

// ParsePlayerRemove reads a player_remove (761 and later) and appends its ids to dst.
//
// Layout: play/toClient/player_remove, before it play/toClient/player_info.
func ParsePlayerRemove(dst []uuid.UUID, body []byte) ([]uuid.UUID, error) {
	r := field.NewReader(body)
	for n := r.Count(16); n > 0; n-- {
		dst = append(dst, r.UUID())
	}
	return dst, r.End()
}

// infoBitsOf returns the bits that mean something in a version; the game ignores the others.
func infoBitsOf(protocol int32) InfoBits {
	switch {
	case !proto.Has(protocol, proto.InfoListOrder):
		return InfoBit6 - 1
	case !proto.Has(protocol, proto.InfoHat):
		return InfoBit7 - 1
	}
	return 0xff
}

// By their number up to 760; 0 removes.
var infoActions = [...]InfoBits{InfoAdd, InfoMode, InfoLatency, InfoDisplayName, 0}

func readInfoActions(r *field.Reader, protocol int32) (actions InfoBits, remove bool) {
	if proto.Has(protocol, proto.PlayerInfoBits) {
		return InfoBits(r.U8()) & infoBitsOf(protocol), false
	}
	a := r.VarInt()
	if a < 0 || int(a) >= len(infoActions) {
		r.Fail(fmt.Errorf("player list action %d does not exist", a))
		return 0, false
	}
	return infoActions[a], infoActions[a] == 0 && r.Err() == nil
}

func appendInfoAction(dst []byte, p PlayerInfo) ([]byte, InfoBits) {
	for number, action := range infoActions {
		if !p.Remove && p.Actions&action != 0 {
			return field.AppendVarInt(dst, int32(number)), action
		}
	}
	return field.AppendVarInt(dst, int32(len(infoActions)-1)), 0
}

// parts returns the parts that an entry has on the wire: up to 760 an add has several, and only an add of 759 and 760
// has a key.
func (b InfoBits) parts(protocol int32) InfoBits {
	if proto.Has(protocol, proto.PlayerInfoBits) || b != InfoAdd {
		return b
	}
	b |= InfoMode | InfoLatency | InfoDisplayName
	if proto.Has(protocol, proto.InfoChatKey) {
		b |= InfoChat
	}
	return b
}

// readListed reads one entry. Without keep it fills in only the id and allocates nothing.
func readListed(r *field.Reader, protocol int32, actions InfoBits, p *ListedPlayer, keep bool) {
	parts := actions.parts(protocol)
	p.ID = r.UUID()
	if parts&InfoAdd != 0 {
		name := r.StringBytes(maxProfile) // 16 in the game, but fake entries are used as decoration
		var properties []Property
		for n := r.Count(3); n > 0; n-- {
			key, value := r.StringBytes(maxProfile), r.StringBytes(maxProfile)
			var signature []byte
			if r.Bool() {
				signature = r.StringBytes(maxProfile)
			}
			if keep {
				properties = append(properties, Property{Name: string(key), Value: string(value), Signature: string(signature)})
			}
		}
		if keep {
			p.Name, p.Properties = string(name), properties
		}
	}
	if parts&InfoChat != 0 && proto.Has(protocol, proto.PlayerInfoBits) {
		p.ChatKey = readChatKey(r, 16)
	}
	if parts&InfoMode != 0 {
		p.Mode = r.VarInt()
	}
	if parts&InfoListed != 0 {
		p.Listed = r.Bool()
	}
	if parts&InfoLatency != 0 {
		p.Latency = r.VarInt()
	}
	if parts&InfoDisplayName != 0 && r.Bool() {
		p.DisplayName = readComponent(r, protocol)
	}
	if parts&InfoChat != 0 && !proto.Has(protocol, proto.PlayerInfoBits) {
		p.ChatKey = readChatKey(r, 0)
	}
	if parts&InfoBit6 != 0 {
		p.Bit6 = r.VarInt()
	}
	if parts&InfoBit7 != 0 {
		p.Bit7 = r.VarInt()
	}
}

// readChatKey reads an optional session or key: a session's id of 16 bytes, an i64 expiry, key and signature.
func readChatKey(r *field.Reader, idLen int) []byte {
	if !r.Bool() {
		return nil
	}
	from := *r
	r.Skip(idLen + 8)
	r.Bytes(maxKey)
	r.Bytes(maxSignature)
	return between(from, r)
}

// readComponent reads an encoded component without looking into it: JSON with its length, or NBT from 765 on.
func readComponent(r *field.Reader, protocol int32) []byte {
	from := *r
	if proto.Has(protocol, proto.ComponentNBT) {
		r.SkipNBT(false)
	} else {
		r.StringBytes(maxComponent)
	}
	return between(from, r)
}

// between returns the bytes read from from to r, a later state of the same reader.
func between(from field.Reader, r *field.Reader) []byte {
	if r.Err() != nil {
		return nil
	}
	return from.Raw(from.Len() - r.Len())
}

func appendListed(dst []byte, protocol int32, actions InfoBits, p *ListedPlayer) []byte {
	parts := actions.parts(protocol)
	dst = field.AppendUUID(dst, p.ID)
	if parts&InfoAdd != 0 {
		dst = field.AppendString(dst, p.Name)
		dst = field.AppendVarInt(dst, int32(len(p.Properties)))
		for _, q := range p.Properties {
			dst = field.AppendString(field.AppendString(dst, q.Name), q.Value)
			if dst = field.AppendBool(dst, q.Signature != ""); q.Signature != "" {
				dst = field.AppendString(dst, q.Signature)
			}
		}
	}
	if parts&InfoChat != 0 && proto.Has(protocol, proto.PlayerInfoBits) {
		dst = appendOptional(dst, p.ChatKey)
	}
	if parts&InfoMode != 0 {
		dst = field.AppendVarInt(dst, p.Mode)
	}
	if parts&InfoListed != 0 {
		dst = field.AppendBool(dst, p.Listed)
	}
	if parts&InfoLatency != 0 {
		dst = field.AppendVarInt(dst, p.Latency)
	}
	if parts&InfoDisplayName != 0 {
		dst = appendOptional(dst, p.DisplayName)
	}
	if parts&InfoChat != 0 && !proto.Has(protocol, proto.PlayerInfoBits) {
		dst = appendOptional(dst, p.ChatKey)
	}
	if parts&InfoBit6 != 0 {
		dst = field.AppendVarInt(dst, p.Bit6)
	}
	if parts&InfoBit7 != 0 {
		dst = field.AppendVarInt(dst, p.Bit7)
	}
	return dst
}

// appendOptional writes an encoded value, or its absence.
func appendOptional(dst, encoded []byte) []byte {
	return append(field.AppendBool(dst, encoded != nil), encoded...)
}
