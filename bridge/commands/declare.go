package commands

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/packet"
)

// Declarations are who is given whose voice outright. What the configuration declares is Fixed: commands add to it and
// cannot take from it. The methods may wait for a moment; what they change is in force when they return.
type Declarations interface {
	Domains() ([]Domain, error)
	DomainNames() []string // does not wait
	// AddToDomain puts players into a domain, which it makes.
	AddToDomain(domain string, players ...uuid.UUID) error
	RemoveFromDomain(domain string, player uuid.UUID) (was bool, err error)
	DeleteDomain(domain string) (was bool, err error)
	Listens() ([]Listen, error)
	AddListen(Listen) error
	RemoveListen(Listen) (was bool, err error)
	Edges() ([]Edge, error)
	AddEdge(Edge) error
	RemoveEdge(Edge) (was bool, err error)
}

// Domain is players who all hear each other.
type Domain struct {
	Name         string
	Members      []uuid.UUID // by commands
	Standing     bool        // it is declared by commands, if only with nobody in it
	FixedMembers []uuid.UUID
	Fixed        bool
}

// Listen is a player who hears a domain without being heard by it.
type Listen struct {
	Listener uuid.UUID
	Domain   string
	Fixed    bool
}

// Edge is a player who hears one other.
type Edge struct {
	Speaker, Listener uuid.UUID
	Fixed             bool
}

var declareParts = []voicePart{
	{"domain create", "voice.domain", " <domain> [player …]", (*Commands).domainCreate, many(none, players)},
	{"domain delete", "voice.domain", " <domain>", (*Commands).domainDelete, only(domains)},
	{"domain add", "voice.domain", " <domain> <player …>", (*Commands).domainAdd, many(domains, players)},
	{"domain remove", "voice.domain", " <domain> <player …>", (*Commands).domainRemove, many(domains, players)},
	{"domain list", "voice.domain", " [domain]", (*Commands).domainList, only(domains)},
	{"listen add", "voice.listen", " <player> <domain>", (*Commands).listenAdd, only(players, domains)},
	{"listen remove", "voice.listen", " <player> <domain>", (*Commands).listenRemove, only(players, domains)},
	{"listen list", "voice.listen", "", (*Commands).listenList, nil},
	{"edge add", "voice.edge", " <speaker> <listener>", (*Commands).edgeAdd, only(players, players)},
	{"edge remove", "voice.edge", " <speaker> <listener>", (*Commands).edgeRemove, only(players, players)},
	{"edge list", "voice.edge", "", (*Commands).edgeList, nil},
}

func none(*Commands, Source) []packet.Suggestion { return nil }

func domains(c *Commands, src Source) []packet.Suggestion {
	return suggest(c.cfg.Voice.DomainNames()...)(src, nil)
}

// who finds a player by name or UUID, of whom it need not be known whether there is one.
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

// called is a player's present or last name. It is the UUID where no name is known.
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

func (c *Commands) domain(name string) (d Domain, err error) {
	all, err := c.cfg.Voice.Domains()
	if i := slices.IndexFunc(all, func(d Domain) bool { return d.Name == name }); i >= 0 {
		return all[i], err
	}
	return Domain{Name: name}, err
}

func (d *Domain) there() bool { return d.Standing || d.Fixed }

// everybody is who is in it by commands or by the configuration.
func (d *Domain) everybody() (all []uuid.UUID) {
	for _, id := range slices.Concat(d.Members, d.FixedMembers) {
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
	d, err := c.domain(args[0])
	if err != nil {
		return true, err
	}
	if d.there() {
		return true, fail("voice-domain-taken", "domain", d.Name)
	}
	ids, err := c.whoAll(args[1:])
	if err != nil {
		return true, err
	}
	if err := c.cfg.Voice.AddToDomain(d.Name, ids...); err != nil {
		return true, err
	}
	d.Members = ids
	c.answer(src, "voice-domain-made", "domain", d.Name, "count", strconv.Itoa(len(d.everybody())))
	return true, nil
}

func (c *Commands) domainDelete(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 1 {
		return false, nil
	}
	d, err := c.domain(args[0])
	switch {
	case err != nil:
		return true, err
	case !d.there():
		return true, fail("voice-domain-none", "domain", d.Name)
	case !d.Standing:
		return true, fail("voice-fixed", "key", "voice.domains")
	}
	if _, err := c.cfg.Voice.DeleteDomain(d.Name); err != nil {
		return true, err
	}
	k := key("voice-domain-deleted")
	if d.Fixed {
		k = "voice-domain-deleted-fixed"
	}
	c.answer(src, k, "domain", d.Name)
	return true, nil
}

func (c *Commands) domainAdd(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) < 2 {
		return false, nil
	}
	d, err := c.domain(args[0])
	if err != nil {
		return true, err
	}
	if !d.there() {
		return true, fail("voice-domain-none", "domain", d.Name)
	}
	ids, err := c.whoAll(args[1:])
	if err != nil {
		return true, err
	}
	everybody := d.everybody()
	for _, id := range ids {
		if slices.Contains(everybody, id) {
			return true, fail("voice-domain-in", "player", c.called(id), "domain", d.Name)
		}
	}
	if err := c.cfg.Voice.AddToDomain(d.Name, ids...); err != nil {
		return true, err
	}
	c.answer(src, "voice-domain-added", "player", c.calledAll(ids), "domain", d.Name)
	return true, nil
}

func (c *Commands) domainRemove(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) < 2 {
		return false, nil
	}
	d, err := c.domain(args[0])
	if err != nil {
		return true, err
	}
	if !d.there() {
		return true, fail("voice-domain-none", "domain", d.Name)
	}
	ids, err := c.whoAll(args[1:])
	if err != nil {
		return true, err
	}
	for _, id := range ids {
		switch {
		case slices.Contains(d.FixedMembers, id):
			return true, fail("voice-fixed", "key", "voice.domains")
		case !slices.Contains(d.Members, id):
			return true, fail("voice-domain-out", "player", c.called(id), "domain", d.Name)
		}
	}
	for _, id := range ids {
		if _, err := c.cfg.Voice.RemoveFromDomain(d.Name, id); err != nil {
			return true, err
		}
	}
	c.answer(src, "voice-domain-removed", "player", c.calledAll(ids), "domain", d.Name)
	return true, nil
}

func (c *Commands) domainList(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) > 1 {
		return false, nil
	}
	all, err := c.cfg.Voice.Domains()
	if err != nil {
		return true, err
	}
	if len(args) == 1 {
		if all = slices.DeleteFunc(all, func(d Domain) bool { return d.Name != args[0] }); len(all) == 0 {
			return true, fail("voice-domain-none", "domain", args[0])
		}
	}
	return true, c.list(src, "voice-domains-none", len(all), func(i int) packet.Text {
		members := all[i].everybody()
		return c.text(src, "voice-domain-entry", "domain", all[i].Name, "count", strconv.Itoa(len(members)), "names", c.calledAll(members))
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

// listen reads the arguments, and tells whether that listen is there.
func (c *Commands) listen(args []string) (l Listen, there, fixed bool, err error) {
	l.Domain = args[1]
	if l.Listener, err = c.who(args[0]); err != nil {
		return l, false, false, err
	}
	all, err := c.cfg.Voice.Listens()
	for _, o := range all {
		if o.Listener == l.Listener && o.Domain == l.Domain {
			there, fixed = there || !o.Fixed, fixed || o.Fixed
		}
	}
	return l, there, fixed, err
}

func (c *Commands) listenAdd(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	l, there, fixed, err := c.listen(args)
	if err != nil {
		return true, err
	}
	if there || fixed {
		return true, fail("voice-listen-there", "player", c.called(l.Listener), "domain", l.Domain)
	}
	if err := c.cfg.Voice.AddListen(l); err != nil {
		return true, err
	}
	c.answer(src, "voice-listen-added", "player", c.called(l.Listener), "domain", l.Domain)
	if d, err := c.domain(l.Domain); err == nil && !d.there() {
		c.answer(src, "voice-listen-undeclared", "player", c.called(l.Listener), "domain", l.Domain)
	}
	return true, nil
}

func (c *Commands) listenRemove(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	l, there, fixed, err := c.listen(args)
	switch {
	case err != nil:
		return true, err
	case !there && fixed:
		return true, fail("voice-fixed", "key", "voice.listens")
	case !there:
		return true, fail("voice-listen-none", "player", c.called(l.Listener), "domain", l.Domain)
	}
	if _, err := c.cfg.Voice.RemoveListen(l); err != nil {
		return true, err
	}
	c.answer(src, "voice-listen-removed", "player", c.called(l.Listener), "domain", l.Domain)
	return true, nil
}

func (c *Commands) listenList(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) > 0 {
		return false, nil
	}
	all, err := c.cfg.Voice.Listens()
	if err != nil {
		return true, err
	}
	return true, c.list(src, "voice-listens-none", len(all), func(i int) packet.Text {
		return c.text(src, "voice-listen-entry", "player", c.called(all[i].Listener), "domain", all[i].Domain)
	})
}

// edge reads the arguments, and tells whether that edge is there.
func (c *Commands) edge(args []string) (e Edge, there, fixed bool, err error) {
	if e.Speaker, err = c.who(args[0]); err != nil {
		return e, false, false, err
	}
	if e.Listener, err = c.who(args[1]); err != nil {
		return e, false, false, err
	}
	if e.Speaker == e.Listener {
		return e, false, false, fail("voice-edge-self")
	}
	all, err := c.cfg.Voice.Edges()
	for _, o := range all {
		if o.Speaker == e.Speaker && o.Listener == e.Listener {
			there, fixed = there || !o.Fixed, fixed || o.Fixed
		}
	}
	return e, there, fixed, err
}

func (c *Commands) edgeAdd(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	e, there, fixed, err := c.edge(args)
	if err != nil {
		return true, err
	}
	if there || fixed {
		return true, fail("voice-edge-there", "speaker", c.called(e.Speaker), "listener", c.called(e.Listener))
	}
	if err := c.cfg.Voice.AddEdge(e); err != nil {
		return true, err
	}
	c.answer(src, "voice-edge-added", "speaker", c.called(e.Speaker), "listener", c.called(e.Listener))
	return true, nil
}

func (c *Commands) edgeRemove(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	e, there, fixed, err := c.edge(args)
	switch {
	case err != nil:
		return true, err
	case !there && fixed:
		return true, fail("voice-fixed", "key", "voice.edges")
	case !there:
		return true, fail("voice-edge-none", "speaker", c.called(e.Speaker), "listener", c.called(e.Listener))
	}
	if _, err := c.cfg.Voice.RemoveEdge(e); err != nil {
		return true, err
	}
	c.answer(src, "voice-edge-removed", "speaker", c.called(e.Speaker), "listener", c.called(e.Listener))
	return true, nil
}

func (c *Commands) edgeList(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) > 0 {
		return false, nil
	}
	all, err := c.cfg.Voice.Edges()
	if err != nil {
		return true, err
	}
	return true, c.list(src, "voice-edges-none", len(all), func(i int) packet.Text {
		return c.text(src, "voice-edge-entry", "speaker", c.called(all[i].Speaker), "listener", c.called(all[i].Listener))
	})
}
