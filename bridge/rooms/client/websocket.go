//go:build !js

package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gobwas/ws"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
)

// Bounds of a WebSocket.
const (
	maxMessage = 2 << 20          // bytes of a room's frame
	writeIn    = 10 * time.Second // a frame
	silent     = 30 * time.Second // servers ping
)

// WebSocket returns a way to a room at a URL: ws or wss, /play/ and the room's key, and a token where the room wants
// one.
func WebSocket(url string, dialer ws.Dialer) func(context.Context) (Transport, error) {
	if dialer.Timeout == 0 {
		dialer.Timeout = 10 * time.Second
	}
	return func(ctx context.Context) (Transport, error) {
		conn, br, _, err := dialer.Dial(ctx, url)
		if status := ws.StatusError(0); errors.As(err, &status) && status >= 400 && status < 500 && status != 429 {
			return nil, &RefusedError{fmt.Sprintf("HTTP status %d", int(status))} // and will not change its mind
		}
		if err != nil {
			return nil, fmt.Errorf("connect to the room: %w", err)
		}
		s := &socket{conn: conn, r: conn}
		if br != nil {
			s.r = io.MultiReader(io.LimitReader(br, int64(br.Buffered())), conn)
		}
		s.r = bufio.NewReader(s.r)
		return s, nil
	}
}

// socket is a transport over a WebSocket.
type socket struct {
	conn net.Conn
	r    io.Reader

	mu     sync.Mutex // guards writing
	closed bool
}

func (s *socket) write(op ws.OpCode, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.conn.SetWriteDeadline(time.Now().Add(writeIn))
	return ws.WriteFrame(s.conn, ws.MaskFrame(ws.NewFrame(op, true, append([]byte(nil), b...))))
}

// Send implements [Transport].
func (s *socket) Send(b []byte) error { return s.write(ws.OpText, b) }

// Receive implements [Transport].
func (s *socket) Receive() (b []byte, binary bool, err error) {
	var op ws.OpCode
	for {
		s.conn.SetReadDeadline(time.Now().Add(silent))
		h, err := ws.ReadHeader(s.r)
		if err != nil {
			return nil, false, err
		}
		if h.Length > maxMessage || int64(len(b))+h.Length > maxMessage {
			return nil, false, fmt.Errorf("a frame of %d bytes from the room", h.Length)
		}
		p := make([]byte, h.Length)
		if _, err := io.ReadFull(s.r, p); err != nil {
			return nil, false, err
		}
		if h.Masked {
			return nil, false, errors.New("a masked frame from the room")
		}
		switch h.OpCode {
		case ws.OpPing:
			s.write(ws.OpPong, p)
			continue
		case ws.OpPong:
			continue
		case ws.OpClose:
			code, reason := ws.ParseCloseFrameData(p)
			s.write(ws.OpClose, p)
			s.conn.Close()
			return nil, false, &frame.Ended{Code: frame.Code(code), Reason: reason}
		case ws.OpText, ws.OpBinary:
			op = h.OpCode
		}
		if b = append(b, p...); h.Fin {
			return b, op == ws.OpBinary, nil
		}
	}
}

// Close implements [Transport].
func (s *socket) Close(code frame.Code, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.conn.SetWriteDeadline(time.Now().Add(time.Second))
	ws.WriteFrame(s.conn, ws.MaskFrame(ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusCode(code), reason))))
	s.conn.Close()
}
