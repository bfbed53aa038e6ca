// Package configs is everything an administrator can set: one YAML file, read strictly, each key also an EARSHOT_…
// variable, with defaults under which the program runs with no file at all.
//
// It knows no other package of ours; bridge/network translates its values.
package configs

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Config is the whole configuration. Field tags are the keys of the file.
type Config struct {
	Listen        string            `yaml:"listen"`         // host:port of the one TCP port
	Online        bool              `yaml:"online"`         // authenticate players with the session server
	SessionServer string            `yaml:"session-server"` // base URL of the session server
	Transfers     bool              `yaml:"accept-transfers"`
	Try           []string          `yaml:"try"` // server names in the order in which they are tried
	KeepPacks     bool              `yaml:"keep-resource-packs"`
	Final         []string          `yaml:"final-reasons"` // words in a kick's reason that disconnect for good
	Fallback      Fallback          `yaml:"fallback"`
	Health        Health            `yaml:"health"`
	Servers       map[string]Server `yaml:"servers"`
	Hosts         map[string]Host   `yaml:"hosts"`            // by host name
	UnknownHosts  string            `yaml:"unknown-hosts"`    // accept, refuse
	NewerVersions string            `yaml:"unknown-versions"` // pass, snapshots, refuse
	Forwarding    Forwarding        `yaml:"forwarding"`       // for every server that does not say otherwise
	Status        Status            `yaml:"status"`
	Limbo         Limbo             `yaml:"limbo"`
	Commands      Commands          `yaml:"commands"`
	Permissions   Permissions       `yaml:"permissions"`
	BungeeCord    string            `yaml:"bungeecord"` // full, self, off
	Bedrock       Bedrock           `yaml:"bedrock"`
	Languages     string            `yaml:"languages"` // folder of files with the texts for players
	Voice         Voice             `yaml:"voice"`
	State         State             `yaml:"state"`
	TLS           TLS               `yaml:"tls"`
	Proxy         ProxyProtocol     `yaml:"proxy-protocol"`
	HTTPProxies   []string          `yaml:"http-proxies"` // of reverse proxies that name the client in a header
	Admin         Admin             `yaml:"admin"`
	RCON          RCON              `yaml:"rcon"`
	Rooms         Rooms             `yaml:"rooms"`
	Walk          Walk              `yaml:"walk"`
	Compression   Compression       `yaml:"compression"`
	Limits        Limits            `yaml:"limits"`
	Timeouts      Timeouts          `yaml:"timeouts"`
	Log           Log               `yaml:"log"`

	ServerTransfers string `yaml:"server-transfers"` // allow, refuse: servers send players elsewhere
	ServerCookies   string `yaml:"server-cookies"`   // allow, refuse: servers store and read cookies of clients
}

// Server is one backend. The name "limbo" is taken by the built-in world.
type Server struct {
	Address    string `yaml:"address"`              // host:port
	Forwarding string `yaml:"forwarding,omitempty"` // none, legacy, bungeeguard, modern; empty: the global one
	Secret     Secret `yaml:"secret,omitempty"`
	SecretFile string `yaml:"secret-file,omitempty"`
	SendProxy  bool   `yaml:"send-proxy-protocol,omitempty"`
	BungeeCord string `yaml:"bungeecord,omitempty"`     // empty: the global one
	Floodgate  bool   `yaml:"floodgate,omitempty"`      // pass on Geyser's data about players of Bedrock Edition
	Transfers  string `yaml:"transfers,omitempty"`      // allow, refuse; empty: as server-transfers
	Cookies    string `yaml:"cookies,omitempty"`        // allow, refuse; empty: as server-cookies
	Visibility string `yaml:"visibility,omitempty"`     // seen, tab-list, everyone; empty: voice.visibility
	Bodies     string `yaml:"missing-bodies,omitempty"` // learn, hide, ignore; empty: learn
	Restricted bool   `yaml:"restricted,omitempty"`     // players need the permission earshot.server.NAME
}

// UnmarshalYAML also takes an address alone, for a server without other settings.
func (s *Server) UnmarshalYAML(unmarshal func(any) error) error {
	if err := unmarshal(&s.Address); err == nil {
		return nil
	}
	type fields Server
	return unmarshal((*fields)(s))
}

// Forwarding says how a backend learns who a player is.
type Forwarding struct {
	Mode       string `yaml:"mode"`
	Secret     Secret `yaml:"secret"`
	SecretFile string `yaml:"secret-file"`
}

// Status holds the server list entry.
type Status struct {
	MOTD       string   `yaml:"motd"` // MiniMessage, § or & codes, or JSON
	Icon       string   `yaml:"icon"` // a 64×64 PNG file, or a data URI
	MaxPlayers int      `yaml:"max-players"`
	Sample     string   `yaml:"sample"` // off, players, lines
	Lines      []string `yaml:"sample-lines"`

	Passthrough []string `yaml:"passthrough"` // of StatusFields
	Cache       Duration `yaml:"passthrough-cache"`
}

// Limbo holds the settings of the built-in world.
type Limbo struct {
	Message string `yaml:"message"` // empty: a text of the table, in the player's language; off: none
}

// Voice holds the settings of the voice gateway.
type Voice struct {
	Enabled    bool               `yaml:"enabled"`
	PublicURL  string             `yaml:"public-url"`      // base URL for clients; empty: their address
	Origins    []string           `yaml:"allowed-origins"` // for browsers, in addition to the gateway's own host
	Page       bool               `yaml:"page"`            // browsers are served the voice page
	Name       string             `yaml:"name"`            // the network's, on the page; empty: its host name
	Invite     string             `yaml:"invite"`          // how players are told of the page: chat, off
	Range      float64            `yaml:"range"`           // blocks
	Worlds     map[string]float64 `yaml:"worlds"`          // world or server/world → range
	Regions    map[string]Region  `yaml:"regions"`         // by name
	Whisper    float64            `yaml:"whisper"`         // times the range; 0: not offered
	Shout      float64            `yaml:"shout"`
	Spectators string             `yaml:"spectators"` // who hears a spectator: nobody, spectators, everyone
	Visibility string             `yaml:"visibility"` // seen, tab-list, everyone
	Groups     Groups             `yaml:"groups"`
	Soundboard bool               `yaml:"soundboard"` // clips that players play to those around

	Sounds string `yaml:"sounds"` // a directory

	// The voices that players are given outright.
	Domains map[string][]string `yaml:"domains"` // by name: the UUIDs of players who all hear each other
	Listens []Listen            `yaml:"listens"`
	Edges   []Edge              `yaml:"edges"`
}

// TLS makes the game port answer TLS as well, for https and wss.
type TLS struct {
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
	ACME        ACME   `yaml:"acme"`
	SelfSigned  bool   `yaml:"self-signed"`
}

// ACME is an authority that gives certificates for host names.
type ACME struct {
	Hosts     []string `yaml:"hosts"`
	Email     string   `yaml:"email"`
	Directory string   `yaml:"directory"` // URL; empty: Let's Encrypt
	RootCA    string   `yaml:"root-ca"`   // file, where the system does not trust the directory
}

// ProxyProtocol holds the load balancers in front of Earshot.
type ProxyProtocol struct {
	Trusted  []string `yaml:"trusted"` // networks that may send a PROXY header
	Required bool     `yaml:"required"`
}

// Admin holds who may read /metrics.
type Admin struct {
	Networks []string `yaml:"networks"` // that may read /metrics
	Hosts    []string `yaml:"hosts"`    // names by which it may be asked for, in addition to the known ones
}

// Compression holds the compression towards the client.
type Compression struct {
	Threshold int `yaml:"threshold"` // bytes; -1 switches it off
	Level     int `yaml:"level"`     // 1-9, for frames that are compressed here
}

// Rate is a token bucket: so many a second, so many at once.
type Rate struct {
	PerSecond float64 `yaml:"per-second"`
	Burst     int     `yaml:"burst"`
}

// Limits bound what a stranger can cost. Rates count per network: an IPv4 /24, an IPv6 /64.
type Limits struct {
	Connections Rate     `yaml:"connections"`
	Logins      Rate     `yaml:"logins"`
	Status      Rate     `yaml:"status"`
	Exempt      []string `yaml:"exempt"`  // networks without these rates
	Pending     int      `yaml:"pending"` // connections that are not players yet
	HTTP        int      `yaml:"http"`    // HTTP connections that are no voice sockets

	PluginMessage int  `yaml:"plugin-message"` // bytes in one of a client
	BungeeCord    Rate `yaml:"bungeecord"`     // messages of each server on BungeeCord's channel
	Channels      Rate `yaml:"channels"`       // messages of each client about plugin channels and voice
}

// Timeouts of each wait.
type Timeouts struct {
	FirstByte     Duration `yaml:"first-byte"`
	Login         Duration `yaml:"login"`
	Read          Duration `yaml:"read"`
	Write         Duration `yaml:"write"`
	BackendDial   Duration `yaml:"backend-dial"`
	BackendLogin  Duration `yaml:"backend-login"`
	BackendConfig Duration `yaml:"backend-configuration"`
	BackendJoin   Duration `yaml:"backend-join"`
	SessionServer Duration `yaml:"session-server"`
	ConfigAnswer  Duration `yaml:"configuration-answer"`
}

// Log says how the program reports.
type Log struct {
	Level     string `yaml:"level"`  // debug, info, warn, error
	Format    string `yaml:"format"` // text, json
	Addresses bool   `yaml:"player-addresses"`
}

// Secret never prints.
type Secret string

const hidden = "(hidden)"

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// MarshalYAML hides the value.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// Duration is written 5s or 1m30s; a bare number is milliseconds.
type Duration time.Duration

// UnmarshalYAML accepts both forms.
func (d *Duration) UnmarshalYAML(n ast.Node) error {
	text := n.GetToken().Value
	if ms, err := strconv.ParseInt(text, 10, 32); err == nil {
		*d = Duration(time.Duration(ms) * time.Millisecond)
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return &yaml.SyntaxError{Message: fmt.Sprintf("%q is no duration: write 5s, 1m30s or milliseconds", text), Token: n.GetToken()}
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML writes the first form.
func (d Duration) MarshalYAML() (any, error) { return time.Duration(d).String(), nil }

// LimboName is the built-in world's server name.
const LimboName = "limbo"

// Default returns the configuration of a program without a file.
func Default() Config {
	s := func(n float64) Duration { return Duration(n * float64(time.Second)) }
	return Config{
		Listen:        ":25565",
		Online:        true,
		SessionServer: "https://sessionserver.mojang.com",
		Try:           []string{LimboName},
		Servers:       map[string]Server{},
		Rooms:         Rooms{Declared: map[string]DeclaredRoom{}},
		Walk:          Walk{TickRate: 20, Areas: map[string]WalkArea{}},
		Hosts:         map[string]Host{},
		UnknownHosts:  "accept",
		NewerVersions: "pass",
		Final:         []string{"banned", "white-list", "whitelist"},
		Fallback:      defaultFallback(),
		Health:        defaultHealth(),
		Commands:      defaultCommands(),
		Permissions:   defaultPermissions(),
		BungeeCord:    "self",
		Bedrock:       Bedrock{Trusted: []string{"127.0.0.0/8", "::1/128"}, Prefix: "."},
		Languages:     "languages",
		Forwarding:    Forwarding{Mode: "none"},
		Status:        Status{MOTD: "An <gold>Earshot</gold> network: come closer, speak up", MaxPlayers: 500, Sample: "players", Lines: []string{}, Passthrough: []string{}, Cache: s(10)},
		Limbo:         Limbo{},
		Voice: Voice{
			Enabled: true, Origins: []string{}, Page: true, Invite: "chat", Range: 48, Worlds: map[string]float64{}, Regions: map[string]Region{},
			Whisper: 0.5, Shout: 2, Spectators: "spectators", Visibility: "seen",
			Groups: Groups{
				Enabled: true, Max: 200, Members: 100, Types: slices.Clone(GroupTypes), Passwords: true, Persistent: true,
				Owned: 3, UnusedDays: 30,
			},
			Soundboard: true,
			Sounds:     "sounds",
			Domains:    map[string][]string{}, Listens: []Listen{}, Edges: []Edge{},
		},
		State:       State{Replicas: 1, Names: 10_000},
		TLS:         TLS{ACME: ACME{Hosts: []string{}}},
		Proxy:       ProxyProtocol{Trusted: []string{}},
		HTTPProxies: []string{},
		Admin:       Admin{Networks: []string{"127.0.0.0/8", "::1/128"}, Hosts: []string{}},
		Compression: Compression{Threshold: 256, Level: 3},
		Limits: Limits{
			Connections: Rate{5, 40}, Logins: Rate{0.5, 10}, Status: Rate{5, 40},
			Exempt: []string{}, Pending: 2048, HTTP: 1024, PluginMessage: 32767, BungeeCord: Rate{100, 400}, Channels: Rate{10, 200},
		},
		Timeouts: Timeouts{
			FirstByte: s(5), Login: s(30), Read: s(30), Write: s(30), BackendDial: s(5), BackendLogin: s(10),
			BackendConfig: s(30), BackendJoin: s(30), SessionServer: s(8), ConfigAnswer: s(15),
		},
		ServerTransfers: "allow", ServerCookies: "allow",
		Log: Log{Level: "info", Format: "text", Addresses: true},
	}
}

// Prefixes parses networks; a bare address is a network of one.
func Prefixes(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			a, aerr := netip.ParseAddr(s)
			if aerr != nil {
				return nil, fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", s)
			}
			p = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
		}
		out = append(out, p.Masked())
	}
	return out, nil
}
