package socket

import "bytes"

// Retract takes back the waiting sound whose bytes begin with prefix. Frames that have gone to the peer in part go on.
func (s *Socket) Retract(prefix []byte) {
	s.mu.Lock()
	s.outbox.retract(prefix)
	s.mu.Unlock()
}

func (o *outbox) retract(prefix []byte) {
	from, to, kept := o.off, o.off, o.first
	for _, m := range o.marks[o.first:] {
		f := o.sound[from : from+m.size]
		from += m.size
		head := 2
		if f[1] == 126 {
			head = 4
		}
		if bytes.HasPrefix(f[head:], prefix) {
			o.stats.Drops[DropRetract]++
			continue
		}
		to += copy(o.sound[to:], f)
		o.marks[kept] = m
		kept++
	}
	o.sound, o.marks = o.sound[:to], o.marks[:kept]
	if o.first == kept {
		o.sound, o.off = o.sound[:0], 0
		o.marks, o.first = o.marks[:0], 0
	}
}
