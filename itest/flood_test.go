package itest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"github.com/earshot-mc/earshot/handshake/offer"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/voice/client"
	voicewire "github.com/earshot-mc/earshot/voice/wire"
)

// TestFloods: whoever sends more of one kind than any client does is sent away, and counted; whoever is on beside them
// stays, in the game and with voice. The log names the settings.
func TestFloods(t *testing.T) {
	t.Setenv("EARSHOT_LIMITS_EXEMPT", "[127.0.0.1]")
	p := start(t, "online: false\n")
	beside := logIn(t, p.addr, "Ann")
	beside.until(proto.JoinGame)
	voice, err := client.Dial(t.Context(), client.Config{URL: "http://" + p.addr, Token: beside.invited().Token, Player: offlineID("Ann")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { voice.Close() })
	goesOn := func() {
		t.Helper()
		beside.SetDeadline(time.Now().Add(peer.Patience))
		beside.askVoice()
		select {
		case <-voice.Done():
			t.Fatal("the voice of another player has ended: ", voice.Wait())
		default:
		}
	}

	message := func(channel string, data []byte) []byte {
		return packet.AppendPluginMessage(nil, packet.PluginMessage{Channel: channel, Data: data})
	}
	games := 0
	for what, c := range map[string]struct {
		packet proto.Packet
		body   []byte
		told   string
	}{
		"hello":      {proto.CustomPayload, message(offer.Hello, offer.AppendHello(nil)), "sends more than"},
		"registers":  {proto.CustomPayload, message("REGISTER", []byte("a:b")), "sends more than"},
		"unregister": {proto.CustomPayload, message("UNREGISTER", []byte("a:b")), "sends more than"},
		"completion": {proto.TabComplete, packet.AppendSuggestionsRequest(nil, proto.V1_8, packet.SuggestionsRequest{Text: "/server "}), "disconnect.spam"},
	} {
		w := logIn(t, p.addr, "Flood"+what)
		w.until(proto.JoinGame)
		id, _ := w.v.ID(proto.Play, proto.Serverbound, c.packet)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for range 100_000 {
				if w.w.Packet(id, c.body) != nil {
					return
				}
			}
		}()
		if got := string(w.until(proto.Disconnect)); !strings.Contains(got, c.told) {
			t.Errorf("%s: told %q", what, got)
		}
		w.Close()
		<-sent
		games++
		p.counts(`earshot_connections_ended_total{why="flood"}`, float64(games))
		goesOn()
	}

	masked := func(op ws.OpCode, fin bool, payload []byte) []byte {
		return ws.MustCompileFrame(ws.MaskFrame(ws.NewFrame(op, fin, payload)))
	}
	speech := voicewire.AppendC2S(nil, voicewire.C2SV2, &voicewire.C2S{Stream: 1, Seq: 1, Opus: []byte{0x78, 1, 2, 3}})
	sockets := 0
	for what, c := range map[string]struct{ first, again []byte }{
		"pings":     {nil, masked(ws.OpPing, true, nil)},
		"pongs":     {nil, masked(ws.OpPong, true, []byte("x"))},
		"fragments": {masked(ws.OpBinary, false, nil), masked(ws.OpContinuation, false, nil)},
		"frames":    {nil, masked(ws.OpBinary, true, speech)},
		"texts":     {nil, masked(ws.OpText, true, []byte("SSVC_DEAFEN_V1:1"))},
	} {
		w := logIn(t, p.addr, "Voice"+what)
		w.until(proto.JoinGame)
		conn := dial(t, p.addr, "")
		fmt.Fprintf(conn, "GET /voice?token=%s&uuid=%s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nX-SocketSVC-Audio: 2\r\nX-SocketSVC-Status: 1\r\n\r\n",
			w.invited().Token, offlineID("Voice"+what), p.addr)
		br := bufio.NewReader(conn)
		if r, err := http.ReadResponse(br, nil); err != nil || r.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(what, r, err)
		}
		write(t, conn, c.first)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			many := bytes.Repeat(c.again, 50)
			for range 2000 {
				if _, err := conn.Write(many); err != nil {
					return
				}
			}
		}()
		for {
			head, err := ws.ReadHeader(br)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			b := make([]byte, head.Length)
			if _, err := io.ReadFull(br, b); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if head.OpCode != ws.OpClose {
				continue
			}
			if code, why := ws.ParseCloseFrameData(b); code != 4008 || why != "flood" {
				t.Errorf("%s: closed with %d %s", what, code, why)
			}
			break
		}
		conn.Close()
		<-sent
		sockets++
		p.counts(`earshot_voice_sockets_ended_total{why="4008"}`, float64(sockets))
		goesOn()
		w.SetDeadline(time.Now().Add(peer.Patience))
		w.askVoice() // it is only the voice that has ended
	}
	for _, want := range []string{
		"limits.channels", "commands.completions-kick-after", "sends more pings and pongs", "sends more fragments of messages", "more frames of the microphone",
		"more text messages",
	} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
}
