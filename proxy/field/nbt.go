package field

import (
	"errors"
	"fmt"
)

// NBT tag types as they stand on the wire.
const (
	tagEnd byte = iota
	tagByte
	tagShort
	tagInt
	tagLong
	tagFloat
	tagDouble
	tagByteArray
	tagString
	tagList
	tagCompound
	tagIntArray
	tagLongArray
)

// fixedSize is the payload size of the tag types that have one, 0 for the rest.
var fixedSize = [...]int{tagByte: 1, tagShort: 2, tagInt: 4, tagLong: 8, tagFloat: 4, tagDouble: 8, tagLongArray: 0}

var errNBTDepth = errors.New("nbt nests deeper than 512")

// SkipNBT passes over one NBT value and returns its bytes, aliasing the body. named tells the form: with a root name
// (packets below protocol 764) or without (764 and later). A lone end tag, which stands for "no value", is one byte.
// Counts are checked against what remains before they are used, and nothing is allocated.
func (r *Reader) SkipNBT(named bool) []byte {
	all := r.b
	t := r.U8()
	if t != tagEnd {
		if named {
			r.Skip(int(r.U16()))
		}
		r.skipTag(t, 0)
	}
	if r.err != nil {
		return nil
	}
	n := len(all) - len(r.b)
	return all[:n:n]
}

// skipTag passes over the payload of one tag; depth counts the compounds and lists around it.
func (r *Reader) skipTag(t byte, depth int) {
	if int(t) >= len(fixedSize) || t == tagEnd {
		r.Fail(fmt.Errorf("nbt tag type %d does not exist", t))
		return
	}
	if n := fixedSize[t]; n > 0 {
		r.Skip(n)
		return
	}
	switch t {
	case tagString:
		r.Skip(int(r.U16()))
	case tagByteArray:
		r.skipArray(1)
	case tagIntArray:
		r.skipArray(4)
	case tagLongArray:
		r.skipArray(8)
	case tagList:
		r.skipList(depth + 1)
	case tagCompound:
		r.skipCompound(depth + 1)
	}
}

func (r *Reader) skipCompound(depth int) {
	if depth > MaxNBTDepth {
		r.Fail(errNBTDepth)
	}
	for t := r.U8(); t != tagEnd; t = r.U8() { // after an error U8 is 0, which ends the loop
		r.Skip(int(r.U16()))
		r.skipTag(t, depth)
	}
}

func (r *Reader) skipList(depth int) {
	if depth > MaxNBTDepth {
		r.Fail(errNBTDepth)
		return
	}
	t := r.U8()
	n := r.I32()
	switch {
	case r.err != nil || n == 0:
	case n < 0 || t == tagEnd || int(t) >= len(fixedSize):
		r.Fail(fmt.Errorf("nbt list of %d elements of type %d", n, t))
	case fixedSize[t] > 0:
		r.skipElements(n, fixedSize[t])
	default: // every element is at least a byte long, so this ends with the body at the latest
		for ; n > 0 && r.err == nil; n-- {
			r.skipTag(t, depth)
		}
	}
}

func (r *Reader) skipArray(size int) { r.skipElements(r.I32(), size) }

func (r *Reader) skipElements(n int32, size int) {
	if n < 0 || int(n) > len(r.b)/size {
		r.Fail(errShort)
		return
	}
	r.Skip(int(n) * size)
}
