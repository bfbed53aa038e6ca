package network

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/configs"
)

// TestCheckFindsEverything: what configs cannot know is found together with what it can, each at its line; and what is
// wrong already is not looked at again by others.
func TestCheckFindsEverything(t *testing.T) {
	dir := t.TempDir()
	f := filepath.Join(dir, configs.FileName)
	write := func(name, text string) {
		t.Helper()
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(configs.FileName, `servers:
  lobby: {address: "127.0.0.1:25566", forwarding: legcy, visibility: some}
status:
  icon: lost.png
  motd: '{"text": '
tls: {certificate: lost.pem, key: lost.key}
permissions:
  groups:
    staff: {nodes: ["a..b", "*.x"], parents: [nobody]}
  players:
    Ann: {groups: [staf]}
commands: {aliases: {glst: [who]}}
voice:
  spectators: some
  domains: {a b: [], c: [Ann]}
hosts:
  "a.b": {icon: lost2.png, max-players: 3}
  "c.d": {max-players: 3}
session-server: nowhere
`)
	write("languages/de.yml", "ping: 'Dein <pnig>'\n\nnothing: x\n")
	write("versions/900.json", `{"traits": {"Bundels": true}}`)
	l, err := configs.Load("", dir, nil)
	err = Check(l, err)
	var all configs.Mistakes
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	want := []string{
		"earshot.yml:2: servers.lobby.forwarding: ", "earshot.yml:2: servers.lobby.visibility: ", "earshot.yml:4: status.icon: ", "earshot.yml:5: status.motd: ",
		"earshot.yml:6: tls: cannot use the certificate: ", `earshot.yml:9: permissions.groups.staff.nodes: "*.x"`, `earshot.yml:9: permissions.groups.staff.nodes: "a..b"`,
		"earshot.yml:9: permissions.groups.staff.parents: ", "earshot.yml:11: permissions.players.Ann.groups: ", `earshot.yml:12: commands.aliases: aliases of "glst": there is no such command; did you mean "glist"?`,
		"earshot.yml:14: voice.spectators: ", `earshot.yml:15: voice.domains."a b": `, `earshot.yml:15: voice.domains.c: "Ann" is no UUID`,
		`earshot.yml:17: hosts."a.b".icon: `, "earshot.yml:19: session-server: ",
		"languages/de.yml:1: ping: ", "languages/de.yml:3: nothing: ", "versions/900.json: ",
	}
	var got []string
	for _, err := range all {
		got = append(got, strings.TrimPrefix(err.Error(), dir+string(filepath.Separator)))
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("have\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	write(configs.FileName, "voice: [1\n")
	l, err = configs.Load(f, "", nil)
	if got := Check(l, err); got != err || !strings.Contains(got.Error(), "earshot.yml:1: ") {
		t.Errorf("a file that is no YAML: %v", got)
	}
	os.RemoveAll(filepath.Join(dir, "languages"))
	os.RemoveAll(filepath.Join(dir, "versions"))
	write(configs.FileName, "voice: {range: 7}\n")
	if l, err = configs.Load("", dir, nil); Check(l, err) != nil {
		t.Errorf("one that is right: %v", Check(l, err))
	}
}
