package command

import (
	"sync"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// shape describes the bytes behind a parser's id in a command tree.
type shape uint8

const (
	nothing  shape = iota
	oneByte        // flags, or a bool
	varInt         // the kind of a string
	fourByte       // the least time
	ident          // the name of a registry
	bounds4        // flags: 1 a least, 2 a greatest value follows, of 4 bytes each
	bounds8        // of 8 bytes each
	wrapped        // a parser of some mod in the wrapper of CrossStitch: its id, and its properties as a byte array
	unknown
)

// parsers are the game's, in the order of their numbers. Below 759 (1.19) they go by name, later by their place among
// those that the version has. since and until (exclusive, 0 for none) bound these versions. We only want the length of
// their properties.
var parsers = [...]struct {
	name         string
	since, until int32
	shape        shape
}{
	{"brigadier:bool", 0, 0, nothing},
	{"brigadier:float", 0, 0, bounds4},
	{"brigadier:double", 0, 0, bounds8},
	{"brigadier:integer", 0, 0, bounds4},
	{"brigadier:long", 0, 0, bounds8},
	{"brigadier:string", 0, 0, varInt},
	{"minecraft:entity", 0, 0, oneByte},
	{"minecraft:game_profile", 0, 0, nothing},
	{"minecraft:block_pos", 0, 0, nothing},
	{"minecraft:column_pos", 0, 0, nothing},
	{"minecraft:vec3", 0, 0, nothing},
	{"minecraft:vec2", 0, 0, nothing},
	{"minecraft:block_state", 0, 0, nothing},
	{"minecraft:block_predicate", 0, 0, nothing},
	{"minecraft:item_stack", 0, 0, nothing},
	{"minecraft:item_predicate", 0, 0, nothing},
	{"minecraft:color", 0, proto.V26_2, nothing},
	{"minecraft:team_color", proto.V26_2, 0, nothing},
	{"minecraft:hex_color", proto.V1_21_6, 0, nothing},
	{"minecraft:component", 0, 0, nothing},
	{"minecraft:style", proto.V1_20_3, 0, nothing},
	{"minecraft:message", 0, 0, nothing},
	{"minecraft:nbt", 0, proto.V1_19, nothing},
	{"minecraft:nbt_compound_tag", 0, 0, nothing},
	{"minecraft:nbt_tag", 0, 0, nothing},
	{"minecraft:nbt_path", 0, 0, nothing},
	{"minecraft:objective", 0, 0, nothing},
	{"minecraft:objective_criteria", 0, 0, nothing},
	{"minecraft:operation", 0, 0, nothing},
	{"minecraft:particle", 0, 0, nothing},
	{"minecraft:angle", 0, 0, nothing},
	{"minecraft:rotation", 0, 0, nothing},
	{"minecraft:scoreboard_slot", 0, 0, nothing},
	{"minecraft:score_holder", 0, 0, oneByte},
	{"minecraft:swizzle", 0, 0, nothing},
	{"minecraft:team", 0, 0, nothing},
	{"minecraft:item_slot", 0, 0, nothing},
	{"minecraft:item_slots", proto.V1_20_5, 0, nothing},
	{"minecraft:resource_location", 0, 0, nothing},
	{"minecraft:mob_effect", 0, proto.V1_19_3, nothing},
	{"minecraft:function", 0, 0, nothing},
	{"minecraft:entity_anchor", 0, 0, nothing},
	{"minecraft:range", 0, proto.V1_19, oneByte},
	{"minecraft:int_range", 0, 0, nothing},
	{"minecraft:float_range", 0, 0, nothing},
	{"minecraft:item_enchantment", 0, proto.V1_19_3, nothing},
	{"minecraft:entity_summon", 0, proto.V1_19_3, nothing},
	{"minecraft:dimension", 0, 0, nothing},
	{"minecraft:gamemode", proto.V1_19_3, 0, nothing},
	{"minecraft:time", 0, proto.V1_19_4, nothing},
	{"minecraft:time", proto.V1_19_4, 0, fourByte},
	{"minecraft:resource_or_tag", 0, 0, ident},
	{"minecraft:resource_or_tag_key", proto.V1_19_3, 0, ident},
	{"minecraft:resource", 0, 0, ident},
	{"minecraft:resource_key", proto.V1_19_3, 0, ident},
	{"minecraft:resource_selector", proto.V1_21_5, 0, ident},
	{"minecraft:template_mirror", proto.V1_19, 0, nothing},
	{"minecraft:template_rotation", proto.V1_19, 0, nothing},
	{"minecraft:heightmap", proto.V1_19_4, 0, nothing},
	{"minecraft:loot_table", proto.V1_20_5, 0, nothing},
	{"minecraft:loot_predicate", proto.V1_20_5, 0, nothing},
	{"minecraft:loot_modifier", proto.V1_20_5, 0, nothing},
	{"minecraft:context_float_provider", proto.V26_3, 0, nothing},
	{"minecraft:context_int_provider", proto.V26_3, 0, nothing},
	{"minecraft:slot_source", proto.V26_3, 0, nothing},
	{"minecraft:dialog", proto.V1_21_6, 0, nothing},
	{"minecraft:feature", proto.V26_3, 0, nothing},
	{"minecraft:swing_animation", proto.V26_3, 0, nothing},
	{"minecraft:uuid", 0, 0, nothing},
}

// CrossStitch and its like put a wrapper around a mod's parser, for proxies that have to know each parser's length. No
// client knows it.
const (
	wrapperName  = "crossstitch:mod_argument"
	wrapperID    = -256
	stringParser = "brigadier:string"
)

// grammar says how one version writes parsers.
type grammar struct {
	of       *proto.Version
	byName   map[string]shape // below 759
	byNumber []shape          // from 759 on
	marker   []byte           // with which a wrapper begins
	str      []byte           // the string parser's id
}

// grammars has one for each version that was asked for, by protocol.
var grammars sync.Map

// grammarOf returns the grammar of a version; nil when it is not known or has no command trees.
func grammarOf(protocol int32) *grammar {
	v := proto.Lookup(protocol)
	if v == nil || !v.Has(proto.CommandTree) {
		return nil
	}
	if g, ok := grammars.Load(v.Protocol); ok && g.(*grammar).of == v {
		return g.(*grammar)
	}
	g := newGrammar(v)
	grammars.Store(v.Protocol, g)
	return g
}

func newGrammar(v *proto.Version) *grammar {
	g := &grammar{of: v}
	if !v.Has(proto.NumberedParsers) {
		g.byName = map[string]shape{wrapperName: wrapped}
		g.marker, g.str = field.AppendString(nil, wrapperName), field.AppendString(nil, stringParser)
	} else {
		g.marker = field.AppendVarInt(nil, wrapperID)
	}
	if g.byName == nil && len(v.Parsers) > 0 {
		for _, name := range v.Parsers {
			g.number(name, shapeOf(name))
		}
		return g
	}
	for _, p := range parsers {
		if v.Like < p.since || p.until != 0 && v.Like >= p.until {
			continue
		}
		if g.byName != nil {
			g.byName[p.name] = p.shape
			continue
		}
		g.number(p.name, p.shape)
	}
	return g
}

// number gives the next number to a parser.
func (g *grammar) number(name string, s shape) {
	if name == stringParser {
		g.str = field.AppendVarInt(nil, int32(len(g.byNumber)))
	}
	g.byNumber = append(g.byNumber, s)
}

// shapeOf returns a parser's shape in the newest version that has it.
func shapeOf(name string) shape {
	for i := len(parsers) - 1; i >= 0; i-- {
		if parsers[i].name == name {
			return parsers[i].shape
		}
	}
	return unknown
}

// parser reads a parser's id.
func (g *grammar) parser(r *field.Reader) shape {
	if g.byName != nil {
		if s, ok := g.byName[string(r.StringBytes(field.MaxString))]; ok {
			return s
		}
		return unknown
	}
	switch id := r.VarInt(); {
	case id == wrapperID:
		return wrapped
	case id >= 0 && int(id) < len(g.byNumber):
		return g.byNumber[id]
	}
	return unknown
}

// properties passes over the bytes behind a parser's id.
func (s shape) properties(r *field.Reader) {
	switch s {
	case oneByte:
		r.Skip(1)
	case varInt:
		r.VarInt()
	case fourByte:
		r.Skip(4)
	case ident:
		r.StringBytes(field.MaxString)
	case bounds4, bounds8:
		size := 4
		if s == bounds8 {
			size = 8
		}
		flags := int(r.U8())
		r.Skip((flags&1 + flags>>1&1) * size)
	}
}
