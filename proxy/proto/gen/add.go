package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-mc/earshot/proxy/proto"
)

// add puts a release into the list of ids, from the packets.json of the game's own data generator: the packets that the
// newest version of the list has, and the other ones that we have a name for. Packets that went are left out.
func add(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("usage: gen add NUMBER NAME,NAME packets.json packet_ids.json.gz")
	}
	number, err := strconv.ParseInt(args[0], 10, 32)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	var report map[string]map[string]map[string]struct {
		ID int `json:"protocol_id"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return fmt.Errorf("%s: %w", args[2], err)
	}
	data, err := load(args[3])
	if err != nil {
		return err
	}
	ids := map[string]int{}
	for state, dirs := range report {
		for dir, packets := range dirs {
			for name, p := range packets {
				if key, ok := keyOf(state, dir, strings.TrimPrefix(name, "minecraft:")); ok {
					ids[key] = p.ID
				}
			}
		}
	}
	out, err := insert(data, int(number), strings.Split(args[1], ","), ids)
	if err != nil {
		return err
	}
	var z bytes.Buffer
	w, _ := gzip.NewWriterLevel(&z, gzip.BestCompression)
	w.Write(out)
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(args[3], z.Bytes(), 0o644)
}

// keyOf returns the list's name of a packet, by the game's name.
func keyOf(state, dir, name string) (string, bool) {
	s, ok := proto.StateByName(state)
	d, ok2 := proto.DirByName(dir)
	if !ok || !ok2 {
		return "", false
	}
	p, ok := proto.ByGameName(s, d, name)
	if !ok {
		return "", false
	}
	ours := states[s] + "/" + dirs[d]
	for key, goName := range goNames {
		if prefix := states[s] + "/"; strings.HasPrefix(key, prefix) && snake(goName) == p.String() {
			return ours + "/" + strings.TrimPrefix(key, prefix), true
		}
	}
	return ours + "/" + p.String(), true
}

// insert puts a version's line into the list, in place of one that is there. The other lines stay as they are.
func insert(data []byte, number int, names []string, ids map[string]int) ([]byte, error) {
	groups := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(ids)) {
		group := key[:strings.LastIndexByte(key, '/')]
		groups[group] = append(groups[group], fmt.Sprintf("%q: %d", key, ids[key]))
	}
	var rows []string
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		rows = append(rows, "  "+strings.Join(groups[g], ", "))
	}
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	entry := fmt.Sprintf("{\"protocolVersion\": %d, \"names\": %s, \"source\": \"packets.json\", \"packets\": {\n%s}}", number, list, strings.Join(rows, ",\n"))

	const begin = "\n{\"protocolVersion\": "
	head, rest, ok := strings.Cut(string(data), begin)
	if !ok {
		return nil, fmt.Errorf("the list has no version in it")
	}
	body, tail, ok := strings.Cut(rest, "\n]")
	if !ok {
		return nil, fmt.Errorf("the list has no end")
	}
	var entries []string
	placed := false
	for _, e := range strings.Split(body, begin) {
		e = begin[1:] + strings.TrimSuffix(e, ",")
		if strings.HasPrefix(e, fmt.Sprintf("%s%d,", begin[1:], number)) {
			e, placed = entry, true
		}
		entries = append(entries, e)
	}
	if !placed {
		entries = append(entries, entry)
	}
	out := []byte(head + "\n" + strings.Join(entries, ",\n") + "\n]" + tail)
	if !json.Valid(out) {
		return nil, fmt.Errorf("the list would not be JSON any more")
	}
	return out, nil
}
