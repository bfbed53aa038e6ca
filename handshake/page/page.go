// Package page serves the voice page to browsers: its files, and the few calls that turn a page into a player's. The
// player gets a code in the game. The page trades it once for a session, held by a cookie that no script can read, and
// the session mints a token for each voice socket. It promises that no code or session works twice, for somebody else
// or from a page of another site, and that every refusal says in words what to do.
package page

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/front"
)

// Player is what a page is told about its player.
type Player struct {
	Name   string
	Server string
	Near   int     // others with voice in earshot
	Range  float64 // of an ordinary voice where they stand, in blocks
}

// About is what anybody is told.
type About struct {
	Network string `json:"network"`
	Address string `json:"address"` // what to type into Minecraft
	Voice   bool   `json:"voice"`   // there is voice
	Walk    bool   `json:"walk"`    // guests may walk
	Secure  bool   `json:"secure"`  // browsers are sent to https, or to this machine
}

// Code says what went wrong, for the page; it has a text of its own for each.
type Code string

// The codes.
const (
	LinkUsed     Code = "link_used"
	LinkExpired  Code = "link_expired"
	WrongCode    Code = "wrong_code"
	TooManyTries Code = "too_many_tries"
	NoPermission Code = "no_permission"
	VoiceOff     Code = "voice_off"
	PlayerLeft   Code = "player_left"
	SessionEnded Code = "session_ended"
	BadOrigin    Code = "bad_origin"
	BadRequest   Code = "bad_request"
	Busy         Code = "busy"
)

// answers has the status and the sentence of each code. The page says it in the player's language; the sentence is for
// programs and for a page that is older than the code.
var answers = map[Code]struct {
	status int
	text   string
}{
	LinkUsed:     {http.StatusGone, "This link was used. Type /voice in the game for a new one."},
	LinkExpired:  {http.StatusGone, "This link has run out. Type /voice in the game for a new one."},
	WrongCode:    {http.StatusForbidden, "That code is not right or has run out. Type /voice code in the game for a new one."},
	TooManyTries: {http.StatusTooManyRequests, "Too many wrong codes came from your address. Wait a little, or open the link that /voice gives."},
	NoPermission: {http.StatusForbidden, "You may not use voice here. Ask the staff."},
	VoiceOff:     {http.StatusServiceUnavailable, "Voice is switched off."},
	PlayerLeft:   {http.StatusConflict, "Your player is not in the game. Join again."},
	SessionEnded: {http.StatusUnauthorized, "Your session has ended. Type /voice in the game for a new link."},
	BadOrigin:    {http.StatusForbidden, "This request does not come from the page. If a reverse proxy stands in front, it has to pass the Host header on, or voice.public-url has to name the page."},
	BadRequest:   {http.StatusBadRequest, "The request cannot be understood. Reload the page."},
	Busy:         {http.StatusTooManyRequests, "The server is busy. Try again in a few seconds."},
}

// Codes lists all codes, for counters that start at zero.
func Codes() []string {
	out := make([]string, 0, len(answers))
	for c := range answers {
		out = append(out, string(c))
	}
	return out
}

// Config holds what a page needs. All fields but Log are required.
type Config struct {
	Files fs.FS // the built page, with an index.html
	Book  *Book
	// Player returns what a page is told about a player; false: not on the network.
	Player func(uuid.UUID) (Player, bool)
	// Closed returns [VoiceOff] or [NoPermission] where a player may have no voice, else "".
	Closed func(uuid.UUID) Code
	// Mint returns a token for a voice socket and how long it lives; it fails where a player asks too often.
	Mint func(uuid.UUID) (token string, ttl time.Duration, err error)
	// Why returns a sentence about why a player does not hear the named one, as far as they may know.
	Why   func(player uuid.UUID, name string) string
	About func(*http.Request) About
	// Count is called with the code of every refusal, and the refused address: an IPv4 address or an IPv6 /64.
	Count func(code string, from netip.Addr)
	Log   *slog.Logger
}

// Handler serves the page at "/". Its methods may be called from any goroutine.
type Handler struct {
	cfg     Config
	files   *files
	mux     *http.ServeMux
	tries   front.Failures
	origins atomic.Pointer[[]string]
}

// Bounds of wrong short codes from one address: so many at once, and one more each time the interval is over. A guess
// hits one of 191 million codes.
const (
	tryBurst = 8
	tryEvery = 10 * time.Second
)

// New reads the page's files. It fails where they cannot be read, or have no index.html.
func New(cfg Config) (*Handler, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	f, err := load(cfg.Files)
	if err != nil {
		return nil, err
	}
	h := &Handler{cfg: cfg, files: f, mux: http.NewServeMux(), tries: front.Failures{Burst: tryBurst, Every: tryEvery}}
	h.SetOrigins(nil)
	h.mux.HandleFunc("GET /api/about", func(w http.ResponseWriter, r *http.Request) { answer(w, cfg.About(r)) })
	h.mux.HandleFunc("GET /api/session", h.withSession(h.tell))
	h.mux.HandleFunc("POST /api/session", h.changing(h.open))
	h.mux.HandleFunc("DELETE /api/session", h.changing(h.forget))
	h.mux.HandleFunc("POST /api/token", h.changing(h.withSession(h.mint)))
	h.mux.HandleFunc("POST /api/why", h.changing(h.withSession(h.why)))
	h.mux.Handle("/", f)
	return h, nil
}

// SetOrigins replaces the further origins whose pages may use a session: scheme://host[:port]. Those of the requested
// host always may.
func (h *Handler) SetOrigins(origins []string) { h.origins.Store(&origins) }

// Serves reports whether a path is one of the page's.
func (h *Handler) Serves(path string) bool {
	return strings.HasPrefix(path, "/api/") || h.files.has(path)
}

// ServeHTTP answers a request whose path is relative to the page's base.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range policy {
		w.Header()[name] = []string{value}
	}
	h.mux.ServeHTTP(w, r)
}

// policy has the headers of every answer: nothing inline, nothing from elsewhere, no frame around it, the microphone
// for this page alone.
var policy = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; " +
		"img-src 'self' data:; media-src 'self' blob:; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"Permissions-Policy":           "microphone=(self), speaker-selection=(self), autoplay=(self), screen-wake-lock=(self), camera=(), geolocation=()",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Resource-Policy": "same-origin",
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	json.NewEncoder(w).Encode(v) // a page that has gone misses it
}

// refuse writes a code and its sentence. wait is when to try again; 0: not said.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, c Code, wait time.Duration) {
	from := front.Address(r.RemoteAddr)
	h.cfg.Count(string(c), from)
	h.cfg.Log.Debug("page refused", "code", c, "addr", from)
	body := struct {
		Code    Code   `json:"code"`
		Message string `json:"message"`
		Wait    int    `json:"wait,omitempty"` // s
	}{c, answers[c].text, int(math.Ceil(wait.Seconds()))}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(answers[c].status)
	json.NewEncoder(w).Encode(body)
}

// maxBody bounds a request of a page.
const maxBody = 1 << 10

// changing guards requests that change something: only by a page of ours, in JSON, which a form of another site cannot
// send.
func (h *Handler) changing(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values("Origin")) != 1 || !front.Ours(r, *h.origins.Load()) {
			h.refuse(w, r, BadOrigin, 0)
			return
		}
		if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/json" {
			h.refuse(w, r, BadRequest, 0)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next(w, r)
	}
}

// withSession hands a request on whose cookie opens a session, with its player.
func (h *Handler) withSession(next func(http.ResponseWriter, *http.Request, uuid.UUID)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		player, ok := h.cfg.Book.of(cookie(r))
		if !ok {
			h.refuse(w, r, SessionEnded, 0)
			return
		}
		next(w, r, player)
	}
}

// cookieName returns a name for each port: cookies do not tell the ports of a host apart, and two proxies may share a
// host.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil && strings.Trim(port, "0123456789") == "" {
		return "earshot-" + port
	}
	return "earshot"
}

func cookie(r *http.Request) string {
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return ""
	}
	return c.Value
}

// read reads a small JSON object.
func read(r *http.Request, into any) error {
	dec := json.NewDecoder(r.Body)
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// maxCode bounds the part of a code that is looked at.
const maxCode = 64

// open trades a code for a session. A link's code cannot be guessed, so it is always tried; a short one is tried only
// from an address that has not failed too often.
func (h *Handler) open(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Code string `json:"code"`
	}
	if err := read(r, &q); err != nil || q.Code == "" || len(q.Code) > maxCode {
		h.refuse(w, r, BadRequest, 0)
		return
	}
	wrong, secret := LinkExpired, strings.TrimSpace(q.Code)
	from := front.Address(r.RemoteAddr)
	if s, ok := typed(q.Code); ok || len(secret) < 2*letters {
		wrong, secret = WrongCode, s
		if wait := h.tries.Wait(from); wait > 0 {
			h.refuse(w, r, TooManyTries, wait)
			return
		}
	}
	player, found, used := h.cfg.Book.whose(secret)
	switch {
	case !found, used && wrong == WrongCode:
		if wrong == WrongCode {
			h.tries.Add(from)
		}
		h.refuse(w, r, wrong, 0)
		return
	case used:
		h.refuse(w, r, LinkUsed, 0)
		return
	}
	p, ok := h.player(w, r, player)
	if !ok {
		return // the code still works when they are back
	}
	key, ok := h.cfg.Book.trade(secret)
	if !ok {
		h.refuse(w, r, LinkUsed, 0)
		return
	}
	http.SetCookie(w, h.cookie(r, key, 0))
	h.describe(w, r, player, p)
}

// cookie makes the cookie of a session. The origin shows whether the browser came by https.
func (h *Handler) cookie(r *http.Request, value string, age int) *http.Cookie {
	u, _ := url.Parse(r.Header.Get("Origin")) // was checked
	return &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: age, HttpOnly: true,
		Secure: u != nil && u.Scheme == "https", SameSite: http.SameSiteStrictMode,
	}
}

// player returns the player of a session who may have voice, or answers why not.
func (h *Handler) player(w http.ResponseWriter, r *http.Request, id uuid.UUID) (Player, bool) {
	p, ok := h.cfg.Player(id)
	if !ok {
		h.refuse(w, r, PlayerLeft, 0)
		return Player{}, false
	}
	if c := h.cfg.Closed(id); c != "" {
		h.refuse(w, r, c, 0)
		return Player{}, false
	}
	return p, true
}

func (h *Handler) tell(w http.ResponseWriter, r *http.Request, id uuid.UUID) {
	if p, ok := h.player(w, r, id); ok {
		h.describe(w, r, id, p)
	}
}

func (h *Handler) describe(w http.ResponseWriter, r *http.Request, id uuid.UUID, p Player) {
	answer(w, struct {
		Name      string    `json:"name"`
		UUID      uuid.UUID `json:"uuid"`
		Server    string    `json:"server"`
		Near      int       `json:"near"`
		Range     float64   `json:"range"`
		Network   string    `json:"network"`
		Recording bool      `json:"recording"` // Earshot never records
	}{p.Name, id, p.Server, p.Near, p.Range, h.cfg.About(r).Network, false})
}

func (h *Handler) forget(w http.ResponseWriter, r *http.Request) {
	h.cfg.Book.end(cookie(r))
	http.SetCookie(w, h.cookie(r, "", -1))
	w.WriteHeader(http.StatusNoContent)
}

func (h *Handler) mint(w http.ResponseWriter, r *http.Request, id uuid.UUID) {
	if _, ok := h.player(w, r, id); !ok {
		return
	}
	token, ttl, err := h.cfg.Mint(id)
	if err != nil {
		h.refuse(w, r, Busy, time.Second)
		return
	}
	answer(w, struct {
		Token string    `json:"token"`
		UUID  uuid.UUID `json:"uuid"`
		Path  string    `json:"path"` // of the voice socket, relative to the page
		TTL   int       `json:"ttl"`  // s
	}{token, id, "voice", int(ttl / time.Second)})
}

// maxName bounds the name in a question.
const maxName = 64

func (h *Handler) why(w http.ResponseWriter, r *http.Request, id uuid.UUID) {
	var q struct {
		Name string `json:"name"`
	}
	if err := read(r, &q); err != nil || q.Name == "" || len(q.Name) > maxName {
		h.refuse(w, r, BadRequest, 0)
		return
	}
	answer(w, struct {
		Sentence string `json:"sentence"`
	}{h.cfg.Why(id, q.Name)})
}
