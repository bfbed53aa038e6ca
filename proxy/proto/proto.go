// Package proto knows which packet an id is, for every game version, connection state and direction.
//
// It promises that nobody guesses: the tables are generated from published protocol data (tables.go), a version
// without data is not Supported, and an id the tables do not name is Unknown. Looking an id up is one array access.
package proto

//go:generate go run ./gen testdata/packet_ids.json.gz tables.go

import "slices"

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

// String is the state's name as logs and metrics show it.
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

// String is the direction's name as logs and metrics show it.
func (d Dir) String() string {
	return [...]string{"serverbound", "clientbound", "invalid"}[min(d, numDirs)]
}

// Packet names a packet, whatever its id is in some version. The same constant stands for the same thing in every
// state and direction (KeepAlive, Disconnect, CustomPayload); its body may differ between them and between versions.
type Packet uint8

// String is the packet's name in snake case, "unknown" for Unknown.
func (p Packet) String() string { return packetNames[min(int(p), len(packetNames)-1)] }

// ByName finds the packet whose String is name.
func ByName(name string) (Packet, bool) {
	i := slices.Index(packetNames[1:numPackets], name) + 1
	return Packet(i), i > 0
}

// First protocol numbers of the releases at which something changes for a proxy.
const (
	V1_8    int32 = 47
	V1_9    int32 = 107
	V1_9_1  int32 = 108
	V1_10   int32 = 210
	V1_11   int32 = 315
	V1_12   int32 = 335
	V1_12_1 int32 = 338
	V1_12_2 int32 = 340
	V1_13   int32 = 393
	V1_14   int32 = 477
	V1_15   int32 = 573
	V1_16   int32 = 735
	V1_16_2 int32 = 751
	V1_17   int32 = 755
	V1_18   int32 = 757
	V1_19   int32 = 759
	V1_19_1 int32 = 760
	V1_19_3 int32 = 761
	V1_19_4 int32 = 762
	V1_20   int32 = 763
	V1_20_2 int32 = 764
	V1_20_3 int32 = 765
	V1_20_5 int32 = 766
	V1_21   int32 = 767
	V1_21_2 int32 = 768
	V1_21_4 int32 = 769
	V1_21_5 int32 = 770
	V1_21_6 int32 = 771
	V1_21_9 int32 = 773
	V26_1   int32 = 775
)

// Min and Max are the oldest and newest supported protocol numbers; not every number between them exists.
const (
	Min = V1_8
	Max = V26_1
)

// Version is one protocol number: the releases that speak it and their packet ids. Compare pointers.
type Version struct {
	Protocol int32
	Names    []string // release names, oldest first; never empty
	tables   [numStates][numDirs]uint8
}

// table is one id table, in both directions of look-up. Versions with equal ids share one.
type table struct {
	byID     [256]Packet
	byPacket [numPackets]int16 // -1: not in this table
}

var tables = func() []table {
	all := make([]table, len(layouts))
	for i := range all {
		t := &all[i]
		t.byID = layouts[i]
		for p := range t.byPacket {
			t.byPacket[p] = -1
		}
		for id, p := range t.byID {
			if p != Unknown {
				t.byPacket[p] = int16(id)
			}
		}
	}
	return all
}()

var supported = func() []*Version {
	all := make([]*Version, len(versions))
	for i := range versions {
		all[i] = &versions[i]
	}
	return all
}()

// Supported lists every version, ascending by protocol number. The caller must not change the slice.
func Supported() []*Version { return supported }

// Lookup finds a protocol number; nil when it is not supported.
func Lookup(protocol int32) *Version {
	i, ok := slices.BinarySearchFunc(supported, protocol, func(v *Version, p int32) int { return int(v.Protocol) - int(p) })
	if !ok {
		return nil
	}
	return supported[i]
}

// Table is the packet of each id; ids not listed are Unknown. In handshake, status, login and configuration an
// Unknown id does not exist in the version; in play it may be one of the many packets that nobody here looks at. The
// caller must not change the table.
func (v *Version) Table(s State, d Dir) *[256]Packet { return &tables[v.tables[s][d]].byID }

// ID is the id of p, false when the version has no such packet in that state and direction.
func (v *Version) ID(s State, d Dir, p Packet) (int32, bool) {
	if p >= numPackets {
		return 0, false
	}
	id := tables[v.tables[s][d]].byPacket[p]
	return int32(id), id >= 0
}

// HasConfiguration tells whether the version has the Config state between login and play.
func (v *Version) HasConfiguration() bool { return v.Protocol >= V1_20_2 }
