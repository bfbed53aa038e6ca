package packet

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/earshot-mc/earshot/proxy/field"
)

// NBT of components is written here and not by a library because its strings are Java's modified UTF-8: a client throws
// the player out over an emoji in plain UTF-8.

const maxTextDepth = field.MaxNBTDepth - 12 // leaves room for what wraps a component

func tooDeep(v any, depth int) bool {
	if depth > maxTextDepth/2 { // a list element may be wrapped in a compound of its own
		return true
	}
	deeper := func(e any) bool { return tooDeep(e, depth+1) }
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, deeper)
	case map[string]any:
		for _, e := range v {
			if deeper(e) {
				return true
			}
		}
	}
	return false
}

// appendNBT appends v with its type byte and no name.
func appendNBT(dst []byte, v any) []byte {
	v = nbtValue(v)
	return appendPayload(append(dst, nbtType(v)), v)
}

// nbtValue gives a JSON value the type it has in NBT.
func nbtValue(v any) any {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return int8(1)
		}
		return int8(0)
	case json.Number:
		n, err := v.Int64()
		if err == nil && n == int64(int32(n)) {
			return int32(n)
		} else if err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

// nbtType returns the tag type of a value that nbtValue has made.
func nbtType(v any) byte {
	switch v.(type) {
	case int8:
		return 1
	case int16:
		return 2
	case int32:
		return 3
	case int64:
		return 4
	case float32:
		return 5
	case float64:
		return 6
	case []int8:
		return 7
	case []any:
		return 9
	case map[string]any:
		return 10
	case []int32:
		return 11
	case []int64:
		return 12
	}
	return 8
}

func appendPayload(dst []byte, v any) []byte {
	switch v := v.(type) {
	case int8:
		return append(dst, byte(v))
	case int16:
		return field.AppendI16(dst, v)
	case int32:
		return field.AppendI32(dst, v)
	case int64:
		return field.AppendI64(dst, v)
	case float32:
		return field.AppendF32(dst, v)
	case float64:
		return field.AppendF64(dst, v)
	case []int8:
		dst = field.AppendI32(dst, int32(len(v)))
		for _, n := range v {
			dst = append(dst, byte(n))
		}
		return dst
	case []int32:
		dst = field.AppendI32(dst, int32(len(v)))
		for _, n := range v {
			dst = field.AppendI32(dst, n)
		}
		return dst
	case []int64:
		dst = field.AppendI32(dst, int32(len(v)))
		for _, n := range v {
			dst = field.AppendI64(dst, n)
		}
		return dst
	case string:
		return appendNBTString(dst, v)
	case []any:
		return appendNBTList(dst, v)
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if v[k] == nil {
				continue
			}
			e := nbtValue(v[k])
			dst = appendPayload(appendNBTString(append(dst, nbtType(e)), k), e)
		}
		return append(dst, 0)
	}
	return appendNBTString(dst, fmt.Sprint(v))
}

// appendNBTList appends a list. An NBT list has one type, so a mixed list of components becomes a list of compounds.
func appendNBTList(dst []byte, list []any) []byte {
	list = slices.DeleteFunc(slices.Clone(list), func(e any) bool { return e == nil })
	elems := make([]any, len(list))
	for i, e := range list {
		elems[i] = nbtValue(e)
	}
	if len(elems) == 0 {
		return append(dst, 0, 0, 0, 0, 0)
	}
	t := nbtType(elems[0])
	if slices.ContainsFunc(elems, func(e any) bool { return nbtType(e) != t }) {
		t = 10
		for i, e := range elems {
			switch e.(type) {
			case map[string]any:
			case []any:
				elems[i] = map[string]any{"text": "", "extra": e}
			default:
				elems[i] = map[string]any{"text": fmt.Sprint(list[i])}
			}
		}
	}
	dst = field.AppendI32(append(dst, t), int32(len(elems)))
	for _, e := range elems {
		dst = appendPayload(dst, e)
	}
	return dst
}

// appendNBTString writes modified UTF-8: 0 takes two bytes, and characters outside the basic plane are two surrogates
// of three bytes each. It cuts off everything beyond 65535 bytes.
func appendNBTString(dst []byte, s string) []byte {
	at := len(dst)
	dst = append(dst, 0, 0)
	for _, c := range s {
		var b []byte
		switch {
		case c == 0:
			b = []byte{0xc0, 0x80}
		case c > 0xffff:
			c -= 0x10000
			b = append(surrogate(0xd800+c>>10), surrogate(0xdc00+c&0x3ff)...)
		default:
			b = []byte(string(c))
		}
		if len(dst)-at-2+len(b) > math.MaxUint16 {
			break
		}
		dst = append(dst, b...)
	}
	n := len(dst) - at - 2
	dst[at], dst[at+1] = byte(n>>8), byte(n)
	return dst
}

func surrogate(c rune) []byte {
	return []byte{0xe0 | byte(c>>12), 0x80 | byte(c>>6)&0x3f, 0x80 | byte(c)&0x3f}
}

// parseNBT decodes a component; it returns "" when b is not one or is too large to be worth it.
func parseNBT(b []byte) any {
	r := field.NewReader(b)
	if len(b) > maxTextDecoded || r.SkipNBT(false) == nil || r.Len() > 0 {
		return ""
	}
	r = field.NewReader(b)
	return readTag(r, r.U8())
}

// readTag reads a tag. It trusts that SkipNBT has been over the bytes: types exist, depth is bounded.
func readTag(r *field.Reader, t byte) any {
	switch t {
	case 1:
		return r.I8()
	case 2:
		return r.I16()
	case 3:
		return r.I32()
	case 4:
		return r.I64()
	case 5:
		return r.F32()
	case 6:
		return r.F64()
	case 7:
		return readArray(r, r.I8)
	case 8:
		return nbtString(r)
	case 9:
		e, n := r.U8(), int(r.I32())
		var list []any // it grows with what is really there
		for range n {
			list = append(list, readTag(r, e))
		}
		return list
	case 10:
		m := map[string]any{}
		for e := r.U8(); e != 0; e = r.U8() {
			k := nbtString(r)
			m[k] = readTag(r, e)
		}
		return m
	case 11:
		return readArray(r, r.I32)
	case 12:
		return readArray(r, r.I64)
	}
	return ""
}

func readArray[T any](r *field.Reader, read func() T) []T {
	var list []T
	for range int(r.I32()) {
		list = append(list, read())
	}
	return list
}

// nbtString reads modified UTF-8; all else becomes U+FFFD.
func nbtString(r *field.Reader) string {
	b := r.Raw(int(r.U16()))
	units := make([]rune, 0, len(b))
	for len(b) > 0 {
		c, n := rune(b[0]), 1
		switch {
		case c >= 0xe0 && c < 0xf0 && len(b) > 2:
			c, n = c&0xf<<12|rune(b[1]&0x3f)<<6|rune(b[2]&0x3f), 3
		case c >= 0xc0 && c < 0xe0 && len(b) > 1:
			c, n = c&0x1f<<6|rune(b[1]&0x3f), 2
		case c >= 0x80:
			c = '\ufffd'
		}
		b = b[n:]
		if last := len(units) - 1; last >= 0 && units[last]>>10 == 0xd800>>10 && c>>10 == 0xdc00>>10 {
			units[last] = 0x10000 + (units[last]&0x3ff)<<10 + c&0x3ff
			continue
		}
		units = append(units, c)
	}
	return string(units) // a lone surrogate is U+FFFD
}
