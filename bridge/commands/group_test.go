package commands

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// grouped is groups that are kept as told.
type grouped struct{ groups []Group }

func (g *grouped) Groups() ([]Group, error) { return slices.Clone(g.groups), nil }
func (g *grouped) GroupNames() (names []string) {
	for _, o := range g.groups {
		names = append(names, o.Name)
	}
	return names
}
func (g *grouped) index(id uuid.UUID) int {
	return slices.IndexFunc(g.groups, func(o Group) bool { return o.ID == id })
}
func (g *grouped) RenameGroup(id uuid.UUID, name string) (GroupAnswer, error) {
	switch i := g.index(id); {
	case i < 0:
		return GroupGone, nil
	case len(name) > 24:
		return GroupBadName, nil
	case slices.Contains(g.GroupNames(), name):
		return GroupSameName, nil
	default:
		g.groups[i].Name = name
		return GroupDone, nil
	}
}
func (g *grouped) DeleteGroup(id uuid.UUID) (GroupAnswer, error) {
	i := g.index(id)
	if i < 0 {
		return GroupGone, nil
	}
	g.groups = slices.Delete(g.groups, i, i+1)
	return GroupDone, nil
}
func (g *grouped) KickFromGroup(id, player uuid.UUID) (GroupAnswer, error) {
	o := &g.groups[g.index(id)]
	if !slices.Contains(o.Members, player) {
		return GroupNotIn, nil
	}
	o.Members = slices.DeleteFunc(slices.Clone(o.Members), func(m uuid.UUID) bool { return m == player })
	return GroupDone, nil
}

func someGroups() []Group {
	return []Group{
		{ID: uuid.UUID{1}, Name: "Red", Type: "normal", Owner: jeb, Members: []uuid.UUID{jeb, notch}, Locked: true},
		{ID: uuid.UUID{2}, Name: "Red  Team", Type: "open", Owner: absent, Persistent: true, Used: time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)},
	}
}

func TestGroups(t *testing.T) {
	_, g, c := voiced(t)
	same(t, "none", says(t, c, "voice group list", "voice group info x"), "There are no groups.", "There is no group x. Those that there are: /voice group list.")
	g.groups = someGroups()
	same(t, "groups", says(t, c, "voice group", "voice group list", "voice group info RED", "voice group info red team", "voice group info red x", "voice group info "+(uuid.UUID{2}).String(), "voice group info",
		"voice group rename red team Blue Team", "voice group rename red", "voice group rename red Blue Team", "voice group rename none x", "voice group rename red "+strings.Repeat("x", 25),
		"voice group kick notch", "voice group kick notch", "voice group kick Bob", "voice group kick", "voice group delete blue", "voice group delete blue team", "voice group delete red", "voice group list"),
		"Type /voice group <list|info|rename|kick|delete>.",
		"Red: normal, members: 2, with a password", "Red  Team: open, members: 0, persistent",
		"Red: normal, members: 2, with a password", "Owner: jeb_. Id: "+(uuid.UUID{1}).String(), "Members: Notch, jeb_",
		"Red  Team: open, members: 0, persistent", "Owner: "+absent.String()+". Id: "+(uuid.UUID{2}).String(), "Last used: 2026-03-01",
		"There is no group red x. Those that there are: /voice group list.",
		"Red  Team: open, members: 0, persistent", "Owner: "+absent.String()+". Id: "+(uuid.UUID{2}).String(), "Last used: 2026-03-01",
		"Type /voice group info <group>.",
		"The group Red  Team is called Blue Team now.", "Type /voice group rename <group> <name>.", "There is a group already that is called Blue Team, or looks like it.",
		"There is no group none x. Those that there are: /voice group list.", strings.Repeat("x", 25)+" is no name for a group: 1 to 24 characters that can be seen.",
		"Notch is no longer in the group Red.", "Notch is in no group.", "Nobody called Bob is here, or was here before. Of somebody else, write the UUID.", "Type /voice group kick <player>.",
		"There is no group blue. Those that there are: /voice group list.", "The group Blue Team is gone.", "The group Red is gone.", "There are no groups.")
}
