package world

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

// Nobody within reach is ever left out, and of those who are not all but the nearest are.
func TestSpotsLeaveNobodyOutWhoIsWithinReach(t *testing.T) {
	r := New()
	p := r.Add(id(1), "Alice")
	place := r.Place("b", "w")
	if p.Spot().Within(Look(&Pose{Place: place}, 48)) {
		t.Error("a player without a pose is within reach")
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		scale := []float64{1, 100, 30_000_000, 1e12}[rnd.IntN(4)]
		at := func() float64 { return (rnd.Float64()*2 - 1) * scale }
		me := &Pose{X: at(), Z: at(), Place: place}
		reach := []float64{0, 0.25, 1, 48, 1000, 1e7, 1e300, math.Inf(1)}[rnd.IntN(8)]
		you := &Pose{X: me.X + (rnd.Float64()*2-1)*2*min(reach, 1e15), Z: me.Z + (rnd.Float64()*2-1)*2*min(reach, 1e15), Place: place}
		p.SetPose(you)
		dx, dz := you.X-me.X, you.Z-me.Z
		within := p.Spot().Within(Look(me, reach))
		if !within && math.Hypot(dx, dz) <= reach {
			t.Fatalf("%v, %v is left out at %v, %v within %v", you.X, you.Z, me.X, me.Z, reach)
		}
		far := max(math.Abs(dx), math.Abs(dz)) > reach+0.25
		if within && far && reach < 1e7 && scale < 1e12 {
			t.Fatalf("%v, %v is not left out at %v, %v within %v", you.X, you.Z, me.X, me.Z, reach)
		}
	}
	p.SetPose(nil)
	if p.Spot().Within(Look(&Pose{Place: place}, 1e6)) {
		t.Error("a pose that is gone is within reach")
	}
}

// Whichever of several calls was the last, the spot is of its pose.
func TestSpotsAreOfTheLastPose(t *testing.T) {
	r := New()
	p := r.Add(id(1), "Alice")
	place := r.Place("b", "w")
	for range 200 {
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for j := range 50 {
					p.SetPose(&Pose{X: float64(1000*i + j), Place: place})
				}
			})
		}
		all.Wait()
		if !p.Spot().Within(Look(p.Pose(), 0)) {
			t.Fatalf("the spot is not of the pose at %v", p.Pose().X)
		}
	}
}
