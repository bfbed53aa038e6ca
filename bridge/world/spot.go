package world

import (
	"math"
	"sync/atomic"
)

// Spot is roughly where a player is, in eight bytes: thousands of them fit where a processor is quick, and thousands of
// poses do not. It stands for x and z in sixteenths of a block.
type Spot struct{ at atomic.Uint64 }

const (
	perBlock = 16
	nowhere  = math.MaxInt32 // in a half of a spot: no pose, or one that no range reaches
)

func pack(p *Pose) uint64 {
	if p == nil {
		return nowhere<<32 | nowhere
	}
	return uint64(uint32(sixteenths(p.X)))<<32 | uint64(uint32(sixteenths(p.Z)))
}

func sixteenths(v float64) int32 {
	if v *= perBlock; v > -nowhere && v < nowhere {
		return int32(math.Floor(v))
	}
	return nowhere
}

// Within tells whether the player may be within reach of an eye at x and z, in blocks. It always says so about a player
// within reach. It may say so about one a little farther off, and about one nowhere where reach has no end.
func (s *Spot) Within(e Eye) bool {
	at := s.at.Load()
	// Below 0 is a lot.
	return uint64(int64(int32(at>>32))-e.west) <= e.width && uint64(int64(int32(at))-e.north) <= e.width
}

// Eye is a square that spots are compared with.
type Eye struct {
	west, north int64
	width       uint64
}

// Look makes an eye of a pose. reach is in blocks.
func Look(p *Pose, reach float64) Eye {
	x, z, r := int64(sixteenths(p.X)), int64(sixteenths(p.Z)), int64(1)<<40 // everywhere
	if reach < nowhere/perBlock && x != nowhere && z != nowhere {
		r = int64(reach*perBlock) + 2 // both ends are rounded
	}
	return Eye{x - r, z - r, uint64(2 * r)}
}
