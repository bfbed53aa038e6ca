package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// only chooses one Status by whatever name.
func only(s *Status) func(string) *Status { return func(string) *Status { return s } }

const otherJSON = ` {"players": {"online": 41, "max": 99, "sample": [{"name": "Alex", "id": "01234567-89ab-cdef-0123-456789abcdef"}]},
	"version": {"name": "Paper 1.21", "protocol": 4711}, "description": {"text": "theirs", "color": "red"}, "favicon": "data:image/png;base64,theirs",
	"forgeData": {"channels": [ ], "d": "\u0000é"}, "modinfo": {"type": "FML"}, "enforcesSecureChat": true, "preventsChatReports": null} `

func parsed(t testing.TB, s string) *Answer {
	t.Helper()
	a, err := ParseAnswer([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPassedFields: each field, and no other, comes from the server.
func TestPassedFields(t *testing.T) {
	other := parsed(t, otherJSON)
	for name, pass := range fieldNames {
		s := newStatus(t, Config{MOTD: text(t, "ours"), Icon: icon(t, 64, 64), MaxPlayers: 7, Online: func() int { return 3 }, Pass: pass,
			Ask: func(c Client) *Answer {
				if c.Protocol != 767 || c.Host != "" {
					t.Errorf("asked for %+v", c)
				}
				return other
			}})
		f, r, err := exchange(t, s, 767, request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := r.Body(f)
		_, raw, _ := strings.Cut(string(body), "{")
		var got map[string]any
		if err := json.Unmarshal([]byte("{"+raw), &got); err != nil {
			t.Fatalf("%s: %v in %s", name, err, raw)
		}
		players := got["players"].(map[string]any)
		for what, x := range map[string]struct{ theirs, field bool }{
			"numbers":     {players["online"] == 41.0 && players["max"] == 99.0, pass&Players != 0},
			"our numbers": {!(players["online"] == 3.0 && players["max"] == 7.0), pass&Players != 0},
			"sample":      {len(players["sample"].([]any)) == 1, pass&Sample != 0},
			"description": {strings.Contains(raw, `"theirs"`), pass&Description != 0},
			"our text":    {!strings.Contains(raw, `"ours"`), pass&Description != 0},
			"favicon":     {got["favicon"] == "data:image/png;base64,theirs", pass&Favicon != 0},
			"our icon":    {!strings.Contains(raw, "base64,iVBOR"), pass&Favicon != 0},
			"version":     {got["version"].(map[string]any)["protocol"] == 4711.0, pass&Version != 0},
			"our version": {got["version"].(map[string]any)["protocol"] != 767.0, pass&Version != 0},
			"mods":        {got["forgeData"] != nil && got["modinfo"] != nil && got["enforcesSecureChat"] == true, pass&Mods != 0},
		} {
			if x.theirs != x.field {
				t.Errorf("%s passed: %s is theirs: %v, in %.400s", name, what, x.theirs, raw)
			}
		}
	}
	if f, err := ParseFields([]string{"players", "mods"}); f != Players|Mods || err != nil {
		t.Errorf("fields %b, %v", f, err)
	}
	if _, err := ParseFields([]string{"motd"}); err == nil || !strings.Contains(err.Error(), "description") {
		t.Errorf("an unknown field: %v", err)
	}
}

// TestOddSamples: what a plugin puts into a sample must not keep a client from reading the answer. What can be read
// stays.
func TestOddSamples(t *testing.T) {
	const ann, nobody = `{"name":"Ann","id":"069a79f4-44e9-4726-a5be-fca90e38aaf5"}`, `{"name":"§aWelcome","id":"00000000-0000-0000-0000-000000000000"}`
	for _, odd := range []string{
		`{"name":"x","id":""}`, `{"name":"x"}`, `{"name":"x","id":null}`, `{"name":"x","id":[1,2,3,4]}`, `{"name":"x","id":7}`, `{"name":"x","id":{}}`,
		`{"name":"x","id":"069a79f444e94726a5befca90e38aaf5"}`, `{"name":"x","id":"{069a79f4-44e9-4726-a5be-fca90e38aaf5}"}`,
		`{"name":"x","id":"urn:uuid:069a79f4-44e9-4726-a5be-fca90e38aaf5"}`, `{"name":"x","id":"069a79f4-44e9-4726-a5be-fca90e38aafg"}`,
		`{"name":"x","id":"069a79f4x44e9x4726xa5bexfca90e38aaf5"}`,
		`{"id":"069a79f4-44e9-4726-a5be-fca90e38aaf5"}`, `{"name":null,"id":"069a79f4-44e9-4726-a5be-fca90e38aaf5"}`,
		`{"name":["x"],"id":"069a79f4-44e9-4726-a5be-fca90e38aaf5"}`, `"x"`, `null`, `7`, `[]`, `[` + ann + `]`, `{}`,
	} {
		a := parsed(t, `{"players":{"online":1,"max":2,"sample":[`+ann+`,`+odd+`,`+nobody+`]}}`)
		if got := string(a.sample); got != `[`+ann+`,`+nobody+`]` {
			t.Errorf("with %s the sample is %s", odd, got)
		}
	}
	for _, none := range []string{`null`, `{}`, `"x"`, `7`} {
		if a := parsed(t, `{"players":{"online":1,"max":2,"sample":`+none+`}}`); a.sample != nil || !a.counted {
			t.Errorf("%s is the sample %s, numbers %v", none, a.sample, a.counted)
		}
	}
	if a := parsed(t, `{"players":{"online":1,"max":2,"sample":[]}}`); string(a.sample) != `[]` {
		t.Errorf("an empty sample is %s", a.sample)
	}
}

// TestOddParts: nor may anything else that clients insist on the form of.
func TestOddParts(t *testing.T) {
	for _, odd := range []string{
		`"version":{}`, `"version":{"name":"x"}`, `"version":{"Name":"x","Protocol":1}`, `"version":[]`, `"version":{"protocol":1}`, `"version":{"name":1,"protocol":1}`, `"version":{"name":"x","protocol":"1"}`,
		`"description":5`, `"description":true`, `"description":[]`, `"description":{}`, `"description":{"color":"red"}`, `"description":{"text":null}`,
		`"description":{"text":{}}`, `"description":{"text":"x","extra":[]}`, `"description":{"text":"x","extra":{}}`, `"description":["x",null]`,
		`"description":{"text":"x","extra":["y",{"bold":true}]}`, `"description":` + strings.Repeat("[", 200) + `"x"` + strings.Repeat("]", 200),
		`"version":{"name":"x","protocol":1.5}`, `"favicon":"x"`, `"favicon":"data:theirs"`, `"enforcesSecureChat":"yes"`, `"previewsChat":[]`,
	} {
		if a := parsed(t, `{`+odd+`}`); a.version != nil || a.favicon != nil || a.rest != nil || a.description != nil {
			t.Errorf("%.100s is passed on: %s %s %s %s", odd, a.version, a.favicon, a.rest, a.description)
		}
	}
	for _, fine := range []string{
		`"x"`, `""`, `{"text":""}`, `["x",{"translate":"y","with":[{"text":"z"}]}]`, `{"text":"x","extra":[{"keybind":"key.jump"},["y"]],"color":"#123456"}`,
		`{"score":{"name":"a","objective":"b"}}`, `{"selector":"@a"}`,
	} {
		if a := parsed(t, `{"description":`+fine+`}`); string(a.description) != fine {
			t.Errorf("%s becomes %s", fine, a.description)
		}
	}
	if a := parsed(t, `{"enforcesSecureChat":false}`); string(a.rest) != `,"enforcesSecureChat":false` {
		t.Errorf("what is right becomes %s", a.rest)
	}
}

// TestOtherAnswers: what is missing or makes no sense at the server is ours, and what both have to say has to fit.
func TestOtherAnswers(t *testing.T) {
	for _, bad := range []string{"", "[]", "null", "1", `{"a":}`, `"x"`, `{"players":{}} x`} {
		if _, err := ParseAnswer([]byte(bad)); err == nil {
			t.Errorf("%q is a status", bad)
		}
	}
	answer := func(motd string, a *Answer) answerJSON {
		t.Helper()
		s := newStatus(t, Config{MOTD: text(t, motd), MaxPlayers: 7, Pass: AllFields, Ask: func(Client) *Answer { return a }})
		f, r, err := exchange(t, s, 767, request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := r.Body(f)
		_, raw, _ := strings.Cut(string(body), "{")
		var got answerJSON
		if err := json.Unmarshal([]byte("{"+raw), &got); err != nil {
			t.Fatalf("%v in %.200s", err, raw)
		}
		return got
	}
	for _, odd := range []string{
		`{}`, `{"players":null,"version":null,"description":null,"favicon":null}`, `{"players":[],"version":1,"favicon":2}`,
		`{"players":{"max":"x"}}`, `{"players":{"max":1}}`, `{"players":{"max":1e300,"online":1}}`, `{"players":{"sample":{}}}`,
	} {
		if got := answer("ours", parsed(t, odd)); string(got.Description) != `{"text":"ours"}` && string(got.Description) != `"ours"` || got.Players.Max != 7 || got.Version.Protocol != 767 || got.Favicon != "" {
			t.Errorf("%s is shown as %+v", odd, got)
		}
	}
	if got := answer("ours", nil); got.Players.Max != 7 {
		t.Errorf("without an answer: %+v", got)
	}
	// A server whose list of mods leaves no room for our icon.
	long := parsed(t, fmt.Sprintf(`{"description":"theirs","forgeData":"%s"}`, strings.Repeat("x", 20_000)))
	big := newStatus(t, Config{MOTD: text(t, strings.Repeat("y", 20_000)), Pass: Mods, Ask: func(Client) *Answer { return long }})
	if _, raw := ask(t, big, 767); units(raw) > maxAnswer || strings.Contains(string(raw), "xx") {
		t.Errorf("an answer of %d characters", units(raw))
	}
	// But one that is longer by itself is for its own players to read.
	if got := answer("", parsed(t, fmt.Sprintf(`{"description":"theirs","players":{"max":1,"online":0},"forgeData":"%s"}`, strings.Repeat("x", 40_000)))); string(got.Description) != `"theirs"` {
		t.Errorf("shown as %+v", got)
	}
}

// TestLegacyPassed: clients before 1.7 see a server's numbers and text as well, by the name the newest of them tell.
func TestLegacyPassed(t *testing.T) {
	other := parsed(t, `{"players":{"max":9,"online":4},"description":{"text":"two\nlines","color":"gold"}}`)
	for _, c := range []struct {
		ping []byte
		host string
		want string
	}{
		{[]byte{0xfe}, "", "two lines§4§9"}, {[]byte{0xfe, 1}, "", "§1\x00127\x00V\x00§6two lines\x004\x009"},
		{ping16(78, "Mc.Example.Org", 1), "Mc.Example.Org", "§1\x00127\x00V\x00§6two lines\x004\x009"},
	} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			s := newStatus(t, Config{Version: "V", Pass: AllFields, Ask: func(got Client) *Answer {
				if got != (Client{Protocol: -1, Host: c.host}) {
					t.Errorf("asked for %+v", got)
				}
				return other
			}})
			go far.Write(c.ping)
			got := make(chan []byte)
			go func() { b, _ := io.ReadAll(far); got <- b }()
			var by string
			if err := ServeLegacy(near, time.Minute, func(host string) *Status { by = host; return s }); err != nil || by != c.host {
				t.Errorf("chosen by %q, %v", by, err)
			}
			near.Close()
			if b := readKick(t, <-got); b != c.want {
				t.Errorf("answer %q, want %q", b, c.want)
			}
		})
	}
	for _, first := range [][]byte{{0xfe, 1}, {0x02}, ping16(78, "x", 1)} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			go far.Write(first)
			if err := ServeLegacy(near, time.Minute, only(nil)); !errors.Is(err, ErrUnwanted) {
				t.Errorf("% x by no name: %v", first, err)
			}
			near.Close()
		})
	}
}

// asking is a server that counts how often it is asked.
type asking struct {
	asked  atomic.Int32
	answer atomic.Pointer[string] // nil: it is down
	slow   atomic.Int64
}

func (a *asking) ask(ctx context.Context) ([]byte, error) {
	a.asked.Add(1)
	select {
	case <-time.After(time.Duration(a.slow.Load())):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s := a.answer.Load(); s != nil {
		return []byte(*s), nil
	}
	return nil, errors.New("down")
}

func (a *asking) up(online int) {
	s := fmt.Sprintf(`{"players":{"max":100,"online":%d}}`, online)
	a.answer.Store(&s)
}

// TestCache: one question for a crowd, what is known meanwhile, and the truth in the end, without a client that waits
// for a server it has been waited for already.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCache(10*time.Second, 2*time.Second, nil)
		defer c.Close()
		s := &asking{}
		s.slow.Store(int64(time.Second))
		s.up(1)
		// get checks the number of players (-1: no answer) and how long that took.
		get := func(want int, took time.Duration) {
			t.Helper()
			begin := time.Now()
			a := c.Get(t.Context(), Key{Server: "s"}, s.ask)
			switch d := time.Since(begin); {
			case d != took:
				t.Errorf("after %v, want %v", d, took)
			case a == nil && want != -1, a != nil && a.online != want:
				t.Errorf("got %+v, want %d players", a, want)
			}
		}
		var crowd sync.WaitGroup
		for range 100 {
			crowd.Go(func() { get(1, time.Second) })
		}
		crowd.Wait()
		s.up(2)
		time.Sleep(9 * time.Second)
		get(1, 0)
		if n := s.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		time.Sleep(2 * time.Second)
		get(1, 0) // and asks
		get(1, 0)
		time.Sleep(2 * time.Second)
		get(2, 0)
		if n := s.asked.Load(); n != 2 {
			t.Errorf("asked %d times", n)
		}
		// It dies: its answer stays for its time, and then there is none, without anybody waiting.
		s.answer.Store(nil)
		time.Sleep(5 * time.Second)
		get(2, 0)
		time.Sleep(10 * time.Second)
		get(2, 0)
		time.Sleep(2 * time.Second)
		get(-1, 0)
		s.slow.Store(int64(time.Hour)) // and now it takes connections and says nothing
		time.Sleep(10 * time.Second)
		get(-1, 0)
		time.Sleep(20 * time.Second)
		get(-1, 0)
		synctest.Wait()
		// It is back.
		s.slow.Store(0)
		s.up(3)
		time.Sleep(20 * time.Second)
		get(-1, 0)
		synctest.Wait()
		get(3, 0)
		// After an hour without pings nobody wants to see what was then.
		s.slow.Store(int64(time.Second))
		s.up(4)
		time.Sleep(time.Hour)
		get(4, time.Second)
		c.Fresh(time.Millisecond)
		s.up(5)
		time.Sleep(2 * time.Millisecond)
		get(4, 0)
		time.Sleep(time.Second + time.Millisecond)
		get(5, 0)

		// A caller with less patience gets nothing, and a server no more time than it was given.
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if a := c.Get(ctx, Key{Server: "other"}, s.ask); a != nil {
			t.Errorf("got %+v without waiting", a)
		}
		s.slow.Store(int64(time.Hour))
		begin := time.Now()
		if a := c.Get(t.Context(), Key{Server: "third"}, s.ask); a != nil || time.Since(begin) != 2*time.Second {
			t.Errorf("got %+v after %v", a, time.Since(begin))
		}
		// However long answers stand, a server that gave none is asked again soon.
		c.Fresh(time.Hour)
		s.slow.Store(0)
		s.up(6)
		time.Sleep(retry)
		c.Get(t.Context(), Key{Server: "third"}, s.ask)
		synctest.Wait()
		if a := c.Get(t.Context(), Key{Server: "third"}, s.ask); a == nil || a.online != 6 {
			t.Errorf("got %+v from a server that is back", a)
		}
		if a := c.Get(t.Context(), Key{Server: "broken"}, func(context.Context) ([]byte, error) { panic("boom") }); a != nil {
			t.Errorf("got %+v from a panic", a)
		}
	})
}

// TestCacheBounds: neither names that strangers make up nor servers that say a lot make it grow.
func TestCacheBounds(t *testing.T) {
	c := NewCache(time.Hour, time.Hour, nil)
	long := []byte(`{"x":"` + strings.Repeat("x", 200_000) + `"}`)
	for i := range 3 * maxKept {
		answer := []byte(`{}`)
		if i%10 == 0 {
			answer = long
		}
		if c.Get(t.Context(), Key{Host: fmt.Sprint(i)}, func(context.Context) ([]byte, error) { return answer, nil }) == nil {
			t.Fatalf("no answer for the %dth", i)
		}
		if len(c.kept) > maxKept || c.bytes > maxBytes {
			t.Fatalf("%d answers of %d bytes are kept", len(c.kept), c.bytes)
		}
	}
	sum := 0
	for _, e := range c.kept {
		sum += e.answer.bytes()
	}
	if sum != c.bytes {
		t.Errorf("%d bytes are counted as %d", sum, c.bytes)
	}
	// Not more than so many servers are asked at once; the others get no answer, at once.
	begun := make(chan struct{}, maxAsking+2)
	var waiting sync.WaitGroup
	for i := range maxAsking {
		waiting.Go(func() {
			c.Get(t.Context(), Key{Host: "silent", Protocol: int32(i)}, func(ctx context.Context) ([]byte, error) {
				begun <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			})
		})
	}
	for range maxAsking {
		<-begun
	}
	none := func(context.Context) ([]byte, error) { t.Error("asked one too many"); return nil, nil }
	if a := c.Get(t.Context(), Key{Host: "one more"}, none); a != nil {
		t.Errorf("got %+v", a)
	}
	c.Close()
	waiting.Wait()
	if a := c.Get(t.Context(), Key{Host: "late"}, none); a != nil {
		t.Errorf("got %+v from a closed cache", a)
	}
}

// FuzzAnswer: a server can say anything; what comes out is a status that a client can read.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(otherJSON))
	f.Add([]byte(`{"players":{"max":1e9,"online":-3,"sample":[[]]},"description":[[["§c"]]],"a":"\ud800","":{}}`))
	f.Add([]byte(`{"description":{"extra":[{"text":5},null,true],"translate":"x","with":[[]]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseAnswer(b)
		if err != nil {
			return
		}
		s := newStatus(t, Config{Pass: AllFields})
		var got map[string]any
		if out := s.append(nil, new(answer), 767, a); json.Unmarshal(out, &got) != nil {
			t.Fatalf("%q becomes %q", b, out)
		}
		for _, form := range []legacyForm{beta, plain14, full16} {
			readKick(t, s.legacyAnswer(form, a))
		}
	})
}
