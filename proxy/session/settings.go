package session

import (
	"net/netip"
	"time"

	"github.com/earshot-mc/earshot/proxy/auth"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/floodgate"
	"github.com/earshot-mc/earshot/proxy/health"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/status"
)

// Settings are an administrator's choices about players. They are never changed, but replaced by [Core.Apply].
type Settings struct {
	Auth   *auth.Auth     // for Online
	Status *status.Status // nil: pings are not answered

	HideAddresses bool // keep players' addresses out of the log, of connections from then on

	Online          bool    // players must be known to the session server
	AcceptTransfers bool    // another server may send players here
	OddNames        bool    // with Online: take any name the session server vouches for, not only [A-Za-z0-9_]{1,16}
	LenientErrors   bool    // tell 1.20.5-1.21.1 clients to overlook packets that they cannot read
	Unknown         Unknown // for clients of unknown versions
	BehindProxy     bool    // handshakes may carry another proxy's forwarding data, so the first frames may be larger

	Bedrock *Bedrock // players of Bedrock Edition through Geyser; nil: they are refused

	Threshold  int    // compression towards the client from so many bytes on; negative: none
	Level      int    // 1 to 9, for frames that are compressed here; 0: the default
	Brand      string // shown in brackets behind the backend's brand; empty: the brand passes unchanged
	MaxMessage int    // bytes in a plugin message of a client; 0: 32767, as the game has it

	// Channels is how often a client may say something on the plugin channels that the proxy cares about: its own, and
	// those for registering channels. More ends the session. The zero Rate: 10 a second, 200 at once.
	Channels limit.Rate

	KeepPacks bool // the resource packs of the server a player leaves stay with it, in versions that can unload them

	Servers []backend.Server // names are compared without case
	Try     []string         // servers to offer a newcomer, in order; unknown ones are skipped

	Hosts []Host // by host name; no name twice

	// FinalReasons are words that make a kick final: when the reason has one, the player is not taken to another
	// server. Case does not matter.
	FinalReasons []string

	Fallback  Fallback
	Health    health.Policy
	TCPChecks bool // servers are checked by a connection alone, not by a ping

	Timeouts Timeouts

	byName hosts
}

// Unknown is the policy for clients of versions above the newest release of [proto.Supported]. Older ones, and numbers
// between two known ones, are always refused.
type Unknown uint8

// The policies.
const (
	UnknownPass      Unknown = iota // releases are let in, see relayed.go
	UnknownSnapshots                // snapshots too
	UnknownRefuse                   // nobody is
)

// Takes tells whether clients of an unknown version are let in.
func (u Unknown) Takes(protocol int32) bool {
	switch u {
	case UnknownPass:
		return protocol > proto.Newest().Protocol && !proto.Snapshot(protocol)
	case UnknownSnapshots:
		return protocol > proto.Newest().Protocol
	}
	return false
}

// Bedrock says whom to believe about a player of Bedrock Edition.
type Bedrock struct {
	Key     *floodgate.Key
	Trusted []netip.Prefix // where Geyser connects from
	Prefix  string         // of the names of players without a Java account
}

// Timeouts of each wait. Zero means the default.
type Timeouts struct {
	Handshake     time.Duration // first byte to the end of the handshake: 10 s
	Login         time.Duration // first byte to login acknowledged, everything included: 30 s
	Read          time.Duration // silence of the client, or of the backend it is on: 30 s
	Write         time.Duration // no byte taken by a peer that has something to take: 30 s
	BackendDial   time.Duration // 5 s
	BackendLogin  time.Duration // handshake to login success: 10 s
	BackendConfig time.Duration // silence of a backend in configuration: 30 s
	BackendJoin   time.Duration // login or configuration done, to join game: 30 s
	ConfigAnswer  time.Duration // a change of state to its acknowledgement by the client: 15 s
	Replace       time.Duration // how long a newcomer waits for the same account's old session to be gone: 5 s
}

// withDefaults fills in what is zero.
func (s Settings) withDefaults() *Settings {
	if s.MaxMessage <= 0 {
		s.MaxMessage = maxClientMessage
	}
	if s.Channels == (limit.Rate{}) {
		s.Channels = limit.Rate{PerSecond: 10, Burst: 200}
	}
	s.byName = newHosts(s.Hosts)
	if s.Health.Timeout <= 0 {
		s.Health.Timeout = 2 * time.Second
	}
	if s.Fallback.Within <= 0 {
		s.Fallback.Within = time.Minute
	}
	if s.Fallback.Moves == (limit.Rate{}) {
		s.Fallback.Moves = limit.Rate{PerSecond: 20, Burst: 1}
	}
	t := &s.Timeouts
	for _, x := range []struct {
		d       *time.Duration
		seconds int
	}{
		{&t.Handshake, 10}, {&t.Login, 30}, {&t.Read, 30}, {&t.Write, 30}, {&t.BackendDial, 5},
		{&t.BackendLogin, 10}, {&t.BackendConfig, 30}, {&t.BackendJoin, 30}, {&t.ConfigAnswer, 15}, {&t.Replace, 5},
	} {
		if *x.d <= 0 {
			*x.d = time.Duration(x.seconds) * time.Second
		}
	}
	return &s
}
