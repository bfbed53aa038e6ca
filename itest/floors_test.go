package itest

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/earshot-mc/earshot/"

// floors says on which floor each package stands. Imports go downward only;
// on one floor only as sideways allows. The reasons: a codec that cannot reach
// the network can be tested by files alone, and sound that cannot call the
// proxy cannot wait for it.
var floors = map[string]int{
	"configs": 0, "proxy/proto": 0, "proxy/field": 0, "handshake/caps": 0, "handshake/budget": 0, "handshake/offer": 0,
	"bridge/sight": 0, "bridge/world": 0, "bridge/step": 0, "bridge/rooms/state": 0, "voice/wire": 0, "voice/talk": 0, "voice/relation": 0, "voice/web": 0,

	"proxy/packet": 1, "proxy/floodgate": 1, "proxy/limit": 1, "proxy/command": 1, "handshake/token": 1, "bridge/track": 1, "bridge/perm": 1, "bridge/rooms/frame": 1, "bridge/rooms/packed": 1,
	"voice/line": 1, "voice/gain": 1, "voice/roster": 1, "voice/route": 1, "voice/opus": 1,
	"voice/group": 1, "voice/mute": 1, "voice/ogg": 1,

	"proxy/frame": 2, "proxy/listen": 2, "handshake/socket": 2, "handshake/front": 2, "voice/render": 2, "voice/store": 2, "voice/soundfile": 2,
	"voice/why": 2,

	"proxy/lite": 3, "proxy/relay": 3,
	"proxy/auth": 3, "proxy/backend": 3, "proxy/limbo": 3, "proxy/bungee": 3, "proxy/status": 3, "proxy/health": 3, "proxy/session": 3,
	"handshake/upgrade": 3, "handshake/page": 3, "handshake/cert": 3, "voice/hub": 3, "voice/speaker": 3, "voice/talker": 3, "voice/conn": 3, "voice/client": 3, "voice/transcode": 3,

	"proxy": 4, "voice": 4, "bridge/invite": 4, "bridge/admin": 4, "bridge/commands": 4,

	"bridge/network": 5,

	"cmd/earshot": 6,
}

// sideways are the imports allowed within one floor.
var sideways = map[string][]string{
	"bridge/track":  {"proxy/packet"},
	"bridge/world":  {"bridge/sight"},
	"proxy/command": {"proxy/packet", "proxy/limit"},
	"voice/route":   {"voice/gain"},
	"proxy/lite":    {"proxy/backend"},
	"proxy/session": {"proxy/auth", "proxy/backend", "proxy/status", "proxy/health", "proxy/lite", "proxy/relay"},
	"voice/talker":  {"voice/hub"},
	"voice/conn":    {"voice/hub", "voice/talker"},
}

// rooms: what a room, or one package of it, may know besides itself.
var rooms = map[string][]string{
	"proxy":     {},
	"handshake": {},
	"configs":   {},
	"voice":     {"handshake", "bridge/world"},
	"bridge":    {"proxy", "handshake"},
	"cmd":       {"proxy", "handshake", "voice", "bridge", "configs"},

	"bridge/network":  {"proxy", "handshake", "voice", "configs"},
	"bridge/commands": {"voice/talk", "voice/group", "voice/mute", "voice/relation", "voice/speaker", "voice/why"}, // records
}

// doors: the only packages that may import an outside library.
var doors = map[string][]string{
	"github.com/gobwas/ws":                {"handshake/socket", "handshake/upgrade", "voice/client"},
	"github.com/hraban/opus":              {"voice/opus"},
	"github.com/gopxl/beep/v2":            {"voice/soundfile"},
	"github.com/Tnze/go-mc":               {"proxy/packet", "proxy/auth"},
	"github.com/spf13/pflag":              {"cmd/earshot"},
	"github.com/mtibben/confusables":      {"voice/group"},
	"golang.org/x/text":                   {"voice/group"},
	"golang.org/x/term":                   {"bridge/commands"},
	"github.com/goccy/go-yaml":            {"configs"},
	"github.com/prometheus/client_golang": {"bridge/admin"},
	"github.com/nats-io":                  {"voice/store"},
	"github.com/pires/go-proxyproto":      {"proxy/listen", "proxy/backend"},
}

// never: imports that would break a promise of the package.
var never = map[string][]string{
	"voice/wire":         {"net", "time"},
	"bridge/rooms/state": {"net", "time"}, "bridge/rooms/frame": {"net", "time"}, "bridge/rooms/packed": {"net", "time"},
	"bridge/step":    {"net"},
	"voice/talk":     {"net", "time", module + "bridge/world"},
	"voice/line":     {"net", "time", module + "bridge/world"},
	"voice/relation": {"net", "time", module + "bridge/world", module + "voice/wire"},
	"proxy/proto":    {"net"},
	"handshake/caps": {"net/http/httptest"},
	"proxy/frame":    {module + "proxy/proto", module + "proxy/packet"},
	"proxy/relay":    {"net", module + "proxy/backend"},                 // it moves frames, between whomever
	"proxy/lite":     {module + "proxy/frame", module + "proxy/packet"}, // what it passes on is not looked at
	"voice/route":    {module + "voice/hub", module + "voice/conn", module + "voice/wire", module + "voice/line"},
	"voice/speaker":  {module + "voice/opus", module + "voice/soundfile", module + "voice/line"}, // the first two are cgo, which the released binary does without
	// What voice is about goes by values; text lines are one of several ways to show them.
	"voice/gain":   {module + "voice/line"},
	"voice/group":  {module + "voice/line"},
	"voice/mute":   {module + "voice/line"},
	"voice/roster": {module + "voice/line"},
	"voice/talker": {"net", module + "handshake/socket", module + "handshake/caps", module + "voice/line", module + "voice/render", module + "voice/wire"},
	"voice/hub":    {module + "voice/line", module + "voice/render", module + "voice/wire", module + "handshake/caps"},
}

func TestFloors(t *testing.T) {
	type pkg struct {
		ImportPath string
		Imports    []string
	}
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(name, "itest") || strings.HasSuffix(name, "/gen") {
			continue
		}
		floor, known := floors[name]
		if !known {
			t.Errorf("%s stands on no floor: enter it in floors", name)
			continue
		}
		seen[name] = true
		room, _, _ := strings.Cut(name, "/")
		for _, imp := range p.Imports {
			if slices.Contains(never[name], imp) {
				t.Errorf("%s must never import %s", name, imp)
			}
			for lib, at := range doors {
				if (imp == lib || strings.HasPrefix(imp, lib+"/")) && !slices.Contains(at, name) {
					t.Errorf("%s imports %s, whose doors are %v", name, imp, at)
				}
			}
			below, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			other, _, _ := strings.Cut(below, "/")
			if known := slices.Concat(rooms[room], rooms[name]); other != room && !slices.Contains(known, other) && !slices.Contains(known, below) {
				t.Errorf("%s imports %s: the room %s does not know %s", name, below, room, other)
			}
			if f := floors[below]; f > floor || f == floor && !slices.Contains(sideways[name], below) {
				t.Errorf("%s (floor %d) imports %s (floor %d)", name, floor, below, f)
			}
		}
	}
	for name := range floors {
		if !seen[name] {
			t.Errorf("%s is gone: take it out of floors, or bring it back", name)
		}
	}
}

// TestLayoutsGoByTraits: which layout a version has is asked by trait, in one way everywhere, so that a file can say it of a
// version that the program does not know. Only proxy/proto compares numbers.
func TestLayoutsGoByTraits(t *testing.T) {
	byNumber := regexp.MustCompile(`[pP]rotocol(\(\))? *(<|>|<=|>=|==|!=) *(proto\.V|[1-9][0-9]{1,2}\b)`)
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "itest" || d.Name() == ".git" || path == "../proxy/proto"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if byNumber.MatchString(line) {
				t.Errorf("%s:%d goes by number: %s", path, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files looked at, %v", files, err)
	}
}
