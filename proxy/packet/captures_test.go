package packet

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// captured is a packet that a real client has sent before it was a player.
type captured struct {
	protocol int32
	state    proto.State
	packet   proto.Packet
	body     []byte
}

// codec returns how the fuzz targets name what c is.
func (c captured) codec() string {
	return map[proto.Packet]string{
		proto.SetProtocol: "set_protocol", proto.LoginStart: "login_start", proto.EncryptionBegin: "toServer/encryption_begin", proto.StatusPing: "ping",
	}[c.packet]
}

// captures returns those of testdata/captures.jsonl up to the login's success, all uncompressed.
func captures(t testing.TB) (all []captured) {
	t.Helper()
	file, err := os.ReadFile("testdata/captures.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		var c struct {
			Protocol                int32
			Ping, Login, Encryption string
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		ver := proto.Lookup(c.Protocol)
		for _, said := range []struct {
			hex     string
			state   proto.State
			packets int // what comes after them is compressed or encrypted
		}{{c.Ping, proto.Status, 3}, {c.Login, proto.Login, 2}, {c.Encryption, proto.Login, 3}} {
			b, err := hex.DecodeString(said.hex)
			if err != nil {
				t.Fatal(err)
			}
			state := proto.Handshake
			for r := field.NewReader(b); said.packets > 0; said.packets-- {
				f := field.NewReader(r.Bytes(1 << 10))
				p := ver.Table(state, proto.Serverbound)[f.VarInt()&0xff]
				all = append(all, captured{c.Protocol, state, p, f.Rest()})
				if r.Err() != nil || f.Err() != nil || p == proto.Unknown {
					t.Fatalf("%d: %v %v in % x", c.Protocol, p, r.Err(), b)
				}
				state = said.state
			}
		}
	}
	return all
}

// TestCaptures: what the clients there are send before they are players is read for what it is, and written the same.
func TestCaptures(t *testing.T) {
	seen := map[proto.Packet]int{}
	for _, c := range captures(t) {
		seen[c.packet]++
		if c.packet == proto.StatusRequest {
			if len(c.body) != 0 {
				t.Errorf("%d: a status request of % x", c.protocol, c.body)
			}
			continue
		}
		codec := loginCodecs[c.codec()]
		v, err := codec.parse(c.protocol, c.state, c.body)
		if err != nil {
			t.Errorf("%d: %v of % x: %v", c.protocol, c.packet, c.body, err)
			continue
		}
		if again := codec.append(c.protocol, c.state, v); !bytes.Equal(again, c.body) {
			t.Errorf("%d: %v of % x is written as % x", c.protocol, c.packet, c.body, again)
		}
		switch v := v.(type) {
		case Handshake:
			if v.Protocol != c.protocol || v.Host != "play.example.org" || v.Port != 25565 || v.Intent != IntentStatus && v.Intent != IntentLogin {
				t.Errorf("%d: %+v", c.protocol, v)
			}
		case LoginStart:
			if v.Name != "Notch" || v.Key != nil {
				t.Errorf("%d: %+v", c.protocol, v)
			}
		case EncryptionResponse:
			if len(v.Secret) != 128 || len(v.Token) != 128 || v.Signed {
				t.Errorf("%d: %+v", c.protocol, v)
			}
		}
	}
	for _, p := range []proto.Packet{proto.StatusRequest, proto.StatusPing, proto.EncryptionBegin} {
		if seen[p] < 40 {
			t.Errorf("%d captures of %v", seen[p], p)
		}
	}
}
