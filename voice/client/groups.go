package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/gobwas/ws"

	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/talk"
)

// ErrNotGranted refuses a request that the server has not granted; it would close the connection.
var ErrNotGranted = errors.New("voice: the server has not granted groups")

// control keeps the news of a line of the server. c.mu is held.
func (c *Client) control(v any) {
	if c.caps.Status == 0 {
		return
	}
	switch v := v.(type) {
	case *line.Groups:
		if c.caps.Groups != 0 {
			c.groups, c.groupsAt = v, time.Now()
		}
	case *line.Mute:
		c.mute, c.muteAt = *v, time.Now()
	case *line.Ranges:
		c.ranges = *v
	}
}

// Groups returns the latest snapshot of the groups, nil before the first. Its invitations have the seconds that are
// left now. Those that have run out are not in it, whether or not the server has said so yet.
func (c *Client) Groups() *line.Groups {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups == nil || len(c.groups.Invites) == 0 {
		return c.groups
	}
	g, since := *c.groups, int(time.Since(c.groupsAt)/time.Second)
	g.Invites = nil
	for _, i := range c.groups.Invites {
		if i.Seconds -= since; i.Seconds > 0 {
			g.Invites = append(g.Invites, i)
		}
	}
	return &g
}

// Mute returns whether the server lets the player's voice through, as last told, with the seconds that are left now by
// our own clock. At 0 the server is about to say that it is over.
func (c *Client) Mute() line.Mute {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mute
	if m.Timed {
		m.Seconds = max(0, m.Seconds-int(time.Since(c.muteAt)/time.Second))
	}
	return m
}

// Ranges returns the tiers that the server offers: none until it says so, and then none must be offered to the player.
func (c *Client) Ranges() line.Ranges {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ranges
}

// Group asks the server for something about groups. The answer is a text, SSVC_GROUP_RESULT_V1. The server takes no
// more than one request in 200 ms.
func (c *Client) Group(r talk.GroupRequest) error {
	if c.caps.Groups == 0 || r.Verb.Edits() && c.caps.GroupEdit == 0 {
		return fmt.Errorf("%w: %s", ErrNotGranted, r.Verb)
	}
	ok, err := c.enqueue(message{ws.OpText, line.AppendC2S(nil, &line.C2S{Request: line.Group, Group: r})})
	if err == nil && !ok {
		err = errors.New("voice: the outgoing queue is full")
	}
	return err
}
