package proto

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// report returns what the game's data generator would write of a version: our names as the game has them, and fillers
// for the packets that nobody here looks at.
func report(v *Version) map[string]map[string]map[string]int32 {
	r := map[string]map[string]map[string]int32{}
	for s := range numStates {
		for d := range numDirs {
			names := map[Packet]string{}
			for name, p := range gameNames[s][d] {
				if name != "game_profile" { // the older of two names
					names[p] = name
				}
			}
			last := -1
			for id, p := range v.Table(s, d) {
				if p != Unknown {
					last = id
				}
			}
			for id := range last + 1 {
				p := v.Table(s, d)[id]
				name, ok := names[p]
				if !ok {
					name = "filler_" + string(rune('a'+id/26)) + string(rune('a'+id%26))
				}
				if r[s.String()] == nil {
					r[s.String()] = map[string]map[string]int32{}
				}
				if r[s.String()][d.String()] == nil {
					r[s.String()][d.String()] = map[string]int32{}
				}
				r[s.String()][d.String()]["minecraft:"+name] = int32(id)
			}
		}
	}
	return r
}

// TestGameNames: every packet of the newest versions has a name of the game's, and in play to the client these stand in
// the order of the alphabet, as the game registers them, but for the few that were added behind the others.
func TestGameNames(t *testing.T) {
	for _, v := range []*Version{Lookup(V26_1), Lookup(V26_2), Lookup(V26_3)} {
		for s := range numStates {
			for d := range numDirs {
				before := ""
				for id, p := range v.Table(s, d) {
					if p == Unknown {
						continue
					}
					var names []string
					for name, q := range gameNames[s][d] {
						if p == q {
							names = append(names, name)
						}
					}
					if len(names) != 1 && !(p == LoginSuccess && len(names) == 2) {
						t.Errorf("%d %v %v: %v is called %q", v.Protocol, s, d, p, names)
						continue
					}
					name := names[0]
					odd := []string{"bundle_delimiter", "custom_report_details", "server_links", "clear_dialog", "show_dialog",
						"accept_teleportation", "custom_click_action", "chat", "client_information", "post_effects"}
					if s == Play && !slices.Contains(odd, name) {
						if key := strings.NewReplacer("move_entity_pos_rot", "move_entity_pos_", "move_minecart_along_track", "move_entity_pos_z",
							"player_info_remove", "player_info_remove", "pong_response", "ping_z").Replace(name); key < before {
							t.Errorf("%d %v %v: %s with id %#x stands behind %s", v.Protocol, s, d, name, id, before)
						} else {
							before = key
						}
					}
				}
			}
		}
	}
}

// TestReportOfTheGame: the report of a version gives that version, and the ids of one whose packets have moved.
func TestReportOfTheGame(t *testing.T) {
	for _, like := range []int32{V26_1, V26_2, V26_3} {
		want := Lookup(like)
		r := report(want)
		v, err := Describe(Description{Protocol: 900, Names: []string{"27.0"}, Like: like, Report: r})
		if err != nil {
			t.Fatal(err)
		}
		for s := range numStates {
			for d := range numDirs {
				if *v.Table(s, d) != *want.Table(s, d) {
					t.Errorf("%d %v %v: %v\nwant %v", like, s, d, v.Table(s, d), want.Table(s, d))
				}
			}
		}
		for name := range r["play"]["clientbound"] {
			r["play"]["clientbound"][name]++
		}
		r["play"]["clientbound"]["minecraft:added"] = 0
		if v, err = Describe(Description{Protocol: 900, Like: like, Report: r}); err != nil {
			t.Fatal(err)
		}
		was, _ := want.ID(Play, Clientbound, KeepAlive)
		if id, ok := v.ID(Play, Clientbound, KeepAlive); !ok || id != was+1 {
			t.Errorf("keep_alive has id %d, want %d", id, was+1)
		}
		if !slices.Equal(v.Names, []string{"protocol 900"}) || v.Like != like || !v.Described || v.PlayerType != want.PlayerType {
			t.Errorf("%+v", v)
		}
	}
}

// TestDescribe: what a description leaves out is as in the version that it is like, and what it says is so.
func TestDescribe(t *testing.T) {
	v, err := Describe(Description{
		Protocol: 900, Packets: map[string]map[string]int32{"play/clientbound": {"keep_alive": 200, "post_effects": -1}},
		Traits: map[string]bool{"compactgamemode": false, "SpawnMetadata": true}, PlayerType: 7,
	})
	if err != nil {
		t.Fatal(err)
	}
	base := Lookup(Max)
	if id, ok := v.ID(Play, Clientbound, KeepAlive); !ok || id != 200 || v.Table(Play, Clientbound)[200] != KeepAlive {
		t.Errorf("keep_alive has id %d", id)
	}
	if was, _ := base.ID(Play, Clientbound, KeepAlive); v.Table(Play, Clientbound)[was] != Unknown {
		t.Error("keep_alive has its old id as well")
	}
	if _, ok := v.ID(Play, Clientbound, PostEffects); ok {
		t.Error("post_effects is there")
	}
	if *v.Table(Play, Serverbound) != *base.Table(Play, Serverbound) || *v.Table(Config, Clientbound) != *base.Table(Config, Clientbound) {
		t.Error("the other tables have changed")
	}
	if v.Has(CompactGameMode) || !v.Has(SpawnMetadata) || !v.Has(SteppedMoves) || v.Has(AttachRides) || v.PlayerType != 7 {
		t.Error("wrong traits")
	}
	// The built-in version is as it was, and mending it is the same.
	if !base.Has(CompactGameMode) || base.Described {
		t.Error("the version it is like has changed")
	}
	mended, err := Describe(Description{Protocol: V1_12_2, Traits: map[string]bool{"KeepAliveI64": false}})
	if err != nil || mended.Has(KeepAliveI64) || mended.Like != V1_12_2 || !slices.Equal(mended.Names, Lookup(V1_12_2).Names) {
		t.Errorf("%+v %v", mended, err)
	}
	// What is printed of a version describes it.
	d := v.Describe()
	again, err := Describe(d)
	if err != nil {
		t.Fatal(err)
	}
	if b := again.Describe(); !maps.EqualFunc(b.Packets, d.Packets, maps.Equal) || !maps.Equal(b.Traits, d.Traits) || b.PlayerType != d.PlayerType {
		t.Error("a description of a description differs")
	}
}

func TestDescriptionsThatCannotBe(t *testing.T) {
	play := func(ids map[string]int32) map[string]map[string]int32 {
		return map[string]map[string]int32{"play/clientbound": ids}
	}
	cut := report(Lookup(Max))
	delete(cut["play"]["clientbound"], "minecraft:keep_alive")
	twice := report(Lookup(Max))
	twice["play"]["clientbound"]["minecraft:keep_alive"] = 1
	renamed := report(Lookup(Max))
	renamed["play"]["clientbound"]["minecraft:still_alive"] = renamed["play"]["clientbound"]["minecraft:keep_alive"]
	delete(renamed["play"]["clientbound"], "minecraft:keep_alive")
	for want, d := range map[string]Description{
		"protocol: 0 is no protocol number":          {},
		"like: protocol 500 is not built in":         {Protocol: 900, Like: 500},
		`names: "" is no name`:                       {Protocol: 900, Names: []string{""}},
		`names: "a\nb" is no name`:                   {Protocol: 900, Names: []string{"a\nb"}},
		"player-type: -1":                            {Protocol: 900, PlayerType: -1},
		`there is no trait "CompactMode"`:            {Protocol: 900, Traits: map[string]bool{"CompactMode": true}},
		`"play" is no state and direction`:           {Protocol: 900, Packets: map[string]map[string]int32{"play": {}}},
		`there is no packet "KeepAlive"`:             {Protocol: 900, Packets: play(map[string]int32{"KeepAlive": 1})},
		"keep_alive has id 256; ids are 0 to 255":    {Protocol: 900, Packets: play(map[string]int32{"keep_alive": 256})},
		"both have id 9":                             {Protocol: 900, Packets: play(map[string]int32{"keep_alive": 9})},
		"play/clientbound has no join_game":          {Protocol: 900, Packets: play(map[string]int32{"join_game": -1})},
		`there is no state "game"`:                   {Protocol: 900, Report: map[string]map[string]map[string]int32{"game": nil}},
		`play has no direction "up"`:                 {Protocol: 900, Report: map[string]map[string]map[string]int32{"play": {"up": nil}}},
		"the report is not whole":                    {Protocol: 900, Report: cut},
		"both have id 1":                             {Protocol: 900, Report: twice},
		"has no keep_alive, without":                 {Protocol: 900, Report: renamed},
		"ids are 0 to 255":                           {Protocol: 900, Report: map[string]map[string]map[string]int32{"play": {"clientbound": {"minecraft:a": 300}}}},
		"has no join_game (minecraft:login), withou": {Protocol: 900, Report: map[string]map[string]map[string]int32{"play": {"clientbound": {"minecraft:keep_alive": 0, "minecraft:custom_payload": 1, "minecraft:disconnect": 2}}}},
	} {
		v, err := Describe(d)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", v, err, want)
		}
	}
}

// TestUse: versions come and go while others look.
func TestUse(t *testing.T) {
	defer Use()
	describe := func(d Description) *Version {
		v, err := Describe(d)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	future := describe(Description{Protocol: 900, Names: []string{"27.0"}, Traits: map[string]bool{"SteppedMoves": false}})
	snapshot := describe(Description{Protocol: 1<<30 + 400, Names: []string{"27.1-snapshot-1"}})
	mended := describe(Description{Protocol: 340, Traits: map[string]bool{"KeepAliveI64": false}})
	between := describe(Description{Protocol: 600, Like: 578})
	var looking sync.WaitGroup
	stop := make(chan struct{})
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if v := Closest(900); v.Protocol != 900 && v.Protocol != Max {
					t.Errorf("the closest to 900 is %d", v.Protocol)
					return
				}
			}
		}
	})
	Use(snapshot, future, mended, between)
	if Lookup(900) != future || Lookup(1<<30+400) != snapshot || Lookup(340) != mended || Lookup(600) != between {
		t.Error("not all are found")
	}
	if Has(340, KeepAliveI64) || !Has(393, KeepAliveI64) || Has(900, SteppedMoves) || !Has(777, SteppedMoves) || Has(600, NamedWorlds) || !Has(735, NamedWorlds) {
		t.Error("wrong traits")
	}
	if Newest() != future || Span() != "1.8-27.0" || len(Supported()) != len(BuiltIn())+3 {
		t.Errorf("newest %d, %s, %d", Newest().Protocol, Span(), len(Supported()))
	}
	for p, want := range map[int32]int32{
		-1: 47, 0: 47, 46: 47, 47: 47, 48: 47, 599: 578, 600: 600, 601: 600, 734: 600, 735: 735, 778: 777, 899: 777, 900: 900, 901: 900,
		99999: 900, 1 << 30: 900, 1<<30 + 400: 1<<30 + 400, 1<<31 - 1: 900,
	} {
		if got := Closest(p); got.Protocol != want {
			t.Errorf("the closest to %d is %d, want %d", p, got.Protocol, want)
		}
	}
	Use()
	close(stop)
	looking.Wait()
	if Lookup(900) != nil || Lookup(340).Described || Newest().Protocol != Max || Span() != "1.8-26.3" {
		t.Error("some are left")
	}
}

// TestTraits: each has a name and a meaning of its own, and begins and ends between two versions that are known.
func TestTraits(t *testing.T) {
	seen := map[string]bool{}
	for _, trait := range Traits() {
		x := traits[trait]
		if x.name == "" || x.about == "" || seen[x.name] {
			t.Errorf("trait %d is %q: %q", trait, x.name, x.about)
		}
		seen[x.name] = true
		if got, ok := TraitByName(strings.ToUpper(x.name)); !ok || got != trait {
			t.Errorf("%s is not found by its name", x.name)
		}
		for i, v := range BuiltIn() {
			if got, want := v.Has(trait), v.Protocol >= x.since && (x.until == 0 || v.Protocol < x.until); got != want {
				t.Errorf("%d has %v: %v", v.Protocol, trait, got)
			}
			if x.since == v.Protocol && (i == 0 || BuiltIn()[i-1].Has(trait)) {
				t.Errorf("%v does not begin with %d", trait, v.Protocol)
			}
		}
		for _, edge := range []int32{x.since, x.until} {
			if edge != 0 && Lookup(edge) == nil {
				t.Errorf("%v changes at %d, which is no version", trait, edge)
			}
		}
	}
	if _, ok := TraitByName("none"); ok {
		t.Error("a trait that does not exist is found")
	}
}

func TestUnknowing(t *testing.T) {
	v := Unknowing(900)
	if !v.Blind() || v.Protocol != 900 || Newest().Blind() || Newest().Protocol != Max {
		t.Errorf("%+v", v)
	}
	for s := range numStates {
		for d := range numDirs {
			if want := *Newest().Table(s, d); s < Config && *v.Table(s, d) != want || s >= Config && *v.Table(s, d) != [256]Packet{} {
				t.Errorf("%v %v: %v", s, d, v.Table(s, d))
			}
		}
	}
}

func TestTally(t *testing.T) {
	var c Tally
	c.Add(47, KeepAlive)
	c.Add(777, KeepAlive)
	if n := c.Add(47, KeepAlive); n != 2 {
		t.Errorf("the second is number %d", n)
	}
	c.Add(47, JoinGame)
	got := ""
	c.Each(func(protocol int32, p Packet, n uint64) { got += p.String() + ":" + string(rune('0'+n)) + " " })
	if c.Count(KeepAlive) != 3 || got != "join_game:1 keep_alive:2 keep_alive:1 " {
		t.Errorf("%d, %s", c.Count(KeepAlive), got)
	}
}

// TestHasDoesNotAllocate: it is asked several times for each packet that is read.
func TestHasDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		if !Has(777, SteppedMoves) || Has(776, SteppedMoves) {
			t.Fatal("no steps")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHas(b *testing.B) {
	for b.Loop() {
		if !Has(777, SteppedMoves) {
			b.Fatal("no steps")
		}
	}
}
