package network

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms/serve"
	guests "github.com/earshot-mc/earshot/bridge/walk/serve"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/handshake/upgrade"
	"github.com/earshot-mc/earshot/proxy/limit"
)

// Bounds on the time of an HTTP connection.
const (
	httpHead   = 5 * time.Second  // a request's head
	httpRead   = 10 * time.Second // a request
	httpAnswer = 10 * time.Second // an answer, until the client has taken it
	httpIdle   = time.Minute      // between two requests
	httpStop   = time.Second      // for answers under way when the program ends
)

// visitors are the HTTP connections that are not voice sockets. Where there are too many, in all or of a network, the
// one whose last request is the longest ago goes for a new one.
type visitors struct {
	places *limit.Places
	front  func(netip.Addr) bool // a reverse proxy with many clients behind it
	count  func(reason string, from netip.Addr)

	mu  sync.Mutex
	all map[net.Conn]*limit.Place
}

// Why a connection of a visitor was closed.
const httpCrowded = "crowded"

func newVisitors(front func(netip.Addr) bool, count func(reason string, from netip.Addr)) *visitors {
	return &visitors{places: limit.NewPlaces(limit.Bounds{}), front: front, count: count, all: map[net.Conn]*limit.Place{}}
}

// set changes how many there may be. A network may have a sixteenth of them, a wide one a quarter.
func (v *visitors) set(all int, exempt []netip.Prefix) {
	v.places.Set(limit.Bounds{All: all, Wide: (all + 3) / 4, Network: (all + 15) / 16}, exempt)
}

// state handles ConnState of an [http.Server].
func (v *visitors) state(c net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		v.enter(c)
	case http.StateActive:
		v.mu.Lock()
		x := v.all[c]
		v.mu.Unlock()
		if x != nil {
			v.places.Spoke(x)
		}
	case http.StateHijacked, http.StateClosed:
		v.mu.Lock()
		x := v.all[c]
		delete(v.all, c)
		v.mu.Unlock()
		if x != nil {
			v.places.Leave(x)
		}
	}
}

func (v *visitors) enter(c net.Conn) {
	var from netip.Addr
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		from = a.AddrPort().Addr().Unmap()
	}
	place := from
	if v.front(from) {
		place = netip.Addr{}
	}
	x := &limit.Place{}
	v.mu.Lock()
	v.all[c] = x
	v.mu.Unlock()
	v.places.Enter(x, place, func() {
		v.count(httpCrowded, from)
		c.SetDeadline(time.Unix(1, 0)) // over TLS, Close would wait for a stuck write
		if t, ok := c.(interface{ NetConn() net.Conn }); ok {
			c = t.NetConn()
		}
		c.Close()
	})
}

// newWeb returns the HTTP server of the port, plain and over TLS.
func newWeb(h http.Handler, v *visitors, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ConnState: v.state, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: httpHead, ReadTimeout: httpRead, WriteTimeout: httpAnswer, IdleTimeout: httpIdle,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// web is the HTTP server as something that ends.
type web struct{ *http.Server }

// stop lets answers under way finish, for a moment, and closes the rest.
func (w web) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, httpStop)
	defer cancel()
	err := w.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = w.Close()
	}
	return err
}

// routes returns the handler of everything that is answered over HTTP.
func (p *parts) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/healthz", p.pages.Healthz())
	mux.Handle("/metrics", p.pages.Metrics())
	mux.Handle(serve.Path, p.play.door)
	mux.Handle(guests.Path, p.walk)
	mux.Handle(serve.SpecPath, serve.Spec())
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == *p.voicePath.Load()+guests.Path {
			p.walk.ServeHTTP(w, q)
			return
		}
		if p.play.serves(*p.voicePath.Load(), w, q) {
			return
		}
		// A reverse proxy may cut the path of voice.public-url off, or pass it on.
		switch prefix := *p.voicePath.Load(); {
		case q.URL.Path != upgrade.Path && q.URL.Path != prefix+upgrade.Path:
			p.page.serve(w, q, prefix)
		case p.voiceOn.Load():
			p.sockets.ServeHTTP(w, q)
		default:
			http.NotFound(w, q)
		}
	})
	return mux
}

// buffered makes each TLS connection one that a voice socket can write to without waiting.
type buffered struct{ net.Listener }

func (b buffered) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return socket.Buffered(c), nil
}
