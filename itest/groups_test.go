package itest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/client"
	"github.com/earshot-mc/earshot/voice/talk"
)

// TestGroupsUnderAbuse: one player can neither take the places of persistent groups, nor keep a group shut, nor fake
// its name, nor go on asking; and staff see and rule all groups, in the game.
func TestGroupsUnderAbuse(t *testing.T) {
	p := start(t, moderated, "--offline")
	bots := peer.NewBots(t, "1.21.4")
	mod := bots.Join(p.addr, "Mod")
	ann, bob, mal := newMember(t, p, bots.Join(p.addr, "Ann")), newMember(t, p, bots.Join(p.addr, "Bob")), newMember(t, p, bots.Join(p.addr, "Mal"))
	create := func(m *member, name, password string, persistent bool, answer string) {
		t.Helper()
		m.asks(talk.GroupRequest{Verb: talk.Create, Name: name, Password: password, Persistent: persistent, Type: talk.OpenGroup}, answer)
	}
	for i := range 3 {
		create(mal, fmt.Sprint("spam", i), "", true, "OK")
		mal.asks(talk.GroupRequest{Verb: talk.Leave}, "OK")
	}
	create(mal, "spam3", "", true, "TOO_MANY_GROUPS")

	create(ann, " Staff ", "right", false, "OK")
	for _, fake := range []string{"staff", "St\u0430ff", "Staff\u00a0"} {
		create(mal, fake, "", false, "NAME_TAKEN")
	}
	create(mal, "Sta\u034fff", "", false, "INVALID_NAME")
	var id = func() (g talk.GroupRow) {
		ann.shows("the group", func(c *client.Client) bool {
			for _, g = range c.Groups().Groups {
				if g.Name == "Staff" {
					return true
				}
			}
			return false
		})
		return g
	}().ID
	for range 8 {
		mal.asks(talk.GroupRequest{Verb: talk.Join, Group: id, Password: "wrong"}, "WRONG_PASSWORD")
	}
	bob.asks(talk.GroupRequest{Verb: talk.Join, Group: id, Password: "right"}, "OK")
	for range 2 {
		ann.asks(talk.GroupRequest{Verb: talk.Invite, Group: id, Player: mal.id}, "OK")
		mal.asks(talk.GroupRequest{Verb: talk.Decline, Group: id}, "OK")
	}
	bob.asks(talk.GroupRequest{Verb: talk.Invite, Group: id, Player: mal.id}, "ALREADY_INVITED")

	says(mod, "/voice group list", "Staff: open, members: 2, with a password")
	says(mod, "/voice group info staff", "Members: Ann, Bob")
	says(mod, "/voice group info spam1", "Owner: Mal.")
	says(mod, "/voice group kick Bob", "Bob is no longer in the group Staff.")
	bob.asks(talk.GroupRequest{Verb: talk.Leave}, "NOT_IN_GROUP")
	says(mod, "/voice group rename staff The Crew", "The group Staff is called The Crew now.")
	bob.shows("the new name", func(c *client.Client) bool {
		for _, g := range c.Groups().Groups {
			if g.Name == "The Crew" {
				return true
			}
		}
		return false
	})
	says(mod, "/voice group delete spam1", "The group spam1 is gone.")
	create(mal, "again", "", true, "OK")
	mal.asks(talk.GroupRequest{Verb: talk.Leave}, "OK")
	ann.bot.Chat("/voice group list")
	if said := ann.bot.Await("chat", nil).Text; strings.Contains(said, "The Crew") {
		t.Errorf("Ann, who is nobody, is told %q", said)
	}
	// The bound and the permission are settings that a reload puts in force.
	p.write(moderated + "voice: {groups: {max-persistent: 4}}\n")
	testkit.Until(t, "the reload", func() bool { return strings.Contains(p.log.String(), "was read again") })
	create(mal, "fourth", "", true, "OK")
	mal.asks(talk.GroupRequest{Verb: talk.Leave}, "OK")
	p.write("permissions: {groups: {default: {nodes: [-socketsvc.groups.persistent]}}}\n")
	testkit.Until(t, "the second reload", func() bool { return strings.Count(p.log.String(), "was read again") == 2 })
	create(bob, "mine", "", true, "PERSISTENT_NOT_ALLOWED")
}
