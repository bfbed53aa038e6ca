package state

import "errors"

// Snapshot is a state as it is shown.
type Snapshot struct {
	Epoch, Tick int64
	Initial     bool
	State       Object
}

// Result is the outcome of a frame.
type Result uint8

// The results. Only an applied frame gives a snapshot, and is acknowledged.
const (
	Applied    Result = iota
	Based             // a baseline, which later frames are relative to
	Stale             // older than what is shown
	OtherBase         // relative to another baseline than the last one
	OtherEpoch        // of another epoch
)

// ErrFrame is the error of a frame that no server sends.
var ErrFrame = errors.New("state: a malformed frame")

// Decoder shows states as a client does. The zero value is ready. It is not for use by several goroutines at once.
type Decoder struct {
	base        Object
	epoch, tick int64 // of the baseline
	based       bool
	shown       int64
	showing     bool
}

// beside returns the fields of a frame that are not the state's.
func beside(o Object) Object {
	out := make(Object, 0, len(o))
	for _, m := range o {
		switch m.Key {
		case "type", "epoch", "tick", "initial", "base", "delta":
		default:
			out = append(out, m)
		}
	}
	return out
}

func whole(o Object, key string) (int64, bool) {
	v, ok := o.Get(key)
	return v.Int(), ok && v.kind == Int
}

// Apply takes a baseline, snapshot or state frame. Its results do not change later.
func (d *Decoder) Apply(frame Object) (*Snapshot, Result, error) {
	kind, _ := frame.Get("type")
	epoch, ok := whole(frame, "epoch")
	tick, fine := whole(frame, "tick")
	if !ok || !fine {
		return nil, 0, ErrFrame
	}
	switch kind.Str() {
	case "baseline":
		d.Base(epoch, tick, beside(frame))
		return nil, Based, nil
	case "snapshot":
		first, _ := frame.Get("initial")
		return d.Show(epoch, tick, first.Bool(), beside(frame))
	case "state":
		base, ok := whole(frame, "base")
		delta, has := frame.Get("delta")
		if !ok || !has || delta.kind != Obj {
			return nil, 0, ErrFrame
		}
		if r := d.Fits(epoch, tick, base); r != Applied {
			return nil, r, nil
		}
		s, err := patch(d.base, delta.sub)
		if err != nil {
			return nil, 0, err
		}
		return &Snapshot{Epoch: epoch, Tick: tick, State: s}, Applied, nil
	}
	return nil, 0, ErrFrame
}

// Base takes a baseline.
func (d *Decoder) Base(epoch, tick int64, o Object) {
	d.base, d.epoch, d.tick, d.based = o, epoch, tick, true
}

// Baseline returns the last baseline; false: there is none yet.
func (d *Decoder) Baseline() (Object, bool) { return d.base, d.based }

// IsBase reports whether a tick is that of the last baseline.
func (d *Decoder) IsBase(tick int64) bool { return d.based && tick == d.tick }

// Show takes a full state.
func (d *Decoder) Show(epoch, tick int64, initial bool, o Object) (*Snapshot, Result, error) {
	switch {
	case d.based && epoch != d.epoch:
		return nil, OtherEpoch, nil
	case !initial && d.showing && tick <= d.shown:
		return nil, Stale, nil
	}
	d.shown, d.showing = tick, true
	return &Snapshot{epoch, tick, initial, o}, Applied, nil
}

// Fits reports whether a difference can be shown. Then it is what is shown.
func (d *Decoder) Fits(epoch, tick, base int64) Result {
	switch {
	case !d.based || base != d.tick:
		return OtherBase
	case epoch != d.epoch:
		return OtherEpoch
	case d.showing && tick <= d.shown:
		return Stale
	}
	d.shown, d.showing = tick, true
	return Applied
}

// patch makes the state that a delta describes, and leaves base as it is.
func patch(base, delta Object) (Object, error) {
	out := base
	if remove, ok := delta.Get("remove"); ok {
		if remove.kind != List {
			return nil, ErrFrame
		}
		for _, path := range remove.sub {
			if path.Value.kind != List || len(path.Value.sub) == 0 {
				return nil, ErrFrame
			}
			var err error
			if out, err = without(out, path.Value.sub); err != nil {
				return nil, err
			}
		}
	}
	set, ok := delta.Get("set")
	if !ok || set.kind != Obj {
		return nil, ErrFrame
	}
	return merge(out, set.sub), nil
}

// without returns o without the values at the ends of paths, sharing the rest.
func without(o Object, path []Member) (Object, error) {
	if path[0].Value.kind != Str {
		return nil, ErrFrame
	}
	key := path[0].Value.str
	v, ok := o.Get(key)
	if !ok {
		return o, nil
	}
	if len(path) == 1 {
		return append(Object(nil), o...).Without(key), nil
	}
	if v.kind != Obj {
		return o, nil
	}
	inner, err := without(v.sub, path[1:])
	if err != nil {
		return nil, err
	}
	return append(Object(nil), o...).Set(key, OfObj(inner)), nil
}

// merge returns o with the values of set, sharing the rest.
func merge(o, set Object) Object {
	if len(set) == 0 {
		return o
	}
	out := make(Object, 0, len(o)+len(set))
	i, j := 0, 0
	for i < len(o) || j < len(set) {
		switch {
		case j == len(set) || i < len(o) && o[i].Key < set[j].Key:
			out = append(out, o[i])
			i++
		case i == len(o) || set[j].Key < o[i].Key:
			out = append(out, set[j])
			j++
		default:
			m := set[j]
			if m.Value.kind == Obj && o[i].Value.kind == Obj {
				m.Value = OfObj(merge(o[i].Value.sub, m.Value.sub))
			}
			out = append(out, m)
			i++
			j++
		}
	}
	return out
}
