package status

import (
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// TestNewerClients: a client of a version that nobody knows sees that it gets in, and what it gets; one that is refused
// sees which versions there are. The line of versions is true, whatever was added since the start.
func TestNewerClients(t *testing.T) {
	defer proto.Use()
	ann := func(dst []Player, _ int) []Player { return append(dst, Player{"Ann", uuid.UUID{1}}) }
	cfg := Config{Players: ann, Takes: func(p int32) bool { return p == 900 }, Newer: packet.Plain("newer")}
	players := newStatus(t, cfg)
	cfg.Lines = []packet.Text{packet.Plain("line")}
	lines := newStatus(t, cfg)
	cfg.Newer, cfg.Version = packet.Text{}, "Ours"
	silent := newStatus(t, cfg)
	check := func(what string, s *Status, protocol, want int32, version string, sample ...string) {
		t.Helper()
		a, raw := ask(t, s, protocol)
		if a.Version.Protocol != want || a.Version.Name != version || len(a.Players.Sample) != len(sample) {
			t.Errorf("%s: %d sees %s", what, protocol, raw)
			return
		}
		for i, name := range sample {
			if a.Players.Sample[i].Name != name {
				t.Errorf("%s: %d sees %s", what, protocol, raw)
			}
		}
	}
	check("players", players, 900, 900, "Earshot 1.8-26.3", "newer", "Ann")
	check("lines", lines, 900, 900, "Earshot 1.8-26.3", "newer", "line")
	check("no text", silent, 900, 900, "Ours", "line")
	check("refused", players, 901, proto.Max, "Earshot 1.8-26.3", "Ann")
	check("known", lines, proto.Max, proto.Max, "Earshot 1.8-26.3", "line")

	v, err := proto.Describe(proto.Description{Protocol: 900, Names: []string{"27.0"}})
	if err != nil {
		t.Fatal(err)
	}
	proto.Use(v)
	check("added", players, 900, 900, "Earshot 1.8-27.0", "Ann")
	check("refused", players, 901, 900, "Earshot 1.8-27.0", "Ann")
}
