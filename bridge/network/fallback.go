package network

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy"
	"github.com/earshot-mc/earshot/proxy/health"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/session"
)

// fallback puts how players find servers, and how these are judged, into settings.
func fallback(s *session.Settings, l *configs.Loaded) error {
	strategy, err := session.ParseStrategy(l.Fallback.Strategy)
	if err != nil {
		return fmt.Errorf("fallback.strategy: %w", err)
	}
	f := l.Fallback
	s.Fallback = session.Fallback{
		Strategy: strategy, Attempts: f.Attempts, Within: time.Duration(f.Within), EndOnLoss: !f.AfterLoss, Stranded: !f.Return,
		Moves: limit.Rate{PerSecond: f.Moves, Burst: 1},
	}
	s.Health = health.Policy{Failures: l.Health.Failures, Interval: time.Duration(l.Health.Interval), Timeout: time.Duration(l.Health.Timeout)}
	s.TCPChecks = l.Health.Check == "tcp"
	return nil
}

// drain implements commands.Program's Drain.
func (d *desk) drain(server string, on, move bool, done func(commands.Emptied)) error {
	return d.server.Drain(server, on, move, func(e session.Emptied) { done(commands.Emptied(e)) })
}

// draining reports whether a server is to get no new players.
func (d *desk) draining(server string) bool {
	return slices.ContainsFunc(d.server.Health(), func(f health.Facts) bool { return f.Draining && strings.EqualFold(f.Server, server) })
}

// judged puts into a list of servers what is known of how they do.
func judged(list []commands.Server, known []health.Facts) []commands.Server {
	of := map[string]health.Facts{}
	for _, f := range known {
		of[strings.ToLower(f.Server)] = f
	}
	out := make([]commands.Server, len(list))
	for i, s := range list {
		f := of[strings.ToLower(s.Name)]
		s.Down, s.Draining = f.State == health.Open, f.Draining
		out[i] = s
	}
	return out
}

// troubles are the facts for a status about servers that do not take players as usual.
func troubles(known []health.Facts) (all []commands.Fact) {
	for _, f := range known {
		say := func(key string, named ...string) {
			all = append(all, commands.Fact{Key: key, Named: append(named, "server", f.Server)})
		}
		if f.Draining {
			say("status-draining")
		}
		count, in := strconv.Itoa(f.Failures), time.Until(f.Next)
		switch {
		case f.State == health.HalfOpen:
			say("status-half-open")
		case f.State == health.Open && in > 0:
			say("status-open-until", "count", count, "duration", in.Round(time.Second/10).String())
		case f.State == health.Open:
			say("status-open", "count", count)
		}
	}
	return all
}

// exportServers adds what is known of servers to /metrics.
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
	gauges("earshot_server_check_seconds", "How long each server took to answer the last check that it answered.", func(f health.Facts) float64 { return f.Took.Seconds() })
	a.Counters("earshot_server_checks_total", "Checks of servers, by outcome.", "outcome", func(emit func(string, float64)) {
		failed, answered := p.Checks()
		emit("failed", float64(failed))
		emit("answered", float64(answered))
	})
}
