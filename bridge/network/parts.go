package network

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/bridge/invite"
	"github.com/earshot-mc/earshot/bridge/rcon"
	"github.com/earshot-mc/earshot/bridge/track"
	guests "github.com/earshot-mc/earshot/bridge/walk/serve"
	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/front"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/handshake/token"
	"github.com/earshot-mc/earshot/handshake/upgrade"
	"github.com/earshot-mc/earshot/proxy"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/listen"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/store"
)

// parts are the parts of a running network.
type parts struct {
	connections *limit.Networks
	listening   listen.Config
	addr        *net.TCPAddr
	port        *listen.Listener
	pages       *admin.Admin
	front       *front.Front
	visitors    *visitors
	web         *http.Server
	turned      *turned
	remote      *rcon.Server // nil: there is no RCON
	remoteAt    net.Listener
	server      *proxy.Server
	inviter     *invite.Inviter
	sockets     *upgrade.Handler
	play        *play
	walk        *guests.Server
	page        *voicePage
	gateway     *voice.Gateway
	names       *voice.Names
	store       *store.Store

	voicePath atomic.Pointer[string] // the path before /voice, in addition to none
	voiceOn   atomic.Bool

	failed   chan error // parts that ended by themselves and should not have
	farewell string     // players' text at the end; empty: a text of the table
	unfollow func()     // nil: nothing is followed
	ending   ending
}

// assemble puts the parts together on ln and applies the settings. remote is for RCON, nil without. state is on the
// store.
func (n *Network) assemble(ln, remote net.Listener, on *store.Store, state *voice.State) *parts {
	p := &parts{store: on, names: state.Names(n.now.conf.State.Names), addr: ln.Addr().(*net.TCPAddr), failed: make(chan error, 4)}
	failures := &track.Failures{Log: n.log.With("room", "track")}
	tokens := token.New(1 << 16)
	p.inviter = invite.New(invite.Config{Tokens: tokens, Log: n.log.With("room", "invite")})
	p.turned = newTurned(n.log)
	p.page = newVoicePage(n, tokens)
	p.server = proxy.New(n.now.compiled, proxy.Dependencies{
		Watch: []session.Watch{watch{n.world, p.names, failures, p.page}}, Channels: []session.Channels{p.inviter}, Hooks: n.controller, Backends: n.backchannel, Say: n.say,
		Admit: n.players.admit, Listed: n.players.listed, Ended: p.turned.session,
	}, n.log.With("room", "proxy"))
	n.players.server = p.server
	p.gateway = voice.New(voice.Config{
		Log: n.log.With("room", "voice"), Permissions: rights(n.world, n.players.perms),
		Notice: func(id uuid.UUID, why voice.Reason) { n.teller().notice(id, why) },
		Muted:  func(id uuid.UUID, was, is mute.State) { n.teller().muted(id, was, is) },
		OpusOK: n.opt.OpusOK, Store: state, Sounds: n.now.conf.Voice.Sounds, Convert: converter(), Speakers: state.Speakers(), Flooded: p.turned.flood,
	}, n.world)
	n.voices.Gateway, n.voices.store = p.gateway, on
	p.connections = limit.NewNetworks(limit.Rate{}, false, nil)
	p.listening = listen.Config{
		Gate: p.connections.Take, Log: n.log.With("room", "listen"), Players: func(c *listen.Conn) { p.server.Handle(c) },
		Count: p.turned.connection,
	}
	p.port = listen.New(ln, p.listening)
	sweeper := socket.NewSweeper()
	p.sockets = upgrade.New(upgrade.Config{
		Tokens: either{tokens, n.opt.Tokens}, Sweeper: sweeper, Offered: p.gateway.Offers,
		Online: func(id uuid.UUID) bool { return n.world.Get(id) != nil },
		Accept: func(_ context.Context, s *socket.Socket, player uuid.UUID, c caps.Set) {
			p.gateway.Accept(s, player, c)
		},
		Count: p.turned.voice,
		Log:   n.log.With("room", "upgrade"),
	})
	p.play = newPlay(sweeper, p.sockets.Failures(), p.turned, n.log.With("room", "rooms"))
	p.pages = admin.New(nil, func() admin.Health { return n.health(p) })
	n.export(p, failures)
	p.walk = newWalk(n.world, sweeper, p.sockets.Failures(), p.turned, p.pages, n.log.With("room", "walk"))
	p.front = front.New(n.certs.Challenge(p.routes()), n.log.With("room", "http"))
	p.visitors = newVisitors(p.front.Trusts, p.turned.http)
	p.web = newWeb(p.front, p.visitors, n.log.With("room", "http"))
	p.ending = ending{
		log: n.log, sockets: p.sockets, rooms: p.play, guests: p.walk, port: p.port, voice: p.gateway, players: p.server, web: web{p.web},
		commands: n.controller, limbo: n.builtin, sweeper: sweeper, store: on,
	}
	if remote != nil {
		p.remoteAt = remote
		p.remote = rcon.New(rcon.Config{Run: n.remoteLine, Refused: p.turned.remote, Log: n.log.With("room", "rcon")})
		p.ending.remote = p.remote
	}
	exportRemote(p.pages, p.remote)
	exportRooms(p.pages, p.play.stats)
	n.parts = p
	n.reloading.Lock()
	n.apply(n.now)
	n.serving = true
	n.reloading.Unlock()
	return p
}

// either takes the tokens of both. The second may be nil.
type either [2]upgrade.Redeemer

// Redeem implements upgrade.Redeemer.
func (e either) Redeem(token string, player uuid.UUID) bool {
	return e[0].Redeem(token, player) || e[1] != nil && e[1].Redeem(token, player)
}

// serve has the parts serve, and returns when ctx ends, when somebody has given the command to stop, or with the error
// of a part that has failed.
func (n *Network) serve(ctx context.Context, p *parts) error {
	serve := func(what string, fn func() error) {
		p.ending.serving.Go(func() {
			if err := fn(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
				p.failed <- fmt.Errorf("%s: %w", what, err)
			}
		})
	}
	background, done := context.WithCancel(ctx)
	defer done()
	p.ending.serving.Go(func() { n.certs.Run(background) })
	serve("listen", p.port.Serve)
	serve("http", func() error { return p.web.Serve(p.port.HTTP()) })
	// Without a certificate there is nothing to accept.
	serve("https", func() error { return p.web.Serve(tls.NewListener(buffered{p.port.TLS()}, n.certs.TLS())) })
	if p.remote != nil {
		serve("rcon", func() error { return p.remote.Serve(p.remoteAt) })
	}
	if n.opt.Load != nil {
		p.unfollow = n.follow()
	}
	if n.opt.Started != nil {
		n.opt.Started(Facts{n.now.conf, p.addr, n.certs.On(), n.now.public, p.remoteAddr()})
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.failed:
		return err
	case q := <-n.quit:
		if !q.told {
			n.log.Info("stopping", "reason", q.reason)
		}
		p.farewell = q.reason
		return nil
	}
}

// remoteAddr returns where RCON listens; nil: nowhere.
func (p *parts) remoteAddr() net.Addr {
	if p.remoteAt == nil {
		return nil
	}
	return p.remoteAt.Addr()
}

// stop ends the parts. Lost changes are an error.
func (n *Network) stop(p *parts) error {
	if p.unfollow != nil {
		p.unfollow()
	}
	n.reloading.Lock()
	n.serving = false
	n.reloading.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin-time.Second)
	defer cancel()
	return p.ending.stop(ctx, p.farewell)
}

// ending holds everything that has to end in order.
type ending struct {
	log *slog.Logger

	sockets interface {
		Stop() // refuses new ones
		Wait()
	}
	guests interface {
		Stop() // refuses new ones and closes those who are there
		Wait()
	}
	rooms interface {
		Stop() // refuses new ones
		close()
		Wait()
	}
	port  io.Closer
	voice interface {
		Freeze()
		Close(context.Context) error
	}
	players interface {
		Shutdown(ctx context.Context, reason string) error
	}
	web      interface{ stop(context.Context) error }
	remote   interface{ Stop() } // nil: there is none
	commands interface{ close() }
	limbo    io.Closer
	sweeper  interface{ Close() }
	store    interface{ Close(context.Context) error }

	stopping atomic.Bool
	serving  sync.WaitGroup
}

// stop ends everything in order. Nobody comes in any more. Lasting state is frozen before players are sent away, since
// they would leave their groups. Once nobody can give commands, it waits for those that run. It closes the store when
// nothing is left that could store anything. Its error is the store's, since nothing else is lost.
func (e *ending) stop(ctx context.Context, farewell string) error {
	report := func(what string, err error) {
		if err != nil {
			e.log.Error("stopping", "what", what, "error", err)
		}
	}
	e.stopping.Store(true)
	e.sockets.Stop()
	e.rooms.Stop()
	e.guests.Stop()
	e.port.Close()
	e.voice.Freeze()
	var all sync.WaitGroup
	all.Go(func() { report("voice", e.voice.Close(ctx)) })
	all.Go(func() { report("players", e.players.Shutdown(ctx, farewell)) })
	all.Go(func() { report("http", e.web.stop(ctx)) })
	all.Go(e.rooms.close)
	if e.remote != nil {
		all.Go(e.remote.Stop)
	}
	all.Wait()
	e.commands.close()
	report("limbo", e.limbo.Close())
	e.sockets.Wait()
	e.rooms.Wait()
	e.guests.Wait()
	e.sweeper.Close()
	e.serving.Wait()
	err := e.store.Close(ctx)
	report("state", err)
	return err
}
