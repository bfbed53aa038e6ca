// Package proto knows which packet an id is, for every game version, connection state and direction.
//
// It also knows in which traits the layouts of versions differ (traits.go). It promises that nobody guesses: the tables
// are generated from published protocol data (tables.go) or read from files (file.go), a version without data is not
// Supported, and an id the tables do not name is Unknown. Looking an id up is one array access.
package proto

//go:generate go run ./gen testdata/packet_ids.json.gz tables.go

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
)

// State is the phase a connection is in; each has its own packet ids.
type State uint8

// The states in the order a connection passes them; Config exists from protocol 764 (1.20.2) on.
const (
	Handshake State = iota
	Status
	Login
	Config
	Play
	numStates
)

// String returns the state's name as logs and metrics show it.
func (s State) String() string {
	return [...]string{"handshake", "status", "login", "configuration", "play", "invalid"}[min(s, numStates)]
}

// Dir is the direction a packet travels in.
type Dir uint8

// Serverbound is from the game client towards the backend, Clientbound the other way.
const (
	Serverbound Dir = iota
	Clientbound
	numDirs
)

// String returns the direction's name as logs and metrics show it.
func (d Dir) String() string {
	return [...]string{"serverbound", "clientbound", "invalid"}[min(d, numDirs)]
}

// Packet names a packet, whatever its id is in some version. The same constant stands for the same thing in every state
// and direction (KeepAlive, Disconnect, CustomPayload); its body may differ between them and between versions.
type Packet uint8

// String returns the packet's name in snake case, "unknown" for Unknown.
func (p Packet) String() string { return packetNames[min(int(p), len(packetNames)-1)] }

// ByName finds the packet with that name, as String returns it.
func ByName(name string) (Packet, bool) {
	i := slices.Index(packetNames[1:numPackets], name) + 1
	return Packet(i), i > 0
}

// First protocol numbers of the releases at which something changes for a proxy.
const (
	V1_8     int32 = 47
	V1_9     int32 = 107
	V1_9_1   int32 = 108
	V1_10    int32 = 210
	V1_11    int32 = 315
	V1_12    int32 = 335
	V1_12_1  int32 = 338
	V1_12_2  int32 = 340
	V1_13    int32 = 393
	V1_14    int32 = 477
	V1_15    int32 = 573
	V1_16    int32 = 735
	V1_16_2  int32 = 751
	V1_17    int32 = 755
	V1_18    int32 = 757
	V1_19    int32 = 759
	V1_19_1  int32 = 760
	V1_19_3  int32 = 761
	V1_19_4  int32 = 762
	V1_20    int32 = 763
	V1_20_2  int32 = 764
	V1_20_3  int32 = 765
	V1_20_5  int32 = 766
	V1_21    int32 = 767
	V1_21_2  int32 = 768
	V1_21_4  int32 = 769
	V1_21_5  int32 = 770
	V1_21_6  int32 = 771
	V1_21_9  int32 = 773
	V1_21_11 int32 = 774
	V26_1    int32 = 775
	V26_2    int32 = 776
	V26_3    int32 = 777
)

// Min and Max are the oldest and newest supported protocol numbers; not every number between them exists.
const (
	Min = V1_8
	Max = V26_3
)

// Version is one protocol number: the releases that speak it, their packet ids and their traits. Compare pointers.
type Version struct {
	Protocol int32
	Names    []string // release names, oldest first; never empty
	// Like is the version of the game whose data this one has, as far as its file does not say otherwise: its own
	// number, unless a file added it.
	Like int32

	PlayerType int32 // the number of players among the kinds of entities; 0 where they have none
	// Described versions were added or mended by a [Description]; these are its Parsers.
	Described bool
	Parsers   []string

	tables [numStates][numDirs]uint8
	own    [numStates][numDirs]*table // in their place, where not nil
	traits traitSet
	blind  bool
}

// table is one id table, looked up in both directions. Versions with equal ids share one.
type table struct {
	byID     [256]Packet
	byPacket [numPackets]int16 // -1: not in this table
}

func newTable(layout *[256]Packet) *table {
	t := &table{byID: *layout}
	for p := range t.byPacket {
		t.byPacket[p] = -1
	}
	for id, p := range t.byID {
		if p != Unknown {
			t.byPacket[p] = int16(id)
		}
	}
	return t
}

var tables = func() []table {
	all := make([]table, len(layouts))
	for i := range all {
		all[i] = *newTable(&layouts[i])
	}
	return all
}()

var builtIn = func() []*Version {
	all := make([]*Version, len(versions))
	for i := range versions {
		v := &versions[i]
		v.Like, v.traits, v.PlayerType = v.Protocol, traitsOf(v.Protocol), playerTypeOf(v.Protocol)
		all[i] = v
	}
	return all
}()

// BuiltIn lists the versions that the program came with, ascending by protocol number. The caller must not change the
// slice.
func BuiltIn() []*Version { return builtIn }

// dense bounds the numbers by which a protocol is found by its place. The game's releases are below it, its snapshots
// far above.
const dense = 1024

// register holds the versions that are known at one time.
type register struct {
	list     []*Version
	releases [dense]*Version // the closest for numbers that are not in the list
	newest   *Version        // of the numbers that are not snapshots'
	span     string          // see Span
}

func newRegister(list []*Version) *register {
	r := &register{list: list, newest: list[0]}
	for i, v := range list {
		if v.Protocol >= snapshots {
			break
		}
		r.newest = v
		next := int32(dense)
		if i+1 < len(list) {
			next = min(next, list[i+1].Protocol)
		}
		for p := v.Protocol; p < next; p++ {
			r.releases[p] = v
		}
	}
	for p := range min(list[0].Protocol, dense) {
		r.releases[p] = list[0]
	}
	r.span = list[0].Names[0] + "-" + r.newest.Names[len(r.newest.Names)-1]
	return r
}

// known is replaced whole by Use.
var known = func() *atomic.Pointer[register] {
	p := new(atomic.Pointer[register])
	p.Store(newRegister(builtIn))
	return p
}()

// Use puts versions in force in addition to the built-in ones and in place of those with the same numbers; see
// [Describe]. None: the built-in ones alone. A *Version handed out before keeps its ids. It is for the whole process,
// and may be called at any time.
func Use(described ...*Version) {
	list := slices.Clone(builtIn)
	for _, v := range described {
		i, has := find(list, v.Protocol)
		if has {
			list[i] = v
		} else {
			list = slices.Insert(list, i, v)
		}
	}
	known.Store(newRegister(list))
}

func find(list []*Version, protocol int32) (int, bool) {
	return slices.BinarySearchFunc(list, protocol, func(v *Version, p int32) int { return cmp.Compare(v.Protocol, p) })
}

// Supported lists every known version, ascending by protocol number. The caller must not change the slice.
func Supported() []*Version { return known.Load().list }

// Lookup finds a protocol number; nil when it is not known.
func Lookup(protocol int32) *Version {
	r := known.Load()
	if uint32(protocol) < dense {
		if v := r.releases[protocol]; v.Protocol == protocol {
			return v
		}
		return nil
	}
	if i, ok := find(r.list, protocol); ok {
		return r.list[i]
	}
	return nil
}

// Newest returns the newest release that is known. Snapshots do not count.
func Newest() *Version { return known.Load().newest }

// Closest returns the version itself if it is known, else the one whose packets are most likely to be like its own: the
// newest before it, or the oldest there is.
func Closest(protocol int32) *Version {
	r := known.Load()
	switch {
	case uint32(protocol) < dense:
		return r.releases[protocol]
	case protocol < 0:
		return r.list[0]
	}
	if i, ok := find(r.list, protocol); ok {
		return r.list[i]
	}
	return r.newest
}

// Has tells whether the closest version to protocol has the trait.
func Has(protocol int32, t Trait) bool { return Closest(protocol).traits.has(t) }

// snapshots is the first number that the game gives its snapshots.
const snapshots = 1 << 30

// BuiltInLike returns the built-in version that a version is like: itself, unless a description added or mended it.
func BuiltInLike(v *Version) *Version {
	i, _ := find(builtIn, v.Like)
	return builtIn[i]
}

// Snapshot tells whether a protocol number is one of the game's snapshots, which are numbered apart from its releases.
func Snapshot(protocol int32) bool { return protocol >= snapshots }

// Span names the releases that are known, oldest and newest: 1.8-26.3.
func Span() string { return known.Load().span }

// Has tells whether the version has the trait.
func (v *Version) Has(t Trait) bool { return v.traits.has(t) }

// Unknowing returns a version of which only the number is known. Up to configuration it is as the newest release, and
// in configuration and play every packet is Unknown.
func Unknowing(protocol int32) *Version {
	v := *Newest()
	v.Protocol, v.Names, v.blind = protocol, []string{fmt.Sprintf("protocol %d", protocol)}, true
	for _, s := range []State{Config, Play} {
		v.tables[s], v.own[s] = [numDirs]uint8{}, [numDirs]*table{}
	}
	return &v
}

// Blind tells whether the version came from [Unknowing].
func (v *Version) Blind() bool { return v.blind }

// table returns the ids of one state and direction.
func (v *Version) table(s State, d Dir) *table {
	if t := v.own[s][d]; t != nil {
		return t
	}
	return &tables[v.tables[s][d]]
}

// Table returns the packet of each id; ids not listed are Unknown. In handshake, status, login and configuration an
// Unknown id does not exist in the version; in play it may be one of the many packets that nobody here looks at. The
// caller must not change the table.
func (v *Version) Table(s State, d Dir) *[256]Packet { return &v.table(s, d).byID }

// ID returns the id of p, and false when the version has no such packet in that state and direction.
func (v *Version) ID(s State, d Dir, p Packet) (int32, bool) {
	if p >= numPackets {
		return 0, false
	}
	id := v.table(s, d).byPacket[p]
	return int32(id), id >= 0
}

// HasConfiguration tells whether the version has the Config state between login and play.
func (v *Version) HasConfiguration() bool { return v.traits.has(Configuration) }
