package client

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/opus"
	"github.com/earshot-mc/earshot/voice/wire"
)

const (
	frameTime  = 20 * time.Millisecond
	maxConceal = 3               // lost frames in a row that are concealed
	idleAfter  = 5 * time.Second // then a source's decoder goes
	maxSources = 512             // decoders at once; the wire names sources, so it must not choose how many
)

// Sound is 20 ms of one source.
type Sound struct {
	Kind        wire.Kind
	Source      uuid.UUID // the player, or the channel
	Origin      uuid.UUID // of a channel: the player whose microphone it carries, or zero
	Gain        float64   // 0 to 1, not yet applied to PCM
	Volume      float64   // the listener's own multiplier; see [Volumes]. Not applied either
	DX, DZ      float32   // source minus listener, in blocks
	Stream, Seq int64     // as received; of concealed sound the missing number
	Concealed   bool      // PCM was made up for a lost frame
	PCM         []int16   // opus.FrameSize samples, valid during the callback; nil with NoDecode
}

// Counters count since the connection began.
type Counters struct {
	Sent         uint64 // frames put into the outgoing queue
	SendDropped  uint64 // frames for which it was full; listeners hear a gap
	Frames       uint64 // binary messages received
	Played       uint64 // real frames handed on
	Gaps         uint64 // frames proven missing; stays at the largest value when there are more
	Concealed    uint64 // frames made up
	Stale        uint64 // duplicates and older frames of a stream, thrown away
	Invalid      uint64 // messages that are no frame of this socket's format
	DecodeErrors uint64
	Overflow     uint64 // frames that a jitter queue had no room for
	Crowded      uint64 // frames of sources above the bound
	Deafened     uint64 // frames that came while deafened here
	BadText      uint64 // lines that do not parse
}

// sourceKey identifies a decoder and its jitter state: for a channel never its origin. A player's clips are several
// streams at once.
type sourceKey struct {
	kind   wire.Kind
	id     uuid.UUID
	stream int64 // of KindBoard
}

type source struct {
	dec     *opus.Decoder // nil with NoDecode
	used    bool          // it has decoded something
	stream  int64         // 0: a legacy talker, or nothing heard yet
	last    int64         // sequence
	heard   time.Time
	queue   []wire.S2C // jitter
	playing bool       // the queue had filled and has not run empty since
}

// receiver turns frames into sounds. Frames, or with a jitter queue ticks, come from one goroutine; the lock is for the
// others.
type receiver struct {
	format   wire.S2CFormat
	clips    bool // kind 2 was negotiated
	jitter   int
	decode   bool
	callback func(Sound)
	volumes  *Volumes
	endpoint string // see namespace

	mu       sync.Mutex
	deafened bool
	sources  map[sourceKey]*source
	count    Counters

	sounds []Sound // of one call, used by the calling goroutine without the lock
	pcm    []int16 // theirs
}

func (r *receiver) init(format wire.S2CFormat, clips bool, cfg Config) {
	r.format, r.clips = format, clips
	r.jitter, r.decode, r.callback = cfg.Jitter, !cfg.NoDecode, cfg.Sound
	r.volumes, r.endpoint = cfg.Volumes, namespace(cfg.URL)
	r.deafened = cfg.Deafened
	r.sources = map[sourceKey]*source{}
}

func (r *receiver) counters() Counters {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// setDeafened forgets all sources: nobody listens to frames that come while deafened, and afterwards they must not be
// taken for loss.
func (r *receiver) setDeafened(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deafened != on {
		r.deafened = on
		clear(r.sources)
	}
}

// frame takes one binary message.
func (r *receiver) frame(now time.Time, b []byte) {
	r.mu.Lock()
	if r.jitter > 0 { // sounds and pcm are then the ticks'
		r.take(now, b)
		r.mu.Unlock()
		return
	}
	r.sounds, r.pcm = r.sounds[:0], r.pcm[:0]
	r.take(now, b)
	r.mu.Unlock()
	r.emit()
}

func (r *receiver) take(now time.Time, b []byte) {
	r.count.Frames++
	f, err := wire.ParseS2C(r.format, b)
	if err != nil || f.Kind == wire.KindBoard && !r.clips {
		r.count.Invalid++
		return
	}
	if r.deafened {
		r.count.Deafened++
		return
	}
	key := sourceKey{kind: f.Kind, id: f.Source}
	if f.Kind == wire.KindBoard {
		key.stream = f.Stream
	}
	s := r.sources[key]
	if s == nil {
		if len(r.sources) >= maxSources {
			r.count.Crowded++
			return
		}
		s = new(source)
		if r.decode {
			if s.dec, err = opus.NewDecoder(); err != nil {
				r.count.DecodeErrors++
				return
			}
		}
		r.sources[key] = s
	}
	s.heard = now
	if r.jitter == 0 {
		r.play(s, &f)
		return
	}
	if len(s.queue) >= 3*r.jitter { // playing out the oldest would only keep the delay
		s.queue = slices.Delete(s.queue, 0, 1)
		r.count.Overflow++
	}
	f.Opus = slices.Clone(f.Opus)
	s.queue = append(s.queue, f)
}

// tick plays one frame of each source whose queue is ready.
func (r *receiver) tick(now time.Time) {
	r.mu.Lock()
	r.sounds, r.pcm = r.sounds[:0], r.pcm[:0]
	for _, s := range r.sources {
		// A short utterance never fills the queue. It waits as long as one that does.
		late := now.Sub(s.heard) >= time.Duration(r.jitter)*frameTime
		s.playing = len(s.queue) > 0 && (s.playing || len(s.queue) >= r.jitter || late)
		if !s.playing {
			continue
		}
		f := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		r.play(s, &f)
	}
	r.mu.Unlock()
	r.emit()
}

// play applies the sequence rules to one frame and adds what there is to hear.
func (r *receiver) play(s *source, f *wire.S2C) {
	switch {
	case f.Stream != s.stream: // a new segment, or a legacy talker: nothing to infer
		r.restart(s)
	case f.Stream == 0:
	case f.Seq <= s.last:
		r.count.Stale++
		return
	case f.Seq > s.last+1:
		missing := uint64(f.Seq - s.last - 1)
		r.count.Gaps += min(missing, math.MaxUint64-r.count.Gaps)
		if missing > maxConceal {
			r.restart(s)
			break
		}
		for seq := s.last + 1; seq < f.Seq && r.decode; seq++ {
			pcm, err := s.dec.Conceal()
			if err != nil {
				r.count.DecodeErrors++
				continue
			}
			r.count.Concealed++
			r.add(f, seq, true, pcm)
		}
	}
	s.stream, s.last, s.used = f.Stream, f.Seq, true
	var pcm []int16
	if r.decode {
		var err error
		if pcm, err = s.dec.Decode(f.Opus); err != nil {
			r.count.DecodeErrors++
			return
		}
	}
	r.count.Played++
	r.add(f, f.Seq, false, pcm)
}

// restart makes the next packet the first of a stream for the decoder.
func (r *receiver) restart(s *source) {
	if s.dec == nil || !s.used {
		return
	}
	if err := s.dec.Reset(); err != nil {
		r.count.DecodeErrors++
	}
}

func (r *receiver) add(f *wire.S2C, seq int64, concealed bool, pcm []int16) {
	if r.callback == nil {
		return
	}
	at := len(r.pcm)
	r.pcm = append(r.pcm, pcm...)
	if pcm != nil {
		pcm = r.pcm[at:len(r.pcm):len(r.pcm)]
	}
	r.sounds = append(r.sounds, Sound{Kind: f.Kind, Source: f.Source, Origin: f.Origin, Gain: float64(f.Gain) / 255, Volume: r.volumes.of(r.endpoint, f),
		DX: f.DX, DZ: f.DZ, Stream: f.Stream, Seq: seq, Concealed: concealed, PCM: pcm})
}

// emit calls back without the lock, so that the callback may use the client.
func (r *receiver) emit() {
	for _, s := range r.sounds {
		r.callback(s)
	}
}

// expire drops decoders that were idle too long.
func (r *receiver) expire(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.sources {
		if now.Sub(s.heard) >= idleAfter {
			delete(r.sources, key)
		}
	}
}
