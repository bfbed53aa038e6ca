package itest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/offer"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/voice/client"
)

// What the rule of visibility allows, at most: how long somebody hidden is heard, and somebody shown is silent.
const (
	hiddenHeard = 800 * time.Millisecond
	shownSilent = time.Second
)

// TestVisibilitySoak has players vanish, come back, refresh their skins and switch worlds and servers at random, all of
// them talking, beside a model that knows the truth: 24 players for 12 s, or with EARSHOT_LONG 60 for ten minutes, or
// for EARSHOT_SOAK. Servers and clients are this file's own and cheap: they speak the protocol and do nothing more.
func TestVisibilitySoak(t *testing.T) {
	players, length := 24, 12*time.Second
	if long() {
		players, length = 60, soakLength(t, 10*time.Minute)
	} else {
		t.Parallel()
	}
	c := newCast(t, players)
	c.play(length)
}

// spawnVectors are the bodies of join_game and respawn that an independent implementation has made, by
// "packet/protocol/world": those of players who can be heard, all with one seed.
var spawnVectors = sync.OnceValues(func() (map[string][]byte, error) {
	b, err := os.ReadFile("../proxy/packet/testdata/bridge.jsonl")
	all := map[string][]byte{}
	for row := range bytes.Lines(b) {
		var v struct {
			Packet, Hex string
			Protocols   []int32
			Fields      json.RawMessage
		}
		if err := json.Unmarshal(row, &v); err != nil {
			return nil, err
		}
		if v.Packet != "join_game" && v.Packet != "respawn" {
			continue
		}
		var fields struct {
			World string
			Mode  world.GameMode
			Seed  int64
		}
		if err := json.Unmarshal(v.Fields, &fields); err != nil {
			return nil, err
		}
		if fields.Mode == world.Spectator {
			continue
		}
		body, err := hex.DecodeString(v.Hex)
		if err != nil {
			return nil, err
		}
		if fields.Seed != 0 {
			body = bytes.Replace(body, field.AppendI64(nil, fields.Seed), field.AppendI64(nil, 1), 1)
		}
		for _, p := range v.Protocols {
			all[fmt.Sprint(v.Packet, "/", p, "/", fields.World)] = body
		}
	}
	return all, err
})

// hall is a game server with two worlds, for clients of any version. Clients before 1.16 know both by one name.
type hall struct {
	name, addr string
	c          *cast
	nextID     int32
	here       []*actor // whom it has let in; the cast's lock
}

const worlds = 2

// apart is by how many ticks the worlds differ in age.
const apart = 5000

func worldName(v *proto.Version, world int) string {
	if world == 0 || !v.Has(proto.NamedWorlds) {
		return overworld
	}
	return "lobby:spawn"
}

// actor is a player: a client, how a server sees it, and the truth about it.
type actor struct {
	name    string
	id      uuid.UUID
	index   int
	version *proto.Version
	c       *cast

	conn   net.Conn // the client's
	out    *frame.Writer
	offers chan offer.Offer
	voice  *client.Client
	said   []atomic.Int64 // by sequence number modulo its length: when a frame was sent
	heard  []atomic.Int64 // by player: when the last frame that has been heard of them was sent
	turn   chan struct{}  // it has been let onto a server

	// The cast's lock.
	at       *hall // nil on the way
	world    int
	entity   int32
	in       *frame.Writer // the server's way to the client
	vanished bool
	back     time.Time // the end of a skin refresh; zero: there is none
	since    time.Time // when it was let in, changed worlds, vanished or came back
	story    []string  // what has happened to it lately
}

// cast is everybody.
type cast struct {
	t     *testing.T
	p     *program
	halls []*hall
	all   []*actor
	base  time.Time
	late  *lateness
	// link is the longest that a message has taken from this process through the program and back, in the seconds of
	// link: whatever the program knows late because of the machine counts as late.
	link [4]atomic.Int64

	answers chan string // by the program, to what the first player asks

	mu    sync.Mutex
	truth [][]bond
	// The longest times: of somebody hidden who is heard, of somebody shown who is silent, and the slack.
	leak, gap, worst time.Duration
}

// bond is whether a player must hear another one: since when nothing is in the way, or since when each thing is. Zero
// is not at all, and all three on the way between servers.
type bond struct{ clear, apart, vanished time.Time }

// soakVersions differ in how entries, bodies, worlds and ages are told.
var soakVersions = []int32{proto.V1_12_2, 578, proto.V1_20_3, proto.V1_8, 755, proto.V1_21_4}

func newCast(t *testing.T, players int) *cast {
	c := &cast{t: t, base: time.Now(), late: newLateness(t), answers: make(chan string, 1)}
	settings := ""
	for i := range 3 {
		h := &hall{name: fmt.Sprint("s", i), c: c, nextID: int32(1000 * i)}
		h.addr = serving(t, h.serve)
		c.halls = append(c.halls, h)
		settings += fmt.Sprintf("  %s: {address: %q}\n", h.name, h.addr)
	}
	c.p = start(t, "online: false\npermissions: {players: {Actor0: {nodes: [earshot.command.voice.why]}}}\ntry: [s0]\nservers:\n"+settings)
	for i := range players {
		a := &actor{
			name: fmt.Sprint("Actor", i), index: i, c: c, version: proto.Lookup(soakVersions[i%len(soakVersions)]),
			offers: make(chan offer.Offer, 1), turn: make(chan struct{}, 1), said: make([]atomic.Int64, 1024), heard: make([]atomic.Int64, players),
		}
		a.id = offlineID(a.name)
		c.all = append(c.all, a)
	}
	c.truth = make([][]bond, players)
	for i := range c.truth {
		c.truth[i] = make([]bond, players)
	}
	var ticking, talking sync.WaitGroup
	quit := make(chan struct{})
	t.Cleanup(func() { close(quit); ticking.Wait() })
	ticking.Go(func() { c.tick(quit) })
	t.Cleanup(talking.Wait)
	for _, a := range c.all {
		a.join()
		talking.Go(a.talk)
		t.Cleanup(a.voice.Close)
	}
	return c
}

// ---- the client

func (a *actor) write(s proto.State, p proto.Packet, body []byte) {
	if id, ok := a.version.ID(s, proto.Serverbound, p); ok {
		a.out.Packet(id, body)
	}
}

// join comes in and connects to voice.
func (a *actor) join() {
	t := a.c.t
	t.Helper()
	a.conn = dial(t, a.c.p.addr, "")
	a.conn.SetDeadline(time.Time{})
	a.out = frame.NewWriter(a.conn)
	write(t, a.conn, hello(a.version.Protocol, "localhost", packet.IntentLogin), loginStart(a.version.Protocol, a.name))
	var reading sync.WaitGroup
	reading.Go(a.read)
	t.Cleanup(func() { a.conn.Close(); reading.Wait() })
	a.comes()
	a.write(proto.Play, proto.CustomPayload, packet.AppendPluginMessage(nil, packet.PluginMessage{Channel: offer.Hello, Data: offer.AppendHello(nil)}))
	var o offer.Offer
	select {
	case o = <-a.offers:
	case <-time.After(peer.Patience):
		t.Fatalf("%s is offered no voice", a.name)
	}
	by := map[uuid.UUID]*actor{}
	for _, o := range a.c.all {
		by[o.id] = o
	}
	var err error
	a.voice, err = client.Dial(t.Context(), client.Config{
		URL: "http://" + a.c.p.addr, Token: o.Token, Player: a.id, Ask: caps.Set{Audio: 2, Spatial: 1, Status: 1}, NoDecode: true,
		Sound: func(s client.Sound) {
			if from := by[s.Source]; from != nil && !s.Concealed {
				sent := from.said[int(s.Seq)%len(from.said)].Load()
				a.heard[from.index].Store(sent)
				a.c.took(time.Duration(int64(time.Since(a.c.base)) - sent))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// comes waits until the player's client is on a server.
func (a *actor) comes() {
	a.c.t.Helper()
	select {
	case <-a.turn:
	case <-time.After(peer.Patience):
		a.c.t.Fatalf("%s does not get into a world", a.name)
	}
}

const frameEvery = 40 * time.Millisecond

func (a *actor) talk() {
	tick := time.NewTicker(frameEvery)
	defer tick.Stop()
	for seq := 0; ; seq++ {
		select {
		case <-tick.C:
		case <-a.voice.Done():
			return
		}
		a.said[seq%len(a.said)].Store(int64(time.Since(a.c.base)))
		a.voice.SendOpus([]byte{0xf8, 0xff, 0xfe})
	}
}

// read does what a client has to, until the connection ends.
func (a *actor) read() {
	r := frame.NewReader(a.conn, frame.Limits{})
	defer r.Release()
	state := proto.Login
	for {
		f, err := r.Next()
		if err != nil {
			return
		}
		body, err := r.Body(f)
		if err != nil {
			return
		}
		switch p := a.version.Table(state, proto.Clientbound)[f.ID&0xff]; {
		case p == proto.Disconnect:
			reason, _ := packet.ParseDisconnect(a.version.Protocol, state, body)
			a.c.t.Errorf("%s is thrown out: %s", a.name, reason)
		case p == proto.KeepAlive:
			a.write(state, p, body)
		case p == proto.SetCompression:
			threshold, _ := packet.ParseSetCompression(body)
			r.SetCompression(threshold)
			a.out.SetCompression(threshold)
		case p == proto.LoginSuccess && a.version.HasConfiguration():
			a.write(state, proto.LoginAcknowledged, nil)
			state = proto.Config
		case p == proto.LoginSuccess:
			state = proto.Play
		case p == proto.FinishConfiguration:
			a.write(state, p, nil)
			state = proto.Play
		case state == proto.Config && p == proto.SelectKnownPacks:
			a.write(state, p, []byte{0})
		case p == proto.StartConfiguration:
			a.write(state, proto.ConfigurationAcknowledged, nil)
			state = proto.Config
		case state == proto.Play && p == proto.Chat: // the first player asks, with a client of this kind
			select {
			case a.c.answers <- field.NewReader(body).String(field.MaxString):
			default:
			}
		case state == proto.Play && p == proto.JoinGame:
			select {
			case a.turn <- struct{}{}:
			default:
			}
		case state == proto.Play && p == proto.Position:
			a.stands(body)
		case state == proto.Play && p == proto.CustomPayload:
			if m, err := packet.ParsePluginMessage(body); err == nil && m.Channel == offer.Handshake {
				o, err := offer.ParseHandshake(m.Data)
				if err != nil {
					a.c.t.Error(err)
				}
				select {
				case a.offers <- o:
				default:
				}
			}
		case state == proto.Play && p == proto.UpdateTime:
			in := field.NewReader(body)
			in.I64()
			a.c.took(time.Duration(int64(time.Since(a.c.base)) - in.I64()))
		}
	}
}

// stands answers a teleport.
func (a *actor) stands(body []byte) {
	m, err := packet.ParseTeleport(a.version.Protocol, body)
	if err != nil {
		a.c.t.Error(err)
		return
	}
	if a.version.Has(proto.TeleportID) {
		a.write(proto.Play, proto.TeleportConfirm, packet.AppendTeleportConfirm(nil, a.version.Protocol, packet.TeleportConfirm{ID: m.ID, X: m.X, Y: m.Y, Z: m.Z}))
	}
	b := field.AppendF64(field.AppendF64(field.AppendF64(nil, m.X), m.Y), m.Z)
	a.write(proto.Play, proto.PositionLook, append(field.AppendF32(field.AppendF32(b, 0), 0), 1))
}

// ---- the server

func (h *hall) serve(conn net.Conn) {
	r := frame.NewReader(conn, frame.Limits{})
	defer r.Release()
	next := func() []byte {
		if f, err := r.Next(); err == nil {
			if body, err := r.Body(f); err == nil {
				return body
			}
		}
		return nil
	}
	shake, err := packet.ParseHandshake(next(), packet.MaxForwardedHost)
	if err != nil || shake.Intent != packet.IntentLogin {
		return
	}
	name := field.NewReader(next()).String(packet.MaxName)
	i := slices.IndexFunc(h.c.all, func(a *actor) bool { return a.name == name })
	if i < 0 {
		return
	}
	a := h.c.all[i]
	out := frame.NewWriter(conn)
	tell := func(s proto.State, p proto.Packet, body []byte) {
		id, _ := a.version.ID(s, proto.Clientbound, p)
		out.Packet(id, body)
	}
	tell(proto.Login, proto.LoginSuccess, packet.AppendLoginSuccess(nil, a.version.Protocol, packet.LoginSuccess{ID: a.id, Name: a.name}))
	if a.version.HasConfiguration() {
		if next() == nil { // the acknowledgement
			return
		}
		tell(proto.Config, proto.FinishConfiguration, nil)
		done, _ := a.version.ID(proto.Config, proto.Serverbound, proto.FinishConfiguration)
		for {
			f, err := r.Next()
			if err != nil {
				return
			}
			if f.ID == done {
				break
			}
		}
	}
	entity := h.c.enter(h, a, out)
	defer h.c.leave(h, a, out, entity)
	for {
		if _, err := r.Next(); err != nil {
			return
		}
	}
}

// The methods from here to the next comment of this kind are called with the cast's lock held.

// tell sends the client of somebody who is on a server a packet.
func (a *actor) tell(p proto.Packet, body []byte) {
	if id, ok := a.version.ID(proto.Play, proto.Clientbound, p); ok {
		a.in.Packet(id, body)
	}
}

func (a *actor) spawn(kind string) {
	all, err := spawnVectors()
	body := slices.Clone(all[fmt.Sprint(kind, "/", a.version.Protocol, "/", worldName(a.version, a.world))])
	if err != nil || body == nil {
		a.c.t.Errorf("no %s for %d in %s: %v", kind, a.version.Protocol, worldName(a.version, a.world), err)
		return
	}
	if kind == "join_game" {
		copy(body, field.AppendI32(nil, a.entity))
		a.tell(proto.JoinGame, body)
	} else {
		if !a.version.Has(proto.NamedWorlds) { // clients stay until the number changes, so there are two
			a.tell(proto.Respawn, all[fmt.Sprint(kind, "/", a.version.Protocol, "/minecraft:the_nether")])
		}
		a.tell(proto.Respawn, body)
	}
	x, y, z := a.place()
	a.tell(proto.Position, packet.AppendTeleport(nil, a.version.Protocol, packet.Teleport{ID: 1, X: x, Y: y, Z: z}))
	a.age()
}

func (a *actor) place() (x, y, z float64) { return float64(a.index % 8), 70, float64(a.index / 8) }

// age tells how old the world is. The time of the day is when that is said.
func (a *actor) age() {
	age := int64(105_000 - apart*a.world + int(time.Since(a.c.base)/(50*time.Millisecond)))
	body := field.AppendI64(field.AppendI64(nil, age), int64(time.Since(a.c.base)))
	if a.version.Has(proto.EntitySync) {
		body = append(body, 1)
	}
	a.tell(proto.UpdateTime, body)
}

func (a *actor) list(o *actor) {
	a.tell(proto.PlayerInfo, packet.AppendPlayerInfo(nil, a.version.Protocol, packet.PlayerInfo{
		Actions: packet.InfoAdd | packet.InfoMode | packet.InfoListed | packet.InfoLatency,
		Players: []packet.ListedPlayer{{ID: o.id, Name: o.name, Listed: true}},
	}))
}

func (a *actor) unlist(o *actor) {
	p := proto.PlayerRemove
	if !a.version.Has(proto.PlayerInfoBits) {
		p = proto.PlayerInfo
	}
	a.tell(p, packet.AppendPlayerRemove(nil, a.version.Protocol, o.id))
}

func (a *actor) embody(o *actor) {
	x, y, z := o.place()
	body := field.AppendUUID(field.AppendVarInt(nil, o.entity), o.id)
	if a.version.Has(proto.PlayerSpawnsAsEntity) {
		body = field.AppendVarInt(body, a.version.PlayerType)
	}
	for _, v := range []float64{x, y, z} {
		if a.version.Has(proto.EntityPlaceF64) {
			body = field.AppendF64(body, v)
		} else {
			body = field.AppendI32(body, int32(v*32))
		}
	}
	switch {
	case a.version.Has(proto.PlayerSpawnsAsEntity):
		a.tell(proto.SpawnEntity, append(body, make([]byte, 3+1+6)...))
		return
	case !a.version.Has(proto.EntityPlaceF64):
		body = append(body, 0, 0, 0, 0, 0x7f)
	case a.version.Has(proto.SpawnMetadata):
		body = append(body, 0, 0, 0xff)
	default:
		body = append(body, 0, 0)
	}
	a.tell(proto.NamedEntitySpawn, body)
}

func (a *actor) destroy(entity int32) {
	if _, one := a.version.ID(proto.Play, proto.Clientbound, proto.DestroyEntity); one {
		a.tell(proto.DestroyEntity, field.AppendVarInt(nil, entity))
		return
	}
	a.tell(proto.EntityDestroy, field.AppendVarInt([]byte{1}, entity))
}

// sees tells whether a server shows o to a.
func (a *actor) sees(o *actor) bool {
	return a != o && a.at != nil && a.at == o.at && !o.vanished && o.back.IsZero()
}

func (a *actor) show(o *actor) {
	a.list(o)
	if a.world == o.world {
		a.embody(o)
	}
}

func (a *actor) hide(o *actor) {
	a.unlist(o)
	if a.world == o.world {
		a.destroy(o.entity)
	}
}

// others are those who are where a is.
func (a *actor) others() []*actor {
	return slices.DeleteFunc(slices.Clone(a.at.here), func(o *actor) bool { return o == a || o.at != a.at })
}

// stage works out who must hear a now, and whom a must hear. On the way neither is known.
func (c *cast) stage(a *actor, what string) {
	now := time.Now()
	a.since = now
	a.tale(what)
	for _, o := range c.all {
		if o == a {
			continue
		}
		for _, pair := range [][2]*actor{{a, o}, {o, a}} {
			l, t := pair[0], pair[1]
			b, known := &c.truth[l.index][t.index], l.at != nil && t.at != nil
			apart := l.at != t.at || l.world != t.world
			since(&b.apart, now, known && apart)
			since(&b.vanished, now, known && t.vanished)
			since(&b.clear, now, known && !apart && !t.vanished)
		}
	}
}

// tale keeps what has happened to somebody.
func (a *actor) tale(what string) {
	if len(a.story) == 12 {
		a.story = a.story[1:]
	}
	a.story = append(a.story, fmt.Sprintf("%.3f %s", time.Since(a.c.base).Seconds(), what))
}

// since has at be when something has begun to hold, and zero while it does not.
func since(at *time.Time, now time.Time, holds bool) {
	if !holds {
		*at = time.Time{}
	} else if at.IsZero() {
		*at = now
	}
}

// The methods from here on take the lock.

func (c *cast) enter(h *hall, a *actor, out *frame.Writer) (entity int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.nextID++
	a.at, a.in, a.entity = h, out, h.nextID
	h.here = append(h.here, a)
	a.spawn("join_game")
	a.list(a)
	for _, o := range a.others() {
		if a.sees(o) {
			a.show(o)
		}
		if o.sees(a) {
			o.show(a)
		}
	}
	c.stage(a, fmt.Sprint("comes to ", h.name, " world ", a.world))
	return a.entity
}

// leave is the end of a connection. The player may be on another server by then, as another entity.
func (c *cast) leave(h *hall, a *actor, out *frame.Writer, entity int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.here = slices.DeleteFunc(h.here, func(o *actor) bool { return o == a })
	for _, o := range h.here {
		if o.at == h {
			o.unlist(a)
			o.destroy(entity)
		}
	}
	if a.in == out {
		a.at = nil
		c.stage(a, "loses the connection")
	}
}

// took notes how long a message was on its way.
func (c *cast) took(d time.Duration) {
	at := &c.link[int(time.Since(c.base)/time.Second)%len(c.link)]
	for was := at.Load(); int64(d) > was && !at.CompareAndSwap(was, int64(d)); was = at.Load() {
	}
}

// slack is what bounds are widened by: the machine's lateness of the last seconds.
func (c *cast) slack() time.Duration {
	worst := c.late.slack()
	for i := range c.link {
		worst = max(worst, time.Duration(c.link[i].Load()))
	}
	return worst
}

// tick is what servers say each second.
func (c *cast) tick(quit chan struct{}) {
	every := time.NewTicker(time.Second / 20)
	defer every.Stop()
	for n := 0; ; n++ {
		select {
		case <-every.C:
		case <-quit:
			return
		}
		c.mu.Lock()
		for _, a := range c.all {
			if a.at == nil {
				continue
			}
			if n%20 == a.index%20 {
				a.age()
			}
			if n%200 == a.index%20 {
				a.tell(proto.KeepAlive, packet.AppendKeepAlive(nil, a.version.Protocol, int64(n)))
			}
			if !a.back.IsZero() && !time.Now().Before(a.back) {
				a.back, a.since = time.Time{}, time.Now()
				a.tale("is back")
				for _, o := range a.others() {
					if o.sees(a) {
						o.show(a)
					}
				}
			}
		}
		c.mu.Unlock()
		if n%20 == 0 {
			c.link[(int(time.Since(c.base)/time.Second)+1)%len(c.link)].Store(0)
			if n%80 == 0 {
				c.late.forget()
			}
		}
	}
}

// vanish has somebody vanish or come back.
func (c *cast) vanish(a *actor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.at == nil || !a.back.IsZero() {
		return
	}
	a.vanished = !a.vanished
	for _, o := range a.others() {
		if a.vanished {
			o.hide(a)
		} else {
			o.show(a)
		}
	}
	c.stage(a, fmt.Sprint("is vanished: ", a.vanished))
}

// refresh takes entry and body of somebody away and gives them back soon, as plugins do that change skins.
func (c *cast) refresh(a *actor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.at == nil || a.vanished || !a.back.IsZero() {
		return
	}
	a.since = time.Now()
	a.back = a.since.Add(rand.N(200 * time.Millisecond))
	a.tale("is refreshed")
	for _, o := range a.others() {
		o.hide(a)
	}
}

// travel sends somebody into the other world.
func (c *cast) travel(a *actor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.at == nil || !a.back.IsZero() {
		return
	}
	for _, o := range a.others() {
		if o.world == a.world && o.sees(a) {
			o.destroy(a.entity)
		}
	}
	a.world = (a.world + 1) % worlds
	a.spawn("respawn")
	for _, o := range a.others() {
		if o.world == a.world {
			if a.sees(o) {
				a.embody(o)
			}
			if o.sees(a) {
				o.embody(a)
			}
		}
	}
	c.stage(a, fmt.Sprint("goes to world ", a.world))
}

// move sends somebody to another server, and waits until they are there.
func (c *cast) move(a *actor) {
	c.mu.Lock()
	if a.at == nil || !a.back.IsZero() {
		c.mu.Unlock()
		return
	}
	to := c.halls[(slices.Index(c.halls, a.at)+1+rand.IntN(len(c.halls)-1))%len(c.halls)]
	a.at = nil // the server does not know yet
	c.stage(a, "leaves for "+to.name)
	c.mu.Unlock()
	a.asks("server " + to.name)
	a.comes()
}

// asks types a command.
func (a *actor) asks(command string) {
	if _, ok := a.version.ID(proto.Play, proto.Serverbound, proto.ChatCommand); ok {
		a.write(proto.Play, proto.ChatCommand, packet.AppendChatCommand(nil, a.version.Protocol, proto.ChatCommand, packet.ChatCommand{Text: command}))
	} else {
		a.write(proto.Play, proto.Chat, packet.AppendChat(nil, a.version.Protocol, packet.ChatMessage{Text: "/" + command}))
	}
}

// play does things at random and looks at who hears whom.
func (c *cast) play(length time.Duration) {
	done := map[string]int{}
	begin := time.Now()
	told, checks, checkedRows := begin, 0, 0
	for step := 0; time.Since(begin) < length && !c.t.Failed(); step++ {
		if step%2 == 0 {
			a := c.all[rand.IntN(len(c.all))]
			what := []string{"vanish", "vanish", "refresh", "travel", "move"}[rand.IntN(5)]
			done[what]++
			switch what {
			case "vanish":
				c.vanish(a)
			case "refresh":
				c.refresh(a)
			case "travel":
				c.travel(a)
			case "move":
				c.move(a)
			}
		}
		checks += c.check()
		if step%4 == 0 {
			checkedRows += c.checkRosters()
		}
		if time.Since(told) > 30*time.Second {
			told = time.Now()
			c.t.Logf("%v of %v: %v; %d times it was right that somebody hears somebody; slack %v", time.Since(begin).Round(time.Second), length, done, checks, c.slack())
		}
		time.Sleep(50 * time.Millisecond)
	}
	if (checks == 0 || checkedRows == 0) && !c.t.Failed() {
		c.t.Error("nobody was ever heard, or named")
	}
	if n := c.p.metric("earshot_undecoded_total"); n != 0 {
		c.t.Errorf("%v packets were not understood", n)
	}
	c.t.Logf("%v; %d times it was right that somebody hears somebody, and %d times that somebody is named; nobody hidden was heard for longer than %v, nobody shown silent for longer than %v, the slack was %v at most",
		done, checks, checkedRows, c.leak, c.gap, c.worst)
}

// check compares who hears whom with the truth, and counts those who do and must.
func (c *cast) check() (right int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, slack := time.Now(), c.slack()
	c.worst = max(c.worst, slack)
	for _, l := range c.all {
		for _, t := range c.all {
			if l == t {
				continue
			}
			b := c.truth[l.index][t.index]
			sent := l.heard[t.index].Load()
			last := c.base.Add(time.Duration(sent))
			for _, hidden := range []time.Time{b.apart, b.vanished} {
				if hidden.IsZero() {
					continue
				}
				d := last.Sub(hidden)
				c.leak = max(c.leak, d)
				if d > hiddenHeard+slack {
					c.fault(l, t, fmt.Sprintf("is heard, %v after it was hidden", d), slack)
				}
			}
			if b.clear.IsZero() || now.Sub(b.clear) < shownSilent {
				continue
			}
			if last.Before(b.clear) {
				last = b.clear
			}
			d := now.Sub(last)
			c.gap = max(c.gap, d)
			if d > shownSilent+frameEvery+slack {
				c.fault(l, t, fmt.Sprintf("has been silent for %v, although shown", d), slack)
			}
			right++
		}
	}
	return right
}

// named are those on somebody's roster.
func (a *actor) named() map[uuid.UUID]bool {
	on := map[uuid.UUID]bool{}
	if roster := a.voice.Roster(); roster != nil {
		for _, p := range roster.People {
			on[p.ID] = true
		}
	}
	return on
}

// witnesses is how many others certainly give evidence for or against somebody's having vanished.
func (a *actor) witnesses(now time.Time) (n int) {
	for _, o := range a.others() {
		if !o.vanished && o.back.IsZero() && now.Sub(o.since) > 2*time.Second {
			n++
		}
	}
	return n
}

// checkRosters compares who is on whose roster with the truth, where enough see each other to tell, and counts the
// rows.
func (c *cast) checkRosters() (rows int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, slack := time.Now(), c.slack()
	var known []*actor
	for _, a := range c.all {
		if a.at != nil && a.back.IsZero() && now.Sub(a.since) > shownSilent+slack && a.witnesses(now) >= 3 {
			known = append(known, a)
		}
	}
	for _, r := range c.all {
		on := r.named()
		for _, a := range known {
			// A newcomer is told of them soon.
			if a == r || !a.vanished && now.Sub(r.since) <= shownSilent+slack {
				continue
			}
			if on[a.id] == a.vanished {
				c.fault(r, a, fmt.Sprintf("is on the roster: %v", on[a.id]), slack)
			}
			rows++
		}
	}
	return rows
}

// fault ends the test and tells what there is to know of two.
func (c *cast) fault(l, t *actor, what string, slack time.Duration) {
	about := func(a *actor) string {
		where := "on the way"
		if a.at != nil {
			where = fmt.Sprint(a.at.name, " world ", a.world)
		}
		return fmt.Sprintf("%s (%s, %s, vanished: %v, %v ago)", a.name, a.version.Names[0], where, a.vanished, time.Since(a.since).Round(time.Millisecond))
	}
	why := "no answer"
	select { // of before
	case <-c.answers:
	default:
	}
	c.all[0].asks("voice why " + t.name + " " + l.name)
	select {
	case why = <-c.answers:
	case <-time.After(peer.Patience):
	}
	on := 0
	for _, r := range c.all {
		if r.named()[t.id] {
			on++
		}
	}
	c.t.Fatalf("after %.3f s, for %s: %s %s; the slack is %v; %d of %d rosters name the latter; the program says: %s\n%s\n%s\n%s\n%s",
		time.Since(c.base).Seconds(), about(l), about(t), what, slack, on, len(c.all), why, l.name, strings.Join(l.story, "; "), t.name, strings.Join(t.story, "; "))
}
