package itest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/client"
)

// browser calls the page's own addresses as a page does.
type browser struct {
	t    *testing.T
	base string
	http *http.Client
}

func newBrowser(t *testing.T, base string) *browser {
	jar, _ := cookiejar.New(nil) // fails never
	return &browser{t, base, &http.Client{Jar: jar}}
}

// call returns the status, and what was answered in JSON.
func (b *browser) call(method, path string, body any) (status int, answer map[string]any) {
	b.t.Helper()
	sent, _ := json.Marshal(body)
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, bytes.NewReader(sent))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Origin", b.base)
	r.Header.Set("Content-Type", "application/json")
	q, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer q.Body.Close()
	json.NewDecoder(q.Body).Decode(&answer) // what is no JSON has no answer
	return q.StatusCode, answer
}

// refused calls, and wants a refusal with its code and a sentence.
func (b *browser) refused(status int, code, method, path string, body any) {
	b.t.Helper()
	got, answer := b.call(method, path, body)
	if got != status || answer["code"] != code || answer["message"] == "" || answer["message"] == nil {
		b.t.Errorf("%s %s: %d %v, want %d %s", method, path, got, answer, status, code)
	}
}

// trades a code for a session, and returns what the page is told of the player.
func (b *browser) trades(code string) map[string]any {
	b.t.Helper()
	status, answer := b.call("POST", "/api/session", map[string]string{"code": code})
	if status != 200 {
		b.t.Fatalf("the code %q is refused: %d %v", code, status, answer)
	}
	return answer
}

// token mints one.
func (b *browser) token() string {
	b.t.Helper()
	status, answer := b.call("POST", "/api/token", struct{}{})
	if status != 200 || answer["path"] != "voice" {
		b.t.Fatalf("no token: %d %v", status, answer)
	}
	return answer["token"].(string)
}

// TestWayToThePage: a player of any version types /voice and gets a link that a click opens, which works once. It is
// traded for what mints tokens as long as they are in the game, and letters to type do the same. Two who came so hear
// each other, and the command for the microphone reaches the page. A player without a voice of their own is told of
// the page, once.
func TestWayToThePage(t *testing.T) {
	for _, version := range []string{"1.8.8", "1.16.5", "1.20.4", "1.21.4", "26.1"} {
		alongside(t, version, func(t *testing.T) { wayToThePage(t, version) })
	}
}

func wayToThePage(t *testing.T, version string) {
	p := start(t, "voice: {name: Seven Isles}\n", "--offline")
	bots := peer.NewBots(t, version)
	cid := bots.Join(p.addr, "Cid")
	ann, bob := newTalker(t, p, bots.Join(p.addr, "Ann"), nil), newTalker(t, p, bots.Join(p.addr, "Bob"), nil)
	ann.bot.Chat("/voice")
	link := ann.bot.Await("click", func(e peer.Event) bool { return strings.Contains(e.Text, "#") }).Text
	ann.bot.Await("chat", func(e peer.Event) bool {
		return e.Text == "Talk by voice: [open the page] Works once, for 5 minutes; keep it to yourself."
	})
	base, code, _ := strings.Cut(link, "/#")
	if base != "http://"+p.addr {
		t.Errorf("the link is %s", link)
	}
	a := newBrowser(t, base)
	if status, _ := a.call("GET", "/", nil); status != 200 {
		t.Errorf("the page: %d", status)
	}
	if _, about := a.call("GET", "/api/about", nil); about["network"] != "Seven Isles" || about["voice"] != true || about["secure"] != true {
		t.Errorf("about: %v", about)
	}
	a.refused(401, "session_ended", "GET", "/api/session", nil)
	a.refused(401, "session_ended", "POST", "/api/token", struct{}{})
	if me := a.trades(code); me["name"] != "Ann" || me["uuid"] != ann.id.String() || me["network"] != "Seven Isles" || me["range"] != 48.0 {
		t.Errorf("told %v", me)
	}
	newBrowser(t, base).refused(410, "link_used", "POST", "/api/session", map[string]string{"code": code})

	bob.bot.Chat("/voice code")
	said := bob.bot.Await("chat", func(e peer.Event) bool { return strings.HasPrefix(e.Text, "Type ") }).Text
	words := strings.Fields(said)
	if want := fmt.Sprintf("Type %s at %s within 2 minutes. It works once; keep it to yourself.", words[1], base); said != want {
		t.Errorf("said %q, want %q", said, want)
	}
	b := newBrowser(t, base)
	b.trades(strings.ToLower(words[1]))

	page := caps.Newest()
	page.Page = 1
	toggled := make(chan string, 16)
	cfg := client.Config{Ask: page, Subprotocol: true, Header: http.Header{"Origin": {base}}}
	ann.dial(base, a.token(), client.Config{Ask: page, Subprotocol: true, Header: http.Header{"Origin": {base}}, Text: func(line string) {
		select {
		case toggled <- line:
		default:
		}
	}})
	bob.dial(base, b.token(), cfg)
	bob.hears(ann, 1, 0, 0)
	ann.hears(bob, 1, 0, 0)
	if status, why := b.call("POST", "/api/why", map[string]string{"name": "ann"}); status != 200 || why["sentence"] != "You hear Ann." {
		t.Errorf("why: %d %v", status, why)
	}
	if _, why := b.call("POST", "/api/why", map[string]string{"name": "Nobody_here"}); why["sentence"] != "There is nobody called Nobody_here whom you could hear." {
		t.Errorf("why of nobody: %v", why)
	}
	ann.bot.Chat("/voice mic")
	testkit.Until(t, "the page to be told of the microphone", func() bool {
		select {
		case line := <-toggled:
			return line == "SSVC_MIC_V1 toggle"
		default:
			return false
		}
	})

	// A player who leaves has no voice, and has it back with the same session.
	ann.bot.Quit()
	ann.bot.Await("end", func(peer.Event) bool { return true })
	testkit.Until(t, "Ann's session to wait", func() bool {
		status, answer := a.call("POST", "/api/token", struct{}{})
		return status == 409 && answer["code"] == "player_left"
	})
	ann.bot = bots.Join(p.addr, "Ann")
	testkit.Until(t, "Ann's session to go on", func() bool { status, _ := a.call("POST", "/api/token", struct{}{}); return status == 200 })

	// Wrong letters are few, and a link is none of them.
	for range 8 {
		b.refused(403, "wrong_code", "POST", "/api/session", map[string]string{"code": "AAAAAA"})
	}
	b.refused(429, "too_many_tries", "POST", "/api/session", map[string]string{"code": "AAAAAA"})
	ann.bot.Chat("/voice link")
	again := ann.bot.Await("click", func(e peer.Event) bool { return strings.Contains(e.Text, "#") }).Text
	_, code, _ = strings.Cut(again, "/#")
	newBrowser(t, base).trades(code)

	// Once a day a player without a voice of their own is told.
	cid.Await("click", func(e peer.Event) bool { return e.Text == "/voice" })
	if version != "1.21.4" {
		return
	}
	dan := newTalker(t, p, bots.Join(p.addr, "Dan"), nil)
	dan.invited()
	cid.Quit()
	cid.Await("end", func(peer.Event) bool { return true })
	cid = bots.Join(p.addr, "Cid")
	eve := bots.Join(p.addr, "Eve")
	eve.Await("click", func(e peer.Event) bool { return e.Text == "/voice" })
	if dan, cid := dan.bot.Count("click"), cid.Count("click"); dan != 0 || cid != 1 {
		t.Errorf("who has said hello is told of the page %d times, who was told today %d times in all", dan, cid)
	}
}
