package itest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/proxy/limbo"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// TestReadmeVersions: CONTRIBUTING lists the versions that the built-in world has data for, and says which of them have
// been in it with a client that nobody here wrote.
func TestReadmeVersions(t *testing.T) {
	file, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(file), "## Versions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	section = strings.Join(strings.Fields(section), " ")

	var all, without []string
	for _, p := range limbo.Protocols() {
		names := proto.Lookup(p).Names
		name, last := names[0], names[len(names)-1]
		switch len(names) {
		case 1:
		case 2:
			name += " and " + last
		default:
			name += " to " + last
		}
		all = append(all, fmt.Sprintf("%s (%d)", name, p))
		if !slices.ContainsFunc(peer.Versions, func(v peer.Version) bool { return v.Protocol == p }) {
			without = append(without, names[0])
		}
	}
	var core []string
	for _, v := range peer.Core {
		core = append(core, v.Name)
	}
	and := func(list []string) string {
		return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	last := proto.Lookup(limbo.Protocols()[len(limbo.Protocols())-1]).Names
	if want := fmt.Sprintf("| Versions | Java Edition %s to %s,", proto.Lookup(limbo.Protocols()[0]).Names[0], last[len(last)-1]); !strings.Contains(string(readme), want) {
		t.Errorf("README.md does not say %q", want)
	}
	for what, want := range map[string]string{
		"the versions":                   ": " + strings.Join(all, ", ") + ".",
		"what make test has":             "those of " + and(core) + ", `make soak`",
		"which versions have no players": "all others but " + and(without) + ",",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("CONTRIBUTING.md does not say %s:\n%s", what, want)
		}
	}
}
