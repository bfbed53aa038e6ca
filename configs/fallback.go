package configs

import "time"

// Fallback says how players without a server find one: newcomers, and those who lost theirs.
type Fallback struct {
	Strategy  string   `yaml:"strategy"`         // sequential, random, least-players
	Attempts  int      `yaml:"attempts"`         // servers in a row; 0: all of the list
	Within    Duration `yaml:"within"`           // for all of these attempts
	AfterLoss bool     `yaml:"after-loss"`       // also when a server breaks off without a kick
	Return    bool     `yaml:"return"`           // out of limbo, when a server is back
	Moves     float64  `yaml:"moves-per-second"` // players brought back or taken off a draining server
}

// Health says how to judge servers.
type Health struct {
	Check    string   `yaml:"check"`    // ping, tcp
	Interval Duration `yaml:"interval"` // 0: only doubtful servers
	Timeout  Duration `yaml:"timeout"`
	Failures int      `yaml:"failures"` // in a row, until a server is passed over
}

func defaultFallback() Fallback {
	return Fallback{Strategy: "sequential", Within: Duration(time.Minute), AfterLoss: true, Return: true, Moves: 20}
}

func defaultHealth() Health {
	return Health{Check: "ping", Timeout: Duration(2 * time.Second), Failures: 3}
}

func (l *Loaded) checkFallback(p *problems) {
	f, h := l.Fallback, l.Health
	p.oneOf("fallback.strategy", f.Strategy, "sequential", "random", "least-players")
	if f.Attempts < 0 {
		p.bad("fallback.attempts", "%d: must not be negative; 0 is all of the list", f.Attempts)
	}
	if d := time.Duration(f.Within); d < time.Second || d > time.Hour {
		p.bad("fallback.within", "%v: 1s to 1h", d)
	}
	if !(f.Moves > 0 && f.Moves <= 1000) {
		p.bad("fallback.moves-per-second", "%v: above 0, up to 1000", f.Moves)
	}
	p.oneOf("health.check", h.Check, "ping", "tcp")
	if d := time.Duration(h.Interval); d != 0 && (d < time.Second || d > time.Hour) {
		p.bad("health.interval", "%v: 1s to 1h, or 0 for none", d)
	}
	if d := time.Duration(h.Timeout); d < 100*time.Millisecond || d > time.Minute {
		p.bad("health.timeout", "%v: 100ms to 1m", d)
	}
	if h.Failures < 1 || h.Failures > 1000 {
		p.bad("health.failures", "%d: 1 to 1000", h.Failures)
	}
}
