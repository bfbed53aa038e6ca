package configs

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Region is a box of a world with a range of its own.
type Region struct {
	World    string     `yaml:"world"` // world or server/world
	From     [3]float64 `yaml:"from"`  // two corners, x, y and z
	To       [3]float64 `yaml:"to"`
	Range    float64    `yaml:"range"`
	Priority int        `yaml:"priority,omitempty"` // the highest decides, then the smallest region
}

// Groups is about players who talk among themselves.
type Groups struct {
	Enabled    bool     `yaml:"enabled"`
	Max        int      `yaml:"max-groups"`  // 0: no limit
	Members    int      `yaml:"max-members"` // of one group; 0: no limit
	Types      []string `yaml:"types"`       // that players may make: normal, open, isolated
	Passwords  bool     `yaml:"passwords"`
	Persistent bool     `yaml:"persistent"`
}

// Listen lets a player hear a domain without being heard by it.
type Listen struct {
	Listener string `yaml:"listener"` // a UUID
	Domain   string `yaml:"domain"`
}

// Edge lets a player hear one other.
type Edge struct {
	Speaker  string `yaml:"speaker"` // UUIDs
	Listener string `yaml:"listener"`
}

// GroupTypes are the words of [Groups.Types].
var GroupTypes = []string{"normal", "open", "isolated"}

// maxRange is the farthest that a voice carries, in blocks, and maxTier what a tier may multiply that by.
const (
	maxRange = 1024
	maxTier  = 16
)

// check calls bad for each setting that cannot be right.
func (v *Voice) check(bad func(key, format string, args ...any)) {
	tier := func(key string, f float64) {
		if !(f >= 0 && f <= maxTier) {
			bad(key, "%v is no factor: 0 (off) to %d", f, maxTier)
		}
	}
	tier("voice.whisper", v.Whisper)
	tier("voice.shout", v.Shout)
	for _, name := range slices.Sorted(maps.Keys(v.Regions)) {
		r, key := v.Regions[name], "voice.regions."+name
		if r.World == "" {
			bad(key, "has no world: add world: \"minecraft:overworld\", or with its server in front")
		}
		if r.From == r.To {
			bad(key, "has no size: write two corners, from: [x, y, z] and to: [x, y, z]")
		}
		if !(r.Range >= 0 && r.Range <= maxRange) {
			bad(key+".range", "%v is no range: 0 to %d blocks", r.Range, maxRange)
		}
	}
	if v.Groups.Max < 0 {
		bad("voice.groups.max-groups", "must not be negative; 0 is no limit")
	}
	if v.Groups.Members < 0 {
		bad("voice.groups.max-members", "must not be negative; 0 is no limit")
	}
	for _, t := range v.Groups.Types {
		if !slices.Contains(GroupTypes, t) {
			bad("voice.groups.types", "%q is not one of %s", t, strings.Join(GroupTypes, ", "))
		}
	}
	player := func(key, id string) {
		if _, err := uuid.Parse(id); err != nil {
			bad(key, "%q is no UUID of a player", id)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Domains)) {
		for _, id := range v.Domains[name] {
			player("voice.domains."+name, id)
		}
	}
	for _, l := range v.Listens {
		player("voice.listens", l.Listener)
		if _, ok := v.Domains[l.Domain]; !ok {
			bad("voice.listens", "there is no domain %q: declare it under voice.domains, if only as []", l.Domain)
		}
	}
	for _, e := range v.Edges {
		player("voice.edges", e.Speaker)
		player("voice.edges", e.Listener)
		if e.Speaker == e.Listener {
			bad("voice.edges", "%s cannot hear himself", e.Speaker)
		}
	}
}
