package proto

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Description describes a version: one that is not built in, or one that is and needs mending. Where it says nothing,
// the version is as the one that it is like.
type Description struct {
	Protocol int32
	Names    []string // release names, oldest first; none: those it has, or else its number
	// Like is the built-in version that this one is like: 0 for its own number, or the newest one where that is not
	// built in.
	Like int32
	// Packets has ids by state and direction ("play/clientbound") and by our names of packets. Packets that are not
	// named are as in the version it is like; an id below 0 says that there is no such packet.
	Packets map[string]map[string]int32
	// Report has ids by state, direction and the game's names, as its data generator writes them in packets.json. It
	// covers the states and directions in it whole.
	Report map[string]map[string]map[string]int32
	// Traits has, by name, the traits in which the version differs from the one it is like.
	Traits map[string]bool
	// Parsers lists the parsers of the command tree in the order of their numbers, by the game's names; none: as in the
	// version it is like.
	Parsers []string
	// PlayerType is the number of players among the kinds of entities; 0: as in the version it is like.
	PlayerType int32
}

// needed lists the packets that it takes to bring a player through a state. In configuration and play the versions need
// them whose model has them.
var needed = [numStates][numDirs][]Packet{
	Handshake: {Serverbound: {SetProtocol}},
	Status:    {Serverbound: {StatusRequest, StatusPing}, Clientbound: {StatusResponse, StatusPing}},
	Login: {
		Serverbound: {LoginStart, EncryptionBegin, LoginPluginResponse, LoginAcknowledged},
		Clientbound: {Disconnect, EncryptionBegin, LoginSuccess, SetCompression, LoginPluginRequest},
	},
	Config: {
		Serverbound: {ClientInformation, CustomPayload, FinishConfiguration, KeepAlive},
		Clientbound: {CustomPayload, Disconnect, FinishConfiguration, KeepAlive, RegistryData},
	},
	Play: {
		Serverbound: {CustomPayload, KeepAlive, ConfigurationAcknowledged},
		Clientbound: {CustomPayload, Disconnect, JoinGame, KeepAlive, Respawn, StartConfiguration},
	},
}

// Describe makes a version from its description. Its errors are for the description's author, and begin with the part
// at fault.
func Describe(d Description) (*Version, error) {
	if d.Protocol <= 0 {
		return nil, fmt.Errorf("protocol: %d is no protocol number; it is what the game calls protocol_version in its version.json", d.Protocol)
	}
	i, own := find(builtIn, d.Protocol)
	base := builtIn[len(builtIn)-1]
	if own {
		base = builtIn[i]
	}
	if d.Like != 0 {
		i, has := find(builtIn, d.Like)
		if !has {
			return nil, fmt.Errorf("like: protocol %d is not built in; `earshot versions` lists those that are", d.Like)
		}
		base = builtIn[i]
	}
	v := &Version{
		Protocol: d.Protocol, Names: d.Names, Like: base.Protocol, Described: true,
		Parsers: d.Parsers, PlayerType: cmp.Or(d.PlayerType, base.PlayerType), tables: base.tables, traits: base.traits,
	}
	switch {
	case len(d.Names) > 0:
	case own:
		v.Names = builtIn[i].Names
	default:
		v.Names = []string{fmt.Sprintf("protocol %d", d.Protocol)}
	}
	for _, n := range v.Names {
		if n == "" || len(n) > maxRelease || strings.ContainsFunc(n, func(c rune) bool { return c < ' ' || c > '~' }) {
			return nil, fmt.Errorf("names: %q is no name of a release, such as 26.3", n)
		}
	}
	if d.PlayerType < 0 {
		return nil, fmt.Errorf("player-type: %d is no number of a kind of entity", d.PlayerType)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Traits)) {
		t, ok := TraitByName(name)
		if !ok {
			return nil, fmt.Errorf("traits: there is no trait %q; `earshot versions traits` lists them", name)
		}
		v.traits.set(t, d.Traits[name])
	}
	if err := v.report(d.Report); err != nil {
		return nil, err
	}
	if err := v.renumber(d.Packets); err != nil {
		return nil, err
	}
	for s := range numStates {
		for dir := range numDirs {
			for _, p := range needed[s][dir] {
				_, had := base.ID(s, dir, p)
				if _, has := v.ID(s, dir, p); had && !has {
					return nil, fmt.Errorf("packets: %s/%s has no %s%s, without which nobody can play", s, dir, p, inTheGame(s, dir, p))
				}
			}
		}
	}
	return v, nil
}

// maxRelease bounds the name of a release, in bytes.
const maxRelease = 40

// report takes whole tables from a report of the game's.
func (v *Version) report(r map[string]map[string]map[string]int32) error {
	for _, state := range slices.Sorted(maps.Keys(r)) {
		s, ok := StateByName(state)
		if !ok {
			return fmt.Errorf("packets: there is no state %q: %s", state, places())
		}
		for _, dir := range slices.Sorted(maps.Keys(r[state])) {
			d, ok := DirByName(dir)
			if !ok {
				return fmt.Errorf("packets: %s has no direction %q: serverbound or clientbound", state, dir)
			}
			var layout [256]Packet
			names := make([]string, len(r[state][dir]))
			for _, name := range slices.Sorted(maps.Keys(r[state][dir])) {
				id := r[state][dir][name]
				if id < 0 || int(id) >= len(layout) {
					return fmt.Errorf("packets: %s/%s: %s has id %d; ids are 0 to %d", state, dir, name, id, len(layout)-1)
				}
				if int(id) >= len(names) {
					return fmt.Errorf("packets: %s/%s: %s has id %d, but there are only %d packets: the report is not whole", state, dir, name, id, len(names))
				}
				if names[id] != "" {
					return fmt.Errorf("packets: %s/%s: %s and %s both have id %d", state, dir, names[id], name, id)
				}
				names[id] = name
				layout[id] = gameNames[s][d][strings.TrimPrefix(name, "minecraft:")]
			}
			v.own[s][d] = newTable(&layout)
		}
	}
	return nil
}

// renumber changes ids of single packets.
func (v *Version) renumber(changes map[string]map[string]int32) error {
	for _, place := range slices.Sorted(maps.Keys(changes)) {
		state, dir, _ := strings.Cut(place, "/")
		s, ok := StateByName(state)
		d, ok2 := DirByName(dir)
		if !ok || !ok2 {
			return fmt.Errorf("packets: %q is no state and direction: %s", place, places())
		}
		ids := v.table(s, d).byPacket
		for _, name := range slices.Sorted(maps.Keys(changes[place])) {
			p, ok := ByName(name)
			if !ok {
				return fmt.Errorf("packets: %s: there is no packet %q; `earshot versions %d` lists those that a file can name", place, name, v.Like)
			}
			id := changes[place][name]
			if id > 255 {
				return fmt.Errorf("packets: %s: %s has id %d; ids are 0 to 255, and -1 for none", place, name, id)
			}
			ids[p] = int16(max(id, -1))
		}
		var layout [256]Packet
		for p, id := range ids {
			if id < 0 {
				continue
			}
			if other := layout[id]; other != Unknown {
				return fmt.Errorf("packets: %s: %s and %s both have id %d", place, other, Packet(p), id)
			}
			layout[id] = Packet(p)
		}
		v.own[s][d] = newTable(&layout)
	}
	return nil
}

func places() string {
	return "handshake, status, login, configuration or play, with /serverbound or /clientbound"
}

// inTheGame adds the game's name of a packet.
func inTheGame(s State, d Dir, p Packet) string {
	for name, q := range gameNames[s][d] {
		if q == p && name != p.String() {
			return " (minecraft:" + name + ")"
		}
	}
	return ""
}

// Describe returns the version's description, whole.
func (v *Version) Describe() Description {
	d := Description{
		Protocol: v.Protocol, Names: v.Names, Like: v.Like, Packets: map[string]map[string]int32{}, Traits: map[string]bool{},
		Parsers: v.Parsers, PlayerType: v.PlayerType,
	}
	for s := range numStates {
		for dir := range numDirs {
			ids := map[string]int32{}
			for _, p := range BuiltInLike(v).Table(s, dir) {
				if p != Unknown {
					ids[p.String()] = -1
				}
			}
			for id, p := range v.Table(s, dir) {
				if p != Unknown {
					ids[p.String()] = int32(id)
				}
			}
			if len(ids) > 0 {
				d.Packets[s.String()+"/"+dir.String()] = ids
			}
		}
	}
	for _, t := range Traits() {
		d.Traits[t.String()] = v.Has(t)
	}
	return d
}
