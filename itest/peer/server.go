package peer

import (
	"fmt"
	"testing"
)

// Forwarding modes of [Backend].
const (
	None        = "none"
	Legacy      = "legacy"
	BungeeGuard = "bungeeguard"
	Modern      = "modern"
)

// Option is a setting of [Backend], see backend.js.
type Option func(command)

// Threshold sets from how many bytes on the backend compresses, -1 for never; 256 without it.
func Threshold(bytes int) Option { return func(c command) { c["threshold"] = bytes } }

// World sets the world players arrive in; minecraft:overworld without it. Before 1.16 there are only
// minecraft:overworld, minecraft:the_nether and minecraft:the_end.
func World(name string) Option { return func(c command) { c["world"] = name } }

// Floodgate makes the backend read Floodgate's data with that key.
func Floodgate(key []byte) Option { return func(c command) { c["floodgate"] = fmt.Sprintf("%x", key) } }

// Forge makes the backend go through Forge's handshake of its version first (a mock, see forge.js). Servers with
// different registries are not for the same client.
func Forge(registries string) Option { return func(c command) { c["forge"] = registries } }

// AskForwarding sets the newest modern forwarding version the backend asks for; 4 without it.
func AskForwarding(version int) Option { return func(c command) { c["ask"] = version } }

// Quiet leaves out events of these kinds, for tests with many of them.
func Quiet(kinds ...string) Option { return func(c command) { c["quiet"] = kinds } }

// OwnIDs makes the backend know its players by UUIDs of its own, as one in offline mode does behind a proxy that
// authenticates and forwards nothing.
func OwnIDs() Option { return func(c command) { c["own"] = true } }

// Bodies gives players the bodies of those who are within so many blocks, as servers do; without it nobody has one.
func Bodies(blocks int) Option { return func(c command) { c["bodies"] = blocks } }

// Ages makes the backend tell players each second how old their world is, from these ticks on at the start; worlds that
// are not named begin with 0. A world NAME#ANYTHING is known to clients as NAME.
func Ages(worlds map[string]int64) Option { return func(c command) { c["ages"] = worlds } }

// Seeds sets the hashed seeds of worlds; clients are told them from 1.15 on.
func Seeds(worlds map[string]int32) Option {
	return func(c command) {
		seeds := map[string][2]int32{}
		for name, seed := range worlds {
			seeds[name] = [2]int32{seed, seed}
		}
		c["seeds"] = seeds
	}
}

// Server is a real game server.
type Server struct {
	Addr string // host:port
	Version
	*process
}

// Backend starts the stub backend: one version, offline, a stone floor with its top at y 70, players arriving at 8, 70,
// 8 on it. Every player's tab list holds everybody.
func Backend(t testing.TB, version, mode, secret string, options ...Option) *Server {
	t.Helper()
	c := command{"version": version, "mode": mode, "secret": secret}
	for _, o := range options {
		o(c)
	}
	return serve(t, "backend.js", version, c)
}

// Squid starts flying-squid, a complete game server: one version up to [SquidNewest], offline, flat. It knows Join,
// Leave, Where, Say and Kick.
func Squid(t testing.TB, version string) *Server {
	t.Helper()
	return serve(t, "squid.js", version, command{"version": version})
}

func serve(t testing.TB, script, version string, c command) *Server {
	t.Helper()
	s := &Server{Version: Version{version, Protocol(version)}}
	if s.Protocol == 0 {
		t.Fatalf("no peers for version %q, see peer.Versions", version)
	}
	s.process = start(t, script, c)
	s.Addr = fmt.Sprintf("127.0.0.1:%d", s.await("listening", "", nil).Port)
	return s
}

// Await returns the next event of a kind about a player ("": anybody) that matches (nil: any), behind the one the last
// Await for the same kind and player returned. Kinds: join, leave, pos, look, vehicle, confirmed (a teleport),
// respawned, chat, payload, settings, configuring, reconfiguring, refused, lost, packs (the client's known ones; text
// is how many).
func (s *Server) Await(kind, name string, match func(Event) bool) Event {
	s.t.Helper()
	return s.await(kind, name, match)
}

// Count says how many such events there have been.
func (s *Server) Count(kind, name string) int { return s.count(kind, name) }

// Skip makes the next Await of a kind about a player look only at what is still to come.
func (s *Server) Skip(kind, name string) { s.skip(kind, name) }

// Joined waits until the player is in play and returns what the server knows about it.
func (s *Server) Joined(name string) Event { s.t.Helper(); return s.await("join", name, nil) }

// At waits for a position of the player within 0.1 of x, y, z.
func (s *Server) At(name string, x, y, z float64) Event {
	s.t.Helper()
	return s.await("pos", name, near(x, y, z))
}

func near(x, y, z float64) func(Event) bool {
	close := func(a, b float64) bool { return a-b < 0.1 && b-a < 0.1 }
	return func(e Event) bool { return close(e.X, x) && close(e.Y, y) && close(e.Z, z) }
}

// Teleport moves a player; the parts named in relative ("x", "y", "z", "yaw", "pitch") are added to where it is. The
// answer's Teleport is what the client confirms, from 1.9 on.
func (s *Server) Teleport(name string, x, y, z, yaw, pitch float64, relative ...string) Event {
	s.t.Helper()
	if relative == nil {
		relative = []string{}
	}
	return s.do(command{"cmd": "teleport", "name": name, "x": x, "y": y, "z": z, "yaw": yaw, "pitch": pitch, "relative": relative})
}

// Respawn sends a player to a place in a world, with the respawn packet. keep is the packet's data to keep.
func (s *Server) Respawn(name, world string, keep int, x, y, z float64) {
	s.t.Helper()
	s.do(command{"cmd": "respawn", "name": name, "world": world, "keep": keep, "x": x, "y": y, "z": z})
}

// Kill lets a player die; once it asks back it respawns in the same world at x, y, z, which is a "respawned" event.
func (s *Server) Kill(name string, x, y, z float64) {
	s.t.Helper()
	s.do(command{"cmd": "kill", "name": name, "x": x, "y": y, "z": z})
}

// GameMode changes a player's mode: 0 survival, 1 creative, 2 adventure, 3 spectator.
func (s *Server) GameMode(name string, mode int) {
	s.t.Helper()
	s.do(command{"cmd": "mode", "name": name, "mode": mode})
}

// Op tells a player its operator level, 0 to 4.
func (s *Server) Op(name string, level int) {
	s.t.Helper()
	s.do(command{"cmd": "op", "name": name, "level": level})
}

// Hide removes target from name's tab list, Show puts it back.
func (s *Server) Hide(name, target string) {
	s.t.Helper()
	s.do(command{"cmd": "hide", "name": name, "target": target})
}

// Show undoes Hide.
func (s *Server) Show(name, target string) {
	s.t.Helper()
	s.do(command{"cmd": "show", "name": name, "target": target})
}

// ListsPerWorld makes a player's list hold those alone who are in the player's own world, as a plugin does.
func (s *Server) ListsPerWorld() { s.t.Helper(); s.do(command{"cmd": "lists", "by": "world"}) }

// Vanish takes a player, who need not have come yet, off the lists and out of the sight of those named, or of
// everybody. The player goes on seeing them.
func (s *Server) Vanish(name string, from ...string) {
	s.t.Helper()
	c := command{"cmd": "vanish", "name": name}
	if from != nil {
		c["from"] = from
	}
	s.do(c)
}

// Appear undoes Vanish.
func (s *Server) Appear(name string) {
	s.t.Helper()
	s.do(command{"cmd": "appear", "name": name})
}

// Cull keeps target's body from a player, as plugins do with what is behind walls, or not any more. The list stays.
func (s *Server) Cull(name, target string, on bool) {
	s.t.Helper()
	s.do(command{"cmd": "cull", "name": name, "target": target, "on": on})
}

// Vehicle makes a "boat" or "minecart" appear and returns its entity id.
func (s *Server) Vehicle(kind string, x, y, z float64) int32 {
	s.t.Helper()
	return s.do(command{"cmd": "spawn", "type": kind, "x": x, "y": y, "z": z}).Entity
}

// Seat makes riders, the driver first, all who sit in a vehicle. No riders: everybody gets off.
func (s *Server) Seat(vehicle int32, riders ...string) {
	s.t.Helper()
	if riders == nil {
		riders = []string{}
	}
	s.do(command{"cmd": "seat", "vehicle": vehicle, "riders": riders})
}

// Ways to [Server.Drive].
const (
	Relative = "relative" // a step of at most 4 blocks (1.8) or 8
	MoveLook = "look"     // the same with a direction
	Teleport = "teleport" // anywhere
	Sync     = "sync"     // anywhere, the ordinary way from 1.21.2 on
	Minecart = "minecart" // along a track, from 1.21.2 on
)

// Drive moves a vehicle by dx, dy, dz, telling the clients in the way named by how, and returns where that put it:
// steps are rounded to what the packet can hold.
func (s *Server) Drive(vehicle int32, how string, dx, dy, dz float64) Event {
	s.t.Helper()
	return s.do(command{"cmd": "drive", "vehicle": vehicle, "how": how, "dx": dx, "dy": dy, "dz": dz})
}

// CorrectVehicle tells a driver where its vehicle really is, from 1.9 on.
func (s *Server) CorrectVehicle(name string, x, y, z float64) {
	s.t.Helper()
	s.do(command{"cmd": "correct", "name": name, "x": x, "y": y, "z": z})
}

// Destroy makes a vehicle disappear, riders and all.
func (s *Server) Destroy(vehicle int32) {
	s.t.Helper()
	s.do(command{"cmd": "destroy", "vehicle": vehicle})
}

// Reconfigure sends a player back to configuration, from 1.20.2 on; it comes back with another "join". hold makes it
// stay there until [Server.Finish].
func (s *Server) Reconfigure(name string, hold bool) {
	s.t.Helper()
	s.do(command{"cmd": "reconfigure", "name": name, "hold": hold})
}

// Hold makes the first configuration of players who come from now on wait for [Server.Finish], or not any more.
func (s *Server) Hold(on bool) { s.t.Helper(); s.do(command{"cmd": "hold", "on": on}) }

// Finish ends a configuration that was held.
func (s *Server) Finish(name string) {
	s.t.Helper()
	s.do(command{"cmd": "finish", "name": name})
}

// Refuse makes the next connections of a name end in "login", "config" (from 1.20.2 on) or "play" with a reason; an
// empty phase lets them in again.
func (s *Server) Refuse(name, phase, reason string) {
	s.t.Helper()
	s.do(command{"cmd": "refuse", "name": name, "phase": phase, "reason": reason})
}

// Kick ends a player's connection in configuration or play.
func (s *Server) Kick(name, reason string) {
	s.t.Helper()
	s.do(command{"cmd": "kick", "name": name, "reason": reason})
}

// Drop ends a player's connection without a word.
func (s *Server) Drop(name string) { s.t.Helper(); s.do(command{"cmd": "drop", "name": name}) }

// Say shows a line of chat to a player.
func (s *Server) Say(name, text string) {
	s.t.Helper()
	s.do(command{"cmd": "say", "name": name, "text": text})
}

// Payload sends a plugin message, in whichever of configuration and play the player is.
func (s *Server) Payload(name, channel string, data []byte) {
	s.t.Helper()
	s.do(command{"cmd": "payload", "name": name, "channel": channel, "data": data})
}

// Write sends any packet by its name and fields as minecraft-protocol has them.
func (s *Server) Write(name, packet string, params any) {
	s.t.Helper()
	s.do(command{"cmd": "write", "name": name, "packet": packet, "params": params})
}

// Raw sends id and body of any packet.
func (s *Server) Raw(name string, packet []byte) {
	s.t.Helper()
	s.do(command{"cmd": "raw", "name": name, "data": packet})
}

// Where returns a player's place as flying-squid has it.
func (s *Server) Where(name string) Event {
	s.t.Helper()
	return s.do(command{"cmd": "where", "name": name})
}
