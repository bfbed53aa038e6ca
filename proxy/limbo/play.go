package limbo

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
	"golang.org/x/time/rate"
)

// Chat beyond this is dropped: one player's line costs as many writes as there are players.
const (
	linesPerSecond = 2
	linesAtOnce    = 8
	maxLine        = 256 // characters, as the game allows
)

// The chunks reach this far from the spawn, in blocks. A client does not move where it has none, so nobody may get
// there.
const edge = 3*16 + 8

// player is one connection that has got past the login.
type player struct {
	world      *World
	conn       net.Conn
	version    *proto.Version
	name       string
	id         uuid.UUID
	properties []packet.Property
	entity     int32

	out      outbox
	steps    chan struct{} // one slot: the body stands elsewhere now
	playing  atomic.Bool   // in the play state, which has keep-alives
	asked    atomic.Int32  // id of the last keep-alive
	answered atomic.Int64  // when the client last answered one, in nanoseconds since 1970
	speech   *rate.Limiter

	mu      sync.Mutex
	leaving bool

	// The reader's.
	teleports int32 // ids given out
	rescued   bool  // put back to the spawn, and the client has not followed yet
	at        pose  // where the client says it is

	// Guarded by world.mu.
	body  bool // the others see a body
	shown pose // where it stands
	moved bool // since the others were told
}

func newPlayer(w *World, c net.Conn, v *proto.Version, name string) *player {
	p := &player{
		world: w, conn: c, version: v, name: name, entity: w.ids.Add(1),
		out: newOutbox(), speech: rate.NewLimiter(linesPerSecond, linesAtOnce),
		at: spawnPose, shown: spawnPose, steps: make(chan struct{}, 1),
	}
	p.asked.Store(rand.Int32())
	return p
}

// kick ends the player's stay. The reason arrives if the player takes it in time. It may be called more than once and
// from anywhere.
func (p *player) kick(reason packet.Text) {
	p.out.end(appendDisconnect(nil, p.version, proto.Play, reason))
	p.hurry(true)
}

// hurry sets the deadline for the write that is under way or about to begin: a short one from the goodbye on.
func (p *player) hurry(goodbye bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving = p.leaving || goodbye
	within := writeWithin
	if p.leaving {
		within = goodbyeWithin
	}
	p.conn.SetWriteDeadline(time.Now().Add(within))
}

// play keeps the player in the world. It returns when the client's direction has ended.
func (w *World) play(p *player, in *frame.Reader, data *join) error {
	p.teleports = 1
	p.out.send(appendLogin(nil, data, p.entity))
	p.out.share(data.loginRest)
	p.out.send(appendSpawn(nil, p.version, p.teleports))
	p.answered.Store(time.Now().UnixNano())
	p.playing.Store(true)
	w.enter(p)
	w.log.Debug("a player entered the built-in world", "player", p.name, "protocol", p.version.Protocol)
	err := p.read(in)
	w.leave(p)
	return err
}

// read handles what the client sends until the connection ends.
func (p *player) read(in *frame.Reader) error {
	names := p.version.Table(proto.Play, proto.Serverbound)
	for {
		f, err := in.Next()
		if err != nil {
			return err
		}
		if f.ID < 0 || int(f.ID) >= len(names) {
			continue
		}
		name := names[f.ID]
		switch name {
		case proto.KeepAlive, proto.Position, proto.PositionLook, proto.Look, proto.Chat, proto.ChatMessage:
		default:
			continue
		}
		body, err := in.Body(f)
		if err != nil {
			return err
		}
		if err := p.handle(name, body); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

func (p *player) handle(name proto.Packet, body []byte) error {
	switch name {
	case proto.KeepAlive:
		id, err := packet.ParseKeepAlive(p.version.Protocol, body)
		if err != nil {
			return err
		}
		// A late answer to one of the last few also shows a living client.
		if late := p.asked.Load() - int32(id); late >= 0 && late <= int32(answerWithin/keepAliveEvery) {
			p.answered.Store(time.Now().UnixNano())
		}
	case proto.Position, proto.PositionLook, proto.Look:
		m, err := packet.ParseMove(name, body)
		if err != nil {
			return err
		}
		p.stand(m)
	case proto.TeleportConfirm:
		if !p.version.Has(proto.TeleportConfirmHasPosition) {
			return nil // the place follows
		}
		c, err := packet.ParseTeleportConfirm(p.version.Protocol, body)
		if err != nil {
			return err
		}
		p.stand(packet.Move{HasPlace: true, X: c.X, Y: c.Y, Z: c.Z, HasLook: true, Yaw: c.Yaw, Pitch: c.Pitch, OnGround: p.at.ground})
	case proto.Chat, proto.ChatMessage: // behind the line stand signatures, which mean nothing here
		r := field.NewReader(body)
		line := r.String(maxLine)
		if err := r.Err(); err != nil {
			return err
		}
		p.speak(line)
	}
	return nil
}

// stand takes over where a player claims to be.
func (p *player) stand(m packet.Move) {
	if m.HasPlace {
		p.rescue(m)
	}
	if p.at.update(m) {
		p.world.moved(p, p.at)
	}
}

// rescue puts a player back who fell off the floor, once for each fall.
func (p *player) rescue(m packet.Move) {
	lost := m.Y < 0 || max(m.X-spawnX, spawnX-m.X, m.Z-spawnZ, spawnZ-m.Z) > edge
	if lost && !p.rescued {
		p.teleports++
		p.out.send(appendSpawn(nil, p.version, p.teleports))
	}
	p.rescued = lost
}

// speak shows a line to everybody. There are no commands.
func (p *player) speak(line string) {
	line = packet.Plain(line).String() // without codes and control characters
	if line == "" || line[0] == '/' || !p.speech.Allow() {
		return
	}
	p.world.say(packet.Plain("<" + p.name + "> " + line))
}

// write sends the outbox until it ends, asks for signs of life and tells the others of steps.
func (p *player) write() error {
	tick := time.NewTicker(keepAliveEvery)
	defer tick.Stop()
	var due <-chan time.Time // for telling of a step
	var told time.Time
	for {
		select {
		case <-p.out.wake:
		case <-p.steps:
			due = time.After(moveEvery - time.Since(told))
			continue
		case told = <-due:
			due = nil
			p.world.tell(p)
			continue
		case <-tick.C:
			if !p.playing.Load() {
				continue // joinWithin ends it
			}
			if time.Since(time.Unix(0, p.answered.Load())) >= answerWithin {
				p.kick(packet.Translatable("disconnect.timeout"))
			}
			p.out.send(appendKeepAlive(nil, p.version, p.asked.Add(1)))
		}
		runs, ended, full := p.out.take()
		if full {
			return fmt.Errorf("takes nothing: %d bytes wait", outboxLimit)
		}
		for _, frames := range runs {
			p.hurry(false)
			if _, err := p.conn.Write(frames); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
	}
}
