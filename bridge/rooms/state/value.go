// Package state holds what a room shows: trees of values, their JSON, and the difference of two of them. It promises
// that a baseline and a difference give back the state they were made from, up to the rounding of floats, and that
// neither making nor comparing states allocates once it has done so before.
package state

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Kind is the type of a value.
type Kind uint8

// The kinds. Int and Float are kept apart: ints compare exactly, floats as far as a float32 tells them apart.
const (
	Null Kind = iota
	Bool
	Int
	Float
	Str
	List
	Obj
)

// Value is one value. The zero Value is null.
type Value struct {
	kind Kind
	num  uint64 // of Bool 0 or 1, of Int the number, of Float its bits
	str  string
	sub  []Member // of Obj by key, of List without keys
}

// Member is a value of an object, and its name.
type Member struct {
	Key   string
	Value Value
}

// Object holds the members of an object, with keys in ascending order of their bytes and none twice. [Object.Check]
// tells.
type Object []Member

// Of makes a value of a bool, a string, an int, int64, float64, an Object, a []Value or nil. Anything else is a mistake
// of the program, and panics.
func Of(v any) Value {
	switch v := v.(type) {
	case nil:
		return Value{}
	case bool:
		return OfBool(v)
	case string:
		return OfStr(v)
	case int:
		return OfInt(int64(v))
	case int64:
		return OfInt(v)
	case float64:
		return OfFloat(v)
	case Object:
		return OfObj(v)
	case []Value:
		return OfList(v...)
	case Value:
		return v
	}
	panic(fmt.Sprintf("state: no value of a %T", v))
}

// OfBool makes a truth value.
func OfBool(v bool) Value {
	if v {
		return Value{kind: Bool, num: 1}
	}
	return Value{kind: Bool}
}

// OfInt makes a number that is compared exactly.
func OfInt(v int64) Value { return Value{kind: Int, num: uint64(v)} }

// OfFloat makes a number that is rounded. NaN and the infinities become null when they are sent.
func OfFloat(v float64) Value { return Value{kind: Float, num: math.Float64bits(v)} }

// OfStr makes a text.
func OfStr(v string) Value { return Value{kind: Str, str: v} }

// OfObj makes an object, which keeps o.
func OfObj(o Object) Value { return Value{kind: Obj, sub: o} }

// OfList makes a list. Lists are compared and sent whole.
func OfList(v ...Value) Value {
	sub := make([]Member, len(v))
	for i := range v {
		sub[i].Value = v[i]
	}
	return Value{kind: List, sub: sub}
}

// Kind returns the type of the value.
func (v Value) Kind() Kind { return v.kind }

// Bool returns a truth value; false of anything else.
func (v Value) Bool() bool { return v.kind == Bool && v.num == 1 }

// Int returns a whole number; 0 of anything else.
func (v Value) Int() int64 {
	if v.kind != Int {
		return 0
	}
	return int64(v.num)
}

// Float returns a number of either kind; 0 of anything else.
func (v Value) Float() float64 {
	switch v.kind {
	case Int:
		return float64(int64(v.num))
	case Float:
		return math.Float64frombits(v.num)
	}
	return 0
}

// Str returns a text; "" of anything else.
func (v Value) Str() string { return v.str }

// Obj returns the members of an object; nil of anything else.
func (v Value) Obj() Object {
	if v.kind != Obj {
		return nil
	}
	return v.sub
}

// Len returns how many values a list or an object has.
func (v Value) Len() int { return len(v.sub) }

// At returns a value of a list.
func (v Value) At(i int) Value { return v.sub[i].Value }

// Get returns the value of a key; false: there is none.
func (o Object) Get(key string) (Value, bool) {
	at, ok := slices.BinarySearchFunc(o, key, func(m Member, k string) int { return strings.Compare(m.Key, k) })
	if !ok {
		return Value{}, false
	}
	return o[at].Value, true
}

// Set returns the object with a key's value changed, or added in its place.
func (o Object) Set(key string, v Value) Object {
	at, ok := slices.BinarySearchFunc(o, key, func(m Member, k string) int { return strings.Compare(m.Key, k) })
	if ok {
		o[at].Value = v
		return o
	}
	return slices.Insert(o, at, Member{key, v})
}

// Without returns the object without a key.
func (o Object) Without(key string) Object {
	at, ok := slices.BinarySearchFunc(o, key, func(m Member, k string) int { return strings.Compare(m.Key, k) })
	if !ok {
		return o
	}
	return slices.Delete(o, at, at+1)
}

// Sort puts members that were appended in any order into theirs. A later one of the same key is dropped.
func (o Object) Sort() Object {
	slices.SortStableFunc(o, func(a, b Member) int { return cmp.Compare(a.Key, b.Key) })
	return slices.CompactFunc(o, func(a, b Member) bool { return a.Key == b.Key })
}

// MaxDepth bounds how deep values may lie in each other.
const MaxDepth = 32

// Reserved has the keys at the top of a state and of welcome fields that belong to frames.
var Reserved = []string{"type", "protocol", "id", "resume", "capacity", "sequence", "epoch", "tick", "initial", "base", "delta", "stateCodec"}

// Check returns what is wrong with a state: keys that are reserved, out of order or twice, or values too deep in each
// other.
func (o Object) Check() error {
	for _, m := range o {
		if slices.Contains(Reserved, m.Key) {
			return fmt.Errorf("state: the key %q is one of the frame's", m.Key)
		}
	}
	return check(o, 1)
}

func check(o Object, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("state: more than %d objects in each other", MaxDepth)
	}
	for i, m := range o {
		if i > 0 && o[i-1].Key >= m.Key {
			return fmt.Errorf("state: the key %q does not follow %q", m.Key, o[i-1].Key)
		}
		if err := checkValue(m.Value, depth); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(v Value, depth int) error {
	switch v.kind {
	case Obj:
		return check(v.sub, depth+1)
	case List:
		if depth+1 > MaxDepth {
			return fmt.Errorf("state: more than %d values in each other", MaxDepth)
		}
		for _, m := range v.sub {
			if err := checkValue(m.Value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Clone returns a value that shares no memory with this one except its texts.
func (v Value) Clone() Value {
	if v.sub != nil {
		sub := make([]Member, len(v.sub))
		for i, m := range v.sub {
			sub[i] = Member{m.Key, m.Value.Clone()}
		}
		v.sub = sub
	}
	return v
}

// Clone returns an object that shares no memory with this one except its texts.
func (o Object) Clone() Object { return OfObj(o).Clone().sub }
