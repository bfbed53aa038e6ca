package commands

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/talk"
)

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

// group finds the group that is named at the beginning of args, by name or id, and returns the rest. Names may have
// blanks, so the longest that fits is meant.
func (c *Commands) group(args []string) (g group.Info, rest string, err error) {
	all, err := c.cfg.Voice.ListGroups()
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

// wholeGroup does as group, where nothing may follow.
func (c *Commands) wholeGroup(args []string) (group.Info, error) {
	g, rest, err := c.group(args)
	if err == nil && rest != "" {
		return g, fail("voice-group-none", "group", strings.Join(args, " "))
	}
	return g, err
}

func (c *Commands) showGroup(src Source, g group.Info) packet.Text {
	entry := []packet.Text{c.text(src, "voice-group-entry", "group", g.Name, "type", strings.ToLower(g.Type.String()), "count", strconv.Itoa(len(g.Members)))}
	if g.Locked {
		entry = append(entry, c.text(src, "voice-group-locked"))
	}
	if g.Persistent {
		entry = append(entry, c.text(src, "voice-group-persistent"))
	}
	return join(protocolOf(src), entry...)
}

func (c *Commands) groupList(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) > 0 {
		return false, nil
	}
	all, err := c.cfg.Voice.ListGroups()
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
	switch code, err := c.cfg.Voice.RuleGroup(talk.GroupRequest{Verb: talk.Rename, Group: g.ID, Name: name}); {
	case err != nil:
		return true, err
	case code == talk.InvalidName:
		return true, fail("voice-group-bad-name", "name", name)
	case code == talk.NameTaken:
		return true, fail("voice-group-taken", "name", name)
	case code != talk.OK:
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
	all, err := c.cfg.Voice.ListGroups()
	if err != nil {
		return true, err
	}
	i := slices.IndexFunc(all, func(g group.Info) bool { return slices.Contains(g.Members, id) })
	if i < 0 {
		return true, fail("voice-group-not-in", "player", c.called(id))
	}
	switch code, err := c.cfg.Voice.RuleGroup(talk.GroupRequest{Verb: talk.Kick, Group: all[i].ID, Player: id}); {
	case err != nil:
		return true, err
	case code != talk.OK:
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
	code, err := c.cfg.Voice.RuleGroup(talk.GroupRequest{Verb: talk.Delete, Group: g.ID})
	if err != nil {
		return true, err
	}
	if code != talk.OK {
		return true, fail("voice-group-none", "group", g.Name)
	}
	c.answer(src, "voice-group-deleted", "group", g.Name)
	return true, nil
}
