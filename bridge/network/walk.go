package network

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/bridge/walk"
	guests "github.com/earshot-mc/earshot/bridge/walk/serve"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/handshake/front"
	"github.com/earshot-mc/earshot/handshake/socket"
)

// areasOf returns the areas of a configuration, none where they are off. It finds what is wrong also where they are
// off.
func areasOf(w *configs.Walk) (map[string]walk.Config, error) {
	all, wrong := map[string]walk.Config{}, []error(nil)
	if w.TickRate < walk.MinTickRate || w.TickRate > walk.MaxTickRate {
		return all, at("walk.tick-rate", fmt.Errorf("is not between %d and %d", walk.MinTickRate, walk.MaxTickRate))
	}
	for _, name := range slices.Sorted(maps.Keys(w.Areas)) {
		a, key := w.Areas[name], "walk.areas."+name
		server, in := a.Place()
		c := walk.Config{
			Server: server, World: world.WorldName(in), TickRate: w.TickRate, MaxGuests: a.Guests(),
			From: walk.Point{X: min(a.From[0], a.To[0]), Z: min(a.From[1], a.To[1])},
			To:   walk.Point{X: max(a.From[0], a.To[0]), Z: max(a.From[1], a.To[1])},
		}
		if c.Spawn = (walk.Point{X: (c.From.X + c.To.X) / 2, Z: (c.From.Z + c.To.Z) / 2}); len(a.Spawn) == 2 {
			c.Spawn = walk.Point{X: a.Spawn[0], Z: a.Spawn[1]}
		}
		for _, o := range a.Obstacles {
			c.Obstacles = append(c.Obstacles, walk.Obstacle{At: walk.Point{X: o.At[0], Z: o.At[1]}, Radius: o.Radius, Colour: 0x888888})
			if o.Colour == "" {
				continue
			}
			colour, err := strconv.ParseUint(strings.TrimPrefix(o.Colour, "#"), 16, 24)
			if err != nil || len(strings.TrimPrefix(o.Colour, "#")) != 6 {
				wrong = append(wrong, at(key+".obstacles", fmt.Errorf("%q is no colour: write six hex digits, like 3366ff", o.Colour)))
			}
			c.Obstacles[len(c.Obstacles)-1].Colour = uint32(colour)
		}
		wrong = append(wrong, at(key, c.Check()))
		if all[name] = c; !w.Enabled {
			all = map[string]walk.Config{}
		}
	}
	return all, errors.Join(wrong...)
}

// newWalk makes the server of guests who walk. failures counts the failures of addresses, and is shared with the voice
// door.
func newWalk(players *world.Registry, sweeper *socket.Sweeper, failures *front.Failures, t *turned, pages *admin.Admin, log *slog.Logger) *guests.Server {
	tally := func(name, help, label string, words []string) func(string) {
		return pages.Tally(name, help, label, words)
	}
	s := guests.New(guests.Config{Players: players, Sweeper: sweeper, Failures: failures, Log: log, Counts: guests.Counts{
		Message: tally("earshot_walk_messages_total", "Messages of guests who walk, by type.", "type", guests.Labels.Message),
		Closed:  tally("earshot_walk_closed_total", "Connections of guests who walk that have ended, by the code they were closed with; peer: by the guest; lost: by nobody.", "code", guests.Labels.Closed),
		Dropped: tally("earshot_walk_dropped_total", "Messages that guests who walk were too slow for, by type.", "type", guests.Labels.Dropped),
		Ignored: tally("earshot_walk_ignored_total", "Messages of guests who walk that changed nothing, by reason.", "reason", guests.Labels.Ignored),
		Refused: t.walk,
	}})
	pages.Gauges("earshot_walk_guests", "Guests who walk, by area.", "area", func(emit func(string, float64)) {
		for area, n := range s.Guests() {
			emit(area, float64(n))
		}
	})
	return s
}
