package relation

import "math/bits"

// Table is one turn's relation. It is never changed once it has been made.
type Table struct {
	Undeclared []string // domains that somebody listens to and nobody has declared: a typing error, most likely

	version  uint64
	words    int
	sessions []uint64  // by slot
	hearers  []uint64  // words for each speaker's slot
	pending  [][]stage // by listener's slot
}

// Version numbers the accepted turns, from 1. Version 0 is the table of no turn, in which nobody hears anybody.
func (t *Table) Version() uint64 { return t.version }

// Holds tells whether the table was compiled for this connection in this slot. After a turn that was refused, the table
// that stays may speak of somebody else who held the slot before; what it says is then void, for the slot as a speaker
// and as a listener.
func (t *Table) Holds(slot int, session uint64) bool {
	return slot >= 0 && slot < len(t.sessions) && session != 0 && t.sessions[slot] == session
}

// Hearers has the slots of those who are given the voice of the one in a slot, one bit each; those who have not been told
// of the speaker yet are among them. It is the table's: do not write to it.
func (t *Table) Hearers(speaker int) []uint64 {
	if speaker < 0 || speaker >= len(t.sessions) {
		return nil
	}
	return t.hearers[speaker*t.words : (speaker+1)*t.words]
}

// Since is the version whose view first showed the speaker to the listener, of those versions that the listener may not
// have received yet, and 0 when it has received it.
func (t *Table) Since(speaker, listener int) uint64 {
	stages := at(t.pending, listener)
	for i := len(stages) - 1; i >= 0; i-- { // the newest counts: before that, the speaker was not shown for a while
		if stages[i].fresh.has(speaker) {
			return stages[i].version
		}
	}
	return 0
}

// Hears tells whether the listener, who has received the view of the version reached, is given the speaker's voice now.
func (t *Table) Hears(speaker, listener int, reached uint64) bool {
	return set(t.Hearers(speaker)).has(listener) && t.Since(speaker, listener) <= reached
}

// AppendLive appends those of [Table.Hearers] who are given the voice now. reached is by slot, as in [Compiler.Compile].
func (t *Table) AppendLive(dst []uint64, speaker int, reached []uint64) []uint64 {
	for i, word := range t.Hearers(speaker) {
		for rest := word; rest != 0; rest &= rest - 1 {
			l := i*64 + bits.TrailingZeros64(rest)
			if len(t.pending[l]) > 0 && t.Since(speaker, l) > at(reached, l) {
				word &^= 1 << (l % 64)
			}
		}
		dst = append(dst, word)
	}
	return dst
}

// set is a set of slots.
type set []uint64

func (s set) has(i int) bool { return i >= 0 && i/64 < len(s) && s[i/64]>>(i%64)&1 != 0 }
func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) del(i int)      { s[i/64] &^= 1 << (i % 64) }

// with is s with i in it, longer if need be.
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

// join adds what is in o, as far as s goes.
func (s set) join(o set) {
	for i, word := range o[:min(len(o), len(s))] {
		s[i] |= word
	}
}

// meet leaves what is in o too.
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

// transposed turns n rows of sets around: whoever's row held me is in mine. It works on blocks of 64 by 64.
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
