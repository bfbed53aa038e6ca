package packet

import (
	"fmt"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// maxName bounds a world's or a dimension's name. The game allows longer ones and nobody has them.
const maxName = 1024

// JoinGame is what the bridge needs of the play login packet: with it a backend takes the player into a world.
type JoinGame struct {
	EntityID int32  // the player's own, until the next JoinGame
	Mode     byte   // game mode, 0-3
	World    string // up to 578 made from the dimension number, see worldOfDimension
}

// Respawn is what the bridge needs of the respawn packet: the player appears in a world, new or the same.
type Respawn struct {
	Mode  byte
	World string
}

// ParseJoinGame reads a play login up to the last field that is needed; what follows may be longer than is known.
func ParseJoinGame(protocol int32, body []byte) (j JoinGame, err error) {
	r := field.NewReader(body)
	j.EntityID = r.I32()
	switch {
	case protocol < proto.V1_16:
		const hardcore = 8
		j.Mode = r.U8() &^ hardcore
		if protocol < proto.V1_9_1 {
			j.World = worldOfDimension(int32(r.I8()))
		} else {
			j.World = worldOfDimension(r.I32())
		}
	case protocol < proto.V1_20_2:
		if protocol < proto.V1_16_2 {
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
		r.I64() // hashed seed
		j.Mode = r.U8()
	}
	return j, r.Err()
}

// ParseRespawn reads a respawn up to the last field that is needed.
func ParseRespawn(protocol int32, body []byte) (s Respawn, err error) {
	r := field.NewReader(body)
	if protocol < proto.V1_16 {
		s.World = worldOfDimension(r.I32())
		if protocol < proto.V1_14 {
			r.U8() // difficulty
		}
		if protocol >= proto.V1_15 {
			r.I64() // hashed seed
		}
	} else {
		skipDimension(r, protocol)
		s.World = r.String(maxName)
		r.I64() // hashed seed
	}
	s.Mode = r.U8()
	return s, r.Err()
}

// skipDimension passes over the dimension's type, which is not its world: several worlds share one.
func skipDimension(r *field.Reader, protocol int32) {
	switch {
	case protocol >= proto.V1_20_5:
		r.VarInt() // index into the registry
	case protocol >= proto.V1_16_2 && protocol < proto.V1_19:
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
