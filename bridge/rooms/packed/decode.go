package packed

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

// Frame is a decoded frame. State is whole, even for a frame of the kind [State].
type Frame struct {
	Kind              Kind
	Epoch, Tick, Base int64
	State             state.Object
}

// Decode reads a frame. baseline returns the state that a state frame is relative to, or false where the receiver does
// not have that: then State is nil.
func (s *Schema) Decode(b []byte, baseline func(base int64) (state.Object, bool)) (*Frame, error) {
	d := reader{b: b}
	f := &Frame{}
	if d.byte() != version {
		return nil, ErrFrame
	}
	f.Kind = Kind(d.byte())
	f.Epoch, f.Tick = d.signed(), int64(d.number())
	var was state.Object
	known := true
	switch f.Kind {
	case Baseline, Snapshot, Initial:
	case State:
		f.Base = int64(d.number())
		if was, known = baseline(f.Base); !known {
			return f, nil
		}
	default:
		return nil, ErrFrame
	}
	if f.Tick < 0 || f.Base < 0 || d.bad {
		return nil, ErrFrame
	}
	out := state.Object{}
	var room [MaxFields]state.Member
	for i := range s.tables {
		t := &s.tables[i]
		var rows state.Object
		if f.Kind == State {
			before, _ := t.rows(was, room[:0])
			if t.Key == "" {
				before = state.Object{{Key: "", Value: state.OfObj(before)}}
			}
			rows = t.patch(&d, before)
		} else {
			rows = t.whole(&d)
		}
		if d.bad {
			return nil, ErrFrame
		}
		switch {
		case t.Key != "":
			if len(rows) > 0 || f.Kind != State || has(was, t.Key) {
				out = out.Set(t.Key, state.OfObj(rows))
			}
		case len(rows) != 1 || rows[0].Key != "":
			return nil, ErrFrame
		default:
			for _, m := range rows[0].Value.Obj() {
				out = out.Set(m.Key, m.Value)
			}
		}
	}
	if len(d.b) > 0 {
		return nil, ErrFrame
	}
	f.State = out
	return f, nil
}

func has(o state.Object, key string) bool { _, ok := o.Get(key); return ok }

// reader takes values off a frame.
type reader struct {
	b   []byte
	bad bool
}

func (d *reader) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

// number reads an unsigned number in its shortest form.
func (d *reader) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || n > 1 && d.b[n-1] == 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *reader) signed() int64 {
	u := d.number()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

func (d *reader) text(most int) string {
	n := d.number()
	if d.bad || n > uint64(most) || n > uint64(len(d.b)) || !utf8.Valid(d.b[:n]) {
		d.bad = true
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// mask reads bits of fields.
func (t *Table) mask(d *reader) uint64 {
	m := d.number()
	if m>>len(t.Fields) != 0 {
		d.bad = true
	}
	return m
}

// value reads a value relative to what the receiver has.
func (o Of) value(d *reader, was *state.Value) state.Value {
	switch o {
	case Int:
		return state.OfInt(was.Int() + d.signed())
	case Bool:
		c := d.byte()
		d.bad = d.bad || c > 1
		return state.OfBool(c == 1)
	case Str:
		return state.OfStr(d.text(maxText))
	}
	n := o.units(was) + d.signed()
	v := state.OfFloat(float64(n) / tens[o])
	if !o.holds(v) || o.units(&v) != n {
		d.bad = true
	}
	return v
}

// whole reads a table of a full state.
func (t *Table) whole(d *reader) state.Object {
	n := d.number()
	if n > maxRows || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	rows := state.Object{}
	for range n {
		key, o := t.row(d)
		if d.bad || len(rows) > 0 && rows[len(rows)-1].Key >= key {
			d.bad = true
			return nil
		}
		rows = append(rows, state.Member{Key: key, Value: state.OfObj(o)})
	}
	return rows
}

// row reads a row that the receiver does not have.
func (t *Table) row(d *reader) (string, state.Object) {
	key := d.text(maxKey)
	present, null := t.mask(d), t.mask(d)
	if null&^present != 0 {
		d.bad = true
	}
	if d.bad {
		return "", nil
	}
	var r row
	r.present, r.null = present, null
	if t.values(d, &r, present&^null, nil); d.bad {
		return "", nil
	}
	return key, t.object(&r)
}

// values reads the values of some fields into r.
func (t *Table) values(d *reader, r *row, fields uint64, was *row) {
	made := make([]state.Value, bits.OnesCount64(fields))
	for i := range t.Fields {
		if bit := uint64(1) << i; fields&bit != 0 && !d.bad {
			before := &none
			if was != nil && was.present&^was.null&bit != 0 {
				before = was.values[i]
			}
			made[0] = t.Fields[i].Of.value(d, before)
			r.values[i], made = &made[0], made[1:]
		}
	}
}

// object makes a row's members.
func (t *Table) object(r *row) state.Object {
	o := state.Object{}
	for _, i := range t.byKey {
		bit := uint64(1) << i
		switch {
		case r.present&bit == 0:
		case r.null&bit != 0:
			o = append(o, state.Member{Key: t.Fields[i].Key})
		default:
			o = append(o, state.Member{Key: t.Fields[i].Key, Value: *r.values[i]})
		}
	}
	return o
}

// patch reads the changes of a table, and returns its rows with them.
func (t *Table) patch(d *reader, before state.Object) state.Object {
	n := d.number()
	if n > 2*maxRows || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	out := make(state.Object, 0, len(before))
	at, last, some := 0, "", false // last is the key of the last row that was handled
	add := func(m state.Member) {
		if len(out) > 0 && out[len(out)-1].Key >= m.Key {
			d.bad = true
		}
		out = append(out, m)
	}
	// upTo copies the rows before a slot.
	upTo := func(slot uint64) {
		if slot >= uint64(len(before)) || slot < uint64(at) {
			d.bad = true
			return
		}
		for ; at < int(slot); at++ {
			add(before[at])
		}
	}
	for range n {
		h := d.number()
		slot := h >> 2
		if d.bad {
			return nil
		}
		switch h & 3 {
		case removed:
			if upTo(slot); d.bad {
				return nil
			}
			last, some = before[at].Key, true
			at++
		case added:
			key, o := t.row(d)
			if d.bad || slot != 0 {
				d.bad = true
				return nil
			}
			for at < len(before) && before[at].Key < key {
				add(before[at])
				at++
			}
			if at < len(before) && before[at].Key == key || some && key <= last {
				d.bad = true
				return nil
			}
			last, some = key, true
			add(state.Member{Key: key, Value: state.OfObj(o)})
		default:
			if upTo(slot); d.bad {
				return nil
			}
			var was, r row
			if !t.read(before[at].Value.Obj(), &was) {
				d.bad = true
				return nil
			}
			r = was
			fields := t.mask(d)
			var null, absent uint64
			if h&3 == changedWithLosses {
				null, absent = t.mask(d), t.mask(d)
			}
			// An encoder never writes these: nothing at all, a loss of something that was not there, the longer form
			// without a loss.
			if d.bad || null&^fields != 0 || fields&absent != 0 || absent&^was.present != 0 || null&was.null != 0 ||
				fields|absent == 0 || h&3 == changedWithLosses && null|absent == 0 {
				d.bad = true
				return nil
			}
			r.present = (was.present | fields) &^ absent
			r.null = (was.null | null) &^ (fields &^ null) &^ absent
			if t.values(d, &r, fields&^null, &was); d.bad {
				return nil
			}
			for i := range t.Fields {
				if bit := uint64(1) << i; fields&^null&bit != 0 && was.present&^was.null&bit != 0 && state.Equal(*was.values[i], *r.values[i]) {
					d.bad = true // no change
				}
			}
			last, some = before[at].Key, true
			add(state.Member{Key: before[at].Key, Value: state.OfObj(t.object(&r))})
			at++
		}
		if d.bad {
			return nil
		}
	}
	for ; at < len(before); at++ {
		add(before[at])
	}
	return out
}
