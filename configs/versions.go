package configs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// VersionsName is a folder in the data folder. Its files add versions of the game, or mend some.
const VersionsName = "versions"

// Version is one of these files: a version by its protocol number. Left-out parts are as in the version it is like.
type Version struct {
	File string `yaml:"-"`

	Protocol int      `yaml:"protocol"` // 0: by the file's name
	Names    []string `yaml:"names"`
	Like     int      `yaml:"like"` // 0: its own number, or the newest one
	// Packets has the ids, in our form ("play/clientbound" → "keep_alive" → 44) or in that of the packets.json that the
	// game's own data generator writes ("play" → "clientbound" → "minecraft:keep_alive" → "protocol_id": 44).
	Packets    map[string]map[string]any `yaml:"packets"`
	Traits     map[string]bool           `yaml:"traits"`
	Parsers    []string                  `yaml:"parsers"`
	PlayerType int                       `yaml:"player-type"`

	IDs    map[string]map[string]int32            `yaml:"-"` // Packets in our form; nil: the other one
	Report map[string]map[string]map[string]int32 `yaml:"-"`
}

// LoadVersions reads the folder of versions alone.
func LoadVersions(dir string) (*Loaded, error) {
	l, p := &Loaded{}, &problems{src: &source{}}
	l.versions(p, dir)
	return l, Join(p.all...)
}

// maxVersionFile bounds such a file, in bytes. A report of the game has some 30 kB.
const maxVersionFile = 1 << 20

// versions reads the folder. It ignores files that do not end in .json.
func (l *Loaded) versions(p *problems, dir string) {
	folder := filepath.Join(dir, VersionsName)
	l.Files = append(l.Files, folder)
	files, err := os.ReadDir(folder)
	if os.IsNotExist(err) {
		return
	} else if err != nil {
		p.add(fmt.Errorf("%s: cannot read the folder: %w", VersionsName, err), "")
		return
	}
	by := map[int]string{}
	for _, f := range files {
		if filepath.Ext(f.Name()) != ".json" || strings.HasPrefix(f.Name(), ".") { // an editor's copies
			continue
		}
		name := filepath.Join(folder, f.Name())
		l.Files = append(l.Files, name)
		text, err := readBounded(name)
		if err != nil {
			p.add(fmt.Errorf("cannot read the version: %w", err), "")
			continue
		}
		if len(text) == 0 {
			continue // it is just being written, as by earshot versions 777 > versions/900.json
		}
		v, err := ParseVersion(name, text)
		if err != nil {
			p.add(err, "")
			continue
		}
		if other, twice := by[v.Protocol]; twice {
			p.add(fmt.Errorf("%s: protocol %d is in %s as well: keep one of them", name, v.Protocol, other), "")
			continue
		}
		by[v.Protocol] = name
		l.Versions = append(l.Versions, v)
	}
	slices.SortFunc(l.Versions, func(a, b *Version) int { return cmp.Compare(a.Protocol, b.Protocol) })
}

func readBounded(name string) ([]byte, error) {
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if info.Size() > maxVersionFile {
		return nil, fmt.Errorf("%s: %d bytes, at most %d are read", name, info.Size(), maxVersionFile)
	}
	return os.ReadFile(name)
}

// ParseVersion reads the text of a file. name, 900.json or 900-whatever.json, is for errors and gives the number where
// the text has none. The text may be a packets.json of the game as it is.
func ParseVersion(name string, text []byte) (*Version, error) {
	src, v := &source{name: name}, &Version{File: name}
	var err error
	if src.tree, err = parser.ParseBytes(text, 0); err != nil {
		return nil, src.explain(err)
	}
	var any map[string]any
	if err := yaml.Unmarshal(text, &any); err != nil {
		return nil, src.explain(err)
	}
	if len(any) == 0 {
		return nil, fmt.Errorf("%s: there is nothing in it: it needs packets, or traits", name)
	}
	if isReport(slices.Collect(maps.Keys(any))) {
		if err := yaml.Unmarshal(text, &v.Packets); err != nil {
			return nil, src.explain(err)
		}
	} else if err := yaml.UnmarshalWithOptions(text, v, yaml.Strict()); err != nil {
		var unknown *yaml.UnknownFieldError
		if !errors.As(err, &unknown) {
			return nil, src.explain(err)
		}
		hint := "remove it"
		if near := nearest(unknown.Token.Value, keys(reflect.TypeFor[Version]())); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, fmt.Errorf("%sunknown key %q: %s", src.at(unknown.Token), unknown.Token.Value, hint)
	}
	digits := filepath.Base(name)
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = digits[:i]
	}
	called, _ := strconv.Atoi(digits)
	switch {
	case v.Protocol == 0 && called == 0:
		return nil, fmt.Errorf(`%s: it does not say which protocol: add "protocol": 900, or call it 900.json`, name)
	case v.Protocol == 0:
		v.Protocol = called
	case called != 0 && called != v.Protocol:
		return nil, src.bad("protocol", "the file is called %s and says %d", filepath.Base(name), v.Protocol)
	}
	if v.Protocol < 1 || v.Protocol > math.MaxInt32 || v.Like < 0 || v.Like > math.MaxInt32 || v.PlayerType < 0 || v.PlayerType > math.MaxInt32 {
		return nil, fmt.Errorf("%s: numbers are from 1 to %d", name, math.MaxInt32)
	}
	return v, v.packets(src)
}

// isReport tells a packets.json of the game, by its keys: the states.
func isReport(keys []string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool {
		return !slices.Contains([]string{"handshake", "status", "login", "configuration", "play"}, k)
	})
}

// packets makes IDs or Report of Packets.
func (v *Version) packets(src *source) error {
	report := isReport(slices.Collect(maps.Keys(v.Packets)))
	for _, outer := range slices.Sorted(maps.Keys(v.Packets)) {
		for _, inner := range slices.Sorted(maps.Keys(v.Packets[outer])) {
			what := v.Packets[outer][inner]
			where := fmt.Sprintf(`packets."%s"."%s"`, outer, inner)
			if !report {
				id, err := packetID(what)
				if err != nil {
					return src.bad(where, "%w", err)
				}
				put(&v.IDs, outer, inner, id)
				continue
			}
			names, ok := what.(map[string]any)
			if !ok {
				return src.bad(where, `is no table of packets: {"minecraft:keep_alive": {"protocol_id": 44}}`)
			}
			for _, name := range slices.Sorted(maps.Keys(names)) {
				entry, ok := names[name].(map[string]any)
				if !ok || len(entry) != 1 {
					return src.bad(where, `%s is not {"protocol_id": 44}`, name)
				}
				id, err := packetID(entry["protocol_id"])
				if err != nil {
					return src.bad(where, "%s: protocol_id %w", name, err)
				}
				if v.Report == nil {
					v.Report = map[string]map[string]map[string]int32{}
				}
				states := v.Report[outer]
				put(&states, inner, name, id)
				v.Report[outer] = states
			}
		}
	}
	return nil
}

func put(m *map[string]map[string]int32, outer, inner string, id int32) {
	if *m == nil {
		*m = map[string]map[string]int32{}
	}
	if (*m)[outer] == nil {
		(*m)[outer] = map[string]int32{}
	}
	(*m)[outer][inner] = id
}

func packetID(x any) (int32, error) {
	switch n := x.(type) {
	case uint64:
		if n <= math.MaxInt32 {
			return int32(n), nil
		}
	case int64:
		if n >= -1 && n <= math.MaxInt32 {
			return int32(n), nil
		}
	}
	return 0, fmt.Errorf("is %v, and should be a packet's id, 0 to 255, or -1 for none", x)
}
