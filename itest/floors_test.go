package itest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/earshot-mc/earshot/"

// floors says on which floor each package stands. Imports go downward only; on one floor only as sideways allows. The
// reasons: a codec that cannot reach the network can be tested by files alone, and sound that cannot call the proxy
// cannot wait for it.
var floors = map[string]int{
	"configs": 0, "proxy/proto": 0, "proxy/field": 0, "handshake/caps": 0, "handshake/budget": 0, "handshake/offer": 0,
	"bridge/sight": 0, "bridge/world": 0, "bridge/journal": 0, "bridge/step": 0, "bridge/rooms/state": 0, "bridge/walk/wire": 0, "voice/wire": 0, "voice/talk": 0, "voice/relation": 0, "voice/web": 0,

	"proxy/packet": 1, "proxy/floodgate": 1, "proxy/limit": 1, "proxy/command": 1, "handshake/token": 1, "bridge/track": 1, "bridge/perm": 1, "bridge/rooms/frame": 1, "bridge/rooms/packed": 1,
	"voice/line": 1, "voice/gain": 1, "voice/roster": 1, "voice/route": 1, "voice/opus": 1,
	"voice/group": 1, "voice/mute": 1, "voice/ogg": 1,

	"proxy/frame": 2, "proxy/listen": 2, "handshake/socket": 2, "handshake/front": 2, "voice/render": 2, "voice/store": 2, "voice/soundfile": 2, "bridge/walk": 2,
	"voice/why": 2, "bridge/rooms": 2,

	"proxy/lite": 3, "proxy/relay": 3,
	"proxy/auth": 3, "proxy/backend": 3, "proxy/limbo": 3, "proxy/bungee": 3, "proxy/status": 3, "proxy/health": 3, "proxy/session": 3,
	"handshake/upgrade": 3, "bridge/walk/serve": 3, "handshake/page": 3, "handshake/cert": 3, "voice/hub": 3, "voice/speaker": 3, "voice/talker": 3, "voice/conn": 3, "voice/client": 3, "voice/transcode": 3, "bridge/rooms/client": 3, "bridge/rooms/relay": 3,

	"proxy": 4, "voice": 4, "bridge/invite": 4, "bridge/admin": 4, "bridge/rooms/serve": 4, "bridge/rcon": 4, "bridge/commands": 4,

	"bridge/network": 5,

	"cmd/earshot": 6,
}

// sideways are the imports allowed within one floor.
var sideways = map[string][]string{
	"bridge/track":      {"proxy/packet"},
	"bridge/world":      {"bridge/sight"},
	"proxy/command":     {"proxy/packet", "proxy/limit"},
	"voice/route":       {"voice/gain"},
	"proxy/lite":        {"proxy/backend"},
	"proxy/session":     {"proxy/auth", "proxy/backend", "proxy/status", "proxy/health", "proxy/lite", "proxy/relay"},
	"voice/talker":      {"voice/hub"},
	"bridge/walk/serve": {"handshake/upgrade"},
	"voice/conn":        {"voice/hub", "voice/talker"},
}

// rooms says what a room, or one package of it, may know outside itself.
var rooms = map[string][]string{
	"proxy":     {},
	"handshake": {},
	"configs":   {},
	"voice":     {"handshake", "bridge/world"},
	"bridge":    {"proxy", "handshake"},
	"cmd":       {"voice", "bridge", "configs"},

	"bridge/network":  {"proxy", "handshake", "voice", "configs"},
	"bridge/commands": {"voice/talk", "voice/group", "voice/mute", "voice/relation", "voice/speaker", "voice/why"},
}

// doors: the only packages that may import an outside library. Where there is none, only tests may (see testsMay).
var doors = map[string][]string{
	"github.com/gobwas/ws":                {"handshake/socket", "handshake/upgrade", "voice/client", "bridge/rooms/client"},
	"github.com/hraban/opus":              {"voice/opus"},
	"github.com/gopxl/beep/v2":            {"voice/soundfile"},
	"github.com/Tnze/go-mc/chat":          {"bridge/commands"},
	"github.com/Tnze/go-mc/nbt":           {},
	"github.com/Tnze/go-mc/net":           {"bridge/rcon"},
	"github.com/Tnze/go-mc/offline":       {"proxy/auth"},
	"github.com/spf13/pflag":              {"cmd/earshot"},
	"github.com/mtibben/confusables":      {"voice/group"},
	"golang.org/x/crypto":                 {"handshake/cert"},
	"golang.org/x/text":                   {"voice/group"},
	"golang.org/x/term":                   {"bridge/commands"},
	"github.com/goccy/go-yaml":            {"configs"},
	"github.com/klauspost/compress":       {"proxy/frame"},
	"github.com/letsencrypt":              {},
	"github.com/prometheus/client_golang": {"bridge/admin"},
	"github.com/nats-io":                  {"voice/store"},
	"github.com/pires/go-proxyproto":      {"proxy/listen"},
}

// never: what would break a promise of the package, wherever below it is imported. Libraries are followed, but not the
// standard library, nor uuid, which has the network for a kind of UUID that nobody makes here.
var never = map[string][]string{
	"voice/wire": {"net", "time"}, "bridge/walk/wire": {"net", "time"},
	"bridge/rooms/state": {"net", "time"}, "bridge/rooms/frame": {"net", "time"}, "bridge/rooms/packed": {"net", "time"},
	"bridge/rooms":   {"net", "bridge/world"},
	"bridge/step":    {"net"},
	"voice/talk":     {"net", "time"},
	"voice/line":     {"net", "time", "bridge/world"},
	"voice/relation": {"net", "time"},
	"proxy/proto":    {"net"},
	"proxy/frame":    {"proxy/proto", "proxy/packet"},
	"voice/route":    {"voice/wire"},
	"voice/speaker":  {"voice/opus", "voice/soundfile", "voice/line"}, // the first two are cgo, which no release has
	// What voice is about goes by values; text lines are one of several ways to show them.
	"voice/talker": {"handshake/socket", "handshake/caps", "voice/line", "voice/render", "voice/wire"},
	"voice/hub":    {"voice/line", "voice/render", "voice/wire", "handshake/caps"},
}

// neverItself: the same of the package's own imports alone; what it calls may.
var neverItself = map[string][]string{
	"proxy/relay":  {"net"},                         // it moves frames, between whomever
	"proxy/lite":   {"proxy/frame", "proxy/packet"}, // what it passes on is not looked at
	"voice/talker": {"net"},
}

// testsMay lists imports of a package's tests, in addition to the package's own, this module's testkit and goleak. Else
// they go by the floors as well, so that a package can be tested without those built on it.
var testsMay = map[string][]string{
	"proxy":              {"bridge/commands"}, // the texts that sessions name by key
	"proxy/session":      {"bridge/commands"},
	"proxy/packet":       {"github.com/Tnze/go-mc/nbt"},
	"proxy/backend":      {"github.com/pires/go-proxyproto"},
	"handshake/cert":     {"itest/peer"},                           // an authority to be given certificates by
	"voice":              {"bridge/sight", "github.com/gobwas/ws"}, // what no proper client sends
	"bridge/rooms/serve": {"github.com/gobwas/ws"},                 // frames by hand
	"voice/group":        {"voice/line"},                           // a page as a client reads it
	"voice/speaker":      {"bridge/sight", "voice"},                // an example from outside
	"voice/route":        {"bridge/sight"},
	"voice/conn":         {"bridge/sight"},
	"voice/hub":          {"bridge/sight"},
	"voice/talker":       {"bridge/sight"},
	"bridge/track":       {"bridge/commands", "voice"}, // from the wire to the roster
	"bridge/commands":    {"itest/peer", "voice/route"},
	"bridge/rcon":        {"itest/peer"},
	"bridge/walk/serve":  {"github.com/gobwas/ws"}, // a client that nobody here wrote
}

// pkg is a package of the program as `go list` has it.
type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	Doc                                string
}

// house reads the packages of the program by their names in floors, and the imports of the libraries that they use. cgo
// is on, whether or not there is a compiler, so that no import is left out.
func house(t testing.TB) (ours, libs map[string]*pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,TestImports,XTestImports,Doc", "./...")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=-tags=nolibopusfile")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	ours, libs = map[string]*pkg{}, map[string]*pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(pkg)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name, own := strings.CutPrefix(p.ImportPath, module)
		switch {
		case !own:
			libs[p.ImportPath] = p
		case !strings.HasPrefix(name, "itest") && !strings.HasSuffix(name, "/gen"):
			ours[name] = p
		}
	}
	return ours, libs
}

// plan is the tables above, and what of them was needed.
type plan struct {
	ours, libs map[string]*pkg
	used       map[string]bool // rows, as "sideways a b"
	faults     []string
}

func (p *plan) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// inside tells whether an import is a library or one of its packages.
func inside(imp, lib string) bool { return imp == lib || strings.HasPrefix(imp, lib+"/") }

// allows says why a package may not import something, "" when it may. What it takes for that is noted as used, where
// use is set.
func (p *plan) allows(name, imp string, use bool) string {
	note := func(table, row, entry string) {
		if use {
			p.used[table+" "+row+" "+entry] = true
		}
	}
	for lib, at := range doors {
		if inside(imp, lib) {
			if !slices.Contains(at, name) {
				return fmt.Sprintf("the doors of %s are %v", lib, at)
			}
			note("doors", lib, name)
		}
	}
	below, ours := strings.CutPrefix(imp, module)
	if !ours || below == name {
		return ""
	}
	room, _, _ := strings.Cut(name, "/")
	if other, _, _ := strings.Cut(below, "/"); other != room {
		known := false
		for _, row := range []string{room, name} {
			for _, what := range rooms[row] {
				if what == other || what == below {
					known = true
					note("rooms", row, what)
				}
			}
		}
		if !known {
			return fmt.Sprintf("the room %s does not know %s", room, other)
		}
	}
	f, known := floors[below]
	switch floor := floors[name]; {
	case !known:
		return "it stands on no floor"
	case f > floor, f == floor && !slices.Contains(sideways[name], below):
		return fmt.Sprintf("it stands on floor %d, which is not below %d", f, floor)
	case f == floor:
		note("sideways", name, below)
	}
	return ""
}

// reaches returns the way from a package to an import, by what it imports itself; nil if there is none.
func (p *plan) reaches(name, to string) []string {
	from := map[string]string{}
	for next := []string{module + name}; len(next) > 0; next = next[1:] {
		at := p.libs[next[0]]
		if below, ours := strings.CutPrefix(next[0], module); ours {
			at = p.ours[below]
		}
		if at == nil || inside(at.ImportPath, "github.com/google/uuid") || !strings.Contains(at.ImportPath, ".") {
			continue
		}
		for _, imp := range at.Imports {
			if from[imp] != "" || imp == module+name {
				continue
			}
			from[imp] = at.ImportPath
			if imp == to {
				way := []string{imp}
				for way[0] != module+name {
					way = slices.Insert(way, 0, from[way[0]])
				}
				return way
			}
			next = append(next, imp)
		}
	}
	return nil
}

// path returns an entry of never as it is imported.
func path(entry string) string {
	if _, ours := floors[entry]; ours {
		return module + entry
	}
	return entry
}

// check holds the packages against the tables, and the tables against the packages.
func (p *plan) check() {
	imported := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p.ours)) {
		if _, known := floors[name]; !known {
			p.fault("%s stands on no floor: enter it in floors, and in the map of CONTRIBUTING.md", name)
			continue
		}
		at := p.ours[name]
		for _, imp := range at.Imports {
			imported[imp] = true
			if why := p.allows(name, imp, true); why != "" {
				p.fault("%s imports %s: %s", name, imp, why)
			}
			if slices.ContainsFunc(neverItself[name], func(e string) bool { return path(e) == imp }) {
				p.fault("%s must never import %s itself", name, imp)
			}
		}
		for _, entry := range never[name] {
			if way := p.reaches(name, path(entry)); way != nil {
				p.fault("%s must never import %s: %s", name, entry, strings.Join(way, " → "))
			}
		}
		for _, imp := range slices.Concat(at.TestImports, at.XTestImports) {
			below := strings.TrimPrefix(imp, module)
			if inside(below, "itest/testkit") || p.allows(name, imp, false) == "" {
				continue
			}
			may := false
			for _, e := range testsMay[name] {
				if inside(below, e) {
					may, p.used["testsMay "+name+" "+e] = true, true
				}
			}
			if !may {
				p.fault("a test of %s imports %s: %s (testsMay)", name, imp, p.allows(name, imp, false))
			}
		}
	}
	for name := range floors {
		if p.ours[name] == nil {
			p.fault("%s is gone: take it out of floors, or bring it back", name)
		}
	}
	for what, table := range map[string]map[string][]string{"sideways": sideways, "rooms": rooms, "doors": doors, "testsMay": testsMay} {
		for row, entries := range table {
			for _, e := range entries {
				if !p.used[what+" "+row+" "+e] {
					p.fault("%s: nothing of %s needs %s: take it out", what, row, e)
				}
			}
		}
	}
	// A ban means something only where nothing else forbids it already, and of what there is.
	for what, table := range map[string]map[string][]string{"never": never, "neverItself": neverItself} {
		for row, entries := range table {
			for _, e := range entries {
				switch imp := path(e); {
				case p.ours[row] == nil:
					p.fault("%s: there is no %s", what, row)
				case p.allows(row, imp, false) != "":
					p.fault("%s: %s could not import %s in any case: take it out", what, row, e)
				case imp == e && !imported[e]:
					p.fault("%s: nothing imports %s, which %s must not: take it out", what, e, row)
				}
			}
		}
	}
}

func TestFloors(t *testing.T) {
	p := &plan{used: map[string]bool{}}
	p.ours, p.libs = house(t)
	p.check()
	slices.Sort(p.faults)
	for _, f := range p.faults {
		t.Error(f)
	}
}

// TestFloorsSeesFaults: what TestFloors would not let pass, each made by one import more or less.
func TestFloorsSeesFaults(t *testing.T) {
	ours, libs := house(t)
	for _, c := range []struct {
		what, name, from, to, want string
		test                       bool
	}{
		{"an import upward", "voice/gain", "", module + "voice/hub", "voice/gain imports " + module + "voice/hub: it stands on floor 3", false},
		{"another room", "voice/hub", "", module + "proxy/packet", "the room voice does not know proxy", false},
		{"a library by another door", "proxy/status", "", "github.com/gobwas/ws", "the doors of github.com/gobwas/ws", false},
		{"a broken promise", "voice/wire", "", "time", "voice/wire must never import time: ", false},
		{"a promise broken below", "voice/talk", "", "net", "voice/line must never import net: " + module + "voice/line → " + module + "voice/talk → net", false},
		{"a door that is shut", "bridge/commands", "golang.org/x/term", "", "doors: nothing of golang.org/x/term needs bridge/commands", false},
		{"a way that is gone", "voice/route", module + "voice/gain", "", "sideways: nothing of voice/route needs voice/gain", false},
		{"a test upward", "voice/gain", "", module + "voice/hub", "a test of voice/gain imports " + module + "voice/hub", true},
		{"a test that has changed", "proxy/packet", "github.com/Tnze/go-mc/nbt", "", "testsMay: nothing of proxy/packet needs github.com/Tnze/go-mc/nbt", true},
	} {
		p := &plan{ours: maps.Clone(ours), libs: libs, used: map[string]bool{}}
		at := *p.ours[c.name]
		for _, list := range []*[]string{&at.Imports, &at.TestImports, &at.XTestImports} {
			*list = slices.DeleteFunc(slices.Clone(*list), func(imp string) bool { return imp == c.from })
		}
		switch {
		case c.to == "":
		case c.test:
			at.TestImports = append(at.TestImports, c.to)
		default:
			at.Imports = append(at.Imports, c.to)
		}
		p.ours[c.name] = &at
		p.check()
		if !slices.ContainsFunc(p.faults, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("%s: %q, want %q", c.what, p.faults, c.want)
		}
	}
}

// TestLayoutsGoByTraits: which layout a version has is asked by trait, in one way everywhere, so that a file can say it
// of a version that the program does not know. Only proxy/proto compares numbers.
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

// TestFloorsAreMapped: the map in CONTRIBUTING.md has each package once, on its floor, by the first words of its own
// comment, and nothing else.
func TestFloorsAreMapped(t *testing.T) {
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	ours, _ := house(t)
	for _, f := range mapFaults(string(text), ours) {
		t.Error(f)
	}
	for what, c := range map[string]struct{ from, to, want string }{
		"a package left out":  {"\n   voice/gain ", "\n   voice/loud ", "voice/gain is not on the map"},
		"one that is gone":    {"\n   voice/gain ", "\n   voice/loud ", "voice/loud is no package"},
		"another floor":       {"\n3  ", "\n9  ", "stands on floor 3, not 9"},
		"words of nobody":     {"is the only writer of voice state", "is the writer of all state", "voice/hub does not begin like that"},
		"the end of a clause": {"is the only writer of voice state", "is the only writer of voice", "voice/hub does not begin like that"},
	} {
		if faults := mapFaults(strings.Replace(string(text), c.from, c.to, 1), ours); !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("%s: %q, want %q", what, faults, c.want)
		}
	}
}

// mapFaults says what is wrong with the map: lines of a floor's number, where a floor begins, a package, and the words
// of its comment after "Package x", to the end of a clause.
func mapFaults(doc string, ours map[string]*pkg) (faults []string) {
	_, drawn, _ := strings.Cut(doc, "## The packages\n")
	_, drawn, _ = strings.Cut(drawn, "```\n")
	drawn, _, _ = strings.Cut(drawn, "```\n")
	floor, there := -1, map[string]bool{}
	for line := range strings.Lines(drawn) {
		m := mapLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			faults = append(faults, fmt.Sprintf("this is no line of the map: %q", line))
			continue
		}
		if m[1] != " " {
			floor, _ = strconv.Atoi(m[1])
		}
		name, words := m[2], m[3]
		p := ours[name]
		if p == nil || there[name] {
			faults = append(faults, name+" is no package, or is on the map twice")
			continue
		}
		there[name] = true
		if floors[name] != floor {
			faults = append(faults, fmt.Sprintf("%s stands on floor %d, not %d", name, floors[name], floor))
		}
		if rest, ok := strings.CutPrefix(said(p), words); !ok || rest != "" && !strings.ContainsRune(".,:;", rune(rest[0])) {
			faults = append(faults, fmt.Sprintf("the comment of %s does not begin like that: %q", name, said(p)))
		}
	}
	for name, p := range ours {
		if !there[name] {
			faults = append(faults, fmt.Sprintf("%s is not on the map in CONTRIBUTING.md. On floor %d write: %-20s %s", name, floors[name], name, said(p)))
		}
	}
	return faults
}

var mapLine = regexp.MustCompile(`^(\d| )  (\S+) +(.+)$`)

// said returns what a package's comment says of it.
func said(p *pkg) string {
	return strings.TrimPrefix(strings.TrimPrefix(p.Doc, "Package "+p.ImportPath[strings.LastIndex(p.ImportPath, "/")+1:]+" "), "Earshot ")
}
