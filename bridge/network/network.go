// Package network is a whole Earshot: it puts the proxy, the handshake, the voice gateway and what joins them together, as a
// configuration says, and runs them on one port.
package network

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/invite"
	"github.com/earshot-mc/earshot/bridge/track"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/front"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/handshake/token"
	"github.com/earshot-mc/earshot/handshake/upgrade"
	"github.com/earshot-mc/earshot/proxy"
	"github.com/earshot-mc/earshot/proxy/limbo"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/listen"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/store"
)

// stopWithin bounds the whole shutdown.
const stopWithin = 10 * time.Second

// Options are what a network has besides its configuration.
type Options struct {
	// Load reads the configuration again, for Reload and whenever one of its files changes. What comes with an error counts
	// for its Files. Nil: there is nothing to read again.
	Load    func() (*configs.Loaded, error)
	Dir     string            // the data folder, which is there
	Version string            // of the program
	Log     *slog.Logger      // nil: none
	Logging func(configs.Log) // is told how to log, at the start and when that changes; may be nil
	Started func(Facts)       // is called once the network serves, and not waited for by it; may be nil
}

// Facts are what those who start a network may want to know of it.
type Facts struct {
	Config *configs.Loaded
	Addr   *net.TCPAddr // where players join, and everything else
	TLS    bool         // there is a certificate
	Public string       // the base URL that clients are told; empty: as they joined
}

// Network is a whole network, checked and put together, before anything listens.
type Network struct {
	opt Options
	log *slog.Logger

	builtin *limbo.World
	desk    *desk
	cert    atomic.Pointer[tls.Certificate] // nil: none
	rooms   *rooms                          // from start on

	reloading sync.Mutex // one reload at a time; guards these
	serving   bool
	now       *settings // that are in force
	files     []string  // of the configuration, with those of one that could not be put in force
	tried     string    // the stamp they had when they were read last

	farewell string // what players are told at the end; empty: a text of the table
}

// rooms are those that [Network.apply] has something to tell.
type rooms struct {
	connections *limit.Networks
	listening   listen.Config
	port        *listen.Listener
	pages       *admin.Admin
	front       *front.Front
	visitors    *visitors
	turned      *turned
	voiceAt     atomic.Pointer[string] // the path before /voice, beside none
	server      *proxy.Server
	inviter     *invite.Inviter
	sockets     *upgrade.Handler
	gateway     *voice.Gateway
	voiceOn     atomic.Bool
}

// New checks everything that can be checked without listening: certificate, icon and texts are read here, so that nothing
// starts by halves. It notes in l what is probably not meant.
func New(l *configs.Loaded, opt Options) (*Network, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	a := &Network{opt: opt, log: opt.Log}
	a.builtin = limbo.New(limbo.Config{Log: a.log.With("room", "limbo")})
	a.desk = newDesk(opt.Version, a.log.With("room", "commands"), a.Reload, a.dump)
	a.files, a.tried = l.Files, stamp(l.Files)
	var err error
	if a.now, err = a.compile(l); err != nil {
		return nil, err
	}
	return a, nil
}

// Commands returns the commands that are in force, for a console.
func (a *Network) Commands() *commands.Commands { return a.desk.office.Load().commands }

// watch joins the proxy's sessions to the world that voice reads: one entry
// and one tracker for each player, for as long as the session lasts.
type watch struct {
	world    *world.Registry
	names    *voice.Names
	failures *track.Failures
}

func (w watch) Wants(v *proto.Version, s proto.State, d proto.Dir) []proto.Packet {
	return track.Wants(v, s, d)
}

func (w watch) Watch(p session.Player) session.Observer {
	w.names.Seen(p.ID(), p.Name(), time.Now())
	player := w.world.Add(p.ID(), p.Name())
	t := track.New(player, w.world, proto.Closest(p.Protocol()))
	t.Failures = w.failures
	return tracked{t, w.world, player}
}

type tracked struct {
	*track.Track
	world  *world.Registry
	player *world.Player
}

func (t tracked) Close() {
	t.Track.Close()
	t.world.Remove(t.player)
}

// buffered makes each TLS connection one that a voice socket can write to
// without waiting.
type buffered struct{ net.Listener }

func (b buffered) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return socket.Buffered(c), nil
}

// Run listens, serves until ctx ends or somebody gives the command to, and stops, which takes [stopWithin] at most. Its
// error is for whoever started the program: a *[store.LostError] where something could not be stored, a *[StuckError]
// where something did not end.
func (a *Network) Run(ctx context.Context) error {
	at := a.now.conf.Listen
	ln, err := listen.Open(ctx, at)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("cannot listen on %s: another program has that port; stop it or choose another with --listen", at)
	} else if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", at, err)
	}
	on, state, err := OpenState(ctx, &a.now.conf.State, a.opt.Dir, a.log.With("room", "store"))
	switch {
	case err != nil && ctx.Err() != nil: // nothing has begun
		return ln.Close()
	case err != nil:
		ln.Close()
		return err
	}
	r := a.start(ln, on, state)
	unfollow := func() {}
	if a.opt.Load != nil {
		unfollow = a.follow()
	}
	if a.opt.Started != nil {
		a.opt.Started(Facts{a.now.conf, ln.Addr().(*net.TCPAddr), a.now.cert != nil, a.now.public})
	}
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-r.failed:
	case q := <-a.desk.quit:
		if !q.told {
			a.log.Info("stopping", "reason", q.reason)
		}
		a.farewell = q.reason
	}
	stopped := make(chan error, 1)
	go func() {
		unfollow()
		a.reloading.Lock()
		a.serving = false
		a.reloading.Unlock()
		stopped <- r.stop()
	}()
	late := time.NewTimer(stopWithin - 500*time.Millisecond)
	defer late.Stop()
	select {
	case err = <-stopped:
		return errors.Join(failed, err)
	case <-late.C:
		buf := make([]byte, 1<<20)
		return errors.Join(failed, &StuckError{string(buf[:runtime.Stack(buf, true)])})
	}
}

// StuckError is that of a network that did not stop in time. Parts of it are running still.
type StuckError struct {
	Stacks string // of what was running
}

// Error implements error.
func (e *StuckError) Error() string {
	return "still not stopped; leaving. What was running:\n" + e.Stacks
}

// running is everything that has to end.
type running struct {
	failed chan error   // what ended by itself and should not have
	stop   func() error // what is lost by it is an error
}

// start puts the rooms together on ln, has them go by the settings, and serves. state is on the store.
func (a *Network) start(ln net.Listener, on *store.Store, state *voice.State) *running {
	reg := world.New()
	reg.Sights().Log = a.log.With("room", "sight")
	a.desk.names = state.Names(a.now.conf.State.Names)
	failures := &track.Failures{Log: a.log.With("room", "track")}
	tokens := token.New(1 << 16)
	inviter := invite.New(invite.Config{Tokens: tokens, Log: a.log.With("room", "invite")})
	turned := newTurned(a.log)
	server := proxy.New(a.now.compiled, proxy.Others{
		Watch: watch{reg, a.desk.names, failures}, Channels: inviter, Hooks: a.desk, Backends: a.desk, Say: a.desk.say, Admit: a.desk.admit,
		Listed: listed(reg),
		Ended:  turned.session,
	}, a.log.With("room", "proxy"))
	gateway := voice.New(voice.Config{
		Log: a.log.With("room", "voice"), Permissions: rights(reg, a.desk.perms), Notice: func(id uuid.UUID, why voice.Reason) { a.desk.teller().notice(id, why) },
		Muted: func(id uuid.UUID, was, is mute.State) { a.desk.teller().muted(id, was, is) },
		Store: state, Sounds: a.now.conf.Voice.Sounds, Speakers: state.Speakers(),
	}, reg)
	a.desk.world, a.desk.server, a.desk.voice, a.desk.store = reg, server, gateway, on
	var stopping atomic.Bool
	pages := admin.New(nil, func() admin.Health {
		h := admin.Health{OK: true, State: "running", Details: map[string]any{
			"version": a.opt.Version, "players": server.Online(), "voice_sockets": gateway.Stats().Sockets,
		}}
		describe(&h, on.Health())
		if stopping.Load() {
			h.OK, h.State = false, "stopping"
		}
		return h
	})
	turned.export(pages)
	exportServers(pages, server)
	export(pages, server.Counters(), server.Online, gateway.Stats, failures, inviter)
	exportCommands(pages, &a.desk.counters, a.desk.messages)
	exportState(pages, gateway.Stats, on.Health)
	connections := limit.NewNetworks(limit.Rate{}, false, nil)
	listening := listen.Config{
		Gate: connections.Take, Log: a.log.With("room", "listen"), Players: func(c *listen.Conn) { server.Handle(c) },
		Count: turned.connection,
	}
	port := listen.New(ln, listening)
	sweeper := socket.NewSweeper()
	sockets := upgrade.New(upgrade.Config{
		Tokens: tokens, Sweeper: sweeper, Offered: gateway.Offers,
		Online: func(id uuid.UUID) bool { return reg.Get(id) != nil },
		Accept: func(_ context.Context, s *socket.Socket, player uuid.UUID, c caps.Set) { gateway.Accept(s, player, c) },
		Count:  turned.voice,
		Log:    a.log.With("room", "upgrade"),
	})

	mux := http.NewServeMux()
	mux.Handle("/healthz", pages.Healthz())
	mux.Handle("/metrics", pages.Metrics())
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		// A reverse proxy may cut the path of voice.public-url off, or pass it on.
		if q.URL.Path != upgrade.Path && q.URL.Path != *a.rooms.voiceAt.Load()+upgrade.Path || !a.rooms.voiceOn.Load() {
			http.NotFound(w, q)
			return
		}
		sockets.ServeHTTP(w, q)
	})
	before := front.New(mux, a.log.With("room", "http"))
	a.rooms = &rooms{
		connections: connections, listening: listening, port: port, pages: pages, front: before,
		visitors: newVisitors(before.Trusts, turned.http), turned: turned,
		server: server, inviter: inviter, sockets: sockets, gateway: gateway,
	}
	a.reloading.Lock()
	a.apply(a.now)
	a.serving = true
	a.reloading.Unlock()

	web := newWeb(a.rooms.front, a.rooms.visitors, a.log.With("room", "http"))

	r := &running{failed: make(chan error, 4)}
	var serving sync.WaitGroup
	serve := func(what string, fn func() error) {
		serving.Go(func() {
			if err := fn(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
				r.failed <- fmt.Errorf("%s: %w", what, err)
			}
		})
	}
	serve("listen", port.Serve)
	serve("http", func() error { return web.Serve(port.HTTP()) })
	// There is nothing to accept as long as there is no certificate.
	serve("https", func() error { return web.Serve(tls.NewListener(buffered{port.TLS()}, a.tlsConfig())) })
	r.stop = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin-time.Second)
		defer cancel()
		stopping.Store(true)
		sockets.Stop()
		port.Close()
		gateway.Freeze() // before players are sent away, who would leave their groups
		var all sync.WaitGroup
		report := func(what string, err error) {
			if err != nil {
				a.log.Error("stopping", "what", what, "error", err)
			}
		}
		all.Go(func() { report("voice", gateway.Close(ctx)) })
		all.Go(func() { report("players", server.Shutdown(ctx, a.farewell)) })
		all.Go(func() { report("http", stopWeb(ctx, web)) })
		all.Wait()
		a.desk.close()
		report("limbo", a.builtin.Close())
		sockets.Wait()
		sweeper.Close()
		serving.Wait()
		err := on.Close(ctx)
		report("state", err)
		return err
	}
	return r
}

// tlsConfig is how the port speaks TLS: with the certificate of the moment.
func (a *Network) tlsConfig() *tls.Config {
	return &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c := a.cert.Load(); c != nil {
				return c, nil
			}
			return nil, errors.New("the certificate has been taken away")
		},
		NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
		DynamicRecordSizingDisabled: true, // a batch of frames is one record
	}
}

// Unsafe returns what somebody should know about a configuration.
func Unsafe(l *configs.Loaded) (all []string) {
	if !l.Online {
		all = append(all, "players are not authenticated: anybody can join as anybody (--offline, or online: false)")
	}
	return append(all, l.Warnings...)
}
