package peer

import (
	"testing"
	"time"
)

// Crowd is one node process with any number of clients of one version.
type Crowd struct {
	Version
	*process
}

func crowd(t testing.TB, script, version string) *Crowd {
	t.Helper()
	c := &Crowd{Version: Version{version, Protocol(version)}}
	if c.Protocol == 0 {
		t.Fatalf("no peers for version %q, see peer.Versions", version)
	}
	c.process = start(t, script, command{"version": version})
	c.await("ready", "", nil)
	return c
}

// Client is one connection of a [Crowd].
type Client struct {
	Name string
	c    *Crowd
}

// Await returns the next event of a kind about this client that matches (nil: any), behind the one the last Await of
// that kind returned. Kinds of both clients: login, moved (by the server), payload, state, kicked, end, lost; bots:
// spawn, respawn, death, pos, game, mount, dismount, chat, actionbar, commands, listed and unlisted (in the tab list);
// raw clients: success, packet.
func (c *Client) Await(kind string, match func(Event) bool) Event {
	c.c.t.Helper()
	return c.c.await(kind, c.Name, match)
}

// Count says how many such events there have been.
func (c *Client) Count(kind string) int { return c.c.count(kind, c.Name) }

// Next waits no longer than within for an event of any of these kinds about this client, behind the one that the last
// Await, Next or Skip of the first kind ended with. ok is false when there was none.
func (c *Client) Next(within time.Duration, kinds ...string) (e Event, ok bool) {
	c.c.t.Helper()
	return c.c.next(within, c.Name, kinds)
}

// Skip makes the next Await of a kind look only at what is still to come.
func (c *Client) Skip(kind string) { c.c.skip(kind, c.Name) }

func (c *Client) do(cmd string, args command) Event {
	c.c.t.Helper()
	if args == nil {
		args = command{}
	}
	args["cmd"], args["name"] = cmd, c.Name
	return c.c.do(args)
}

// Where returns the place of the client, and what it knows about itself. Bots also tell Names, the tab list, and Seen,
// how many entities of each kind there are for them.
func (c *Client) Where() Event { c.c.t.Helper(); return c.do("where", nil) }

// Payload sends a plugin message.
func (c *Client) Payload(channel string, data []byte) {
	c.c.t.Helper()
	c.do("payload", command{"channel": channel, "data": data})
}

// Register announces plugin channels.
func (c *Client) Register(channels ...string) {
	c.c.t.Helper()
	c.do("register", command{"channels": channels})
}

// Quit leaves, Vanish breaks the connection. A raw client whose connection has just ended may do either.
func (c *Client) Quit() { c.c.t.Helper(); c.do("quit", nil) }

// Vanish ends the connection without a word.
func (c *Client) Vanish() { c.c.t.Helper(); c.do("vanish", nil) }

// Bot is a mineflayer player: a complete client with physics.
type Bot struct{ Client }

// BotCrowd is a process of bots.
type BotCrowd struct{ *Crowd }

// Bots starts mineflayer bots in one process, joins them to addr and waits until each has spawned.
func Bots(t testing.TB, version, addr string, names ...string) []*Bot {
	t.Helper()
	c := NewBots(t, version)
	var bots []*Bot
	for _, n := range names {
		bots = append(bots, c.Dial(addr, n))
	}
	for _, b := range bots {
		b.Spawned()
	}
	return bots
}

// NewBots starts the process without any bots yet.
func NewBots(t testing.TB, version string) *BotCrowd {
	t.Helper()
	return &BotCrowd{crowd(t, "bot.js", version)}
}

// Dial makes a bot connect and does not wait for anything.
func (c *BotCrowd) Dial(addr, name string) *Bot { c.t.Helper(); return c.DialAs(addr, name, "") }

// DialAs does as Dial, with another host name than addr's in the handshake, if host is not empty.
func (c *BotCrowd) DialAs(addr, name, host string) *Bot {
	c.t.Helper()
	h, p := hostPort(c.t, addr)
	b := &Bot{Client{name, c.Crowd}}
	args := command{"host": h, "port": p}
	if host != "" {
		args["fakeHost"] = host
	}
	b.do("join", args)
	return b
}

// Join makes a bot connect and waits until it has spawned.
func (c *BotCrowd) Join(addr, name string) *Bot {
	c.t.Helper()
	b := c.Dial(addr, name)
	b.Spawned()
	return b
}

// Spawned waits until the bot stands in the world.
func (b *Bot) Spawned() Event {
	b.c.t.Helper()
	e := b.Await("spawn", nil)
	b.Await("moved", nil)
	return e
}

// Walk walks straight ahead for some ticks of 50 ms and returns where that led.
func (b *Bot) Walk(ticks int) Event {
	b.c.t.Helper()
	return b.do("walk", command{"ticks": ticks})
}

// Goto walks straight to a place on the floor, stops there and returns where that is, within a third of a block.
func (b *Bot) Goto(x, z float64) Event {
	b.c.t.Helper()
	return b.do("goto", command{"x": x, "z": z})
}

// Look turns to a direction in degrees: yaw 0 is south (z grows), 90 west; pitch 90 is down.
func (b *Bot) Look(yaw, pitch float64) {
	b.c.t.Helper()
	b.do("look", command{"yaw": yaw, "pitch": pitch})
}

// Chat says something; a text that begins with / is a command.
func (b *Bot) Chat(text string) { b.c.t.Helper(); b.do("chat", command{"text": text}) }

// Complete presses the Tab key behind text, and returns the choices.
func (b *Bot) Complete(text string) []string {
	b.c.t.Helper()
	return b.do("complete", command{"text": text}).Names
}

// Steer presses keys in a vehicle: left and forward are -1, 0 or 1.
func (b *Bot) Steer(left, forward int) {
	b.c.t.Helper()
	b.do("steer", command{"left": left, "forward": forward})
}

// Command gives a command, without its slash. The error says that the client's connection has ended.
func (r *Raw) Command(text string) error {
	r.c.t.Helper()
	_, err := r.c.try(command{"cmd": "command", "name": r.Name, "text": text})
	return err
}

// Raw is a client that by itself only logs in, keeps alive and confirms teleports.
type Raw struct{ Client }

// RawCrowd is a process of raw clients.
type RawCrowd struct{ *Crowd }

// NewRaw starts a process for raw clients.
func NewRaw(t testing.TB, version string) *RawCrowd {
	t.Helper()
	return &RawCrowd{crowd(t, "raw.js", version)}
}

// Login is how a raw client presents itself.
type Login struct {
	Name    string
	Host    string   // the whole host field of the handshake; empty: that of the address
	Account *Account // for online mode
	// SilentToPlugins leaves login plugin requests unanswered instead of "not understood".
	SilentToPlugins bool
	Forge           bool     // answer as a client with Forge does (forge.js); sends "forge" events at join games
	Watch           []string // see Raw.Watch, from the first packet on
}

// Nobody returns a client that has yet to connect, with Again.
func (c *RawCrowd) Nobody(name string) *Raw { return &Raw{Client{name, c.Crowd}} }

// Again makes a client connect once more, or a first time, and does not wait for anything. A client whose last
// connection has not ended for it yet stays on that.
func (c *RawCrowd) Again(addr string, r *Raw) {
	c.t.Helper()
	h, p := hostPort(c.t, addr)
	c.try(command{"cmd": "join", "name": r.Name, "host": h, "port": p})
}

// Dial makes a client connect and does not wait for anything.
func (c *RawCrowd) Dial(addr string, l Login) *Raw {
	c.t.Helper()
	h, p := hostPort(c.t, addr)
	args := command{"host": h, "port": p, "pluginAnswers": !l.SilentToPlugins}
	if l.Host != "" {
		args["fakeHost"] = l.Host
	}
	if l.Forge {
		args["forge"] = true
	}
	if l.Watch != nil {
		args["watch"] = l.Watch
	}
	if l.Account != nil {
		args["session"] = command{"url": l.Account.URL, "id": l.Account.ID, "token": l.Account.Token}
	}
	r := &Raw{Client{l.Name, c.Crowd}}
	r.do("join", args)
	return r
}

// Join makes a client connect offline and waits until the server has told it where it is.
func (c *RawCrowd) Join(addr, name string) *Raw {
	c.t.Helper()
	r := c.Dial(addr, Login{Name: name})
	r.Await("login", nil)
	r.Await("moved", nil)
	return r
}

// Ping asks a server's status and returns its JSON.
func (c *RawCrowd) Ping(addr string) []byte {
	c.t.Helper()
	h, p := hostPort(c.t, addr)
	return c.do(command{"cmd": "ping", "host": h, "port": p}).Params
}

// Wander makes all clients of the process walk in circles, rate positions a second each, until Rest.
func (c *RawCrowd) Wander(rate int) { c.t.Helper(); c.do(command{"cmd": "wander", "rate": rate}) }

// Rest ends Wander.
func (c *RawCrowd) Rest() { c.t.Helper(); c.do(command{"cmd": "rest"}) }

// Move says the client is at x, y, z.
func (r *Raw) Move(x, y, z float64) {
	r.c.t.Helper()
	r.do("move", command{"x": x, "y": y, "z": z})
}

// MoveLook says where the client is and looks.
func (r *Raw) MoveLook(x, y, z, yaw, pitch float64) {
	r.c.t.Helper()
	r.do("move", command{"x": x, "y": y, "z": z, "yaw": yaw, "pitch": pitch})
}

// Look says where the client looks.
func (r *Raw) Look(yaw, pitch float64) {
	r.c.t.Helper()
	r.do("move", command{"yaw": yaw, "pitch": pitch})
}

// MoveVehicle says where the vehicle is that the client drives, from 1.9 on.
func (r *Raw) MoveVehicle(x, y, z float64) {
	r.c.t.Helper()
	r.do("vehicle", command{"x": x, "y": y, "z": z})
}

// Respawn asks to live again.
func (r *Raw) Respawn() { r.c.t.Helper(); r.do("respawn", nil) }

// Write sends any packet by its name and fields as minecraft-protocol has them.
func (r *Raw) Write(packet string, params any) {
	r.c.t.Helper()
	r.do("write", command{"packet": packet, "params": params})
}

// Raw sends id and body of any packet.
func (r *Raw) Raw(packet []byte) { r.c.t.Helper(); r.do("raw", command{"data": packet}) }

// Watch prints packets of these names from now on, as "packet" events.
func (r *Raw) Watch(packets ...string) {
	r.c.t.Helper()
	r.do("watch", command{"packets": packets})
}

// Seen returns how many packets of each name have come so far.
func (r *Raw) Seen() map[string]int { r.c.t.Helper(); return r.do("seen", nil).Seen }
