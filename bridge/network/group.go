package network

import (
	"strings"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Groups implements commands.Groups, as the methods of this file do.
func (v voices) Groups() (all []commands.Group, err error) {
	list, err := v.n.parts.gateway.ListGroups()
	for _, g := range list {
		all = append(all, commands.Group{
			ID: g.ID, Name: g.Name, Type: strings.ToLower(g.Type.String()), Persistent: g.Persistent, Locked: g.Locked,
			Owner: g.Owner, Members: g.Members, Used: g.Used,
		})
	}
	return all, err
}

func (v voices) GroupNames() []string { return v.n.parts.gateway.GroupNames() }

func (v voices) RenameGroup(id uuid.UUID, name string) (commands.GroupAnswer, error) {
	return v.rule(talk.GroupRequest{Verb: talk.Rename, Group: id, Name: name})
}

func (v voices) DeleteGroup(id uuid.UUID) (commands.GroupAnswer, error) {
	return v.rule(talk.GroupRequest{Verb: talk.Delete, Group: id})
}

func (v voices) KickFromGroup(id, player uuid.UUID) (commands.GroupAnswer, error) {
	return v.rule(talk.GroupRequest{Verb: talk.Kick, Group: id, Player: player})
}

func (v voices) rule(r talk.GroupRequest) (commands.GroupAnswer, error) {
	code, err := v.n.parts.gateway.RuleGroup(r)
	switch code {
	case talk.OK:
		return commands.GroupDone, err
	case talk.NotInGroup:
		return commands.GroupNotIn, err
	case talk.InvalidName:
		return commands.GroupBadName, err
	case talk.NameTaken:
		return commands.GroupSameName, err
	}
	return commands.GroupGone, err
}
