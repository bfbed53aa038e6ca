package configs

// Commands holds the settings of the proxy's own commands: /server and so on.
type Commands struct {
	Announce             bool                `yaml:"announce"` // among those that the game completes
	Hubs                 []string            `yaml:"hubs"`     // servers that /hub goes to; empty: there is no /hub
	Aliases              map[string][]string `yaml:"aliases"`  // other names of commands
	Rate                 Rate                `yaml:"rate"`     // of each player
	Completions          Rate                `yaml:"completions"`
	KickAfter            int                 `yaml:"kick-after"`             // excess within a minute; 0: never
	CompletionsKickAfter int                 `yaml:"completions-kick-after"` // the same of completions alone
	Strict               bool                `yaml:"strict-chat"`            // disconnect who signed an argument
	Record               bool                `yaml:"record"`                 // log the commands and who gave them
}

func defaultCommands() Commands {
	return Commands{
		Announce: true, Hubs: []string{}, Aliases: map[string][]string{}, Rate: Rate{20, 40}, Completions: Rate{20, 50}, CompletionsKickAfter: 2000, Record: true,
	}
}

func defaultPermissions() Permissions {
	return Permissions{Groups: map[string]PermissionGroup{}, Players: map[string]PermissionPlayer{}, Operators: map[int]string{}}
}

// checkCommands checks the settings of commands and of BungeeCord's channel. Permissions and aliases are checked where
// they are compiled.
func (l *Loaded) checkCommands(p *problems) {
	l.known(p, "commands.hubs", l.Commands.Hubs)
	if l.Commands.KickAfter < 0 {
		p.bad("commands.kick-after", "must not be negative; 0 is never")
	}
	if l.Commands.CompletionsKickAfter < 0 {
		p.bad("commands.completions-kick-after", "must not be negative; 0 is never")
	}
	p.rate("commands.rate", l.Commands.Rate)
	p.rate("commands.completions", l.Commands.Completions)
}
