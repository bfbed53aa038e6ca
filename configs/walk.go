package configs

import (
	"maps"
	"slices"
	"strings"
)

// Walk holds where people without Minecraft walk.
type Walk struct {
	Enabled  bool                `yaml:"enabled"`
	TickRate int                 `yaml:"tick-rate"` // per second
	Areas    map[string]WalkArea `yaml:"areas"`     // by name, at /ws/game?area=NAME
}

// WalkArea is a rectangle of a world.
type WalkArea struct {
	World     string         `yaml:"world"`           // server/world
	From      [2]float64     `yaml:"from"`            // two corners, x and z
	To        [2]float64     `yaml:"to"`              // the other one
	Spawn     []float64      `yaml:"spawn,omitempty"` // x and z; empty: the middle
	MaxGuests int            `yaml:"max-guests,omitempty"`
	Obstacles []WalkObstacle `yaml:"obstacles,omitempty"`
}

// WalkObstacle is a round thing that nobody walks through.
type WalkObstacle struct {
	At     [2]float64 `yaml:"at"`               // x and z
	Radius float64    `yaml:"radius"`           // in blocks
	Colour string     `yaml:"colour,omitempty"` // six hex digits; empty: grey
}

const (
	defaultGuests = 20
	mostGuests    = 1000
)

// Guests returns how many there may be at a time.
func (a WalkArea) Guests() int {
	if a.MaxGuests == 0 {
		return defaultGuests
	}
	return a.MaxGuests
}

// Place returns the area's server and the name of its world, as the file has it.
func (a WalkArea) Place() (server, world string) {
	server, world, _ = strings.Cut(a.World, "/")
	return server, world
}

// checkWalk checks the areas, except for their shapes: the package that walks checks those.
func (l *Loaded) checkWalk(p *problems) {
	for _, name := range slices.Sorted(maps.Keys(l.Walk.Areas)) {
		a, at := l.Walk.Areas[name], "walk.areas."+name
		if !roomKey.MatchString(name) {
			p.bad(at, "is no name for an area: take 1 to 64 small letters, digits, - and _")
		}
		server, world := a.Place()
		_, known := l.Servers[server]
		switch {
		case server == "" || world == "" || strings.Contains(server, ":"):
			p.bad(at+".world", "%q names no world of a server: write server/world, like survival/overworld", a.World)
		case !known && !strings.EqualFold(server, LimboName):
			p.bad(at+".world", "there is no server %q under servers", server)
		}
		if n := len(a.Spawn); n != 0 && n != 2 {
			p.bad(at+".spawn", "has %d numbers: write two, [x, z]", n)
		}
		if a.MaxGuests < 0 || a.MaxGuests > mostGuests {
			p.bad(at+".max-guests", "is not between 1 and %d", mostGuests)
		}
		if l.Walk.Enabled {
			p.warn(at + " is open to everybody who reaches the port: they see where the players in it stand")
		}
	}
	if l.Walk.Enabled && len(l.Walk.Areas) == 0 {
		p.warn("walk is enabled, and there is nowhere to walk: add an area under walk.areas")
	}
}
