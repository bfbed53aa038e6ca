package network

import (
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/perm"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/voice"
)

func TestRights(t *testing.T) {
	perms, err := perm.New(permissions(&configs.Permissions{
		Groups:    map[string]configs.PermissionGroup{"staff": {Nodes: []string{"socketsvc.*"}}},
		Players:   map[string]configs.PermissionPlayer{"Quiet": {Nodes: []string{"-socketsvc.speak", "-socketsvc.groups.create"}}},
		Operators: map[int]string{3: "staff"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	reg := world.New()
	of := rights(reg, perms)
	quiet := reg.Add(uuid.New(), "quiet")
	if got := of(quiet.ID); got != voice.Open {
		t.Errorf("not evaluated yet: %b", got)
	}
	place := reg.Place("a", "b")
	quiet.SetFacts(world.Facts{Place: place})
	if got := of(quiet.ID); got != voice.Open&^voice.Speak&^voice.CreateGroups {
		t.Errorf("a player: %b", got)
	}
	quiet.SetFacts(world.Facts{Place: place, OpLevel: 4})
	if got := of(quiet.ID); got != (voice.Open|voice.AdminGroups|voice.MuteExempt)&^voice.Speak&^voice.CreateGroups {
		t.Errorf("an operator, with what is his own first: %b", got)
	}
}

// BenchmarkRights measures what a turn asks for each of a thousand players.
func BenchmarkRights(b *testing.B) {
	perms, err := perm.New(permissions(&configs.Permissions{Groups: map[string]configs.PermissionGroup{"default": {Nodes: []string{"-socketsvc.groups.*"}}}}))
	if err != nil {
		b.Fatal(err)
	}
	reg := world.New()
	place := reg.Place("a", "b")
	var all []uuid.UUID
	for range 1000 {
		p := reg.Add(uuid.New(), "somebody")
		p.SetFacts(world.Facts{Place: place})
		all = append(all, p.ID)
	}
	of := rights(reg, perms)
	b.ReportAllocs()
	for b.Loop() {
		for _, id := range all {
			of(id)
		}
	}
}
