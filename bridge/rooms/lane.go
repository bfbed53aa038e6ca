package rooms

import (
	"fmt"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

// lane is an encoder and its frames for the peers that share it. A peer may share the encoder of its view only from a
// baseline on that was cut in the turn in which it was sent to the peer. An older one shows what may be hidden by now,
// and one of the same tick from another encoder could not be told from this one.
type lane struct {
	view    View
	shared  bool
	members int

	enc      state.Encoder
	base     state.Object // rounded
	epoch    int64
	baseTick int64
	next     int64 // tick of the next regular baseline

	turn      uint64 // in which the rest was made
	baseline  bool   // this is a turn of a baseline
	now       state.Object
	tick      int64
	idle      bool
	stateTick int64 // of the last state frame
	json, bin frames
}

// frames are the forms of one turn, made when they are asked for.
type frames struct{ baseline, snapshot, initial, state []byte }

func (h *Hub) viewOf(id string) View {
	if h.viewer == nil {
		return nil
	}
	return h.viewer.View(id)
}

func shareable(v View) bool { _, alone := v.(own); return !alone }

// leaveLane takes a peer off its encoder's frames.
func (h *Hub) leaveLane(p *Peer) {
	l := p.lane
	if p.lane = nil; l == nil {
		return
	}
	if l.members--; l.members == 0 && l.shared {
		delete(h.views, l.view)
	}
}

// enterLane gives a peer an encoder whose baseline is cut in this turn: that of its view, if the turn is for all and
// the others get theirs in it, or one of its own.
func (h *Hub) enterLane(p *Peer, tick, epoch int64, all bool) {
	h.leaveLane(p)
	sh := h.views[p.want]
	if sh == nil || !all || !sh.based(h.turn, tick, epoch) {
		sh = h.newLane(p.want)
	}
	sh.members++
	p.lane = sh
	h.share(sh)
}

func (h *Hub) newLane(v View) *lane {
	l := &lane{view: v, baseTick: -1}
	l.enc.Rounding = h.conf.Rounding
	l.enc.NotFinite = func(key string) {
		h.conf.Stats.Dropped.add("not_finite", 1)
		if !h.noted[key] && len(h.noted) < 100 {
			h.noted[key] = true
			h.log.Warn("a number of a room's state is none, and is shown as null", "field", key)
		}
	}
	return l
}

// share makes an encoder the one of its view, if there is none and may be one more.
func (h *Hub) share(l *lane) {
	if l.shared || !shareable(l.view) || h.views[l.view] != nil || len(h.views) >= maxViews {
		return
	}
	l.shared = true
	h.views[l.view] = l
}

// based reports whether this turn is one of a baseline.
func (l *lane) based(turn uint64, tick, epoch int64) bool {
	if l.turn == turn {
		return l.baseline
	}
	return l.baseTick < 0 || l.epoch != epoch || tick >= l.next
}

// stateError is the fault of a state that an authority shows.
type stateError struct{ error }

// object returns the state of a view, made once a turn.
func (h *Hub) object(v View) state.Object {
	if !shareable(v) {
		h.spare = h.auth.Snapshot(v, h.spare)
		return h.spare
	}
	o, ok := h.objects[v]
	if !ok {
		n := len(h.objects)
		if n == len(h.scratch) {
			h.scratch = append(h.scratch, nil)
		}
		o = h.auth.Snapshot(v, h.scratch[n])
		h.scratch[n] = o
		h.objects[v] = o
	}
	return o
}

// prepare rounds and compares, once a turn.
func (h *Hub) prepare(l *lane, tick, epoch int64) {
	if l.turn == h.turn {
		return
	}
	l.baseline = l.based(h.turn, tick, epoch)
	l.turn, l.tick = h.turn, tick
	l.json, l.bin = frames{}, frames{}
	o := h.object(l.view)
	if l.baseline {
		if err := o.Check(); err != nil {
			panic(stateError{err})
		}
		l.base = l.enc.Baseline(o)
		l.now = l.enc.Round(o)
		l.epoch, l.baseTick, l.next, l.stateTick = epoch, tick, tick+int64(h.conf.SimulationHz), tick
		return
	}
	l.now = l.enc.Round(o)
	if l.idle = !l.enc.Moved() && tick-l.stateTick < int64(h.conf.SimulationHz/4); !l.idle {
		l.stateTick = tick
	}
}

// Kinds of frames, by what a snapshot is for.
const (
	isBaseline = iota
	isSnapshot
	isInitial
	isState
)

func (f *frames) of(kind int) *[]byte {
	return [...]*[]byte{&f.baseline, &f.snapshot, &f.initial, &f.state}[kind]
}

var forms = [...]state.Form{state.FormBaseline, state.FormSnapshot, state.FormInitial, state.FormState}

// frame writes this turn's frame of a kind. It is binary where that is wanted and the codec has a form for it.
func (h *Hub) frame(l *lane, kind int, binary bool) (b []byte, isBinary bool) {
	if binary {
		at := l.bin.of(kind)
		if *at == nil {
			*at = h.pack(l, kind)
		}
		if len(*at) > 0 {
			return *at, true
		}
	}
	at := l.json.of(kind)
	if *at == nil {
		switch kind {
		case isBaseline:
			*at = frame.AppendBaseline(nil, l.epoch, l.tick, l.base)
		case isSnapshot, isInitial:
			*at = frame.AppendSnapshot(nil, l.epoch, l.tick, kind == isInitial, l.base)
		case isState:
			b := frame.AppendStateHead(make([]byte, 0, 512), l.baseTick, l.tick, l.epoch)
			b, _ = l.enc.AppendDelta(b, l.now)
			*at = append(b, '}')
		}
	}
	if len(*at) > maxState {
		panic(stateError{fmt.Errorf("rooms: a state of %d bytes; %d are the most", len(*at), maxState)})
	}
	return *at, false
}

// pack writes a binary frame; empty: there is none, and JSON has to do.
func (h *Hub) pack(l *lane, kind int) []byte {
	var b []byte
	var ok bool
	if kind == isState {
		b, _, ok = h.conf.Codec.AppendState(make([]byte, 0, 256), l.epoch, l.tick, l.baseTick, l.base, l.now)
	} else {
		b, ok = h.conf.Codec.AppendFull(nil, forms[kind], l.epoch, l.tick, l.base)
	}
	if !ok || len(b) == 0 || b[0] == '{' {
		h.conf.Stats.Dropped.add("codec", 1)
		return []byte{}
	}
	if len(b) > maxState {
		panic(stateError{fmt.Errorf("rooms: a state of %d bytes; %d are the most", len(b), maxState)})
	}
	return b
}

// pair sends a peer the baseline of this turn and the snapshot that belongs to it.
func (h *Hub) pair(p *Peer, tick, epoch int64, initial, recovery bool) {
	l := p.lane
	if p.ended || l == nil {
		return
	}
	h.prepare(l, tick, epoch)
	second := isSnapshot
	if initial {
		second = isInitial
	}
	a, binary := h.frame(l, isBaseline, p.binary != nil)
	b, too := h.frame(l, second, binary)
	if binary && !too {
		a, binary = h.frame(l, isBaseline, false)
	}
	p.sent.Store(tick)
	codec := "control json"
	if binary {
		codec = "control binary"
	}
	h.conf.Stats.Out.add(frame.Baseline, 1)
	h.conf.Stats.Out.add(frame.Snapshot, 1)
	h.conf.Stats.Bytes.add(codec, len(a)+len(b))
	var err error
	switch {
	case recovery && binary:
		p.binary.RecoverBinary(a, b)
	case recovery:
		p.conn.Recover(a, b)
	case binary:
		if err = p.binary.ControlBinary(a); err == nil {
			err = p.binary.ControlBinary(b)
		}
	default:
		if err = p.conn.Control(a); err == nil {
			err = p.conn.Control(b)
		}
	}
	if err != nil {
		h.end(p, frame.GoingAway, frame.Stalled, "stalled")
	}
}

// snapshot shows everybody the state of a tick.
func (h *Hub) snapshot(tick int64) {
	h.turn++
	clear(h.objects)
	epoch, now := h.auth.Epoch(), h.now()
	for _, s := range h.slots {
		if s.peer != nil {
			s.peer.want = h.viewOf(s.id)
		}
	}
	for _, s := range h.slots {
		if s.peer != nil {
			h.show(s.peer, tick, epoch, now)
		}
	}
}

// show sends one peer its view.
func (h *Hub) show(p *Peer, tick, epoch int64, now time.Duration) {
	acked := p.acked.Load()
	enters := p.lane == nil || p.lane.view != p.want
	switch {
	case !p.blocked && h.stuck(p, tick, acked):
		p.blocked, p.blockedAt, p.blockedOn, p.recovered = true, now, acked, now
		h.conf.Stats.Blocked.Add(1)
		h.recover(p, tick, epoch)
		return
	case p.blocked && acked > p.blockedOn:
		p.blocked, enters = false, true
		h.conf.Stats.Blocked.Add(-1)
	case p.blocked && now-p.blockedAt >= stallAfter:
		h.end(p, frame.GoingAway, frame.Stalled, "stalled")
		return
	case p.blocked:
		if now-p.recovered >= recoverEach {
			p.recovered = max(p.recovered+recoverEach, now-recoverEach)
			h.recover(p, tick, epoch)
		}
		return
	}
	switch {
	case enters:
		h.enterLane(p, tick, epoch, true)
	case !p.lane.shared && shareable(p.want):
		if sh := h.views[p.want]; sh == nil {
			h.share(p.lane)
		} else if sh.based(h.turn, tick, epoch) {
			h.enterLane(p, tick, epoch, true)
		}
	}
	l := p.lane
	h.prepare(l, tick, epoch)
	if l.baseline {
		h.pair(p, tick, epoch, enters, false)
		return
	}
	if l.idle && p.conn.Reliable() {
		return
	}
	b, binary := h.frame(l, isState, p.binary != nil)
	p.sent.Store(tick)
	h.conf.Stats.Out.add(frame.State, 1)
	if binary {
		h.conf.Stats.Bytes.add("state binary", len(b))
		p.binary.StateBinary(b)
	} else {
		h.conf.Stats.Bytes.add("state json", len(b))
		p.conn.State(b)
	}
}

// stuck reports whether a peer has been sent enough without acknowledging it.
func (h *Hub) stuck(p *Peer, tick, acked int64) bool {
	if tick-acked >= frame.AckWindow*h.each && p.sent.Load() > acked {
		return true
	}
	since := p.conn.Waiting()
	return !since.IsZero() && time.Since(since) >= waitsLong
}

// recover sends a peer that is behind the present state, by an encoder of its own.
func (h *Hub) recover(p *Peer, tick, epoch int64) {
	h.leaveLane(p)
	p.lane = h.newLane(p.want)
	p.lane.members++
	h.pair(p, tick, epoch, true, true)
}
