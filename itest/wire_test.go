package itest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// What the third-party peers cannot be made to do is done here by hand: half a login, a backend that falls silent, one
// that never stops talking.

// framed returns a packet as it is on the wire without compression.
func framed(id int32, body []byte) []byte {
	b := append(field.AppendVarInt(nil, id), body...)
	return append(field.AppendVarInt(nil, int32(len(b))), b...)
}

// hello returns a handshake as it is on the wire.
func hello(protocol int32, host string, intent packet.Intent) []byte {
	return framed(0, packet.AppendHandshake(nil, packet.Handshake{Protocol: protocol, Host: host, Port: 25565, Intent: intent}))
}

// loginStart returns the packet behind it.
func loginStart(protocol int32, name string) []byte {
	return framed(0, packet.AppendLoginStart(nil, protocol, packet.LoginStart{Name: name, ID: offlineID(name), HasID: true}))
}

// dial connects from an address of this machine; "" is any.
func dial(t testing.TB, addr, from string) *net.TCPConn {
	t.Helper()
	d := net.Dialer{Timeout: peer.Patience}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(peer.Patience))
	return c.(*net.TCPConn)
}

func write(t testing.TB, c net.Conn, parts ...[]byte) {
	t.Helper()
	for _, b := range parts {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
}

// ended waits until the other side has ended the connection, and returns what came before and how long it took.
func ended(t testing.TB, c net.Conn) ([]byte, time.Duration) {
	t.Helper()
	begin := time.Now()
	b, err := io.ReadAll(io.LimitReader(c, 1<<20))
	if isTimeout(err) {
		t.Fatalf("the connection is still open after %v", time.Since(begin))
	}
	return b, time.Since(begin)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// wire is a client of 1.8 that does nothing by itself.
type wire struct {
	*net.TCPConn
	t testing.TB
	r *frame.Reader
	w *frame.Writer
	v *proto.Version
}

func newWire(t testing.TB, c *net.TCPConn, protocol int32) *wire {
	w := &wire{c, t, frame.NewReader(c, frame.Limits{}), frame.NewWriter(c), proto.Lookup(protocol)}
	t.Cleanup(w.r.Release)
	return w
}

// logIn joins as a client of 1.8 and returns once the login has succeeded.
func logIn(t testing.TB, addr, name string) *wire {
	t.Helper()
	c := newWire(t, dial(t, addr, ""), proto.V1_8)
	write(t, c, hello(proto.V1_8, "localhost", packet.IntentLogin), loginStart(proto.V1_8, name))
	for {
		switch p, body := c.next(proto.Login); p {
		case proto.SetCompression:
			threshold, err := packet.ParseSetCompression(body)
			if err != nil {
				t.Fatal(err)
			}
			c.r.SetCompression(threshold)
			c.w.SetCompression(threshold)
		case proto.LoginSuccess:
			return c
		default:
			t.Fatalf("%v instead of a login success: %q", p, body)
		}
	}
}

// next returns the next packet.
func (c *wire) next(s proto.State) (proto.Packet, []byte) {
	c.t.Helper()
	f, err := c.r.Next()
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := c.r.Body(f)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.v.Table(s, proto.Clientbound)[f.ID&0xff], body
}

// until reads on until such a packet of the play state comes.
func (c *wire) until(p proto.Packet) []byte {
	c.t.Helper()
	for {
		if got, body := c.next(proto.Play); got == p {
			return body
		}
	}
}

// refusal logs in as a client of any protocol and returns the reason with which that is refused.
func refusal(t testing.TB, addr string, protocol int32, name string) string {
	t.Helper()
	c := newWire(t, dial(t, addr, ""), proto.V1_8) // the login disconnect is the same in every version
	write(t, c, hello(protocol, "localhost", packet.IntentLogin), loginStart(proto.V1_8, name))
	p, body := c.next(proto.Login)
	if p != proto.Disconnect {
		t.Fatalf("%v instead of a refusal", p)
	}
	reason, err := packet.ParseDisconnect(proto.V1_8, proto.Login, body)
	if err != nil {
		t.Fatal(err)
	}
	return string(reason.JSON(proto.V1_8))
}

// serving listens until the test ends, and has fn deal with each connection, which is closed when fn returns or the
// test ends.
func serving(t testing.TB, fn func(c net.Conn)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	var mu sync.Mutex
	over, open := false, map[net.Conn]struct{}{}
	tasks.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if over {
				c.Close()
			} else {
				open[c] = struct{}{}
				tasks.Go(func() {
					defer c.Close()
					fn(c)
				})
			}
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		over = true
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		tasks.Wait()
	})
	return ln.Addr().String()
}

// hold keeps a connection open, reading what comes, until its other end closes it.
func hold(c net.Conn) { io.Copy(io.Discard, c) }

// arrive reads what the proxy says to a backend when a player comes: handshake and login start.
func arrive(c net.Conn) (name string, err error) {
	r := frame.NewReader(c, frame.Limits{})
	defer r.Release()
	if _, err := r.Next(); err != nil {
		return "", err
	}
	f, err := r.Next()
	if err != nil {
		return "", err
	}
	body, err := r.Body(f)
	return field.NewReader(body).String(packet.MaxName), err
}

// success returns a backend's login success.
func success(protocol int32, name string) []byte {
	id, _ := proto.Lookup(protocol).ID(proto.Login, proto.Clientbound, proto.LoginSuccess)
	return framed(id, packet.AppendLoginSuccess(nil, protocol, packet.LoginSuccess{ID: offlineID(name), Name: name}))
}

// joinGame returns a 1.8 backend's first packet in play.
func joinGame() []byte {
	b := field.AppendI32(nil, 1) // entity
	b = append(b, 0, 0, 1, 20)   // mode, dimension, difficulty, most players
	return framed(0x01, append(field.AppendString(b, "flat"), 0))
}
