package itest

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/client"
	"github.com/earshot-mc/earshot/voice/opus"
	voicewire "github.com/earshot-mc/earshot/voice/wire"
)

// clip plays a 440 Hz tone on the soundboard until ctx is done.
func (s *talker) clip(ctx context.Context) {
	k, err := s.c.StartClip()
	if err != nil {
		s.t.Error(err)
		return
	}
	defer k.End()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	pcm := make([]int16, opus.FrameSize)
	for n := 0; ctx.Err() == nil; <-tick.C {
		for i := range pcm {
			pcm[i] = int16(16384 * math.Sin(2*math.Pi*440*float64(n)/48000))
			n++
		}
		if err := k.Speak(pcm); err != nil {
			s.t.Error(err)
			return
		}
	}
}

// TestSoundboard: a clip is heard as one, until the soundboard is switched off or the player may no longer use it;
// then, as with a voice that may not speak, nobody hears it and the player reads on the screen why.
func TestSoundboard(t *testing.T) {
	p := start(t, "online: false\n")
	bots := peer.NewBots(t, "1.21.4")
	ann, bob := newTalker(t, p, bots.Join(p.addr, "Ann"), nil), newTalker(t, p, bots.Join(p.addr, "Bob"), nil)
	for _, s := range []*talker{ann, bob} {
		s.connect(client.Config{Ask: caps.Newest()})
	}
	// during sends while do is under way.
	during := func(send func(context.Context), do func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			send(ctx)
		}()
		defer func() {
			cancel()
			<-done
		}()
		do()
	}
	during(ann.clip, func() {
		n := 0
		testkit.Until(t, "Bob to hear the clip", func() bool {
			for _, h := range bob.take() {
				if h.from == ann.id && h.kind == voicewire.KindBoard && h.gain == 1 && math.Abs(h.hz-440) < 5 && h.level > .3 {
					n++
				}
			}
			return n >= 25
		})
	})
	// refused puts other settings in force, which drop Ann's clips and tell Ann why.
	times := 0
	refused := func(settings, notice, reason string, send func(context.Context)) {
		t.Helper()
		p.write("online: false\n" + settings)
		times++
		p.says(times, "the configuration was read again")
		dropped := func() float64 {
			return p.metric(`earshot_voice_frames_dropped_total{reason="` + reason + `"}`)
		}
		before := dropped()
		during(send, func() {
			testkit.Until(t, "all to be dropped", func() bool { return dropped() > before })
			testkit.Until(t, "Bob to hear nothing", func() bool { // of what was on its way some may still come
				bob.take()
				now := dropped()
				testkit.Until(t, "more to be dropped", func() bool { return dropped() >= now+10 })
				return len(bob.take()) == 0
			})
			ann.bot.Await("actionbar", func(e peer.Event) bool { return e.Text == notice })
		})
	}
	refused("voice: {soundboard: false}\n", "The soundboard is switched off on this server", "clips_off", ann.clip)
	refused("permissions: {groups: {default: {nodes: ['-socketsvc.soundboard']}}}\n", "You may not use the soundboard here", "clips_refused", ann.clip)
	refused("permissions: {groups: {default: {nodes: ['-socketsvc.speak']}}}\n", "You may not speak here", "no_permission", func(ctx context.Context) { ann.say(ctx, math.MaxInt) })
}
