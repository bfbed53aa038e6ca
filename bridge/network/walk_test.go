package network

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/bridge/walk"
	"github.com/earshot-mc/earshot/configs"
)

// TestBadAreas: what is wrong with an area is an error with file and line, whether or not they are on.
func TestBadAreas(t *testing.T) {
	for area, want := range map[string]string{
		"world: s/overworld, from: [0, 0], to: [0, 0]":                                                       "walk.areas.a: from has to be lower than to",
		"world: s/overworld, from: [0, 0], to: [10001, 5]":                                                   "walk.areas.a: an area has at most 10000 blocks",
		"world: s/overworld, from: [0, 0], to: [9, 9], spawn: [10, 1]":                                       "walk.areas.a: spawn is outside",
		"world: s/overworld, from: [0, 0], to: [9, 9], spawn: [1]":                                           "walk.areas.a.spawn: has 1 numbers",
		"world: overworld, from: [0, 0], to: [9, 9]":                                                         `walk.areas.a.world: "overworld" names no world of a server`,
		"world: t/overworld, from: [0, 0], to: [9, 9]":                                                       `walk.areas.a.world: there is no server "t"`,
		"world: s/overworld, from: [0, 0], to: [9, 9], max-guests: -1":                                       "walk.areas.a.max-guests: is not between",
		"world: s/overworld, from: [0, 0], to: [9, 9], obstacles: [{at: [1, 1], radius: 0}]":                 "walk.areas.a: the radius of an obstacle",
		"world: s/overworld, from: [0, 0], to: [9, 9], obstacles: [{at: [1, 1], radius: 1, colour: \"12\"}]": `walk.areas.a.obstacles: "12" is no colour`,
	} {
		f := filepath.Join(t.TempDir(), configs.FileName)
		os.WriteFile(f, []byte("servers: {s: '127.0.0.1:1'}\nwalk: {areas: {a: {"+area+"}}}\n"), 0o600)
		l, err := configs.Load(f, "", nil)
		if err == nil {
			_, err = New(l, Options{Dir: t.TempDir()})
		}
		if err == nil || !strings.Contains(err.Error(), f+":2: "+want) {
			t.Errorf("%s:\n have %v\n want %s", area, err, want)
		}
	}
}

// TestAreas: an area's corners may be given in any order, its middle is where guests begin, and worlds have the names
// that players know.
func TestAreas(t *testing.T) {
	w := configs.Walk{Enabled: true, TickRate: 20, Areas: map[string]configs.WalkArea{"a": {
		World: "s/the_nether", From: [2]float64{10, -20}, To: [2]float64{-10, 40}, Obstacles: []configs.WalkObstacle{{Radius: 1, Colour: "#3366ff"}},
	}}}
	all, err := areasOf(&w)
	if err != nil {
		t.Fatal(err)
	}
	a := all["a"]
	if a.Server != "s" || a.World != "minecraft:the_nether" || a.From != (walk.Point{X: -10, Z: -20}) || a.To != (walk.Point{X: 10, Z: 40}) ||
		a.Spawn != (walk.Point{Z: 10}) || a.MaxGuests != 20 || a.Obstacles[0].Colour != 0x3366ff {
		t.Errorf("%+v", a)
	}
	w.Enabled = false
	if all, err := areasOf(&w); err != nil || len(all) != 0 {
		t.Errorf("off, there are %v, %v", all, err)
	}
}
