package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// write puts a configuration into a folder of its own.
func write(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(f, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(f, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return f
}

// said returns everything that is said about a configuration that is accepted.
func said(t *testing.T, text string) (warnings, notes, hints []string) {
	t.Helper()
	f := write(t, text, 0o600)
	l, err := Load(f, "", nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, all := range []*[]string{&l.Warnings, &l.Notes, &l.Hints} {
		for i, s := range *all {
			(*all)[i] = strings.ReplaceAll(s, f, "f")
		}
	}
	return l.Warnings, l.Notes, l.Hints
}

const two = "try: [a, b]\nservers: {a: '127.0.0.1:1', b: '127.0.0.1:2'}\n"

// What is accepted and not safe is a warning that says why and what to do.
func TestUnsafeSettingsAreWarnedOf(t *testing.T) {
	for text, want := range map[string]string{
		"proxy-protocol: {trusted: [0.0.0.0/0]}":                                  "proxy-protocol.trusted has 0.0.0.0/0 in it: anybody can pretend to have any address",
		"proxy-protocol: {trusted: [10.0.0.0/8, '::/0']}":                         "proxy-protocol.trusted has ::/0 in it",
		"proxy-protocol: {trusted: [0.0.0.0/1, 128.0.0.0/1]}":                     "proxy-protocol.trusted has 0.0.0.0/1 in it",
		"http-proxies: [0.0.0.0/0]":                                               "http-proxies has 0.0.0.0/0 in it: anybody can pretend to be local",
		"admin: {networks: [0.0.0.0/0]}":                                          "admin.networks has 0.0.0.0/0 in it: anybody can read /metrics",
		"limits: {exempt: ['::/0']}":                                              "limits.exempt has ::/0 in it: no limit holds for anybody",
		"try: [a]\nservers: {a: '203.0.113.7:25565'}":                             "server a is on a public address with forwarding none",
		"try: [a]\nforwarding: {mode: legacy}\nservers: {a: '203.0.113.7:25565'}": "server a uses legacy forwarding on a public address",
	} {
		warnings, _, _ := said(t, text)
		if len(warnings) != 1 || !strings.Contains(warnings[0], want) {
			t.Errorf("%s:\n have %q\n want %s", text, warnings, want)
		}
	}
	for _, text := range []string{
		"proxy-protocol: {trusted: [10.0.0.0/8, 'fc00::/7', 127.0.0.1]}", "admin: {networks: [192.168.0.0/16]}",
		"try: [a]\nservers: {a: '10.1.2.3:25565'}", "hosts: {a.b: {lite: [a]}}\nservers: {a: '203.0.113.7:25565'}",
	} {
		if warnings, notes, hints := said(t, text); len(warnings)+len(notes)+len(hints) > 0 {
			t.Errorf("%s: %q, %q, %q", text, warnings, notes, hints)
		}
	}
}

// A secret in a file that everybody on the machine can read is warned of, whichever secret and wherever it stands.
func TestReadableSecretsAreWarnedOf(t *testing.T) {
	for text, secret := range map[string]bool{
		"forwarding: {mode: modern, secret: abc}": true, "try: [a]\nservers: {a: {address: '127.0.0.1:1', forwarding: modern, secret: abc}}": true,
		"state: {url: 'nats://n', user: me, password: abc}": true, "state: {url: 'nats://n', token: abc}": true, "state: {url: 'nats://me:abc@n'}": true,
		"listen: ':1'": false, "state: {url: 'nats://n'}": false,
	} {
		for _, mode := range []os.FileMode{0o644, 0o600, 0o640} {
			f := write(t, text, mode)
			l, err := Load(f, "", nil)
			if err != nil {
				t.Fatal(text, err)
			}
			want := secret && mode == 0o644
			if got := len(l.Warnings) == 1 && strings.Contains(l.Warnings[0], "can be read by everybody on this machine: chmod 600 "+f); got != want || len(l.Warnings) > 1 {
				t.Errorf("%s with mode %o: %q", text, mode, l.Warnings)
			}
		}
	}
	key := filepath.Join(t.TempDir(), "key.pem")
	os.WriteFile(key, nil, 0o644)
	os.Chmod(key, 0o644)
	for _, text := range []string{"tls: {certificate: c, key: " + key + "}", "state: {url: 'nats://n', certificate: " + key + ", key: " + key + "}", "state: {url: 'nats://n', credentials-file: " + key + "}"} {
		if warnings, _, _ := said(t, text); len(warnings) != 1 || !strings.HasSuffix(warnings[0], "chmod 600 "+key) {
			t.Errorf("%s: %q", text, warnings)
		}
	}
}

// A world that no server can have, and one of a server that there is not, are noted with the line and the name that was
// meant; worlds of plugins and mods are not.
func TestWorldsThatNoServerHasAreNoted(t *testing.T) {
	for world, want := range map[string]string{
		"nether": "the_nether", "minecraft:nether": "the_nether", "end": "the_end", "world_nether": "the_nether", "a/world_the_end": "the_end",
		"world": "overworld", "overwold": "overworld", "The_Nether": `small letters`, "'the nether'": "the_nether", "My World": "small letters", "DIM-1": "the_nether",
		"'Twilight:forest'": "small letters", "c/the_nether": `there is no server "c"`, "aa/the_nether": `there is no server "aa"; did you mean "a"?`,
	} {
		bare := strings.Trim(world, "'")
		for _, text := range []string{
			two + "online: false\nvoice:\n  worlds:\n    " + world + ": 24\n",
			two + "online: false\nvoice:\n  regions:\n    spawn: {world: " + world + ", from: [0, 0, 0], to: [1, 1, 1], range: 4}\n",
		} {
			_, notes, _ := said(t, text)
			if len(notes) != 1 || !strings.Contains(notes[0], want) || !strings.HasPrefix(notes[0], "f:6: voice.") {
				t.Errorf("%s: %q, want %q", bare, notes, want)
			}
		}
	}
	for _, world := range []string{
		"the_nether", "minecraft:the_end", "overworld", "survival2", "a/the_nether", "limbo/overworld", "twilightforest:twilight_forest", "b/mod:deep/dark", "A/lobby", "mining",
	} {
		if _, notes, _ := said(t, two+"online: false\nvoice: {worlds: {\""+world+"\": 24}}\n"); len(notes) > 0 {
			t.Errorf("%s: %q", world, notes)
		}
	}
}

// Servers that no list names are noted where all players end in the built-in world, and otherwise told to who checks.
func TestServersOnNoListAreNoted(t *testing.T) {
	_, notes, hints := said(t, "servers: {a: '127.0.0.1:1'}")
	if len(hints) != 0 || !slices.Equal(notes, []string{"f:1: servers: no list names a, so that players join the built-in world: add try: [a]"}) {
		t.Errorf("%q, %q", notes, hints)
	}
	_, notes, hints = said(t, "online: false\ntry: [a]\nhosts: {x.y: {try: [c]}, z.y: {lite: [d]}}\ncommands: {hubs: [E]}\n"+
		"servers: {a: 'h:1', b: 'h:2', c: 'h:3', d: 'h:4', e: 'h:5', f: 'h:6'}")
	if len(notes) != 0 || len(hints) != 1 || !strings.HasPrefix(hints[0], "no list names b, f (try, hosts, commands.hubs)") {
		t.Errorf("%q, %q", notes, hints)
	}
}

// Without forwarding, several servers cannot agree on who an authenticated player is.
func TestSeveralServersWithoutForwardingAreNoted(t *testing.T) {
	_, notes, _ := said(t, two)
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "f: forwarding: none: a, b learn neither the UUIDs") {
		t.Errorf("%q", notes)
	}
	for _, text := range []string{two + "online: false\n", "try: [a]\nservers: {a: '127.0.0.1:1'}\n", two + "forwarding: {mode: legacy}\n"} {
		if _, notes, _ := said(t, text); len(notes) > 0 {
			t.Errorf("%s: %q", text, notes)
		}
	}
}

// A server is its address alone, or a section with it, which is as strict as ever.
func TestAServerIsAnAddress(t *testing.T) {
	for _, text := range []string{
		"a: 127.0.0.1:25566", "a: '127.0.0.1:25566'", "a: {address: '127.0.0.1:25566'}", "a:\n    address: 127.0.0.1:25566",
		"a: &x 127.0.0.1:25566", "a: !!str 127.0.0.1:25566",
	} {
		l, err := Load(write(t, "servers:\n  "+text+"\ntry: [a]\n", 0o600), "", nil)
		if err != nil || l.Servers["a"] != (Server{Address: "127.0.0.1:25566", Forwarding: "none"}) {
			t.Errorf("%s: %+v, %v", text, l.Servers, err)
		}
	}
	l, err := Load("", t.TempDir(), []string{"EARSHOT_SERVERS={a: 'h:1', b: {address: 'h:2', forwarding: legacy}}"})
	if err != nil || l.Servers["a"].Address != "h:1" || l.Servers["b"].Forwarding != "legacy" {
		t.Errorf("%+v, %v", l.Servers, err)
	}
	if l, err = Load(write(t, "servers:\n  a: &x {address: 'h:1', forwarding: legacy}\n  b: *x\ntry: [a, b]\n", 0o600), "", nil); err != nil || l.Servers["b"].Address != "h:1" {
		t.Errorf("an alias: %+v, %v", l.Servers, err)
	}
	_, err = Load("", t.TempDir(), []string{"EARSHOT_SERVERS={a: {adress: 'h:1'}}"})
	if err == nil || !strings.Contains(err.Error(), `EARSHOT_SERVERS: a: unknown key "adress": did you mean "address"?`) {
		t.Errorf("in the environment: %v", err)
	}
}

// What a mistyped key may have meant is looked for in its own section only, in every section there is.
func TestSuggestionsAreOfTheSection(t *testing.T) {
	sections := map[string]reflect.Type{"": reflect.TypeFor[Config]()}
	for f := range reflect.TypeFor[Config]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); f.Type.Kind() == reflect.Struct {
			sections[name] = f.Type
		}
	}
	if len(sections) < 10 {
		t.Fatalf("only %d sections", len(sections))
	}
	for name, section := range sections {
		for _, elsewhere := range keys(reflect.TypeFor[Config]()) {
			if slices.Contains(own(section), elsewhere) {
				continue
			}
			text := elsewhere + ": 1\n"
			if name != "" {
				text = name + ":\n  " + text
			}
			_, err := Load(write(t, text, 0o600), "", nil)
			if err == nil {
				t.Errorf("%s.%s: accepted", name, elsewhere)
				continue
			}
			_, hint, ok := strings.Cut(err.Error(), `did you mean "`)
			if word, _, _ := strings.Cut(hint, `"`); ok && !slices.Contains(own(section), word) {
				t.Errorf("%s.%s: %v", name, elsewhere, err)
			}
		}
	}
}
