//go:build !race

package status

import (
	"testing"

	"github.com/earshot-mc/earshot/proxy/frame"
)

// TestNoAllocation is left out under the race detector because it makes sync.Pool forget on purpose.
func TestNoAllocation(t *testing.T) {
	s := typical(t)
	m := &memory{}
	w := frame.NewWriter(m)
	if err := s.answer(w, Client{Protocol: 765}); err != nil {
		t.Fatal(err)
	}
	if got := testing.AllocsPerRun(200, func() {
		if err := s.answer(w, Client{Protocol: 765}); err != nil {
			t.Fatal(err)
		}
	}); got >= 1 {
		t.Errorf("%v allocations per answer, want none", got)
	}
}
