package commands

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/talk"
)

// grouped is groups that are kept as told.
type grouped struct{ groups []group.Info }

func (g *grouped) ListGroups() ([]group.Info, error) { return slices.Clone(g.groups), nil }
func (g *grouped) GroupNames() (names []string) {
	for _, o := range g.groups {
		names = append(names, o.Name)
	}
	return names
}
func (g *grouped) RuleGroup(r talk.GroupRequest) (talk.Code, error) {
	i := slices.IndexFunc(g.groups, func(o group.Info) bool { return o.ID == r.Group })
	switch {
	case i < 0:
		return talk.NotFound, nil
	case r.Verb == talk.Delete:
		g.groups = slices.Delete(g.groups, i, i+1)
	case r.Verb == talk.Rename && len(r.Name) > 24:
		return talk.InvalidName, nil
	case r.Verb == talk.Rename && slices.Contains(g.GroupNames(), r.Name):
		return talk.NameTaken, nil
	case r.Verb == talk.Rename:
		g.groups[i].Name = r.Name
	case r.Verb == talk.Kick && !slices.Contains(g.groups[i].Members, r.Player):
		return talk.NotInGroup, nil
	case r.Verb == talk.Kick:
		o := &g.groups[i]
		o.Members = slices.DeleteFunc(slices.Clone(o.Members), func(m uuid.UUID) bool { return m == r.Player })
	}
	return talk.OK, nil
}

func someGroups() []group.Info {
	return []group.Info{
		{GroupRow: talk.GroupRow{ID: uuid.UUID{1}, Name: "Red", Type: talk.NormalGroup, Owner: jeb, Locked: true}, Members: []uuid.UUID{jeb, notch}},
		{
			GroupRow: talk.GroupRow{ID: uuid.UUID{2}, Name: "Red  Team", Type: talk.OpenGroup, Owner: absent, Persistent: true},
			Used:     time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC),
		},
	}
}

func TestGroups(t *testing.T) {
	_, g, c := voiced(t)
	same(t, "none", says(t, c, "voice group list", "voice group info x"), "There are no groups.", "There is no group x. /voice group list lists them.")
	g.groups = someGroups()
	same(t, "groups", says(t, c, "voice group", "voice group list", "voice group info RED", "voice group info red team", "voice group info red x", "voice group info "+(uuid.UUID{2}).String(), "voice group info",
		"voice group rename red team Blue Team", "voice group rename red", "voice group rename red Blue Team", "voice group rename none x", "voice group rename red "+strings.Repeat("x", 25),
		"voice group kick notch", "voice group kick notch", "voice group kick Bob", "voice group kick", "voice group delete blue", "voice group delete blue team", "voice group delete red", "voice group list"),
		"Type /voice group <list|info|rename|kick|delete>.",
		"Red: normal, members: 2, with a password", "Red  Team: open, members: 0, persistent",
		"Red: normal, members: 2, with a password", "Owner: jeb_. Id: "+(uuid.UUID{1}).String(), "Members: Notch, jeb_",
		"Red  Team: open, members: 0, persistent", "Owner: "+absent.String()+". Id: "+(uuid.UUID{2}).String(), "Last used: 2026-03-01",
		"There is no group red x. /voice group list lists them.",
		"Red  Team: open, members: 0, persistent", "Owner: "+absent.String()+". Id: "+(uuid.UUID{2}).String(), "Last used: 2026-03-01",
		"Type /voice group info <group>.",
		"The group Red  Team is called Blue Team now.", "Type /voice group rename <group> <name>.", "Another group is called Blue Team, or something that looks like it.",
		"There is no group none x. /voice group list lists them.", strings.Repeat("x", 25)+" is no name for a group: 1 to 24 characters that can be seen.",
		"Notch is no longer in the group Red.", "Notch is in no group.", "Nobody called Bob is or was here. For a player who has never been here, use the UUID.", "Type /voice group kick <player>.",
		"There is no group blue. /voice group list lists them.", "The group Blue Team is gone.", "The group Red is gone.", "There are no groups.")
}
