package configs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// many has a mistake of each kind in it, each with a word of its error.
const many = `online: maybe
servers:
  lobby: {address: "127.0.0.1:25566", forwarding: legcy}
  survival: {adress: "127.0.0.1:25567"}
  creative: {forwarding: modern}
try: [lobyb, survival]
voice:
  range: far
  whisper: 99
  rnage: 3
  regions:
    arena: {world: overworld, from: [0, zero, 0], to: [1, 1, 1], range: 5000}
  groups: {types: [open, shut]}
  listens: [{listener: Ann, domain: red}]
try: [limbo]
timeouts: {read: soon, write: 1ms}
limits:
  pending: 0
  connections: {per-second: 0}
permissions: [a]
log: {level: loud}
hosts:
  "play.example.net": {try: [nowhere]}
nonsense: 1
`

var manyWant = []string{
	`:1: online: "maybe" is not a yes/no value: write true or false`,
	`:3: servers.lobby.forwarding: "legcy" is not one of none, legacy, bungeeguard, modern`,
	`:4: servers.survival: unknown key "adress": did you mean "address"?`,
	`:5: servers.creative: has no address: add address: host:port`,
	`:5: servers.creative: modern forwarding needs the secret that the backend has: set secret-file here or under forwarding`,
	`:8: voice.range: "far" is not a number`,
	`:9: voice.whisper: 99 is no factor: 0 (off) to 16`,
	`:10: voice: unknown key "rnage": did you mean "range"?`,
	`:12: voice.regions.arena.from: "zero" is not a number`,
	`:12: voice.regions.arena.range: 5000 is no range: 0 to 1024 blocks`,
	`:13: voice.groups.types: "shut" is not one of normal, open, isolated`,
	`:14: voice.listens: "Ann" is no UUID of a player: write the UUID here, or use the name with /voice domain, listen and edge`,
	`:14: voice.listens: there is no domain "red": declare it under voice.domains, if only as []`,
	`:15: mapping key "try" already defined at [6:1]`,
	`:16: timeouts.read: "soon" is no duration: write 5s, 1m30s or milliseconds`,
	`:16: timeouts.write: 1ms: 100ms to 1h`,
	`:18: limits.pending: must be at least 1`,
	`:19: limits.connections: per-second must be above 0 and burst at least 1`,
	`:20: permissions: write a section with keys of its own: groups, players, operators`,
	`:21: log.level: "loud" is not one of debug, info, warn, error`,
	`:23: hosts."play.example.net".try: there is no server "nowhere"`,
	`:24: unknown key "nonsense": remove it`,
	`environment variable EARSHOT_VOICE_SHOUT: "loudly" is not a number`,
}

// TestEveryMistakeIsNamed: all mistakes of a file come at once, by lines, each with its key and what to do, and what
// follows from one is no second one.
func TestEveryMistakeIsNamed(t *testing.T) {
	f := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(f, []byte(many), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(f, "", []string{"EARSHOT_VOICE_SHOUT=loudly"})
	var all Mistakes
	if !errors.As(err, &all) || !l.Whole() {
		t.Fatal(err)
	}
	var got []string
	for _, err := range all {
		got = append(got, strings.TrimPrefix(err.Error(), f))
	}
	if !slices.Equal(got, manyWant) {
		t.Errorf("have\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(manyWant, "\n"))
	}
	if first := err.Error(); !strings.HasPrefix(first, f+manyWant[0]) || !strings.HasSuffix(first, "; and 22 more: earshot check lists them") || strings.Contains(first, "\n") {
		t.Error(first)
	}
	for i, err := range all[:len(all)-1] {
		if m := (*Mistake)(nil); !errors.As(err, &m) || m.File != f || m.Line == 0 || m.Key == "" {
			t.Errorf("%d: %+v", i, err)
		}
	}
}

// TestMistakesAreMended: each mistake that is mended takes its line with it and brings no other one.
func TestMistakesAreMended(t *testing.T) {
	f := filepath.Join(t.TempDir(), FileName)
	count := func(text string) int {
		os.WriteFile(f, []byte(text), 0o600)
		_, err := Load(f, "", nil)
		if all := (Mistakes)(nil); errors.As(err, &all) {
			return len(all)
		} else if err != nil {
			return 1
		}
		return 0
	}
	text, left := many, count(many)
	for _, mend := range [][2]string{
		{"maybe", "true"}, {"legcy", "legacy"}, {"range: far", "range: 12"}, {"  rnage: 3\n", ""}, {"zero", "0"}, {"range: 5000", "range: 50"},
		{"shut", "normal"}, {"try: [lobyb, survival]\n", ""}, {"read: soon", "read: 5s"}, {"write: 1ms", "write: 5s"}, {"pending: 0", "pending: 9"},
		{"connections: {per-second: 0}", "connections: {per-second: 1}"}, {"permissions: [a]", "permissions: {}"}, {"loud", "info"},
		{"nowhere", "limbo"}, {"nonsense: 1\n", ""}, {"adress", "address"}, {"whisper: 99", "whisper: 1"},
	} {
		if !strings.Contains(text, mend[0]) {
			t.Fatal(mend[0])
		}
		text = strings.Replace(text, mend[0], mend[1], 1)
		if now := count(text); now != left-1 {
			t.Errorf("%q mended: %d mistakes, %d before", mend[0], now, left)
		}
		left = count(text)
	}
	if left != 4 {
		t.Errorf("%d left", left)
	}
}
