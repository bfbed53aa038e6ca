package frame

import "encoding/binary"

// peekID reads the packet id at the start of a zlib stream without inflating
// more than the id's bytes. A general inflate reader decodes a whole window
// before it returns the first byte, which costs fifty times as much.
//
// In a sound stream the id is always literals: a match needs earlier bytes
// that are the same, and the id's bytes differ until its last. ok is false for
// an id longer than three bytes, for more than four blocks before its end, and
// for many kinds of damage; then a full inflate has to tell. The rest of the
// stream is not looked at.
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
		if p.bad {
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
	acc   uint64
	n     uint // bits in acc
	id    int32
	got   int // id bytes so far
	done  bool
	bad   bool
	lens  [286 + 30 + 138]uint8 // code lengths: literals, distances, and room for a last long repeat
	count [16]uint16            // literal codes per length
}

// literal takes the next byte of the plain text; an id of more than three
// bytes is left to the full inflate.
func (p *peeker) literal(c byte) {
	p.id |= int32(c&0x7f) << (7 * p.got)
	p.got++
	p.done = c < 0x80
	p.bad = !p.done && p.got == 3
}

// refill makes at least 32 bits available, or all that remain. Bits past the
// end read as zero and are noticed when they are consumed.
func (p *peeker) refill() {
	if len(p.in) >= 4 {
		p.acc |= uint64(binary.LittleEndian.Uint32(p.in)) << p.n
		p.in = p.in[4:]
		p.n += 32
		return
	}
	for p.n < 32 && len(p.in) > 0 {
		p.acc |= uint64(p.in[0]) << p.n
		p.in = p.in[1:]
		p.n += 8
	}
}

func (p *peeker) bits(k uint) uint32 {
	if p.n < k {
		p.refill()
	}
	v := uint32(p.acc) & (1<<k - 1)
	p.drop(k)
	return v
}

func (p *peeker) drop(k uint) {
	if k > p.n {
		p.bad = true
		p.acc, p.n = 0, 0
		return
	}
	p.acc >>= k
	p.n -= k
}

func (p *peeker) stored() {
	p.drop(p.n & 7)
	size, check := p.bits(16), p.bits(16)
	if size^check != 0xffff {
		p.bad = true
	}
	for ; size > 0 && !p.done && !p.bad; size-- {
		if c := byte(p.bits(8)); !p.bad {
			p.literal(c)
		}
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
	p.literals(280)
}

// codeOrder is the order in which a dynamic block sends the lengths of the
// codes that its code lengths are written in (RFC 1951, 3.2.7).
var codeOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

func (p *peeker) dynamic() {
	literals, distances, codes := int(p.bits(5))+257, int(p.bits(5))+1, int(p.bits(4))+4
	if literals > 286 || distances > 30 {
		p.bad = true
		return
	}
	var table [128]uint8 // the next 7 bits → symbol<<3 | length
	if !p.codeTable(&table, codes) {
		p.bad = true
		return
	}
	clear(p.count[:])
	// The distances' lengths stand between us and the data, so they are read too.
	for i := 0; i < literals+distances; {
		if p.n < 14 { // a code of at most 7 bits and at most 7 more
			p.refill()
		}
		e := table[p.acc&127]
		if e == 0 {
			p.bad = true
		}
		p.drop(uint(e & 7))
		length, times := e>>3, 1
		switch length {
		case 16:
			if i == 0 {
				p.bad = true
				return
			}
			length, times = p.lens[i-1], 3+int(p.bits(2))
		case 17:
			length, times = 0, 3+int(p.bits(3))
		case 18:
			length, times = 0, 11+int(p.bits(7))
		}
		if p.bad {
			return
		}
		for range times {
			if i < literals {
				p.count[length]++
			}
			p.lens[i] = length
			i++
		}
		if i > literals+distances {
			p.bad = true
		}
	}
	p.count[0] = 0
	p.literals(literals)
}

// codeTable reads the lengths of the code-length codes and spreads each code
// over every 7-bit index it is the beginning of. It refuses a set of lengths
// that asks for more codes than there are.
func (p *peeker) codeTable(table *[128]uint8, codes int) bool {
	var lens [19]uint8
	for _, sym := range codeOrder[:codes] {
		lens[sym] = uint8(p.bits(3))
	}
	code := 0 // in 7-bit units, most significant bit first
	for length := uint8(1); length <= 7; length++ {
		for sym, l := range lens {
			if l != length {
				continue
			}
			step := 128 >> length
			if code+step > 128 {
				return false
			}
			// Deflate packs codes bit-reversed: the first bit read is the code's highest.
			first := int(reverse7[code])
			for i := first; i < 128; i += 1 << length {
				table[i] = uint8(sym)<<3 | length
			}
			code += step
		}
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

// literals decodes symbols of the canonical code that lens and count describe
// until the id is complete, the block ends, or a match comes.
func (p *peeker) literals(n int) {
	for !p.done && !p.bad {
		sym := p.symbol(n)
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

// symbol walks the code lengths upwards: codes of one length are consecutive
// numbers in symbol order. So few symbols are read that a look through the
// lengths for the right one is cheaper than a table.
func (p *peeker) symbol(n int) int {
	if p.n < 15 {
		p.refill()
	}
	code, first := 0, 0
	for length := 1; length <= 15; length++ {
		code = code<<1 | int(p.acc>>(length-1)&1)
		count := int(p.count[length])
		if code-first < count {
			p.drop(uint(length))
			rest := code - first
			for sym, l := range p.lens[:n] {
				if int(l) == length {
					if rest == 0 {
						return sym
					}
					rest--
				}
			}
			break
		}
		first = (first + count) << 1
	}
	p.bad = true
	return 0
}
