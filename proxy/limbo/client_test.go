package limbo

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
)

// client is a player's end of a connection to a World.
type client struct {
	t     testing.TB
	conn  net.Conn
	in    *frame.Reader
	out   *frame.Writer
	v     *proto.Version
	state proto.State
	name  string
	id    uuid.UUID
}

// seen is a clientbound packet.
type seen struct {
	state proto.State
	name  proto.Packet
	id    int32
	body  []byte
}

func idOf(name string) uuid.UUID { return uuid.NewMD5(uuid.NameSpaceOID, []byte(name)) }

func hostOf(id uuid.UUID) string {
	return "play.example\x00192.0.2.1\x00" + strings.ReplaceAll(id.String(), "-", "") +
		`` + "\x00" + `[{"name":"textures","value":"c2tpbg==","signature":"c2ln"}]`
}

// dial connects and says hello; nothing has been read yet.
func dial(t testing.TB, w *World, protocol int32, name string) *client {
	t.Helper()
	conn, err := w.Dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &client{t: t, conn: conn, in: frame.NewReader(conn, frame.Limits{}), out: frame.NewWriter(conn),
		v: proto.Lookup(protocol), state: proto.Login, name: name, id: idOf(name)}
	c.out.Append(0, packet.AppendHandshake(nil, packet.Handshake{Protocol: protocol, Host: hostOf(c.id), Port: 25565, Intent: packet.IntentLogin}))
	c.out.Append(0, packet.AppendLoginStart(nil, protocol, packet.LoginStart{Name: name, ID: c.id, HasID: true}))
	if err := c.out.Flush(); err != nil {
		t.Fatal(err)
	}
	return c
}

// next reads a packet, and follows it into the next state as a real client would.
func (c *client) next() (seen, error) {
	f, err := c.in.Next()
	if err != nil {
		return seen{}, err
	}
	body, err := c.in.Body(f)
	if err != nil {
		return seen{}, err
	}
	p := seen{c.state, c.v.Table(c.state, proto.Clientbound)[f.ID], f.ID, append([]byte{}, body...)}
	switch {
	case p.name == proto.LoginSuccess && c.v.HasConfiguration():
		c.send(proto.LoginAcknowledged, nil)
		c.state = proto.Config
		c.send(proto.ClientInformation, packet.AppendClientInformation(nil, c.v.Protocol, packet.ClientInformation{Locale: "en_us"}))
	case p.name == proto.LoginSuccess:
		c.state = proto.Play
	case p.name == proto.FinishConfiguration:
		c.send(proto.FinishConfiguration, nil)
		c.state = proto.Play
	}
	return p, nil
}

func (c *client) send(p proto.Packet, body []byte) {
	c.t.Helper()
	id, ok := c.v.ID(c.state, proto.Serverbound, p)
	if !ok {
		c.t.Fatalf("%d has no %s", c.v.Protocol, p)
	}
	if err := c.out.Packet(id, body); err != nil {
		c.t.Errorf("%s sends %s: %v", c.name, p, err)
	}
}

// until reads up to and including the first packet that f likes.
func (c *client) until(what string, f func(seen) bool) seen {
	c.t.Helper()
	for {
		p, err := c.next()
		if err != nil {
			c.t.Fatalf("%s (%d) waits for %s: %v", c.name, c.v.Protocol, what, err)
		}
		if f(p) {
			return p
		}
	}
}

// enter reads until the player stands in the world.
func enter(t testing.TB, w *World, protocol int32, name string) *client {
	t.Helper()
	c := dial(t, w, protocol, name)
	c.until("a place", func(p seen) bool { return p.name == proto.Position })
	return c
}

// player reads until the world counts c among its players, and returns that.
func (c *client) player(w *World) *player {
	c.t.Helper()
	c.until("itself on the list", func(s seen) bool { return slices.Contains(c.shown(s), c.id) })
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.players[c.id]
}

// said reads until a line of chat and returns it.
func (c *client) said() string {
	c.t.Helper()
	p := c.until("a line", func(p seen) bool { return p.name == proto.SystemChat || p.name == proto.Chat })
	return packet.ReadText(field.NewReader(p.body), c.v.Protocol, proto.Play).String()
}

// say speaks as the version does, unsigned.
func (c *client) say(line string) {
	c.t.Helper()
	body := field.AppendString(nil, line)
	if c.v.Protocol < proto.V1_19 {
		c.send(proto.Chat, body)
		return
	}
	body = field.AppendI64(field.AppendI64(body, 0), 0)
	switch {
	case c.v.Protocol < proto.V1_19_1:
		body = append(body, 0, 0)
	case c.v.Protocol < proto.V1_19_3:
		body = append(body, 0, 0, 0, 0)
	default:
		body = append(body, 0, 0, 0, 0, 0, 0)
	}
	c.send(proto.ChatMessage, body)
}

// move claims to be somewhere.
func (c *client) move(x, y, z float64) {
	c.t.Helper()
	c.send(proto.Position, append(field.AppendF64(field.AppendF64(field.AppendF64(nil, x), y), z), 0))
}

// shown and hidden are the players a packet puts on the list or takes off it.
func (c *client) shown(p seen) (ids []uuid.UUID) {
	if p.name == proto.PlayerInfo {
		ids, change, err := packet.PlayersChanged(nil, c.v.Protocol, p.body)
		if err != nil {
			c.t.Errorf("%d: player info: %v", c.v.Protocol, err)
		}
		if change == packet.InfoShown {
			return ids
		}
	}
	return nil
}

func (c *client) hidden(p seen) []uuid.UUID {
	ids, err := []uuid.UUID(nil), error(nil)
	change := packet.InfoHidden
	switch p.name {
	case proto.PlayerInfo:
		ids, change, err = packet.PlayersChanged(nil, c.v.Protocol, p.body)
	case proto.PlayerRemove:
		ids, err = packet.ParsePlayerRemove(nil, p.body)
	}
	if err != nil {
		c.t.Errorf("%d: %s: %v", c.v.Protocol, p.name, err)
	}
	if change != packet.InfoHidden {
		return nil
	}
	return ids
}

// drain reads and answers keep-alives until the connection ends; the result is the reason given, if any.
func (c *client) drain() (reason string, err error) {
	for {
		p, err := c.next()
		if err != nil {
			return reason, err
		}
		switch p.name {
		case proto.Disconnect:
			t, err := packet.ParseDisconnect(c.v.Protocol, p.state, p.body)
			if err != nil {
				return reason, fmt.Errorf("%s: %w", p.name, err)
			}
			reason = t.String()
		case proto.KeepAlive:
			c.send(proto.KeepAlive, p.body)
		}
	}
}
