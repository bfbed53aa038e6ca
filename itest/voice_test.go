package itest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/offer"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/client"
	"github.com/earshot-mc/earshot/voice/opus"
	voicewire "github.com/earshot-mc/earshot/voice/wire"
)

// TestVoice is first light: real players on a real backend, whose voice sockets hear a tone as loud as their distance
// says.
func TestVoice(t *testing.T) {
	versions := peer.Core
	if long() {
		versions = peer.Versions
	}
	modes := []string{peer.Legacy, peer.Modern, peer.None, peer.BungeeGuard}
	for i, v := range versions {
		mode := modes[i%len(modes)]
		if v.Protocol < 393 && mode == peer.Modern {
			mode = peer.Legacy
		}
		alongside(t, v.Name+" "+mode, func(t *testing.T) { hearEachOther(t, v, mode) })
	}
}

const secret = "correct horse battery staple"

func hearEachOther(t *testing.T, v peer.Version, mode string, prepare ...func(*program)) {
	server := peer.Backend(t, v.Name, mode, secret)
	p := newProgram(t, fmt.Sprintf("online: false\ntry: [game]\nservers: {game: {address: %q, forwarding: %s, secret: %q}}\n", server.Addr, mode, secret))
	for _, f := range prepare {
		f(p)
	}
	p.run()
	bots := peer.NewBots(t, v.Name)
	ann, bob := newTalker(t, p, bots.Join(p.addr, "Ann"), server), newTalker(t, p, bots.Join(p.addr, "Bob"), server)
	ann.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1, Status: 1, Pose: 1}})
	bob.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1, Status: 1}})
	if ann.c.Caps() != (caps.Set{Audio: 2, Spatial: 1, Status: 1, Pose: 1}) {
		t.Fatalf("negotiated %+v", ann.c.Caps())
	}

	at := func(name string, x, y, z float64) { server.Teleport(name, x, y, z, 0, 0); server.At(name, x, y, z) }
	at("Ann", 0, 70, 0)
	for _, d := range []struct{ dx, dz float64 }{{5, 0}, {-20, 0}, {0, 20}, {30, -30}, {0, -47}} {
		at("Bob", d.dx, 70, d.dz)
		want := max(0, 1-math.Hypot(d.dx, d.dz)/48)
		bob.hears(ann, math.Round(want*255)/255, -d.dx, -d.dz)
	}
	at("Bob", 0, 70, 49)
	bob.hearsNothingFrom(ann, "past the range")
	at("Bob", 3, 70, 4)
	bob.hears(ann, math.Round(255*(1-5.0/48))/255, -3, -4)

	// A v1 client in the same room, heard and hearing.
	bob.c.Close()
	bob.connect(client.Config{})
	if bob.c.Caps() != (caps.Set{}) {
		t.Fatalf("negotiated %+v", bob.c.Caps())
	}
	bob.hears(ann, math.Round(255*(1-5.0/48))/255, -3, -4)
	ann.hears(bob, math.Round(255*(1-5.0/48))/255, 3, 4)

	// Players who may not be heard.
	server.GameMode("Ann", 3)
	bob.hearsNothingFrom(ann, "a spectator")
	ann.hears(bob, math.Round(255*(1-5.0/48))/255, 3, 4)
	server.GameMode("Ann", 0)
	bob.hears(ann, math.Round(255*(1-5.0/48))/255, -3, -4)
	server.Hide("Bob", "Ann")
	bob.hearsNothingFrom(ann, "vanished")
	server.Show("Bob", "Ann")
	bob.hears(ann, math.Round(255*(1-5.0/48))/255, -3, -4)
	server.Respawn("Ann", "minecraft:the_nether", 0, 0, 70, 0)
	bob.hearsNothingFrom(ann, "in another world")
	server.Respawn("Ann", "minecraft:overworld", 0, 0, 70, 0)
	bob.hears(ann, math.Round(255*(1-5.0/48))/255, -3, -4)

	// A token works once, and is its player's own.
	for name, cfg := range map[string]client.Config{
		"used":           {Token: ann.offer.Token, Player: ann.id},
		"somebody's own": {Token: bob.invited().Token, Player: ann.id},
		"made up":        {Token: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", Player: ann.id},
	} {
		cfg.URL = "http://" + p.addr
		_, err := client.Dial(t.Context(), cfg)
		var refused *client.Refused
		if !errors.As(err, &refused) || refused.Status != 401 {
			t.Errorf("a token that is %s: %v", name, err)
		}
	}

	// What a backend or a player sends on our channels goes nowhere.
	forged := offer.AppendHandshake(nil, "http://127.0.0.1:1", "stolen", time.Minute)
	server.Payload("Ann", offer.Handshake, forged)
	ann.bot.Payload(offer.Handshake, forged)
	testkit.Until(t, "both forgeries to be counted", func() bool {
		return p.metric("earshot_forged_total") == 1 && p.metric("earshot_voice_offers_ignored_total") == 1
	})
	if n := server.Count("payload", "Ann"); n != 0 {
		for range n {
			if e := server.Await("payload", "Ann", nil); e.Channel == offer.Handshake || e.Channel == offer.Hello {
				t.Errorf("the backend got %s", e.Channel)
			}
		}
	}
	if o := ann.invited(); o.Token == "stolen" { // the next offer is ours: the forged one would have come first
		t.Error("a backend's forged offer reached the client")
	}

	// Leaving ends the socket, with its own code.
	bob.bot.Quit()
	var closed *client.Closed
	if err := bob.c.Wait(); !errors.As(err, &closed) || closed.Code != 4003 {
		t.Errorf("the socket of a player who left ended with %v", err)
	}
	if n := p.metric("earshot_undecoded_total"); n != 0 {
		t.Errorf("%v packets were not understood", n)
	}
	p.stop()
	if err := ann.c.Wait(); !errors.As(err, &closed) || closed.Code != 1001 {
		t.Errorf("at shutdown the socket ended with %v", err)
	}
}

// TestVoiceInTheBuiltInWorld needs no server but the program.
func TestVoiceInTheBuiltInWorld(t *testing.T) {
	for _, version := range []string{"1.8.8", "1.21.4", "26.3"} {
		alongside(t, version, func(t *testing.T) {
			p := start(t, "", "--offline")
			bots := peer.NewBots(t, version)
			ann, bob := newTalker(t, p, bots.Join(p.addr, "Ann"), nil), newTalker(t, p, bots.Join(p.addr, "Bob"), nil)
			// A person who has only just started it is told how to go on.
			ann.bot.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, "earshot.yml") })
			ann.connect(client.Config{Ask: caps.Set{Audio: 2}})
			bob.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1, Status: 1, Pose: 1}, Subprotocol: true})
			to := bob.bot.Goto(20, 8)
			dx, dz := 8-to.X, 8-to.Z
			testkit.Until(t, "the pose to be where the bot is", func() bool {
				pose := bob.c.Pose()
				return pose != nil && math.Abs(pose.X-to.X) < .01 && math.Abs(pose.Z-to.Z) < .01
			})
			bob.hears(ann, 1-math.Hypot(dx, dz)/48, dx, dz)
			ann.hears(bob, 1-math.Hypot(dx, dz)/48, -dx, -dz)
		})
	}
}

// talker is a player and their voice.
type talker struct {
	t     *testing.T
	p     *program
	bot   *peer.Bot
	id    uuid.UUID
	offer offer.Offer
	c     *client.Client

	mu    sync.Mutex
	heard []sound
}

// sound is one decoded frame.
type sound struct {
	kind      voicewire.Kind
	from      uuid.UUID
	origin    uuid.UUID // of what comes from a speaker: whose microphone
	gain      float64
	dx, dz    float64
	hz, level float64
	concealed bool
	at        time.Time
}

func newTalker(t *testing.T, p *program, bot *peer.Bot, server *peer.Server) *talker {
	s := &talker{t: t, p: p, bot: bot, id: offlineID(bot.Name)}
	if server != nil {
		if got := server.Joined(bot.Name).UUID; got != s.id.String() {
			t.Fatalf("%s is %s on the backend, %s is right", bot.Name, got, s.id)
		}
	}
	return s
}

// invited asks for an offer over the game connection.
func (s *talker) invited() offer.Offer {
	s.t.Helper()
	s.bot.Skip("payload")
	s.bot.Payload(offer.Hello, offer.AppendHello(nil))
	e := s.bot.Await("payload", func(e peer.Event) bool { return e.Channel == offer.Handshake })
	o, err := offer.ParseHandshake(e.Data)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

func (s *talker) connect(cfg client.Config) {
	s.t.Helper()
	s.offer = s.invited()
	s.dial(s.offer.URL, s.offer.Token, cfg)
}

// dial connects with a token, however it was got.
func (s *talker) dial(url, token string, cfg client.Config) {
	s.t.Helper()
	cfg.URL, cfg.Token, cfg.Player = url, token, s.id
	cfg.Sound = func(x client.Sound) {
		h := sound{kind: x.Kind, from: x.Source, origin: x.Origin, gain: x.Gain, dx: float64(x.DX), dz: float64(x.DZ), concealed: x.Concealed, at: time.Now()}
		h.hz, h.level = tone(x.PCM)
		s.mu.Lock()
		s.heard = append(s.heard, h)
		s.mu.Unlock()
	}
	c, err := client.Dial(s.t.Context(), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.c = c
	s.t.Cleanup(c.Close)
}

// say speaks a 440 Hz tone for some frames of 20 ms, at half of full scale.
func (s *talker) say(ctx context.Context, frames int) {
	s.t.Helper()
	if err := s.c.Begin(); err != nil {
		s.t.Fatal(err)
	}
	pcm, n := make([]int16, opus.FrameSize), 0
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range frames {
		for i := range pcm {
			pcm[i] = int16(16384 * math.Sin(2*math.Pi*440*float64(n)/48000))
			n++
		}
		if err := s.c.Speak(pcm); err != nil {
			s.t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *talker) take() []sound {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.heard
	s.heard = nil
	return h
}

// hears lets from speak until s has heard half a second of it as it should be; a new position takes a moment to arrive,
// so the first frames may be others.
func (s *talker) hears(from *talker, gain, dx, dz float64) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), peer.Patience)
	defer cancel()
	var last sound
	good := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		from.say(ctx, 1<<20)
	}()
	defer func() { cancel(); <-done }()
	s.take()
	for good < 25 {
		select {
		case <-ctx.Done():
			s.t.Fatalf("%s does not hear %s at gain %.3f from %.2f %.2f, but %+v", s.bot.Name, from.bot.Name, gain, dx, dz, last)
		case <-time.After(20 * time.Millisecond):
		}
		for _, h := range s.take() {
			if h.from != from.id {
				continue
			}
			last = h
			// Opus needs a few frames to tune in to a tone.
			if math.Abs(h.gain-gain) < .005 && math.Abs(h.dx-dx) < .02 && math.Abs(h.dz-dz) < .02 && math.Abs(h.hz-440) < 5 && h.level > .3 && h.level < .4 {
				good++
			}
		}
	}
}

// hearsNothingFrom lets from speak until half a second has passed in which s heard nothing.
func (s *talker) hearsNothingFrom(from *talker, why string) {
	s.t.Helper()
	for end := time.Now().Add(peer.Patience); time.Now().Before(end); {
		s.take()
		in := s.p.metric("earshot_voice_frames_in_total")
		from.say(s.t.Context(), 25)
		testkit.Until(s.t, "the frames to arrive", func() bool { return s.p.metric("earshot_voice_frames_in_total") >= in+25 })
		if len(s.take()) == 0 {
			return
		}
	}
	s.t.Fatalf("%s still hears %s, who is %s", s.bot.Name, from.bot.Name, why)
}

// tone measures a frame: its frequency by zero crossings, its level as RMS of full scale (a sine of half scale has
// 0.354).
func tone(pcm []int16) (hz, level float64) {
	first, last, crossings, sum := -1.0, 0.0, 0, 0.0
	for i, x := range pcm {
		sum += float64(x) * float64(x)
		if i > 0 && pcm[i-1] < 0 && x >= 0 {
			at := float64(i) - float64(x)/float64(int(x)-int(pcm[i-1]))
			if first < 0 {
				first = at
			} else {
				crossings++
			}
			last = at
		}
	}
	if crossings > 0 {
		hz = 48000 * float64(crossings) / (last - first)
	}
	return hz, math.Sqrt(sum/float64(len(pcm))) / 32768
}
