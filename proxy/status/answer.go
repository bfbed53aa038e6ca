package status

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/packet"
)

// Fields are parts of a status.
type Fields uint8

// The fields that can be taken from a server. Players are the numbers, Sample the names. Mods are the additions of mod
// loaders, and everything else that is none of the others.
const (
	Players Fields = 1 << iota
	Sample
	Description
	Favicon
	Version
	Mods
	AllFields Fields = 1<<iota - 1
)

var fieldNames = map[string]Fields{
	"players": Players, "sample": Sample, "description": Description, "favicon": Favicon, "version": Version, "mods": Mods,
	"all": AllFields,
}

// ParseFields reads names of fields. "all" is all of them.
func ParseFields(names []string) (f Fields, err error) {
	for _, name := range names {
		n, ok := fieldNames[name]
		if !ok {
			return 0, fmt.Errorf("%q is no part of a status; choose of %s", name, strings.Join(slices.Sorted(maps.Keys(fieldNames)), ", "))
		}
		f |= n
	}
	return f, nil
}

// Answer is the status of a server behind the proxy. It never changes.
type Answer struct {
	version, sample, description, favicon []byte // JSON; nil: it does not say
	rest                                  []byte // more JSON, each part with a comma in front
	counted                               bool   // it has the number of players
	online, most                          int
	motd, bare                            string // the description as clients before 1.7 can show it
	units                                 int    // of the whole, as the server sent it
	size                                  int    // bytes it holds, about
}

// maxNumber is more players than any client could show.
const maxNumber = 1 << 31

var errNoAnswer = errors.New("it is no JSON object")

// ParseAnswer reads the JSON of a status. Parts that a client could not read either are an error; missing ones are not.
func ParseAnswer(status []byte) (*Answer, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(status, &parts); err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	if parts == nil {
		return nil, fmt.Errorf("status: %w", errNoAnswer)
	}
	a := &Answer{units: units(status), size: len(status)}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		raw := compact(parts[name])
		if string(raw) == "null" {
			continue
		}
		switch name {
		case "version":
			var v map[string]json.RawMessage // a struct would take names in capitals, too
			var named *string
			var protocol *int32
			if json.Unmarshal(raw, &v) == nil && json.Unmarshal(v["name"], &named) == nil && json.Unmarshal(v["protocol"], &protocol) == nil &&
				named != nil && protocol != nil {
				a.version = raw
			}
		case "description":
			if !isText(raw, 0) {
				continue
			}
			t := packet.JSONText(raw)
			a.description, a.motd, a.bare = raw, oneLine(t.Legacy()), oneLine(t.String())
		case "favicon":
			if bytes.HasPrefix(raw, []byte(`"data:image/png;base64,`)) {
				a.favicon = raw
			}
		case "players":
			var p struct {
				Max, Online *float64
				Sample      json.RawMessage
			}
			if json.Unmarshal(raw, &p) != nil {
				continue
			}
			if p.Online != nil && p.Max != nil && *p.Online == *p.Online && max(*p.Online, -*p.Online, *p.Max, -*p.Max) < maxNumber {
				a.counted, a.online, a.most = true, int(*p.Online), int(*p.Max)
			}
			a.sample = readable(p.Sample)
		case "enforcesSecureChat", "previewsChat":
			var yes bool
			if json.Unmarshal(raw, &yes) == nil {
				a.rest = append(append(a.rest, `,"`+name+`":`...), raw...)
			}
		default:
			key, _ := json.Marshal(name)
			a.rest = append(append(append(append(a.rest, ','), key...), ':'), raw...)
		}
	}
	return a, nil
}

// readable returns a sample without the entries that no client can read: a client throws the whole answer away for one
// of them, and one plugin would take the network off the list. nil: it is no sample.
func readable(sample []byte) []byte {
	var entries []json.RawMessage
	if json.Unmarshal(sample, &entries) != nil || entries == nil {
		return nil
	}
	out := []byte{'['}
	for _, raw := range entries {
		var e struct{ ID, Name *string }
		if json.Unmarshal(raw, &e) != nil || e.ID == nil || e.Name == nil || len(*e.ID) != 36 || uuid.Validate(*e.ID) != nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(appendString(append(out, `{"name":`...), *e.Name), `,"id":"`...), *e.ID+`"}`...)
	}
	return append(out, ']')
}

// maxDepth bounds how deep parts of a text may lie in one another, so that clients of all versions can read it.
const maxDepth = 100

// isText tells whether clients read JSON as a text: a string, an object with something to show, or a list of these.
func isText(raw []byte, depth int) bool {
	if len(raw) == 0 || depth > maxDepth {
		return false
	}
	switch raw[0] {
	case '"':
		return true
	case '[':
		var list []json.RawMessage
		return json.Unmarshal(raw, &list) == nil && len(list) > 0 && !slices.ContainsFunc(list, func(part json.RawMessage) bool { return !isText(part, depth+1) })
	case '{':
		var parts map[string]json.RawMessage
		if json.Unmarshal(raw, &parts) != nil {
			return false
		}
		if extra, more := parts["extra"]; more && (extra[0] != '[' || !isText(extra, depth+1)) {
			return false
		}
		for _, name := range [...]string{"text", "translate", "keybind", "selector", "nbt"} {
			if v, has := parts[name]; has {
				return v[0] == '"'
			}
		}
		return parts["score"] != nil || parts["object"] != nil || parts["sprite"] != nil || parts["player"] != nil
	}
	return false
}

// compact returns JSON without the space between its parts, in memory of its own.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return []byte("null") // cannot be: it has been read
	}
	return b.Bytes()
}

// of returns the part of a to pass on; a may be nil.
func (f Fields) of(a *Answer) (o Answer) {
	if a == nil {
		return o
	}
	o = *a
	if f&Players == 0 {
		o.counted = false
	}
	for _, x := range [...]struct {
		field Fields
		part  *[]byte
	}{{Sample, &o.sample}, {Description, &o.description}, {Favicon, &o.favicon}, {Version, &o.version}, {Mods, &o.rest}} {
		if f&x.field == 0 {
			*x.part = nil
		}
	}
	return o
}
