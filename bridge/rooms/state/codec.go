package state

// Form is what a binary frame is.
type Form uint8

// The forms.
const (
	FormBaseline Form = 1 + iota
	FormSnapshot
	FormInitial // a snapshot that a receiver begins with
	FormState   // what differs from a baseline
)

// Codec writes states in a binary form. Its frames must not begin with a brace, which JSON begins with. States are
// rounded.
type Codec interface {
	// Name is what receivers know it by.
	Name() string
	// AppendFull writes a state whole; false: it has no form in this codec, and nothing is written.
	AppendFull(dst []byte, f Form, epoch, tick int64, o Object) ([]byte, bool)
	// AppendState writes what differs between a baseline and now. some is false where nothing does; ok is false where
	// there is no form for it, and nothing is written.
	AppendState(dst []byte, epoch, tick, base int64, was, now Object) (out []byte, some, ok bool)
}
