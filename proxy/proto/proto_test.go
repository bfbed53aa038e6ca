package proto

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// playIDs was compiled by hand from two other public tables: direction, packet, then the id in hex from each release
// on, "--" for gone. 1.7 is in it and not in ours.
//
//go:embed testdata/play_ids.txt
var playIDs string

func byRelease(t *testing.T, name string) int32 {
	t.Helper()
	if name == "1.7" {
		return 4
	}
	for _, v := range Supported() {
		if slices.Contains(v.Names, name) {
			return v.Protocol
		}
	}
	t.Fatalf("no version is called %s", name)
	return 0
}

func TestPlayIDs(t *testing.T) {
	rows, compared := 0, 0
	for line := range strings.Lines(playIDs) {
		dir := Clientbound
		if line[0] == 'S' {
			dir = Serverbound
		}
		name, spans, _ := strings.Cut(strings.TrimSpace(line[2:]), ": ")
		p, ok := ByName(name)
		if !ok {
			t.Fatalf("no packet is called %s", name)
		}
		rows++
		type span struct{ from, id int32 }
		var want []span
		for s := range strings.SplitSeq(spans, ", ") {
			release, hex, _ := strings.Cut(s, " ")
			id := int64(-1)
			if hex != "--" {
				var err error
				if id, err = strconv.ParseInt(hex, 16, 16); err != nil {
					t.Fatal(err)
				}
			}
			want = append(want, span{byRelease(t, release), int32(id)})
		}
		for _, v := range Supported() {
			expect := int32(-1)
			for _, s := range want {
				if v.Protocol >= s.from {
					expect = s.id
				}
			}
			if p == MessageAcknowledgement && v.Protocol == V1_19_1 {
				continue // the packet of that one version is another one under the same name, left out of the list
			}
			got, ok := v.ID(Play, dir, p)
			if !ok {
				got = -1
			}
			if got != expect {
				t.Errorf("%v %v in %d: id %#x, want %#x", dir, p, v.Protocol, got, expect)
			}
			if ok && v.Table(Play, dir)[got] != p {
				t.Errorf("%v %v in %d: id %#x is %v", dir, p, v.Protocol, got, v.Table(Play, dir)[got])
			}
			compared++
		}
	}
	if rows != 37 || compared != 37*len(Supported())-1 {
		t.Errorf("%d rows, %d comparisons: the list lost some", rows, compared)
	}
}

// otherIDs are all packets outside play, in id order; an entry applies from its protocol on until the next.
var otherIDs = []struct {
	state   State
	dir     Dir
	from    int32
	packets []Packet
}{
	{Handshake, Serverbound, 47, []Packet{SetProtocol}},
	{Handshake, Clientbound, 47, nil},
	{Status, Serverbound, 47, []Packet{StatusRequest, StatusPing}},
	{Status, Clientbound, 47, []Packet{StatusResponse, StatusPing}},
	{Login, Clientbound, 47, []Packet{Disconnect, EncryptionBegin, LoginSuccess, SetCompression}},
	{Login, Clientbound, 393, []Packet{Disconnect, EncryptionBegin, LoginSuccess, SetCompression, LoginPluginRequest}},
	{Login, Clientbound, 766, []Packet{Disconnect, EncryptionBegin, LoginSuccess, SetCompression, LoginPluginRequest, CookieRequest}},
	{Login, Serverbound, 47, []Packet{LoginStart, EncryptionBegin}},
	{Login, Serverbound, 393, []Packet{LoginStart, EncryptionBegin, LoginPluginResponse}},
	{Login, Serverbound, 764, []Packet{LoginStart, EncryptionBegin, LoginPluginResponse, LoginAcknowledged}},
	{Login, Serverbound, 766, []Packet{LoginStart, EncryptionBegin, LoginPluginResponse, LoginAcknowledged, CookieResponse}},
	{Config, Clientbound, 47, nil},
	{Config, Clientbound, 764, []Packet{CustomPayload, Disconnect, FinishConfiguration, KeepAlive, Ping, RegistryData,
		ResourcePackSend, FeatureFlags, Tags}},
	{Config, Clientbound, 765, []Packet{CustomPayload, Disconnect, FinishConfiguration, KeepAlive, Ping, RegistryData,
		RemoveResourcePack, AddResourcePack, FeatureFlags, Tags}},
	{Config, Clientbound, 766, []Packet{CookieRequest, CustomPayload, Disconnect, FinishConfiguration, KeepAlive, Ping, ResetChat,
		RegistryData, RemoveResourcePack, AddResourcePack, StoreCookie, Transfer, FeatureFlags, Tags, SelectKnownPacks}},
	{Config, Clientbound, 767, []Packet{CookieRequest, CustomPayload, Disconnect, FinishConfiguration, KeepAlive, Ping, ResetChat,
		RegistryData, RemoveResourcePack, AddResourcePack, StoreCookie, Transfer, FeatureFlags, Tags, SelectKnownPacks,
		CustomReportDetails, ServerLinks}},
	{Config, Clientbound, 771, []Packet{CookieRequest, CustomPayload, Disconnect, FinishConfiguration, KeepAlive, Ping, ResetChat,
		RegistryData, RemoveResourcePack, AddResourcePack, StoreCookie, Transfer, FeatureFlags, Tags, SelectKnownPacks,
		CustomReportDetails, ServerLinks, ClearDialog, ShowDialog}},
	{Config, Clientbound, 773, []Packet{CookieRequest, CustomPayload, Disconnect, FinishConfiguration, KeepAlive, Ping, ResetChat,
		RegistryData, RemoveResourcePack, AddResourcePack, StoreCookie, Transfer, FeatureFlags, Tags, SelectKnownPacks,
		CustomReportDetails, ServerLinks, ClearDialog, ShowDialog, CodeOfConduct}},
	{Config, Clientbound, 777, []Packet{CookieRequest, CustomPayload, Disconnect, FinishConfiguration, KeepAlive, Ping, ResetChat,
		RegistryData, RemoveResourcePack, AddResourcePack, PostEffects, StoreCookie, Transfer, FeatureFlags, Tags, SelectKnownPacks,
		CustomReportDetails, ServerLinks, ClearDialog, ShowDialog, CodeOfConduct}},
	{Config, Serverbound, 47, nil},
	{Config, Serverbound, 764, []Packet{ClientInformation, CustomPayload, FinishConfiguration, KeepAlive, Pong, ResourcePackReceive}},
	{Config, Serverbound, 766, []Packet{ClientInformation, CookieResponse, CustomPayload, FinishConfiguration, KeepAlive, Pong,
		ResourcePackReceive, SelectKnownPacks}},
	{Config, Serverbound, 771, []Packet{ClientInformation, CookieResponse, CustomPayload, FinishConfiguration, KeepAlive, Pong,
		ResourcePackReceive, SelectKnownPacks, CustomClickAction}},
	{Config, Serverbound, 773, []Packet{ClientInformation, CookieResponse, CustomPayload, FinishConfiguration, KeepAlive, Pong,
		ResourcePackReceive, SelectKnownPacks, CustomClickAction, AcceptCodeOfConduct}},
}

func TestIDsOutsidePlay(t *testing.T) {
	for s := Handshake; s < Play; s++ {
		for _, d := range []Dir{Serverbound, Clientbound} {
			for _, v := range Supported() {
				var want [256]Packet
				for _, o := range otherIDs {
					if o.state == s && o.dir == d && v.Protocol >= o.from {
						want = [256]Packet{}
						copy(want[:], o.packets)
					}
				}
				if got := v.Table(s, d); *got != want {
					t.Errorf("%v %v in %d: %v\nwant %v", s, d, v.Protocol, got[:24], want[:24])
				}
			}
		}
	}
}

func TestSupported(t *testing.T) {
	var got []int32
	for i, v := range Supported() {
		got = append(got, v.Protocol)
		if Lookup(v.Protocol) != v || len(v.Names) == 0 || v.HasConfiguration() != (v.Protocol >= 764) {
			t.Errorf("version %d is %+v", i, v)
		}
	}
	want := []int32{47, 107, 108, 109, 110, 210, 315, 316, 335, 338, 340, 393, 401, 404, 477, 480, 485, 490, 498, 573, 575, 578,
		735, 736, 751, 753, 754, 755, 756, 757, 758, 759, 760, 761, 762, 763, 764, 765, 766, 767, 768, 769, 770, 771, 772, 773, 774, 775, 776, 777}
	if !slices.Equal(got, want) || want[0] != Min || want[len(want)-1] != Max {
		t.Errorf("supported: %v", got)
	}
	for _, p := range []int32{-1 << 31, -1, 0, 4, 5, 46, 48, 485 + 1, 778, 1<<31 - 1, 0x40000001} {
		if Lookup(p) != nil {
			t.Errorf("protocol %d is supported", p)
		}
	}
	for release, p := range map[string]int32{"1.8.9": 47, "1.12.2": 340, "1.16.5": 754, "1.20.1": 763, "1.21.11": 774, "26.1": 775, "26.2": 776, "26.3": 777} {
		if got := byRelease(t, release); got != p {
			t.Errorf("%s is protocol %d, want %d", release, got, p)
		}
	}
}

// TestBoundaries ties the named boundaries to the releases they are named after.
func TestBoundaries(t *testing.T) {
	for release, p := range map[string]int32{
		"1.8": V1_8, "1.9": V1_9, "1.9.1": V1_9_1, "1.10": V1_10, "1.11": V1_11, "1.12": V1_12, "1.12.1": V1_12_1, "1.12.2": V1_12_2,
		"1.13": V1_13, "1.14": V1_14, "1.15": V1_15, "1.16": V1_16, "1.16.2": V1_16_2, "1.17": V1_17, "1.18": V1_18, "1.19": V1_19,
		"1.19.1": V1_19_1, "1.19.3": V1_19_3, "1.19.4": V1_19_4, "1.20": V1_20, "1.20.2": V1_20_2, "1.20.3": V1_20_3, "1.20.5": V1_20_5,
		"1.21": V1_21, "1.21.2": V1_21_2, "1.21.4": V1_21_4, "1.21.5": V1_21_5, "1.21.6": V1_21_6, "1.21.9": V1_21_9, "1.21.11": V1_21_11, "26.1": V26_1,
		"26.2": V26_2, "26.3": V26_3,
	} {
		if got := byRelease(t, release); got != p {
			t.Errorf("%s is protocol %d, the constant says %d", release, got, p)
		}
	}
}

func TestNames(t *testing.T) {
	for p := Unknown + 1; p < numPackets; p++ {
		if got, ok := ByName(p.String()); !ok || got != p {
			t.Errorf("%d is %q, which is %d", p, p, got)
		}
		if _, ok := Supported()[0].ID(Handshake, Clientbound, p); ok {
			t.Errorf("%v is in an empty table", p)
		}
	}
	for _, bad := range []string{"", "unknown", "invalid", "KeepAlive"} {
		if p, ok := ByName(bad); ok || p != Unknown {
			t.Errorf("%q is %v", bad, p)
		}
	}
	got := fmt.Sprint(Unknown, KeepAlive, JoinGame, numPackets, Packet(255), Handshake, Config, Play, State(9), Serverbound, Clientbound, Dir(9))
	if want := "unknown keep_alive join_game invalid invalid handshake configuration play invalid serverbound clientbound invalid"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if _, ok := Supported()[0].ID(Play, Clientbound, 255); ok {
		t.Error("a packet that does not exist has an id")
	}
	if _, ok := Supported()[0].ID(Play, Clientbound, Unknown); ok {
		t.Error("Unknown has an id")
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		v := Lookup(775)
		id, _ := v.ID(Play, Serverbound, Position)
		if v.Table(Play, Serverbound)[id] != Position {
			t.Fatal("position is not position")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
