package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ann = uuid.MustParse("00000000-0000-4000-8000-00000000000a")
	bob = uuid.MustParse("00000000-0000-4000-8000-00000000000b")
)

// stand is a page with players in memory.
type stand struct {
	*Handler
	t       testing.TB
	here    map[uuid.UUID]bool
	closed  Code
	mintErr error
	counted map[string]int
}

func newStand(t testing.TB) *stand {
	s := &stand{t: t, here: map[uuid.UUID]bool{ann: true, bob: true}, counted: map[string]int{}}
	var err error
	s.Handler, err = New(Config{
		Files: fstest.MapFS{
			"index.html":           {Data: []byte("<!doctype html><title>Voice</title>" + strings.Repeat(" ", 2000))},
			"assets/app-3f2a.js":   {Data: []byte("export {}")},
			"manifest.webmanifest": {Data: []byte("{}")},
		},
		Book:   NewBook(),
		Player: func(id uuid.UUID) (Player, bool) { return Player{id.String()[35:], "lobby", 3, 48}, s.here[id] },
		Closed: func(uuid.UUID) Code { return s.closed },
		Mint: func(id uuid.UUID) (string, time.Duration, error) {
			return "token-of-" + id.String()[35:], time.Minute, s.mintErr
		},
		Why:   func(id uuid.UUID, name string) string { return id.String()[35:] + " does not hear " + name },
		About: func(*http.Request) About { return About{Network: "Oak", Address: "play.example", Voice: true} },
		Count: func(code string, _ netip.Addr) { s.counted[code]++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reply is what a page gets.
type reply struct {
	status int
	fields map[string]any
	cookie *http.Cookie
	header http.Header
	body   string
}

// ask sends a request as a browser at the page does. change may be "Header: value", which replaces it, or "Header:",
// which takes it away; "from ADDR" sets who asks.
func (s *stand) ask(method, path, body, cookie string, change ...string) reply {
	s.t.Helper()
	r := httptest.NewRequest(method, "http://voice.example:25565"+path, strings.NewReader(body))
	r.RemoteAddr = "192.0.2.1:999"
	r.Header.Set("Origin", "http://voice.example:25565")
	r.Header.Set("Content-Type", "application/json")
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: "earshot-25565", Value: cookie})
	}
	for _, c := range change {
		if from, ok := strings.CutPrefix(c, "from "); ok {
			r.RemoteAddr = from
			continue
		}
		name, value, _ := strings.Cut(c, ":")
		if r.Header.Del(name); value != "" {
			r.Header.Set(name, strings.TrimSpace(value))
		}
		if name == "Host" {
			r.Host = strings.TrimSpace(value)
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	res := w.Result()
	b, _ := io.ReadAll(res.Body)
	out := reply{status: res.StatusCode, header: res.Header, body: string(b)}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(b, &out.fields); err != nil {
			s.t.Fatalf("%s %s: %q: %v", method, path, b, err)
		}
	}
	for _, c := range res.Cookies() {
		out.cookie = c
	}
	return out
}

func (s *stand) trade(code string, change ...string) reply {
	s.t.Helper()
	b, _ := json.Marshal(map[string]string{"code": code})
	return s.ask("POST", "/api/session", string(b), "", change...)
}

// wants a refusal with its code, its status and a sentence.
func (s *stand) wants(r reply, c Code) {
	s.t.Helper()
	if r.fields["code"] != string(c) || r.status != answers[c].status || r.fields["message"] != answers[c].text || r.cookie != nil {
		s.t.Errorf("%d %s, want %s", r.status, r.body, c)
	}
}

func TestLinkBecomesASession(t *testing.T) {
	s := newStand(t)
	r := s.trade(s.cfg.Book.Link(ann))
	if r.status != 200 || r.fields["name"] != "a" || r.fields["uuid"] != ann.String() || r.fields["server"] != "lobby" ||
		r.fields["near"] != 3.0 || r.fields["range"] != 48.0 || r.fields["network"] != "Oak" || r.fields["recording"] != false {
		t.Fatal(r)
	}
	c := r.cookie
	if c == nil || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/" || c.Name != "earshot-25565" || r.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%+v", c)
	}
	if r := s.ask("GET", "/api/session", "", c.Value); r.status != 200 || r.fields["name"] != "a" {
		t.Error(r)
	}
	for range 2 { // a session mints again and again
		if r := s.ask("POST", "/api/token", "{}", c.Value); r.status != 200 || r.fields["token"] != "token-of-a" || r.fields["path"] != "voice" || r.fields["ttl"] != 60.0 || r.fields["uuid"] != ann.String() {
			t.Error(r)
		}
	}
	if r := s.ask("POST", "/api/why", `{"name":"Bob"}`, c.Value); r.fields["sentence"] != "a does not hear Bob" {
		t.Error(r)
	}
	if r := s.ask("DELETE", "/api/session", "", c.Value); r.status != 204 || r.cookie == nil || r.cookie.MaxAge >= 0 {
		t.Error(r)
	}
	s.wants(s.ask("POST", "/api/token", "{}", c.Value), SessionEnded)
	if r := s.ask("GET", "/api/about", "", ""); r.status != 200 || r.body != `{"network":"Oak","address":"play.example","voice":true,"walk":false,"secure":false}`+"\n" {
		t.Error(r)
	}
}

// TestCookieOverHTTPS: a cookie that came by https never goes by http, whoever speaks TLS for us.
func TestCookieOverHTTPS(t *testing.T) {
	s := newStand(t)
	s.SetOrigins([]string{"https://voice.example"})
	if r := s.trade(s.cfg.Book.Link(ann), "Origin: https://voice.example"); r.cookie == nil || !r.cookie.Secure {
		t.Fatal(r)
	}
	if r := s.trade(s.cfg.Book.Link(ann), "Origin: https://voice.example", "Host: inner"); r.cookie == nil || r.cookie.Name != "earshot" {
		t.Fatal(r)
	}
}

// TestCodesWorkOnce: a code is good for one session, for its player alone, within its life.
func TestCodesWorkOnce(t *testing.T) {
	for _, kind := range []struct {
		name        string
		give        func(*Book, uuid.UUID) string
		ttl         time.Duration
		used, ended Code
	}{{"link", (*Book).Link, LinkTTL, LinkUsed, LinkExpired}, {"letters", (*Book).Letters, LettersTTL, WrongCode, WrongCode}} {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStand(t)
				code := kind.give(s.cfg.Book, ann)
				for _, method := range []string{"GET", "HEAD"} { // what fetches links ahead of people spends none
					s.ask(method, "/#"+code, "", "")
					s.ask(method, "/api/session?code="+code, "", "")
				}
				s.here[ann] = false // between two servers of a network, or gone
				s.wants(s.trade(code), PlayerLeft)
				s.here[ann] = true
				s.closed = NoPermission
				s.wants(s.trade(code), NoPermission)
				s.closed = VoiceOff
				s.wants(s.trade(code), VoiceOff)
				s.closed = ""
				if r := s.trade(code); r.status != 200 || r.fields["name"] != "a" {
					t.Fatal(r)
				}
				s.wants(s.trade(code), kind.used)
				former := kind.give(s.cfg.Book, ann)
				kind.give(s.cfg.Book, ann)
				s.wants(s.trade(former), kind.ended)
				late := kind.give(s.cfg.Book, bob)
				time.Sleep(kind.ttl)
				s.wants(s.trade(late), kind.ended)
				s.wants(s.trade("AAAAAAAAAAAAAAAAAAAAAA"), LinkExpired)
			})
		})
	}
}

// TestOneSessionACode: of many who trade one code at the same time one gets a session.
func TestOneSessionACode(t *testing.T) {
	b := NewBook()
	for range 50 {
		code, got := b.Link(ann), make(chan bool, 8)
		var all sync.WaitGroup
		for range cap(got) {
			all.Go(func() {
				_, ok := b.trade(code)
				got <- ok
			})
		}
		all.Wait()
		close(got)
		n := 0
		for ok := range got {
			if ok {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d sessions", n)
		}
	}
}

// TestLettersAreForgiving: case, blanks and dashes do not matter; no letter is one that is taken for another.
func TestLettersAreForgiving(t *testing.T) {
	s := newStand(t)
	seen := map[rune]bool{}
	for range 500 {
		code := s.cfg.Book.Letters(ann)
		if len(code) != 6 || strings.Trim(code, alphabet) != "" {
			t.Fatal(code)
		}
		for _, r := range code {
			seen[r] = true
		}
	}
	if len(seen) != len(alphabet) {
		t.Errorf("%d letters of %d in 3,000", len(seen), len(alphabet))
	}
	for _, how := range []func(string) string{
		strings.ToLower, func(c string) string { return " " + c[:3] + "-" + c[3:] + "\u00a0" },
		func(c string) string { return strings.Join(strings.Split(c, ""), " ") },
	} {
		typed := how(s.cfg.Book.Letters(ann))
		if r := s.trade(typed); r.status != 200 {
			t.Errorf("%q: %s", typed, r.body)
		}
	}
}

// TestGuessing: codes tried by the thousand end in a wait for that address alone; a link is good all the same, and
// after the wait the address may try again.
func TestGuessing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t)
		good := s.cfg.Book.Letters(ann)
		wrong := 0
		for i := range 3000 {
			guess := fmt.Sprintf("%c%c%c%c%c%c", alphabet[i%24], alphabet[i/24%24], alphabet[i/576], 'A', 'A', 'A')
			if guess == good {
				continue
			}
			r := s.trade(guess, fmt.Sprintf("from [2001:db8::%x]:1", i)) // one subscriber has all these
			if r.fields["code"] == string(WrongCode) {
				wrong++
			} else if r.status != 429 || r.fields["wait"] == nil {
				t.Fatal(r)
			}
		}
		if wrong != tryBurst || s.counted["too_many_tries"] < 2900 {
			t.Errorf("%d guesses were tried, %v", wrong, s.counted)
		}
		at := "from [2001:db8::1]:1"
		s.wants(s.trade(good, at), TooManyTries)
		if r := s.trade(s.cfg.Book.Link(bob), at); r.status != 200 {
			t.Error(r)
		}
		if r := s.trade(good); r.status != 200 {
			t.Error("another address:", r)
		}
		fresh := s.cfg.Book.Letters(ann)
		wait := time.Duration(s.trade(fresh, at).fields["wait"].(float64)) * time.Second
		time.Sleep(wait)
		if r := s.trade(fresh, at); r.status != 200 {
			t.Errorf("after %v: %v", wait, r)
		}
	})
}

// TestSessionsEnd: with the player's absence, with age, with too many others, and never with somebody else's.
func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t)
		b := s.cfg.Book
		open := func(id uuid.UUID) string { return s.trade(b.Link(id)).cookie.Value }
		c, other := open(ann), open(bob)
		s.here[ann] = false
		b.Left(ann)
		time.Sleep(AwayTTL - time.Second)
		s.wants(s.ask("POST", "/api/token", "{}", c), PlayerLeft)
		s.here[ann] = true
		b.Joined(ann)
		time.Sleep(AwayTTL)
		if r := s.ask("POST", "/api/token", "{}", c); r.status != 200 {
			t.Error(r)
		}
		b.Left(ann)
		time.Sleep(AwayTTL)
		s.wants(s.ask("POST", "/api/token", "{}", c), SessionEnded)
		b.Joined(ann)
		s.wants(s.ask("POST", "/api/token", "{}", c), SessionEnded)
		if r := s.ask("GET", "/api/session", "", other); r.status != 200 || r.fields["name"] != "b" {
			t.Error(r)
		}
		all := []string{open(ann), open(ann), open(ann), open(ann), open(ann)}
		for i, c := range all {
			if r := s.ask("GET", "/api/session", "", c); (r.status == 200) != (i > 0) {
				t.Error(i, r)
			}
		}
		time.Sleep(24 * time.Hour)
		s.wants(s.ask("GET", "/api/session", "", all[4]), SessionEnded)
		s.wants(s.ask("GET", "/api/session", "", "somebody's"), SessionEnded)
		s.wants(s.ask("GET", "/api/session", "", ""), SessionEnded)
	})
}

// TestBookForgets: what has run out costs nothing.
func TestBookForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBook()
		for range 3 {
			for range 1000 {
				id := uuid.New()
				b.trade(b.Link(id))
				b.Letters(id)
				b.Left(id)
			}
			time.Sleep(AwayTTL + time.Minute)
		}
		b.Link(ann)
		if len(b.codes) != 1 || len(b.latest) != 1 || len(b.sessions) != 0 || len(b.players) != 0 {
			t.Errorf("%d codes of %d players, %d sessions of %d", len(b.codes), len(b.latest), len(b.sessions), len(b.players))
		}
	})
}

// TestOtherSites: what changes something takes a page of ours and JSON, whatever cookie comes with it.
func TestOtherSites(t *testing.T) {
	s := newStand(t)
	c := s.trade(s.cfg.Book.Link(ann)).cookie.Value
	for _, path := range []string{"POST /api/token", "POST /api/session", "POST /api/why", "DELETE /api/session"} {
		method, path, _ := strings.Cut(path, " ")
		for _, origin := range []string{"Origin:", "Origin: https://evil.example", "Origin: http://voice.example", "Origin: null", "Origin: http://voice.example:25566"} {
			s.wants(s.ask(method, path, `{"name":"Bob","code":"x"}`, c, origin), BadOrigin)
		}
		s.wants(s.ask(method, path, `{"name":"Bob","code":"x"}`, c, "Content-Type: text/plain"), BadRequest)
		s.wants(s.ask(method, path, `{"name":"Bob","code":"x"}`, c, "Content-Type:"), BadRequest)
	}
	if r := s.ask("GET", "/api/session", "", c); r.status != 200 {
		t.Error("the session ended:", r)
	}
}

// TestBadBodies: none of them is more than refused.
func TestBadBodies(t *testing.T) {
	s := newStand(t)
	c := s.trade(s.cfg.Book.Link(ann)).cookie.Value
	for _, body := range []string{"", "{", "[]", `{"code":1,"name":1}`, `{}`, `{"code":"","name":""}`, `{"code":"AAAAAA","name":"Bob"}{}`,
		`{"code":"` + strings.Repeat("A", 100) + `","name":"` + strings.Repeat("B", 100) + `"}`, strings.Repeat(" ", 5000) + "{}"} {
		s.wants(s.ask("POST", "/api/session", body, ""), BadRequest)
		s.wants(s.ask("POST", "/api/why", body, c), BadRequest)
	}
	s.mintErr = errors.New("too often")
	r := s.ask("POST", "/api/token", "{}", c)
	s.wants(r, Busy)
	if r.fields["wait"] != 1.0 {
		t.Error(r)
	}
	for _, bad := range []string{"PUT /api/session", "GET /api/token", "GET /api/nothing"} {
		method, path, _ := strings.Cut(bad, " ")
		if r := s.ask(method, path, "", c); r.status != 404 && r.status != 405 {
			t.Error(bad, r.status)
		}
	}
}

func TestFiles(t *testing.T) {
	s := newStand(t)
	for path, want := range map[string][2]string{
		"/": {"no-cache", "text/html; charset=utf-8"}, "/index.html": {"no-cache", "text/html; charset=utf-8"},
		"/assets/app-3f2a.js":   {"public, max-age=31536000, immutable", "text/javascript; charset=utf-8"},
		"/manifest.webmanifest": {"no-cache", "application/manifest+json"},
	} {
		r := s.ask("GET", path, "", "")
		if r.status != 200 || r.header.Get("Cache-Control") != want[0] || r.header.Get("Content-Type") != want[1] || !s.Serves(path) {
			t.Error(path, r.status, r.header)
		}
		if csp := r.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Error(csp)
		}
		if again := s.ask("GET", path, "", "", "If-None-Match: "+r.header.Get("Etag")); again.status != 304 {
			t.Error(path, again.status)
		}
	}
	z := s.ask("GET", "/", "", "", "Accept-Encoding: gzip, br")
	if z.header.Get("Content-Encoding") != "gzip" || len(z.body) > 200 || z.header.Get("Vary") != "Accept-Encoding" {
		t.Error(z.header, len(z.body))
	}
	if r := s.ask("POST", "/", "", ""); r.status != 405 {
		t.Error(r.status)
	}
	for _, path := range []string{"/assets/none.js", "/../page.go", "/assets/"} {
		if r := s.ask("GET", path, "", ""); r.status == 200 || s.Serves(path) {
			t.Error(path, r.status)
		}
	}
	if _, err := New(Config{Files: fstest.MapFS{}}); err == nil {
		t.Error("a page without index.html")
	}
}

// TestEveryCodeHasAnAnswer: and every one is counted under its name.
func TestEveryCodeHasAnAnswer(t *testing.T) {
	all := Codes()
	for c, a := range answers {
		if !slices.Contains(all, string(c)) || a.status < 400 || !strings.HasSuffix(a.text, ".") {
			t.Error(c, a)
		}
	}
}

// FuzzOpen: whatever is sent as a code, only the one that was given out opens a session.
func FuzzOpen(f *testing.F) {
	for _, body := range []string{`{"code":"ABCDEF"}`, `{"code":"ab c-de f"}`, `{"code":"AAAAAAAAAAAAAAAAAAAAAA"}`, `{"code":null}`, "[", `{"code":"\ud800"}`} {
		f.Add(body)
	}
	s := newStand(f)
	f.Fuzz(func(t *testing.T, body string) {
		s := *s
		s.t = t
		good := s.cfg.Book.Letters(ann)
		r := (&s).ask("POST", "/api/session", body, "", fmt.Sprintf("from %s:1", netip.AddrFrom4([4]byte{10, nth(body, 0), nth(body, 1), byte(len(body))})))
		if r.status == 200 && !strings.Contains(strings.ToUpper(body), good[:1]) {
			t.Fatalf("%q opened a session, the code was %s", body, good)
		}
		if r.status == 200 != (r.cookie != nil) || r.status != 200 && r.fields["message"] == nil {
			t.Fatalf("%q: %+v", body, r)
		}
	})
}

func nth(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}
