package configs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	ownForm = `{
	"protocol": 900,
	"names": ["27.0"],
	"like": 777,
	"packets": {"play/clientbound": {"keep_alive": 46, "post_effects": -1}},
	"traits": {"CompactGameMode": false},
	"parsers": ["brigadier:bool"],
	"player-type": 160
}`
	reportForm = `{"play": {"clientbound": {"minecraft:keep_alive": {"protocol_id": 46}}, "serverbound": {}}, "status": {}}`
)

// TestVersionFiles: both forms of ids, a report as it is, and the number from the file's name.
func TestVersionFiles(t *testing.T) {
	v, err := ParseVersion("versions/900.json", []byte(ownForm))
	if err != nil {
		t.Fatal(err)
	}
	if v.Protocol != 900 || !slices.Equal(v.Names, []string{"27.0"}) || v.Like != 777 || v.PlayerType != 160 || v.Traits["CompactGameMode"] ||
		len(v.Traits) != 1 || !slices.Equal(v.Parsers, []string{"brigadier:bool"}) || v.Report != nil ||
		v.IDs["play/clientbound"]["keep_alive"] != 46 || v.IDs["play/clientbound"]["post_effects"] != -1 {
		t.Errorf("%+v", v)
	}
	for name, text := range map[string]string{
		"901-packets.json": reportForm, "901.json": `{"packets": ` + reportForm + `}`, "report.json": `{"protocol": 901, "packets": ` + reportForm + `}`,
	} {
		v, err := ParseVersion(name, []byte(text))
		if err != nil || v.Protocol != 901 || v.IDs != nil || v.Report["play"]["clientbound"]["minecraft:keep_alive"] != 46 {
			t.Errorf("%s: %+v %v", name, v, err)
		}
	}
}

// TestBadVersionFiles: each error is one line that names the file and helps.
func TestBadVersionFiles(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"900.json", "", "900.json: there is nothing in it"},
		{"900.json", "{}", "900.json: there is nothing in it"},
		{"900.json", "[1]", "900.json"},
		{"900.json", `{"traits": {"A": true}`, "900.json"},
		{"900.json", "{\n\"names\": [\"a\"],\n\"traist\": {}}", `900.json:3: unknown key "traist": did you mean "traits"?`},
		{"900.json", "{\n\"like\": 777,\n\"like\": 776}", "900.json:3: "},
		{"900.json", `{"traits": {"A": 1}}`, `900.json:1: traits.A: "1" is not a yes/no value`},
		{"900.json", `{"traits": {"A": true, "A": false}}`, "900.json:1: "},
		{"900.json", `{"protocol": 901, "like": 777}`, "900.json:1: protocol: the file is called 900.json and says 901"},
		{"new.json", `{"like": 777}`, `new.json: it does not say which protocol: add "protocol": 900, or call it 900.json`},
		{"900.json", `{"like": -1}`, "900.json: numbers are from 1"},
		{"new.json", `{"protocol": 99999999999}`, "new.json: numbers are from 1"},
		{"900.json", `{"packets": {"play/clientbound": {"keep_alive": "x"}}}`, `packets."play/clientbound"."keep_alive": is x, and should be a packet's id`},
		{"900.json", `{"packets": {"play/clientbound": {"keep_alive": 1.5}}}`, "is 1.5, and should be"},
		{"900.json", `{"packets": {"play/clientbound": {"keep_alive": 1, "keep_alive": 2}}}`, "900.json:1: "},
		{"900.json", `{"play": {"clientbound": {"minecraft:a": 1}}}`, `minecraft:a is not {"protocol_id": 44}`},
		{"900.json", `{"play": {"clientbound": {"minecraft:a": {"id": 1}}}}`, "minecraft:a: protocol_id is <nil>"},
		{"900.json", `{"play": {"clientbound": [1]}}`, "is no table of packets"},
		{"900.json", `{"play": 5}`, "900.json:1: "},
	} {
		v, err := ParseVersion(c.name, []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), c.name) {
			t.Errorf("%s:\n got %v %v\nwant %s", c.text, v, err, c.want)
		}
	}
}

// TestVersionsFolder: the folder is in the data folder, wherever the configuration is, and its files are watched.
func TestVersionsFolder(t *testing.T) {
	data, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "e.yml")
	os.WriteFile(elsewhere, nil, 0o600)
	folder := filepath.Join(data, VersionsName)
	l, err := Load(elsewhere, data, nil)
	if err != nil || l.Versions != nil || !slices.Contains(l.Files, folder) {
		t.Fatalf("%v %v", l.Files, err)
	}
	os.Mkdir(folder, 0o700)
	write := func(name, text string) string {
		f := filepath.Join(folder, name)
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := write("900.json", ownForm)
	write("800.json", `{"like": 777}`)
	write("readme.txt", "{{")
	write(".900.json", "{{")
	if l, err = Load(elsewhere, data, nil); err != nil || len(l.Versions) != 2 || l.Versions[0].Protocol != 800 || !slices.Contains(l.Files, f) {
		t.Fatalf("%v %v %v", l.Versions, l.Files, err)
	}
	write("other.json", `{"protocol": 900, "like": 777}`)
	if _, err := Load("", data, nil); err == nil || !strings.Contains(err.Error(), "protocol 900 is in "+f+" as well") {
		t.Errorf("two files of one version: %v", err)
	}
	write("other.json", strings.Repeat(" ", maxVersionFile+1))
	if _, err := Load("", data, nil); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a file that is too large: %v", err)
	}
}

func FuzzVersionFile(f *testing.F) {
	for _, s := range []string{ownForm, reportForm, `{"packets": ` + reportForm + `}`, "{}", `{"like": 777}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := ParseVersion("900.json", text)
		if err == nil && (v.Protocol != 900 || v.IDs != nil && v.Report != nil) {
			t.Errorf("%+v", v)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("an error of several lines: %q", err)
		}
	})
}
