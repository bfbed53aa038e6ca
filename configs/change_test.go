package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChanges(t *testing.T) {
	from, to := Default(), Default()
	if got := Changes(&from, &to); got != nil {
		t.Errorf("of the same: %v", got)
	}
	from.Servers["old"] = Server{Address: "h:1"}
	from.Servers["both"] = Server{Address: "h:2", Secret: "hunter2"}
	to.Servers["both"] = Server{Address: "h:3", Secret: "hunter3"}
	to.Servers["new"] = Server{Address: "h:4", Secret: "hunter4"}
	to.Voice.Range, to.Voice.Groups.Enabled = 32, false
	to.Timeouts.Read = Duration(time.Minute)
	to.Try = []string{"both", "limbo"}
	to.Listen = ":1"
	to.Status.MOTD = strings.Repeat("long", 100)
	to.Permissions.Operators[3] = "staff"
	var got []string
	for _, c := range Changes(&from, &to) {
		got = append(got, c.String())
	}
	want := []string{
		`listen: still ":25565", ":1" needs a restart`,
		`permissions.operators.3: added, "staff"`,
		`servers.both.address: "h:2" → "h:3"`,
		`servers.both.secret: changed`,
		`servers.new: added, {"address": "h:4", "secret": "(hidden)"}`,
		`servers.old: removed`,
		`status.motd: "An <gold>Earshot</gold> network: come closer, speak up" → "` + strings.Repeat("long", 15)[:59] + "…",
		`timeouts.read: "30s" → "1m0s"`,
		`try: ["limbo"] → ["both", "limbo"]`,
		`voice.groups.enabled: true → false`,
		`voice.range: 48.0 → 32.0`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	to.Keep(&from)
	if to.Listen != ":25565" || to.Voice.Range != 32 {
		t.Errorf("kept %+v", to)
	}
	for _, key := range restart {
		if v := field(reflect.ValueOf(&from).Elem(), key); !v.CanSet() || v.Type() == reflect.ValueOf(&from).Elem().Type() {
			t.Errorf("%s is no key", key)
		}
	}
}

func TestFilesAndLanguages(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		f := filepath.Join(dir, name)
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	l, err := Load("", dir, nil)
	if err != nil || l.Texts != nil || !slices.Equal(l.Files, []string{filepath.Join(dir, FileName), filepath.Join(dir, VersionsName), filepath.Join(dir, "languages")}) {
		t.Errorf("without any: %v, %v, %v", l, err, l.Files)
	}
	os.Mkdir(filepath.Join(dir, "languages"), 0o700)
	german := write("languages/de.yml", "ping: \"Dein Ping: <ping>\"\n")
	write("languages/.de.yml.swp", "\x00")
	write("languages/.de.yml", "{{")
	main := write(FileName, "forwarding: {mode: modern, secret-file: fwd}\ntls: {certificate: c.pem, key: k.pem}\nstatus: {icon: i.png}\nhosts: {a.b: {icon: h.png}}\nbedrock: {key-file: fwd}\n")
	secret := write("fwd", "word")
	l, err = Load("", dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.Texts["de"]["ping"] != "Dein Ping: <ping>" || len(l.Texts) != 1 {
		t.Errorf("texts %v", l.Texts)
	}
	for _, f := range []string{main, secret, german, filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem"), filepath.Join(dir, "i.png"), filepath.Join(dir, "h.png")} {
		if !slices.Contains(l.Files, f) {
			t.Errorf("%s is not among %v", f, l.Files)
		}
	}
	write("languages/fr.yml", "ping: [a, b]\n")
	if _, err := Load("", dir, nil); err == nil || !strings.Contains(err.Error(), "fr.yml:1") {
		t.Errorf("a list for a text: %v", err)
	}
	if _, err := Load("", dir, []string{"EARSHOT_LANGUAGES=nowhere"}); err == nil || !strings.Contains(err.Error(), "languages: cannot read") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
