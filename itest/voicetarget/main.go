// Voicetarget is a whole Earshot with an invented world, for load generators: everybody who connects is a player who
// stands with their group, out of every other group's earshot. Tokens can be guessed and frames need not be Opus, so
// this must never be part of a release. That is why it is a program of its own.
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
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/big"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/network"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/speaker"
)

// worldName is the world where everybody stands, as settings write it in full.
const worldName = "minecraft:bench"

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

	dir, err := os.MkdirTemp("", "voicetarget")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	environ := []string{
		"LISTEN=" + addr, "ONLINE=false", "VOICE_RANGE=48", "LIMITS_EXEMPT=[0.0.0.0/0, '::/0']", "LOG_LEVEL=error",
	}
	if secure {
		if err := certificate(dir); err != nil {
			return err
		}
		environ = append(environ, "TLS_CERTIFICATE="+filepath.Join(dir, "cert.pem"), "TLS_KEY="+filepath.Join(dir, "key.pem"))
	}
	if all {
		environ = append(environ, everything()...)
	} else {
		environ = append(environ, "VOICE_GROUPS_ENABLED=false", "VOICE_WHISPER=0", "VOICE_SHOUT=0")
	}
	for i, e := range environ {
		environ[i] = configs.Prefix + e
	}
	conf, err := configs.Load("", dir, environ)
	if err != nil {
		return err
	}
	crowd := &crowd{groups: map[int][]*world.Player{}}
	var failed error
	var n *network.Network
	n, err = network.New(conf, network.Options{
		Dir: dir, Tokens: crowd, OpusOK: func([]byte) bool { return true },
		Started: func(is network.Facts) {
			if all {
				crowd.gateway = n.Voice()
				failed = others(n.Voice())
			}
			if failed != nil {
				stop()
				return
			}
			fmt.Println(is.Addr)
		},
	})
	if err != nil {
		return err
	}
	crowd.reg, crowd.place = n.World(), n.World().Place("bench", worldName)
	if err := errors.Join(n.Run(ctx), failed); err != nil {
		return err
	}
	for drop, lost := range n.Voice().Stats().Lost {
		if lost > 0 && drop != "closed" {
			log.Printf("voicetarget: %d frames lost: %s", lost, drop)
		}
	}
	return nil
}

// everything returns the settings with which a server has all that it can have.
func everything() []string {
	var regions []string
	for i := range 8 { // where nobody is, so that the distances are those of the plain case
		at := 1000*i + 500
		regions = append(regions, fmt.Sprintf("r%d: {world: bench, from: [%d, 0, 0], to: [%d, 256, 10], range: 16}", i, at, at+10))
	}
	return []string{
		"VOICE_GROUPS_ENABLED=true", "VOICE_WHISPER=0.5", "VOICE_SHOUT=2", "VOICE_WORLDS={nether: 16}",
		"VOICE_REGIONS={" + strings.Join(regions, ", ") + "}",
	}
}

// others fills a gateway that has everything: silent speakers, and mutes of players who are away.
func others(g *voice.Gateway) error {
	for i := range 8 {
		spec := speaker.Spec{Name: fmt.Sprint("Speaker ", i), Backend: "bench", World: worldName, X: float64(1000 * i), Volume: 1, Range: 16}
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

// crowd lets in everybody who knows the players' names, and makes them up.
type crowd struct {
	reg     *world.Registry
	place   *world.Place
	gateway *voice.Gateway // for declared voices; nil: there are none

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
	p.SetFacts(world.Facts{Place: c.place}) // before anybody is shown: another place shows nobody yet
	for _, o := range c.groups[g] {
		o.Show(id)
		p.Show(o.ID)
	}
	c.groups[g] = append(c.groups[g], p)
	p.SetPose(&world.Pose{X: float64(1000 * g), Y: 64, Z: float64(i % 20), Place: c.place})
	if c.gateway != nil && g%4 == 2 {
		return c.gateway.Declare(func(b *relation.Book) error { return b.AddMembers(fmt.Sprint("bench", g), id) }) == nil
	}
	return true
}

// certificate writes an untrusted certificate, and its key.
func certificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}
