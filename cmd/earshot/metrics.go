package main

import (
	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/bridge/invite"
	"github.com/earshot-mc/earshot/bridge/track"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
)

// export adds what the rooms count to /metrics.
func export(a *admin.Admin, c *session.Counters, online func() int, stats func() voice.Stats, failures *track.Failures, inviter *invite.Inviter) {
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
	a.Counters("earshot_lite_bytes_total", "Bytes passed on with these, by direction.", "direction", func(emit func(string, float64)) {
		for _, d := range []proto.Dir{proto.Serverbound, proto.Clientbound} {
			emit(d.String(), float64(c.Lite.Bytes[d].Load()))
		}
	})
	a.Counters("earshot_undecoded_total", "Packets that could not be decoded, and were forwarded all the same.", "packet", func(emit func(string, float64)) {
		failures.Each(func(p proto.Packet, n uint64) { emit(p.String(), float64(n)) })
	})
	a.Counters("earshot_forged_total", "Plugin messages that only the proxy may send, and that were not forwarded, by direction.", "direction", func(emit func(string, float64)) {
		for _, d := range []proto.Dir{proto.Serverbound, proto.Clientbound} {
			emit(d.String(), float64(c.Forged[d].Load()))
		}
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
