package client

import (
	"bufio"
	"errors"
	"io"
	"net"

	"github.com/gobwas/ws"

	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/wire"
)

var errTooBig = errors.New("voice: the server sent a message larger than the protocol has")

// inbox reads WebSocket messages. Memory grows with what has arrived, not with what a header announces.
type inbox struct {
	r       *bufio.Reader
	head    [ws.MaxHeaderSize]byte
	control [ws.MaxControlFramePayloadSize]byte
	buf     []byte    // the message so far
	op      ws.OpCode // its kind, 0 between messages
	text    int       // bytes of a text
}

// newInbox reads br first, when the upgrade left bytes in it. With changes, those of roster 2 were negotiated, which
// may be longer than other texts.
func newInbox(conn net.Conn, br *bufio.Reader, changes bool) *inbox {
	if br == nil {
		br = bufio.NewReaderSize(conn, 4096)
	}
	in := &inbox{r: br, text: line.MaxS2C}
	if changes {
		in.text = line.MaxChanges
	}
	return in
}

// next returns the next whole message, a ping or a pong. The payload is valid until the next call. A close frame is
// returned as a *Closed error.
func (in *inbox) next() (ws.OpCode, []byte, error) {
	for {
		h, err := ws.ReadHeaderBuffer(in.r, in.head[:0])
		if err != nil {
			return 0, nil, err
		}
		state := ws.StateClientSide
		if in.op != 0 {
			state = state.Set(ws.StateFragmented)
		}
		if err := ws.CheckHeader(h, state); err != nil {
			return 0, nil, err
		}
		if h.OpCode.IsControl() {
			p := in.control[:h.Length]
			if _, err := io.ReadFull(in.r, p); err != nil {
				return 0, nil, err
			}
			if h.OpCode == ws.OpClose {
				return 0, nil, closed(p)
			}
			return h.OpCode, p, nil
		}
		if h.OpCode != ws.OpContinuation {
			in.op, in.buf = h.OpCode, in.buf[:0]
		}
		limit := wire.MaxS2C
		if in.op == ws.OpText {
			limit = in.text
		}
		if h.Length > int64(limit-len(in.buf)) {
			return 0, nil, errTooBig
		}
		for left := int(h.Length); left > 0; {
			n := min(left, 4096)
			at := len(in.buf)
			in.buf = append(in.buf, zeros[:n]...)
			if _, err := io.ReadFull(in.r, in.buf[at:]); err != nil {
				return 0, nil, err
			}
			left -= n
		}
		if h.Fin {
			op := in.op
			in.op = 0
			return op, in.buf, nil
		}
	}
}

var zeros [4096]byte

// closed reads a close frame; an impossible one is a protocol error.
func closed(p []byte) error {
	if len(p) == 0 {
		return &Closed{Code: int(ws.StatusNoStatusRcvd)}
	}
	if len(p) == 1 {
		return ws.ProtocolError("close frame of one byte")
	}
	code, reason := ws.ParseCloseFrameData(p)
	if err := ws.CheckCloseFrameData(code, reason); err != nil {
		return err
	}
	return &Closed{int(code), reason}
}
