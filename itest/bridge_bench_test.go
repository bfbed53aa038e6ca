package itest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
)

// BenchmarkBridge relays one busy second of a player's traffic (20 steps of the client; 500 relative moves, 250 moves
// with a look, 250 turns of heads and 40 chunks of 16 KiB from the server) through the proxy, without the bridge, with
// it, and with it following a vehicle. Both ends are in this process and in every figure, the same in all three.
func BenchmarkBridge(b *testing.B) {
	for _, c := range []struct {
		name         string
		tap, vehicle bool
	}{{"untapped", false, false}, {"on-foot", true, false}, {"riding", true, true}} {
		b.Run(c.name, func(b *testing.B) {
			link := newBridgeLink(b, c.tap)
			if c.vehicle {
				ride := append(field.AppendVarInt(nil, bridgeVehicle), 1)
				link.send(proto.SetPassengers, field.AppendVarInt(ride, link.self))
			}
			toClient, steps := bridgeSecond(b)
			b.SetBytes(int64(len(toClient) + len(steps)))
			cpu := cpuTime(b)
			for b.Loop() {
				link.second(toClient, steps)
			}
			b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N), "cpu-ns/op")
			if c.tap {
				link.check(c.vehicle)
			}
		})
	}
}

const (
	bridgeProtocol = 763 // 1.20.1: without a configuration phase
	bridgeVehicle  = 210
	bridgeMoves    = 1000
)

func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// bridgeSecond returns the frames of a second, compressed from 256 bytes on.
func bridgeSecond(b *testing.B) (toClient, steps []byte) {
	v := proto.Lookup(bridgeProtocol)
	frames := func(d proto.Dir, fill func(add func(p proto.Packet, body []byte))) []byte {
		var out bytes.Buffer
		w := frame.NewWriter(&out)
		w.SetCompression(256)
		fill(func(p proto.Packet, body []byte) {
			id, ok := v.ID(proto.Play, d, p)
			if !ok {
				b.Fatalf("no %v", p)
			}
			w.Append(id, body)
		})
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		return out.Bytes()
	}
	toClient = frames(proto.Clientbound, func(add func(proto.Packet, []byte)) {
		random := rand.New(rand.NewPCG(1, 2))
		for i := range bridgeMoves {
			p, body := proto.RelEntityMove, field.AppendVarInt(nil, int32(bridgeVehicle-10+i%50))
			switch i % 4 {
			case 1:
				p, body = proto.EntityMoveLook, append(body, 0, 1, 0, 0, 0, 1, 64, 0, 1)
			case 2:
				p, body = proto.EntityHeadRotation, append(body, 64)
			default:
				body = append(body, 0, 1, 0, 0, 0, 1, 1)
			}
			add(p, body)
			if i%25 == 0 {
				chunk := make([]byte, 16<<10)
				for j := range chunk {
					chunk[j] = byte(random.IntN(12))
				}
				add(proto.MapChunk, chunk)
			}
		}
	})
	steps = frames(proto.Serverbound, func(add func(proto.Packet, []byte)) {
		for i := range 20 {
			body := field.AppendF64(field.AppendF64(field.AppendF64(nil, float64(i)), 70), 1)
			add(proto.PositionLook, append(field.AppendF32(field.AppendF32(body, float32(i)), 0), 1))
		}
	})
	return toClient, steps
}

// bridgeLink is a player who has joined through the proxy, with both ends in hand.
type bridgeLink struct {
	b              *testing.B
	proxy          *bridgeServer
	client, server net.Conn
	fromServer     *frame.Writer
	self           int32
	buffer         []byte
	id             uuid.UUID
}

// newBridgeLink joins a player in the way of 1.20.1, up to where the server has told the place.
func newBridgeLink(b *testing.B, tap bool) *bridgeLink {
	l := &bridgeLink{b: b, buffer: make([]byte, 64<<10)}
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	defer ln.Close()
	l.proxy = newBridgeServer(b, tap, backend.Server{Name: "lobby", Address: ln.Addr().String()})
	v := proto.Lookup(bridgeProtocol)

	l.client, err = net.Dial("tcp", l.proxy.addr)
	must(err)
	b.Cleanup(func() { l.client.Close() })
	up, down := frame.NewWriter(l.client), frame.NewReader(l.client, frame.Limits{})
	must(up.Packet(0, packet.AppendHandshake(nil, packet.Handshake{Protocol: bridgeProtocol, Host: "localhost", Port: 25565, Intent: packet.IntentLogin})))
	must(up.Packet(0, packet.AppendLoginStart(nil, bridgeProtocol, packet.LoginStart{Name: "Ann"})))

	l.server, err = ln.Accept()
	must(err)
	b.Cleanup(func() { l.server.Close() })
	l.fromServer = frame.NewWriter(l.server)
	asked := frame.NewReader(l.server, frame.Limits{})
	next := func(r *frame.Reader, want proto.Packet, s proto.State, d proto.Dir) []byte {
		b.Helper()
		for {
			f, err := r.Next()
			must(err)
			body, err := r.Body(f)
			must(err)
			switch got := v.Table(s, d)[f.ID]; {
			case got == want:
				return body
			case got == proto.SetCompression:
				r.SetCompression(256)
				up.SetCompression(256)
			case s != proto.Play:
				b.Fatalf("%v instead of %v", got, want)
			}
		}
	}
	next(asked, proto.SetProtocol, proto.Handshake, proto.Serverbound)
	next(asked, proto.LoginStart, proto.Login, proto.Serverbound)
	l.id = uuid.UUID{1}
	setCompression, _ := v.ID(proto.Login, proto.Clientbound, proto.SetCompression)
	must(l.fromServer.Packet(setCompression, packet.AppendSetCompression(nil, 256)))
	l.fromServer.SetCompression(256)
	success, _ := v.ID(proto.Login, proto.Clientbound, proto.LoginSuccess)
	must(l.fromServer.Packet(success, packet.AppendLoginSuccess(nil, bridgeProtocol, packet.LoginSuccess{ID: l.id, Name: "Ann"})))
	join, eid := bridgeJoinGame(b)
	l.self = eid
	l.send(proto.JoinGame, join)
	l.send(proto.Position, packet.AppendTeleport(nil, bridgeProtocol, packet.Teleport{ID: 1, X: 8, Y: 70, Z: 8}))

	s, err := packet.ParseLoginSuccess(bridgeProtocol, next(down, proto.LoginSuccess, proto.Login, proto.Clientbound))
	must(err)
	l.id = s.ID
	next(down, proto.JoinGame, proto.Play, proto.Clientbound)
	next(down, proto.Position, proto.Play, proto.Clientbound)
	if n := down.Buffered(); n != 0 {
		b.Fatalf("%d bytes behind the teleport", n)
	}
	confirm, _ := v.ID(proto.Play, proto.Serverbound, proto.TeleportConfirm)
	must(up.Packet(confirm, packet.AppendTeleportConfirm(nil, bridgeProtocol, packet.TeleportConfirm{ID: 1})))
	for asked.SetCompression(256); ; {
		f, err := asked.Next()
		must(err)
		if v.Table(proto.Play, proto.Serverbound)[f.ID] == proto.TeleportConfirm {
			return l
		}
	}
}

// bridgeJoinGame returns a login that minecraft-protocol has written.
func bridgeJoinGame(b *testing.B) (body []byte, entity int32) {
	vectors, err := os.ReadFile("../proxy/packet/testdata/bridge.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(vectors) {
		var v struct {
			Packet, Hex string
			Protocols   []int32
			Fields      json.RawMessage
		}
		if err := json.Unmarshal(line, &v); err != nil {
			b.Fatal(err)
		}
		if v.Packet != "join_game" || !slices.Contains(v.Protocols, bridgeProtocol) {
			continue
		}
		var fields struct{ EntityID int32 }
		body, err = hex.DecodeString(v.Hex)
		if err := errors.Join(err, json.Unmarshal(v.Fields, &fields)); err != nil {
			b.Fatal(err)
		}
		return body, fields.EntityID
	}
	b.Fatal("no login among the vectors")
	return nil, 0
}

func (l *bridgeLink) send(p proto.Packet, body []byte) {
	l.b.Helper()
	id, ok := proto.Lookup(bridgeProtocol).ID(proto.Play, proto.Clientbound, p)
	if !ok {
		l.b.Fatalf("no %v", p)
	}
	if err := l.fromServer.Packet(id, body); err != nil {
		l.b.Fatal(err)
	}
}

// second relays the traffic both ways and waits until all of it has come through: frames pass as they are.
func (l *bridgeLink) second(toClient, steps []byte) {
	sent := make(chan error, 2)
	go func() {
		_, err := l.server.Write(toClient)
		sent <- err
	}()
	go func() {
		_, err := l.client.Write(steps)
		if err == nil {
			_, err = io.CopyBuffer(io.Discard, io.LimitReader(l.server, int64(len(steps))), make([]byte, 4<<10))
		}
		sent <- err
	}()
	l.client.SetReadDeadline(time.Now().Add(30 * time.Second))
	for left := len(toClient); left > 0; {
		n, err := l.client.Read(l.buffer[:min(left, len(l.buffer))])
		if err != nil {
			l.b.Fatal(fmt.Errorf("%d bytes before the end: %w", left, err))
		}
		left -= n
	}
	for range 2 {
		if err := <-sent; err != nil {
			l.b.Fatal(err)
		}
	}
}

// check makes sure that the bridge has really followed.
func (l *bridgeLink) check(riding bool) {
	p := l.proxy.reg.Get(l.id)
	if p == nil || p.Pose() == nil || p.Facts().Riding != riding {
		l.b.Fatalf("the bridge knows %+v", p)
	}
	if at := p.Pose(); riding == (at.X == 19 && at.Z == 1) {
		l.b.Errorf("riding %v, and the pose is %+v", riding, at)
	}
	l.proxy.understood()
}
