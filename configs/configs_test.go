package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestShippedSampleIsTheDefaults(t *testing.T) {
	l, err := Load("earshot.yml", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := Default(); !reflect.DeepEqual(l.Config, want) {
		t.Errorf("the sample says\n%+v\nthe defaults are\n%+v", l.Config, want)
	}
	// and it names every key there is
	text, _ := os.ReadFile("earshot.yml")
	for _, key := range keys(reflect.TypeFor[Config]()) {
		if !strings.Contains(string(text), key) {
			t.Errorf("the sample does not mention %q", key)
		}
	}
}

// Each file of testdata/bad has the wanted message in its first line, behind "# error: ".
func TestBadFilesAreOneLineThatHelps(t *testing.T) {
	files, _ := filepath.Glob("testdata/bad/*.yml")
	if len(files) < 10 {
		t.Fatalf("only %d files", len(files))
	}
	for _, f := range files {
		text, _ := os.ReadFile(f)
		first, _, _ := strings.Cut(string(text), "\n")
		want, ok := strings.CutPrefix(first, "# error: ")
		if !ok {
			t.Errorf("%s: names no error", f)
			continue
		}
		_, err := Load(f, "", nil)
		if err == nil {
			t.Errorf("%s: accepted", f)
		} else if got := err.Error(); strings.ReplaceAll(got, "testdata/bad/", "") != want || strings.Contains(got, "\n") {
			t.Errorf("%s:\n got %s\nwant %s", f, got, want)
		}
	}
}

func TestEnvironmentWinsOverTheFile(t *testing.T) {
	f := filepath.Join(t.TempDir(), FileName)
	os.WriteFile(f, []byte("voice:\n  range: 20\nlisten: \":1\"\n"), 0o600)
	l, err := Load("", filepath.Dir(f), []string{
		"EARSHOT_VOICE_RANGE=32", "EARSHOT_SERVERS={lobby: {address: 'h:1', forwarding: legacy}}", "EARSHOT_TRY=[Lobby, limbo]",
		"EARSHOT_ONLINE=false", "EARSHOT_TIMEOUTS_READ=1500", "EARSHOT_STATUS_MOTD=a: b", "EARSHOT_VOICE_RANG=1", "EARSHOT_VOICE_SOUNDBOARD=false", "OTHER=1",
	})
	if err != nil {
		t.Fatal(err)
	}
	if l.File != f || l.Listen != ":1" || l.Voice.Range != 32 || l.Servers["lobby"].Forwarding != "legacy" || len(l.Try) != 2 || l.Online || l.Voice.Soundboard ||
		time.Duration(l.Timeouts.Read) != 1500*time.Millisecond || l.Status.MOTD != "a: b" {
		t.Errorf("got %+v", l)
	}
	if len(l.Warnings) != 0 || len(l.Notes) != 1 || !strings.Contains(l.Notes[0], "EARSHOT_VOICE_RANGE") {
		t.Errorf("warnings %q, notes %q", l.Warnings, l.Notes)
	}
	if _, err := Load("", "", []string{"EARSHOT_VOICE_RANGE=far"}); err == nil || !strings.Contains(err.Error(), "EARSHOT_VOICE_RANGE") {
		t.Errorf("a bad value gives %v", err)
	}
}

func TestSecretsAreReadInheritedAndNeverPrinted(t *testing.T) {
	dir := t.TempDir()
	const word = "hunter2hunter2"
	os.WriteFile(filepath.Join(dir, "fwd"), []byte(word+"\n"), 0o644)
	f := filepath.Join(dir, FileName)
	os.WriteFile(filepath.Join(dir, "nats"), []byte(word+"\n"), 0o600)
	os.WriteFile(f, []byte("state: {url: 'nats://me:"+word+"@n1:4222, nats://"+word+"@n2', user: me, password-file: nats, token: t-"+word+"}\nforwarding: {mode: modern, secret-file: fwd}\nservers:\n  a: {address: 'x:1'}\n  b: {address: 'y:1', secret: other-"+word+"}\n"), 0o600)
	l, err := Load(f, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.State.Password != word || !strings.Contains(string(l.State.URL), "me:"+word) || !strings.Contains(l.Effective(), "@n1:4222,nats://hidden@n2") {
		t.Errorf("the state's: %s", l.Effective())
	}
	if l.Servers["a"].Secret != word || l.Servers["b"].Secret != "other-"+word {
		t.Error("secrets not inherited")
	}
	if strings.Contains(l.Effective(), word) || !strings.Contains(l.Effective(), hidden) {
		t.Errorf("printed:\n%s", l.Effective())
	}
	if len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "chmod 600") {
		t.Errorf("warnings %q", l.Warnings)
	}
	_, err = Load("", "", []string{"EARSHOT_FORWARDING={mode: modern, secrt: " + word + "}"})
	if err == nil || strings.Contains(err.Error(), word) {
		t.Errorf("error %v", err)
	}
}

func TestEffectiveLoadsAgain(t *testing.T) {
	l, err := Load("", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := filepath.Join(dir, "x.yml")
	os.WriteFile(f, []byte(l.Effective()), 0o600)
	l.Voice.Sounds = filepath.Join(dir, l.Voice.Sounds)
	again, err := Load(f, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(l.Config, again.Config) {
		t.Errorf("%+v\n%+v", l.Config, again.Config)
	}
}

// TestFullIsNamed: servers whose plugins have all players are named, and no others.
func TestFullIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"servers: {a: {address: 'h:1'}}": "",
		"bungeecord: full":               "",
		"bungeecord: full\nservers: {a: {address: 'h:1'}, b: {address: 'h:2', bungeecord: self}, c: {address: 'h:3'}}": "plugins on a, c may",
		"servers: {a: {address: 'h:1', bungeecord: full}, b: {address: 'h:2'}}":                                        "plugins on a may",
	} {
		f := filepath.Join(t.TempDir(), FileName)
		os.WriteFile(f, []byte(text), 0o600)
		l, err := Load(f, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(l.Warnings, "\n"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: warned of %q", text, got)
		}
	}
}

// TestCertificatesComeFromOnePlace: what cannot give a certificate is an error that says why.
func TestCertificatesComeFromOnePlace(t *testing.T) {
	for text, want := range map[string]string{
		"tls: {acme: {hosts: [play.example.net]}}":                           "",
		"tls: {self-signed: true}":                                           "",
		"tls: {self-signed: true, acme: {hosts: [play.example.net]}}":        "one place",
		"tls: {certificate: a.pem, key: a.key, self-signed: true}":           "one place",
		"tls: {certificate: a.pem}":                                          "both",
		"tls: {acme: {hosts: [localhost]}}":                                  "no host name",
		"tls: {acme: {hosts: ['https://play.example.net']}}":                 "no host name",
		"tls: {acme: {hosts: ['*.example.net']}}":                            "no host name",
		"tls: {acme: {hosts: [192.0.2.1]}}":                                  "no host name",
		"tls: {acme: {email: a@b.c}}":                                        "names no host",
		"tls: {acme: {hosts: [play.example.net], email: me}}":                "no address",
		"tls: {acme: {hosts: [play.example.net], directory: 'http://ca.x'}}": "https://",
	} {
		f := filepath.Join(t.TempDir(), FileName)
		os.WriteFile(f, []byte(text), 0o600)
		_, err := Load(f, "", nil)
		if got := fmt.Sprint(err); (err == nil) != (want == "") || err != nil && !strings.Contains(got, want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
