package commands

import (
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/packet"
)

// Page lets players into the voice page. Its methods must not wait.
type Page interface {
	// Link returns an address that opens the page for the player, once and for five minutes. It is false where their
	// client did not say by which address they joined.
	Link(p Player) (url string, ok bool)
	// Letters returns six letters that do the same for two minutes, and the address where to type them.
	Letters(p Player) (code, url string, ok bool)
	// ToggleMic opens or closes the microphone of the player's page. It is false where they have none open.
	ToggleMic(player uuid.UUID) bool
}

// pageNode is the permission of everything about one's own page. Everybody has it at first.
const pageNode = "voice.link"

// pageWords are what /voice alone stands for.
var pageWords = []string{"link"}

var pageParts = []voicePart{
	{"link", pageNode, "", (*Commands).pageLink, nil},
	{"code", pageNode, "", (*Commands).pageCode, nil},
	{"mic", pageNode, "", (*Commands).pageMic, nil},
}

// opener returns the player of src.
func (c *Commands) opener(src Source) (Player, error) {
	if p := src.Player(); p != nil {
		return p, nil
	}
	return nil, fail("only-players")
}

func (c *Commands) pageLink(src Source, args []string, _ string) (understood bool, err error) {
	p, err := c.opener(src)
	if len(args) > 0 || err != nil {
		return len(args) == 0, err
	}
	url, ok := c.cfg.Page.Link(p)
	if !ok {
		return true, fail("voice-no-address")
	}
	say := func(k key) packet.Text { return c.text(src, k) }
	src.Send(join(p.Protocol(), say("voice-link"), link(p.Protocol(), say("voice-link-open"), say("voice-link-hover"), url), say("voice-link-once")))
	return true, nil
}

func (c *Commands) pageCode(src Source, args []string, _ string) (understood bool, err error) {
	p, err := c.opener(src)
	if len(args) > 0 || err != nil {
		return len(args) == 0, err
	}
	code, url, ok := c.cfg.Page.Letters(p)
	if !ok {
		return true, fail("voice-no-address")
	}
	c.answer(src, "voice-code", "code", code, "address", url)
	return true, nil
}

func (c *Commands) pageMic(src Source, args []string, _ string) (understood bool, err error) {
	p, err := c.opener(src)
	if len(args) > 0 || err != nil {
		return len(args) == 0, err
	}
	if !c.cfg.Page.ToggleMic(p.ID()) {
		return true, fail("voice-mic-none")
	}
	c.answer(src, "voice-mic")
	return true, nil
}

// Invitation returns the line that tells a player of the voice page.
func (t *Texts) Invitation(locale string, protocol int32) packet.Text {
	say := func(k key) packet.Text { return t.text(locale, k) }
	return join(protocol, say("voice-invite"), clickable(protocol, say("voice-invite-open"), say("voice-invite-hover"), "/voice"))
}
