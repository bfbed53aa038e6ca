package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/earshot-mc/earshot/proxy/proto"
)

// TestAdd: a report as the game writes it gives the ids that the list has for the two newest versions, which were not
// made from one, and the list makes the same tables.
func TestAdd(t *testing.T) {
	data, err := load("../testdata/packet_ids.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(data)
	if err != nil {
		t.Fatal(err)
	}
	var in input
	if err := json.Unmarshal(data, &in); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	list, reported := filepath.Join(dir, "ids.json.gz"), filepath.Join(dir, "packets.json")
	zipped, err := os.ReadFile("../testdata/packet_ids.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range in.Versions[len(in.Versions)-2:] {
		if err := os.WriteFile(list, zipped, 0o600); err != nil {
			t.Fatal(err)
		}
		report := map[string]map[string]map[string]map[string]int{}
		named := map[string]bool{}
		for st := proto.Handshake; st <= proto.Play; st++ {
			for _, d := range []proto.Dir{proto.Serverbound, proto.Clientbound} {
				for _, name := range proto.GameNames(st, d) {
					key, _ := keyOf(st.String(), d.String(), name)
					if id, ok := v.Packets[key]; ok && name != "game_profile" { // the older of two names
						put(report, st.String(), d.String(), "minecraft:"+name, id)
						named[key] = true
					}
				}
			}
		}
		for key := range v.Packets {
			if !named[key] && !phantoms[key] {
				t.Errorf("%d: %s has no name of the game's", v.ProtocolVersion, key)
			}
		}
		put(report, "play", "clientbound", "minecraft:somebody_elses", 250)
		text, _ := json.Marshal(report)
		if err := os.WriteFile(reported, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := add([]string{fmt.Sprint(v.ProtocolVersion), v.Names[0], reported, list}); err != nil {
			t.Fatal(err)
		}
		now, err := load(list)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := generate(now); err != nil || string(got) != string(want) {
			t.Errorf("%d: other tables, %v", v.ProtocolVersion, err)
		}
	}
	if err := add([]string{"900", "27.0", filepath.Join(dir, "none"), list}); err == nil {
		t.Error("a report that is not there is no error")
	}
}

func put(r map[string]map[string]map[string]map[string]int, state, dir, name string, id int) {
	if r[state] == nil {
		r[state] = map[string]map[string]map[string]int{}
	}
	if r[state][dir] == nil {
		r[state][dir] = map[string]map[string]int{}
	}
	r[state][dir][name] = map[string]int{"protocol_id": id}
}
