package relay

import (
	"math/bits"
	"sync"

	"github.com/google/uuid"
)

// roll numbers the ids on player lists. Everybody on a server has much the same list, so a player is remembered by one
// bit in each list, and its id once.
type roll struct {
	mu      sync.RWMutex
	numbers map[uuid.UUID]int
	ids     []uuid.UUID
}

const (
	rollSize = 1 << 14 // ids until another roll begins; this one ends with the last list that uses it
	pageSize = 512     // ids of a page
)

// rolls hands out the current roll. There is one for the process, as there is for strings that are interned.
var rolls struct {
	mu  sync.Mutex
	now *roll
}

func current() *roll {
	rolls.mu.Lock()
	defer rolls.mu.Unlock()
	if rolls.now == nil || rolls.now.full() {
		rolls.now = &roll{numbers: make(map[uuid.UUID]int)}
	}
	return rolls.now
}

func (r *roll) full() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.ids) >= rollSize
}

func (r *roll) find(id uuid.UUID) (number int, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	number, ok = r.numbers[id]
	return number, ok
}

// number finds or makes the number of an id; ok is false when there is no room for one.
func (r *roll) number(id uuid.UUID) (number int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	number, ok = r.numbers[id]
	if !ok && len(r.ids) < rollSize {
		number, ok = len(r.ids), true
		r.numbers[id], r.ids = number, append(r.ids, id)
	}
	return number, ok
}

// List is a bounded set of the players on one player's list. The zero value is empty.
type List struct {
	parts []part
	n     int
}

// part is the part of a list that one roll has numbers for.
type part struct {
	roll  *roll
	pages []*[pageSize / 64]uint64 // nil where nobody is
}

func (l *List) put(id uuid.UUID) {
	if l.n >= maxLeftovers {
		return
	}
	for i := range l.parts {
		if number, ok := l.parts[i].roll.find(id); ok {
			l.n += l.parts[i].put(number)
			return
		}
	}
	for {
		if last := len(l.parts) - 1; last >= 0 {
			if number, ok := l.parts[last].roll.number(id); ok {
				l.n += l.parts[last].put(number)
				return
			}
		}
		if len(l.parts) >= 3+2*l.n/rollSize { // ids that come and go must not keep rolls for the few that stay
			ids := l.All()
			*l = List{parts: []part{{roll: current()}}}
			for _, id := range ids {
				l.put(id)
			}
			continue
		}
		l.parts = append(l.parts, part{roll: current()})
	}
}

func (p *part) put(number int) (more int) {
	for number/pageSize >= len(p.pages) {
		p.pages = append(p.pages, nil)
	}
	page := &p.pages[number/pageSize]
	if *page == nil {
		*page = new([pageSize / 64]uint64)
	}
	word, bit := &(*page)[number%pageSize/64], uint64(1)<<(number%64)
	if *word&bit == 0 {
		more = 1
	}
	*word |= bit
	return more
}

func (l *List) del(id uuid.UUID) {
	for _, p := range l.parts {
		number, ok := p.roll.find(id)
		if !ok || number/pageSize >= len(p.pages) || p.pages[number/pageSize] == nil {
			continue
		}
		if word, bit := &p.pages[number/pageSize][number%pageSize/64], uint64(1)<<(number%64); *word&bit != 0 {
			*word &^= bit
			l.n--
		}
	}
}

// All lists the set, in no order.
func (l *List) All() (ids []uuid.UUID) {
	for _, p := range l.parts {
		p.roll.mu.RLock()
		for i, page := range p.pages {
			if page == nil {
				continue
			}
			for k, word := range page {
				for ; word != 0; word &= word - 1 {
					ids = append(ids, p.roll.ids[i*pageSize+k*64+bits.TrailingZeros64(word)])
				}
			}
		}
		p.roll.mu.RUnlock()
	}
	return ids
}
