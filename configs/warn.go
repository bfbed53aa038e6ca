package configs

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
)

// everybody tells whether a network is so wide that it must be meant for all.
func everybody(p netip.Prefix) bool { return p.Bits() <= 3 }

// trusting says what follows when a list of networks holds everybody.
var trusting = map[string]string{
	"proxy-protocol.trusted": "anybody can pretend to have any address: name only the load balancers",
	"http-proxies":           "anybody can pretend to be local: name only the reverse proxies",
	"admin.networks":         "anybody can read /metrics: name the networks that watch",
	"limits.exempt":          "no limit holds for anybody: name the networks that need none",
	"bedrock.trusted":        "takes Floodgate's data from everywhere: name only Geyser's address",
}

// trust returns a warning for a list of networks under key that trusts everybody, else nothing.
func trust(key string, list []netip.Prefix) string {
	i := slices.IndexFunc(list, everybody)
	if i < 0 {
		return ""
	}
	why, known := trusting[key]
	if !known {
		why = "that is everybody: name the addresses that you mean"
	}
	return fmt.Sprintf("%s has %s in it: %s", key, list[i], why)
}

// readable returns a warning for a secret file that everybody on the machine can read, else nothing.
func readable(file, what string) string {
	if file == "" || runtime.GOOS == "windows" {
		return ""
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm()&0o004 == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s can be read by everybody on this machine: chmod 600 %s", what, file, file)
}

// secretsInside tells whether there are secrets in the configuration itself, in place of files of their own.
func (c *Config) secretsInside() bool {
	if c.Forwarding.Secret != "" || c.State.Password != "" || c.State.Token != "" || c.RCON.Password != "" || c.State.URL.String() != string(c.State.URL) {
		return true
	}
	for _, r := range c.Rooms.Declared {
		if r.Token != "" && r.TokenFile == "" {
			return true
		}
	}
	for _, s := range c.Servers {
		if s.Secret != "" {
			return true
		}
	}
	return false
}

// warn finds unsafe settings and probable mistakes. The configuration has been checked.
func (l *Loaded) warn(src *source) (warnings, notes []string) {
	note := func(key, format string, args ...any) { notes = append(notes, src.bad(key, format, args...).Error()) }
	for _, w := range []string{
		readable(l.TLS.Key, "the key of the certificate"), readable(l.State.Key, "the key of the certificate"),
		readable(l.State.CredentialsFile, "the login"),
	} {
		if w != "" {
			warnings = append(warnings, w)
		}
	}
	l.warnForwarding(&warnings, note)
	l.warnLists(note)
	l.warnWorlds(note)
	return warnings, notes
}

// warnForwarding warns of servers that never learn who a player is.
func (l *Loaded) warnForwarding(warnings *[]string, note func(key, format string, args ...any)) {
	var none []string
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		s := l.Servers[name]
		if s.Forwarding != "none" || l.onlyLite(name) {
			continue
		}
		none = append(none, name)
		if public(s.Address) {
			*warnings = append(*warnings, fmt.Sprintf("server %s is on a public address with forwarding none: if it does not authenticate players itself, anybody who reaches "+
				"%s directly can be anybody; firewall it and use modern", name, s.Address))
		}
	}
	if l.Online && len(none) > 0 && len(l.Servers) > 1 {
		note("forwarding", "none: %s learn neither the UUIDs that players have by their accounts nor their addresses, so that skins, bans and inventories are not those of "+
			"other servers; set mode: modern (or legacy) here and on the servers, or online: false", strings.Join(none, ", "))
	}
}

// listed tells whether any list has a server, and onlyLite whether all such lists are of lite routes.
func (l *Loaded) listed(name string) (try, lite bool) {
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, name) })
	}
	try = has(l.Try) || has(l.Commands.Hubs)
	for _, h := range l.Hosts {
		try, lite = try || has(h.Try), lite || has(h.Lite)
	}
	return try, lite
}

func (l *Loaded) onlyLite(name string) bool {
	try, lite := l.listed(name)
	return lite && !try
}

// warnLists notes servers to which nobody is sent.
func (l *Loaded) warnLists(note func(key, format string, args ...any)) {
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		if try, lite := l.listed(name); !try && !lite {
			lost = append(lost, name)
		}
	}
	switch {
	case len(lost) == 0:
	case len(lost) == len(l.Servers) && slices.Equal(l.Try, []string{LimboName}):
		note("servers", "no list names %s, so that players join the built-in world: add try: [%s]", strings.Join(lost, ", "), lost[0])
	default:
		l.Hints = append(l.Hints, fmt.Sprintf("no list names %s (try, hosts, commands.hubs): players get there only by /server, /send and plugins", strings.Join(lost, ", ")))
	}
}

// worlds are the game's, and folders are other programs' names for them.
var (
	worlds  = []string{"overworld", "the_nether", "the_end"}
	folders = map[string]string{
		"nether": "the_nether", "world_nether": "the_nether", "hell": "the_nether", "-1": "the_nether", "dim-1": "the_nether", "netherworld": "the_nether",
		"end": "the_end", "theend": "the_end", "world_the_end": "the_end", "world_end": "the_end", "1": "the_end", "dim1": "the_end", "ender": "the_end",
		"world": "overworld", "the_overworld": "overworld", "normal": "overworld", "0": "overworld", "dim0": "overworld",
	}
)

// warnWorlds notes ranges of worlds that no server can have, and of unknown servers.
func (l *Loaded) warnWorlds(note func(key, format string, args ...any)) {
	names := append(slices.Sorted(maps.Keys(l.Servers)), LimboName)
	look := func(key, name string) {
		world := name
		if server, rest, ok := strings.Cut(name, "/"); ok && !strings.Contains(server, ":") {
			world = rest
			if _, known := l.server(server); !known {
				note(key, "there is no server %q%s", server, didYouMean(server, names))
			}
		}
		space, path, named := strings.Cut(world, ":")
		if !named {
			space, path = "minecraft", world
		}
		odd := func(s, more string) bool {
			return s == "" || strings.ContainsFunc(s, func(r rune) bool {
				return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-"+more, r)
			})
		}
		// Plugins may name worlds in the game's own namespace, too: only a name that surely means one of the game's is
		// a mistake.
		meant := folders[strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(path, " ", "_"), "'", ""))]
		for _, w := range worlds {
			if d := distance(strings.ToLower(path), w); d > 0 && d <= 2 && !strings.ContainsAny(path, "0123456789") {
				meant = w
			}
		}
		switch {
		case space == "minecraft" && meant != "":
			note(key, "no server has a world %q: did you mean %q?", world, meant)
		case odd(space, "") || odd(path, "/"):
			note(key, "no server can have a world %q: the game's names are of small letters, digits and _ - . /, such as the_nether or \"twilightforest:twilight_forest\"", world)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.Voice.Worlds)) {
		look(`voice.worlds."`+name+`"`, name)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Voice.Regions)) {
		look(`voice.regions."`+name+`".world`, l.Voice.Regions[name].World)
	}
}

// didYouMean returns the end of a sentence about an unknown word: the word that it nearly is, if there is one.
func didYouMean(word string, candidates []string) string {
	if near := nearest(word, candidates); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// Nearest returns the candidate that a mistyped word nearly is, empty if none is.
func Nearest(word string, candidates []string) string { return nearest(word, candidates) }
