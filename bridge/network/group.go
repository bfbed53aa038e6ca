package network

import (
	"strings"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/voice/line"
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
	return v.rule(line.GroupRequest{Verb: line.Rename, Group: id, Name: name})
}

func (v voices) DeleteGroup(id uuid.UUID) (commands.GroupAnswer, error) {
	return v.rule(line.GroupRequest{Verb: line.Delete, Group: id})
}

func (v voices) KickFromGroup(id, player uuid.UUID) (commands.GroupAnswer, error) {
	return v.rule(line.GroupRequest{Verb: line.Kick, Group: id, Player: player})
}

func (v voices) rule(r line.GroupRequest) (commands.GroupAnswer, error) {
	code, err := v.n.parts.gateway.RuleGroup(r)
	switch code {
	case line.OK:
		return commands.GroupDone, err
	case line.NotInGroup:
		return commands.GroupNotIn, err
	case line.InvalidName:
		return commands.GroupBadName, err
	case line.NameTaken:
		return commands.GroupSameName, err
	}
	return commands.GroupGone, err
}
