package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/bridge/invite"
	"github.com/earshot-mc/earshot/bridge/perm"
	"github.com/earshot-mc/earshot/bridge/track"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/handshake/token"
	"github.com/earshot-mc/earshot/handshake/upgrade"
	"github.com/earshot-mc/earshot/proxy"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/floodgate"
	"github.com/earshot-mc/earshot/proxy/limbo"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/listen"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/proxy/status"
	"github.com/earshot-mc/earshot/voice"
)

// stopWithin bounds the whole shutdown.
const stopWithin = 10 * time.Second

// app is the program, checked and put together, before anything listens.
type app struct {
	conf    *configs.Loaded
	log     *slog.Logger
	welcome packet.Text
	tls     *tls.Config // nil without a certificate
	proxy   proxy.Settings
	voice   voice.Config
	perms   *perm.Perm
	desk    *desk
	output  *output // of the log
	listen  listen.Config

	watchers []netip.Prefix // may read /metrics
	farewell string         // what players are told at the end
}

// build checks everything that can be checked without listening: certificate,
// icon and texts are read here, so that nothing starts by halves.
func build(l *configs.Loaded, stderr io.Writer) (*app, error) {
	out := &output{w: stderr}
	a := &app{conf: l, log: logger(l.Log, out), output: out, farewell: "The server is restarting."}
	text := func(key, s string) (packet.Text, error) {
		t, err := packet.ParseText(s)
		if err != nil {
			return t, fmt.Errorf("%s: %w", key, err)
		}
		return t, nil
	}
	var err error
	if a.welcome, err = text("limbo.message", l.Limbo.Message); err != nil {
		return nil, err
	}
	if l.TLS.Certificate != "" {
		cert, err := tls.LoadX509KeyPair(l.TLS.Certificate, l.TLS.Key)
		if err != nil {
			return nil, fmt.Errorf("tls: cannot use the certificate: %w", err)
		}
		a.tls = &tls.Config{
			Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
			DynamicRecordSizingDisabled: true, // a batch of frames is one record
		}
	}
	if a.proxy, err = a.proxySettings(text); err != nil {
		return nil, err
	}
	if a.voice, err = voiceConfig(&l.Voice); err != nil {
		return nil, err
	}
	if a.perms, err = permissions(&l.Permissions); err != nil {
		return nil, err
	}
	a.voice.Log = a.log.With("room", "voice")
	if a.desk, err = newDesk(l, a.proxy.Servers, a.perms, a.log.With("room", "commands")); err != nil {
		return nil, err
	}

	a.watchers, _ = configs.Prefixes(l.Admin.Networks)
	trusted, _ := configs.Prefixes(l.Proxy.Trusted) // checked by Load
	a.listen = listen.Config{
		Trusted: trusted, RequireProxy: l.Proxy.Required, TLS: a.tls != nil,
		FirstByte: time.Duration(l.Timeouts.FirstByte),
		Gate:      limit.NewNetworks(rate(l.Limits.Connections), false, a.proxy.Exempt).Allow,
		Log:       a.log.With("room", "listen"),
	}
	return a, nil
}

func rate(r configs.Rate) limit.Rate { return limit.Rate{PerSecond: r.PerSecond, Burst: r.Burst} }

func logger(l configs.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	level.UnmarshalText([]byte(l.Level)) // checked by Load
	opts := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		// It would write a word that stands for a number as that number.
		opts.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if s, ok := a.Value.Any().(fmt.Stringer); ok && a.Value.Kind() == slog.KindAny {
				a.Value = slog.StringValue(s.String())
			}
			return a
		}
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

func (a *app) proxySettings(text func(key, s string) (packet.Text, error)) (s proxy.Settings, err error) {
	l := a.conf
	t := l.Timeouts
	s.Settings = session.Settings{
		Online: l.Online, AcceptTransfers: l.Transfers, BehindProxy: len(l.Proxy.Trusted) > 0,
		Threshold: l.Compression.Threshold, Level: l.Compression.Level,
		Brand: "Earshot", Try: l.Try, FinalReasons: l.Final, KeepPacks: l.KeepPacks,
		Timeouts: session.Timeouts{
			// The handshake gets as long again as its first byte had.
			Handshake: 2 * time.Duration(t.FirstByte), Login: time.Duration(t.Login), Read: time.Duration(t.Read), Write: time.Duration(t.Write),
			BackendDial: time.Duration(t.BackendDial), BackendLogin: time.Duration(t.BackendLogin), BackendConfig: time.Duration(t.BackendConfig),
			BackendJoin: time.Duration(t.BackendJoin), ConfigAnswer: time.Duration(t.ConfigAnswer),
		},
	}
	for name, c := range l.Servers {
		mode, err := backend.ParseMode(c.Forwarding)
		if err != nil {
			return s, fmt.Errorf("servers.%s.forwarding: %w", name, err)
		}
		b := backend.Server{Name: name, Address: c.Address, Forwarding: mode, Secret: []byte(c.Secret), SendProxy: c.SendProxy, Floodgate: c.Floodgate}
		if err := b.Validate(); err != nil {
			return s, fmt.Errorf("servers.%s: %w", name, err)
		}
		s.Servers = append(s.Servers, b)
	}
	s.Auth.SessionURLs = []string{l.SessionServer}
	s.Auth.Timeout = time.Duration(t.SessionServer)
	s.Status.MaxPlayers = l.Status.MaxPlayers
	if s.Status.MOTD, err = text("status.motd", l.Status.MOTD); err != nil {
		return s, err
	}
	if s.Status.Icon, err = status.LoadIcon(l.Status.Icon); err != nil {
		return s, fmt.Errorf("status.icon: %w", err)
	}
	s.HideSample = l.Status.Sample == "off"
	if l.Status.Sample != "lines" {
		l.Status.Lines = nil
	}
	for _, line := range l.Status.Lines {
		x, err := text("status.sample-lines", line)
		if err != nil {
			return s, err
		}
		s.Status.Lines = append(s.Status.Lines, x)
	}
	s.Logins, s.Pings, s.Pending = rate(l.Limits.Logins), rate(l.Limits.Status), l.Limits.Pending
	s.Exempt, _ = configs.Prefixes(l.Limits.Exempt)
	s.HideAddresses = !l.Log.Addresses
	if l.Bedrock.KeyFile != "" {
		s.Bedrock = &session.Bedrock{Prefix: l.Bedrock.Prefix}
		s.Bedrock.Trusted, _ = configs.Prefixes(l.Bedrock.Trusted)
		if s.Bedrock.Key, err = floodgate.LoadKey(l.Bedrock.KeyFile); err != nil {
			return s, fmt.Errorf("bedrock.key-file: %w", err)
		}
		// Many players may come from there, and Geyser asks for the server list on its own.
		s.Exempt = append(s.Exempt, s.Bedrock.Trusted...)
	}
	return s, nil
}

// watch joins the proxy's sessions to the world that voice reads: one entry
// and one tracker for each player, for as long as the session lasts.
type watch struct {
	world    *world.Registry
	failures *track.Failures
}

func (w watch) Wants(v *proto.Version, s proto.State, d proto.Dir) []proto.Packet {
	return track.Wants(v, s, d)
}

func (w watch) Watch(p session.Player) session.Observer {
	player := w.world.Add(p.ID(), p.Name())
	t := track.New(player, w.world, proto.Lookup(p.Protocol()))
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

// run listens, serves until a signal, and stops. Its error is for whoever
// started the program.
func (a *app) run(stderr io.Writer) error {
	ln, err := listen.Open(context.Background(), a.conf.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("cannot listen on %s: another program has that port; stop it or choose another with --listen", a.conf.Listen)
	} else if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", a.conf.Listen, err)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)

	r, err := a.start(ln)
	if err != nil {
		ln.Close()
		return err
	}
	a.banner(stderr, ln.Addr().(*net.TCPAddr))
	typed, closeConsole := a.console(os.Stdin, os.Stderr)
	defer closeConsole()
	var failed error
	impatient := 2 // signals to come until nobody wants to wait any longer
	select {
	case s := <-signals:
		a.log.Info("stopping", "signal", s.String())
		impatient--
	case failed = <-r.failed:
	case reason := <-a.desk.quit:
		a.log.Info("stopping", "reason", reason)
		a.farewell = cmp.Or(reason, a.farewell)
	case failed = <-typed:
		a.log.Info("stopping", "console", failed == nil)
	}
	// Whatever is stuck, the program ends in time; a second signal ends it at
	// once. What it was stuck on is in the log.
	late := time.AfterFunc(stopWithin-500*time.Millisecond, func() {
		buf := make([]byte, 1<<20)
		fmt.Fprintf(stderr, "earshot: still not stopped; leaving. What was running:\n%s\n", buf[:runtime.Stack(buf, true)])
		os.Exit(1)
	})
	defer late.Stop()
	go func() {
		for range impatient {
			<-signals
		}
		os.Exit(1)
	}()
	r.stop()
	return failed
}

// running is everything that has to end.
type running struct {
	failed chan error // what ended by itself and should not have
	stop   func()
}

// start puts the rooms together on ln and serves.
func (a *app) start(ln net.Listener) (*running, error) {
	reg := world.New()
	failures := &track.Failures{Log: a.log.With("room", "track")}
	builtin := limbo.New(limbo.Config{Welcome: a.welcome, Log: a.log.With("room", "limbo")})
	settings := a.proxy
	settings.Servers = append(settings.Servers, backend.Server{Name: configs.LimboName, Forwarding: backend.Legacy, Dial: builtin.Dial, Limbo: true})

	tokens := token.New(1 << 16)
	inviter := invite.New(invite.Config{
		Tokens: tokens, Log: a.log.With("room", "invite"),
		Terms: invite.Terms{PublicURL: a.conf.Voice.PublicURL, TLS: a.tls != nil, Off: !a.conf.Voice.Enabled},
	})
	compiled, err := proxy.Compile(settings)
	if err != nil {
		builtin.Close()
		return nil, err
	}
	server := proxy.New(compiled, proxy.Others{Watch: watch{reg, failures}, Channels: inviter, Hooks: a.desk, Backends: a.desk, Say: a.desk.say}, a.log.With("room", "proxy"))
	a.desk.world, a.desk.server = reg, server
	a.voice.Permissions = rights(reg, a.perms)
	a.voice.Notice = notice(server.Player)
	gateway := voice.New(a.voice, reg)
	a.desk.voice = gateway
	var stopping atomic.Bool
	pages := admin.New(a.watchers, func() admin.Health {
		h := admin.Health{OK: true, State: "running", Details: map[string]any{
			"version": release(), "players": server.Online(), "voice_sockets": gateway.Stats().Sockets,
		}}
		if stopping.Load() {
			h.OK, h.State = false, "stopping"
		}
		return h
	})
	export(pages, server.Counters(), server.Online, gateway.Stats, failures, inviter)
	listening := a.listen
	listening.Count = pages.Tally("earshot_connections_refused_total", "Connections closed before they were told apart, by reason.", "reason", listen.Reasons)
	listening.Players = func(c *listen.Conn) { server.Handle(c) }
	port := listen.New(ln, listening)
	sweeper := socket.NewSweeper()
	sockets := upgrade.New(upgrade.Config{
		Tokens: tokens, Sweeper: sweeper, Offered: gateway.Offers, Origins: a.conf.Voice.Origins,
		Online: func(id uuid.UUID) bool { return reg.Get(id) != nil },
		Accept: func(_ context.Context, s *socket.Socket, player uuid.UUID, c caps.Set) { gateway.Accept(s, player, c) },
		Count:  pages.Tally("earshot_voice_refused_total", "Voice sockets refused, by reason.", "reason", upgrade.Reasons()),
		Log:    a.log.With("room", "upgrade"),
	})

	mux := http.NewServeMux()
	mux.Handle("/healthz", pages.Healthz())
	mux.Handle("/metrics", pages.Metrics())
	if a.conf.Voice.Enabled {
		mux.Handle(upgrade.Path, sockets)
	}
	web := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(a.log.With("room", "http").Handler(), slog.LevelDebug),
	}

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
	if a.tls != nil {
		serve("https", func() error { return web.Serve(tls.NewListener(buffered{port.TLS()}, a.tls)) })
	}
	r.stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin-time.Second)
		defer cancel()
		stopping.Store(true)
		sockets.Stop()
		port.Close()
		var all sync.WaitGroup
		report := func(what string, err error) {
			if err != nil {
				a.log.Error("stopping", "what", what, "error", err)
			}
		}
		all.Go(func() { report("voice", gateway.Close(ctx)) })
		all.Go(func() { report("players", server.Shutdown(ctx, a.farewell)) })
		all.Go(func() { report("http", web.Shutdown(ctx)) })
		all.Wait()
		a.desk.close()
		report("limbo", builtin.Close())
		sockets.Wait()
		sweeper.Close()
		serving.Wait()
	}
	return r, nil
}

// banner says where to join, where voice is, and what is unsafe: at every start,
// whatever the log's level is, and as the log does where machines read it.
func (a *app) banner(w io.Writer, addr *net.TCPAddr) {
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "localhost"
	}
	where := net.JoinHostPort(host, fmt.Sprint(addr.Port))
	versions := proto.Supported()
	first, last := versions[0].Names, versions[len(versions)-1].Names
	span := fmt.Sprintf("%s to %s", first[0], last[len(last)-1])
	scheme := "ws"
	if a.tls != nil {
		scheme = "wss"
	}
	sockets := fmt.Sprintf("%s://%s%s, the same port", scheme, where, upgrade.Path)
	switch {
	case !a.conf.Voice.Enabled:
		sockets = "off (voice.enabled)"
	case a.conf.Voice.PublicURL != "":
		sockets = fmt.Sprintf("%s, which must lead to %s", a.conf.Voice.PublicURL, where)
	}
	var unsafe []string
	if !a.conf.Online {
		unsafe = append(unsafe, "players are not authenticated: anybody can join as anybody (--offline, or online: false)")
	}
	unsafe = append(unsafe, a.conf.Warnings...)

	if a.conf.Log.Format == "json" {
		log := logger(configs.Log{Level: "info", Format: "json"}, w)
		log.Info("running", "version", release(), "join", where, "minecraft", span, "voice", sockets, "players_go_to", a.conf.Try)
		for _, s := range unsafe {
			log.Warn("unsafe", "why", s)
		}
		return
	}
	fmt.Fprintf(w, "Earshot %s\n  join    %s with Minecraft %s\n  voice   %s\n  players go to %s\n",
		release(), where, span, sockets, strings.Join(a.conf.Try, ", then "))
	for _, s := range unsafe {
		fmt.Fprintln(w, "  UNSAFE ", s)
	}
}
