package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/proxy/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func source(t *testing.T) input {
	t.Helper()
	data, err := load("../testdata/packet_ids.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	var in input
	if err := json.Unmarshal(data, &in); err != nil {
		t.Fatal(err)
	}
	return in
}

func TestTablesAreCurrent(t *testing.T) {
	to := filepath.Join(t.TempDir(), "tables.go")
	if err := run("../testdata/packet_ids.json.gz", to); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(to)
	want, err := os.ReadFile("../tables.go")
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("tables.go is not what its data gives (%v); run go generate ./proxy/proto", err)
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	at := func(in *input, protocol int) *version {
		for i := range in.Versions {
			if in.Versions[i].ProtocolVersion == protocol {
				in.Versions[i].Packets = maps.Clone(in.Versions[i].Packets)
				return &in.Versions[i]
			}
		}
		t.Fatalf("no protocol %d", protocol)
		return nil
	}
	set := func(key string, id int) func(*input) {
		return func(in *input) { at(in, 764).Packets[key] = id }
	}
	drop := func(protocol int32, key string) func(*input) {
		return func(in *input) {
			v := at(in, int(protocol))
			if _, ok := v.Packets[key]; !ok {
				t.Fatalf("%d has no %s", protocol, key)
			}
			delete(v.Packets, key)
		}
	}
	for _, c := range []struct {
		name, want string
		change     func(*input)
	}{
		{"as it is", "", func(*input) {}},
		{"id twice", "is both", set("play/toClient/keep_alive", 0x18)},
		{"packet twice", "has two ids", set("login/toClient/set_compression", 5)},
		{"id too large", "end at 255", set("play/toClient/keep_alive", 256)},
		{"negative id", "end at 255", set("play/toClient/keep_alive", -1)},
		{"unknown state", "not state/direction/name", set("lobby/toClient/keep_alive", 0x70)},
		{"unknown direction", "not state/direction/name", set("play/sideways/keep_alive", 0x70)},
		{"no direction", "not state/direction/name", set("play/keep_alive", 0x70)},
		{"unusable name", "no usable name", set("play/toClient/Keep-Alive", 0x70)},
		{"empty name", "no usable name", set("play/toClient/", 0x70)},
		{"gap", "gap at 0x9", set("configuration/toClient/far", 0x0a)},
		{"gap at zero", "gap at 0x0", drop(proto.Max, "login/toServer/login_start")},
		{"direction without packets", "has packets: false", drop(proto.Max, "handshaking/toServer/set_protocol")},
		{"configuration too early", "has packets: true", func(in *input) { at(in, 763).Packets["configuration/toClient/keep_alive"] = 0 }},
		{"hole in time", "missing between 763 and 765", drop(764, "play/toClient/keep_alive")},
		{"no name", "no release name", func(in *input) { at(in, 764).Names = nil }},
		{"order", "protocol 763 follows 764", func(in *input) { at(in, 763).ProtocolVersion, at(in, 764).ProtocolVersion = 764, 763 }},
		{"twice", "protocol 763 follows 763", func(in *input) { at(in, 764).ProtocolVersion = 763 }},
		{"too short", "does not reach", func(in *input) { in.Versions = in.Versions[:len(in.Versions)-1] }},
		{"nothing", "does not reach", func(in *input) { in.Versions = nil }},
	} {
		in := source(t)
		c.change(&in)
		data, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		_, err = generate(data)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := generate([]byte("{")); err == nil {
		t.Error("half a file was accepted")
	}
}
