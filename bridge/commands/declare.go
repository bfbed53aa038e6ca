package commands

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/voice/relation"
)

var declareParts = []voicePart{
	{"domain create", "voice.domain", " <domain> [player …]", (*Commands).domainCreate, many(none, players)},
	{"domain delete", "voice.domain", " <domain>", (*Commands).domainDelete, only(domains)},
	{"domain add", "voice.domain", " <domain> <player …>", (*Commands).domainAdd, many(domains, players)},
	{"domain remove", "voice.domain", " <domain> <player …>", (*Commands).domainRemove, many(domains, players)},
	{"domain list", "voice.domain", " [domain]", (*Commands).domainList, only(domains)},
	{"listen add", "voice.listen", " <player> <domain>", (*Commands).listenAdd, only(players, domains)},
	{"listen remove", "voice.listen", " <player> <domain>", (*Commands).listenRemove, only(players, domains)},
	{"listen list", "voice.listen", "", (*Commands).listenList, nil},
	{"edge add", "voice.edge", " <talker> <listener>", (*Commands).edgeAdd, only(players, players)},
	{"edge remove", "voice.edge", " <talker> <listener>", (*Commands).edgeRemove, only(players, players)},
	{"edge list", "voice.edge", "", (*Commands).edgeList, nil},
}

func none(*Commands, Source) []packet.Suggestion { return nil }

func domains(c *Commands, src Source) []packet.Suggestion {
	return suggest(c.cfg.Voice.Domains()...)(src, nil)
}

// who finds a player by name or UUID. It takes any UUID.
func (c *Commands) who(word string) (uuid.UUID, error) {
	id, _, _ := c.identify(word)
	if id == uuid.Nil {
		return id, c.nobody(word)
	}
	return id, nil
}

func (c *Commands) whoAll(words []string) (ids []uuid.UUID, err error) {
	for _, w := range words {
		id, err := c.who(w)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// called returns a player's present or last name. It is the UUID where no name is known.
func (c *Commands) called(id uuid.UUID) string {
	for _, p := range c.cfg.Network.Players() {
		if p.ID() == id {
			return p.Name()
		}
	}
	return cmp.Or(c.onceCalled(id), id.String())
}

func (c *Commands) calledAll(ids []uuid.UUID) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = c.called(id)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// domain is one domain: the members by commands, and the members by the configuration.
type domain struct {
	name     string
	own      []uuid.UUID
	standing bool // it is declared by commands, if only without members
	fixed    []uuid.UUID
	declared bool // by the configuration
}

func readDomain(b *relation.Book, name string) domain {
	d := domain{name: name}
	if own, ok := b.Domains.Get(name); ok {
		d.standing, d.own = true, slices.Clone(own.Members)
	}
	all := b.Fixed().Domains
	if i := slices.IndexFunc(all, func(f relation.Domain) bool { return f.Name == name }); i >= 0 {
		d.declared, d.fixed = true, all[i].Members
	}
	return d
}

func (d *domain) there() bool { return d.standing || d.declared }

// everybody returns the members by commands or by the configuration.
func (d *domain) everybody() (all []uuid.UUID) {
	for _, id := range slices.Concat(d.own, d.fixed) {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

func (c *Commands) domainCreate(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	ids, missing := c.whoAll(args[1:])
	var d domain
	err = c.cfg.Voice.Declare(func(b *relation.Book) error {
		switch d = readDomain(b, args[0]); {
		case d.there():
			return fail("voice-domain-taken", "domain", d.name)
		case missing != nil:
			return missing
		}
		if err := b.AddMembers(d.name, ids...); err != nil {
			return err
		}
		d = readDomain(b, d.name)
		return nil
	})
	if err != nil {
		return true, err
	}
	c.answer(src, "voice-domain-made", "domain", d.name, "count", strconv.Itoa(len(d.own)))
	return true, nil
}

func (c *Commands) domainDelete(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 1 {
		return false, nil
	}
	var d domain
	err = c.cfg.Voice.Declare(func(b *relation.Book) error {
		switch d = readDomain(b, args[0]); {
		case !d.there():
			return fail("voice-domain-none", "domain", d.name)
		case !d.standing:
			return fail("voice-fixed", "key", "voice.domains")
		}
		b.Domains.Delete(d.name)
		return nil
	})
	if err != nil {
		return true, err
	}
	k := key("voice-domain-deleted")
	if d.declared {
		k = "voice-domain-deleted-fixed"
	}
	c.answer(src, k, "domain", d.name)
	return true, nil
}

func (c *Commands) domainAdd(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) < 2 {
		return false, nil
	}
	ids, missing := c.whoAll(args[1:])
	var in uuid.UUID // a player who is in it already
	err = c.cfg.Voice.Declare(func(b *relation.Book) error {
		d := readDomain(b, args[0])
		switch everybody := d.everybody(); {
		case !d.there():
			return fail("voice-domain-none", "domain", d.name)
		case missing != nil:
			return missing
		default:
			if i := slices.IndexFunc(ids, func(id uuid.UUID) bool { return slices.Contains(everybody, id) }); i >= 0 {
				in = ids[i]
				return nil
			}
		}
		return b.AddMembers(d.name, ids...)
	})
	switch {
	case err != nil:
		return true, err
	case in != uuid.Nil:
		return true, fail("voice-domain-in", "player", c.called(in), "domain", args[0])
	}
	c.answer(src, "voice-domain-added", "player", c.calledAll(ids), "domain", args[0])
	return true, nil
}

func (c *Commands) domainRemove(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) < 2 {
		return false, nil
	}
	ids, missing := c.whoAll(args[1:])
	var out uuid.UUID // a player who is not in it
	err = c.cfg.Voice.Declare(func(b *relation.Book) error {
		d := readDomain(b, args[0])
		switch {
		case !d.there():
			return fail("voice-domain-none", "domain", d.name)
		case missing != nil:
			return missing
		}
		for _, id := range ids {
			switch {
			case slices.Contains(d.fixed, id):
				return fail("voice-fixed", "key", "voice.domains")
			case !slices.Contains(d.own, id):
				out = id
				return nil
			}
		}
		for _, id := range ids {
			b.RemoveMember(d.name, id)
		}
		return nil
	})
	switch {
	case err != nil:
		return true, err
	case out != uuid.Nil:
		return true, fail("voice-domain-out", "player", c.called(out), "domain", args[0])
	}
	c.answer(src, "voice-domain-removed", "player", c.calledAll(ids), "domain", args[0])
	return true, nil
}

func (c *Commands) domainList(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) > 1 {
		return false, nil
	}
	var all []domain
	err = c.cfg.Voice.Declared(func(b *relation.Book) error {
		names := b.Names()
		if len(args) == 1 {
			if !slices.Contains(names, args[0]) {
				return fail("voice-domain-none", "domain", args[0])
			}
			names = args
		}
		for _, name := range names {
			all = append(all, readDomain(b, name))
		}
		return nil
	})
	if err != nil {
		return true, err
	}
	return true, c.list(src, "voice-domains-none", len(all), func(i int) packet.Text {
		members := all[i].everybody()
		return c.text(src, "voice-domain-entry", "domain", all[i].name, "count", strconv.Itoa(len(members)), "names", c.calledAll(members))
	})
}

// list answers with so many lines, or with the text for none.
func (c *Commands) list(src Source, nothing key, n int, line func(i int) packet.Text) error {
	if n == 0 {
		c.answer(src, nothing)
	}
	for i := range min(n, maxListed) {
		src.Send(line(i))
	}
	if more := n - maxListed; more > 0 {
		c.answer(src, "voice-mutes-more", "count", strconv.Itoa(more))
	}
	return nil
}

// declaration is a record in a ledger of listens or edges.
type declaration interface {
	relation.Listen | relation.Edge
	Key() string
	Check() error
}

// add puts a declaration into its ledger, unless it is there or the configuration has it.
func add[D declaration](l *relation.Ledger[D], fixed []D, d D, there error) error {
	if _, ok := l.Get(d.Key()); ok || slices.Contains(fixed, d) {
		return there
	}
	return l.Put(d)
}

// remove takes a declaration out of its ledger. One of the configuration alone counts as missing.
func remove[D declaration](l *relation.Ledger[D], fixed []D, d D, key string, none error) error {
	if l.Delete(d.Key()) {
		return nil
	}
	if slices.Contains(fixed, d) {
		return fail("voice-fixed", "key", key)
	}
	return none
}

func (c *Commands) listenAdd(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	id, err := c.who(args[0])
	if err != nil {
		return true, err
	}
	name, known := c.called(id), false
	err = c.cfg.Voice.Declare(func(b *relation.Book) error {
		d := readDomain(b, args[1])
		known = d.there()
		return add(&b.Listens, b.Fixed().Listens, relation.Listen{Listener: id, Domain: args[1]}, fail("voice-listen-there", "player", name, "domain", args[1]))
	})
	if err != nil {
		return true, err
	}
	c.answer(src, "voice-listen-added", "player", name, "domain", args[1])
	if !known {
		c.answer(src, "voice-listen-undeclared", "player", name, "domain", args[1])
	}
	return true, nil
}

func (c *Commands) listenRemove(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	id, err := c.who(args[0])
	if err != nil {
		return true, err
	}
	name := c.called(id)
	err = c.cfg.Voice.Declare(func(b *relation.Book) error {
		return remove(&b.Listens, b.Fixed().Listens, relation.Listen{Listener: id, Domain: args[1]}, "voice.listens", fail("voice-listen-none", "player", name, "domain", args[1]))
	})
	if err != nil {
		return true, err
	}
	c.answer(src, "voice-listen-removed", "player", name, "domain", args[1])
	return true, nil
}

func (c *Commands) listenList(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) > 0 {
		return false, nil
	}
	var all []relation.Listen
	err = c.cfg.Voice.Declared(func(b *relation.Book) error {
		all = slices.Concat(b.Fixed().Listens, b.Listens.All())
		return nil
	})
	if err != nil {
		return true, err
	}
	return true, c.list(src, "voice-listens-none", len(all), func(i int) packet.Text {
		return c.text(src, "voice-listen-entry", "player", c.called(all[i].Listener), "domain", all[i].Domain)
	})
}

// edge reads the arguments, and the names of the two.
func (c *Commands) edge(args []string) (e relation.Edge, named []string, err error) {
	if e.Talker, err = c.who(args[0]); err != nil {
		return e, nil, err
	}
	if e.Listener, err = c.who(args[1]); err != nil {
		return e, nil, err
	}
	if e.Talker == e.Listener {
		return e, nil, fail("voice-edge-self")
	}
	return e, []string{"speaker", c.called(e.Talker), "listener", c.called(e.Listener)}, nil
}

func (c *Commands) edgeAdd(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	e, named, err := c.edge(args)
	if err != nil {
		return true, err
	}
	err = c.cfg.Voice.Declare(func(b *relation.Book) error {
		return add(&b.Edges, b.Fixed().Edges, e, fail("voice-edge-there", named...))
	})
	if err != nil {
		return true, err
	}
	c.answer(src, "voice-edge-added", named...)
	return true, nil
}

func (c *Commands) edgeRemove(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	e, named, err := c.edge(args)
	if err != nil {
		return true, err
	}
	err = c.cfg.Voice.Declare(func(b *relation.Book) error {
		return remove(&b.Edges, b.Fixed().Edges, e, "voice.edges", fail("voice-edge-none", named...))
	})
	if err != nil {
		return true, err
	}
	c.answer(src, "voice-edge-removed", named...)
	return true, nil
}

func (c *Commands) edgeList(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) > 0 {
		return false, nil
	}
	var all []relation.Edge
	err = c.cfg.Voice.Declared(func(b *relation.Book) error {
		all = slices.Concat(b.Fixed().Edges, b.Edges.All())
		return nil
	})
	if err != nil {
		return true, err
	}
	return true, c.list(src, "voice-edges-none", len(all), func(i int) packet.Text {
		return c.text(src, "voice-edge-entry", "speaker", c.called(all[i].Talker), "listener", c.called(all[i].Listener))
	})
}
