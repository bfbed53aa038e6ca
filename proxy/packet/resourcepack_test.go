package packet

import (
	"encoding/hex"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// packVector is a line of testdata/packs.jsonl, which npm minecraft-protocol's serializers have made; packs.js beside
// it is the generator.
type packVector struct {
	Packet    string
	Protocols []int32
	Hex       string
	Fields    struct {
		ID           uuid.UUID
		URL, Hash    string
		Status       PackStatus
		All          bool
		Icon, Secure bool
	}
	body []byte
}

func packVectors(t testing.TB) []packVector {
	t.Helper()
	all, err := testkit.Lines[packVector]("testdata/packs.jsonl")
	if err != nil || len(all) < 40 {
		t.Fatalf("only %d vectors (%v): run testdata/packs.js", len(all), err)
	}
	for i := range all {
		v := &all[i]
		if v.body, err = hex.DecodeString(v.Hex); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestPackVectors: packs, answers and removals are read and written as another implementation writes them, and nothing
// shorter is taken for one.
func TestPackVectors(t *testing.T) {
	seen := map[string]map[int32]bool{}
	for _, v := range packVectors(t) {
		for _, p := range v.Protocols {
			if seen[v.Packet] == nil {
				seen[v.Packet] = map[int32]bool{}
			}
			seen[v.Packet][p] = true
			short := func(read func([]byte) error, needed int) {
				for n := range needed {
					if read(v.body[:n]) == nil {
						t.Errorf("%s %d: %d of %d bytes were enough", v.Packet, p, n, len(v.body))
					}
				}
			}
			f := v.Fields
			switch v.Packet {
			case "resource_pack_send", "add_resource_pack":
				got, err := ParseResourcePack(p, v.body)
				if want := (ResourcePack{f.ID, f.URL, f.Hash}); err != nil || got != want {
					t.Errorf("%s %d: %+v, %v, want %+v", v.Packet, p, got, err, want)
				}
				needed := len(f.URL) + len(f.Hash) + 2
				if p >= proto.V1_20_3 {
					needed += 16
				}
				short(func(b []byte) error { _, err := ParseResourcePack(p, b); return err }, needed)
			case "resource_pack_receive":
				got, err := ParsePackAnswer(p, v.body)
				if want := (PackAnswer{f.ID, f.Hash, f.Status}); err != nil || got != want {
					t.Errorf("%s %d: %+v, %v, want %+v", v.Packet, p, got, err, want)
				}
				if b := hex.EncodeToString(AppendPackAnswer(nil, p, got)); b != v.Hex {
					t.Errorf("%s %d: wrote %s, want %s", v.Packet, p, b, v.Hex)
				}
				short(func(b []byte) error { _, err := ParsePackAnswer(p, b); return err }, len(v.body))
			case "remove_resource_pack":
				id, all, err := ParsePackRemoval(v.body)
				if err != nil || id != f.ID || all != f.All {
					t.Errorf("%s %d: %v, %v, %v", v.Packet, p, id, all, err)
				}
				if b := hex.EncodeToString(AppendPackRemoval(nil, id)); !all && b != v.Hex {
					t.Errorf("%s %d: wrote %s, want %s", v.Packet, p, b, v.Hex)
				}
				short(func(b []byte) error { _, _, err := ParsePackRemoval(b); return err }, len(v.body))
			}
		}
	}
	for _, v := range proto.Supported() {
		p := v.Protocol
		for packet, want := range map[string]bool{
			"resource_pack_send": p < proto.V1_20_3, "add_resource_pack": p >= proto.V1_20_3, "resource_pack_receive": true,
			"remove_resource_pack": p >= proto.V1_20_3, "server_data": p >= proto.V1_19,
		} {
			if seen[packet][p] != want {
				t.Errorf("%s %d: vectors: %v, want %v", packet, p, seen[packet][p], want)
			}
		}
	}
}

// TestRelist: what comes out of a server's data is what another implementation writes for the description and icon that
// are put in, with the server's own flags.
func TestRelist(t *testing.T) {
	const icon = "data:image/png;base64,iVBORw0KGgo="
	by := func(p int32, icon, secure bool) []byte {
		for _, v := range packVectors(t) {
			if v.Packet == "server_data" && v.Fields.Icon == icon && v.Fields.Secure == secure {
				for _, q := range v.Protocols {
					if q == p {
						return v.body
					}
				}
			}
		}
		if icon || !secure {
			t.Fatalf("no vector for %d", p)
		}
		return nil
	}
	for _, v := range proto.Supported() {
		p := v.Protocol
		if p < proto.V1_19 {
			if _, err := Relist(p, []byte{0, 0, 0, 0}, Plain("hello"), ""); err == nil {
				t.Errorf("%d: server data where there is none", p)
			}
			continue
		}
		for _, secure := range []bool{false, true} {
			if p >= proto.V1_20_5 && secure { // the flag is gone
				continue
			}
			// A server's own, with another icon than ours.
			for _, with := range []bool{false, true} {
				body := by(p, !with, secure)
				ours := ""
				if with {
					ours = icon
				}
				got, err := Relist(p, body, Plain("hello"), ours)
				if want := by(p, with, secure); err != nil || hex.EncodeToString(got) != hex.EncodeToString(want) {
					t.Errorf("%d: icon %v, secure %v: %x, %v, want %x", p, with, secure, got, err, want)
				}
			}
		}
		if _, err := Relist(p, nil, Plain("hello"), ""); err == nil {
			t.Errorf("%d: nothing was enough", p)
		}
		if p < proto.V1_20_5 {
			if _, err := Relist(p, []byte{0, 0, 0, 7}, Plain("hello"), ""); err == nil {
				t.Errorf("%d: 7 is no flag", p)
			}
		}
	}
}

// FuzzPacks: no answer, pack or server data of whatever bytes is a reason to fall, and what is read of an answer is
// written the same.
func FuzzPacks(f *testing.F) {
	for _, v := range packVectors(f) {
		for i, ver := range proto.Supported() {
			if ver.Protocol == v.Protocols[0] {
				f.Add(v.body, uint8(i))
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, version uint8) {
		p := proto.Supported()[int(version)%len(proto.Supported())].Protocol
		ParseResourcePack(p, body)
		ParsePackRemoval(body)
		if out, err := Relist(p, body, Plain("x"), ""); err == nil && len(out) > 32 {
			t.Fatalf("%d bytes of server data", len(out))
		}
		if a, err := ParsePackAnswer(p, body); err == nil {
			if b, err := ParsePackAnswer(p, AppendPackAnswer(nil, p, a)); err != nil || a != b {
				t.Fatalf("%+v became %+v, %v", a, b, err)
			}
		}
	})
}
