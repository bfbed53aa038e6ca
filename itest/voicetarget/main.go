// Voicetarget is the real voice gateway on a world that is made up, for load generators: everybody who connects is a
// player who stands with its group, out of every other group's earshot. Tokens can be guessed and frames need not be
// Opus, so that this must never be part of a release; it is a program of its own for that reason.
//
//	voicetarget -listen 127.0.0.1:PORT [-tls] [-all] [-cpuprofile FILE]
//
// It prints its address and serves ws://ADDRESS/voice?token=G.I&uuid=U for client I of group G, U being
// %08x-0000-4000-8000-%012x of G and I. With -all everything is on that can cost: groups, permissions, regions, tiers,
// mutes, named speakers and declared voices, by which the members of the groups 2, 6, 10 and so on hear each other.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/handshake/upgrade"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/speaker"
	"github.com/earshot-mc/earshot/voice/talk"
)

func main() {
	log.SetFlags(0)
	addr := flag.String("listen", "127.0.0.1:0", "address to listen on")
	secure := flag.Bool("tls", false, "speak wss, with a certificate made up at the start")
	all := flag.Bool("all", false, "have everything on that voice can do")
	profile := flag.String("cpuprofile", "", "file for a CPU profile")
	flag.Parse()
	if err := run(*addr, *secure, *all, *profile); err != nil {
		log.Fatal(err)
	}
}

func run(addr string, secure, all bool, profile string) error {
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	reg := world.New()
	config := voice.Config{
		Policy: route.Policy{Gain: gain.Rules{Default: 48}},
		Log:    slog.New(slog.DiscardHandler),
		OpusOK: func([]byte) bool { return true },
	}
	if all {
		everything(&config)
	}
	gateway := voice.New(config, reg)
	sweep := socket.NewSweeper()
	defer sweep.Close()
	crowd := &crowd{reg: reg, place: reg.Place("bench", "bench"), groups: map[int][]*world.Player{}}
	if all {
		crowd.gateway = gateway
		if err := others(gateway); err != nil {
			return err
		}
	}
	handler := upgrade.New(upgrade.Config{
		Tokens:  crowd,
		Online:  func(id uuid.UUID) bool { return reg.Get(id) != nil },
		Offered: gateway.Offers,
		Sweeper: sweep,
		Accept:  func(_ context.Context, s *socket.Socket, id uuid.UUID, c caps.Set) { gateway.Accept(s, id, c) },
		Count:   func(string, netip.Addr) {},
	})
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	if secure {
		config, err := certificate()
		if err != nil {
			return err
		}
		ln = &tlsListener{ln, config}
	}
	mux := http.NewServeMux()
	mux.Handle(upgrade.Path, handler)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	select {
	case <-ctx.Done():
	case err := <-served:
		return err
	}
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	server.Close() // sockets are hijacked, and the gateway's
	if err := gateway.Close(end); err != nil {
		return err
	}
	handler.Stop()
	handler.Wait()
	for drop := range gateway.Stats().Lost {
		if n := gateway.Stats().Lost[drop]; n > 0 && drop != "closed" {
			log.Printf("voicetarget: %d frames lost: %s", n, drop)
		}
	}
	return nil
}

// everything switches on what a server can have.
func everything(c *voice.Config) {
	c.Permissions = func(uuid.UUID) voice.Bits { return voice.Open }
	c.Notice = func(uuid.UUID, voice.Reason) {}
	c.Groups = group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}, Passwords: true, Persistent: true}
	c.Policy.Gain.Whisper, c.Policy.Gain.Shout = 0.5, 2
	c.Policy.Gain.Worlds = map[string]float64{"nether": 16}
	for i := range 8 { // where nobody is, so that the distances are those of the plain case
		at := float64(1000*i + 500)
		c.Policy.Gain.Regions = append(c.Policy.Gain.Regions, gain.Region{
			World: "bench", Min: [3]float64{at, 0, 0}, Max: [3]float64{at + 10, 256, 10}, Range: 16,
		})
	}
}

// others are what stands at a gateway that has everything: speakers that say nothing, and mutes of players who are away.
func others(g *voice.Gateway) error {
	for i := range 8 {
		spec := speaker.Spec{Name: fmt.Sprint("Speaker ", i), Backend: "bench", World: "bench", X: float64(1000 * i), Volume: 1, Range: 16}
		if _, err := g.Speakers().Open(spec); err != nil {
			return err
		}
	}
	var c voice.Changes
	for i := range 50 {
		c.Mutes = append(c.Mutes, mute.Record{Player: uuid.UUID{15: byte(i + 1)}, Until: time.Now().Add(time.Hour)})
	}
	return g.Apply(c)
}

// crowd lets in everybody who knows how the players are called, and makes them up.
type crowd struct {
	reg     *world.Registry
	place   *world.Place
	gateway *voice.Gateway // that is told of declared voices; nil: there are none

	mu     sync.Mutex
	groups map[int][]*world.Player
}

// Redeem takes the token G.I with the UUID made of G and I.
func (c *crowd) Redeem(token string, id uuid.UUID) bool {
	var g, i int
	if _, err := fmt.Sscanf(token, "%d.%d", &g, &i); err != nil || fmt.Sprintf("%08x-0000-4000-8000-%012x", g, i) != id.String() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reg.Get(id) != nil {
		return true
	}
	p := c.reg.Add(id, "p"+token)
	for _, o := range c.groups[g] {
		o.Show(id)
		p.Show(o.ID)
	}
	c.groups[g] = append(c.groups[g], p)
	p.SetFacts(world.Facts{Place: c.place})
	p.SetPose(&world.Pose{X: float64(1000 * g), Y: 64, Z: float64(i % 20), Place: c.place})
	if c.gateway != nil && g%4 == 2 {
		return c.gateway.Declare(func(b *relation.Book) error { return b.AddMembers(fmt.Sprint("bench", g), id) }) == nil
	}
	return true
}

// tlsListener speaks TLS on connections that a socket can take over.
type tlsListener struct {
	net.Listener
	config *tls.Config
}

func (l *tlsListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(socket.Buffered(c), l.config), nil
}

// certificate is one that nobody trusts.
func certificate() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, DynamicRecordSizingDisabled: true}, nil
}
