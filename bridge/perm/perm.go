// Package perm tells who may do what: permission nodes from groups, inheritance, single players and operator levels.
//
// It promises one answer for commands and for voice, that a check neither allocates nor waits, and that a configuration
// counts whole or not at all.
//
// A node is words between dots: earshot.command.send. In a list, a.b.* stands for all nodes that begin with a.b. (not
// for a.b itself), * for every node, and a - in front takes away. The closest entry decides: the player's own nodes, by
// name or UUID; then their groups in the order written, each before its parents; then the group of their operator
// level; then the default group; and at last [Defaults]. Within one of these lists the longer pattern decides, and of
// two alike the one that takes away. A node without any entry is not allowed.
package perm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"
)

// Nodes of voice.
const (
	Speak        = "socketsvc.speak"
	Listen       = "socketsvc.listen"
	Soundboard   = "socketsvc.soundboard"
	Groups       = "socketsvc.groups"
	GroupsCreate = "socketsvc.groups.create"
	GroupsInvite = "socketsvc.groups.invite"
	GroupsAdmin  = "socketsvc.groups.admin"
	GroupsKeep   = "socketsvc.groups.persistent"
	MuteExempt   = "socketsvc.mute.exempt"
)

// Defaults returns what everybody may do unless the configuration says otherwise.
func Defaults() []string {
	return []string{
		"earshot.command.server", "earshot.command.hub", "earshot.command.ping", "earshot.command.voice.link",
		Speak, Listen, Soundboard, Groups, GroupsCreate, GroupsInvite, GroupsKeep,
	}
}

// DefaultGroup is the group that everybody is in; there need not be one.
const DefaultGroup = "default"

// MaxLevel is the highest operator level. Level 0 is everybody's.
const MaxLevel = 4

// Config is the permissions section of the configuration.
type Config struct {
	Groups    map[string]Group
	Players   map[string]Player // by UUID or by name, in any case; a UUID goes before a name
	Operators map[int]string    // by operator level (1 to 4): the group of players from that level on
}

// Group holds nodes under a name.
type Group struct {
	Parents []string // groups whose nodes are also this one's, where it does not say otherwise
	Nodes   []string
}

// Player holds one player's own nodes and groups.
type Player struct {
	Groups []string
	Nodes  []string
}

// Perm answers who may do what. It may be used from any goroutine.
type Perm struct {
	rules   atomic.Pointer[rules]
	version atomic.Uint64
}

// rules are a compiled Config.
type rules struct {
	byID   map[uuid.UUID]patterns
	byName map[string]patterns
	base   [MaxLevel + 1]patterns // by operator level: what everybody of that level has
}

// New compiles a configuration. The error names the key at fault, as permissions.groups.admin.parents.
func New(cfg Config) (*Perm, error) {
	p := &Perm{}
	return p, p.Replace(cfg)
}

// Replace puts cfg in force, or fails and leaves things as they were.
func (p *Perm) Replace(cfg Config) error {
	r, err := compile(cfg)
	if err != nil {
		return err
	}
	p.rules.Store(r)
	p.version.Add(1)
	return nil
}

// Version returns a number that grows with every Replace. A Set from an older one is out of date.
func (p *Perm) Version() uint64 { return p.version.Load() }

// Of returns what a player with that operator level on their server may do. Levels beyond [MaxLevel] count as it.
func (p *Perm) Of(id uuid.UUID, name string, level uint8) Set {
	r := p.rules.Load()
	own, ok := r.byID[id]
	if !ok {
		var buf [maxName]byte
		own = r.byName[string(lower(buf[:0], name))]
	}
	return Set{own, r.base[min(level, MaxLevel)]}
}

// Set holds what one player may do. The zero Set is nothing.
type Set struct{ own, base patterns }

// Allows tells whether node, which is lower case, is allowed.
func (s Set) Allows(node string) bool {
	if allowed, spoken := s.own.find(node); spoken {
		return allowed
	}
	allowed, _ := s.base.find(node)
	return allowed
}

// patterns has what is allowed: under a.b for that node, under "a." for a.*, under "" for *.
type patterns map[string]bool

// find returns the word of the longest pattern that fits node; spoken is false when there is none.
func (p patterns) find(node string) (allowed, spoken bool) {
	if len(p) == 0 {
		return false, false
	}
	allowed, spoken = p[node]
	for key := node; !spoken && key != ""; {
		key = wider(key)
		allowed, spoken = p[key]
	}
	return allowed, spoken
}

// wider returns the next wider pattern: "a." of a.b and of "a.b.", "" of a.
func wider(key string) string {
	return key[:strings.LastIndexByte(strings.TrimSuffix(key, "."), '.')+1]
}

// under puts patterns farther from the player beneath p: those that p as a whole does not decide. The remaining ones
// are all wider than the ones of p that overlap them, so the longest pattern is still the closest.
func (p patterns) under(farther patterns) {
	new := patterns{}
	for key, allowed := range farther {
		if _, spoken := p.find(key); !spoken {
			new[key] = allowed
		}
	}
	maps.Copy(p, new)
}

// parse reads a list of nodes.
func parse(key string, nodes []string) (patterns, error) {
	p := patterns{}
	var wrong []error
	for _, n := range nodes {
		name, denied := strings.CutPrefix(n, "-")
		words := strings.Split(strings.ToLower(name), ".")
		if last := len(words) - 1; words[last] == "*" {
			words[last] = ""
		} else if !isWord(words[last]) {
			wrong = append(wrong, badNode(key, n))
			continue
		}
		if slices.ContainsFunc(words[:len(words)-1], func(w string) bool { return !isWord(w) }) {
			wrong = append(wrong, badNode(key, n))
			continue
		}
		pattern := strings.Join(words, ".")
		allowed, twice := p[pattern]
		p[pattern] = !denied && (allowed || !twice)
	}
	return p, errors.Join(wrong...)
}

// Strange is a pattern of a configuration that fits no node.
type Strange struct {
	Key, Node string // where it stands, as permissions.groups.admin.nodes, and its text
}

// Strangers finds the patterns of a valid configuration that fit none of the known nodes, and so allow and forbid
// nothing.
func Strangers(cfg Config, known []string) (all []Strange) {
	look := func(key string, nodes []string) {
		for _, n := range nodes {
			p, err := parse(key, []string{n})
			if err == nil && !slices.ContainsFunc(known, func(k string) bool { _, fits := p.find(k); return fits }) {
				all = append(all, Strange{key, n})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Groups)) {
		look("permissions.groups."+name+".nodes", cfg.Groups[name].Nodes)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Players)) {
		look("permissions.players."+name+".nodes", cfg.Players[name].Nodes)
	}
	return all
}

func isWord(w string) bool { return w != "" && w[0] != '-' && !strings.ContainsAny(w, "* \t\n") }

func badNode(key, node string) error {
	return fmt.Errorf("%s: %q is no permission: write words with dots between them, * only as the last, - only in front", key, node)
}

// compiler takes a Config apart, each group once.
type compiler struct {
	cfg   Config
	nodes map[string]patterns // of each group alone
	wrong []error
}

func (c *compiler) bad(err error) { c.wrong = append(c.wrong, err) }

// compile makes rules of a Config. Its error names everything that is wrong, each beginning with its key.
func compile(cfg Config) (*rules, error) {
	c := &compiler{cfg: cfg, nodes: map[string]patterns{}}
	done := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Groups)) {
		key := "permissions.groups." + name
		p, err := parse(key+".nodes", cfg.Groups[name].Nodes)
		c.bad(err)
		c.nodes[name] = p
		c.climb([]string{name}, done)
	}
	r := &rules{byID: map[uuid.UUID]patterns{}, byName: map[string]patterns{}}
	c.players(r)
	c.levels(r)
	if err := errors.Join(c.wrong...); err != nil {
		return nil, err
	}
	return r, nil
}

// climb notes a parent of the last group in path that does not exist, or leads back into path.
func (c *compiler) climb(path []string, done map[string]bool) {
	name := path[len(path)-1]
	if done[name] {
		return
	}
	done[name] = true
	key := "permissions.groups." + name + ".parents"
	for _, parent := range c.cfg.Groups[name].Parents {
		if err := c.known(key, parent); err != nil {
			c.bad(err)
			continue
		}
		if i := slices.Index(path, parent); i >= 0 {
			c.bad(fmt.Errorf("%s: %s goes round in a circle", key, strings.Join(append(path[i:], parent), " → ")))
			continue
		}
		c.climb(append(slices.Clip(path), parent), done)
	}
}

func (c *compiler) known(key, group string) error {
	if _, ok := c.cfg.Groups[group]; ok {
		return nil
	}
	names := slices.Sorted(maps.Keys(c.cfg.Groups))
	if len(names) == 0 {
		return fmt.Errorf("%s: there is no group %q, nor any other", key, group)
	}
	return fmt.Errorf("%s: there is no group %q; there are %s", key, group, strings.Join(names, ", "))
}

// add puts a group, and then its parents, under p; seen has those already there.
func (c *compiler) add(p patterns, group string, seen map[string]bool) {
	if seen[group] {
		return
	}
	seen[group] = true
	p.under(c.nodes[group])
	for _, parent := range c.cfg.Groups[group].Parents {
		c.add(p, parent, seen)
	}
}

func (c *compiler) players(r *rules) {
	same := map[string]patterns{} // most players share theirs with others
	for _, name := range slices.Sorted(maps.Keys(c.cfg.Players)) {
		player, key := c.cfg.Players[name], "permissions.players."+name
		own, err := parse(key+".nodes", player.Nodes)
		c.bad(err)
		seen := map[string]bool{}
		for _, g := range player.Groups {
			c.bad(c.known(key+".groups", g))
			c.add(own, g, seen)
		}
		alike := fmt.Sprintf("%q", player)
		if had, ok := same[alike]; ok {
			own = had
		}
		same[alike] = own
		if id, err := uuid.Parse(name); err == nil {
			if _, twice := r.byID[id]; twice {
				c.bad(fmt.Errorf("%s: this UUID is there twice, in another form", key))
			}
			r.byID[id] = own
			continue
		}
		if name == "" || len(name) > maxName || strings.ContainsAny(name, " \t\n") {
			c.bad(fmt.Errorf("%s: is neither a player's name nor a UUID", key))
		}
		folded := string(lower(nil, name))
		if _, twice := r.byName[folded]; twice {
			c.bad(fmt.Errorf("%s: this name is there twice, in another case", key))
		}
		r.byName[folded] = own
	}
}

func (c *compiler) levels(r *rules) {
	for _, level := range slices.Sorted(maps.Keys(c.cfg.Operators)) {
		key := fmt.Sprintf("permissions.operators.%d", level)
		if level < 1 || level > MaxLevel {
			c.bad(fmt.Errorf("%s: operator levels are 1 to %d", key, MaxLevel))
		}
		c.bad(c.known(key, c.cfg.Operators[level]))
	}
	defaults, err := parse("defaults", Defaults())
	c.bad(err)
	group := ""
	for level := range r.base {
		if g, ok := c.cfg.Operators[level]; ok {
			group = g
		}
		base, seen := patterns{}, map[string]bool{}
		if group != "" {
			c.add(base, group, seen)
		}
		c.add(base, DefaultGroup, seen)
		base.under(defaults)
		r.base[level] = base
	}
}

// maxName bounds the name of an entry; the game has 16 characters.
const maxName = 64

// lower appends name with the letters A to Z in lower case; of a name longer than an entry can have, nothing.
func lower(dst []byte, name string) []byte {
	if len(name) > maxName {
		return dst
	}
	for i := range len(name) {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}
