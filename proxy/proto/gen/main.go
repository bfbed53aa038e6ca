// Command gen writes the packet tables of package proto.
//
//	go run ./gen packet_ids.json[.gz] tables.go
//	go run ./gen add NUMBER NAME,NAME packets.json packet_ids.json.gz
//
// The second form puts a release into the list that the first one reads, from the report of the game's data generator.
// Its input lists, for every released protocol number, the ids of the packets that a proxy may want to look at: all
// packets of handshaking, status, login and configuration, and a selection of play. It was extracted from the npm
// package minecraft-data and has its names. That package lacks 776 and 777; there several public implementations agree
// on the order of packets. Data that cannot be right is refused, not written.
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"go/format"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// Protocols below first lack compression and have i16-prefixed arrays; those above last have no data.
const first, last = 47, 777

// goNames has the packets whose minecraft-data name says too little out of its state, or that have two names.
var goNames = map[string]string{
	"login/compress":         "SetCompression",
	"login/success":          "LoginSuccess",
	"play/login":             "JoinGame",
	"play/kick_disconnect":   "Disconnect",
	"play/settings":          "ClientInformation",
	"configuration/settings": "ClientInformation",
	"status/ping_start":      "StatusRequest",
	"status/server_info":     "StatusResponse",
	"status/ping":            "StatusPing",
}

// phantoms stand in the data as serverbound; they only ever go to the client (and their ids were given to others in
// 771).
var phantoms = map[string]bool{
	"configuration/toServer/custom_report_details": true,
	"configuration/toServer/server_links":          true,
}

// interrupted has packets that really were gone for a version and came back.
var interrupted = map[string]bool{"play/toClient/entity_destroy": true} // 755 has destroy_entity in its place

var states = []string{"handshaking", "status", "login", "configuration", "play"}
var dirs = []string{"toServer", "toClient"}

type input struct {
	Source   string
	Versions []version
}

type version struct {
	ProtocolVersion int
	Names           []string
	Packets         map[string]int
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "add" {
		if err := add(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gen packet_ids.json[.gz] tables.go\n       gen add NUMBER NAME,NAME packets.json packet_ids.json.gz")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	data, err := load(from)
	if err != nil {
		return err
	}
	src, err := generate(data)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, src, 0o644)
}

func load(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return data, err
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// goName turns a packet's state and minecraft-data name into the name of its constant.
func goName(state, name string) string {
	if n, ok := goNames[state+"/"+name]; ok {
		return n
	}
	var b strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz") != "" {
			return ""
		}
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func snake(goName string) string {
	var b strings.Builder
	for i, c := range goName {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// layout is one id table: the constant of each id, "" where there is none.
type layout [256]string

func (v version) layouts() (map[string]layout, error) {
	out := map[string]layout{}
	for _, key := range slices.Sorted(maps.Keys(v.Packets)) {
		id := v.Packets[key]
		parts := strings.Split(key, "/")
		if len(parts) != 3 || !slices.Contains(states, parts[0]) || !slices.Contains(dirs, parts[1]) {
			return nil, fmt.Errorf("%q is not state/direction/name", key)
		}
		name := goName(parts[0], parts[2])
		if name == "" {
			return nil, fmt.Errorf("%q has no usable name", key)
		}
		if id < 0 || id > 255 {
			return nil, fmt.Errorf("%q has id %d, the tables end at 255", key, id)
		}
		if phantoms[key] {
			continue
		}
		place := parts[0] + "/" + parts[1]
		l := out[place]
		if l[id] != "" {
			return nil, fmt.Errorf("%s: id %#x is both %s and %s", place, id, l[id], name)
		}
		if slices.Contains(l[:], name) {
			return nil, fmt.Errorf("%s: %s has two ids", place, name)
		}
		l[id] = name
		out[place] = l
	}
	for _, s := range states {
		for _, d := range dirs {
			l, ok := out[s+"/"+d]
			if want := (s != "handshaking" || d == "toServer") && (s != "configuration" || v.ProtocolVersion >= 764); ok != want {
				return nil, fmt.Errorf("%s/%s: has packets: %v, should have: %v", s, d, ok, want)
			}
			gap := slices.Index(l[:], "")
			// Play lists a selection.
			if s != "play" && gap >= 0 && slices.ContainsFunc(l[gap:], func(n string) bool { return n != "" }) {
				return nil, fmt.Errorf("%s/%s: the ids have a gap at %#x", s, d, gap)
			}
		}
	}
	return out, nil
}

// steady refuses a packet that is missing between two versions that have it.
func steady(vs []version) error {
	lastSeen := map[string]int{}
	for i, v := range vs {
		for _, key := range slices.Sorted(maps.Keys(v.Packets)) {
			if j, ok := lastSeen[key]; ok && j != i-1 && !interrupted[key] {
				return fmt.Errorf("%s is missing between %d and %d", key, vs[j].ProtocolVersion, v.ProtocolVersion)
			}
			lastSeen[key] = i
		}
	}
	return nil
}

func generate(data []byte) ([]byte, error) {
	var in input
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	for i, v := range in.Versions {
		if len(v.Names) == 0 {
			return nil, fmt.Errorf("protocol %d has no release name", v.ProtocolVersion)
		}
		if i > 0 && v.ProtocolVersion <= in.Versions[i-1].ProtocolVersion {
			return nil, fmt.Errorf("protocol %d follows %d", v.ProtocolVersion, in.Versions[i-1].ProtocolVersion)
		}
	}
	vs := slices.DeleteFunc(slices.Clone(in.Versions), func(v version) bool { return v.ProtocolVersion < first || v.ProtocolVersion > last })
	if len(vs) == 0 || vs[0].ProtocolVersion != first || vs[len(vs)-1].ProtocolVersion != last {
		return nil, fmt.Errorf("the data does not reach from protocol %d to %d", first, last)
	}
	if err := steady(vs); err != nil {
		return nil, err
	}

	names := map[string]bool{}
	unique := []layout{{}} // 0: the empty table
	index := map[layout]int{{}: 0}
	var rows strings.Builder
	for _, v := range vs {
		ls, err := v.layouts()
		if err != nil {
			return nil, fmt.Errorf("protocol %d: %w", v.ProtocolVersion, err)
		}
		fmt.Fprintf(&rows, "{Protocol: %d, Names: []string{%s}, tables: [numStates][numDirs]uint8{", v.ProtocolVersion, quoted(v.Names))
		for _, s := range states {
			rows.WriteString("{")
			for _, d := range dirs {
				l := ls[s+"/"+d]
				n, ok := index[l]
				if !ok {
					n = len(unique)
					index[l] = n
					unique = append(unique, l)
				}
				for _, name := range l {
					names[name] = true
				}
				fmt.Fprintf(&rows, "%d, ", n)
			}
			rows.WriteString("}, ")
		}
		rows.WriteString("}},\n")
	}
	delete(names, "")
	sorted := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Compare(snake(a), snake(b)) })

	var b strings.Builder
	fmt.Fprintf(&b, "// Code generated by proxy/proto/gen from %s; DO NOT EDIT.\n\npackage proto\n\n", in.Source)
	b.WriteString("// The packets somebody may want to look at, in alphabetical order of their String. The numbers are not stable.\nconst (\n")
	b.WriteString("// Unknown is an id that the table does not name.\nUnknown Packet = iota\n")
	for _, n := range sorted {
		fmt.Fprintf(&b, "%s\n", n)
	}
	b.WriteString("numPackets\n)\n\nvar packetNames = [...]string{\"unknown\",\n")
	for _, n := range sorted {
		fmt.Fprintf(&b, "%q,\n", snake(n))
	}
	b.WriteString("\"invalid\"}\n\n// layouts are the different id tables; versions refers to them by index.\nvar layouts = [...][256]Packet{\n")
	for _, l := range unique {
		b.WriteString("{")
		for id, n := range l {
			if n != "" {
				fmt.Fprintf(&b, "%#02x: %s, ", id, n)
			}
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n\nvar versions = [...]Version{\n" + rows.String() + "}\n")
	return format.Source([]byte(b.String()))
}

func quoted(names []string) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%q, ", n)
	}
	return strings.TrimSuffix(b.String(), ", ")
}
