package state

import "math"

// Decimals is the default number of decimal places of floats.
const Decimals = 4

// Rounding says with how many decimal places floats travel. The zero value rounds to none.
type Rounding struct {
	Default int
	Fields  map[string]int // by key, wherever it is
}

// Rounded returns the usual one.
func Rounded() Rounding { return Rounding{Default: Decimals} }

func (r Rounding) of(key string) int {
	if r.Fields != nil {
		if d, ok := r.Fields[key]; ok {
			return d
		}
	}
	return r.Default
}

var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// Quantise rounds to d decimal places, half away from zero, and never to -0. A float64 too large for so many places
// stays as it is. ok is false for NaN and the infinities.
func Quantise(v float64, d int) (q float64, ok bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	ten := tens[min(max(d, 0), len(tens)-1)]
	if math.Abs(v) >= 1<<53/ten {
		return v, true
	}
	return math.Round(v*ten)/ten + 0, true
}

// Same reports whether a float32 of their size cannot tell two floats apart.
func Same(a, b float64) bool {
	if a == b {
		return true
	}
	big := max(math.Abs(a), math.Abs(b))
	return math.Abs(a-b) <= math.Ldexp(1, max(math.Ilogb(big)-23, -149))
}

// Equal reports whether a receiver need not be told of the difference between two values.
func Equal(a, b Value) bool {
	if a.kind != b.kind {
		if a.kind == Int && b.kind == Float || a.kind == Float && b.kind == Int {
			return a.Float() == b.Float()
		}
		return false
	}
	switch a.kind {
	case Float:
		return Same(math.Float64frombits(a.num), math.Float64frombits(b.num))
	case Str:
		return a.str == b.str
	case List, Obj:
		if len(a.sub) != len(b.sub) {
			return false
		}
		for i := range a.sub {
			if a.sub[i].Key != b.sub[i].Key || !Equal(a.sub[i].Value, b.sub[i].Value) {
				return false
			}
		}
		return true
	}
	return a.num == b.num
}

// Encoder makes frames of states: a baseline, and differences from it. It is not for use by several goroutines at once.
type Encoder struct {
	Rounding Rounding
	// NotFinite is called with the key of each NaN and infinity, which goes out as null. It may be nil.
	NotFinite func(key string)

	base  Object
	now   Object // rounded
	moved bool   // what Round wrote over was different
	path  []string
	gone  []byte
	set   []byte
}

// Round returns o with its floats rounded, in memory of the encoder that is valid until the next call.
func (e *Encoder) Round(o Object) Object {
	e.moved = false
	e.now = e.round(e.now, o)
	return e.now
}

// Moved reports whether the last Round gave something that a receiver of the one before it has to be told of.
// Differences that a float32 cannot tell do not add up here: whoever goes by it has to send a state from time to time
// all the same.
func (e *Encoder) Moved() bool { return e.moved }

// Baseline makes o the baseline of later differences, and returns it rounded, valid until the next call.
func (e *Encoder) Baseline(o Object) Object {
	e.base = e.round(e.base, o)
	return e.base
}

// round copies o into the memory of dst.
func (e *Encoder) round(dst, o Object) Object {
	if len(dst) != len(o) {
		e.moved = true
	}
	for cap(dst) < len(o) {
		dst = append(dst[:cap(dst)], Member{})
	}
	dst = dst[:len(o)]
	for i := range o {
		if dst[i].Key != o[i].Key {
			dst[i].Key, e.moved = o[i].Key, true
		}
		e.roundValue(&dst[i].Value, &o[i].Value, o[i].Key)
	}
	return dst
}

func (e *Encoder) roundValue(dst, v *Value, key string) {
	sub := dst.sub
	same := dst.kind == v.kind
	switch v.kind {
	case Float:
		q, ok := Quantise(math.Float64frombits(v.num), e.Rounding.of(key))
		if ok {
			same = same && Same(math.Float64frombits(dst.num), q)
		} else {
			same = dst.kind == Null
		}
		if *dst = (Value{kind: Float, num: math.Float64bits(q), sub: sub[:0]}); !ok {
			dst.kind, dst.num = Null, 0
			if e.NotFinite != nil {
				e.NotFinite(key)
			}
		}
	case Obj:
		*dst = Value{kind: Obj, sub: e.round(sub, v.sub)}
	case List:
		for cap(sub) < len(v.sub) {
			sub = append(sub[:cap(sub)], Member{})
		}
		same = same && len(dst.sub) == len(v.sub)
		sub = sub[:len(v.sub)]
		for i := range v.sub {
			sub[i].Key = ""
			e.roundValue(&sub[i].Value, &v.sub[i].Value, key)
		}
		*dst = Value{kind: List, sub: sub}
	default:
		same = same && dst.num == v.num && dst.str == v.str
		*dst = *v
		dst.sub = sub[:0]
	}
	if !same {
		e.moved = true
	}
}

// AppendFull writes the members of o, each with a comma in front, to stand flat beside others in a frame.
func AppendFull(dst []byte, o Object) []byte {
	for _, m := range o {
		dst = append(AppendStr(append(dst, ','), m.Key), ':')
		dst = m.Value.AppendJSON(dst)
	}
	return dst
}

// AppendState writes the value of delta: all differences between the baseline and o. some is false where there is none.
func (e *Encoder) AppendState(dst []byte, o Object) (out []byte, some bool) {
	return e.AppendDelta(dst, e.Round(o))
}

// AppendDelta does as AppendState, for a state that is rounded already.
func (e *Encoder) AppendDelta(dst []byte, now Object) (out []byte, some bool) {
	e.path, e.gone, e.set = e.path[:0], e.gone[:0], e.set[:0]
	e.diff(e.base, now)
	dst = append(dst, '{')
	if len(e.gone) > 0 {
		dst = append(append(append(dst, `"remove":[`...), e.gone...), `],`...)
	}
	dst = append(append(append(dst, `"set":{`...), e.set...), `}}`...)
	return dst, len(e.gone) > 0 || len(e.set) > 0
}

// diff writes the steps from a to b, both of one place in the tree, to e.set and e.gone. It writes nothing about equal
// parts.
func (e *Encoder) diff(a, b Object) {
	begin := len(e.set)
	key := func(k string) {
		if len(e.set) > begin {
			e.set = append(e.set, ',')
		}
		e.set = append(AppendStr(e.set, k), ':')
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case j == len(b) || i < len(a) && a[i].Key < b[j].Key:
			e.remove(a[i].Key)
			i++
		case i == len(a) || b[j].Key < a[i].Key:
			key(b[j].Key)
			e.set = b[j].Value.AppendJSON(e.set)
			j++
		default:
			was, is := &a[i].Value, &b[j].Value
			switch {
			case was.kind == Obj && is.kind == Obj:
				back := len(e.set)
				key(b[j].Key)
				e.set = append(e.set, '{')
				inside := len(e.set)
				e.path = append(e.path, b[j].Key)
				e.diff(was.sub, is.sub)
				e.path = e.path[:len(e.path)-1]
				if len(e.set) == inside {
					e.set = e.set[:back]
				} else {
					e.set = append(e.set, '}')
				}
			case was.kind == Obj || is.kind == Obj:
				e.remove(b[j].Key)
				key(b[j].Key)
				e.set = is.AppendJSON(e.set)
			case !Equal(*was, *is):
				key(b[j].Key)
				e.set = is.AppendJSON(e.set)
			}
			i++
			j++
		}
	}
}

func (e *Encoder) remove(key string) {
	if len(e.gone) > 0 {
		e.gone = append(e.gone, ',')
	}
	e.gone = append(e.gone, '[')
	for _, k := range e.path {
		e.gone = append(AppendStr(e.gone, k), ',')
	}
	e.gone = append(AppendStr(e.gone, key), ']')
}
