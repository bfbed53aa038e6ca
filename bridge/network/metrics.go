package network

import (
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/bridge/invite"
	"github.com/earshot-mc/earshot/bridge/rcon"
	"github.com/earshot-mc/earshot/bridge/track"
	"github.com/earshot-mc/earshot/proxy"
	"github.com/earshot-mc/earshot/proxy/bungee"
	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/health"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/store"
)

// export adds the parts' counts to /metrics.
func (n *Network) export(p *parts, failures *track.Failures) {
	p.turned.export(p.pages)
	exportServers(p.pages, p.server)
	export(p.pages, p.server.Counters(), p.server.Online, p.gateway.Stats, failures, p.inviter)
	exportCommands(p.pages, &n.controller.counters, n.backchannel.messages)
	exportState(p.pages, p.gateway.Stats, p.store.Health)
	p.pages.Gauges("earshot_tls_certificate_expires_seconds", "When each certificate of the port expires, as a Unix time; 0: there is none yet.", "names", func(emit func(string, float64)) {
		for _, c := range n.certs.Last() {
			until := 0.0
			if !c.Until.IsZero() {
				until = float64(c.Until.Unix())
			}
			emit(strings.Join(c.Names, ","), until)
		}
	})
}

// export adds the counts of players, their connections and their voices to /metrics.
func export(a *admin.Admin, c *session.Counters, online func() int, stats func() voice.Stats, failures *track.Failures, inviter *invite.Inviter) {
	directions := func(name, help string, read func(d proto.Dir) uint64) {
		a.Counters(name, help, "direction", func(emit func(string, float64)) {
			for _, d := range []proto.Dir{proto.Serverbound, proto.Clientbound} {
				emit(d.String(), float64(read(d)))
			}
		})
	}
	a.Gauge("earshot_players", "Players on the proxy.", func() float64 { return float64(online()) })
	a.Counter("earshot_connections_total", "Minecraft connections accepted.", func() float64 { return float64(c.Connections.Load()) })
	a.Counter("earshot_logins_total", "Players let in.", func() float64 { return float64(c.Logins.Load()) })
	a.Counters("earshot_connections_ended_total", "Minecraft connections by how they ended.", "why", func(emit func(string, float64)) {
		for _, e := range session.Endings() {
			emit(e.String(), float64(c.Ended(e)))
		}
	})
	a.Counter("earshot_backend_dials_total", "Backend connections tried.", func() float64 { return float64(c.Dials.Load()) })
	a.Counter("earshot_backend_dial_failures_total", "Backend connections that were refused or failed before the login was complete.", func() float64 { return float64(c.DialFails.Load()) })
	a.Counters("earshot_switches_total", "Players' moves to another server (label how): done by request, refused by it, rescued from a lost one, returned from limbo.", "how", func(emit func(string, float64)) {
		emit("done", float64(c.Switches.Done.Load()))
		emit("refused", float64(c.Switches.Refused.Load()))
		emit("rescued", float64(c.Switches.Rescued.Load()))
		emit("returned", float64(c.Switches.Returned.Load()))
	})
	a.Gauge("earshot_lite_connections", "Connections that are passed on to a server as they are.", func() float64 { return float64(c.Lite.Open.Load()) })
	a.Counters("earshot_lite_connections_total", "Connections for lite routes (label how): passed on, or failed since no server could be reached.", "how", func(emit func(string, float64)) {
		emit("done", float64(c.Lite.Connections.Load()))
		emit("failed", float64(c.Lite.Failed.Load()))
	})
	directions("earshot_lite_bytes_total", "Bytes passed on by lite routes, by direction.", func(d proto.Dir) uint64 { return c.Lite.Bytes[d].Load() })
	exportVersions(a, c, failures)
	for _, d := range []proto.Dir{proto.Serverbound, proto.Clientbound} {
		t := &c.Traffic[d]
		a.Counters("earshot_"+d.String()+"_frames_total", "Frames of players (label how): passed unopened, tapped for voice, held for a decision, re-framed.", "how", func(emit func(string, float64)) {
			emit("passed", float64(t.Passed.Load()))
			emit("tapped", float64(t.Tapped.Load()))
			emit("held", float64(t.Held.Load()))
			emit("recoded", float64(t.Recoded.Load()))
		})
	}
	directions("earshot_bytes_total", "Bytes received from players and their servers, by direction.", func(d proto.Dir) uint64 { return c.Traffic[d].Bytes.Load() })
	directions("earshot_packets_dropped_total", "Packets dropped because they came too late, such as answers that nobody waits for any more.", func(d proto.Dir) uint64 { return c.Dropped[d].Load() })
	a.Counter("earshot_queue_overflows_total", "Messages for players refused by a full queue.", func() float64 { return float64(c.Overflows.Load()) })
	directions("earshot_forged_total", "Plugin messages dropped because only the proxy may send them, by direction.", func(d proto.Dir) uint64 { return c.Forged[d].Load() })
	a.Counter("earshot_relayed_misfits_total", "Logins of unknown versions that did not fit the newest known one.", func() float64 { return float64(c.Relayed.Misfits.Load()) })
	a.Counters("earshot_server_requests_refused_total", "Requests of servers to their players' games that the settings refuse (label what): transfers to other addresses, cookies.", "what", func(emit func(string, float64)) {
		emit("transfer", float64(c.NotAllowed.Transfers.Load()))
		emit("cookie", float64(c.NotAllowed.Cookies.Load()))
	})
	a.Counter("earshot_voice_offers_total", "Voice handshakes sent to players.", func() float64 { return float64(inviter.Offered.Load()) })

	a.Counter("earshot_voice_offers_refused_total", "Players told why they get no voice.", func() float64 { return float64(inviter.Unavailable.Load()) })
	a.Counter("earshot_voice_offers_ignored_total", "Plugin messages of clients on voice channels that were not a hello.", func() float64 { return float64(inviter.Ignored.Load()) })

	a.Gauge("earshot_voice_sockets", "Voice sockets that are open.", func() float64 { return float64(stats().Sockets) })
	a.Counter("earshot_voice_frames_in_total", "Voice frames that came in.", func() float64 { return float64(stats().Frames) })
	a.Counter("earshot_voice_frames_delivered_total", "Voice frames handed to listeners.", func() float64 { return float64(stats().Delivered) })
	labels := func(name, help, label string, read func(voice.Stats) map[string]uint64) {
		a.Counters(name, help, label, func(emit func(string, float64)) {
			for k, n := range read(stats()) {
				emit(k, float64(n))
			}
		})
	}
	labels("earshot_voice_frames_dropped_total", "Voice frames that came in and were not routed, by reason.", "reason", func(s voice.Stats) map[string]uint64 { return s.Dropped })
	labels("earshot_voice_frames_lost_total", "Voice frames that a listener's socket could not take, by reason.", "reason", func(s voice.Stats) map[string]uint64 { return s.Lost })
	labels("earshot_voice_sockets_ended_total", "Voice sockets by close code, or peer, dead, broken.", "why", func(s voice.Stats) map[string]uint64 { return s.Ended })
}

// exportCommands adds the outcomes of players' commands and of servers' messages on BungeeCord's channel.
func exportCommands(a *admin.Admin, c *command.Counters, m *bungee.Messages) {
	counters := func(name, help, label string, of map[string]*atomic.Uint64) {
		a.Counters(name, help, label, func(emit func(string, float64)) {
			for value, n := range of {
				emit(value, float64(n.Load()))
			}
		})
	}
	counters("earshot_commands_total", "Proxy commands by outcome (label what): run, completed, limited, signed, unreadable, illegal.",
		"what", map[string]*atomic.Uint64{
			"run": &c.Commands, "completed": &c.Suggestions, "limited": &c.Limited, "unreadable": &c.Malformed, "illegal": &c.Illegal, "signed": &c.Signed,
		})
	counters("earshot_command_trees_total", "Servers' command trees by outcome (label what): changed to add the proxy's commands, unwrapped from mods' arguments, blind (read in part), refused.",
		"what", map[string]*atomic.Uint64{"changed": &c.Trees, "unwrapped": &c.Unwrapped, "blind": &c.Blind, "refused": &c.Refused})
	counters("earshot_bungeecord_messages_total", "Servers' messages on BungeeCord's channel by outcome (label what): done, unreadable, refused, limited, unknown, lost.",
		"what", map[string]*atomic.Uint64{"done": &m.Handled, "unreadable": &m.Malformed, "refused": &m.Refused, "limited": &m.Limited, "unknown": &m.Unknown, "lost": &m.Lost})
}

// exportRemote adds what RCON counts to /metrics, zeros where there is none.
func exportRemote(a *admin.Admin, s *rcon.Server) {
	if s == nil {
		s = &rcon.Server{}
	}
	a.Gauge("earshot_rcon_connections", "RCON connections that are open.", func() float64 { return float64(s.Open()) })
	a.Counter("earshot_rcon_logins_total", "RCON logins with the right password.", func() float64 { return float64(s.Logins.Load()) })
	a.Counter("earshot_rcon_commands_total", "Commands given over RCON.", func() float64 { return float64(s.Commands.Load()) })
}

// exportServers adds the state of servers to /metrics.
func exportServers(a *admin.Admin, p *proxy.Server) {
	a.Gauge("earshot_players_held", "Players who are in limbo because no server took them.", func() float64 { return float64(p.Counters().Held.Load()) })
	gauges := func(name, help string, read func(f health.Facts) float64) {
		a.Gauges(name, help, "server", func(emit func(string, float64)) {
			for _, f := range p.Health() {
				emit(f.Server, read(f))
			}
		})
	}
	gauges("earshot_server_breaker", "Circuit breaker of each server: 0 closed, 1 half-open, 2 open.", func(f health.Facts) float64 { return float64(f.State) })
	gauges("earshot_server_draining", "1 for servers that get no new players.", func(f health.Facts) float64 {
		if f.Draining {
			return 1
		}
		return 0
	})
	gauges("earshot_server_check_seconds", "Seconds that each server took for the last check that it answered.", func(f health.Facts) float64 { return f.Took.Seconds() })
	a.Counters("earshot_server_checks_total", "Checks of servers, by outcome.", "outcome", func(emit func(string, float64)) {
		failed, answered := p.Checks()
		emit("failed", float64(failed))
		emit("answered", float64(answered))
	})
}

// exportState adds the lasting state, and its health, to /metrics.
func exportState(a *admin.Admin, stats func() voice.Stats, health func() store.Health) {
	a.Gauge("earshot_voice_groups", "Groups of players.", func() float64 { return float64(stats().Groups) })
	a.Gauge("earshot_voice_group_members", "Players in groups.", func() float64 { return float64(stats().Members) })
	a.Gauge("earshot_voice_mutes", "Server mutes in force.", func() float64 { return float64(stats().Mutes) })
	a.Gauge("earshot_state_up", "1 when lasting state can be stored, else 0.", func() float64 {
		if health().OK {
			return 1
		}
		return 0
	})
	a.Gauge("earshot_state_waiting", "Changes that are in force but not stored yet.", func() float64 { return float64(health().Waiting) })
	a.Gauge("earshot_state_missing", "Stored records that were lost or damaged at the start and have no copy.", func() float64 { return float64(health().Missing) })
	a.Counter("earshot_state_restored_total", "Stored records that were lost or damaged and came back from a copy.", func() float64 { return float64(health().Restored) })
	a.Counter("earshot_state_set_aside_total", "Stored records that could not be read and were set aside.", func() float64 { return float64(health().Aside) })
}

// exportVersions adds misfits of the known versions to /metrics.
func exportVersions(a *admin.Admin, c *session.Counters, failures *track.Failures) {
	a.CountersBy("earshot_undecoded_total", "Packets that could not be decoded and were forwarded as they are, by packet and protocol number.",
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
	a.Gauge("earshot_relayed_players", "Players of unknown versions on the proxy; they get neither commands nor voice.",
		func() float64 { return float64(c.Relayed.Players.Load()) })
	a.Counter("earshot_relayed_logins_total", "Players of unknown versions let in.", func() float64 { return float64(c.Relayed.Logins.Load()) })
	a.Counters("earshot_relayed_versions_total", "Players of unknown versions let in, by protocol number; the first 16 numbers are told apart.", "version", func(emit func(string, float64)) {
		c.Relayed.Each(func(protocol int32, logins uint64) { emit(strconv.Itoa(int(protocol)), float64(logins)) })
	})
}
