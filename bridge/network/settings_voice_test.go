package network

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/talk"
)

func TestVoiceSettings(t *testing.T) {
	v := configs.Default().Voice
	v.Regions["arena"] = configs.Region{World: "overworld", From: [3]float64{9, 0, -1}, To: [3]float64{0, 5, 1}, Range: 16, Priority: 2}
	v.Worlds = map[string]float64{"the_nether": 1, "survival/the_end": 2, "minecraft:caves": 3, "survival/twilight:forest": 4}
	v.Groups.Types = []string{"isolated", "normal"}
	if c, err := voiceConfig(&v); err != nil || c.SoundboardOff {
		t.Errorf("the soundboard is off by default: %v, %v", c.SoundboardOff, err)
	}
	v.Soundboard = false
	id := "853c80ef-3c37-49fd-aa49-938b674adae6"
	v.Domains["red"] = []string{id}
	v.Listens = []configs.Listen{{Listener: id, Domain: "red"}}
	c, err := voiceConfig(&v)
	if err != nil {
		t.Fatal(err)
	}
	want := gain.Region{Name: "arena", World: "minecraft:overworld", Min: [3]float64{0, 0, -1}, Max: [3]float64{9, 5, 1}, Range: 16, Priority: 2}
	g := c.Policy.Gain
	if len(g.Regions) != 1 || g.Regions[0] != want || g.Tiers != [talk.Tiers]float64{talk.Whisper: 0.5, talk.Shout: 2} || g.Default != 48 {
		t.Errorf("%+v", g)
	}
	if got, want := g.Worlds, map[string]float64{
		"minecraft:the_nether": 1, "survival/minecraft:the_end": 2, "minecraft:caves": 3, "survival/twilight:forest": 4,
	}; !maps.Equal(got, want) {
		t.Errorf("the ranges of worlds are %v", got)
	}
	if !c.SoundboardOff {
		t.Error("the soundboard cannot be switched off")
	}
	if l := c.Groups; !l.Enabled || l.Types != [talk.GroupTypes]bool{talk.NormalGroup: true, talk.IsolatedGroup: true} || l.Groups != 200 {
		t.Errorf("%+v", l)
	}
	for typ, word := range configs.GroupTypes {
		if talk.GroupType(typ).String() != strings.ToUpper(word) {
			t.Errorf("type %d is %q", typ, word)
		}
	}
	if s := c.Declared; len(s.Domains) != 1 || len(s.Domains[0].Members) != 1 || s.Domains[0].Members[0].String() != id || len(s.Listens) != 1 {
		t.Errorf("%+v", s)
	}
	v.Domains["a blank"] = nil
	if _, err := voiceConfig(&v); err == nil {
		t.Error("a domain of two words is accepted")
	}
}

// TestEveryTierIsWhole: a tier is a row of talk's table, a setting of its name for its loudness, and the words for it.
func TestEveryTierIsWhole(t *testing.T) {
	for tier := range talk.Tier(talk.Tiers) {
		if tier == talk.Normal {
			continue
		}
		v := configs.Default().Voice
		fields := reflect.ValueOf(&v).Elem()
		for i := range fields.NumField() {
			if fields.Type().Field(i).Tag.Get("yaml") == tier.String() {
				fields.Field(i).SetFloat(1.25)
			}
		}
		c, err := voiceConfig(&v)
		if err != nil || c.Policy.Gain.Factor(tier) != 1.25 || !c.Policy.Gain.Offered().Has(tier) {
			t.Errorf("voice.%s does not say how loud it is: %v", tier, err)
		}
		if !slices.Contains(commands.Keys(), "voice-why-"+tier.String()) {
			t.Errorf("there is no text voice-why-%s", tier)
		}
	}
}
