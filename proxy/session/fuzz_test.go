package session

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// stage is how far a client gets before it starts to talk nonsense.
var stages = []struct {
	protocol int32
	say      func(v *proto.Version) []byte
}{
	{767, func(*proto.Version) []byte { return nil }},
	{767, hello},
	{47, loginAs(false)},
	{763, loginAs(false)},
	{767, loginAs(true)},
}

func hello(v *proto.Version) []byte {
	return framed(-1, 0, packet.AppendHandshake(nil, packet.Handshake{Protocol: v.Protocol, Host: "h", Intent: packet.IntentLogin}))
}

func loginAs(acknowledge bool) func(v *proto.Version) []byte {
	return func(v *proto.Version) []byte {
		b := append(hello(v), framed(-1, 0, packet.AppendLoginStart(nil, v.Protocol, packet.LoginStart{Name: "Steve"}))...)
		if acknowledge {
			b = append(b, framed(256, 3, nil)...)
		}
		return b
	}
}

func framed(threshold int, id int32, body []byte) []byte {
	var b bytes.Buffer
	w := frame.NewWriter(&b)
	w.SetCompression(threshold)
	w.Packet(id, body)
	return b.Bytes()
}

// captures returns what real clients send from their first byte on: a look at the list, a login and a while in the
// game, and an answer to a server that encrypts.
func captures(t testing.TB) (all [][]byte) {
	t.Helper()
	file, err := os.ReadFile("../packet/testdata/captures.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		var c struct{ Ping, Login, Encryption string }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{c.Ping, c.Login, c.Encryption} {
			b, err := hex.DecodeString(s)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
	}
	if len(all) < 120 {
		t.Fatalf("%d captures", len(all))
	}
	return all
}

// announced returns the version that a client's handshake names.
func announced(up []byte, otherwise int32) int32 {
	r := field.NewReader(up)
	f := field.NewReader(r.Bytes(1 << 10))
	f.VarInt()
	if h, err := packet.ParseHandshake(f.Rest(), packet.MaxHost); err == nil && proto.Lookup(h.Protocol) != nil {
		return h.Protocol
	}
	return otherwise
}

// restless takes each player to another server as soon as it is on one.
type restless struct{ *recorder }

func (r restless) Joined(p Player) { p.Connect("c") }

// FuzzClient lets a client say anything from some point on, and a backend too: nothing they say may panic, hang or
// leave something behind.
func FuzzClient(f *testing.F) {
	v := proto.Lookup(767)
	id := func(s proto.State, d proto.Dir, p proto.Packet) int32 { n, _ := v.ID(s, d, p); return n }
	down := append(framed(256, id(proto.Config, proto.Clientbound, proto.FinishConfiguration), nil), framed(256, id(proto.Play, proto.Clientbound, proto.JoinGame), joinBody)...)
	up := framed(256, id(proto.Config, proto.Serverbound, proto.ClientInformation), information(767))
	up = append(up, framed(256, id(proto.Config, proto.Serverbound, proto.CustomPayload), message("minecraft:register", "a:b\x00c:d"))...)
	up = append(up, framed(256, id(proto.Config, proto.Serverbound, proto.FinishConfiguration), nil)...)
	up = append(up, framed(256, id(proto.Play, proto.Serverbound, proto.KeepAlive), make([]byte, 8))...)
	again := append(down, framed(256, id(proto.Play, proto.Clientbound, proto.StartConfiguration), nil)...)
	for i := range stages {
		f.Add(uint8(i), up, down)
		f.Add(uint8(i), up, again)
		f.Add(uint8(i), []byte{1, 0xff}, append(down, 0xff, 0xff, 0xff, 0xff))
		f.Add(uint8(i), framed(256, 2, message("socketsvc:hello", "x")), framed(256, 2, []byte{0xff}))
	}
	for _, up := range captures(f) { // from the first byte on, to a server of their own version
		v := proto.Lookup(announced(up, 0))
		var down []byte
		if id, ok := v.ID(proto.Config, proto.Clientbound, proto.FinishConfiguration); ok {
			down = framed(256, id, nil)
		}
		join, _ := v.ID(proto.Play, proto.Clientbound, proto.JoinGame)
		f.Add(uint8(0), up, append(down, framed(256, join, joinBody)...))
	}
	f.Fuzz(func(t *testing.T, stage uint8, up, down []byte) {
		st := stages[int(stage)%len(stages)]
		if stage == 0 {
			st.protocol = announced(up, st.protocol)
		}
		dial := func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				go io.Copy(io.Discard, theirs)
				theirs.Write(framed(-1, 3, packet.AppendSetCompression(nil, 256)))
				theirs.Write(framed(256, 2, packet.AppendLoginSuccess(nil, st.protocol, packet.LoginSuccess{Name: "Steve"})))
				theirs.Write(down)
			}()
			return ours, nil
		}
		core := New(Config{
			Channels: []Channels{restless{&recorder{}}}, Hooks: &hooks{}, Backends: &backchannel{},
			Settings: Settings{Threshold: 256, Try: []string{"b", "c"}, Servers: []backend.Server{{Name: "b", Dial: dial}, {Name: "c", Dial: dial}}},
		})
		ours, theirs := net.Pipe()
		done := make(chan struct{})
		go func() { defer close(done); core.Serve(theirs) }()
		go io.Copy(io.Discard, ours)
		ours.SetWriteDeadline(time.Now().Add(5 * time.Second))
		ours.Write(append(st.say(proto.Lookup(st.protocol)), up...))
		ours.Close()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("the session does not end")
		}
		if core.Counters.Ended(EndPanic) != 0 {
			t.Fatal("panic")
		}
		if err := core.Shutdown(t.Context(), ""); err != nil || core.Online() != 0 {
			t.Fatalf("%v, %d players left", err, core.Online())
		}
	})
}
