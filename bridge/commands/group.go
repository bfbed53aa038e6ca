package commands

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/packet"
)

// Groups are those of players who talk among themselves. Its methods may wait for a moment, except GroupNames.
type Groups interface {
	// Groups lists them in the order in which to show them.
	Groups() ([]Group, error)
	// GroupNames are those of now, for completion.
	GroupNames() []string
	// RenameGroup gives a group another name. The error is one of a key of the texts where the name cannot be given.
	RenameGroup(id uuid.UUID, name string) (GroupAnswer, error)
	// DeleteGroup ends a group, with its members in it or not.
	DeleteGroup(id uuid.UUID) (GroupAnswer, error)
	// KickFromGroup takes a player out of it.
	KickFromGroup(id, player uuid.UUID) (GroupAnswer, error)
}

// GroupAnswer is what became of a change to a group.
type GroupAnswer uint8

// The answers.
const (
	GroupDone     GroupAnswer = iota
	GroupGone                 // there is no such group any more
	GroupNotIn                // the player is not in it
	GroupBadName              // nobody may call a group that
	GroupSameName             // another group is called that, or looks like it
)

// Group is one group.
type Group struct {
	ID         uuid.UUID
	Name       string
	Type       string // normal, open, isolated
	Persistent bool
	Locked     bool // has a password
	Owner      uuid.UUID
	Members    []uuid.UUID
	Used       time.Time // of a persistent one: when somebody was in it, to a day; zero: not known
}

var groupParts = []voicePart{
	{"group list", "voice.group", "", (*Commands).groupList, nil},
	{"group info", "voice.group", " <group>", (*Commands).groupInfo, groups},
	{"group rename", "voice.group", " <group> <name>", (*Commands).groupRename, groups},
	{"group kick", "voice.group", " <player>", (*Commands).groupKick, only(players)},
	{"group delete", "voice.group", " <group>", (*Commands).groupDelete, groups},
}

// groups completes the name of a group. One with blanks in it is completed as far as its first word.
func groups(c *Commands, src Source, before []string) []packet.Suggestion {
	var words []string
	for _, name := range c.cfg.Voice.GroupNames() {
		if f := strings.Fields(name); len(f) > len(before) && slices.EqualFunc(f[:len(before)], before, strings.EqualFold) && !slices.Contains(words, f[len(before)]) {
			words = append(words, f[len(before)])
		}
	}
	return suggest(words...)(src, nil)
}

// group finds the group that is named at the beginning of what was typed, by name or id, and what follows. Names may have
// blanks, so that the longest that fits is meant.
func (c *Commands) group(args []string) (g Group, rest string, err error) {
	all, err := c.cfg.Voice.Groups()
	if err != nil {
		return g, "", err
	}
	for n := len(args); n > 0; n-- {
		word := strings.Join(args[:n], " ")
		for _, g := range all {
			if strings.EqualFold(strings.Join(strings.Fields(g.Name), " "), word) || g.ID.String() == strings.ToLower(word) {
				return g, strings.Join(args[n:], " "), nil
			}
		}
	}
	return g, "", fail("voice-group-none", "group", strings.Join(args, " "))
}

// whole is group where nothing may follow.
func (c *Commands) wholeGroup(args []string) (Group, error) {
	g, rest, err := c.group(args)
	if err == nil && rest != "" {
		return g, fail("voice-group-none", "group", strings.Join(args, " "))
	}
	return g, err
}

func (c *Commands) showGroup(src Source, g Group) packet.Text {
	line := []packet.Text{c.text(src, "voice-group-entry", "group", g.Name, "type", g.Type, "count", strconv.Itoa(len(g.Members)))}
	if g.Locked {
		line = append(line, c.text(src, "voice-group-locked"))
	}
	if g.Persistent {
		line = append(line, c.text(src, "voice-group-persistent"))
	}
	return join(protocolOf(src), line...)
}

func (c *Commands) groupList(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) > 0 {
		return false, nil
	}
	all, err := c.cfg.Voice.Groups()
	if err != nil {
		return true, err
	}
	return true, c.list(src, "voice-groups-none", len(all), func(i int) packet.Text { return c.showGroup(src, all[i]) })
}

func (c *Commands) groupInfo(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	g, err := c.wholeGroup(args)
	if err != nil {
		return true, err
	}
	src.Send(c.showGroup(src, g))
	c.answer(src, "voice-group-owner", "player", c.called(g.Owner), "id", g.ID.String())
	if len(g.Members) > 0 {
		c.answer(src, "voice-group-members", "names", c.calledAll(g.Members))
	} else if g.Persistent && !g.Used.IsZero() {
		c.answer(src, "voice-group-used", "date", g.Used.UTC().Format(time.DateOnly))
	}
	return true, nil
}

func (c *Commands) groupRename(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) < 2 {
		return false, nil
	}
	g, name, err := c.group(args)
	if err != nil {
		return true, err
	}
	if name == "" {
		return false, nil
	}
	switch answer, err := c.cfg.Voice.RenameGroup(g.ID, name); {
	case err != nil:
		return true, err
	case answer == GroupBadName:
		return true, fail("voice-group-bad-name", "name", name)
	case answer == GroupSameName:
		return true, fail("voice-group-taken", "name", name)
	case answer != GroupDone:
		return true, fail("voice-group-none", "group", g.Name)
	}
	c.answer(src, "voice-group-renamed", "group", g.Name, "name", name)
	return true, nil
}

func (c *Commands) groupKick(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 1 {
		return false, nil
	}
	id, err := c.who(args[0])
	if err != nil {
		return true, err
	}
	all, err := c.cfg.Voice.Groups()
	if err != nil {
		return true, err
	}
	i := slices.IndexFunc(all, func(g Group) bool { return slices.Contains(g.Members, id) })
	if i < 0 {
		return true, fail("voice-group-not-in", "player", c.called(id))
	}
	switch answer, err := c.cfg.Voice.KickFromGroup(all[i].ID, id); {
	case err != nil:
		return true, err
	case answer != GroupDone:
		return true, fail("voice-group-not-in", "player", c.called(id))
	}
	c.answer(src, "voice-group-kicked", "player", c.called(id), "group", all[i].Name)
	return true, nil
}

func (c *Commands) groupDelete(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	g, err := c.wholeGroup(args)
	if err != nil {
		return true, err
	}
	answer, err := c.cfg.Voice.DeleteGroup(g.ID)
	if err != nil {
		return true, err
	}
	if answer != GroupDone {
		return true, fail("voice-group-none", "group", g.Name)
	}
	c.answer(src, "voice-group-deleted", "group", g.Name)
	return true, nil
}
