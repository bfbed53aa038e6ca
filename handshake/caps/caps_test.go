package caps

import (
	"net/http"
	"reflect"
	"testing"
)

func TestNegotiate(t *testing.T) {
	all := Newest()
	for _, c := range []struct {
		name                string
		asked, offers, want Set
	}{
		{"everything", all, all, all},
		{"nothing", Set{}, all, Set{}},
		{"nothing offered", all, Set{}, Set{}},
		{"unknown versions", Set{Audio: 3, Status: 2, Spatial: 1}, all, Set{}},
		{"audio 1 is not a version", Set{Audio: 1}, all, Set{}},
		{"status alone", Set{Status: 1}, all, Set{Status: 1}},
		{"spatial without audio", Set{Spatial: 1}, all, Set{}},
		{"spatial", Set{Audio: 2, Spatial: 1}, all, Set{Audio: 2, Spatial: 1}},
		{"speakers without spatial", Set{Audio: 2, Speakers: 1}, all, Set{Audio: 2}},
		{"speakers", Set{Audio: 2, Spatial: 1, Speakers: 1}, all, Set{Audio: 2, Spatial: 1, Speakers: 1}},
		{"soundboard 1", Set{Audio: 2, Spatial: 1, Soundboard: 1}, all, Set{Audio: 2, Spatial: 1, Soundboard: 1}},
		{"soundboard 2", Set{Audio: 2, Spatial: 1, Soundboard: 2}, all, Set{Audio: 2, Spatial: 1, Soundboard: 2}},
		{"soundboard 3", Set{Audio: 2, Spatial: 1, Soundboard: 3}, all, Set{Audio: 2, Spatial: 1}},
		{"soundboard without spatial", Set{Audio: 2, Soundboard: 2}, all, Set{Audio: 2}},
		{"soundboard 2 of a server with 1", Set{Audio: 2, Spatial: 1, Soundboard: 2}, Set{Audio: 2, Spatial: 1, Soundboard: 1}, Set{Audio: 2, Spatial: 1}},
		{"soundboard off", all, Set{Audio: 2, Spatial: 1}, Set{Audio: 2, Spatial: 1}},
		{"groups without status", Set{Audio: 2, Groups: 2}, all, Set{Audio: 2}},
		{"groups without audio", Set{Status: 1, Groups: 2}, all, Set{Status: 1, Groups: 2}},
		{"groups 1", Set{Status: 1, Groups: 1}, all, Set{Status: 1}},
		{"group-edit without groups", Set{Status: 1, GroupEdit: 1}, all, Set{Status: 1}},
		{"groups off takes group-edit along", all, Set{Audio: 2, Status: 1, Spatial: 1, GroupEdit: 1}, Set{Audio: 2, Status: 1, Spatial: 1}},
		{"pose without spatial", Set{Audio: 2, Status: 1, Pose: 1}, all, Set{Audio: 2, Status: 1}},
		{"page without spatial", Set{Audio: 2, Status: 1, Page: 1}, Set{Audio: 2, Status: 1, Spatial: 1, Page: 1}, Set{Audio: 2, Status: 1}},
		{"page", Set{Audio: 2, Spatial: 1, Page: 1}, Set{Audio: 2, Spatial: 1, Pose: 1, Page: 1}, Set{Audio: 2, Spatial: 1, Page: 1}},
		{"roster", Set{Status: 1, Roster: 2}, all, Set{Status: 1, Roster: 2}},
		{"roster without status", Set{Audio: 2, Roster: 2}, all, Set{Audio: 2}},
		{"roster 1", Set{Status: 1, Roster: 1}, all, Set{Status: 1}},
		{"pose", Set{Audio: 2, Spatial: 1, Pose: 1}, all, Set{Audio: 2, Spatial: 1, Pose: 1}},
	} {
		if got := c.asked.Negotiate(c.offers); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Whatever is asked and offered, in whatever version: no more than both, never without its base, and all that can be.
func TestNegotiateEverySubset(t *testing.T) {
	everything := func(yield func(Set) bool) {
		for bits := range 1 << 9 {
			has := func(i int) uint8 { return uint8(bits >> i & 1) }
			for _, odd := range []uint8{0, 1, 2} { // what stands for no: nothing, an older or a later version
				v := func(bit int, version uint8) uint8 {
					switch {
					case has(bit) == 1:
						return version
					case odd == 0:
						return 0
					}
					return version + 2*odd - 3
				}
				s := Set{
					Audio: v(0, 2), Status: v(1, 1), Spatial: v(2, 1), Speakers: v(3, 1), Groups: v(4, 2), GroupEdit: v(5, 1), Pose: v(6, 1),
					Soundboard: has(7) + 2*has(8),
				}
				if !yield(s) {
					return
				}
			}
		}
	}
	for a := range everything {
		for bits := range 1 << 9 {
			has := func(i int) uint8 { return uint8(bits >> i & 1) }
			o := Set{
				Audio: 2 * has(0), Status: has(1), Spatial: has(2), Speakers: has(3), Groups: 2 * has(4), GroupEdit: has(5), Pose: has(6),
				Soundboard: has(7) + has(8),
			}
			g := a.Negotiate(o)
			spatial := a.Audio == 2 && o.Audio == 2 && a.Spatial == 1 && o.Spatial == 1
			if (g.Audio == 2) != (a.Audio == 2 && o.Audio == 2) || (g.Status == 1) != (a.Status == 1 && o.Status == 1) || (g.Spatial == 1) != spatial ||
				(g.Speakers == 1) != (spatial && a.Speakers == 1 && o.Speakers == 1) || (g.Pose == 1) != (spatial && a.Pose == 1 && o.Pose == 1) ||
				(g.Soundboard == 2) != (spatial && a.Soundboard == 2 && o.Soundboard == 2) ||
				(g.Soundboard == 1) != (spatial && a.Soundboard == 1 && o.Soundboard != 0) ||
				(g.Groups == 2) != (g.Status == 1 && a.Groups == 2 && o.Groups == 2) ||
				(g.GroupEdit == 1) != (g.Groups == 2 && a.GroupEdit == 1 && o.GroupEdit == 1) {
				t.Fatalf("%+v of %+v grants %+v", a, o, g)
			}
			for _, c := range table {
				if v := *c.field(&g); v != 0 && (*c.field(&a) != v || *c.field(&o) != v && c.word != "soundboard") {
					t.Fatalf("%+v of %+v grants %+v", a, o, g)
				}
			}
			if again := g.Negotiate(o); again != g {
				t.Fatalf("%+v is granted, but of it only %+v", g, again)
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	h := http.Header{}
	Newest().ToHeaders(h)
	want := http.Header{
		"X-SocketSVC-Audio": {"2"}, "X-SocketSVC-Status": {"1"}, "X-SocketSVC-Spatial": {"1"},
		"X-SocketSVC-Speakers": {"1"}, "X-SocketSVC-Soundboard": {"2"}, "X-SocketSVC-Groups": {"2"},
		"X-SocketSVC-Group-Edit": {"1"}, "X-SocketSVC-Pose": {"1"}, "X-SocketSVC-Roster": {"2"},
	}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("wrote %v", h)
	}
	if got := FromHeaders(h); got != Newest() {
		t.Errorf("read back %+v", got)
	}
	canonical := http.Header{}
	for name, values := range h {
		canonical.Set(name, values[0]) // as net/http delivers them
	}
	if got := FromHeaders(canonical); got != Newest() {
		t.Errorf("read %+v of %v", got, canonical)
	}
	empty := http.Header{}
	Set{}.ToHeaders(empty)
	if len(empty) != 0 {
		t.Errorf("nothing negotiated writes %v", empty)
	}
	for value, want := range map[string]uint8{"2": 2, " 2 ": 2, "9": 9, "0": 0, "02": 0, "2.0": 0, "-2": 0, "+2": 0, "2, 2": 0, "258": 0, "": 0, "x": 0, "٢": 0} {
		if got := FromHeaders(http.Header{"X-Socketsvc-Audio": {value}}); got != (Set{Audio: want}) {
			t.Errorf("value %q reads as %+v", value, got)
		}
	}
	if got := FromHeaders(http.Header{"X-Socketsvc-Audio": {"2", "1"}, "X-Socketsvc-Status": {}}); got != (Set{}) {
		t.Errorf("two values read as %+v", got)
	}
}

func TestTokens(t *testing.T) {
	full := "socketsvc.audio-2.status-1.spatial-1.speakers-1.soundboard-2.groups-2.group-edit-1.pose-1"
	if got := Newest().Token(); got != full+".roster-2" {
		t.Errorf("full token %q", got)
	}
	for token, want := range map[string]Set{
		full + ".roster-2":                        Newest(),
		"socketsvc":                               {},
		"socketsvc.audio-2":                       {Audio: 2},
		"socketsvc.status-1.groups-2":             {Status: 1, Groups: 2},
		"socketsvc.audio-9":                       {Audio: 9},
		"socketsvc.audio-2.spatial-1.pose-1":      {Audio: 2, Spatial: 1, Pose: 1},
		"socketsvc.groups-2.group-edit-1":         {Groups: 2, GroupEdit: 1},
		full + ".page-1":                          {Audio: 2, Status: 1, Spatial: 1, Speakers: 1, Soundboard: 2, Groups: 2, GroupEdit: 1, Pose: 1, Page: 1},
		"socketsvc.status-1.roster-2":             {Status: 1, Roster: 2},
		"socketsvc.audio-2.soundboard-1":          {Audio: 2, Soundboard: 1},
		"socketsvc.audio-2.status-1.spatial-1":    {Audio: 2, Status: 1, Spatial: 1},
		"socketsvc.soundboard-2.groups-2":         {Soundboard: 2, Groups: 2},
		"socketsvc.speakers-1.group-edit-1":       {Speakers: 1, GroupEdit: 1},
		"socketsvc.audio-2.status-1.group-edit-1": {Audio: 2, Status: 1, GroupEdit: 1},
	} {
		got, ok := FromToken(token)
		if !ok || got != want {
			t.Errorf("%s: %+v %v", token, got, ok)
		}
		if again := got.Token(); again != token {
			t.Errorf("%s is written %s", token, again)
		}
	}
	for _, token := range []string{
		"", "socketsv", "Socketsvc", "socketsvc.", "socketsvc.audio", "socketsvc.audio-", "socketsvc.audio-0",
		"socketsvc.audio-22", "socketsvc.audio-2.", "socketsvc.audio-2.audio-2", "socketsvc.status-1.audio-2",
		"socketsvc.video-1", "socketsvc.audio-2.video-1", "socketsvcaudio-2", "socketsvc-audio-2", "chat",
	} {
		if s, ok := FromToken(token); ok {
			t.Errorf("%q reads as %+v", token, s)
		}
	}
}

func TestChoose(t *testing.T) {
	offered := Set{Audio: 2, Status: 1, Spatial: 1, Pose: 1} // no groups, no soundboard
	full, small := Newest().Token(), "socketsvc.audio-2.status-1"
	for _, c := range []struct {
		name   string
		tokens []string
		want   string
	}{
		{"first whole one", []string{full, small, Base}, small},
		{"client's order", []string{Base, small}, Base},
		{"only the base fits", []string{full, Base}, Base},
		{"all of it", []string{offered.Token(), small, Base}, offered.Token()},
		{"others among them", []string{"chat", "socketsvc.audio-3", small}, small},
		{"built on nothing", []string{"socketsvc.spatial-1", Base}, Base},
		{"none", []string{full, "chat"}, ""},
		{"no list", nil, ""},
	} {
		token, s, ok := Choose(c.tokens, offered)
		if token != c.want || ok != (c.want != "") || ok && s.Token() != token {
			t.Errorf("%s: %q %+v %v", c.name, token, s, ok)
		}
	}
}

func FuzzFromToken(f *testing.F) {
	f.Add(Newest().Token())
	f.Add(Base)
	f.Add("socketsvc.audio-2.soundboard-1.groups-9")
	f.Fuzz(func(t *testing.T, token string) {
		if s, ok := FromToken(token); ok && s.Token() != token {
			t.Fatalf("%q is written %q", token, s.Token())
		}
	})
}
