package session

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// pump reads one side of a session and writes to the other. What it may decide alone it forwards in runs: one read, one
// walk over the frames, one write. The rest it hands to the owner, one frame at a time, and waits for the answer; so
// the owner sees frames in order, and a state never changes under a frame that is being forwarded.
//
// The owner may change a pump's fields only before it starts and while it waits for an answer; dest, which is atomic,
// at any time.
type pump struct {
	s    *Session
	dir  proto.Dir
	r    *frame.Reader
	link *link // the backend that is read; nil when it is the client

	state     proto.State
	classes   *classes
	packets   *[256]proto.Packet
	threshold int                    // the compression threshold of the side that is read
	dest      atomic.Pointer[outlet] // nil: nothing goes on by itself, every frame is the owner's
	mark      mark                   // the wait for bytes, for the watchdog

	bundle   atomic.Bool // an odd number of bundle delimiters went to the client
	registry atomic.Bool // registry data went to the client
	effects  atomic.Bool // a list of post effects did
	packs    int         // how often the client was asked for its known packs; for the owner once the pump has ended

	leftovers leftovers // what the client was shown; for the owner once the pump has ended

	ask   event
	reply chan verdict  // one slot
	quit  chan struct{} // closed by stop: end without a word
	once  sync.Once
	ended chan struct{} // closed when the goroutine is gone

	run      struct{ start, end int }
	appended int // bytes given to Append since a write was made for their sake
	tally    tally
}

// outlet is where a pump's frames go.
type outlet struct {
	w         *frame.Writer
	threshold int
	link      *link // nil: the client
}

// verdict is the owner's answer to a held frame.
type verdict uint8

const (
	forward verdict = iota // the frame goes on as it is
	handled                // it does not; the owner has sent whatever had to be sent
	again                  // it is of the state that the pump has just entered: look anew
)

// event is what a pump tells the owner. It is valid until the owner answers.
type event struct {
	pump    *pump
	packet  proto.Packet
	id      int32
	frame   frame.Frame
	body    []byte
	channel string // of a plugin message
	data    []byte // the plugin message's own bytes, the end of body

	failed  *outlet // set: writing there failed with err
	err     error   // with no failed outlet: reading ended
	outcome *dialed // a backend answered; no pump is waiting
	query   *query  // a backend that is being dialled asks
}

var errQuit = errors.New("the session is ending")

func newPump(s *Session, d proto.Dir, r *frame.Reader, threshold int, l *link) *pump {
	return &pump{s: s, dir: d, r: r, link: l, threshold: threshold, reply: make(chan verdict, 1), quit: make(chan struct{}), ended: make(chan struct{})}
}

// enter sets the state in which frames are read from now on.
func (p *pump) enter(st proto.State) {
	p.state = st
	p.classes = p.s.core.tables.get(p.s.client.version, st, p.dir)
	p.packets = p.s.client.version.Table(st, p.dir)
}

// start runs the pump; late is called when the side that is read has been silent for too long.
func (p *pump) start(late func()) {
	p.s.core.watchdog.watch(&p.mark, late)
	go p.work()
}

// stop makes the pump end without another word. Close or unblock what it reads and writes as well.
func (p *pump) stop() { p.once.Do(func() { close(p.quit) }) }

// work relays until the side that is read ends. It is the goroutine's function.
func (p *pump) work() {
	defer close(p.ended)
	defer p.s.core.watchdog.forget(&p.mark)
	defer p.s.caught()
	for {
		err := p.batch() // at first there may be frames that came with the end of the login
		p.tally.addTo(&p.s.core.Counters.Traffic[p.dir])
		if err == nil {
			p.mark.begin(p.s.core.watchdog.clock.now())
			err = p.r.Fill()
			p.mark.end()
		}
		if err != nil {
			if err != errQuit {
				p.ask = event{pump: p, err: err}
				p.tell()
			}
			return
		}
	}
}

// batch forwards the whole frames that are in the buffer.
func (p *pump) batch() error {
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

// class says what to do with a frame. Without anywhere to go each is the owner's.
func (p *pump) class(f frame.Frame, out *outlet) (c class) {
	if uint32(f.ID) < uint32(len(p.classes)) {
		c = p.classes[f.ID]
	}
	if out == nil {
		c = c&channeled | held
	}
	return c
}

// add puts a frame into the run, or frames it anew where its bytes are not valid on the other side.
func (p *pump) add(f frame.Frame, out *outlet) error {
	if frame.Passes(f, p.threshold, out.threshold) {
		if p.run.end == 0 {
			p.run.start = f.Start
		}
		p.run.end = f.End
		return nil
	}
	if !frame.Fits(f.Size(), out.threshold) {
		// It is the sender's to answer for: the other side is not to lose what is already on its way.
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
	out.w.Append(f.ID, body)
	if p.appended += len(body); p.appended >= maxAppended {
		p.appended = 0
		return p.flush(out)
	}
	return nil
}

// maxAppended is how many bytes of frames that have to be framed anew are gathered for one write. One read can hold a
// thousand times its size once it is inflated, and none of that may wait for the end of the batch.
const maxAppended = 256 << 10

// writeRun writes the run. What was appended before goes out in the same write.
func (p *pump) writeRun(out *outlet) error {
	if p.run.end == 0 {
		return nil
	}
	b := p.r.Raw(p.run.start, p.run.end)
	p.run.start, p.run.end = 0, 0
	if err := out.w.Run(b); err != nil {
		return p.unwritable(out, err)
	}
	return nil
}

// flush writes everything that waits to be written.
func (p *pump) flush(out *outlet) error {
	if out == nil {
		return nil
	}
	if p.run.end != 0 {
		return p.writeRun(out)
	}
	if err := out.w.Flush(); err != nil {
		return p.unwritable(out, err)
	}
	return nil
}

// unwritable reports a failed write. A client whose backend takes nothing more keeps being read: the owner decides
// what becomes of it.
func (p *pump) unwritable(out *outlet, err error) error {
	p.run.start, p.run.end = 0, 0
	p.ask = event{pump: p, failed: out, err: err}
	_, err = p.tell()
	return err
}

// send writes one held frame. The owner calls it, while the pump waits.
func (p *pump) send(e *event, to *outlet) error {
	if frame.Passes(e.frame, p.threshold, to.threshold) {
		return to.w.Run(p.r.Raw(e.frame.Start, e.frame.End))
	}
	return to.w.Packet(e.id, e.body)
}

// look opens a frame that is not a pass. It returns the outlet to use from here on, and whether the frame goes there.
func (p *pump) look(f frame.Frame, c class, out *outlet) (*outlet, bool, error) {
	packet := proto.Unknown
	if uint32(f.ID) < uint32(len(p.packets)) {
		packet = p.packets[f.ID]
	}
	if c&noted != 0 {
		switch packet {
		case proto.BundleDelimiter:
			p.bundle.Store(!p.bundle.Load())
		case proto.RegistryData:
			p.registry.Store(true)
		case proto.PostEffects:
			p.effects.Store(true)
		case proto.SelectKnownPacks:
			p.packs++
		}
		if c == noted {
			p.tally.passed++
			return out, true, nil
		}
	}
	body, err := p.r.Body(f)
	if err != nil {
		if p.dir == proto.Serverbound || c&held != 0 {
			return out, false, errors.Join(p.flush(out), err)
		}
		// The client may make sense of what we cannot: nobody is disconnected because we wanted to look.
		p.s.undecoded(packet)
		p.tally.passed++
		return out, true, nil
	}
	if c&observed != 0 && out != nil && p.s.observer != nil {
		if p.dir == proto.Clientbound {
			p.s.observer.Clientbound(p.state, packet, body)
		} else {
			p.s.observer.Serverbound(p.state, packet, body)
		}
	}
	if c&recorded != 0 && p.leftovers.see(p.s.client.protocol, packet, body) != nil && c&observed == 0 {
		p.s.undecoded(packet)
	}
	var channel string
	var data []byte
	if c&channeled != 0 {
		r := field.NewReader(body)
		name := r.StringBytes(field.MaxString)
		if err := r.Err(); err != nil {
			p.s.undecoded(packet)
		} else if out == nil || p.s.concerns(p.dir, name, r.Len()) {
			channel, data = string(name), r.Rest()
			c |= held
		}
	}
	if c&held == 0 {
		p.tally.tapped++
		return out, true, nil
	}
	if err := p.flush(out); err != nil {
		return out, false, err
	}
	p.tally.held++
	p.ask = event{pump: p, packet: packet, id: f.ID, frame: f, body: body, channel: channel, data: data}
	v, err := p.tell()
	if err != nil {
		return out, false, err
	}
	out = p.dest.Load()
	if v == again {
		return p.look(f, p.class(f, out), out)
	}
	return out, v == forward && out != nil, nil
}

// tell hands the event to the owner and waits for the answer.
func (p *pump) tell() (verdict, error) {
	select {
	case p.s.events <- &p.ask:
	case <-p.quit:
		return handled, errQuit
	}
	select {
	case v := <-p.reply:
		return v, nil
	case <-p.quit:
		return handled, errQuit
	}
}
