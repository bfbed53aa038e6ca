package frame

import (
	"errors"
	"io"
	"time"
)

// Protocol limits: the largest frame after its length prefix, the largest inflated packet that a vanilla client takes,
// and the largest that a client may send.
const (
	MaxFrame          = 1<<21 - 1
	MaxInflated       = 8 << 20
	MaxInflatedStrict = 2 << 20
)

const (
	maxEmpty    = 64       // empty frames in a row from a client
	ratioFree   = 64 << 10 // inflated size up to which any ratio is fine
	maxRatio    = 1024     // inflated:compressed above that
	inflateRate = 5 << 20  // inflated bytes per second from a client …
)

// Limits bound what a Reader accepts. The zero value suits a backend.
type Limits struct {
	MaxFrame    int // bytes after the length prefix; 0: MaxFrame
	MaxInflated int // bytes of an inflated packet; 0: MaxInflated, or MaxInflatedStrict for a client
	// Strict is for a client's frames: compressed frames are inflated and checked while they are cut, and the
	// compression threshold is enforced.
	Strict bool
	// InflateRate bounds the inflated bytes per second of a strict reader, over seven seconds; 0: 5 MiB, negative:
	// unlimited.
	InflateRate int
}

// PreLogin returns the limits for a client that has not logged in. behindProxy leaves room for another proxy's
// forwarding data in the handshake.
func PreLogin(behindProxy bool) Limits {
	l := Limits{MaxFrame: 8 << 10, MaxInflated: 8 << 10, Strict: true}
	if behindProxy {
		l.MaxFrame, l.MaxInflated = 32<<10, 32<<10
	}
	return l
}

// A Frame is one packet on the wire. It stays valid until the next Fill.
type Frame struct {
	ID         int32 // packet id, known without inflating
	Start, End int   // wire bytes with the length prefix, for Reader.Raw
	Inflated   int   // declared size of id and body when compressed, else 0
	payload    int   // offset of the id, or of the zlib stream
}

// Compressed tells whether the frame's payload is deflated.
func (f Frame) Compressed() bool { return f.Inflated > 0 }

// Size returns the number of plain bytes of id and body (as declared, when compressed).
func (f Frame) Size() int {
	if f.Inflated > 0 {
		return f.Inflated
	}
	return f.End - f.payload
}

// Passes tells whether f, read from a side with the threshold src, may go to a side with the threshold dst as it is.
// Thresholds below 0 mean no compression.
func Passes(f Frame, src, dst int) bool {
	switch {
	case src < 0 || dst < 0:
		return src < 0 && dst < 0
	case f.Compressed():
		return f.Inflated >= dst && f.Inflated <= MaxInflated
	default:
		return f.Size() < dst
	}
}

// Fits tells whether a packet of size plain bytes, id and body, can be framed for a side with the threshold.
// Uncompressed it must fit a frame as it is, which holds less than an inflated packet may have.
func Fits(size, threshold int) bool {
	switch {
	case threshold < 0:
		return size <= MaxFrame
	case size < threshold:
		return size < MaxFrame // there is a byte before it
	}
	return size <= MaxInflated
}

// A Reader cuts a byte stream into frames. It is used by one goroutine.
//
// To move many frames, Fill once, Cut until it says no, and forward the run of frames from the first's Start to the
// last's End with Writer.Run. Empty frames between two frames travel with the run; peers skip them.
type Reader struct {
	src io.Reader
	raw rawSource // reads without holding a buffer while there is nothing; may be unusable

	buf      *buffer // nil while idle, if raw is usable
	pos, end int     // buf.b[pos:end] is decrypted and not yet cut
	need     int     // wire size of the frame at pos when known, else 0
	full     bool    // the last read took all the room there was
	err      error   // of the source; sticky

	lim       Limits
	threshold int
	cipher    *cfb8
	empty     int // empty frames in a row

	inf      *buffer // inflated bytes of the frame at infStart
	infStart int     // -1: none
	infLen   int
	budget   budget
}

// NewReader returns a Reader without compression and cipher. When src is a TCP or Unix connection, or offers its
// descriptor by syscall.Conn and says by Buffered() int that it holds no bytes of its own, an idle Reader keeps no
// buffer.
func NewReader(src io.Reader, lim Limits) *Reader {
	r := &Reader{src: src, threshold: -1, infStart: -1}
	r.raw.init(src)
	r.SetLimits(lim)
	return r
}

// SetLimits replaces the limits for frames not yet cut.
func (r *Reader) SetLimits(lim Limits) {
	if lim.MaxFrame == 0 {
		lim.MaxFrame = MaxFrame
	}
	if lim.MaxInflated == 0 {
		lim.MaxInflated = MaxInflated
		if lim.Strict {
			lim.MaxInflated = MaxInflatedStrict
		}
	}
	if lim.InflateRate == 0 {
		lim.InflateRate = inflateRate
	}
	r.lim = lim
}

// SetCompression sets the threshold for frames not yet cut; negative: none.
func (r *Reader) SetCompression(threshold int) { r.threshold = threshold }

// SetCipher decrypts everything not yet cut, and everything that follows. The secret must be 16 bytes.
func (r *Reader) SetCipher(secret []byte) error {
	c, err := newCFB8(secret)
	if err != nil {
		return err
	}
	r.cipher = c
	r.need = 0
	if r.buf != nil {
		c.decrypt(r.buf.b[r.pos:r.end])
	}
	return nil
}

// Buffered returns the number of bytes read and not yet cut.
func (r *Reader) Buffered() int { return r.end - r.pos }

// Rest returns the bytes read and not yet cut, for a stream that goes on by other means: nothing may be read from the
// Reader any more. It is valid until Release.
func (r *Reader) Rest() []byte {
	if r.buf == nil {
		return nil
	}
	return r.buf.b[r.pos:r.end]
}

// Release gives the pooled memory back and ends the Reader.
func (r *Reader) Release() {
	give(r.buf)
	give(r.inf)
	r.buf, r.inf, r.infStart = nil, nil, -1
	r.pos, r.end, r.need = 0, 0, 0
	if r.err == nil {
		r.err = errReleased
	}
}

var errReleased = errors.New("frame: read after release")

// Next returns the next frame, reading as needed. It ends the validity of earlier frames as Fill does.
func (r *Reader) Next() (Frame, error) {
	for {
		f, ok, err := r.Cut()
		if ok || err != nil {
			return f, err
		}
		if err := r.Fill(); err != nil {
			return Frame{}, err
		}
	}
}

// Fill waits for at least one more byte with one read of the source. Frames cut before and slices of them are invalid
// afterwards. At the end of the stream it returns io.EOF, or io.ErrUnexpectedEOF within a frame.
func (r *Reader) Fill() error {
	if r.err != nil {
		return r.err
	}
	r.infStart = -1
	r.arrange()
	n, err := r.read()
	if n > 0 {
		if r.cipher != nil {
			r.cipher.decrypt(r.buf.b[r.end : r.end+n])
		}
		r.end += n
		r.full = r.end == len(r.buf.b)
		return nil // err, if any, comes again
	}
	if err == io.EOF && r.pos < r.end {
		err = io.ErrUnexpectedEOF
	}
	// An elapsed deadline may be set once more; nothing was lost.
	if t, ok := err.(interface{ Timeout() bool }); !ok || !t.Timeout() {
		r.err = err
	}
	return err
}

// arrange moves the rest to the front and picks the buffer for the next read. A buffer grows only when it is full, so
// that a length prefix alone costs no memory.
func (r *Reader) arrange() {
	left := r.end - r.pos
	if left > 0 && r.pos > 0 {
		copy(r.buf.b, r.buf.b[r.pos:r.end])
	}
	r.pos, r.end = 0, left
	give(r.inf)
	r.inf = nil
	size := 0
	if r.buf != nil {
		size = len(r.buf.b)
	}
	switch {
	case left == 0 && r.raw.usable():
		give(r.buf)
		r.buf = nil // taken when there are bytes
	case left == 0:
		// Blocked on src we hold a buffer: a small one, unless more is likely to come at once.
		want := classes[0]
		if r.full {
			want = min(4*size, readSize)
		}
		if want != size {
			give(r.buf)
			r.buf = take(want)
		}
	case left == size:
		r.buf = r.buf.larger(left, size+1)
	case size > readSize && max(left, r.need) <= readSize:
		r.buf = r.buf.larger(left, readSize)
	}
}

func (r *Reader) read() (int, error) {
	if r.raw.usable() {
		return r.raw.read(r)
	}
	for range 100 {
		if n, err := r.src.Read(r.buf.b[r.end:]); n != 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// Cut returns the next whole frame that is already in the buffer; false when more bytes are needed. Errors are of type
// Violation and final.
func (r *Reader) Cut() (Frame, bool, error) {
	if r.pos == r.end || r.need > r.end-r.pos {
		return Frame{}, false, nil
	}
	b := r.buf.b[:r.end]
	for r.pos < r.end {
		size, head := varint(b[r.pos:], 3)
		switch {
		case head == 0 && r.end-r.pos < 3:
			return Frame{}, false, nil
		case head == 0:
			return Frame{}, false, BadLength
		case int(size) > r.lim.MaxFrame:
			return Frame{}, false, FrameTooLarge
		case size == 0:
			if r.empty++; r.lim.Strict && r.empty > maxEmpty {
				return Frame{}, false, EmptyFrames
			}
			r.pos += head
			continue
		}
		r.need = head + int(size)
		if r.need > r.end-r.pos {
			return Frame{}, false, nil
		}
		f := Frame{Start: r.pos, End: r.pos + r.need, payload: r.pos + head}
		if err := r.open(&f); err != nil {
			return Frame{}, false, err
		}
		r.pos, r.need, r.empty = f.End, 0, 0
		return f, true, nil
	}
	return Frame{}, false, nil
}

// open reads a frame's id, and checks a client's frame against the rules.
func (r *Reader) open(f *Frame) error {
	p := r.buf.b[f.payload:f.End]
	if r.threshold >= 0 {
		size, n := varint(p, 5)
		switch {
		case n == 0 || size < 0:
			return BadDataLength
		case int(size) > r.lim.MaxInflated:
			return InflatedTooLarge
		}
		p = p[n:]
		f.payload += n
		f.Inflated = int(size)
		if size > 0 {
			return r.openCompressed(f, p)
		}
		if r.lim.Strict && len(p) >= r.threshold {
			return NotCompressed
		}
	}
	id, n := varint(p, 5)
	if n == 0 {
		return BadID
	}
	f.ID = id
	return nil
}

func (r *Reader) openCompressed(f *Frame, z []byte) error {
	if !r.lim.Strict {
		id, ok := peekID(z)
		if ok {
			f.ID = id
			return nil
		}
	} else {
		switch {
		case f.Inflated < r.threshold:
			return BelowThreshold
		case f.Inflated > ratioFree && f.Inflated > maxRatio*len(z):
			return Bomb
		case r.lim.InflateRate > 0 && !r.budget.spend(f.Inflated, r.lim.InflateRate):
			return OverBudget
		}
	}
	b, err := r.inflate(*f)
	if err != nil {
		return err
	}
	id, n := varint(b, 5)
	if n == 0 {
		return BadID
	}
	f.ID = id
	return nil
}

// Raw returns the wire bytes of a run of frames; they are the Reader's own memory, valid until the next Fill.
// Writer.Run may spoil them.
func (r *Reader) Raw(start, end int) []byte { return r.buf.b[start:end:end] }

// Body returns the plain bytes after the packet id, in the Reader's memory until the next Body or Fill. It fails with a
// Violation when the compressed data is damaged or not as long as declared; a backend's frame is only checked here.
func (r *Reader) Body(f Frame) ([]byte, error) {
	b := r.buf.b[f.payload:f.End:f.End]
	if f.Compressed() {
		var err error
		if b, err = r.inflate(f); err != nil {
			return nil, err
		}
	}
	_, n := varint(b, 5)
	if n == 0 {
		return nil, BadID
	}
	return b[n:], nil
}

// inflate returns id and body of a compressed frame, from memory if it was the last one inflated.
func (r *Reader) inflate(f Frame) ([]byte, error) {
	if r.infStart == f.Start {
		return r.inf.b[:r.infLen:r.infLen], nil
	}
	r.infStart = -1
	if r.inf == nil || len(r.inf.b) < f.Inflated {
		give(r.inf)
		r.inf = take(f.Inflated)
	}
	b := r.inf.b[:f.Inflated:f.Inflated]
	if err := inflate(b, r.buf.b[f.payload:f.End]); err != nil {
		return nil, err
	}
	r.infStart, r.infLen = f.Start, f.Inflated
	return b, nil
}

// budget is a token bucket of inflated bytes.
type budget struct {
	left int
	at   time.Time
}

func (b *budget) spend(n, rate int) bool {
	now, burst := time.Now(), rate*7
	if b.at.IsZero() {
		b.left = burst
	} else {
		b.left = min(burst, b.left+int(now.Sub(b.at).Seconds()*float64(rate)))
	}
	b.at = now
	if n > b.left {
		return false
	}
	b.left -= n
	return true
}

// varint reads a VarInt of at most limit bytes. n is 0 when it is cut short or longer. Encodings longer than needed are
// accepted, as the game does.
func varint(b []byte, limit int) (v int32, n int) {
	for i, c := range b[:min(len(b), limit)] {
		v |= int32(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
