package socket

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

// inbox buffers the peer's bytes. It holds the longest frame of voice whole, so that messages are handed on where they
// lie.
type inbox struct {
	read func([]byte) (int, error)
	buf  [4096]byte
	r, w int
	head [ws.MaxHeaderSize]byte
}

// take copies the bytes that br has already read. net/http's readers hold as much as buf.
func (in *inbox) take(br *bufio.Reader) {
	b, _ := br.Peek(min(br.Buffered(), len(in.buf)))
	in.w = copy(in.buf[:], b)
	br.Discard(len(b))
	if br.Buffered() == 0 {
		return
	}
	conn := in.read
	in.read = func(p []byte) (int, error) {
		if br.Buffered() > 0 {
			return br.Read(p)
		}
		in.read = conn
		return conn(p)
	}
}

// Read makes inbox the reader of frame headers.
func (in *inbox) Read(p []byte) (int, error) {
	if in.r == in.w {
		if err := in.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, in.buf[in.r:in.w])
	in.r += n
	return n, nil
}

// next returns the next n bytes, until the next call.
func (in *inbox) next(n int) ([]byte, error) {
	if n > len(in.buf) { // a room's frames may be longer
		p := make([]byte, n)
		for have := 0; have < n; {
			if in.r == in.w {
				if err := in.fill(); err != nil {
					return nil, err
				}
			}
			k := copy(p[have:], in.buf[in.r:in.w])
			in.r += k
			have += k
		}
		return p, nil
	}
	for in.w-in.r < n {
		if err := in.fill(); err != nil {
			return nil, err
		}
	}
	p := in.buf[in.r : in.r+n]
	in.r += n
	return p, nil
}

// fill reads once, after moving the buffered bytes to the front.
func (in *inbox) fill() error {
	if in.r > 0 {
		in.w = copy(in.buf[:], in.buf[in.r:in.w])
		in.r = 0
	}
	n, err := in.read(in.buf[in.w:])
	in.w += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// fill reads for the inbox: any byte is a sign of life.
func (s *Socket) fill(p []byte) (int, error) {
	n, err := s.src.Read(p)
	if n > 0 {
		s.heard.Store(int64(s.sweep.now()))
	}
	return n, err
}

// serve reads messages until the end, and stays for the peer's answer to a close frame.
func (s *Socket) serve(h Handler) error {
	err := s.receive(h)
	var bad *Closed
	if errors.As(err, &bad) && !bad.Peer {
		// The framing is lost, or a long message is still coming in: read over it for a moment, so that the close frame
		// gets through.
		if l, ok := h.(LongHandler); ok && bad.Code == TooBig {
			s.conn.SetReadDeadline(time.Now().Add(lingerLong))
			l.TooLong()
			s.skip()
		}
		s.close(bad, lingerError)
		err = s.skip()
	}
	return err
}

// skip reads over everything until the connection ends.
func (s *Socket) skip() (err error) {
	for err == nil {
		s.in.r = s.in.w
		err = s.in.fill()
	}
	return err
}

// receive reads frames. It returns a *Closed when the peer closed the socket, or sent something for which it is to be
// closed.
func (s *Socket) receive(h Handler) error {
	var (
		state = ws.StateServerSide
		op    ws.OpCode // of the message that is coming in
		parts []byte    // its fragments so far
	)
	for {
		head, err := ws.ReadHeaderBuffer(&s.in, s.in.head[:])
		if errors.Is(err, ws.ErrHeaderLengthMSB) {
			return broken(err)
		}
		if err != nil {
			return fmt.Errorf("read from socket: %w", err)
		}
		if err := ws.CheckHeader(head, state); err != nil {
			return broken(err)
		}
		if head.OpCode.IsControl() {
			p, err := s.payload(head)
			if err != nil {
				return err
			}
			if head.OpCode != ws.OpClose {
				if err := s.budgets.control(); err != nil {
					return err
				}
			}
			if err := s.control(head.OpCode, p); err != nil {
				return err
			}
			continue
		}
		if head.OpCode != ws.OpContinuation {
			op = head.OpCode
		}
		limit := s.limits.Binary
		if op == ws.OpText {
			limit = 3 * s.limits.Text // what so many characters can take in UTF-8
		}
		if head.Length > int64(limit-len(parts)) {
			return &Closed{Code: TooBig, Reason: TooBig.Reason()}
		}
		if !head.Fin || state.Fragmented() {
			if err := s.budgets.fragment(head.Length, head.Fin); err != nil {
				return err
			}
		}
		p, err := s.payload(head)
		if err != nil {
			return err
		}
		if !head.Fin {
			parts = append(parts, p...)
			state = state.Set(ws.StateFragmented)
			continue
		}
		if state.Fragmented() {
			p, parts = append(parts, p...), nil
			state = state.Clear(ws.StateFragmented)
		}
		if err := s.message(h, op, p); err != nil {
			return err
		}
	}
}

// payload takes the frame's bytes, unmasked where they lie.
func (s *Socket) payload(head ws.Header) ([]byte, error) {
	p, err := s.in.next(int(head.Length))
	if err != nil {
		return nil, fmt.Errorf("read from socket: %w", err)
	}
	ws.Cipher(p, head.Mask, 0)
	return p, nil
}

// message hands one message on, unless the socket is closing.
func (s *Socket) message(h Handler, op ws.OpCode, p []byte) error {
	if op == ws.OpText {
		if !utf8.Valid(p) {
			return &Closed{Code: InvalidData, Reason: InvalidData.Reason()}
		}
		if len(p) > s.limits.Text && units(p) > s.limits.Text {
			return &Closed{Code: TooBig, Reason: TooBig.Reason()}
		}
	}
	if s.closing.Load() {
		return nil
	}
	if op == ws.OpText {
		h.Text(p)
	} else {
		h.Binary(p)
	}
	return nil
}

// units counts UTF-16 code units.
func units(p []byte) int {
	n := 0
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		p = p[size:]
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// control acts on a ping, pong or close frame.
func (s *Socket) control(op ws.OpCode, p []byte) error {
	switch op {
	case ws.OpPing:
		s.pong(p)
	case ws.OpClose:
		why := &Closed{Code: Code(ws.StatusNoStatusRcvd), Peer: true}
		if len(p) == 1 {
			return broken(errors.New("close frame with half a code"))
		}
		if len(p) >= 2 {
			code, reason := ws.ParseCloseFrameData(p)
			if err := ws.CheckCloseFrameData(code, reason); err != nil {
				return broken(err)
			}
			why.Code, why.Reason = Code(code), reason
		}
		s.close(why, lingerError) // answers, unless ours went first
		return why
	}
	return nil
}

// broken returns the ending for a peer that does not speak WebSocket.
func broken(err error) *Closed {
	return &Closed{Code: Protocol, Reason: Protocol.Reason() + ": " + err.Error()}
}
