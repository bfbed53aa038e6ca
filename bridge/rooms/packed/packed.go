// Package packed is the binary form of states, packed-1: rows of tables whose fields a schema knows, with bit masks for
// present and null fields, and numbers as differences from the baseline. It promises that whatever it decodes encodes
// to the same bytes, that a decoder reserves nothing that the frame has no bytes for, and that no frame begins with the
// brace of JSON.
package packed

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

// Name is the codec's name in a welcome.
const Name = "packed-1"

// version is the first byte of every frame.
const version = 0x01

// Kind is the kind of a frame.
type Kind = state.Form

// The kinds, as they travel.
const (
	Baseline = state.FormBaseline
	Snapshot = state.FormSnapshot
	Initial  = state.FormInitial // a snapshot that a receiver begins with
	State    = state.FormState
)

// Changes of a row, as they travel.
const (
	changed           uint64 = 0
	removed           uint64 = 1
	added             uint64 = 2
	changedWithLosses uint64 = 3
)

// Bounds of decoding.
const (
	maxRows = 65_536
	maxKey  = 64 // bytes
	maxText = 1 << 16
	// MaxFields bounds the fields of a table.
	MaxFields = 32
)

// Of is the type of a field: one of [Int], [Bool], [Str], or [Dec].
type Of int8

// Types of fields, [Dec] apart.
const (
	Int  Of = -1
	Bool Of = -2
	Str  Of = -3
)

// Dec returns a float of so many decimal places, 0 to 9.
func Dec(places int) Of { return Of(min(max(places, 0), 9)) }

// Field is a column of a table.
type Field struct {
	Key string
	Of  Of
}

// Table is a member of a state whose members are rows. With an empty key it has one row: the scalars at the top of the
// state.
type Table struct {
	Key    string
	Fields []Field

	byKey []int // of Fields, by key
}

// Schema describes states.
type Schema struct{ tables []Table }

// NewSchema makes a schema. Tables are in the order in which they travel. It panics on more than [MaxFields] fields or
// a key twice, which are mistakes of the program.
func NewSchema(tables ...Table) *Schema {
	s := &Schema{slices.Clone(tables)}
	for i := range s.tables {
		t := &s.tables[i]
		t.byKey = make([]int, len(t.Fields))
		for k := range t.byKey {
			t.byKey[k] = k
		}
		slices.SortFunc(t.byKey, func(a, b int) int { return strings.Compare(t.Fields[a].Key, t.Fields[b].Key) })
		for k := range t.byKey[:max(len(t.byKey)-1, 0)] {
			if t.Fields[t.byKey[k]].Key == t.Fields[t.byKey[k+1]].Key {
				panic("packed: the field " + t.Fields[t.byKey[k]].Key + " twice")
			}
		}
		if len(t.Fields) > MaxFields {
			panic("packed: too many fields in " + t.Key)
		}
	}
	return s
}

// Name implements [state.Codec].
func (s *Schema) Name() string { return Name }

// row has the values of a row by the index of their field, where they are present.
type row struct {
	present, null uint64
	values        [MaxFields]*state.Value
}

// scratch is an encoder's memory, so that it allocates nothing.
type scratch struct {
	a, b         row
	aroom, broom [MaxFields]state.Member
	alone        [2][1]state.Member
}

var pool = sync.Pool{New: func() any { return new(scratch) }}

var none state.Value

// read puts a row's members where their fields are; false: the schema has not all of them.
func (t *Table) read(o state.Object, r *row) bool {
	r.present, r.null = 0, 0
	k := 0
	for i := range o {
		m := &o[i]
		for k < len(t.byKey) && t.Fields[t.byKey[k]].Key != m.Key {
			if t.Fields[t.byKey[k]].Key > m.Key {
				return false
			}
			k++
		}
		if k == len(t.byKey) {
			return false
		}
		at := t.byKey[k]
		r.present |= 1 << at
		r.values[at] = &m.Value
		if m.Value.Kind() == state.Null {
			r.null |= 1 << at
			continue
		}
		if !t.Fields[at].Of.holds(m.Value) {
			return false
		}
	}
	return true
}

var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// holds reports whether a field can have a value.
func (o Of) holds(v state.Value) bool {
	switch o {
	case Int:
		return v.Kind() == state.Int
	case Bool:
		return v.Kind() == state.Bool
	case Str:
		return v.Kind() == state.Str && len(v.Str()) <= maxText
	}
	f := v.Float()
	return v.Kind() == state.Float && math.Abs(f) < 1<<53/tens[o] && math.Round(f*tens[o])/tens[o] == f
}

// rows returns the rows of a table in a state.
func (t *Table) rows(o state.Object, room state.Object) (rows state.Object, ok bool) {
	if t.Key != "" {
		v, has := o.Get(t.Key)
		return v.Obj(), !has || v.Kind() == state.Obj
	}
	scalars := room[:0]
	for _, m := range o {
		if m.Value.Kind() != state.Obj {
			scalars = append(scalars, m)
		}
	}
	return scalars, true
}

// covers reports whether every member of a state belongs to a table.
func (s *Schema) covers(o state.Object) bool {
	for _, m := range o {
		want := m.Key
		if m.Value.Kind() != state.Obj {
			want = ""
		}
		if !slices.ContainsFunc(s.tables, func(t Table) bool { return t.Key == want }) {
			return false
		}
	}
	return true
}

func head(dst []byte, k Kind, epoch, tick int64) []byte {
	dst = binary.AppendVarint(append(dst, version, byte(k)), epoch)
	return binary.AppendUvarint(dst, uint64(tick))
}

// AppendFull writes a state whole; false: the schema does not fit it, and nothing is written.
func (s *Schema) AppendFull(dst []byte, k Kind, epoch, tick int64, o state.Object) ([]byte, bool) {
	from := len(dst)
	if !s.covers(o) {
		return dst, false
	}
	dst = head(dst, k, epoch, tick)
	tmp := pool.Get().(*scratch)
	defer pool.Put(tmp)
	for i := range s.tables {
		t := &s.tables[i]
		rows, ok := t.rows(o, tmp.aroom[:0])
		if !ok {
			return dst[:from], false
		}
		if t.Key == "" {
			dst = binary.AppendUvarint(dst, 1)
			if dst, ok = t.appendRow(dst, "", rows, &tmp.a); !ok {
				return dst[:from], false
			}
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(rows)))
		if len(rows) > maxRows {
			return dst[:from], false
		}
		for _, m := range rows {
			if m.Value.Kind() != state.Obj {
				return dst[:from], false
			}
			if dst, ok = t.appendRow(dst, m.Key, m.Value.Obj(), &tmp.a); !ok {
				return dst[:from], false
			}
		}
	}
	return dst, true
}

// appendRow writes a row that the receiver does not have.
func (t *Table) appendRow(dst []byte, key string, o state.Object, r *row) ([]byte, bool) {
	if len(key) > maxKey || !t.read(o, r) {
		return dst, false
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(key))), key...)
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, r.present), r.null)
	for i := range t.Fields {
		if bit := uint64(1) << i; r.present&^r.null&bit != 0 {
			dst = t.Fields[i].Of.append(dst, r.values[i], &none)
		}
	}
	return dst, true
}

// units returns a float in units of the last place.
func (o Of) units(v *state.Value) int64 {
	if v.Kind() != state.Float {
		return 0
	}
	return int64(math.Round(v.Float() * tens[o]))
}

// append writes a value relative to what the receiver has.
func (o Of) append(dst []byte, v, was *state.Value) []byte {
	switch o {
	case Int:
		return binary.AppendVarint(dst, v.Int()-was.Int())
	case Bool:
		if v.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	case Str:
		return append(binary.AppendUvarint(dst, uint64(len(v.Str()))), v.Str()...)
	}
	return binary.AppendVarint(dst, o.units(v)-o.units(was))
}

// AppendState writes the differences between a baseline and now, both rounded. some is false where there is none; ok is
// false where the schema does not fit, and nothing is written.
func (s *Schema) AppendState(dst []byte, epoch, tick, base int64, was, now state.Object) (out []byte, some, ok bool) {
	from := len(dst)
	if !s.covers(now) || !s.covers(was) {
		return dst, false, false
	}
	dst = binary.AppendUvarint(head(dst, State, epoch, tick), uint64(base))
	tmp := pool.Get().(*scratch)
	defer pool.Put(tmp)
	a, b := &tmp.a, &tmp.b
	for i := range s.tables {
		t := &s.tables[i]
		before, fine := t.rows(was, tmp.aroom[:0])
		after, fit := t.rows(now, tmp.broom[:0])
		if !fine || !fit || len(before) > maxRows || len(after) > maxRows {
			return dst[:from], false, false
		}
		if t.Key == "" {
			tmp.alone[0][0].Value, tmp.alone[1][0].Value = state.OfObj(before), state.OfObj(after)
			before, after = tmp.alone[0][:], tmp.alone[1][:]
		}
		// The number of changes precedes them, and is not known yet: leave one byte of room, and make more where
		// needed.
		at, n := len(dst), 0
		dst = append(dst, 0)
		x, y := 0, 0
		for x < len(before) || y < len(after) {
			switch {
			case y == len(after) || x < len(before) && before[x].Key < after[y].Key:
				dst = binary.AppendUvarint(dst, change(x, removed))
				n++
				x++
			case x == len(before) || after[y].Key < before[x].Key:
				if after[y].Value.Kind() != state.Obj {
					return dst[:from], false, false
				}
				dst = binary.AppendUvarint(dst, added)
				if dst, fine = t.appendRow(dst, after[y].Key, after[y].Value.Obj(), b); !fine {
					return dst[:from], false, false
				}
				n++
				y++
			default:
				if before[x].Value.Kind() != state.Obj || after[y].Value.Kind() != state.Obj || !t.read(before[x].Value.Obj(), a) || !t.read(after[y].Value.Obj(), b) {
					return dst[:from], false, false
				}
				var wrote bool
				if dst, wrote = t.appendChange(dst, x, a, b); wrote {
					n++
				}
				x++
				y++
			}
		}
		some = some || n > 0
		for k := n >> 7; k > 0; k >>= 7 {
			dst = append(dst, 0)
			copy(dst[at+1:], dst[at:])
		}
		binary.PutUvarint(dst[at:], uint64(n))
	}
	return dst, some, true
}

// change returns the number that begins a change.
func change(slot int, what uint64) uint64 { return uint64(slot)<<2 | what }

// appendChange writes the differences between two forms of a row.
func (t *Table) appendChange(dst []byte, slot int, a, b *row) ([]byte, bool) {
	var values, null uint64
	absent := a.present &^ b.present
	for i := range t.Fields {
		bit := uint64(1) << i
		switch {
		case b.present&bit == 0:
		case b.null&bit != 0:
			if a.present&bit == 0 || a.null&bit == 0 {
				null |= bit
			}
		case a.present&bit == 0 || a.null&bit != 0 || !state.Equal(*a.values[i], *b.values[i]):
			values |= bit
		}
	}
	switch {
	case values|null|absent == 0:
		return dst, false
	case null|absent == 0:
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, change(slot, changed)), values)
	default:
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, change(slot, changedWithLosses)), values|null)
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, null), absent)
	}
	for i := range t.Fields {
		if bit := uint64(1) << i; values&bit != 0 {
			was := &none
			if a.present&^a.null&bit != 0 {
				was = a.values[i]
			}
			dst = t.Fields[i].Of.append(dst, b.values[i], was)
		}
	}
	return dst, true
}

// ErrFrame is the error of a frame that no encoder writes.
var ErrFrame = errors.New("packed: a malformed frame")
