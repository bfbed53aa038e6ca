package itest

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/offer"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/voice/client"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/talk"
)

// motd returns what the server list shows.
func (p *program) motd(t *testing.T) string {
	t.Helper()
	return string((&portTest{}).ping(t, dial(t, p.addr, ""), proto.Max).Description)
}

// says waits for a line of the log, for the nth time.
func (p *program) says(n int, what string) {
	p.t.Helper()
	testkit.Until(p.t, fmt.Sprintf("%q in the log, %d times", what, n), func() bool { return strings.Count(p.log.String(), what) >= n })
}

// TestReload: what is changed in the file counts at once, for those who are on as well; whoever is on a server that is
// taken out stays there; and a file that is wrong changes nothing, whoever asks for it to be read.
func TestReload(t *testing.T) {
	for _, version := range []string{"1.16.5", "1.21.4"} {
		alongside(t, version, func(t *testing.T) { reload(t, version) })
	}
}

func reload(t *testing.T, version string) {
	a, b := peer.Backend(t, version, peer.None, ""), peer.Backend(t, version, peer.None, "")
	p := start(t, fmt.Sprintf("online: false\nstatus: {motd: first}\ntry: [a]\nservers: {a: {address: %q}}\n", a.Addr))
	ann := peer.NewBots(t, version).Join(p.addr, "Ann")
	a.Joined("Ann")
	node := func(kind int, children []int, extra any) map[string]any {
		flags := map[string]int{"unused": 0, "has_custom_suggestions": 0, "has_redirect_node": 0, "has_command": kind / 2, "command_node_type": kind}
		return map[string]any{"flags": flags, "children": children, "extraNodeData": extra}
	}
	integer := map[string]any{"name": "number", "parser": "brigadier:integer", "properties": map[string]any{"flags": map[string]any{"unused": 0, "max_present": 0, "min_present": 0}}}
	a.Write("Ann", "declare_commands", map[string]any{"rootIndex": 0, "nodes": []any{
		node(0, []int{1}, nil), node(1, []int{2}, map[string]any{"name": "warp"}), node(2, []int{}, integer),
	}})
	commands := func(has ...string) {
		t.Helper()
		ann.Await("commands", func(e peer.Event) bool {
			return !slices.ContainsFunc(has, func(c string) bool {
				name, not := strings.CutPrefix(c, "-")
				return slices.Contains(e.Names, name) == not
			})
		})
	}
	says := func(command, answer string) {
		t.Helper()
		ann.Chat(command)
		ann.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, answer) })
	}
	commands("warp", "server", "ping", "-glist")
	if got := ann.Complete("/server "); !slices.Contains(got, "a") || slices.Contains(got, "b") {
		t.Errorf("completed to %v", got)
	}

	// More servers, other texts, more permissions.
	both := fmt.Sprintf("online: false\nstatus: {motd: second}\ntry: [b]\nservers: {a: {address: %q}, b: {address: %q}}\n", a.Addr, b.Addr)
	p.write(both + "permissions: {players: {Ann: {nodes: [\"earshot.*\"]}}}\n")
	commands("warp", "server", "glist", "send")
	testkit.Until(t, "the other text", func() bool { return strings.Contains(p.motd(t), "second") })
	if got := ann.Complete("/server "); !slices.Contains(got, "b") {
		t.Errorf("completed to %v", got)
	}
	says("/glist", "Players online: 1")
	ann.Skip("moved")
	ann.Chat("/server b")
	b.Joined("Ann")
	ann.Await("moved", nil)

	// A server fewer: Ann stays.
	p.write("online: false\nstatus: {motd: third}\npermissions: {players: {Ann: {nodes: [\"earshot.*\"]}}}\n")
	testkit.Until(t, "the third text", func() bool { return strings.Contains(p.motd(t), "third") })
	says("/server a", "There is no server a")
	ann.Chat("still here")
	b.Await("chat", "Ann", func(e peer.Event) bool { return e.Text == "still here" })

	// What is wrong changes nothing, by the file, by a signal and by a command.
	const kept = "the configuration was not read again; nothing has changed"
	p.write("online: false\nstatus: {motd: fourth}\nvoice: {rang: 3}\n")
	p.says(1, kept)
	p.cmd.Process.Signal(syscall.SIGHUP)
	p.says(2, kept)
	says("/earshot reload", `unknown key "rang": did you mean "range"?`)
	p.says(3, kept)
	if got := p.motd(t); !strings.Contains(got, "third") {
		t.Errorf("the list shows %s", got)
	}
	says("/glist", "Players online: 1")

	// What needs a restart is named, and the rest is in force.
	before := p.addr
	p.addr = freeAddr(t)
	p.write("online: false\nstatus: {motd: fifth}\npermissions: {players: {Ann: {nodes: [\"earshot.command.earshot.*\", earshot.command.earshot]}}}\n")
	p.addr = before
	testkit.Until(t, "the fifth text", func() bool { return strings.Contains(p.motd(t), "fifth") })
	says("/earshot reload", "Not in force: listen: still")
	ann.Chat("/glist") // the server's again
	b.Await("chat", "Ann", func(e peer.Event) bool { return e.Text == "/glist" })

	says("/earshot dump", "Written to ")
	files, _ := filepath.Glob(filepath.Join(p.cmd.Dir, "earshot-dump-*.txt"))
	if len(files) != 1 {
		t.Fatalf("dumps: %v", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"goroutines: ", "motd: fifth", "\nAnn " + offlineID("Ann").String(), `server="b"`, "\nearshot_players 1\n", "proxy/session.(*Session).own"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in the dump:\n%s", want, text)
		}
	}
}

// TestReloadLanguages: a language that is put into the folder is in force at once, for those who speak it, and one with
// a mistake is not.
func TestReloadLanguages(t *testing.T) {
	a := peer.Backend(t, "1.20.4", peer.None, "")
	p := start(t, fmt.Sprintf("online: false\ntry: [a]\nservers: {a: {address: %q}}\n", a.Addr))
	ann := peer.NewBots(t, "1.20.4").Join(p.addr, "Ann")
	folder := filepath.Join(p.dir, "languages")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, "en.yml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("server-on: \"<gray>Here be <server>.\"\n")
	p.says(1, "the file has changed")
	ann.Chat("/server")
	ann.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, "Here be a.") })
	put("server-on: \"<gray>Here be <serfer>.\"\n")
	p.says(1, "<serfer> is neither a tag nor a value here")
	ann.Chat("/server")
	ann.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, "Here be a.") })
}

// TestReloadMended: a configuration that could not be put in force because of a file that it is the first to name is
// tried again when that file is mended, be it read with the configuration or after it.
func TestReloadMended(t *testing.T) {
	p := start(t, "online: false\nstatus: {motd: first}\n")
	failed := 0
	for what, c := range map[string]struct{ text, file string }{
		"secret": {"forwarding: {mode: modern, secret-file: late.secret}\nservers: {a: {address: \"127.0.0.1:1\"}}\n", "late.secret"},
		"icon":   {"status: {motd: %s, icon: late.png}\n", "late.png"},
	} {
		text := "online: false\nstatus: {motd: " + what + "}\n" + c.text
		if strings.Contains(c.text, "%s") {
			text = "online: false\n" + fmt.Sprintf(c.text, what)
		}
		p.write(text)
		failed++
		p.says(failed, "nothing has changed")
		content := []byte("word\n")
		if what == "icon" {
			var b bytes.Buffer
			if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 64, 64))); err != nil {
				t.Fatal(err)
			}
			content = b.Bytes()
		}
		if err := os.WriteFile(filepath.Join(p.dir, c.file), content, 0o600); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "the one with the "+what, func() bool { return strings.Contains(p.motd(t), what) })
	}
}

// TestReloadCertificate: a renewed certificate is presented at once, though its two files are written one after the
// other.
func TestReloadCertificate(t *testing.T) {
	cert, key, _ := certificate(t)
	p := start(t, fmt.Sprintf("online: false\ntls: {certificate: %q, key: %q}\n", cert, key))
	newCert, newKey, roots := certificate(t)
	for from, to := range map[string]string{newKey: key, newCert: cert} {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	testkit.Until(t, "the new certificate", func() bool {
		c, err := tls.Dial("tcp", p.addr, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// TestReloadVoice: groups that are switched off close requests with 1003, and voice that is switched off ends the
// sockets; switched on again, a client that asked meanwhile is invited.
func TestReloadVoice(t *testing.T) {
	a := peer.Backend(t, "1.20.4", peer.None, "")
	base := fmt.Sprintf("online: false\ntry: [a]\nservers: {a: {address: %q}}\n", a.Addr)
	p := start(t, base)
	ann := newTalker(t, p, peer.NewBots(t, "1.20.4").Join(p.addr, "Ann"), a)
	ann.connect(client.Config{Ask: caps.Newest()})
	testkit.Until(t, "groups", func() bool {
		return ann.c.Groups() != nil && ann.c.Ranges() == line.Ranges{Tiers: talk.TiersOf(talk.Whisper, talk.Shout)}
	})
	p.write(base + "voice: {whisper: 0, groups: {enabled: false}}\n")
	testkit.Until(t, "no whisper", func() bool { return ann.c.Ranges() == line.Ranges{Tiers: talk.TiersOf(talk.Shout)} })
	p.says(1, "the configuration was read again")
	if err := ann.c.Group(talk.GroupRequest{Verb: talk.Create, Name: "team"}); err != nil {
		t.Fatal(err)
	}
	gone := func(why string) {
		t.Helper()
		select {
		case <-ann.c.Done():
			if err := ann.c.Wait(); err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("the socket ended with %v, want %s", err, why)
			}
		case <-time.After(peer.Patience):
			t.Fatal("the socket did not end")
		}
	}
	gone("1003")
	ann.connect(client.Config{Ask: caps.Newest()})
	p.write(base + "voice: {enabled: false}\n")
	gone("1001")
	p.says(2, "the configuration was read again")
	ann.bot.Skip("payload")
	ann.bot.Payload(offer.Hello, offer.AppendHello(nil))
	ann.bot.Await("payload", func(e peer.Event) bool { return e.Channel == offer.Unavailable })
	p.write(base)
	ann.bot.Await("payload", func(e peer.Event) bool { return e.Channel == offer.Handshake })
	ann.connect(client.Config{Ask: caps.Newest()})
}

// TestReloadReachesPlayers: which servers there are to go to counts for players who are on: when theirs dies they go to
// the new list, and to a server that has got another address they go by its name.
func TestReloadReachesPlayers(t *testing.T) {
	for _, version := range []string{"1.12.2", "1.20.4"} {
		alongside(t, version, func(t *testing.T) {
			a, b, d := peer.Backend(t, version, peer.None, ""), peer.Backend(t, version, peer.None, ""), peer.Backend(t, version, peer.None, "")
			p := start(t, fmt.Sprintf("online: false\ntry: [a]\nservers: {a: {address: %q}, b: {address: %q}}\n", a.Addr, b.Addr))
			ann := peer.NewBots(t, version).Join(p.addr, "Ann")
			a.Joined("Ann")
			ann.Chat("/server b")
			b.Joined("Ann")
			ann.Await("moved", nil)
			p.write(fmt.Sprintf("online: false\ntry: [lobby]\nservers: {b: {address: %q}, lobby: {address: %q}}\n", b.Addr, d.Addr))
			p.says(1, "the configuration was read again")
			b.Drop("Ann")
			d.Joined("Ann")
			ann.Await("moved", nil)

			p.write(fmt.Sprintf("online: false\ntry: [lobby]\nservers: {lobby: {address: %q}}\n", a.Addr))
			p.says(2, "the configuration was read again")
			a.Skip("join", "Ann")
			ann.Chat("/server lobby")
			a.Joined("Ann")
			ann.Await("moved", nil)
			ann.Chat("/server lobby")
			ann.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, "You are on lobby already") })
		})
	}
}
