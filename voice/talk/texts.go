package talk

import "sync/atomic"

// Form is one way of writing values down, as text lines are. Each codec has one, known by its address.
type Form struct{ Name string }

// Texts keeps the texts of a value that many are shown: once in each form, for all of them. The zero value is empty.
// Its method may be called from any goroutine.
type Texts struct{ newest atomic.Pointer[written] }

type written struct {
	form *Form
	text []byte
	next *written
}

// In returns the value's text in a form. It calls write when there is none yet; nobody may change the text afterwards.
func (t *Texts) In(f *Form, write func() []byte) []byte {
	if w := t.newest.Load().find(f); w != nil {
		return w.text
	}
	w := &written{form: f, text: write()}
	for {
		w.next = t.newest.Load()
		if earlier := w.next.find(f); earlier != nil { // another goroutine was faster
			return earlier.text
		}
		if t.newest.CompareAndSwap(w.next, w) {
			return w.text
		}
	}
}

func (w *written) find(f *Form) *written {
	for ; w != nil && w.form != f; w = w.next {
	}
	return w
}
