package network

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"image"
	"image/png"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/configs"
)

// sample is a value of a key that differs from what there is without it. Assignments are environment variables without
// their prefix.
type sample struct {
	with  string // assignments, a line each, that the value makes sense with
	value string // an assignment
}

const somebody, other = "853c80ef-3c37-49fd-aa49-938b674adae6", "4566e69f-c907-48ee-8d71-d7ba5aa00d20"

const server, region = "SERVERS={a: {address: '127.0.0.1:1'}}", "VOICE_REGIONS={r: {world: w, from: [0, 0, 0], to: [1, 1, 1], range: 5}}"

// ground is a walk area, with one more setting of it.
func ground(more string) string {
	return server + "\nWALK_ENABLED=true\nWALK_AREAS={a: {world: a/w, from: [0, 0], to: [9, 9]" + more + "}}"
}

const room = "ROOMS_DECLARED={a: {capacity: 5}}"

// live has a sample for every key that a reload puts in force. A key of a list or map is written with a star.
var live = map[string]sample{
	"online": {"", "ONLINE=false"}, "session-server": {"", "SESSION_SERVER=http://127.0.0.1:1"},
	"accept-transfers": {"", "ACCEPT_TRANSFERS=true"}, "keep-resource-packs": {"", "KEEP_RESOURCE_PACKS=true"}, "final-reasons": {"", "FINAL_REASONS=[go]"},
	"try": {server, "TRY=[a]"}, "bungeecord": {"", "BUNGEECORD=full"}, "languages": {"", "LANGUAGES=others"},

	"fallback.strategy": {"", "FALLBACK_STRATEGY=random"}, "fallback.attempts": {"", "FALLBACK_ATTEMPTS=7"}, "fallback.within": {"", "FALLBACK_WITHIN=7s"},
	"fallback.after-loss": {"", "FALLBACK_AFTER_LOSS=false"}, "fallback.return": {"", "FALLBACK_RETURN=false"},
	"fallback.moves-per-second": {"", "FALLBACK_MOVES_PER_SECOND=7"}, "health.check": {"", "HEALTH_CHECK=tcp"},
	"health.interval": {"", "HEALTH_INTERVAL=7s"}, "health.timeout": {"", "HEALTH_TIMEOUT=7s"}, "health.failures": {"", "HEALTH_FAILURES=7"},

	"servers": {"", server}, "servers.*.address": {server, "SERVERS={a: {address: '127.0.0.1:2'}}"},
	"servers.*.forwarding":          {server, "SERVERS={a: {address: '127.0.0.1:1', forwarding: legacy}}"},
	"servers.*.secret":              {server, "SERVERS={a: {address: '127.0.0.1:1', secret: a}}"},
	"servers.*.secret-file":         {server, "SERVERS={a: {address: '127.0.0.1:1', secret-file: DIR/secret}}"},
	"servers.*.send-proxy-protocol": {server, "SERVERS={a: {address: '127.0.0.1:1', send-proxy-protocol: true}}"},
	"servers.*.bungeecord":          {server, "SERVERS={a: {address: '127.0.0.1:1', bungeecord: off}}"},
	"servers.*.transfers":           {server, "SERVERS={a: {address: '127.0.0.1:1', transfers: refuse}}"},
	"servers.*.cookies":             {server, "SERVERS={a: {address: '127.0.0.1:1', cookies: refuse}}"},
	"servers.*.visibility":          {server, "SERVERS={a: {address: '127.0.0.1:1', visibility: tab-list}}"},
	"servers.*.missing-bodies":      {server, "SERVERS={a: {address: '127.0.0.1:1', missing-bodies: hide}}"},
	"servers.*.restricted":          {server, "SERVERS={a: {address: '127.0.0.1:1', restricted: true}}"},
	"server-transfers":              {server, "SERVER_TRANSFERS=refuse"}, "server-cookies": {server, "SERVER_COOKIES=refuse"},
	"limits.channels.per-second": {"", "LIMITS_CHANNELS_PER_SECOND=7"}, "limits.channels.burst": {"", "LIMITS_CHANNELS_BURST=7"},
	"limits.bungeecord.per-second": {"", "LIMITS_BUNGEECORD_PER_SECOND=7"}, "limits.bungeecord.burst": {"", "LIMITS_BUNGEECORD_BURST=7"},
	"servers.*.floodgate": {"BEDROCK_KEY_FILE=DIR/aes\n" + server, "SERVERS={a: {address: '127.0.0.1:1', floodgate: true}}"},
	"bedrock.key-file":    {"", "BEDROCK_KEY_FILE=DIR/aes"}, "bedrock.trusted": {"BEDROCK_KEY_FILE=DIR/aes", "BEDROCK_TRUSTED=[10.0.0.1]"},
	"bedrock.prefix":  {"BEDROCK_KEY_FILE=DIR/aes", "BEDROCK_PREFIX=*"},
	"forwarding.mode": {server, "FORWARDING_MODE=legacy"}, "forwarding.secret": {server, "FORWARDING_SECRET=a"},
	"forwarding.secret-file": {server, "FORWARDING_SECRET_FILE=DIR/secret"},

	"status.motd": {"", "STATUS_MOTD=x"}, "status.icon": {"", "STATUS_ICON=PICTURE"}, "status.max-players": {"", "STATUS_MAX_PLAYERS=7"},
	"status.sample": {"", "STATUS_SAMPLE=off"}, "status.sample-lines": {"STATUS_SAMPLE=lines", "STATUS_SAMPLE_LINES=[x]"},
	"status.passthrough": {"", "STATUS_PASSTHROUGH=[players]"}, "status.passthrough-cache": {"", "STATUS_PASSTHROUGH_CACHE=7s"},
	"limbo.message":    {"", "LIMBO_MESSAGE=x"},
	"unknown-versions": {"", "UNKNOWN_VERSIONS=refuse"},
	"unknown-hosts":    {"", "UNKNOWN_HOSTS=refuse"}, "hosts": {"", "HOSTS={a.b: {}}"},
	"hosts.*.try": {server, "HOSTS={a.b: {try: [a]}}"}, "hosts.*.lite": {server, "HOSTS={a.b: {lite: [a]}}"},
	"hosts.*.motd": {"HOSTS={a.b: {}}", "HOSTS={a.b: {motd: x}}"}, "hosts.*.icon": {"HOSTS={a.b: {}}", "HOSTS={a.b: {icon: 'PICTURE'}}"},
	"hosts.*.max-players":  {"HOSTS={a.b: {}}", "HOSTS={a.b: {max-players: 7}}"},
	"hosts.*.sample":       {"HOSTS={a.b: {}}", "HOSTS={a.b: {sample: off}}"},
	"hosts.*.sample-lines": {"HOSTS={a.b: {}}", "HOSTS={a.b: {sample-lines: [x]}}"},
	"hosts.*.passthrough":  {"HOSTS={a.b: {}}", "HOSTS={a.b: {passthrough: [players]}}"},

	"commands.announce": {"", "COMMANDS_ANNOUNCE=false"}, "commands.hubs": {"", "COMMANDS_HUBS=[limbo]"},
	"commands.aliases": {"", "COMMANDS_ALIASES={glist: [who]}"}, "commands.rate.per-second": {"", "COMMANDS_RATE_PER_SECOND=7"},
	"commands.rate.burst": {"", "COMMANDS_RATE_BURST=7"}, "commands.completions.per-second": {"", "COMMANDS_COMPLETIONS_PER_SECOND=7"},
	"commands.completions.burst": {"", "COMMANDS_COMPLETIONS_BURST=7"}, "commands.completions-kick-after": {"", "COMMANDS_COMPLETIONS_KICK_AFTER=7"}, "commands.kick-after": {"", "COMMANDS_KICK_AFTER=7"},
	"commands.strict-chat": {"", "COMMANDS_STRICT_CHAT=true"},
	"commands.record":      {"", "COMMANDS_RECORD=false"},

	"permissions.groups":           {"", "PERMISSIONS_GROUPS={g: {nodes: [a]}}"},
	"permissions.groups.*.parents": {"PERMISSIONS_GROUPS={g: {nodes: [a]}, h: {nodes: [b]}}", "PERMISSIONS_GROUPS={g: {nodes: [a], parents: [h]}, h: {nodes: [b]}}"},
	"permissions.groups.*.nodes":   {"PERMISSIONS_GROUPS={g: {nodes: [a]}}", "PERMISSIONS_GROUPS={g: {nodes: [b]}}"},
	"permissions.players":          {"", "PERMISSIONS_PLAYERS={Ann: {nodes: [a]}}"},
	"permissions.players.*.groups": {"PERMISSIONS_GROUPS={g: {nodes: [a]}}\nPERMISSIONS_PLAYERS={Ann: {}}", "PERMISSIONS_PLAYERS={Ann: {groups: [g]}}"},
	"permissions.players.*.nodes":  {"PERMISSIONS_PLAYERS={Ann: {}}", "PERMISSIONS_PLAYERS={Ann: {nodes: [a]}}"},
	"permissions.operators":        {"PERMISSIONS_GROUPS={g: {nodes: [a]}}", "PERMISSIONS_OPERATORS={3: g}"},

	"voice.enabled": {"", "VOICE_ENABLED=false"}, "voice.public-url": {"", "VOICE_PUBLIC_URL=https://v.example"},
	"voice.page": {"", "VOICE_PAGE=false"}, "voice.name": {"", "VOICE_NAME=Isles"}, "voice.invite": {"", "VOICE_INVITE=off"},
	"voice.allowed-origins": {"", "VOICE_ALLOWED_ORIGINS=['https://p.example']"}, "voice.range": {"", "VOICE_RANGE=7"},
	"voice.worlds": {"", "VOICE_WORLDS={w: 7}"}, "voice.regions": {"", region},
	"voice.regions.*.world":    {region, strings.Replace(region, "world: w", "world: x", 1)},
	"voice.regions.*.from":     {region, strings.Replace(region, "from: [0", "from: [-1", 1)},
	"voice.regions.*.to":       {region, strings.Replace(region, "to: [1", "to: [2", 1)},
	"voice.regions.*.range":    {region, strings.Replace(region, "range: 5", "range: 6", 1)},
	"voice.regions.*.priority": {region, strings.Replace(region, "range: 5", "range: 5, priority: 1", 1)},
	"voice.whisper":            {"", "VOICE_WHISPER=0"}, "voice.shout": {"", "VOICE_SHOUT=0"}, "voice.spectators": {"", "VOICE_SPECTATORS=nobody"},
	"voice.visibility": {"", "VOICE_VISIBILITY=everyone"}, "voice.soundboard": {"", "VOICE_SOUNDBOARD=false"}, "voice.sounds": {"", "VOICE_SOUNDS=elsewhere"},
	"voice.groups.enabled": {"", "VOICE_GROUPS_ENABLED=false"}, "voice.groups.max-groups": {"", "VOICE_GROUPS_MAX_GROUPS=7"},
	"voice.groups.max-members": {"", "VOICE_GROUPS_MAX_MEMBERS=7"}, "voice.groups.types": {"", "VOICE_GROUPS_TYPES=[open]"},
	"voice.groups.passwords": {"", "VOICE_GROUPS_PASSWORDS=false"}, "voice.groups.persistent": {"", "VOICE_GROUPS_PERSISTENT=false"},
	"voice.groups.max-persistent": {"", "VOICE_GROUPS_MAX_PERSISTENT=7"}, "voice.groups.unused-days": {"", "VOICE_GROUPS_UNUSED_DAYS=7"},
	"voice.domains":            {"", "VOICE_DOMAINS={d: [" + somebody + "]}"},
	"voice.listens":            {"VOICE_DOMAINS={d: []}", "VOICE_LISTENS=[{listener: " + somebody + ", domain: d}]"},
	"voice.listens.*.listener": {"VOICE_DOMAINS={d: []}\nVOICE_LISTENS=[{listener: " + somebody + ", domain: d}]", "VOICE_LISTENS=[{listener: " + other + ", domain: d}]"},
	"voice.listens.*.domain":   {"VOICE_DOMAINS={d: [], e: []}\nVOICE_LISTENS=[{listener: " + somebody + ", domain: d}]", "VOICE_LISTENS=[{listener: " + somebody + ", domain: e}]"},
	"voice.edges":              {"", "VOICE_EDGES=[{speaker: " + somebody + ", listener: " + other + "}]"},
	"voice.edges.*.speaker":    {"VOICE_EDGES=[{speaker: " + somebody + ", listener: " + other + "}]", "VOICE_EDGES=[{speaker: 00000000-0000-0000-0000-000000000001, listener: " + other + "}]"},
	"voice.edges.*.listener":   {"VOICE_EDGES=[{speaker: " + somebody + ", listener: " + other + "}]", "VOICE_EDGES=[{speaker: " + somebody + ", listener: 00000000-0000-0000-0000-000000000001}]"},

	"tls.certificate": {"TLS={certificate: DIR/cert1.pem, key: DIR/key.pem}", "TLS_CERTIFICATE=DIR/cert2.pem"},
	"tls.key":         {"", "TLS={certificate: DIR/cert1.pem, key: DIR/key.pem}"}, // no certificate has two
	"tls.acme.hosts":  {"", "TLS_ACME_HOSTS=[a.example]"}, "tls.acme.email": {"TLS_ACME_HOSTS=[a.example]", "TLS_ACME_EMAIL=a@b.example"},
	"tls.acme.directory": {"TLS_ACME_HOSTS=[a.example]", "TLS={acme: {hosts: [a.example], directory: 'https://ca.example/dir'}}"}, "tls.acme.root-ca": {"TLS_ACME_HOSTS=[a.example]", "TLS_ACME_ROOT_CA=DIR/cert1.pem"},
	"tls.self-signed":        {"", "TLS_SELF_SIGNED=true"},
	"proxy-protocol.trusted": {"", "PROXY_PROTOCOL_TRUSTED=[127.0.0.1]"}, "proxy-protocol.required": {"PROXY_PROTOCOL_TRUSTED=[127.0.0.1]", "PROXY_PROTOCOL_REQUIRED=true"},
	"admin.networks": {"", "ADMIN_NETWORKS=[10.0.0.0/8]"}, "admin.hosts": {"", "ADMIN_HOSTS=[a.b]"}, "http-proxies": {"", "HTTP_PROXIES=[127.0.0.1]"},
	"rooms.declared": {"", room}, "rooms.declared.*.capacity": {room, "ROOMS_DECLARED={a: {capacity: 7}}"},
	"rooms.declared.*.token": {room, "ROOMS_DECLARED={a: {token: a}}"}, "rooms.declared.*.token-file": {room, "ROOMS_DECLARED={a: {token-file: DIR/secret}}"},
	"walk.enabled": {ground(""), "WALK_ENABLED=false"}, "walk.tick-rate": {ground(""), "WALK_TICK_RATE=7"}, "walk.areas": {server + "\nWALK_ENABLED=true", ground("")},
	"walk.areas.*.world": {ground(""), "WALK_AREAS={a: {world: a/x, from: [0, 0], to: [9, 9]}}"}, "walk.areas.*.from": {ground(""), "WALK_AREAS={a: {world: a/w, from: [1, 0], to: [9, 9]}}"},
	"walk.areas.*.to": {ground(""), "WALK_AREAS={a: {world: a/w, from: [0, 0], to: [9, 8]}}"}, "walk.areas.*.spawn": {ground(""), ground(", spawn: [1, 1]")},
	"walk.areas.*.max-guests": {ground(""), ground(", max-guests: 7")}, "walk.areas.*.obstacles": {ground(""), ground(", obstacles: [{at: [1, 1], radius: 1}]")},
	"walk.areas.*.obstacles.*.at":     {ground(", obstacles: [{at: [1, 1], radius: 1}]"), ground(", obstacles: [{at: [1, 2], radius: 1}]")},
	"walk.areas.*.obstacles.*.radius": {ground(", obstacles: [{at: [1, 1], radius: 1}]"), ground(", obstacles: [{at: [1, 1], radius: 2}]")},
	"walk.areas.*.obstacles.*.colour": {ground(", obstacles: [{at: [1, 1], radius: 1}]"), ground(", obstacles: [{at: [1, 1], radius: 1, colour: 3366ff}]")},
	"rcon.password":                   {"", "RCON_PASSWORD=a"}, "rcon.password-file": {"", "RCON_PASSWORD_FILE=DIR/secret"},
	"compression.threshold": {"", "COMPRESSION_THRESHOLD=7"}, "compression.level": {"", "COMPRESSION_LEVEL=7"},
	"limits.connections.per-second": {"", "LIMITS_CONNECTIONS_PER_SECOND=7"}, "limits.connections.burst": {"", "LIMITS_CONNECTIONS_BURST=7"},
	"limits.logins.per-second": {"", "LIMITS_LOGINS_PER_SECOND=7"}, "limits.logins.burst": {"", "LIMITS_LOGINS_BURST=7"},
	"limits.status.per-second": {"", "LIMITS_STATUS_PER_SECOND=7"}, "limits.status.burst": {"", "LIMITS_STATUS_BURST=7"},
	"limits.exempt": {"", "LIMITS_EXEMPT=[10.0.0.0/8]"}, "limits.pending": {"", "LIMITS_PENDING=7"}, "limits.http": {"", "LIMITS_HTTP=77"},
	"limits.plugin-message": {"", "LIMITS_PLUGIN_MESSAGE=40000"},
	"timeouts.first-byte":   {"", "TIMEOUTS_FIRST_BYTE=7s"}, "timeouts.login": {"", "TIMEOUTS_LOGIN=7s"}, "timeouts.read": {"", "TIMEOUTS_READ=7s"},
	"timeouts.write": {"", "TIMEOUTS_WRITE=7s"}, "timeouts.backend-dial": {"", "TIMEOUTS_BACKEND_DIAL=7s"},
	"timeouts.backend-login": {"", "TIMEOUTS_BACKEND_LOGIN=7s"}, "timeouts.backend-configuration": {"", "TIMEOUTS_BACKEND_CONFIGURATION=7s"},
	"timeouts.backend-join": {"", "TIMEOUTS_BACKEND_JOIN=7s"}, "timeouts.session-server": {"", "TIMEOUTS_SESSION_SERVER=7s"},
	"timeouts.configuration-answer": {"", "TIMEOUTS_CONFIGURATION_ANSWER=7s"},
	"log.level":                     {"", "LOG_LEVEL=debug"}, "log.format": {"", "LOG_FORMAT=json"}, "log.player-addresses": {"", "LOG_PLAYER_ADDRESSES=false"},
}

// keysOf calls fn for every key below t.
func keysOf(t reflect.Type, key string, fn func(key string)) {
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			keysOf(f.Type, strings.TrimPrefix(key+"."+name, "."), fn)
		}
	case reflect.Map, reflect.Slice:
		fn(key)
		if t.Elem().Kind() == reflect.Struct {
			keysOf(t.Elem(), key+".*", fn)
		}
	default:
		fn(key)
	}
}

// TestEveryKeyIsLive: a key either makes a difference to what a reload puts in force, or is named as one that needs a
// restart.
func TestEveryKeyIsLive(t *testing.T) {
	dir := t.TempDir()
	files(t, dir)
	var icon bytes.Buffer
	png.Encode(&icon, image.NewGray(image.Rect(0, 0, 64, 64)))
	words := strings.NewReplacer("DIR", dir, "PICTURE", "data:image/png;base64,"+base64.StdEncoding.EncodeToString(icon.Bytes()))
	facts := func(t *testing.T, assignments ...string) *settings {
		t.Helper()
		var environ []string
		for _, a := range assignments {
			for line := range strings.Lines(a) {
				environ = append(environ, configs.Prefix+words.Replace(strings.TrimSpace(line)))
			}
		}
		l, err := configs.Load("", dir, environ)
		if err != nil {
			t.Fatal(err)
		}
		s, err := newSettings(l)
		if err != nil {
			t.Fatal(err)
		}
		s.conf = nil
		return s
	}
	seen := map[string]bool{}
	keysOf(reflect.TypeFor[configs.Config](), "", func(key string) {
		seen[key] = true
		s, ok := live[key]
		switch {
		case configs.NeedsRestart(key) == ok:
			t.Errorf("%s: in force with a reload: %v; needs a restart: %v", key, ok, configs.NeedsRestart(key))
		case ok:
			t.Run(key, func(t *testing.T) {
				before := facts(t, s.with)
				if again := facts(t, s.with); !reflect.DeepEqual(before, again) {
					t.Fatal("the same configuration does not give the same settings")
				}
				if after := facts(t, s.with, s.value); reflect.DeepEqual(before, after) {
					t.Errorf("%s makes no difference", s.value)
				}
			})
		}
	})
	for key := range live {
		if !seen[key] {
			t.Errorf("%s is no key", key)
		}
	}
}

// files writes those that samples name.
func files(t *testing.T, dir string) {
	t.Helper()
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("secret", []byte("word"))
	write("aes", make([]byte, 16))
	if err := os.Mkdir(filepath.Join(dir, "others"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("others/de.yml", []byte("ping: Dein Ping\n"))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalECPrivateKey(key)
	write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	for i, name := range []string{"cert1.pem", "cert2.pem"} {
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
		der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		write(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
}

// A permission that no command and no voice has, and a tag that players would read, are noted with the line.
func TestWhatIsProbablyNotMeantIsNoted(t *testing.T) {
	for text, want := range map[string][]string{
		"permissions: {groups: {staff: {nodes: [earshot.comand.voice.mute, socketsvc.speek, -earshot.command.server]}}}": {
			`permissions.groups.staff.nodes: there is no permission "earshot.comand.voice.mute"; did you mean "earshot.command.voice.mute"?`,
			`permissions.groups.staff.nodes: there is no permission "socketsvc.speek"; did you mean "socketsvc.speak"?`,
		},
		"permissions: {players: {Ann: {nodes: [essentials.fly, earshot.commands.*, '*', earshot.*, earshot.command.voice.*]}}}": {
			`permissions.players.Ann.nodes: there is no permission "essentials.fly"`, `permissions.players.Ann.nodes: there is no permission "earshot.commands.*"`,
		},
		"status: {motd: '<grean>Hi'}":                         {`status.motd: <grean> is no tag, and players would read it; did you mean "green"?; \< is a < that is meant as such`},
		"status: {motd: '<green>Hi <3 I <b>you</b> \\<now>'}": nil,
		"status: {motd: '{\"text\": \"<grean>\"}'}":           nil,
		"limbo: {message: '<gold>a <yelow>b</yelow>'}":        {"limbo.message: <yelow> is no tag"},
		"status: {sample: lines, sample-lines: ['<bolt>x']}":  {`status.sample-lines: <bolt> is no tag, and players would read it; did you mean "bold"?`},
		"hosts: {a.b: {motd: '<gradiant:red:blue>x', sample-lines: ['<#ff880>y']}}": {
			`hosts."a.b".motd: <gradiant:red:blue> is no tag, and players would read it; did you mean "gradient"?`, `hosts."a.b".sample-lines: <#ff880> is no tag`,
		},
	} {
		f := filepath.Join(t.TempDir(), configs.FileName)
		os.WriteFile(f, []byte(text), 0o600)
		l, err := configs.Load(f, "", nil)
		if err != nil {
			t.Fatal(text, err)
		}
		a, err := New(l, Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(text, err)
		}
		t.Cleanup(func() { a.builtin.Close() })
		notes := a.now.conf.Notes
		for i := range max(len(notes), len(want)) {
			if len(notes) != len(want) || !strings.HasPrefix(notes[i], f+":1: "+want[i]) {
				t.Errorf("%s:\n have %q\n want %q", text, notes, want)
				break
			}
		}
	}
}
