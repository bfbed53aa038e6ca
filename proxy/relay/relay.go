// Package relay moves the frames of one side of a session to the other.
//
// It promises that frames which nobody has to look at go on as the same bytes, in runs: one read, one walk over the
// frames, one write, and no allocation. Frames that a [Pump] may not decide alone go to its [Owner], one at a time and
// in order, and the pump waits for the answer; so a state never changes under a frame that is being forwarded.
package relay

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Owner is the session that a [Pump] works for. The pump's goroutine calls its methods, except Observer and Version.
type Owner interface {
	// Version returns the client's, which does not change.
	Version() *proto.Version
	// Events returns the channel that takes what the pump does not decide alone. Each event waits for one
	// [Pump.Answer].
	Events() chan<- *Event
	// Observer returns who sees packets of the class [Observed]; nil: nobody. It is called at each change of state.
	Observer() Observer
	// Concerns reports whether the owner decides about a plugin message of so many bytes. It must not block.
	Concerns(d proto.Dir, channel []byte, size int) bool
	// Undecoded counts a packet that cannot be decoded. It is forwarded all the same.
	Undecoded(p proto.Packet)
	// Panicked ends the session after a panic, whose value this is. It is called with the stack of the panic.
	Panicked(v any)
}

// Observer sees packets. It may neither block nor keep the bytes.
type Observer interface {
	Clientbound(s proto.State, p proto.Packet, body []byte) // body is all behind the packet id
	Serverbound(s proto.State, p proto.Packet, body []byte)
}

// Relay holds what the pumps of one proxy share.
type Relay struct {
	traffic  *[2]Traffic
	tables   tables
	watchdog *watchdog
}

// New returns a Relay, which [Relay.Close] ends. It counts in traffic, by direction. It calls wants once for each
// version, state and direction; wants adds the packets to look at, in addition to those that the relay always looks at.
func New(traffic *[2]Traffic, wants Wants) *Relay {
	return &Relay{traffic: traffic, tables: tables{wants: wants}, watchdog: newWatchdog()}
}

// Close ends what the pumps share. They must have ended.
func (r *Relay) Close() { r.watchdog.close() }

// Observed reports whether a packet id is of the class [Observed].
func (r *Relay) Observed(v *proto.Version, s proto.State, d proto.Dir, id int32) bool {
	c := r.tables.get(v, s, d)
	return uint32(id) < uint32(len(c)) && c[id]&Observed != 0
}

// Pump reads one side of a session and writes to the other. Its methods are the owner's. Those that change the fate of
// frames may be called only before it starts and while it waits for an answer; [Pump.Direct] and [Pump.Allow] at any
// time.
type Pump struct {
	Traces Traces

	relay   *Relay
	owner   Owner
	version *proto.Version
	dir     proto.Dir
	r       *frame.Reader

	state     proto.State
	classes   *classes
	packets   *[256]proto.Packet
	observer  Observer
	threshold int                    // the compression threshold of the side it reads
	dest      atomic.Pointer[Outlet] // nil: nothing goes on by itself, every frame is the owner's
	mark      mark                   // the wait for bytes, for the watchdog

	ask   Event
	reply chan Verdict  // one slot
	quit  chan struct{} // closed by stop: end without a word
	once  sync.Once
	ended chan struct{} // closed when the goroutine is gone

	run      struct{ start, end int }
	appended int // bytes given to Append since they last caused a write
	tally    tally
}

// Traces say what the frames that nobody held have left on the client.
type Traces struct {
	Bundle   atomic.Bool // an odd number of bundle delimiters: one is open
	Registry atomic.Bool // registry data
	Effects  atomic.Bool // a list of post effects

	// For the owner once the pump has ended.
	Packs     int // how often the client was asked for its known packs
	Leftovers Leftovers
}

// Outlet is a side that a pump's frames go to, and the size in bytes from which it takes them compressed; negative:
// never.
type Outlet struct {
	*frame.Writer
	Threshold int
}

// Verdict is the owner's answer to an event.
type Verdict uint8

// The verdicts.
const (
	Forward Verdict = iota // the frame goes on as it is
	Handled                // it does not; the owner has sent what was to be sent
	Again                  // it belongs to the state that the pump has just entered: look again
)

// Event is a frame or an end that a pump tells its owner. It is valid until the owner answers.
type Event struct {
	Pump    *Pump
	Packet  proto.Packet
	ID      int32
	Frame   frame.Frame
	Body    []byte
	Channel string // of a plugin message that concerns the owner
	Data    []byte // the plugin message's own bytes, the end of Body

	Failed *Outlet // set: writing there failed with Err
	Err    error   // with no Failed: reading ended
}

var errQuit = errors.New("the session is ending")

// Pump returns a pump that reads r, whose compression threshold is threshold, in a direction. It has no state yet.
func (r *Relay) Pump(o Owner, d proto.Dir, in *frame.Reader, threshold int) *Pump {
	return &Pump{relay: r, owner: o, version: o.Version(), dir: d, r: in, threshold: threshold,
		reply: make(chan Verdict, 1), quit: make(chan struct{}), ended: make(chan struct{})}
}

// Enter sets the state of the frames that are read from now on.
func (p *Pump) Enter(st proto.State) {
	p.state = st
	p.classes = p.relay.tables.get(p.version, st, p.dir)
	p.packets = p.version.Table(st, p.dir)
	p.observer = p.owner.Observer()
}

// State returns the state that was entered last.
func (p *Pump) State() proto.State { return p.state }

// Recompress sets the compression threshold of the side it reads. The reader has to be told as well.
func (p *Pump) Recompress(threshold int) { p.threshold = threshold }

// Direct sets where frames go; nil: nowhere by themselves, the owner decides about each.
func (p *Pump) Direct(to *Outlet) { p.dest.Store(to) }

// Dest returns where frames go.
func (p *Pump) Dest() *Outlet { return p.dest.Load() }

// Allow sets how long the side it reads may be silent, also if it is just now.
func (p *Pump) Allow(d time.Duration) { p.mark.allow(d) }

// Silent returns how long the side it reads has been silent, good to a second; 0: it is not.
func (p *Pump) Silent() time.Duration { return p.mark.waited(p.relay.watchdog.clock.now()) }

// Late reports whether the side it reads has been silent for too long.
func (p *Pump) Late() bool { return p.mark.late.Load() }

// Start runs the pump. It calls late when the side it reads has been silent for too long; late must not block.
func (p *Pump) Start(late func()) {
	p.relay.watchdog.watch(&p.mark, late)
	go p.work()
}

// Stop makes the pump end without another word. Close or unblock its two sides as well.
func (p *Pump) Stop() { p.once.Do(func() { close(p.quit) }) }

// Ended returns a channel that is closed when a started pump is gone.
func (p *Pump) Ended() <-chan struct{} { return p.ended }

// Answer lets the pump go on after an event.
func (p *Pump) Answer(v Verdict) { p.reply <- v } // there is room: a pump asks one thing at a time

// Send writes the frame of an event to a side, as the same wire bytes where they are valid. It is for frames that must
// be out before the owner does the next thing. A frame that the side cannot take is [frame.Unframeable].
func (p *Pump) Send(e *Event, to *Outlet) error {
	switch {
	case frame.Passes(e.Frame, p.threshold, to.Threshold):
		return to.Run(p.r.Raw(e.Frame.Start, e.Frame.End))
	case !frame.Fits(e.Frame.Size(), to.Threshold):
		return frame.Unframeable
	}
	return to.Packet(e.ID, e.Body)
}

// work relays until the side it reads ends. It is the goroutine's function.
func (p *Pump) work() {
	defer close(p.ended)
	defer p.relay.watchdog.forget(&p.mark)
	defer func() {
		if v := recover(); v != nil {
			p.owner.Panicked(v)
		}
	}()
	for {
		err := p.batch() // at first there may be frames that came with the end of the login
		p.tally.addTo(&p.relay.traffic[p.dir])
		if err == nil {
			p.mark.begin(p.relay.watchdog.clock.now())
			err = p.r.Fill()
			p.mark.end()
		}
		if err != nil {
			if err != errQuit {
				p.ask = Event{Pump: p, Err: err}
				p.tell()
			}
			return
		}
	}
}

// batch forwards the whole frames in the buffer.
func (p *Pump) batch() error {
	out := p.dest.Load()
	for {
		f, ok, err := p.r.Cut()
		if err != nil || !ok {
			if ferr := p.flush(out); ferr != nil {
				return ferr
			}
			return err
		}
		p.tally.bytes += uint64(f.End - f.Start)
		if c := p.class(f, out); c != 0 {
			if out, ok, err = p.look(f, c, out); err != nil {
				return err
			}
			if !ok {
				continue
			}
		} else {
			p.tally.passed++
		}
		if err := p.add(f, out); err != nil {
			return err
		}
	}
}

// class says what to do with a frame. Without an outlet each is the owner's.
func (p *Pump) class(f frame.Frame, out *Outlet) (c Class) {
	if uint32(f.ID) < uint32(len(p.classes)) {
		c = p.classes[f.ID]
	}
	if out == nil {
		c = c&Channeled | Held
	}
	return c
}

// add puts a frame into the run, or frames it once more where its bytes are not valid on the other side.
func (p *Pump) add(f frame.Frame, out *Outlet) error {
	if frame.Passes(f, p.threshold, out.Threshold) {
		if p.run.end == 0 {
			p.run.start = f.Start
		}
		p.run.end = f.End
		return nil
	}
	if !frame.Fits(f.Size(), out.Threshold) {
		// The sender is at fault: the other side must not lose what is already on its way.
		return errors.Join(p.flush(out), frame.Unframeable)
	}
	body, err := p.r.Body(f)
	if err != nil {
		return err
	}
	if err := p.writeRun(out); err != nil {
		return err
	}
	p.tally.recoded++
	out.Append(f.ID, body)
	if p.appended += len(body); p.appended >= maxAppended {
		p.appended = 0
		return p.flush(out)
	}
	return nil
}

// maxAppended bounds the re-framed bytes that are gathered for one write. One read can hold a thousand times its size
// once it is inflated, and none of that may wait for the end of the batch.
const maxAppended = 256 << 10

// writeRun writes the run, and the appended frames in the same write.
func (p *Pump) writeRun(out *Outlet) error {
	if p.run.end == 0 {
		return nil
	}
	b := p.r.Raw(p.run.start, p.run.end)
	p.run.start, p.run.end = 0, 0
	if err := out.Run(b); err != nil {
		return p.unwritable(out, err)
	}
	return nil
}

// flush writes everything that waits to be written.
func (p *Pump) flush(out *Outlet) error {
	if out == nil {
		return nil
	}
	if p.run.end != 0 {
		return p.writeRun(out)
	}
	if err := out.Flush(); err != nil {
		return p.unwritable(out, err)
	}
	return nil
}

// unwritable reports a failed write. A client whose backend takes nothing more is still read: the owner decides what
// becomes of it.
func (p *Pump) unwritable(out *Outlet, err error) error {
	p.run.start, p.run.end = 0, 0
	p.ask = Event{Pump: p, Failed: out, Err: err}
	_, err = p.tell()
	return err
}

// look opens a frame that is not a pass. It returns the outlet to use from here on, and whether the frame goes there.
func (p *Pump) look(f frame.Frame, c Class, out *Outlet) (*Outlet, bool, error) {
	packet := proto.Unknown
	if uint32(f.ID) < uint32(len(p.packets)) {
		packet = p.packets[f.ID]
	}
	if c&noted != 0 {
		switch packet {
		case proto.BundleDelimiter:
			p.Traces.Bundle.Store(!p.Traces.Bundle.Load())
		case proto.RegistryData:
			p.Traces.Registry.Store(true)
		case proto.PostEffects:
			p.Traces.Effects.Store(true)
		case proto.SelectKnownPacks:
			p.Traces.Packs++
		}
		if c == noted {
			p.tally.passed++
			return out, true, nil
		}
	}
	body, err := p.r.Body(f)
	if err != nil {
		if p.dir == proto.Serverbound || c&Held != 0 {
			return out, false, errors.Join(p.flush(out), err)
		}
		// The client may make sense of a packet that we cannot read: nobody is disconnected because we wanted to look.
		p.owner.Undecoded(packet)
		p.tally.passed++
		return out, true, nil
	}
	if c&Observed != 0 && out != nil && p.observer != nil {
		if p.dir == proto.Clientbound {
			p.observer.Clientbound(p.state, packet, body)
		} else {
			p.observer.Serverbound(p.state, packet, body)
		}
	}
	if c&recorded != 0 && p.Traces.Leftovers.see(p.version.Protocol, packet, body) != nil && c&Observed == 0 {
		p.owner.Undecoded(packet)
	}
	var channel string
	var data []byte
	if c&Channeled != 0 {
		r := field.NewReader(body)
		name := r.StringBytes(field.MaxString)
		if err := r.Err(); err != nil {
			p.owner.Undecoded(packet)
		} else if out == nil || p.owner.Concerns(p.dir, name, r.Len()) {
			channel, data = string(name), r.Rest()
			c |= Held
		}
	}
	if c&Held == 0 {
		p.tally.tapped++
		return out, true, nil
	}
	if err := p.flush(out); err != nil {
		return out, false, err
	}
	p.tally.held++
	p.ask = Event{Pump: p, Packet: packet, ID: f.ID, Frame: f, Body: body, Channel: channel, Data: data}
	v, err := p.tell()
	if err != nil {
		return out, false, err
	}
	out = p.dest.Load()
	if v == Again {
		return p.look(f, p.class(f, out), out)
	}
	return out, v == Forward && out != nil, nil
}

// tell hands the event to the owner and waits for the answer.
func (p *Pump) tell() (Verdict, error) {
	select {
	case p.owner.Events() <- &p.ask:
	case <-p.quit:
		return Handled, errQuit
	}
	select {
	case v := <-p.reply:
		return v, nil
	case <-p.quit:
		return Handled, errQuit
	}
}
