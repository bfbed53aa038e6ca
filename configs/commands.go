package configs

import (
	"maps"
	"slices"
)

// Commands are the proxy's own: /server and so on.
type Commands struct {
	Announce             bool                `yaml:"announce"` // among those that the game completes
	Hubs                 []string            `yaml:"hubs"`     // servers that /hub goes to; empty: there is no /hub
	Aliases              map[string][]string `yaml:"aliases"`  // other names of commands
	Rate                 Rate                `yaml:"rate"`     // of each player
	Completions          Rate                `yaml:"completions"`
	KickAfter            int                 `yaml:"kick-after"`             // so many over a rate within a minute; 0: never
	CompletionsKickAfter int                 `yaml:"completions-kick-after"` // the same of completions alone
	Strict               bool                `yaml:"strict-chat"`            // who signed an argument of one is disconnected
	Record               bool                `yaml:"record"`                 // who gave which command is logged
}

func defaultCommands() Commands {
	return Commands{
		Announce: true, Hubs: []string{}, Aliases: map[string][]string{}, Rate: Rate{20, 40}, Completions: Rate{20, 50}, CompletionsKickAfter: 2000, Record: true,
	}
}

func defaultPermissions() Permissions {
	return Permissions{Groups: map[string]PermissionGroup{}, Players: map[string]PermissionPlayer{}, Operators: map[int]string{}}
}

// checkCommands checks what concerns commands and BungeeCord's channel. Permissions and aliases are checked by those
// who compile them.
func (l *Loaded) checkCommands(bad func(key, format string, args ...any), oneOf func(key, value string, words ...string)) {
	for _, name := range l.Commands.Hubs {
		if _, ok := l.server(name); !ok {
			bad("commands.hubs", "there is no server %q%s", name, didYouMean(name, append(slices.Sorted(maps.Keys(l.Servers)), LimboName)))
		}
	}
	if l.Commands.KickAfter < 0 {
		bad("commands.kick-after", "must not be negative; 0 is never")
	}
	if l.Commands.CompletionsKickAfter < 0 {
		bad("commands.completions-kick-after", "must not be negative; 0 is never")
	}
	for key, r := range map[string]Rate{"rate": l.Commands.Rate, "completions": l.Commands.Completions} {
		if !(r.PerSecond > 0) || r.Burst < 1 {
			bad("commands."+key, "per-second must be above 0 and burst at least 1")
		}
	}
}
