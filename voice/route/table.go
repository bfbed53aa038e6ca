// Package route decides who hears a frame. Everything that changes slowly is compiled once per turn into a [Table],
// which is replaced whole and read without a lock; only positions are read fresh for each frame.
//
// It promises that nobody is reached by accident: a listener who is not compiled into a row hears nothing, and a row
// holds only listeners who are not deafened, may see the talker, have been told of the talker, and may hear the talker
// by the spectator rule. Place and distance are checked on the poses of the moment. Delivering a frame allocates
// nothing and waits for nobody.
package route

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Kind says where a frame comes from.
type Kind uint8

// The kinds.
const (
	Voice   Kind = iota // a member's microphone
	Clip                // a member's soundboard
	Channel             // a speaker channel
)

// Frame is one frame as one listener gets it.
type Frame struct {
	Kind        Kind
	Talker      uuid.UUID // of a Channel: the player whose microphone it carries, or zero
	Channel     uuid.UUID // of a Channel: its id; else zero
	Gain        uint8     // 255 is 1.0; never 0
	DX, DZ      float32   // talker minus listener, in blocks
	Stream, Seq int64     // both 0 when the talker does not count its frames
	Opus        []byte    // belongs to the talker's reader: gone when Deliver returns
}

// Receiver takes the frames for one listener.
type Receiver interface {
	// Deliver must neither block nor keep the frame or anything in it. Several talkers' goroutines call it at once.
	Deliver(f *Frame)
}

// Member is one voice connection. Exported fields are set before [Compiler.Add] and stay; the rest belongs to the
// compiler.
type Member struct {
	Player          *world.Player
	Receiver        Receiver
	Clips, Channels bool // whether the receiver takes frames of these kinds

	slot atomic.Int32 // 1 + index in the table; 0 when in none. Written by the turn, read by the talker's reader

	// stale holds the words of the member's row that the next Compile has to work out. again tells whether to work out
	// the part about the talker alone, too.
	stale set
	again bool

	epoch uint64 // differs whenever streams to this listener must be new ones
	// sees holds the members that this one may know about, by talker's slot: those it is shown, all who have not
	// vanished and are not hidden from it, and always itself. named and told are parts of it: the members named by the
	// last roster made for it, and by the last one sent to it. heard is told seen from the other side: the members that
	// have been told of this one, by listener's slot.
	sees, named, told, heard set
	// shown holds the members that this one is shown on its server, and close those of them that it may be in one place
	// with. shownTo and closeTo are these from the other side.
	shown, shownTo, close, closeTo set
	hiddenFrom                     set    // members that must not know about this one although everybody may
	view                           uint64 // counts the changes of sees
	deafened                       bool
	rights                         Rights
	tier                           talk.Tier
	// As the last turn found it.
	facts     *world.Facts
	place     *world.Place
	gathering *gathering // nil: it is not known where the member is
}

// set is a set of slots.
type set []uint64

func (s set) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) del(i int)      { s[i/64] &^= 1 << (i % 64) }

func (s set) put(i int, in bool) {
	if in {
		s.add(i)
	} else {
		s.del(i)
	}
}

func (s set) empty() bool {
	for _, word := range s {
		if word != 0 {
			return false
		}
	}
	return true
}

// Table is one turn's decision for every pair. It is never written to once it is published.
type Table struct {
	// By slot. A frame looks at the players of a whole place and hands itself to few of them, so these are apart from
	// what only those few need.
	players   []*world.Player
	spots     []*world.Spot
	listeners []listener
	rows      []*row // nil in a free slot. A row may be in several tables

	clips    set                  // members that take clips
	channels map[*world.Place]set // by place: members there that take channels and are not deafened
}

// listener holds what a frame needs to know of a member that hears it.
type listener struct {
	receiver Receiver
	epoch    uint64
}

// row is one talker's part of the table.
type row struct {
	member *Member    // of whom the row is
	deny   [2]Outcome // of its microphone and of its clips; Routed lets them through
	// The range of an ordinary voice in its place, there inside and outside of zones, and its tier's factor.
	base, factor float64
	zones        []gain.Region
	// wide has the listeners who hear the member at full loudness and from no direction, wherever both are: the ones in
	// its group, and those it was declared to. nil: nobody.
	wide set
	// near has the listeners who hear the member by distance, of those who stood in the same place when the turn ran.
	// Everybody else costs a frame nothing.
	near set
	// may has the listeners who may hear the member wherever they stand: a channel that carries its microphone goes by
	// it.
	may set
}

// Source is one stream of sound of a member: its microphone, or a clip. It belongs to the goroutine that reads the
// member's socket; the turn never looks into it.
type Source struct {
	member *Member
	streams
	frame Frame
}

// streams gives each listener an id of its own for a sender's stream.
type streams struct {
	count  uint64 // frames so far, and one more for each change of the sender's stream
	stream int64  // the sender's
	pairs  [][]pair
}

// pair is the state between the source and one listener. A stream goes on only while last is the count of the very
// frame before and the listener's epoch is still the same. A listener that may have missed a frame which was not lost,
// or may have been replaced, breaks one of them.
type pair struct {
	epoch, last uint64
	stream      int64 // as the listener knows it
}

const pairsAtOnce = 64 // so a talker among few does not pay for a thousand

// NewSource returns the sound of a member; listeners know it by the player's UUID.
func NewSource(m *Member) *Source {
	return &Source{member: m, frame: Frame{Talker: m.Player.ID}}
}

// NewClip returns a sound of a member's soundboard. It is routed as the microphone is, but never whispered or shouted,
// and only to members that take clips.
func NewClip(m *Member) *Source {
	return &Source{member: m, frame: Frame{Kind: Clip, Talker: m.Player.ID}}
}

// Outcome says what became of a frame as a whole.
type Outcome uint8

const (
	Routed        Outcome = iota // to everybody in range, possibly nobody
	NotListed                    // no turn has seen the member yet, or it has left
	NoPose                       // it is not known where the talker is
	Muted                        // by the server
	NoSpeak                      // it may not speak
	SoundboardOff                // nobody's clips are heard
	NoSoundboard                 // it may not play clips
)

// Send delivers one frame to everybody who hears it now and returns how many that is. A stream of 0 comes from a legacy
// talker, whose frames have no sequence; it stays 0 for the listeners.
func (s *Source) Send(t *Table, stream, seq int64, opus []byte) (delivered int, _ Outcome) {
	s.next(stream)
	slot := int(s.member.slot.Load()) - 1
	if slot < 0 || t == nil || slot >= len(t.rows) || t.rows[slot] == nil || t.rows[slot].member != s.member {
		return 0, NotListed
	}
	r, f := t.rows[slot], &s.frame
	if why := r.deny[f.Kind]; why != Routed {
		return 0, why
	}
	f.Seq, f.Opus = seq, opus
	clip := f.Kind == Clip
	if r.wide != nil {
		f.Gain, f.DX, f.DZ = 255, 0, 0
		for i, word := range r.wide {
			if clip {
				word &= t.clips[i]
			}
			for ; word != 0; word &= word - 1 {
				s.hand(t, i*64+bits.TrailingZeros64(word))
				delivered++
			}
		}
	}
	mouth := s.member.Player.Pose()
	if mouth == nil {
		f.Opus = nil
		if delivered == 0 {
			return 0, NoPose
		}
		return delivered, Routed
	}
	factor := r.factor
	if clip {
		factor = 1
	}
	at := gain.At(r.zones, r.base, mouth.X, mouth.Y, mouth.Z)
	reach := gain.Reach(at, at, factor) // for a listener in the same zone; the farthest in any case
	eye := world.Look(mouth, reach)
	for i, word := range r.near {
		if clip {
			word &= t.clips[i]
		}
		for ; word != 0; word &= word - 1 {
			slot := i*64 + bits.TrailingZeros64(word)
			if !t.spots[slot].Within(eye) {
				continue
			}
			ear := t.players[slot].Pose()
			if ear == nil || ear.Place != mouth.Place {
				continue
			}
			if r.zones != nil {
				reach = r.reach(ear, at, factor)
			}
			dx, dy, dz := mouth.X-ear.X, mouth.Y-ear.Y, mouth.Z-ear.Z
			if f.Gain = gain.Level(1, dx*dx+dy*dy+dz*dz, reach); f.Gain == 0 {
				continue
			}
			f.DX, f.DZ = float32(dx), float32(dz)
			l := &t.listeners[slot] // hand, without the call
			f.Stream = 0
			if stream != 0 {
				f.Stream = s.to(slot, l.epoch)
			}
			l.receiver.Deliver(f)
			delivered++
		}
	}
	f.Opus = nil
	return delivered, Routed
}

// hand gives the frame to the listener in a slot.
func (s *Source) hand(t *Table, slot int) {
	l := &t.listeners[slot]
	s.frame.Stream = 0
	if s.stream != 0 {
		s.frame.Stream = s.to(slot, l.epoch)
	}
	l.receiver.Deliver(&s.frame)
}

// reach returns how far the talker is heard by an ear in the same place. at is the range where the mouth is.
func (r *row) reach(ear *world.Pose, at, factor float64) float64 {
	return gain.Reach(at, gain.At(r.zones, r.base, ear.X, ear.Y, ear.Z), factor)
}

// next begins a frame of the sender's stream.
func (s *streams) next(stream int64) {
	if stream != s.stream {
		s.stream = stream
		s.count++ // no listener has had the frame before: all their streams are over
	}
	s.count++
}

// to returns the id under which the listener in the slot knows the present stream, a new one when due.
func (s *streams) to(slot int, epoch uint64) int64 {
	chunk := slot / pairsAtOnce
	for chunk >= len(s.pairs) {
		s.pairs = append(s.pairs, nil)
	}
	if s.pairs[chunk] == nil {
		s.pairs[chunk] = make([]pair, pairsAtOnce)
	}
	p := &s.pairs[chunk][slot%pairsAtOnce]
	if p.epoch != epoch || p.last != s.count-1 {
		p.epoch = epoch
		p.stream = 1 + rand.Int64N(1<<63-1)
	}
	p.last = s.count
	return p.stream
}
