package auth

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/proxy/packet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServerHash(t *testing.T) {
	for name, want := range map[string]string{ // published samples: one plain, two that trip up naive code
		"Notch": "4ed1f46bbe04bc756bcb17c0c7ce3e4632f06a48",
		"jeb_":  "-7c9d5b0044c130109a5d7b5fb5c317c02b4e28c1",
		"simon": "88e16a1019277b15d58faf0541e11910eb756f6",
	} {
		if got := ServerHash(name, nil, nil); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if got := ServerHash(name[:1], []byte(name[1:3]), []byte(name[3:])); got != want {
			t.Errorf("%s in three parts: %s", name, got)
		}
	}
}

func TestOfflineID(t *testing.T) {
	for name, want := range map[string]string{ // from servers in offline mode
		"Notch": "b50ad385-829d-3141-a216-7e7d7539ba7f",
		"jeb_":  "a762f560-4fce-3236-812a-b80efff0b62b",
	} {
		if got := OfflineID(name); got.String() != want || got.Version() != 3 || got.Variant() != uuid.RFC4122 {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if OfflineID("notch") == OfflineID("Notch") {
		t.Error("case is ignored")
	}
}

// sessionServer answers hasJoined and remembers what it was asked.
type sessionServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []*http.Request
}

func serve(t *testing.T, answer http.HandlerFunc) *sessionServer {
	s := &sessionServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

const notch = `{"id":"069a79f444e94726a5befca90e38aaf5","name":"Notch","properties":[{"name":"textures","value":"eyJ0","signature":"c2ln"}],"more":{}}`

func newAuth(t *testing.T, cfg Config) *Auth {
	t.Helper()
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// answer does what a client does with the request.
func answer(t *testing.T, l *Login, secret []byte) packet.EncryptionResponse {
	t.Helper()
	q := l.Request()
	key, err := x509.ParsePKIXPublicKey(q.PublicKey)
	if err != nil || q.ServerID != "" || len(q.Token) != 4 || !q.Authenticate {
		t.Fatalf("request %+v, %v", q, err)
	}
	seal := func(b []byte) []byte {
		//lint:ignore SA1019 as the protocol has it
		out, err := rsa.EncryptPKCS1v15(rand.Reader, key.(*rsa.PublicKey), b)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	return packet.EncryptionResponse{Secret: seal(secret), Token: seal(q.Token)}
}

var secret16 = []byte("0123456789abcdef")

// answered returns a login of that name that got as far as Join.
func answered(t *testing.T, a *Auth, protocol int32, start packet.LoginStart) *Login {
	t.Helper()
	l, err := a.Begin(protocol, start)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.Answer(t.Context(), answer(t, l, secret16)); err != nil || !slices.Equal(got, secret16) {
		t.Fatalf("secret %x, %v", got, err)
	}
	return l
}

func TestOnlineLogin(t *testing.T) {
	for _, bits := range []int{0, 2048} {
		s := serve(t, says(200, notch))
		a := newAuth(t, Config{SessionURLs: []string{s.URL}, SendAddress: bits == 0, KeyBits: bits})
		l := answered(t, a, 775, packet.LoginStart{Name: "nOTCH"})
		p, err := l.Join(t.Context(), netip.MustParseAddr("::ffff:203.0.113.7"))
		want := []packet.Property{{Name: "textures", Value: "eyJ0", Signature: "c2ln"}}
		if err != nil || p.Name != "Notch" || p.ID != uuid.MustParse("069a79f4-44e9-4726-a5be-fca90e38aaf5") || !slices.Equal(p.Properties, want) {
			t.Fatalf("%+v, %v", p, err)
		}
		r := s.asked[0]
		ip := ""
		if bits == 0 {
			ip = "203.0.113.7"
		}
		if q := r.URL.Query(); r.URL.Path != "/session/minecraft/hasJoined" || q.Get("username") != "nOTCH" || q.Get("ip") != ip ||
			q.Get("serverId") != ServerHash("", secret16, l.Request().PublicKey) || r.Method != http.MethodGet {
			t.Errorf("asked %s", r.URL)
		}
	}
}

func TestAnswersThatFail(t *testing.T) {
	a := newAuth(t, Config{})
	for name, spoil := range map[string]func(*Login, *packet.EncryptionResponse){
		"secret of 15 bytes": func(l *Login, r *packet.EncryptionResponse) { r.Secret = answer(t, l, secret16[:15]).Secret },
		"secret of 32 bytes": func(l *Login, r *packet.EncryptionResponse) {
			r.Secret = answer(t, l, append(secret16[:16:16], secret16...)).Secret
		},
		"secret not encrypted": func(_ *Login, r *packet.EncryptionResponse) { r.Secret = secret16 },
		"no secret":            func(_ *Login, r *packet.EncryptionResponse) { r.Secret = nil },
		"another token":        func(l *Login, r *packet.EncryptionResponse) { r.Token = answer(t, l, []byte("abcd")).Secret },
		"no token":             func(_ *Login, r *packet.EncryptionResponse) { r.Token = nil },
		"someone else's token": func(_ *Login, r *packet.EncryptionResponse) {
			o, _ := a.Begin(775, packet.LoginStart{})
			r.Token = answer(t, o, secret16).Token
		},
		"signed without a key":  func(_ *Login, r *packet.EncryptionResponse) { r.Signed, r.Signature = true, make([]byte, 256) },
		"bits of the secret":    func(_ *Login, r *packet.EncryptionResponse) { r.Secret[5] ^= 1 },
		"too long a ciphertext": func(_ *Login, r *packet.EncryptionResponse) { r.Secret = append(r.Secret, r.Secret...) },
	} {
		l, err := a.Begin(775, packet.LoginStart{Name: "Notch"})
		if err != nil {
			t.Fatal(err)
		}
		r := answer(t, l, secret16)
		spoil(l, &r)
		if got, err := l.Answer(t.Context(), r); !errors.Is(err, ErrEncryption) || got != nil {
			t.Errorf("%s: %x, %v", name, got, err)
		}
		if _, err := l.Answer(t.Context(), answer(t, l, secret16)); !errors.Is(err, ErrEncryption) {
			t.Errorf("%s: a second answer: %v", name, err)
		}
		if _, err := l.Join(t.Context(), netip.Addr{}); !errors.Is(err, ErrEncryption) {
			t.Errorf("%s: joined: %v", name, err)
		}
	}
	l := answered(t, a, 775, packet.LoginStart{Name: "Notch"})
	if _, err := l.Answer(t.Context(), answer(t, l, secret16)); !errors.Is(err, ErrEncryption) {
		t.Errorf("a good second answer: %v", err)
	}
}

func TestSessionServerAnswers(t *testing.T) {
	withProps := func(p string) string { return strings.Replace(notch, `"properties":[`, `"properties":[`+p+",", 1) }
	for _, c := range []struct {
		status int
		body   string
		want   error
	}{
		{200, notch, nil},
		{200, strings.Replace(notch, "069a79f444e94726a5befca90e38aaf5", "069a79f4-44e9-4726-a5be-fca90e38aaf5", 1), nil},
		{200, strings.Replace(notch, `,"signature":"c2ln"`, "", 1), nil},
		{204, "", ErrUnverified}, {200, "", ErrUnverified}, {401, "{}", ErrUnverified}, {403, "{}", ErrUnverified},
		{500, "", ErrServersDown}, {503, notch, ErrServersDown}, {429, "", ErrServersDown}, {404, "", ErrServersDown}, {302, "", ErrServersDown},
		{200, "not json", ErrServersDown}, {200, "{}", ErrServersDown}, {200, `{"id":"069a79f444e94726a5befca90e38aaf5"}`, ErrServersDown},
		{200, strings.Replace(notch, "Notch", strings.Repeat("N", 17), 1), ErrServersDown},
		{200, strings.Replace(notch, "069a79f4", "x69a79f4", 1), ErrServersDown},
		{200, withProps(strings.TrimSuffix(strings.Repeat(`{"name":"a","value":"b"},`, 64), ",")), ErrServersDown},
		{200, withProps(`{"name":"` + strings.Repeat("x", 65) + `","value":""}`), ErrServersDown},
		{200, withProps(`{"name":"x","value":"` + strings.Repeat("x", 32768) + `"}`), ErrServersDown},
		{200, withProps(`{"name":"x","value":"","signature":"` + strings.Repeat("x", 1025) + `"}`), ErrServersDown},
		{200, notch + strings.Repeat(" ", maxProfile-len(notch)), nil},
		{200, notch + strings.Repeat(" ", maxProfile-len(notch)+1), ErrServersDown},
	} {
		a := newAuth(t, Config{SessionURLs: []string{serve(t, says(c.status, c.body)).URL}})
		p, err := answered(t, a, 775, packet.LoginStart{Name: "Notch"}).Join(t.Context(), netip.Addr{})
		if !errors.Is(err, c.want) || err == nil && p.Name != "Notch" {
			t.Errorf("%d %.60q: %+v, %v; want %v", c.status, c.body, p, err, c.want)
		}
	}
}

func TestSeveralSessionServers(t *testing.T) {
	yes, no, broken := serve(t, says(200, notch)), serve(t, says(204, "")), serve(t, says(500, ""))
	for _, c := range []struct {
		urls []string
		want error
	}{
		{[]string{no.URL, yes.URL + "/own/path?key=1"}, nil},
		{[]string{broken.URL, yes.URL}, nil},
		{[]string{no.URL, no.URL}, ErrUnverified},
		{[]string{broken.URL, no.URL}, ErrServersDown},
		{[]string{"http://127.0.0.1:1", no.URL}, ErrServersDown},
	} {
		a := newAuth(t, Config{SessionURLs: c.urls})
		if _, err := answered(t, a, 775, packet.LoginStart{Name: "Notch"}).Join(t.Context(), netip.Addr{}); !errors.Is(err, c.want) {
			t.Errorf("%v: %v, want %v", c.urls, err, c.want)
		}
	}
	if u := yes.asked[0].URL; u.Path != "/own/path" || u.Query().Get("key") != "1" || u.Query().Get("username") != "Notch" {
		t.Errorf("asked %s", u)
	}
}

func TestSessionServerThatHangs(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	a := newAuth(t, Config{SessionURLs: []string{s.URL}, Timeout: 30 * time.Millisecond})
	begun := time.Now()
	if _, err := answered(t, a, 775, packet.LoginStart{Name: "a"}).Join(t.Context(), netip.Addr{}); !errors.Is(err, ErrServersDown) {
		t.Errorf("timeout: %v", err)
	}
	if took := time.Since(begun); took < 30*time.Millisecond || took > 5*time.Second {
		t.Errorf("a timeout of 30 ms took %v", took)
	}
	// the client leaves
	a = newAuth(t, Config{SessionURLs: []string{s.URL}})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := answered(t, a, 775, packet.LoginStart{Name: "a"}).Join(ctx, netip.Addr{}); !errors.Is(err, context.Canceled) || errors.Is(err, ErrServersDown) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestQuestionsAreBounded(t *testing.T) {
	const limit, players = 4, 40
	var now, most atomic.Int32
	full := make(chan struct{}, players)
	release := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		full <- struct{}{}
		<-release
		now.Add(-1)
		fmt.Fprint(w, notch)
	})
	a := newAuth(t, Config{SessionURLs: []string{s.URL}, Concurrent: limit})
	var wg sync.WaitGroup
	var failed atomic.Int32
	for range players {
		l := answered(t, a, 775, packet.LoginStart{Name: "Notch"})
		wg.Go(func() {
			if _, err := l.Join(t.Context(), netip.Addr{}); err != nil {
				failed.Add(1)
			}
		})
	}
	for range limit {
		<-full
	}
	// one that waits for its turn and leaves does not hold it up
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := answered(t, a, 775, packet.LoginStart{Name: "a"}).Join(ctx, netip.Addr{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while waiting: %v", err)
	}
	close(release)
	wg.Wait()
	if failed.Load() > 0 || most.Load() != limit {
		t.Errorf("%d failed, %d at once", failed.Load(), most.Load())
	}
}

func TestDecryptsAreBounded(t *testing.T) {
	a := newAuth(t, Config{})
	if cap(a.decrypts) != runtime.GOMAXPROCS(0) {
		t.Errorf("%d decrypts at once", cap(a.decrypts))
	}
	for range cap(a.decrypts) {
		a.decrypts <- struct{}{}
	}
	l, _ := a.Begin(775, packet.LoginStart{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := l.Answer(ctx, answer(t, l, secret16)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestConfig(t *testing.T) {
	for _, bad := range []Config{
		{SessionURLs: []string{"sessionserver.example"}}, {SessionURLs: []string{"ftp://a/b"}}, {SessionURLs: []string{"https://"}}, {SessionURLs: []string{"://"}},
		{SessionURLs: []string{DefaultSessionURL, ""}}, {KeyBits: 512}, {KeyBits: 4096},
	} {
		if a, err := New(bad); err == nil {
			a.Close()
			t.Errorf("%+v accepted", bad)
		}
	}
	a := newAuth(t, Config{})
	if a.urls[0].String() != DefaultSessionURL || cap(a.asking) != 64 || a.cfg.Timeout != 10*time.Second || a.key.N.BitLen() != 1024 || len(a.der) != 162 {
		t.Errorf("defaults: %v, %d, %v, %d bits", a.urls, cap(a.asking), a.cfg.Timeout, a.key.N.BitLen())
	}
	if a.cfg.ServicesKey.N.BitLen() != 4096 {
		t.Error("the services' key is not Mojang's")
	}
}

// keyFile is testdata/keys.json, made by another implementation.
type keyFile struct {
	Services, Player []byte
	ID               uuid.UUID
	Current, Old     struct {
		Expires int64
		V1, V2  []byte
	}
	Nonce struct {
		Token, Signature []byte
		Salt             int64
	}
}

func keys(t *testing.T) (k keyFile, services *rsa.PublicKey) {
	t.Helper()
	b, err := os.ReadFile("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &k); err != nil {
		t.Fatal(err)
	}
	if services, err = parseKey(k.Services); err != nil {
		t.Fatal(err)
	}
	return k, services
}

func TestProfileKeys(t *testing.T) {
	k, services := keys(t)
	v1, v2 := k.Current.V1, k.Current.V2
	ec := []byte("\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01")
	for _, c := range []struct {
		name     string
		protocol int32
		key      *packet.ProfileKey
		require  bool
		begin    error
		join     error
	}{
		{"1.19", 759, &packet.ProfileKey{Expires: k.Current.Expires, PublicKey: k.Player, Signature: v1}, true, nil, nil},
		{"1.19.1", 760, &packet.ProfileKey{Expires: k.Current.Expires, PublicKey: k.Player, Signature: v2}, true, nil, nil},
		{"none", 759, nil, false, nil, nil},
		{"none, required", 759, nil, true, ErrKeyMissing, nil},
		{"none, required, 1.19.2", 760, nil, true, ErrKeyMissing, nil},
		{"none, required of others only", 761, nil, true, nil, nil},
		{"1.19 signed as 1.19.1", 759, &packet.ProfileKey{Expires: k.Current.Expires, PublicKey: k.Player, Signature: v2}, false, ErrKeyInvalid, nil},
		{"1.19.1 signed as 1.19", 760, &packet.ProfileKey{Expires: k.Current.Expires, PublicKey: k.Player, Signature: v1}, false, nil, ErrKeyInvalid},
		{"other expiry", 759, &packet.ProfileKey{Expires: k.Current.Expires + 1, PublicKey: k.Player, Signature: v1}, false, ErrKeyInvalid, nil},
		{"other expiry, 1.19.1", 760, &packet.ProfileKey{Expires: k.Current.Expires + 1, PublicKey: k.Player, Signature: v2}, false, nil, ErrKeyInvalid},
		{"expired", 759, &packet.ProfileKey{Expires: k.Old.Expires, PublicKey: k.Player, Signature: k.Old.V1}, false, ErrKeyExpired, nil},
		{"expired, 1.19.1", 760, &packet.ProfileKey{Expires: k.Old.Expires, PublicKey: k.Player, Signature: k.Old.V2}, false, ErrKeyExpired, nil},
		{"another key", 759, &packet.ProfileKey{Expires: k.Current.Expires, PublicKey: k.Services, Signature: v1}, false, ErrKeyInvalid, nil},
		{"not a key", 760, &packet.ProfileKey{Expires: k.Current.Expires, PublicKey: ec, Signature: v2}, false, ErrKeyInvalid, nil},
		{"no signature", 759, &packet.ProfileKey{Expires: k.Current.Expires, PublicKey: k.Player}, false, ErrKeyInvalid, nil},
	} {
		s := serve(t, says(200, notch)) // whose id is the one in the file
		a := newAuth(t, Config{SessionURLs: []string{s.URL}, ServicesKey: services, RequireKey: c.require})
		start := packet.LoginStart{Name: "Notch", Key: c.key}
		l, err := a.Begin(c.protocol, start)
		if !errors.Is(err, c.begin) {
			t.Errorf("%s: begin: %v, want %v", c.name, err, c.begin)
		}
		if l == nil {
			continue
		}
		if _, err := l.Answer(t.Context(), answer(t, l, secret16)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := l.Join(t.Context(), netip.Addr{}); !errors.Is(err, c.join) {
			t.Errorf("%s: join: %v, want %v", c.name, err, c.join)
		}
	}
	// a key of 1.19.1 belongs to one player
	s := serve(t, says(200, strings.Replace(notch, "069a", "069b", 1)))
	a := newAuth(t, Config{SessionURLs: []string{s.URL}, ServicesKey: services})
	l := answered(t, a, 760, packet.LoginStart{Name: "Notch", Key: &packet.ProfileKey{Expires: k.Current.Expires, PublicKey: k.Player, Signature: v2}})
	if _, err := l.Join(t.Context(), netip.Addr{}); !errors.Is(err, ErrKeyInvalid) {
		t.Errorf("someone else's key: %v", err)
	}
	// keys of these services are not Mojang's
	if _, err := newAuth(t, Config{}).Begin(759, packet.LoginStart{Key: &packet.ProfileKey{Expires: k.Current.Expires, PublicKey: k.Player, Signature: v1}}); !errors.Is(err, ErrKeyInvalid) {
		t.Errorf("a key Mojang never signed: %v", err)
	}
}

func TestSignedToken(t *testing.T) {
	k, services := keys(t)
	a := newAuth(t, Config{ServicesKey: services})
	for _, c := range []struct {
		token     []byte
		salt      int64
		signature []byte
		ok        bool
	}{
		{k.Nonce.Token, k.Nonce.Salt, k.Nonce.Signature, true},
		{[]byte{0, 2, 253, 254}, k.Nonce.Salt, k.Nonce.Signature, false},
		{k.Nonce.Token, k.Nonce.Salt + 1, k.Nonce.Signature, false},
		{k.Nonce.Token, k.Nonce.Salt, k.Current.V2, false},
		{k.Nonce.Token, k.Nonce.Salt, nil, false},
	} {
		l, err := a.Begin(760, packet.LoginStart{Name: "Notch", Key: &packet.ProfileKey{Expires: k.Current.Expires, PublicKey: k.Player, Signature: k.Current.V2}})
		if err != nil {
			t.Fatal(err)
		}
		l.token = [4]byte(c.token)
		r := packet.EncryptionResponse{Secret: answer(t, l, secret16).Secret, Signed: true, Salt: c.salt, Signature: c.signature}
		if got, err := l.Answer(t.Context(), r); (err == nil) != c.ok || (err != nil) != errors.Is(err, ErrEncryption) || c.ok != (got != nil) {
			t.Errorf("%x %d: %x, %v", c.token, c.salt, got, err)
		}
	}
}

func TestReason(t *testing.T) {
	for err, want := range map[error]string{
		ErrUnverified: "multiplayer.disconnect.unverified_username", fmt.Errorf("x: %w", ErrServersDown): "multiplayer.disconnect.authservers_down",
		ErrKeyMissing: "multiplayer.disconnect.missing_public_key", ErrKeyExpired: "multiplayer.disconnect.invalid_public_key_signature",
		ErrKeyInvalid: "multiplayer.disconnect.invalid_public_key",
	} {
		if got, ok := Reason(err); !ok || string(got.JSON(775)) != `{"translate":"`+want+`"}` {
			t.Errorf("%v: %s, %v", err, got.JSON(775), ok)
		}
	}
	if got, ok := Reason(ErrEncryption); ok {
		t.Errorf("the client has words for a broken encryption: %s", got)
	}
}

func FuzzParseProfile(f *testing.F) {
	f.Add([]byte(notch))
	f.Add([]byte(`{"id":"069a79f4-44e9-4726-a5be-fca90e38aaf5","name":"a"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := parseProfile(body)
		if err != nil {
			return
		}
		// what we take for a profile, clients of every version take too
		for _, v := range []int32{47, 735, 759, 767, 775} {
			wire := packet.AppendLoginSuccess(nil, v, packet.LoginSuccess{ID: p.ID, Name: p.Name, Properties: p.Properties})
			if _, err := packet.ParseLoginSuccess(v, wire); err != nil {
				t.Fatalf("%q in %d: %v", body, v, err)
			}
		}
	})
}
