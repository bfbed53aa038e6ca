package socket

import (
	"time"

	"github.com/earshot-mc/earshot/handshake/budget"
)

// Budgets for everything that is not a message. A peer that is over one is closed with [Flood]. The bursts are larger
// than what gathers on a broken route while a peer may be silent.
const (
	// ControlsPerSecond bounds pings and pongs; a peer needs one of each in PingEvery, and some send one a second.
	ControlsPerSecond = 20
	controlsAtOnce    = 400

	// FragmentsPerSecond bounds the frames of messages that come in several. It is three for each frame of a microphone
	// and ten clips.
	FragmentsPerSecond = 2000
	fragmentsAtOnce    = 10000
	// emptyFragment is the cost of a fragment that does not bring a message further.
	emptyFragment = 10
)

// budgets are a peer's. They belong to its reader.
type budgets struct{ controls, fragments budget.Budget }

func newBudgets() budgets {
	return budgets{budget.Budget{PerSecond: ControlsPerSecond, AtOnce: controlsAtOnce}, budget.Budget{PerSecond: FragmentsPerSecond, AtOnce: fragmentsAtOnce}}
}

func (b *budgets) control() error {
	if !b.controls.Take(time.Now(), 1) {
		return flood("pings and pongs")
	}
	return nil
}

// fragment counts a frame of a message that comes in several.
func (b *budgets) fragment(size int64, last bool) error {
	cost := 1
	if size == 0 && !last {
		cost = emptyFragment
	}
	if !b.fragments.Take(time.Now(), cost) {
		return flood("fragments of messages")
	}
	return nil
}

func flood(what string) *Closed { return &Closed{Code: Flood, Reason: Flood.Reason(), What: what} }
