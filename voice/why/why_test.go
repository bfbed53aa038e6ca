package why

import (
	"fmt"
	"slices"
	"testing"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/route"
)

// TestEveryVerdictIsExplained: an answer begins with who does or does not hear whom and goes on with the reason, and no
// two verdicts have the same.
func TestEveryVerdictIsExplained(t *testing.T) {
	here := &world.Place{Backend: "survival", World: "overworld"}
	said := map[string]route.Verdict{}
	for v := route.ByDistance; v <= route.OutOfRange; v++ {
		w := Answer{
			Talker: "Ann", Listener: "Bob", TalkerHere: true, ListenerHere: true, TalkerGroup: "red",
			Why: route.Why{Verdict: v, Talker: here, Listener: here, Level: 255},
		}
		all := w.Clauses()
		both := []string{"speaker", "Ann", "listener", "Bob"}
		if first := map[bool]string{true: "yes", false: "no"}[v.Heard()]; len(all) < 2 || all[0].Text != first || !slices.Equal(all[0].Values, both) {
			t.Errorf("%v: %v", v, all)
		}
		text := fmt.Sprint(all)
		if other, ok := said[text]; ok {
			t.Errorf("%v says the same as %v: %s", v, other, text)
		}
		said[text] = v
	}
	for _, w := range []Answer{{Talker: "Ann", Listener: "Bob", ListenerHere: true}, {Talker: "Bob", Listener: "Ann", TalkerHere: true}} {
		if got := fmt.Sprint(w.Clauses()); got != "[{absent [player Ann]}]" {
			t.Errorf("%+v: %s", w, got)
		}
	}
}
