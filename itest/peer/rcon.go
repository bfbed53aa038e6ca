package peer

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// RCONPacket returns a packet of RCON: length, id and type, all little endian, the text, and two zero bytes.
func RCONPacket(id, kind int32, text string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(text)+10))
	b = binary.LittleEndian.AppendUint32(b, uint32(id))
	b = binary.LittleEndian.AppendUint32(b, uint32(kind))
	return append(append(b, text...), 0, 0)
}

// ReadRCON takes one packet off the front of what came. One that is longer than the game's is an error.
func ReadRCON(r io.Reader) (id, kind int32, text string, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, 0, "", err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n < 10 || n > 4096+10 {
		return 0, 0, "", fmt.Errorf("a packet of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return 0, 0, "", err
	}
	return int32(binary.LittleEndian.Uint32(b)), int32(binary.LittleEndian.Uint32(b[4:])), string(b[8 : n-2]), nil
}

// RCON is a tool that has logged in.
type RCON struct {
	t  testing.TB
	c  net.Conn
	id int32
}

// DialRCON connects and logs in; nil: the password is wrong, or nobody is asked for one any more.
func DialRCON(t testing.TB, addr, password string) *RCON {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(Patience))
	if _, err := c.Write(RCONPacket(1, 3, password)); err != nil {
		return nil
	}
	if id, _, _, err := ReadRCON(c); err != nil || id != 1 {
		c.Close()
		return nil
	}
	return &RCON{t: t, c: c, id: 1}
}

// Say gives a command and returns its whole answer, of whose end a packet of an unknown type tells.
func (r *RCON) Say(command string) string {
	r.t.Helper()
	r.c.SetDeadline(time.Now().Add(Patience))
	r.id += 2
	if _, err := r.c.Write(append(RCONPacket(r.id, 2, command), RCONPacket(r.id+1, 100, "")...)); err != nil {
		r.t.Fatal(err)
	}
	var all strings.Builder
	for {
		switch id, kind, text, err := ReadRCON(r.c); {
		case err != nil:
			r.t.Fatalf("%s: %v", command, err)
		case id == r.id && kind == 0:
			all.WriteString(text)
		case id == r.id+1:
			return all.String()
		default:
			r.t.Fatalf("%s: answered with %d, %d, %q", command, id, kind, text)
		}
	}
}
