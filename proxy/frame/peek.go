package frame

import (
	"encoding/binary"
	"math/bits"
)

// peekID reads the packet id at the start of a zlib stream without inflating more than the id's bytes. A general
// inflate reader decodes a whole window before it returns the first byte, which costs fifty times as much.
//
// In a sound stream the id is always literals: a match needs earlier bytes that are the same, and the id's bytes differ
// until its last. ok is false for an id longer than three bytes, for more than four blocks before its end, and for many
// kinds of damage; then a full inflate has to tell. The rest of the stream is not looked at.
func peekID(z []byte) (id int32, ok bool) {
	if len(z) < 2 || z[0]&0x0f != 8 || z[1]&0x20 != 0 {
		return 0, false // not deflate, or needs a dictionary
	}
	p := peeker{in: z[2:]}
	for range 4 { // servers flush at most once before the first byte
		last := p.bits(1)
		switch p.bits(2) {
		case 0:
			p.stored()
		case 1:
			p.fixed()
		case 2:
			p.dynamic()
		default:
			return 0, false
		}
		if p.bad || p.pos > uint(len(p.in))*8 {
			return 0, false
		}
		if p.done {
			return p.id, true
		}
		if last == 1 {
			return 0, false
		}
	}
	return 0, false
}

// peeker is the state of one peek; it lives on the stack.
type peeker struct {
	in    []byte
	pos   uint // bits taken; past the end they read as zero, and the end of the block notices
	id    int32
	got   int // id bytes so far
	done  bool
	bad   bool
	lens  [296]uint8 // literals' code lengths, at most 286, and room for writing eight at a time
	count [16]uint16 // literal codes per length
}

// literal takes the next byte of the plain text; an id of more than three bytes is left to the full inflate.
func (p *peeker) literal(c byte) {
	p.id |= int32(c&0x7f) << (7 * p.got)
	p.got++
	p.done = c < 0x80
	p.bad = !p.done && p.got == 3
}

// word returns the next bits, at least 56 of them.
func (p *peeker) word() uint64 {
	i := p.pos >> 3
	if i+8 <= uint(len(p.in)) {
		return binary.LittleEndian.Uint64(p.in[i:]) >> (p.pos & 7)
	}
	var tail [8]byte
	if i < uint(len(p.in)) {
		copy(tail[:], p.in[i:])
	}
	return binary.LittleEndian.Uint64(tail[:]) >> (p.pos & 7)
}

func (p *peeker) bits(k uint) uint32 {
	v := uint32(p.word()) & (1<<k - 1)
	p.pos += k
	return v
}

func (p *peeker) stored() {
	p.pos = (p.pos + 7) &^ 7
	size, check := p.bits(16), p.bits(16)
	if size^check != 0xffff {
		p.bad = true
	}
	for ; size > 0 && !p.done && !p.bad; size-- {
		p.literal(byte(p.bits(8)))
	}
}

func (p *peeker) fixed() {
	p.count = [16]uint16{7: 24, 8: 152, 9: 112}
	for i := range p.lens[:280] { // the eight codes after these are matches
		switch {
		case i < 144:
			p.lens[i] = 8
		case i < 256:
			p.lens[i] = 9
		default:
			p.lens[i] = 7
		}
	}
	p.literals()
}

// codeOrder is the order in which a dynamic block sends the lengths of its code-length codes (RFC 1951, 3.2.7).
var codeOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// A step holds the meaning of one code of the code lengths: how many bits it has, the length it gives, and how often.
// With it the loop over them, which is most of a peek, has nothing to decide.
//
//	bits 0-5 the code's bits and the extra bits, 6-9 the code's bits alone,
//	10-16 the mask of the extra bits, 17-20 how often without them,
//	21-24 the length, 25-28 all set to take the former length instead
type step uint32

func stepOf(symbol, bits uint32) step {
	length, former, extra, times := symbol, uint32(0), uint32(0), uint32(1)
	switch symbol {
	case 16:
		length, former, extra, times = 0, 15, 2, 3
	case 17:
		length, extra, times = 0, 3, 3
	case 18:
		length, extra, times = 0, 7, 11
	}
	return step(bits + extra | bits<<6 | (1<<extra-1)<<10 | times<<17 | length<<21 | former<<25)
}

func (s step) all() uint { return uint(s & 63) }
func (s step) times(w uint64) uint {
	return uint(s>>17&15) + uint(uint32(w>>(s>>6&15))&uint32(s>>10&127))
}
func (s step) former() uint            { return uint(s >> 25) }
func (s step) length(before uint) uint { return uint(s>>21)&15 | before&s.former() }

func (p *peeker) dynamic() {
	literals, distances, codes := uint(p.bits(5))+257, uint(p.bits(5))+1, uint(p.bits(4))+4
	if literals > 286 || distances > 30 {
		p.bad = true
		return
	}
	var table [128]step // by the next 7 bits
	if !p.codeTable(&table, codes) || table[p.word()&127].former() != 0 {
		p.bad = true
		return
	}
	clear(p.lens[:])
	clear(p.count[:])
	i, length := uint(0), uint(0)
	for i < literals {
		w := p.word()
		was := p.pos
		for range 4 { // of at most 14 bits each
			s := table[w&127]
			if s == 0 || i >= literals {
				break
			}
			length = s.length(length)
			times := s.times(w)
			p.count[length&15] += uint16(times)
			// Write eight at once: the next overwrites the surplus, and long repeats are of zeros.
			binary.LittleEndian.PutUint64(p.lens[i:], uint64(length)*lanes)
			i += times
			p.pos += s.all()
			w >>= s.all()
		}
		if p.pos == was {
			p.bad = true
			return
		}
	}
	p.count[length&15] -= uint16(i - literals)
	p.count[0] = 0
	// The distances' lengths stand between us and the data: pass over them.
	for i -= literals; i < distances; {
		w := p.word()
		was := p.pos
		for range 4 {
			s := table[w&127]
			if s == 0 || i >= distances {
				break
			}
			i += s.times(w)
			p.pos += s.all()
			w >>= s.all()
		}
		if p.pos == was {
			p.bad = true
			return
		}
	}
	if i > distances {
		p.bad = true
		return
	}
	p.literals()
}

// codeTable reads the lengths of the code-length codes and spreads each code over every 7-bit index that begins with
// it. It refuses lengths that ask for more codes than there are.
func (p *peeker) codeTable(table *[128]step, codes uint) bool {
	var lens [19]uint8
	w := p.word()
	for i, sym := range codeOrder[:codes] {
		if i == 16 { // 48 bits are taken
			p.pos += 48
			w = p.word()
		}
		lens[sym] = uint8(w & 7)
		w >>= 3
	}
	p.pos += codes % 16 * 3
	if codes == 16 {
		p.pos += 48
	}
	var count, next [8]int // in 7-bit units, most significant bit first
	for _, l := range lens {
		count[l]++
	}
	code := 0
	for l := 1; l <= 7; l++ {
		next[l] = code
		code += count[l] << (7 - l)
	}
	if code > 128 {
		return false
	}
	for sym, l := range lens {
		if l == 0 {
			continue
		}
		// Deflate packs codes bit-reversed: the first bit read is the code's highest.
		s := stepOf(uint32(sym), uint32(l))
		for i := int(reverse7[next[l]]); i < 128; i += 1 << l {
			table[i] = s
		}
		next[l] += 128 >> l
	}
	return true
}

var reverse7 = func() (t [128]uint8) {
	for i := range t {
		for bit := range 7 {
			if i&(1<<bit) != 0 {
				t[i] |= 1 << (6 - bit)
			}
		}
	}
	return t
}()

// literals decodes symbols of the canonical code in lens and count until the id is complete, the block ends, or a match
// comes.
func (p *peeker) literals() {
	for !p.done && !p.bad {
		sym := p.symbol()
		switch {
		case p.bad || sym > 256:
			p.bad = true
		case sym == 256:
			return
		default:
			p.literal(byte(sym))
		}
	}
}

// lanes has a one in each byte.
const lanes = 0x0101010101010101

// symbol walks the code lengths upwards: codes of one length are consecutive numbers in symbol order. So few symbols
// are read that a look through the lengths for the right one is cheaper than a table.
func (p *peeker) symbol() int {
	w := p.word()
	code, first := 0, 0
	for length := 1; length <= 15; length++ {
		code = code<<1 | int(w&1)
		w >>= 1
		count := int(p.count[length])
		if rest := code - first; rest < count {
			p.pos += uint(length)
			for i := 0; i+8 <= len(p.lens); i += 8 {
				// No length has more than five bits, so no lane borrows from its neighbour.
				here := (0x80*lanes - (binary.LittleEndian.Uint64(p.lens[i:]) ^ uint64(length)*lanes)) & (0x80 * lanes)
				n := bits.OnesCount64(here)
				if rest >= n {
					rest -= n
					continue
				}
				for range rest {
					here &= here - 1
				}
				return i + bits.TrailingZeros64(here)/8
			}
			break
		}
		first = (first + count) << 1
	}
	p.bad = true
	return 0
}
