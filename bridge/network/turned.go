package network

import (
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/bridge/rcon"
	"github.com/earshot-mc/earshot/bridge/rooms/serve"
	guests "github.com/earshot-mc/earshot/bridge/walk/serve"
	"github.com/earshot-mc/earshot/handshake/page"
	"github.com/earshot-mc/earshot/handshake/upgrade"
	"github.com/earshot-mc/earshot/proxy/listen"
	"github.com/earshot-mc/earshot/proxy/session"
)

// turnedEvery is how often each way of turning somebody away goes to the log; the first is there at once.
const turnedEvery = time.Minute

// turned counts connections that are turned away, and logs them now and then, with the setting to change.
type turned struct {
	log  *slog.Logger
	hide atomic.Bool // addresses are not for the log

	connections, sockets, places, visitors, remotes, walks, pages func(reason string)

	mu    sync.Mutex
	lines map[string]*turnedLine
}

type turnedLine struct {
	next time.Time
	more int // since the last one
}

func newTurned(log *slog.Logger) *turned {
	nothing := func(string) {}
	return &turned{log: log, lines: map[string]*turnedLine{}, connections: nothing, sockets: nothing, places: nothing, walks: nothing, visitors: nothing, remotes: nothing, pages: nothing}
}

// export adds the counters to /metrics; before that nothing is counted.
func (t *turned) export(pages *admin.Admin) {
	t.connections = pages.Tally("earshot_connections_refused_total", "Connections closed before they were told apart, by reason.", "reason", listen.Reasons)
	t.sockets = pages.Tally("earshot_voice_refused_total", "Voice sockets refused, by reason.", "reason", upgrade.Reasons())
	t.walks = pages.Tally("earshot_walk_refused_total", "Sockets of guests who walk refused before they are upgraded, by reason.", "reason", guests.Labels.Refused)
	t.places = pages.Tally("earshot_rooms_sockets_refused_total", "Sockets of rooms refused before they are upgraded, by reason.", "reason", serve.Reasons())
	t.remotes = pages.Tally("earshot_rcon_refused_total", "RCON connections refused or ended, by reason.", "reason", rcon.Reasons())
	t.pages = pages.Tally("earshot_page_refused_total", "Requests of voice pages refused, by the code that the page was told.", "code", page.Codes())
	t.visitors = pages.Tally("earshot_http_closed_total", "HTTP connections closed to make room for others, by reason.", "reason", []string{httpCrowded})
}

// why says what has happened and which setting decides about it.
type why struct{ what, setting string }

var connectionsTurned = map[string]why{
	listen.Throttled:      {"more connections from one network than it may have", "limits.connections, limits.exempt"},
	listen.Crowded:        {"too many connections that say nothing; the oldest give way", "limits.connections"},
	listen.ProxyUntrusted: {"a PROXY protocol header from an address that is not trusted", "proxy-protocol.trusted"},
	listen.ProxyMissing:   {"no PROXY protocol header from an address that has to send one", "proxy-protocol.required"},
	listen.ProxyInvalid:   {"a PROXY protocol header that cannot be read", "proxy-protocol.trusted"},
	listen.ProxySlow:      {"a PROXY protocol header that does not come in time", "proxy-protocol.trusted"},
	listen.TLSOff:         {"a TLS connection, and there is no certificate", "tls"},
}

var sessionsTurned = map[session.Ending]why{
	session.EndCrowded:         {"too many connections that are not players yet; those silent for the longest give way", "limits.pending"},
	session.EndUnknownHost:     {"a connection by a host name that is refused", "unknown-hosts, hosts"},
	session.EndStatusThrottled: {"more server list pings from one network than it may send", "limits.status, limits.exempt"},
	session.EndThrottled:       {"more logins from one network than it may have", "limits.logins, limits.connections, limits.exempt"},
	session.EndTransfer:        {"a player whom another server has transferred here", "accept-transfers"},
	session.EndBedrockSource:   {"a player of Bedrock Edition from where no Geyser is expected", "bedrock.trusted, bedrock.key-file"},
	session.EndFlood:           {"a player whose client sends more of one kind than any game does", "limits.channels for plugin messages, commands.completions-kick-after and commands.kick-after for the others"},
}

var socketsTurned = map[string]why{
	"origin":        {"a voice socket of a web page from elsewhere", "voice.allowed-origins, voice.public-url"},
	"token":         {"a voice socket with a token that is not valid, or not any more", "http-proxies, where all come from one address"},
	"rate_limited":  {"many voice sockets that cannot be opened, from one address; answers are slowed down", "http-proxies, where all come from one address"},
	"not_websocket": {"a request for a voice socket that is none; a reverse proxy has to pass Upgrade on", "http-proxies"},
	"version":       {"a request for a voice socket of another WebSocket version", "none: the client is too old"},
	"query":         {"a request for a voice socket without token and uuid", "voice.public-url, which must have no query"},
	"offline":       {"a voice socket of a player who is not on the network", "none: they have left"},
}

var walkTurned = map[string]why{
	"origin":        {"a guest's socket of a web page from elsewhere", "voice.allowed-origins, voice.public-url"},
	"rate_limited":  {"many guests' sockets that cannot be opened, from one address; answers are slowed down", "http-proxies, where all come from one address"},
	"not_websocket": {"a request for a walk that is no socket; a reverse proxy has to pass Upgrade on", "http-proxies"},
	"version":       {"a request for a walk of another WebSocket version", "none: the client is too old"},
	"area":          {"a guest who asks for an area that there is not", "walk.enabled, walk.areas"},
	"full":          {"a guest for whom there is no room", "walk.areas, max-guests"},
	"address":       {"more guests of one address than may be", "http-proxies, where all come from one address"},
}

var roomsTurned = map[string]why{
	"origin":        {"a room's socket of a web page from elsewhere", "voice.allowed-origins, voice.public-url"},
	"token":         {"a room's socket with a token that is not valid", "rooms.declared, http-proxies where all come from one address"},
	"rate_limited":  {"many rooms' sockets that cannot be opened, from one address; answers are slowed down", "http-proxies, where all come from one address"},
	"not_websocket": {"a request for a room that is no socket; a reverse proxy has to pass Upgrade on", "http-proxies"},
	"version":       {"a request for a room of another WebSocket version", "none: the client is too old"},
	"path":          {"a request for a room that can have no such name", "rooms.declared"},
	"crowded":       {"too many sockets of rooms that have not joined", "none: they have five seconds to; limits.http bounds connections"},
	"many":          {"too many sockets of rooms from one address that have not joined", "http-proxies, where all come from one address"},
}

var remotesTurned = map[string]why{
	rcon.Password:  {"an RCON connection with a wrong password; answers are slowed down", "rcon.password"},
	rcon.Throttled: {"an RCON connection from where too many wrong passwords came", "rcon.password, rcon.address"},
	rcon.NoLogin:   {"an RCON connection that does not begin with the password", "rcon.address"},
	rcon.Malformed: {"an RCON connection that sends something else", "rcon.address"},
	rcon.Crowded:   {"too many RCON connections; those silent for the longest give way", "rcon.address"},
}

var pagesTurned = map[string]why{
	string(page.TooManyTries): {"too many wrong codes for the voice page from one address", "http-proxies, where all come from one address"},
	string(page.NoPermission): {"a player at the voice page who may neither speak nor listen", "permissions: socketsvc.speak, socketsvc.listen"},
	string(page.BadOrigin):    {"a request to the voice page from a page of another site", "voice.public-url, voice.allowed-origins"},
	string(page.Busy):         {"a voice page that asks for tokens too often", "none: it waits and asks again"},
}

func (t *turned) page(code string, from netip.Addr) {
	t.pages(code)
	t.note("page", pagesTurned[code], from)
}

func (t *turned) connection(reason string, from netip.Addr) {
	t.connections(reason)
	t.note("connection", connectionsTurned[reason], from)
}

func (t *turned) session(e session.Ending, from netip.Addr) {
	t.note("player", sessionsTurned[e], from)
}

func (t *turned) voice(reason string, from netip.Addr) {
	t.sockets(reason)
	t.note("voice", socketsTurned[reason], from)
}

// flood notes a voice client that has been sent away for what it sent; its name is in the log of the room voice.
func (t *turned) flood(what string) {
	t.note("voice", why{"a voice client that sends more " + what + " than any does", "none: no client needs more; voice.enabled is the switch for all"}, netip.Addr{})
}

func (t *turned) walk(reason string, from netip.Addr) {
	t.walks(reason)
	t.note("walk", walkTurned[reason], from)
}

func (t *turned) rooms(reason string, from netip.Addr) {
	t.places(reason)
	t.note("rooms", roomsTurned[reason], from)
}

func (t *turned) remote(reason string, from netip.Addr) {
	t.remotes(reason)
	t.note("rcon", remotesTurned[reason], from)
}

func (t *turned) http(reason string, from netip.Addr) {
	t.visitors(reason)
	t.note("http", why{"too many HTTP connections; those unused for the longest give way", "limits.http, http-proxies"}, from)
}

// note logs it, unless it has just been logged.
func (t *turned) note(who string, w why, from netip.Addr) {
	if w == (why{}) {
		return
	}
	now := time.Now()
	t.mu.Lock()
	l := t.lines[w.what]
	if l == nil {
		l = &turnedLine{}
		t.lines[w.what] = l
	}
	if now.Before(l.next) {
		l.more++
		t.mu.Unlock()
		return
	}
	more := l.more
	*l = turnedLine{next: now.Add(turnedEvery)}
	t.mu.Unlock()
	args := []any{"room", who, "setting", w.setting}
	if !t.hide.Load() && from.IsValid() {
		args = append(args, "from", from)
	}
	if more > 0 {
		args = append(args, "also", more)
	}
	t.log.Warn("turned away: "+w.what, args...)
}
