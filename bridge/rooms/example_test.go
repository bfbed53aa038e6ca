package rooms_test

import (
	"errors"
	"fmt"

	"github.com/earshot-mc/earshot/bridge/rooms"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

// Counter is a game: a number that everybody may raise.
type Counter struct{ count int64 }

func (c *Counter) Capacity() int                  { return 8 }
func (c *Counter) ValidateJoin(*rooms.Join) error { return nil }
func (c *Counter) Joined(string)                  {}
func (c *Counter) Left(string)                    {}
func (c *Counter) Welcome(string) state.Object    { return nil }
func (c *Counter) Epoch() int64                   { return 1 }
func (c *Counter) Step(uint64, int)               {}

func (c *Counter) Command(_ string, f *rooms.Command) error {
	if f.Type != "increment" {
		return errors.New("there is only increment")
	}
	c.count++
	return nil
}

func (c *Counter) Snapshot(_ rooms.View, dst state.Object) state.Object {
	return append(dst[:0], state.Member{Key: "count", Value: state.OfInt(c.count)})
}

// A room with a game in it, and a peer that joins over a pipe in memory, says something and plays.
func Example() {
	room := rooms.New(&Counter{}, rooms.Config{})
	defer room.Close()

	conn, peer := rooms.MemoryPair(rooms.MemoryConfig{})
	room.Attach(conn)
	peer.Send([]byte(`{"type":"join","protocol":1,"name":"Ann"}`))
	peer.Send([]byte(`{"type":"chat","text":"hello"}`))
	peer.Send([]byte(`{"type":"increment"}`))

	for count := int64(0); count == 0; {
		b, _, err := peer.Receive()
		if err != nil {
			fmt.Println(err)
			return
		}
		v, _ := state.Parse(b)
		kind, _ := v.Obj().Get("type")
		switch kind.Str() {
		case "chat":
			message, _ := v.Obj().Get("message")
			text, _ := message.Obj().Get("text")
			fmt.Println(text.Str())
		case "state":
			delta, _ := v.Obj().Get("delta")
			set, _ := delta.Obj().Get("set")
			n, _ := set.Obj().Get("count")
			count = n.Int()
			fmt.Println("count", count)
		}
	}
	// Output:
	// Ann joined
	// hello
	// count 1
}
