//go:build cgo && nolibopusfile

package voice

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/caps"
	vc "github.com/earshot-mc/earshot/voice/client"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/line"
	codec "github.com/earshot-mc/earshot/voice/opus"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/speaker"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/talker"
	"github.com/earshot-mc/earshot/voice/transcode"
	"github.com/earshot-mc/earshot/voice/wire"
)

// More sets of capabilities.
var (
	board1  = caps.Set{Audio: 2, Status: 1, Spatial: 1, Soundboard: 1}
	board2  = caps.Set{Audio: 2, Status: 1, Spatial: 1, Soundboard: 2}
	named   = caps.Set{Audio: 2, Status: 1, Spatial: 1, Speakers: 1}
	allHere = caps.Set{Audio: 2, Status: 1, Spatial: 1, Speakers: 1, Soundboard: 2, Pose: 1}
)

// openToAll returns a site where everybody sees everybody.
func openToAll(t *testing.T, cfg Config) *site {
	s := open(t, cfg)
	s.reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
	return s
}

// bot is the Go voice client, with what it has heard.
type bot struct {
	*vc.Client
	s      *site
	player *world.Player

	mu     sync.Mutex
	sounds []vc.Sound
	came   []time.Time
}

// bot connects a player's voice.
func (s *site) bot(p *world.Player, ask caps.Set) *bot {
	s.t.Helper()
	b := &bot{s: s, player: p}
	c, err := vc.Dial(context.Background(), vc.Config{
		URL: "ws://" + s.addr, Token: "t", Player: p.ID, Ask: ask,
		Sound: func(x vc.Sound) {
			x.PCM = slices.Clone(x.PCM)
			b.mu.Lock()
			b.sounds, b.came = append(b.sounds, x), append(b.came, time.Now())
			b.mu.Unlock()
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	b.Client = c
	s.t.Cleanup(c.Close)
	if c.Caps() != ask {
		s.t.Fatalf("asked for %+v, got %+v", ask, c.Caps())
	}
	return b
}

// heard returns what has come since the last call and passes.
func (b *bot) heard(pass func(vc.Sound) bool) (all []vc.Sound) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.sounds {
		if pass(x) {
			all = append(all, x)
		}
	}
	b.sounds, b.came = nil, nil
	return all
}

// until waits for n sounds that pass and returns them.
func (b *bot) until(n int, what string, pass func(vc.Sound) bool) (all []vc.Sound) {
	b.s.t.Helper()
	b.s.eventually(what, func() bool { all = append(all, b.heard(pass)...); return len(all) >= n })
	return all
}

// meet waits until everybody hears from, and forgets what that took.
func (s *site) meet(from *bot, all ...*bot) {
	s.t.Helper()
	for _, to := range all {
		s.eventually(to.player.Name+" to hear "+from.player.Name, func() bool {
			if err := from.SendOpus(opus); err != nil {
				s.t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // a voice's own pace
			return len(to.heard(func(x vc.Sound) bool { return x.Source == from.player.ID })) > 0
		})
	}
	if err := from.Begin(); err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	for _, to := range all {
		to.heard(nobody)
	}
}

func nobody(vc.Sound) bool { return false }

func ofKind(k wire.Kind) func(vc.Sound) bool {
	return func(x vc.Sound) bool { return x.Kind == k }
}

// packets returns n frames of a 440 Hz tone.
func packets(t testing.TB, n int) (all [][]byte) {
	t.Helper()
	enc, err := codec.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		p, err := enc.Encode(tone(i), nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func tone(i int) []int16 {
	pcm := make([]int16, codec.FrameSize)
	for k := range pcm {
		pcm[k] = int16(8192 * math.Sin(2*math.Pi*440*float64(i*codec.FrameSize+k)/codec.SampleRate))
	}
	return pcm
}

// loud returns the amplitude of 440 Hz, 1 being full scale.
func loud(pcm []int16) float64 {
	var re, im float64
	for k, v := range pcm {
		s, c := math.Sincos(2 * math.Pi * 440 * float64(k) / codec.SampleRate)
		re += float64(v) * c
		im += float64(v) * s
	}
	return 2 * math.Hypot(re, im) / float64(len(pcm)) / 32768
}

// A clip goes the way of the voice beside it, as streams of its own, never whispered, to those who negotiated clips.
func TestClipsAreHeard(t *testing.T) {
	s := openToAll(t, Config{Policy: route.Policy{Gain: gain.Rules{Default: 48, Tiers: [talk.Tiers]float64{talk.Whisper: 0.5, talk.Shout: 2}}}})
	for _, ask := range []caps.Set{board1, board2} {
		anna, ben := s.bot(s.player("anna", 0), ask), s.bot(s.player("ben", 0), board2)
		s.meet(anna, ben)
		s.move(ben.player, 30, 0)
		if got := ben.heard(nobody); got != nil {
			t.Fatal(got)
		}
		var clips []*vc.Clip
		for range map[uint8]int{1: 1, 2: 3}[ask.Soundboard] {
			k, err := anna.StartClip()
			if err != nil {
				t.Fatal(err)
			}
			clips = append(clips, k)
		}
		frames := packets(t, 20)
		for _, p := range frames {
			if err := anna.SendOpus(p); err != nil {
				t.Fatal(err)
			}
			for _, k := range clips {
				if err := k.SendOpus(p); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
		want := len(frames) * (1 + len(clips))
		all := ben.until(want, "voice and clips", func(vc.Sound) bool { return true })
		streams := map[int64]int64{} // the next sequence
		kinds := map[wire.Kind]int{}
		for _, x := range all {
			if x.Seq != streams[x.Stream] || x.Source != anna.player.ID || math.Abs(x.Gain*255-96) > 1 || x.DX != -30 || x.DZ != 0 {
				t.Fatalf("%+v, expected sequence %d", x, streams[x.Stream])
			}
			streams[x.Stream]++
			kinds[x.Kind]++
		}
		if len(streams) != 1+len(clips) || kinds[wire.KindPlayer] != 20 || kinds[wire.KindBoard] != 20*len(clips) {
			t.Errorf("version %d: %d streams, kinds %v", ask.Soundboard, len(streams), kinds)
		}
		if l := loud(all[len(all)-1].PCM); math.Abs(l-0.25) > 0.03 {
			t.Errorf("level %.3f", l)
		}

		anna.SetTier(talk.Whisper)
		s.eventually("the whisper", func() bool {
			anna.SendOpus(opus)
			clips[0].SendOpus(opus)
			time.Sleep(30 * time.Millisecond)
			got := ben.heard(func(vc.Sound) bool { return true })
			return len(got) == 1 && got[0].Kind == wire.KindBoard && math.Abs(got[0].Gain*255-96) <= 1
		})
		if n := ben.Counters(); n.Invalid != 0 || n.Gaps != 0 || n.Stale != 0 {
			t.Errorf("%+v", n)
		}
		anna.Close()
		ben.Close()
	}
}

// A clip is heard from where its player is by then.
func TestClipsWalkAlong(t *testing.T) {
	s := openToAll(t, Config{})
	anna, ben := s.bot(s.player("anna", 0), board2), s.bot(s.player("ben", 0), board2)
	s.meet(anna, ben)
	clip, err := anna.StartClip()
	if err != nil {
		t.Fatal(err)
	}
	var stream int64
	for i, x := range []float64{0, 12, 24, 36} {
		s.move(anna.player, x, 0)
		if err := clip.SendOpus(opus); err != nil {
			t.Fatal(err)
		}
		got := ben.until(1, "the clip", ofKind(wire.KindBoard))[0]
		if want := gain.Level(1, x*x, 48); math.Round(got.Gain*255) != float64(want) || got.DX != float32(x) || got.Seq != int64(i) || stream != 0 && got.Stream != stream {
			t.Errorf("from %v blocks: %+v, want gain %d", x, got, want)
		}
		stream = got.Stream
	}
}

// Switched off, the soundboard is negotiated all the same and silent; so it is for who has no permission. The
// microphone is neither's business.
func TestSoundboardSwitchAndPermission(t *testing.T) {
	type notice struct {
		player uuid.UUID
		why    Reason
	}
	notices := make(chan notice, 100)
	var mu sync.Mutex
	denied := map[uuid.UUID]bool{}
	s := openToAll(t, Config{
		SoundboardOff: true,
		Permissions: func(id uuid.UUID) Bits {
			mu.Lock()
			defer mu.Unlock()
			if denied[id] {
				return Open &^ Soundboard
			}
			return Open
		},
		Notice: func(id uuid.UUID, why Reason) { notices <- notice{id, why} },
	})
	anna, ben := s.bot(s.player("anna", 0), board2), s.bot(s.player("ben", 0), board2)
	s.meet(anna, ben)
	clip, err := anna.StartClip()
	if err != nil {
		t.Fatal(err)
	}
	var begun time.Time // when what the notices are about was sent first
	// play sends five frames of each until Ben has heard five of Anna's voice: a machine with more to do may be too
	// late with some of what is sent, which is then dropped. It returns how many frames of the clip were sent and heard
	// meanwhile.
	play := func() (sent uint64, clips int) {
		t.Helper()
		for voices, deadline := 0, time.Now().Add(4*patience); voices < 5; {
			if time.Now().After(deadline) {
				t.Fatalf("only %d frames of the voice are heard", voices)
			}
			before := s.gw.Stats().Frames
			for range 5 {
				anna.SendOpus(opus)
				clip.SendOpus(opus)
			}
			sent += 5
			s.count("frames", before+10, func(s Stats) uint64 { return s.Frames })
			for again := time.Now().Add(time.Second); voices < 5 && time.Now().Before(again); time.Sleep(2 * time.Millisecond) {
				for _, x := range ben.heard(func(vc.Sound) bool { return true }) {
					if x.Kind == wire.KindBoard {
						clips++
					} else {
						voices++
					}
				}
			}
		}
		return sent, clips
	}
	// said expects a notice, and no other, however long it took: the same again is told after talker.NoticeEvery only.
	var last time.Time
	said := func(want ...Reason) {
		t.Helper()
		for _, w := range want {
			select {
			case n := <-notices:
				if n.player != anna.player.ID || n.why != w {
					t.Errorf("told %v %v, want %v", n.player, n.why, w)
				}
			case <-time.After(patience):
				t.Fatalf("nobody is told of %v", w)
			}
			last = begun
		}
		if len(notices) > 0 && time.Since(last) < talker.NoticeEvery {
			t.Errorf("told again: %v", <-notices)
		}
		for len(notices) > 0 { // it took so long
			<-notices
		}
	}
	begun = time.Now()
	off, clips := play()
	if clips != 0 {
		t.Errorf("off: %d clips", clips)
	}
	more, _ := play()
	said(SoundboardOff)
	s.count("frames dropped", off+more, func(s Stats) uint64 { return s.Dropped["clips_off"] })
	if err := s.gw.SetSoundboard(true); err != nil {
		t.Fatal(err)
	}
	heard := func(what string) {
		t.Helper()
		for deadline := time.Now().Add(4 * patience); ; {
			if _, clips := play(); clips > 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: no clips", what)
			}
		}
	}
	heard("on")
	said()
	may := func(yes bool) {
		t.Helper()
		mu.Lock()
		denied[anna.player.ID] = !yes
		mu.Unlock()
		// An order makes a turn, which asks for the permissions.
		if _, err := s.gw.Why(anna.player.ID, ben.player.ID); err != nil {
			t.Fatal(err)
		}
	}
	may(false)
	begun = time.Now()
	refused, clips := play()
	if clips > 5 { // what was on the way
		t.Errorf("refused: %d clips", clips)
	}
	said(SoundboardRefused)
	s.count("frames refused", refused, func(s Stats) uint64 { return s.Dropped["clips_refused"] })
	may(true)
	heard("allowed again")
	said()
}

var radio = speaker.Spec{Name: "Radio", Backend: "survival", World: "minecraft:overworld", X: 3, Y: 64, Z: 4, Volume: 1, Range: 10}

func (s *site) channel(spec speaker.Spec) *speaker.Channel {
	s.t.Helper()
	c, err := s.gw.Speakers().Open(spec)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// endless is a tone without an end.
type endless struct{ at int }

func (e *endless) Read(pcm []int16) (int, error) {
	n := copy(pcm, tone(e.at))
	e.at++
	return n, nil
}

func encoder(t testing.TB) *codec.Encoder {
	t.Helper()
	e, err := codec.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Sound that is made here is heard from its place, by those who are near, allowed and not deafened, under its name.
func TestSpeakerIsHeard(t *testing.T) {
	s := openToAll(t, Config{})
	ben := s.bot(s.player("ben", 0), named)
	cleo := s.bot(s.player("cleo", 20), named)
	dora := s.bot(s.player("dora", 0), named)
	spec := radio
	spec.Allow = []uuid.UUID{ben.player.ID, cleo.player.ID}
	c := s.channel(spec)
	in, err := c.PlayPCM(&endless{}, encoder(t))
	if err != nil {
		t.Fatal(err)
	}
	all := ben.until(50, "a second of the radio", ofKind(wire.KindChannel))
	for i, x := range all {
		if x.Source != c.ID() || x.Origin != uuid.Nil || x.DX != 3 || x.DZ != 4 || math.Abs(x.Gain*255-128) > 1 ||
			x.Stream != all[0].Stream || x.Seq != all[0].Seq+int64(i) {
			t.Fatalf("sound %d: %+v", i, x)
		}
	}
	if l := loud(all[49].PCM); math.Abs(l-0.25) > 0.03 {
		t.Errorf("level %.3f", l)
	}
	s.eventually("the names", func() bool { return ben.Speakers() != nil && cleo.Speakers() != nil && dora.Speakers() != nil })
	// Range hides no name; the list of who is allowed does.
	for b, want := range map[*bot]int{ben: 1, cleo: 1, dora: 0} {
		if got := b.Speakers().List; len(got) != want || want == 1 && got[0] != (talk.Speaker{ID: c.ID(), Name: "Radio"}) {
			t.Errorf("%s is shown %+v", b.player.Name, got)
		}
	}
	if n := len(cleo.heard(ofKind(wire.KindChannel))) + len(dora.heard(ofKind(wire.KindChannel))); n != 0 {
		t.Errorf("%d frames out of range or not allowed", n)
	}

	// Every way out of it and back is a new stream.
	streams := map[int64]bool{all[0].Stream: true}
	again := func(what string, out, back func()) {
		t.Helper()
		out()
		s.eventually(what+" to be silent", func() bool {
			ben.heard(nobody)
			time.Sleep(100 * time.Millisecond)
			return len(ben.heard(ofKind(wire.KindChannel))) == 0
		})
		back()
		x := ben.until(2, what+" and back", ofKind(wire.KindChannel))
		if streams[x[0].Stream] || x[1].Stream != x[0].Stream {
			t.Errorf("%s and back: stream %d after %v", what, x[0].Stream, streams)
		}
		streams[x[0].Stream] = true
	}
	again("out of range", func() { s.move(ben.player, 100, 0) }, func() { s.move(ben.player, 0, 0) })
	nether := s.reg.Place("survival", "nether")
	again("another world", func() { ben.player.SetPose(&world.Pose{X: 3, Y: 64, Z: 4, Place: nether}) }, func() { s.move(ben.player, 0, 0) })
	change := func(allow ...uuid.UUID) {
		spec.Allow = allow
		if err := c.Change(spec); err != nil {
			t.Fatal(err)
		}
	}
	again("forbidden", func() { change(cleo.player.ID) }, func() { change(ben.player.ID) })
	again("deafened", func() { ben.SetDeafened(true) }, func() { time.Sleep(time.Second); ben.SetDeafened(false) })
	again("stopped", in.Stop, func() {
		if _, err := c.PlayPCM(&endless{}, encoder(t)); err != nil {
			t.Fatal(err)
		}
	})

	c.Close()
	s.eventually("the name to go", func() bool { return len(ben.Speakers().List) == 0 })
	if n := ben.Counters(); n.Invalid != 0 || n.Gaps != 0 || n.DecodeErrors != 0 || n.BadText != 0 {
		t.Errorf("%+v", n)
	}
}

// A new connection gets the names afresh, and a persisted id is the same channel to it.
func TestSpeakersAfterReconnect(t *testing.T) {
	s := openToAll(t, Config{})
	spec := radio
	spec.ID = uuid.MustParse("12345678-1234-4234-8234-123456789abc")
	c := s.channel(spec)
	p := s.player("ben", 0)
	for range 2 {
		ben := s.bot(p, named)
		s.eventually("the names", func() bool {
			l := ben.Speakers()
			return l != nil && len(l.List) == 1 && l.List[0].ID == spec.ID
		})
		ben.Close()
		c.Close()
		c = s.channel(spec)
	}
}

// TestFilesAreHeard: a speaker of administrators plays files of any kind, those that cannot be sent as they are
// included.
func TestFilesAreHeard(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"stereo_44k.mp3", "mono_60ms.opus", "stereo_20ms.opus", "mono24_96k.flac"} {
		b, err := os.ReadFile("soundfile/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := openToAll(t, Config{Sounds: dir, Convert: func(src io.ReadSeekCloser, loop bool) (speaker.Sound, error) { return transcode.Open(src, loop) }})
	ben := s.bot(s.player("ben", 0), named)
	book := s.gw.SpeakerBook()
	if err := book.Put(speaker.Record{Name: "Radio", Server: radio.Backend, World: radio.World, X: radio.X, Y: radio.Y, Z: radio.Z, Volume: radio.Volume, Range: radio.Range}); err != nil {
		t.Fatal(err)
	}
	if got := book.Sounds(); len(got) != 4 {
		t.Errorf("files: %q", got)
	}
	for _, name := range book.Sounds() {
		if _, err := book.Play("radio", name, true); err != nil {
			t.Fatal(name, err)
		}
		all := ben.until(40, name, ofKind(wire.KindChannel))
		if l := loud(all[len(all)/2].PCM); math.Abs(l-0.25) > 0.06 {
			t.Errorf("%s: level %.3f", name, l)
		}
		book.Stop("radio")
		s.eventually(name+" ends", func() bool { return book.All()[0].File == "" })
		ben.heard(nobody) // what is still on its way
	}
}

// A microphone comes out of a speaker wherever its player is, with its gaps, and not to its player.
func TestMicrophoneThroughASpeaker(t *testing.T) {
	s := openToAll(t, Config{})
	for _, ask := range []caps.Set{named, v1} {
		anna, ben := s.bot(s.player("anna", 0), ask), s.bot(s.player("ben", 0), named)
		s.meet(anna, ben)
		c := s.channel(radio)
		if _, err := c.Relay(anna.player.ID); err != nil {
			t.Fatal(err)
		}
		s.eventually("the relay", func() bool {
			anna.SendOpus(opus)
			time.Sleep(30 * time.Millisecond)
			kinds := map[wire.Kind]int{}
			for _, x := range ben.heard(func(vc.Sound) bool { return true }) {
				kinds[x.Kind]++
			}
			// Both ways at once, which is what two places are.
			return kinds[wire.KindChannel] > 0 && kinds[wire.KindPlayer] > 0
		})
		nether := s.reg.Place("other", "nether")
		anna.player.SetFacts(world.Facts{Place: nether})
		anna.player.SetPose(&world.Pose{Place: nether})
		s.move(ben.player, 3, 4)
		time.Sleep(100 * time.Millisecond) // a turn
		ben.heard(nobody)
		anna.heard(nobody)
		if err := anna.Begin(); err != nil {
			t.Fatal(err)
		}
		for _, p := range packets(t, 12) {
			anna.SendOpus(p)
		}
		all := ben.until(12, "the relay from another world", func(x vc.Sound) bool { return !x.Concealed })
		for i, x := range all {
			if x.Kind != wire.KindChannel || x.Source != c.ID() || x.Origin != anna.player.ID || x.Stream != all[0].Stream || x.Stream <= 0 ||
				x.Seq != all[0].Seq+int64(i) || x.DX != 0 || x.Gain != 1 {
				t.Fatalf("sound %d: %+v", i, x)
			}
		}
		if ask.Audio == 2 && all[0].Seq != 0 {
			t.Errorf("a segment begins at %d", all[0].Seq)
		}
		if n := anna.heard(func(vc.Sound) bool { return true }); len(n) != 0 {
			t.Errorf("anna hears herself: %+v", n)
		}
		// A spectator is heard by spectators only, by a speaker too.
		anna.player.SetFacts(world.Facts{Place: nether, Mode: world.Spectator})
		s.eventually("the spectator to be silent", func() bool {
			ben.heard(nobody)
			anna.SendOpus(opus)
			time.Sleep(50 * time.Millisecond)
			return len(ben.heard(func(vc.Sound) bool { return true })) == 0
		})
		c.Close()
		anna.Close()
		ben.Close()
	}
}

// What was lost before it came here is still a gap behind a speaker.
func TestRelayKeepsGaps(t *testing.T) {
	s := openToAll(t, Config{})
	p := s.player("anna", 0)
	a := s.dial(p, v2)
	ben := s.bot(s.player("ben", 3), named)
	c := s.channel(radio)
	if _, err := c.Relay(p.ID); err != nil {
		t.Fatal(err)
	}
	s.eventually("the relay", func() bool {
		a.say()
		time.Sleep(20 * time.Millisecond)
		return len(ben.heard(ofKind(wire.KindChannel))) > 0
	})
	time.Sleep(50 * time.Millisecond)
	ben.heard(nobody)
	before := a.seq
	a.say()
	a.seq += 2
	a.say()
	x := ben.until(2, "both", func(x vc.Sound) bool { return x.Kind == wire.KindChannel && !x.Concealed })
	if x[0].Seq != before || x[1].Seq != before+3 || x[0].Stream != x[1].Stream {
		t.Errorf("%d and %d, want %d and %d", x[0].Seq, x[1].Seq, before, before+3)
	}
}

// A listener that stops reading costs nobody a frame of a speaker or of a clip, and closing the channel takes back what
// waits for it.
func TestFreezeOfASpeaker(t *testing.T) {
	s := openToAll(t, Config{})
	anna, ben := s.bot(s.player("anna", 0), board2), s.bot(s.player("ben", 0), board2)
	frozen := s.dial(s.player("cleo", 0), allHere)
	s.meet(anna, ben)
	frozen.waitFor("a roster", func() bool { return len(frozen.roster()) == 3 })
	c := s.channel(radio)
	live, err := c.Live()
	if err != nil {
		t.Fatal(err)
	}
	s.eventually("three listeners", func() bool { n, _ := live.Send(opus); time.Sleep(20 * time.Millisecond); return n == 3 })
	clip, err := anna.StartClip()
	if err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{})
	frozen.mu.Lock()
	frozen.paused = gate
	frozen.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	ben.heard(nobody)
	big := append(slices.Clone(opus), make([]byte, 1200)...)
	speakers, clips := int64(0), int64(0)
	lost := func() uint64 { l := s.gw.Stats().Lost; return l["full"] + l["stale"] }
	for deadline := time.Now().Add(4 * patience); lost() < 10; time.Sleep(20 * time.Millisecond) {
		for range 4 {
			if n, err := live.Send(big); n != 3 || err != nil {
				t.Fatal(n, err)
			}
			speakers++
		}
		if clip.SendOpus(big) == nil {
			clips++
		}
		if time.Now().After(deadline) {
			t.Fatal("the frozen listener loses nothing: it is not frozen")
		}
	}
	next := map[wire.Kind]int64{}
	first := map[wire.Kind]int64{}
	s.eventually("every frame at ben", func() bool {
		for _, x := range ben.heard(func(vc.Sound) bool { return true }) {
			if _, ok := first[x.Kind]; !ok {
				first[x.Kind], next[x.Kind] = x.Seq, x.Seq
			}
			if x.Seq != next[x.Kind] {
				t.Fatalf("kind %d: %d comes after %d", x.Kind, x.Seq, next[x.Kind]-1)
			}
			next[x.Kind]++
		}
		return next[wire.KindChannel]-first[wire.KindChannel] == speakers && next[wire.KindBoard]-first[wire.KindBoard] == clips
	})
	snapshots := func() (all []string) {
		frozen.mu.Lock()
		defer frozen.mu.Unlock()
		for _, text := range frozen.texts {
			if v, err := line.ParseS2C([]byte(text)); err == nil {
				if l, ok := v.(*line.Speakers); ok && len(l.List) > 0 {
					all = append(all, l.List[0].Name)
				}
			}
		}
		return all
	}
	// What changes meanwhile waits for an empty socket, the newest in place of the others.
	other := radio
	for i := range 3 {
		other.Name = fmt.Sprint("Late ", i)
		if err := c.Change(other); err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); time.Since(begun) < speaker.Flush+50*time.Millisecond; time.Sleep(10 * time.Millisecond) {
			live.Send(big)
		}
	}
	s.channel(speaker.Spec{Name: "Last", Backend: "survival", World: "nether", Range: 1})
	for range 20 { // so that something waits that is not old
		live.Send(big)
	}
	c.Close()
	if n := s.gw.Stats().Lost["retracted"]; n == 0 {
		t.Error("nothing was taken back for the frozen listener")
	}
	if _, err := live.Send(big); err == nil {
		t.Error("a closed channel sends")
	}
	for begun := time.Now(); time.Since(begun) < speaker.Flush+50*time.Millisecond; time.Sleep(20 * time.Millisecond) {
		clip.SendOpus(big)
	}
	frozen.mu.Lock()
	frozen.paused = nil
	frozen.mu.Unlock()
	close(gate)
	frozen.take()
	s.eventually("the thaw", func() bool {
		clip.SendOpus(opus)
		time.Sleep(20 * time.Millisecond)
		return slices.ContainsFunc(frozen.take(), func(f wire.S2C) bool { return f.Kind == wire.KindBoard && len(f.Opus) == len(opus) })
	})
	if slices.ContainsFunc(frozen.take(), func(f wire.S2C) bool { return f.Kind == wire.KindChannel }) {
		t.Error("the closed channel is heard after everything else")
	}
	frozen.waitFor("the newest names", func() bool { all := snapshots(); return len(all) > 0 && all[len(all)-1] == "Last" })
	// As it was before.
	if all := slices.DeleteFunc(snapshots(), func(name string) bool { return name == radio.Name }); len(all) != 1 {
		t.Errorf("snapshots after the thaw: %q, want the newest alone", all)
	}
}

// Closing the gateway ends what plays.
func TestCloseEndsSpeakers(t *testing.T) {
	reg := world.New()
	g := New(Config{Log: slog.New(slog.DiscardHandler)}, reg)
	c, err := g.Speakers().Open(radio)
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.PlayPCM(&endless{}, encoder(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := in.Err(); err != speaker.ErrStopped {
		t.Error(err)
	}
	if _, err := g.Speakers().Open(radio); err != speaker.ErrClosed {
		t.Error(err)
	}
}
