package network

import (
	"sync/atomic"

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/bridge/invite"
	"github.com/earshot-mc/earshot/bridge/track"
	"github.com/earshot-mc/earshot/proxy/bungee"
	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
)

// export adds what the rooms count to /metrics.
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
	a.Counters("earshot_switches_total", "Players' ways to another server: done by request, refused by it, rescues from one that was lost, or returns from limbo.", "how", func(emit func(string, float64)) {
		emit("done", float64(c.Switches.Done.Load()))
		emit("refused", float64(c.Switches.Refused.Load()))
		emit("rescued", float64(c.Switches.Rescued.Load()))
		emit("returned", float64(c.Switches.Returned.Load()))
	})
	a.Gauge("earshot_lite_connections", "Connections that are passed on to a server as they are.", func() float64 { return float64(c.Lite.Open.Load()) })
	a.Counters("earshot_lite_connections_total", "Connections that were to be passed on to a server as they are: done, or failed since none could be reached.", "how", func(emit func(string, float64)) {
		emit("done", float64(c.Lite.Connections.Load()))
		emit("failed", float64(c.Lite.Failed.Load()))
	})
	directions("earshot_lite_bytes_total", "Bytes passed on with these, by direction.", func(d proto.Dir) uint64 { return c.Lite.Bytes[d].Load() })
	exportVersions(a, c, failures)
	for _, d := range []proto.Dir{proto.Serverbound, proto.Clientbound} {
		t := &c.Traffic[d]
		a.Counters("earshot_"+d.String()+"_frames_total", "Frames of players, by what was done with them: passed unopened, tapped for voice, held for a decision, or framed anew.", "how", func(emit func(string, float64)) {
			emit("passed", float64(t.Passed.Load()))
			emit("tapped", float64(t.Tapped.Load()))
			emit("held", float64(t.Held.Load()))
			emit("recoded", float64(t.Recoded.Load()))
		})
	}
	directions("earshot_bytes_total", "Bytes of players as they came in.", func(d proto.Dir) uint64 { return c.Traffic[d].Bytes.Load() })
	directions("earshot_packets_dropped_total", "Packets that came when they could not go on, such as answers that nobody waits for any more.", func(d proto.Dir) uint64 { return c.Dropped[d].Load() })
	a.Counter("earshot_queue_overflows_total", "Messages for players that a full queue refused.", func() float64 { return float64(c.Overflows.Load()) })
	directions("earshot_forged_total", "Plugin messages that only the proxy may send, and that were not forwarded, by direction.", func(d proto.Dir) uint64 { return c.Forged[d].Load() })
	a.Counter("earshot_relayed_misfits_total", "Logins of versions that are not known that were unlike the newest one's.", func() float64 { return float64(c.Relayed.Misfits.Load()) })
	a.Counters("earshot_server_requests_refused_total", "What servers wanted of their players' games and may not have: transfers to other addresses, and cookies.", "what", func(emit func(string, float64)) {
		emit("transfer", float64(c.NotAllowed.Transfers.Load()))
		emit("cookie", float64(c.NotAllowed.Cookies.Load()))
	})
	a.Counter("earshot_voice_offers_total", "Voice handshakes sent to players.", func() float64 { return float64(inviter.Offered.Load()) })

	a.Counter("earshot_voice_offers_refused_total", "Players told why they get no voice.", func() float64 { return float64(inviter.Unavailable.Load()) })
	a.Counter("earshot_voice_offers_ignored_total", "Plugin messages of clients on voice channels that were no hello.", func() float64 { return float64(inviter.Ignored.Load()) })

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

// exportCommands adds what became of players' commands and of servers' messages on BungeeCord's channel.
func exportCommands(a *admin.Admin, c *command.Counters, m *bungee.Messages) {
	counters := func(name, help, label string, of map[string]*atomic.Uint64) {
		a.Counters(name, help, label, func(emit func(string, float64)) {
			for value, n := range of {
				emit(value, float64(n.Load()))
			}
		})
	}
	counters("earshot_commands_total", "Players' commands run and completed here, over a limit, or signed though they are ours; chat and commands unreadable, and passed, or illegal.",
		"what", map[string]*atomic.Uint64{
			"run": &c.Commands, "completed": &c.Suggestions, "limited": &c.Limited, "unreadable": &c.Malformed, "illegal": &c.Illegal, "signed": &c.Signed,
		})
	counters("earshot_command_trees_total", "Servers' trees of commands with ours added, of these with mods' arguments unwrapped, or read in part; and those too odd for ours.",
		"what", map[string]*atomic.Uint64{"changed": &c.Trees, "unwrapped": &c.Unwrapped, "blind": &c.Blind, "refused": &c.Refused})
	counters("earshot_bungeecord_messages_total", "Servers' messages on BungeeCord's channel: done, unreadable, not allowed, over the budget, on no known subchannel, or forwarded to nobody.",
		"what", map[string]*atomic.Uint64{"done": &m.Handled, "unreadable": &m.Malformed, "refused": &m.Refused, "limited": &m.Limited, "unknown": &m.Unknown, "lost": &m.Lost})
}
