package packet

import (
	"fmt"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// maxName bounds a world's or a dimension's name. The game allows longer ones and nobody has them.
const maxName = 1024

// JoinGame holds what the bridge needs of the play login packet: with it a backend takes the player into a world.
type JoinGame struct {
	EntityID int32  // the player's own, until the next JoinGame
	Mode     byte   // game mode, 0-3
	World    string // up to 578 made from the dimension number, see worldOfDimension
	Seed     int64  // the world's, hashed; 0 before 573
}

// Respawn holds what the bridge needs of the respawn packet: the player appears in a world, new or the same.
type Respawn struct {
	Mode  byte
	World string
	Seed  int64 // the world's, hashed; 0 before 573
}

// ParseJoinGame reads a play login up to the last field that is needed; the rest may be longer than is known.
//
// Layout: play/toClient/login.
func ParseJoinGame(protocol int32, body []byte) (j JoinGame, err error) {
	r := field.NewReader(body)
	j.EntityID = r.I32()
	switch {
	case !proto.Has(protocol, proto.NamedWorlds):
		const hardcore = 8
		j.Mode = r.U8() &^ hardcore
		if !proto.Has(protocol, proto.DimensionI32) {
			j.World = worldOfDimension(int32(r.I8()))
		} else {
			j.World = worldOfDimension(r.I32())
		}
		if proto.Has(protocol, proto.HashedSeed) {
			j.Seed = r.I64() // there is no difficulty any longer
		}
	case !proto.Has(protocol, proto.Configuration):
		if !proto.Has(protocol, proto.HardcoreFlag) {
			const hardcore = 8
			j.Mode = r.U8() &^ hardcore
		} else {
			r.Bool() // hardcore
			j.Mode = r.U8()
		}
		r.I8() // previous mode
		skipStrings(r)
		r.SkipNBT(true) // registries
		skipDimension(r, protocol)
		j.World = r.String(maxName)
		j.Seed = r.I64()
	default:
		r.Bool() // hardcore
		skipStrings(r)
		r.VarInt() // players
		r.VarInt() // view distance
		r.VarInt() // simulation distance
		r.Bool()   // reduced debug info
		r.Bool()   // respawn screen
		r.Bool()   // limited crafting
		skipDimension(r, protocol)
		j.World = r.String(maxName)
		j.Seed = r.I64()
		j.Mode = readMode(r, protocol)
	}
	return j, r.Err()
}

// ParseRespawn reads a respawn up to the last field that is needed.
//
// Layout: play/toClient/respawn.
func ParseRespawn(protocol int32, body []byte) (s Respawn, err error) {
	r := field.NewReader(body)
	if !proto.Has(protocol, proto.NamedWorlds) {
		s.World = worldOfDimension(r.I32())
		if proto.Has(protocol, proto.RespawnDifficulty) {
			r.U8() // difficulty
		}
		if proto.Has(protocol, proto.HashedSeed) {
			s.Seed = r.I64()
		}
	} else {
		skipDimension(r, protocol)
		s.World = r.String(maxName)
		s.Seed = r.I64()
	}
	s.Mode = readMode(r, protocol)
	return s, r.Err()
}

// readMode reads a game mode of join game or respawn. One that does not fit a byte is an error.
func readMode(r *field.Reader, protocol int32) byte {
	if !proto.Has(protocol, proto.CompactGameMode) {
		return r.U8()
	}
	n := r.VarInt()
	if n < 0 || n > 255 {
		r.Fail(fmt.Errorf("game mode %d", n))
	}
	return byte(n)
}

// Authenticated overwrites the flag of a join game that says how the player logged in (776 and later): the client shows
// no skins to players who did not, and a backend behind a proxy knows only of its own login. The flag is found from the
// end, since the bytes before it differ between versions. It returns body, changed in place; one too short, or that
// ends in something else, is an error.
//
// Layout: play/toClient/login.
func Authenticated(protocol int32, body []byte) ([]byte, error) {
	if !proto.Has(protocol, proto.JoinOnlineMode) {
		return nil, fmt.Errorf("protocol %d has no such flag", protocol)
	}
	if _, err := ParseJoinGame(protocol, body); err != nil {
		return nil, err
	}
	tail := body[len(body)-2:]
	if tail[0] > 1 || tail[1] > 1 {
		return nil, fmt.Errorf("join game ends in %x, which are no flags", tail)
	}
	tail[0] = 1
	return body, nil
}

// skipDimension passes over the dimension's type, which is not its world: several worlds share one.
func skipDimension(r *field.Reader, protocol int32) {
	switch {
	case proto.Has(protocol, proto.DimensionByNumber):
		r.VarInt() // index into the registry
	case proto.Has(protocol, proto.DimensionInline):
		r.SkipNBT(true)
	default:
		r.StringBytes(maxName)
	}
}

func skipStrings(r *field.Reader) {
	for n := r.Count(1); n > 0; n-- {
		r.StringBytes(maxName)
	}
}

// worldOfDimension names a dimension as the game has since 1.16. Before, a world is told by a number only, so a
// backend's worlds of one kind cannot be told apart; modded servers have numbers of their own.
func worldOfDimension(n int32) string {
	switch n {
	case -1:
		return "minecraft:the_nether"
	case 0:
		return "minecraft:overworld"
	case 1:
		return "minecraft:the_end"
	}
	return fmt.Sprintf("dimension:%d", n)
}
