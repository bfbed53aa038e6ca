// Package network is a whole Earshot: it puts the proxy, the handshake, the voice gateway and what joins them together,
// as a configuration says, and runs them on one port.
package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/handshake/cert"
	"github.com/earshot-mc/earshot/handshake/upgrade"
	"github.com/earshot-mc/earshot/proxy/limbo"
	"github.com/earshot-mc/earshot/proxy/listen"
	"github.com/earshot-mc/earshot/voice"
)

// stopWithin bounds the whole shutdown.
const stopWithin = 10 * time.Second

// Options holds what a network needs and its configuration does not say.
type Options struct {
	// Load reads the configuration again, for Reload and whenever one of its files changes. Of a result with an error
	// only the Files count. Nil: there is nothing to read again.
	Load    func() (*configs.Loaded, error)
	Dir     string            // the data folder, which is there
	Version string            // of the program
	Log     *slog.Logger      // nil: none
	Logging func(configs.Log) // is told how to log, at the start and when that changes; may be nil
	Started func(Facts)       // is called once the network serves, and Run waits for it; may be nil

	Tokens upgrade.Redeemer       // of voice sockets that no player was sent a token for; may be nil
	OpusOK func(opus []byte) bool // see [voice.Config]; nil: frames are checked
}

// Facts describe a network that serves.
type Facts struct {
	Config *configs.Loaded
	Addr   *net.TCPAddr // where players join, and everything else
	TLS    bool         // there is a certificate
	Public string       // the base URL for clients; empty: as they joined
	RCON   net.Addr     // where tools give commands; nil: nowhere
}

// Network is a whole network, checked and put together, before anything listens.
type Network struct {
	opt   Options
	log   *slog.Logger
	since time.Time
	quit  chan quit // from /shutdown

	world       *world.Registry
	players     *players
	controller  *controller
	backchannel *backchannel
	voices      *voices
	builtin     *limbo.World
	certs       *cert.Certs
	lawful      atomic.Pointer[policy]
	parts       *parts // from assemble on

	reloading sync.Mutex // one reload at a time; guards these
	serving   bool
	now       *settings // in force
	files     []string  // of the configuration, and of a newer one that could not be put in force
	tried     string    // the stamp they had when they were read last
}

// New checks everything that can be checked without listening: it reads certificate, icon and texts here, so that
// nothing starts by halves. It notes probable mistakes in l.
func New(l *configs.Loaded, opt Options) (*Network, error) {
	n := newNetwork(l, opt)
	var err error
	if n.now, err = n.compile(l, nil); err != nil {
		return nil, err
	}
	return n, nil
}

func newNetwork(l *configs.Loaded, opt Options) *Network {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	n := &Network{opt: opt, log: opt.Log, since: time.Now(), quit: make(chan quit, 1), world: world.New()}
	n.certs = cert.New(filepath.Join(opt.Dir, "tls"), n.log.With("room", "tls"))
	n.world.Sights().Log = n.log.With("room", "sight")
	n.players = newPlayers(n.world)
	n.controller = &controller{n: n, log: n.log.With("room", "commands")}
	n.backchannel = newBackchannel(n, n.log.With("room", "commands"))
	n.voices = &voices{world: n.world}
	n.builtin = limbo.New(limbo.Config{Log: n.log.With("room", "limbo")})
	n.files, n.tried = l.Files, stamp(l.Files)
	return n
}

// Commands returns the commands that are in force, for a console.
func (n *Network) Commands() *commands.Commands { return n.policy().commands }

// World returns who is on the network and where they are. A caller that adds players has to remove them.
func (n *Network) World() *world.Registry { return n.world }

// Voice returns the voice gateway, once the network has started.
func (n *Network) Voice() *voice.Gateway { return n.parts.gateway }

// policy returns the policy in force.
func (n *Network) policy() *policy { return n.lawful.Load() }

// Run listens, serves until ctx ends or somebody gives the command to stop, and stops, within ten seconds. Its error is
// for the starter of the program: a [*store.LostError] where something could not be stored, a [*StuckError] where
// something did not end.
func (n *Network) Run(ctx context.Context) error {
	p, err := n.start(ctx)
	if p == nil {
		return err
	}
	failed := n.serve(ctx, p)
	return errors.Join(failed, inTime(func() error { return n.stop(p) }))
}

// inTime returns the result of stop, or a [*StuckError] when that takes too long.
func inTime(stop func() error) error {
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	late := time.NewTimer(stopWithin - 500*time.Millisecond)
	defer late.Stop()
	select {
	case err := <-stopped:
		return err
	case <-late.C:
		buf := make([]byte, 1<<20)
		return &StuckError{string(buf[:runtime.Stack(buf, true)])}
	}
}

// StuckError is the error of a network that did not stop in time. Parts of it are still running.
type StuckError struct {
	Stacks string // of everything that was running
}

// Error implements error.
func (e *StuckError) Error() string {
	return "still not stopped; leaving. What was running:\n" + e.Stacks
}

// start opens the port and the state, and puts the parts together. There are none when it fails, or when ctx ends
// first.
func (n *Network) start(ctx context.Context) (*parts, error) {
	at := n.now.conf.Listen
	ln, err := listen.Open(ctx, at)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: another program has that port; stop it or choose another with --listen", at)
	default:
		return nil, fmt.Errorf("cannot listen on %s: %w", at, err)
	}
	var remote net.Listener
	if at := n.now.conf.RCON.Listen(); at != "" {
		if remote, err = net.Listen("tcp", at); err != nil {
			ln.Close()
			return nil, fmt.Errorf("cannot listen for RCON (rcon.address): %w", err)
		}
	}
	on, state, err := openState(ctx, &n.now.conf.State, n.opt.Dir, n.log.With("room", "store"))
	if err != nil {
		ln.Close()
		if remote != nil {
			remote.Close()
		}
		if ctx.Err() != nil { // nothing has begun
			err = nil
		}
		return nil, err
	}
	return n.assemble(ln, remote, on, state), nil
}
