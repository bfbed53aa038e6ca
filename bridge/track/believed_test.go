package track

import (
	"testing"
	"testing/synctest"
	"time"
)

// A player whose respawn is followed by no position packet, and who moves for a second, is believed; one whose client
// still says where it was in the world before is not, nor is one who has only joined.
func TestMovesAfterARespawnAreBelieved(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		synctest.Test(t, func(t *testing.T) {
			s := onFoot(t, protocol)
			s.respawn(nether)
			s.walk(10, 70, -20)
			s.nowhere("right after the respawn")
			for i := range 19 {
				sleep(50 * time.Millisecond)
				s.walk(float64(i), 64, 5)
				s.nowhere("in the first second")
			}
			sleep(50 * time.Millisecond)
			s.walk(20, 64, 5)
			s.at(20, 64, 5, 90)
			s.walk(21, 64, 5)
			s.at(21, 64, 5, 90)

			s.join(overworld)
			for range 40 {
				sleep(50 * time.Millisecond)
				s.walk(1, 2, 3)
			}
			s.nowhere("after a login that has said no place")
			s.understood()
		})
	})
}
