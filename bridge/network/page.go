package network

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/perm"
	"github.com/earshot-mc/earshot/handshake/page"
	"github.com/earshot-mc/earshot/handshake/token"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
	voicepage "github.com/earshot-mc/earshot/voice/web"
)

// inviteAfter is how long after a join a player is told of the voice page: by then a client with a voice of its own has
// said so, and the game's own first lines are in the chat.
const inviteAfter = 8 * time.Second

// inviteEvery is how long a player is not told again.
const inviteEvery = 20 * time.Hour

// pageTerms are an administrator's choices about the voice page.
type pageTerms struct {
	on      bool
	name    string // of the network; empty: its host
	invites bool
	secure  bool // the link is https
}

// voicePage is the way from the game to the voice page.
type voicePage struct {
	n     *Network
	book  *page.Book
	http  *page.Handler
	terms atomic.Pointer[pageTerms]

	mu      sync.Mutex
	invited map[uuid.UUID]time.Time
	waiting map[uuid.UUID]*time.Timer
}

func newVoicePage(n *Network, tokens *token.Issuer) *voicePage {
	v := &voicePage{n: n, book: page.NewBook(), invited: map[uuid.UUID]time.Time{}, waiting: map[uuid.UUID]*time.Timer{}}
	v.terms.Store(&pageTerms{})
	var err error
	v.http, err = page.New(page.Config{
		Files: voicepage.Files, Book: v.book, Player: v.player, Closed: v.closed, Mint: tokens.Mint, Why: v.why, About: v.about,
		Count: func(code string, from netip.Addr) { n.parts.turned.page(code, from) },
		Log:   n.log.With("room", "page"),
	})
	if err != nil { // the files are part of the program
		n.log.Error("there is no voice page", "error", err)
	}
	return v
}

func (v *voicePage) apply(s *settings) {
	v.terms.Store(&s.page)
	if v.http != nil {
		v.http.SetOrigins(s.origins)
	}
}

// serve answers a request for the page, with the path of voice.public-url before it or cut off by a reverse proxy.
func (v *voicePage) serve(w http.ResponseWriter, q *http.Request, prefix string) {
	path := q.URL.Path
	if prefix != "" {
		if path == prefix { // the page's own addresses are relative
			http.Redirect(w, q, prefix+"/", http.StatusPermanentRedirect)
			return
		}
		if rest, ok := strings.CutPrefix(path, prefix+"/"); ok {
			path = "/" + rest
		}
	}
	if v.http == nil || !v.terms.Load().on || !v.http.Serves(path) {
		http.NotFound(w, q)
		return
	}
	if path != q.URL.Path {
		q = q.Clone(q.Context())
		q.URL.Path, q.URL.RawPath = path, ""
	}
	v.http.ServeHTTP(w, q)
}

// player implements page.Config, as the methods below do.
func (v *voicePage) player(id uuid.UUID) (page.Player, bool) {
	p := v.n.parts.server.Player(id)
	if p == nil {
		return page.Player{}, false
	}
	near, reach := v.n.parts.gateway.Earshot(id)
	return page.Player{Name: p.Name(), Server: p.Server(), Near: near, Range: reach}, true
}

func (v *voicePage) closed(id uuid.UUID) page.Code {
	if !v.n.parts.voiceOn.Load() {
		return page.VoiceOff
	}
	if p := v.n.parts.server.Player(id); p != nil && !v.n.players.allowed(p, perm.Speak) && !v.n.players.allowed(p, perm.Listen) {
		return page.NoPermission
	}
	return ""
}

func (v *voicePage) about(q *http.Request) page.About {
	host := q.Host
	if h, port, err := net.SplitHostPort(host); err == nil {
		host = h
		if port == "25565" { // which the game assumes
			port = ""
		}
		if port != "" && port != "80" && port != "443" {
			host = net.JoinHostPort(h, port)
		}
	}
	t := v.terms.Load()
	name := t.name
	if name == "" {
		if name = host; strings.HasPrefix(name, "[") || net.ParseIP(name) != nil {
			name = "this server"
		}
	}
	return page.About{Network: name, Address: host, Voice: v.n.parts.voiceOn.Load(), Secure: t.secure || loopback(q.Host)}
}

// loopback tells whether a host is this machine, where browsers give a microphone without https.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// verdicts has the text of what a player may know of why they do not hear somebody. It says nothing of places, nor of
// who hides whom.
var verdicts = map[route.Verdict]string{
	route.ServerMuted: "muted", route.MayNotSpeak: "refused", route.Self: "self", route.Deaf: "deafened", route.MayNotListen: "no-listen",
	route.Hidden: "nobody", route.SpectatorRule: "spectator", route.GroupRule: "group", route.ElsewhereWorld: "world", route.Apart: "world",
	route.OutOfRange: "far", route.Untold: "wait", route.NoPosition: "wait",
}

func (v *voicePage) why(id uuid.UUID, name string) string {
	me := v.n.parts.server.Player(id)
	if me == nil {
		return ""
	}
	say := func(what, of string) string { return v.n.say(me.Locale(), "page-why-"+what, "player", of).String() }
	other, ok := v.n.players.named(name)
	if !ok || !v.n.world.Knows(id, other.ID()) {
		return say("nobody", name)
	}
	w, err := v.n.parts.gateway.Why(other.ID(), id)
	switch {
	case err != nil, !w.ListenerHere:
		return say("wait", other.Name())
	case !w.TalkerHere:
		return say("absent", other.Name())
	case w.Heard():
		return say("yes", other.Name())
	case w.Verdict == route.ServerMuted && w.Mute.Kind == talk.NotMuted:
		return say("wait", other.Name())
	}
	return say(verdicts[w.Verdict], other.Name())
}

// joined notes a player, and tells them of the page a little later. was is when they were here last.
func (v *voicePage) joined(p session.Player, was time.Time) {
	id, now := p.ID(), time.Now()
	v.book.Joined(id)
	v.mu.Lock()
	defer v.mu.Unlock()
	if last, ok := v.invited[id]; ok && now.Sub(last) < inviteEvery || now.Sub(was) < inviteEvery {
		return
	}
	for other, at := range v.invited {
		if len(v.invited) < maxInvited {
			break
		}
		if now.Sub(at) >= inviteEvery {
			delete(v.invited, other)
		}
	}
	if t := v.waiting[id]; t != nil {
		t.Stop()
	}
	v.waiting[id] = time.AfterFunc(inviteAfter, func() { v.invite(p) })
}

// maxInvited is how many invitations are kept before old ones are looked for.
const maxInvited = 10_000

func (v *voicePage) left(id uuid.UUID) {
	v.book.Left(id)
	v.mu.Lock()
	defer v.mu.Unlock()
	if t := v.waiting[id]; t != nil {
		t.Stop()
		delete(v.waiting, id)
	}
}

// invite tells a player of the page, unless their client has a voice of its own or they may have none.
func (v *voicePage) invite(p session.Player) {
	id, n := p.ID(), v.n
	v.mu.Lock()
	_, there := v.waiting[id]
	delete(v.waiting, id)
	v.mu.Unlock()
	t := v.terms.Load()
	if !there || n.parts.server.Player(id) != p || !t.on || !t.invites || p.Relayed() || n.parts.inviter.SaidHello(id) || v.closed(id) != "" || !n.players.allowed(p, commands.Permission("voice.link")) {
		return
	}
	if p.Server() == "" { // still on the way
		v.mu.Lock()
		v.waiting[id] = time.AfterFunc(inviteAfter, func() { v.invite(p) })
		v.mu.Unlock()
		return
	}
	if err := p.SendChat(n.texts().Invitation(p.Locale(), p.Protocol())); err != nil {
		return
	}
	v.mu.Lock()
	v.invited[id] = time.Now()
	v.mu.Unlock()
	n.log.Debug("player told of the voice page", slog.String("player", p.Name()))
}

// opener is the page as commands see it.
type opener struct{ n *Network }

// Link implements commands.Page, as the methods below do.
func (o opener) Link(p commands.Player) (url string, ok bool) {
	base, ok := o.n.parts.inviter.Base(p.ID())
	if !ok {
		return "", false
	}
	return base + "/#" + o.n.parts.page.book.Link(p.ID()), true
}

func (o opener) Letters(p commands.Player) (code, url string, ok bool) {
	base, ok := o.n.parts.inviter.Base(p.ID())
	if !ok {
		return "", "", false
	}
	code = o.n.parts.page.book.Letters(p.ID())
	return code[:3] + "-" + code[3:], base, true
}

func (o opener) ToggleMic(player uuid.UUID) bool { return o.n.parts.gateway.ToggleMic(player) }
