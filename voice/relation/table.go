package relation

// Table is one turn's relation. It never changes.
type Table struct {
	Undeclared []string // domains that somebody listens to and nobody has declared: a typing error, most likely

	slots   int
	words   int
	hearers []uint64 // words for each talker's slot
}

// Hearers returns the slots that are given the voice of the talker in a slot, one bit each. It is the table's: do not
// write to it.
func (t *Table) Hearers(talker int) []uint64 {
	if talker < 0 || talker >= t.slots {
		return nil
	}
	return t.hearers[talker*t.words : (talker+1)*t.words]
}

// set is a set of slots.
type set []uint64

func (s set) has(i int) bool { return i >= 0 && i/64 < len(s) && s[i/64]>>(i%64)&1 != 0 }
func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) del(i int)      { s[i/64] &^= 1 << (i % 64) }

// with returns s with i in it, longer if need be.
func (s set) with(i int) set {
	if i < 0 {
		return s
	}
	if more := i/64 + 1 - len(s); more > 0 {
		s = append(s, make(set, more)...)
	}
	s.add(i)
	return s
}

// join adds the slots of o, as far as s goes.
func (s set) join(o set) {
	for i, word := range o[:min(len(o), len(s))] {
		s[i] |= word
	}
}

// meet leaves only slots that are in o too.
func (s set) meet(o []uint64) {
	for i := range s {
		s[i] &= at(o, i)
	}
}

// blank returns s emptied and n long.
func blank[S ~[]uint64](s S, n int) S {
	if cap(s) < n {
		return make(S, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// transposed turns n rows of sets around: a row that held me is in mine. It works on blocks of 64 by 64.
func transposed(in []uint64, n, words int) []uint64 {
	out := make([]uint64, n*words)
	var block [64]uint64
	for i := range words {
		for j := range words {
			var any uint64
			for k := range block {
				block[k] = 0
				if row := i*64 + k; row < n {
					block[k] = in[row*words+j]
				}
				any |= block[k]
			}
			if any == 0 {
				continue
			}
			turn(&block)
			for k, word := range block {
				if row := j*64 + k; row < n {
					out[row*words+i] = word
				}
			}
		}
	}
	return out
}

// turn mirrors a block at its diagonal, by swapping ever smaller quarters.
func turn(b *[64]uint64) {
	mask := ^uint64(0) >> 32
	for half := 32; half > 0; half, mask = half/2, mask^mask<<(half/2) {
		for k := 0; k < 64; k = (k + half + 1) &^ half {
			swap := (b[k]>>half ^ b[k|half]) & mask
			b[k] ^= swap << half
			b[k|half] ^= swap
		}
	}
}
