package itest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/itest/peer"
)

// TestRCON: a tool with the password gives the console's commands and is answered; who guesses is slowed, counted and
// logged; a new password is in force with a reload, and the program can be ended like that.
func TestRCON(t *testing.T) {
	addr := freeAddr(t)
	p := newProgram(t, "")
	settings := fmt.Sprintf("online: false\nrcon: {address: %q, password-file: word}\n", addr)
	word := func(w string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.dir, "word"), []byte(w+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	word("first password")
	p.write(settings)
	p.args = append(p.args, "--data", p.dir)
	p.run()
	p.says(1, "rcon    "+addr)
	if peer.DialRCON(t, addr, "") != nil || peer.DialRCON(t, addr, "wrong") != nil {
		t.Fatal("a wrong password lets somebody in")
	}
	p.counts(`earshot_rcon_refused_total{reason="password"}`, 2)
	p.says(1, "turned away: an RCON connection with a wrong password")

	r := peer.DialRCON(t, addr, "first password")
	if r == nil {
		t.Fatal("the password lets nobody in")
	}
	for command, want := range map[string]string{
		"glist":             "limbo (0)\nPlayers online: 0.",
		"/find nobody":      "There is no player nobody here.",
		"nonsense":          "There is no command nonsense. Type help for a list.",
		"voice mute":        "Type /voice mute ",
		"earshot reload":    "Reloaded: nothing changed.",
		"help voice mute":   "/voice mute ",
		"  ":                "",
		"voice group list":  "There are no groups.",
		"alert good <news>": "",
	} {
		if got := r.Say(command); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if got := r.Say("help"); !strings.Contains(got, "/glist") || !strings.Contains(got, "\n") {
		t.Errorf("help: %q", got)
	}
	p.says(1, "by=rcon command=glist")
	p.counts("earshot_rcon_commands_total", 10)
	p.counts("earshot_rcon_connections", 1)

	word("second password")
	p.says(1, "rcon.password: changed")
	if peer.DialRCON(t, addr, "first password") != nil {
		t.Error("the former password is in force still")
	}
	if r = peer.DialRCON(t, addr, "second password"); r == nil {
		t.Fatal("the new password is not in force")
	}
	if got := r.Say("shutdown until tomorrow"); !strings.Contains(got, "until tomorrow") {
		t.Errorf("shutdown: %q", got)
	}
	p.ends()
}

// TestRCONIsOffByDefault: nobody has another port without asking for it; an administrator who asks is told what is
// missing, and what is unsafe.
func TestRCONIsOffByDefault(t *testing.T) {
	p := start(t, "online: false\n")
	if strings.Contains(p.log.String(), "rcon") {
		t.Errorf("%s", p.log.String())
	}
	for settings, want := range map[string]string{
		"rcon: {address: ':0'}\n":                                      "rcon: has no password",
		"rcon: {address: 25575, password: long enough}\n":              `rcon.address: "25575" is no address`,
		"rcon: {address: ':0', password: short}\n":                     "rcon.password is short",
		"rcon: {address: '0.0.0.0:0', password: long enough by far}\n": "rcon.address is not of this machine alone",
		"rcon: {address: ':0', pasword: x}\n":                          `unknown key "pasword": did you mean "password"?`,
		"rcon: {address: ':0', password-file: lost, password: ''}\n":   "rcon.password-file: cannot read the secret",
	} {
		file := filepath.Join(t.TempDir(), "earshot.yml")
		if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		_, out, complaint := earshot(t, nil, "check", "--config", file)
		if !strings.Contains(complaint, want) || strings.Contains(out+complaint, "long enough") {
			t.Errorf("%s: %s%s", settings, out, complaint)
		}
	}
}
