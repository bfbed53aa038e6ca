package limbo

import (
	"slices"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/proxy/proto"
)

// TestDescribedVersion: players of a version that was added join the built-in world with the data of the version it is
// like, under its own ids; and one whose packets are not there is an error that names the packet.
func TestDescribedVersion(t *testing.T) {
	defer proto.Use()
	like := Protocols()[len(Protocols())-1]
	ids := map[string]int32{}
	for id, p := range proto.Lookup(like).Table(proto.Play, proto.Clientbound) {
		if p != proto.Unknown {
			ids[p.String()] = int32(id) + 3
		}
	}
	v, err := proto.Describe(proto.Description{Protocol: 900, Like: like, Packets: map[string]map[string]int32{"play/clientbound": ids}})
	if err != nil {
		t.Fatal(err)
	}
	proto.Use(v)
	if !slices.Contains(Protocols(), 900) {
		t.Error("it is not among the versions of the built-in world")
	}
	w := start(t, Config{})
	a, b := enter(t, w, 900, "A"), enter(t, w, like, "B")
	b.say("hello")
	if got := a.said(); got != "<B> hello" {
		t.Errorf("A hears %q", got)
	}

	first, _ := open(v)
	if again, _ := open(v); again != first {
		t.Error("the data is made twice")
	}
	if mended, _ := proto.Describe(v.Describe()); mended != nil {
		if other, _ := open(mended); other == first {
			t.Error("a version that was mended has the data of before")
		}
	}
	ids["map_chunk"] = -1
	less, err := proto.Describe(proto.Description{Protocol: 901, Like: like, Packets: map[string]map[string]int32{"play/clientbound": ids}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(less); err == nil || !strings.Contains(err.Error(), "map_chunk") {
		t.Errorf("without chunks: %v", err)
	}
}

// TestPacketsOfTheWorldHaveNames: else a version that is added could not have them.
func TestPacketsOfTheWorldHaveNames(t *testing.T) {
	for _, p := range Protocols() {
		raw, err := worlds()[p].inflate()
		if err != nil {
			t.Fatal(err)
		}
		v := proto.Lookup(p)
		if out, err := renumber(raw, v, v); err != nil || !slices.Equal(out, raw) {
			t.Errorf("%d: %d bytes became %d, %v", p, len(raw), len(out), err)
		}
	}
}
