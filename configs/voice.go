package configs

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/uuid"
)

// Region is a box of a world with a range of its own.
type Region struct {
	World    string     `yaml:"world"` // world or server/world
	From     [3]float64 `yaml:"from"`  // two corners, x, y and z
	To       [3]float64 `yaml:"to"`
	Range    float64    `yaml:"range"`
	Priority int        `yaml:"priority,omitempty"` // the highest decides, then the smallest region
}

// Groups holds the settings of groups: players who talk among themselves.
type Groups struct {
	Enabled    bool     `yaml:"enabled"`
	Max        int      `yaml:"max-groups"`  // 0: no limit
	Members    int      `yaml:"max-members"` // of one group; 0: no limit
	Types      []string `yaml:"types"`       // that players may make: normal, open, isolated
	Passwords  bool     `yaml:"passwords"`
	Persistent bool     `yaml:"persistent"`
	Owned      int      `yaml:"max-persistent"` // of one owner; 0: no limit
	UnusedDays int      `yaml:"unused-days"`    // days without use after which a persistent one ends; 0: never
}

// Listen lets a player hear a domain without being heard by it.
type Listen struct {
	Listener string `yaml:"listener"` // a UUID
	Domain   string `yaml:"domain"`
}

// Edge lets one player hear one other.
type Edge struct {
	Talker   string `yaml:"speaker"` // UUIDs; the key is older than the word talker
	Listener string `yaml:"listener"`
}

// VoicePath is the path that clients add to the base URL.
const VoicePath = "/voice"

// BaseURL reads [Voice.PublicURL] and returns it as clients are told: http or https, without a slash at the end.
func BaseURL(text string) (string, error) {
	form := fmt.Errorf("%q is no base URL: write http://host:port or https://host", text)
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Host == "" || u.Opaque != "" {
		return "", form
	}
	switch u.Scheme {
	case "http", "https":
	case "ws":
		u.Scheme = "http"
	case "wss":
		u.Scheme = "https"
	default:
		return "", form
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "", fmt.Errorf("%q has no usable port: 1 to 65535", text)
		}
	}
	path := strings.TrimRight(u.Path, "/")
	switch {
	case u.Hostname() == "" || strings.ContainsAny(u.Host, " \"<>\\^`{|}%"):
		return "", fmt.Errorf("%q has no usable host", text)
	case u.User != nil:
		return "", fmt.Errorf("%q has a user in it, which clients do not send: take it out", text)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(text, "#"):
		return "", fmt.Errorf("%q ends in a query or fragment: clients add %s and a query of their own, so take it out", text, VoicePath)
	case path == VoicePath || strings.HasSuffix(path, VoicePath):
		return "", fmt.Errorf("%q ends in %s, which clients add themselves: write %s", text, VoicePath, strings.TrimSuffix(u.Scheme+"://"+u.Host+path, VoicePath))
	case u.RawPath != "" || strings.Trim(path, pathBytes) != "" || strings.Contains(path+"/", "//") || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../"):
		return "", fmt.Errorf("%q has a path that cannot work: only letters, digits, and -._~ between single slashes", text)
	}
	return u.Scheme + "://" + u.Host + path, nil
}

const pathBytes = "/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"

// GroupTypes are the words of [Groups.Types].
var GroupTypes = []string{"normal", "open", "isolated"}

// maxUnused is ten years, in days.
const maxUnused = 3653

// maxName bounds the name of a network, in bytes.
const maxName = 64

// maxRange bounds how far a voice carries, in blocks, and maxTier a tier's factor for that.
const (
	maxRange = 1024
	maxTier  = 16
)

// checkVoice checks the section.
func (l *Loaded) checkVoice(p *problems) {
	v := &l.Voice
	if v.PublicURL != "" {
		if _, err := BaseURL(v.PublicURL); err != nil {
			p.bad("voice.public-url", "%w", err)
		}
	}
	for _, o := range v.Origins {
		p.link("voice.allowed-origins", o)
		if u, err := url.Parse(o); err == nil && (strings.Trim(u.Path, "/") != "" || u.User != nil) {
			p.bad("voice.allowed-origins", "%q has a path, which browsers do not name: write %s://%s", o, u.Scheme, u.Host)
		}
	}
	p.oneOf("voice.invite", v.Invite, "chat", "off")
	if len(v.Name) > maxName || strings.ContainsFunc(v.Name, unicode.IsControl) {
		p.bad("voice.name", "%q is no name: at most %d letters, on one line", v.Name, maxName)
	}
	far := func(key string, blocks float64) {
		if !(blocks >= 0 && blocks <= maxRange) {
			p.bad(key, "%v is no range: 0 to %d blocks", blocks, maxRange)
		}
	}
	far("voice.range", v.Range)
	for _, w := range slices.Sorted(maps.Keys(v.Worlds)) {
		far(`voice.worlds."`+w+`"`, v.Worlds[w])
	}
	p.oneOf("voice.spectators", v.Spectators, "nobody", "spectators", "everyone")
	p.oneOf("voice.visibility", v.Visibility, "seen", "tab-list", "everyone")
	tier := func(key string, f float64) {
		if !(f >= 0 && f <= maxTier) {
			p.bad(key, "%v is no factor: 0 (off) to %d", f, maxTier)
		}
	}
	tier("voice.whisper", v.Whisper)
	tier("voice.shout", v.Shout)
	for _, name := range slices.Sorted(maps.Keys(v.Regions)) {
		r, key := v.Regions[name], "voice.regions."+name
		if r.World == "" {
			p.bad(key, "has no world: add world: \"minecraft:overworld\", or with its server in front")
		}
		if r.From == r.To {
			p.bad(key, "has no size: write two corners, from: [x, y, z] and to: [x, y, z]")
		}
		far(key+".range", r.Range)
	}
	if v.Groups.Max < 0 {
		p.bad("voice.groups.max-groups", "must not be negative; 0 is no limit")
	}
	if v.Groups.Members < 0 {
		p.bad("voice.groups.max-members", "must not be negative; 0 is no limit")
	}
	if v.Groups.Owned < 0 {
		p.bad("voice.groups.max-persistent", "must not be negative; 0 is no limit")
	}
	if v.Groups.UnusedDays < 0 || v.Groups.UnusedDays > maxUnused {
		p.bad("voice.groups.unused-days", "%d: 1 to %d days; 0 is for ever", v.Groups.UnusedDays, maxUnused)
	}
	for _, t := range v.Groups.Types {
		if !slices.Contains(GroupTypes, t) {
			p.bad("voice.groups.types", "%q is not one of %s", t, strings.Join(GroupTypes, ", "))
		}
	}
	player := func(key, id string) {
		if _, err := uuid.Parse(id); err != nil {
			p.bad(key, "%q is no UUID of a player: write the UUID here, or use the name with /voice domain, listen and edge", id)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Domains)) {
		for _, id := range v.Domains[name] {
			player("voice.domains."+name, id)
		}
	}
	for _, l := range v.Listens {
		player("voice.listens", l.Listener)
		if _, ok := v.Domains[l.Domain]; !ok {
			p.bad("voice.listens", "there is no domain %q: declare it under voice.domains, if only as []", l.Domain)
		}
	}
	for _, e := range v.Edges {
		player("voice.edges", e.Talker)
		player("voice.edges", e.Listener)
		if e.Talker == e.Listener {
			p.bad("voice.edges", "%s is on both ends: nobody hears their own voice", e.Talker)
		}
	}
}
