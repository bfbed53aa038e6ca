package commands

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// drained does as setup with /earshot drain, and the server empty being drained already.
func drained() (n *network, cfg Config, did *[]string) {
	n, cfg = setup()
	n.servers[3].Draining = true
	did = new([]string)
	cfg.Hubs = []string{"empty", "lobby"}
	cfg.Program.Drain = func(server string, on, move bool, done func(Emptied)) error {
		if server == "broken" {
			return errors.New("no luck")
		}
		*did = append(*did, fmt.Sprint(server, " ", on, " ", move))
		return nil
	}
	return n, cfg, did
}

// TestDrain: who may drain a server can say on, move and off, and everything that shows servers shows it.
func TestDrain(t *testing.T) {
	const on, off = "Server Survival takes no new players", "Server Survival gets players again"
	for _, c := range []struct{ who, text, answer, did string }{
		{"", "earshot drain SURVIVAL", on, "Survival true false"},
		{"", "earshot drain survival on", on, "Survival true false"},
		{"", "earshot drain survival MOVE", on, "Survival true true"},
		{"", "earshot drain survival off", off, "Survival false false"},
		{"", "earshot drain survival of", "Type /earshot drain <server> [on|move|off]", ""},
		{"", "earshot drain", "Type /earshot drain <server> [on|move|off]", ""},
		{"", "earshot drain nowhere", "There is no server nowhere", ""},
		{"", "earshot drain broken", "no luck", ""},
		{"", "earshot status lobby", "Type /earshot status", ""},
		{"", "glist empty", "empty (0) draining", ""},
		{"Notch", "server empty", "Server empty is being drained", ""},
		{"jeb_", "hub", "To lobby", ""},
	} {
		n, cfg, did := drained()
		src := &source{}
		for _, p := range n.players {
			if p.name == c.who {
				src.player, src.denied = p, []string{Permission("earshot.drain")}
			}
		}
		must(t, cfg).Execute(t.Context(), src, c.text)
		if got := strings.Join(src.answers(), "|"); !strings.HasPrefix(strings.TrimPrefix(got, "That did not work: "), c.answer) || strings.Join(*did, "|") != c.did {
			t.Errorf("%q: told %q, did %q; want %q, %q", c.text, got, *did, c.answer, c.did)
		}
	}

	n, cfg, did := drained()
	notch := &source{player: n.players[0]}
	must(t, cfg).Execute(t.Context(), notch, "server empty")
	if got := n.players[0].did; !slices.Equal(got, []string{"connect empty"}) {
		t.Errorf("who may drain did %q: not let in to look", got)
	}
	notch.denied = []string{Permission("earshot.drain")}
	must(t, cfg).Execute(t.Context(), notch, "earshot drain lobby")
	if len(*did) != 0 || !strings.Contains(strings.Join(notch.answers(), "|"), "You may not do that") {
		t.Errorf("without the permission: %q, %q", *did, notch.answers())
	}
	table := must(t, cfg).Table()
	for text, want := range map[string][]string{"earshot drain em": {"empty"}, "earshot drain empty ": {"move", "off", "on"}, "earshot status em": nil} {
		s, _ := table.Complete(&source{}, text)
		var got []string
		for _, m := range s.Matches {
			got = append(got, m.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is completed by %q, want %q", text, got, want)
		}
	}
}

// TestDrainSaysWhatItDid: whoever empties a server is told what became of its players, by name where they are still
// there.
func TestDrainSaysWhatItDid(t *testing.T) {
	many := make([]string, maxListed+2)
	for i := range many {
		many[i] = "n"
	}
	for _, c := range []struct {
		e    Emptied
		want string
	}{
		{Emptied{}, "Nobody was on server Survival."},
		{Emptied{Players: 4, Moved: 4}, "Server Survival: 4 of 4 moved"},
		{Emptied{Players: 4, Moved: 1, Nowhere: []string{"Ann", "Bob", "Cid"}}, "Server Survival: 1 of 4 moved; 3 have no other server: Ann, Bob, Cid"},
		{Emptied{Players: 4, Left: 1, Nowhere: []string{"Ann"}, Refused: []string{"Bob", "Cid"}}, "Server Survival: 0 of 4 moved; 1 have no other server: Ann; 2 stay, since no other server took them: Bob, Cid; 1 left the game"},
		{Emptied{Players: len(many), Nowhere: many}, "and 2 more"},
	} {
		n, cfg, _ := drained()
		var ended chan struct{}
		cfg.Program.Drain = func(_ string, _, _ bool, done func(Emptied)) error {
			ended = make(chan struct{})
			go func() {
				defer close(ended)
				done(c.e)
			}()
			return nil
		}
		for _, src := range []*source{{}, {player: n.players[0]}} {
			must(t, cfg).Execute(t.Context(), src, "earshot drain survival move")
			<-ended
			if got := strings.Join(src.answers(), "|"); !strings.Contains(got, c.want) {
				t.Errorf("%+v: told %q, want %q", c.e, got, c.want)
			}
		}
	}
}
