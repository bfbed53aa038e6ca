package network

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/bridge/track"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
)

// Versions makes what the files of the folder versions describe.
func Versions(l *configs.Loaded) (all []*proto.Version, err error) {
	for _, f := range l.Versions {
		v, err := proto.Describe(proto.Description{
			Protocol: int32(f.Protocol), Names: f.Names, Like: int32(f.Like), Packets: f.IDs, Report: f.Report, Traits: f.Traits,
			Parsers: f.Parsers, PlayerType: int32(f.PlayerType),
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.File, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// redescribed names the files of versions that are new, gone or other than they were.
func redescribed(from, to *configs.Loaded) (all []string) {
	was := map[string]*configs.Version{}
	for _, v := range from.Versions {
		was[v.File] = v
	}
	name := func(v *configs.Version) string { return filepath.Join(configs.VersionsName, filepath.Base(v.File)) }
	for _, v := range to.Versions {
		switch old := was[v.File]; {
		case old == nil:
			all = append(all, name(v)+": added")
		case !reflect.DeepEqual(old, v):
			all = append(all, name(v)+": the file has changed")
		}
		delete(was, v.File)
	}
	for _, v := range from.Versions {
		if was[v.File] != nil {
			all = append(all, name(v)+": removed")
		}
	}
	return all
}

// exportVersions adds to /metrics what does not fit the versions we know.
func exportVersions(a *admin.Admin, c *session.Counters, failures *track.Failures) {
	a.CountersBy("earshot_undecoded_total", "Packets that could not be decoded, and were forwarded all the same, by protocol number.",
		[]string{"packet", "version"}, func(emit func(n float64, labels ...string)) {
			type row struct {
				protocol int32
				packet   proto.Packet
			}
			sum := map[row]uint64{}
			for _, p := range append(session.Reads(), track.Reads()...) {
				sum[row{proto.Newest().Protocol, p}] = 0
			}
			add := func(protocol int32, p proto.Packet, n uint64) { sum[row{protocol, p}] += n }
			c.Undecoded.Each(add)
			failures.Each(add)
			for r, n := range sum {
				emit(float64(n), r.packet.String(), strconv.Itoa(int(r.protocol)))
			}
		})
	a.Gauge("earshot_relayed_players", "Players of versions that nobody knows, who get neither commands nor voice.",
		func() float64 { return float64(c.Relayed.Players.Load()) })
	a.Counter("earshot_relayed_logins_total", "Players of such versions let in.", func() float64 { return float64(c.Relayed.Logins.Load()) })
	a.Counters("earshot_relayed_versions_total", "Of these, by protocol number; the first 16 numbers are told apart.", "version", func(emit func(string, float64)) {
		c.Relayed.Each(func(protocol int32, logins uint64) { emit(strconv.Itoa(int(protocol)), float64(logins)) })
	})
}

// unknownVersions is what becomes of clients of versions that nobody knows.
func unknownVersions(s string) session.Unknown {
	return map[string]session.Unknown{"pass": session.UnknownPass, "snapshots": session.UnknownSnapshots, "refuse": session.UnknownRefuse}[s]
}
