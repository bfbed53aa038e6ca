package limbo

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

//go:generate node gen/generate.js

// worldFile is written by gen/generate.js. Numbers are VarInts.
//
//	count, count × (protocol, blob)           ascending by protocol
//	count, count × (packed size, size)        of the blobs
//	the blobs, deflated
//
// A blob is the packets of one or several protocols in the order in which they are sent: a byte for the state (3
// configuration, 4 play), a length, the packet id and the body. The first packet in play is the login, whose entity id,
// the first four bytes of its body, is 0 and is filled in for each player.
//
//go:embed world.bin
var worldFile []byte

// join holds the frames that every player of one protocol is sent, as they go over an uncompressed connection. All
// players share the bytes; nothing may write to them.
type join struct {
	config    []byte // all of the configuration phase but its end; empty where there is none
	loginHead []byte // length and id of the play login; the entity id follows
	loginRest []byte // the login after the entity id, and everything after it
}

// entry is one blob. open inflates it for the first player who needs it; it takes about 300 kB from then on.
type entry struct {
	packed []byte
	size   int
	open   func() (*join, error)
}

func (e *entry) inflate() ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(e.packed)), int64(e.size)+1))
	if err == nil && len(raw) != e.size {
		err = fmt.Errorf("%d bytes instead of %d", len(raw), e.size)
	}
	if err != nil {
		return nil, fmt.Errorf("world data is damaged: %w", err)
	}
	return raw, nil
}

// eachPacket calls f with the state, id and body of every packet of a blob, and the packet's bytes as a whole.
func eachPacket(raw []byte, f func(s proto.State, id int32, body, whole []byte)) error {
	r := field.NewReader(raw)
	for r.Len() > 0 {
		state := proto.State(r.U8())
		whole := r.Bytes(len(raw))
		in := field.NewReader(whole)
		id := in.VarInt()
		if state != proto.Config && state != proto.Play {
			r.Fail(fmt.Errorf("state %d", state))
		}
		if err := in.Err(); err != nil {
			r.Fail(err)
		}
		if r.Err() != nil {
			break
		}
		f(state, id, in.Rest(), whole)
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("world data is damaged: %w", err)
	}
	return nil
}

// described holds the join data of versions that are not built in, by protocol.
var described struct {
	mu  sync.Mutex
	all map[int32]renumbered
}

type renumbered struct {
	of *proto.Version
	*join
}

// open returns the join data of a version.
func open(v *proto.Version) (*join, error) {
	e := worlds()[v.Like]
	if !v.Described {
		return e.open()
	}
	described.mu.Lock()
	defer described.mu.Unlock()
	if r := described.all[v.Protocol]; r.of == v {
		return r.join, nil
	}
	raw, err := e.inflate()
	if err != nil {
		return nil, err
	}
	if raw, err = renumber(raw, proto.BuiltInLike(v), v); err != nil {
		return nil, err
	}
	j, err := newJoin(raw)
	if err != nil {
		return nil, err
	}
	if described.all == nil {
		described.all = map[int32]renumbered{}
	}
	described.all[v.Protocol] = renumbered{v, j}
	return j, nil
}

// renumber gives a blob's packets their ids in another version.
func renumber(raw []byte, from, to *proto.Version) (out []byte, err error) {
	var lost error
	err = eachPacket(raw, func(s proto.State, id int32, body, _ []byte) {
		p := proto.Unknown
		if id >= 0 && id < 256 {
			p = from.Table(s, proto.Clientbound)[id]
		}
		now, ok := to.ID(s, proto.Clientbound, p)
		if !ok && lost == nil {
			lost = fmt.Errorf("the built-in world needs packet %v of %v, which protocol %d does not have", p, s, to.Protocol)
		}
		whole := append(field.AppendVarInt(nil, now), body...)
		out = field.AppendBytes(append(out, byte(s)), whole)
	})
	return out, errors.Join(err, lost)
}

func newJoin(raw []byte) (*join, error) {
	j := new(join)
	err := eachPacket(raw, func(s proto.State, _ int32, body, whole []byte) {
		switch {
		case s == proto.Config:
			j.config = field.AppendBytes(j.config, whole)
		case j.loginHead == nil && len(body) > 4:
			j.loginHead = append(field.AppendVarInt(nil, int32(len(whole))), whole[:len(whole)-len(body)]...)
			j.loginRest = slices.Grow(j.loginRest, len(raw))
			j.loginRest = append(j.loginRest, body[4:]...)
		default:
			j.loginRest = field.AppendBytes(j.loginRest, whole)
		}
	})
	if err == nil && j.loginHead == nil {
		err = fmt.Errorf("world data is damaged: no play login")
	}
	return j, err
}

// worlds is the directory of worldFile, read once: protocol → entry. Protocols with equal packets share an entry.
var worlds = sync.OnceValue(func() map[int32]*entry {
	all, err := readDirectory(worldFile)
	if err != nil {
		panic("limbo: world.bin: " + err.Error()) // it is part of the program, and a test reads all of it
	}
	return all
})

func readDirectory(file []byte) (map[int32]*entry, error) {
	r := field.NewReader(file)
	blobOf := make([][2]int32, r.Count(2))
	for i := range blobOf {
		blobOf[i] = [2]int32{r.VarInt(), r.VarInt()}
	}
	entries := make([]entry, r.Count(2))
	packed := make([]int, len(entries))
	for i := range entries {
		packed[i], entries[i].size = int(r.VarInt()), int(r.VarInt())
	}
	for i := range entries {
		e := &entries[i]
		e.packed = r.Raw(packed[i])
		e.open = sync.OnceValues(func() (*join, error) {
			raw, err := e.inflate()
			if err != nil {
				return nil, err
			}
			return newJoin(raw)
		})
	}
	all := make(map[int32]*entry, len(blobOf))
	for _, b := range blobOf {
		if b[1] < 0 || int(b[1]) >= len(entries) {
			return nil, fmt.Errorf("protocol %d has blob %d of %d", b[0], b[1], len(entries))
		}
		all[b[0]] = &entries[b[1]]
	}
	return all, r.End()
}

// Protocols lists the protocol numbers that a World serves, ascending.
func Protocols() []int32 {
	var all []int32
	for _, v := range proto.Supported() {
		if worlds()[v.Like] != nil {
			all = append(all, v.Protocol)
		}
	}
	return all
}
