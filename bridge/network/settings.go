package network

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/invite"
	"github.com/earshot-mc/earshot/bridge/perm"
	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/walk"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/handshake/cert"
	"github.com/earshot-mc/earshot/proxy"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/voice"
)

// settings holds a configuration as the rooms take it. [newSettings] makes it at the start and at each reload, and
// [Network.apply] puts it in force, so a reload cannot come to anything else than a start.
type settings struct {
	conf *configs.Loaded

	log      configs.Log
	tls      cert.Terms
	port     port
	watchers []netip.Prefix // may read /metrics
	names    []string       // by which /metrics may be asked for
	fronts   []netip.Prefix // reverse proxies
	public   string         // the base URL for clients; empty: as they joined
	prefix   string         // of the path in it
	visitors int            // HTTP connections at once
	password string         // of RCON
	rooms    configs.Rooms
	walks    map[string]walk.Config // areas
	invite   invite.Terms
	page     pageTerms
	origins  []string
	proxy    proxy.Settings
	voice    voice.Config          // as far as it has a setter
	sights   map[string]sight.Rule // by server
	sight    sight.Rule            // of all others
	perms    perm.Config
	versions []*proto.Version
	policy   policy

	compiled *proxy.CheckedSettings // by Network.compile, as policy.commands
}

// port says how connections are told apart.
type port struct {
	trusted   []netip.Prefix
	required  bool
	firstByte time.Duration
	rate      limit.Rate
	exempt    []netip.Prefix
}

// newSettings reads the files that a configuration names, and fails where something cannot be used. The error names
// everything.
func newSettings(l *configs.Loaded) (s *settings, err error) {
	s = &settings{conf: l, log: l.Log, perms: permissions(&l.Permissions)}
	var all []error
	note := func(err error) { all = append(all, err) }
	s.versions, err = Versions(l)
	note(err)
	s.proxy, err = proxySettings(l)
	note(err)
	s.voice, err = voiceConfig(&l.Voice)
	note(err)
	note(s.reach(l))
	s.tls, err = certificates(&l.TLS, s.names)
	note(err)
	s.sights, s.sight, err = sights(l)
	note(err)
	s.invite = invite.Terms{PublicURL: s.public, TLS: s.secure(), Off: !l.Voice.Enabled}
	s.page = pageTerms{on: l.Voice.Page, name: l.Voice.Name, invites: l.Voice.Invite == "chat", secure: s.secure() || strings.HasPrefix(s.public, "https:")}
	s.policy, err = newPolicy(l, s.proxy.Servers)
	note(err)
	s.watchers, _ = configs.Prefixes(l.Admin.Networks) // Load has checked it, and these
	s.fronts, _ = configs.Prefixes(l.HTTPProxies)
	s.visitors = l.Limits.HTTP
	s.password = string(l.RCON.Password)
	s.rooms = l.Rooms
	s.walks, err = areasOf(&l.Walk)
	note(err)
	trusted, _ := configs.Prefixes(l.Proxy.Trusted)
	s.port = port{trusted, l.Proxy.Required, time.Duration(l.Timeouts.FirstByte), rate(l.Limits.Connections), s.proxy.Exempt}
	return s, errors.Join(all...)
}

// secure reports whether the port speaks TLS.
func (s *settings) secure() bool {
	return s.tls.Files != nil || s.tls.ACME != nil || len(s.tls.SelfSigned) > 0
}

// certificates reads the files of the section. names are the program's own names.
func certificates(t *configs.TLS, names []string) (c cert.Terms, err error) {
	switch {
	case t.Certificate != "" && t.Key != "":
		one, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return c, at("tls", fmt.Errorf("cannot use the certificate: %w", err))
		}
		c.Files = &one
	case len(t.ACME.Hosts) > 0:
		c.ACME = &cert.ACME{Hosts: t.ACME.Hosts, Email: t.ACME.Email, Directory: t.ACME.Directory}
		if t.ACME.RootCA != "" {
			b, err := os.ReadFile(t.ACME.RootCA)
			if err != nil {
				return c, at("tls.acme.root-ca", err)
			}
			if c.ACME.Roots = x509.NewCertPool(); !c.ACME.Roots.AppendCertsFromPEM(b) {
				return c, at("tls.acme.root-ca", fmt.Errorf("there is no certificate (PEM) in %s", t.ACME.RootCA))
			}
		}
	case t.SelfSigned:
		c.SelfSigned = []string{"localhost", "127.0.0.1", "::1"}
		for _, n := range names {
			if n != "" && !slices.Contains(c.SelfSigned, n) && !unspecified(n) {
				c.SelfSigned = append(c.SelfSigned, n)
			}
		}
	}
	return c, nil
}

// unspecified reports whether a host is every address.
func unspecified(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsUnspecified()
}

// reach works out the names and URLs of the program, as far as the settings tell.
func (s *settings) reach(l *configs.Loaded) error {
	s.names = slices.Concat(l.Admin.Hosts, slices.Sorted(maps.Keys(l.Hosts)))
	add := func(host string) {
		if host != "" {
			s.names = append(s.names, host)
		}
	}
	host, _, _ := net.SplitHostPort(l.Listen)
	add(host)
	machine, _ := os.Hostname()
	add(machine)
	s.origins = nil
	for _, o := range l.Voice.Origins {
		s.origins = append(s.origins, strings.TrimRight(o, "/"))
	}
	if l.Voice.PublicURL == "" {
		return nil
	}
	base, err := configs.BaseURL(l.Voice.PublicURL)
	if err != nil {
		return at("voice.public-url", err)
	}
	u, err := url.Parse(base)
	if err != nil {
		return at("voice.public-url", err)
	}
	add(u.Hostname())
	s.public, s.prefix = base, u.Path
	// A reverse proxy may ask here by another name than the page was loaded by.
	s.origins = append(s.origins, "https://"+u.Host, "http://"+u.Host)
	return nil
}

// compile makes of settings what takes time or can still fail, so that applying them cannot. Its error names everything
// that is wrong, except what [configs.Load] has named: loaded.
func (n *Network) compile(l *configs.Loaded, loaded error) (*settings, error) {
	wrong := newFaults(l, loaded)
	s, err := newSettings(l)
	wrong.add(err)
	if _, err := perm.New(s.perms); err != nil {
		wrong.permissions(err)
	}
	n.compileCommands(&s.policy, wrong)
	if err := configs.Join(wrong.all...); err != nil || loaded != nil {
		return nil, err
	}
	p := s.proxy
	p.Servers = append(p.Servers, backend.Server{Name: configs.LimboName, Forwarding: backend.Legacy, Dial: n.builtin.Dial, Limbo: true})
	newer := s.policy.commands.Texts().Say("", "newer") // nobody knows a stranger's language in the server list
	p.Status.Newer = newer
	p.ByHost = slices.Clone(p.ByHost)
	for i, h := range p.ByHost {
		if h.Status != nil {
			shown := *h.Status
			shown.Newer = newer
			p.ByHost[i].Status = &shown
		}
	}
	if s.compiled, err = proxy.Compile(p); err != nil {
		return nil, err
	}
	doubt(l, s)
	return s, nil
}

// doubt notes probable mistakes in a correct configuration that only other packages than configs know.
func doubt(l *configs.Loaded, s *settings) {
	known := slices.Concat(commands.Nodes(), perm.Defaults())
	for _, v := range nodes {
		known = append(known, v.node)
	}
	for name := range l.Servers {
		known = append(known, commands.Enter(name))
	}
	for _, n := range perm.Strangers(s.perms, known) {
		l.Note(n.Key, "there is no permission %q%s", n.Node, nearly(strings.TrimPrefix(n.Node, "-"), known))
	}
	if s.tls.Files != nil {
		if what := cert.Of(s.tls.Files).Advice(time.Now()); what != "" {
			l.Note("tls.certificate", "%s", what)
		}
	}
	text := func(key, template string) {
		for _, tag := range packet.UnknownTags(template) {
			name, _, _ := strings.Cut(strings.TrimLeft(tag, "/!"), ":")
			l.Note(key, "<%s> is no tag, and players would read it%s; \\< is a < that is meant as such", tag, nearly(name, packet.TagNames()))
		}
	}
	text("status.motd", l.Status.MOTD)
	text("limbo.message", l.Limbo.Message)
	for _, line := range l.Status.Lines {
		text("status.sample-lines", line)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Hosts)) {
		h := l.Hosts[name]
		text(`hosts."`+name+`".motd`, h.MOTD)
		for _, line := range h.Lines {
			text(`hosts."`+name+`".sample-lines`, line)
		}
	}
}

// nearly returns the end of a sentence about an unknown word.
func nearly(word string, known []string) string {
	if near := configs.Nearest(strings.ToLower(word), known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// apply puts settings in force. Everybody stays; later decisions go by the new ones.
func (n *Network) apply(s *settings) {
	n.now = s
	proto.Use(s.versions...)
	if n.opt.Logging != nil {
		n.opt.Logging(s.log)
	}
	n.lawful.Store(&s.policy)
	errs := []error{n.players.perms.Replace(s.perms), n.certs.Apply(s.tls)}
	p := n.parts
	p.connections.Set(s.port.rate, s.port.exempt)
	p.listening.Trusted, p.listening.RequireProxy, p.listening.FirstByte = s.port.trusted, s.port.required, s.port.firstByte
	p.listening.TLS = n.certs.On()
	p.port.Apply(p.listening)
	p.turned.hide.Store(!s.conf.Log.Addresses)
	p.visitors.set(s.visitors, s.port.exempt)
	if p.remote != nil {
		p.remote.SetPassword(s.password)
	}
	p.pages.SetNetworks(s.watchers)
	p.pages.SetHosts(s.names)
	p.front.SetTrusted(s.fronts)
	p.voicePath.Store(&s.prefix)
	p.server.Apply(s.compiled)
	p.sockets.SetOrigins(s.origins)
	p.play.door.SetOrigins(s.origins)
	p.play.set(s.rooms)
	p.walk.SetOrigins(s.origins)
	p.walk.Set(s.walks)
	p.page.apply(s)
	p.voiceOn.Store(!s.invite.Off)
	n.world.Sights().SetRules(s.sights, s.sight)
	v := &s.voice
	errs = append(errs, p.gateway.SetPolicy(v.Policy), p.gateway.SetGroups(v.Groups), p.gateway.SetSoundboard(!v.SoundboardOff), p.gateway.SetDeclared(v.Declared))
	p.gateway.SetSounds(v.Sounds)
	if s.invite.Off { // nobody is invited to voice that ends, nor to one that is not there yet
		p.inviter.Apply(s.invite)
		p.gateway.SetEnabled(false)
	} else {
		p.gateway.SetEnabled(true)
		p.inviter.Apply(s.invite)
	}
	p.server.Announce()
	if err := errors.Join(errs...); err != nil { // only where voice has been shut down
		n.log.Error("not all settings could be put in force", "error", err)
	}
}

func rate(r configs.Rate) limit.Rate { return limit.Rate{PerSecond: r.PerSecond, Burst: r.Burst} }

// parse reads a text of the configuration.
func parse(key, s string) (packet.Text, error) {
	t, err := packet.ParseText(s)
	return t, at(key, err)
}
