package packet

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// loginVector is a line of testdata/login.jsonl, which another implementation wrote.
type loginVector struct {
	State, Dir, Packet string
	Protocols          []int32
	Hex                string
	Fields             json.RawMessage
}

func loginVectors(t testing.TB) []loginVector {
	t.Helper()
	out, err := testkit.Lines[loginVector]("testdata/login.jsonl")
	if err != nil || len(out) < 200 {
		t.Fatalf("only %d vectors (%v)", len(out), err)
	}
	return out
}

// loginCodec takes a body apart and puts it together again, for one packet in one state.
type loginCodec struct {
	parse  func(protocol int32, s proto.State, body []byte) (any, error)
	append func(protocol int32, s proto.State, v any) []byte
	zero   any // a value of the type, for decoding the fields of a vector; nil: they are a text component
}

func codecOf[T any](parse func(int32, []byte) (T, error), app func([]byte, int32, T) []byte) loginCodec {
	var zero T
	return loginCodec{
		func(p int32, _ proto.State, b []byte) (any, error) { return parse(p, b) },
		func(p int32, _ proto.State, v any) []byte { return app(nil, p, v.(T)) },
		zero,
	}
}

func anyVersion[T any](parse func([]byte) (T, error), app func([]byte, T) []byte) loginCodec {
	return codecOf(func(_ int32, b []byte) (T, error) { return parse(b) }, func(b []byte, _ int32, v T) []byte { return app(b, v) })
}

// message returns a loginCodec for what we only send: the component's text in, packet and body out.
func message(build func(int32, Text) (proto.Packet, []byte), want proto.Packet) loginCodec {
	return loginCodec{append: func(p int32, _ proto.State, v any) []byte {
		got, body := build(p, v.(Text))
		if got != want {
			return []byte("packet " + got.String())
		}
		return body
	}}
}

var disconnect = loginCodec{
	func(p int32, s proto.State, b []byte) (any, error) { return ParseDisconnect(p, s, b) },
	func(p int32, s proto.State, v any) []byte { return AppendDisconnect(nil, p, s, v.(Text)) },
	nil,
}

var loginCodecs = map[string]loginCodec{
	"set_protocol":              anyVersion(func(b []byte) (Handshake, error) { return ParseHandshake(b, MaxHost) }, AppendHandshake),
	"login_start":               codecOf(ParseLoginStart, AppendLoginStart),
	"toServer/encryption_begin": codecOf(ParseEncryptionResponse, AppendEncryptionResponse),
	"toClient/encryption_begin": codecOf(ParseEncryptionRequest, AppendEncryptionRequest),
	"login_plugin_response":     anyVersion(ParseLoginPluginResponse, AppendLoginPluginResponse),
	"login_plugin_request":      anyVersion(ParseLoginPluginRequest, AppendLoginPluginRequest),
	"cookie_response":           anyVersion(ParseCookieResponse, AppendCookieResponse),
	"cookie_request":            anyVersion(ParseCookieRequest, AppendCookieRequest),
	"success":                   codecOf(ParseLoginSuccess, AppendLoginSuccess),
	"compress":                  anyVersion(ParseSetCompression, AppendSetCompression),
	"ping":                      anyVersion(ParseStatusPing, AppendStatusPing),
	"keep_alive":                codecOf(ParseKeepAlive, AppendKeepAlive),
	"custom_payload":            anyVersion(ParsePluginMessage, AppendPluginMessage),
	"settings":                  codecOf(ParseClientInformation, AppendClientInformation),
	"server_info":               anyVersion(parseStatusString, appendStatusString),
	"disconnect":                disconnect,
	"kick_disconnect":           disconnect,
	"system_chat":               message(SystemMessage, proto.SystemChat),
	"chat":                      message(SystemMessage, proto.Chat),
	"action_bar":                message(ActionBarMessage, proto.ActionBar),
	"title":                     message(ActionBarMessage, proto.Title),
}

func parseStatusString(b []byte) (string, error) {
	j, err := ParseStatusResponse(b)
	return string(j), err
}
func appendStatusString(dst []byte, json string) []byte {
	return AppendStatusResponse(dst, []byte(json))
}

func codecFor(v loginVector) (loginCodec, bool) {
	c, ok := loginCodecs[v.Packet]
	if !ok {
		c, ok = loginCodecs[v.Dir+"/"+v.Packet]
	}
	return c, ok
}

var loginStates = map[string]proto.State{"handshaking": proto.Handshake, "status": proto.Status, "login": proto.Login, "configuration": proto.Config, "play": proto.Play}

func TestLoginVectors(t *testing.T) {
	seen := map[string]map[int32]bool{}
	for _, v := range loginVectors(t) {
		c, ok := codecFor(v)
		if !ok {
			t.Fatalf("no loginCodec for %s %s", v.Dir, v.Packet)
		}
		body, err := hex.DecodeString(v.Hex)
		if err != nil {
			t.Fatal(err)
		}
		key := v.State + "/" + v.Dir + "/" + v.Packet
		if seen[key] == nil {
			seen[key] = map[int32]bool{}
		}
		for _, p := range v.Protocols {
			seen[key][p] = true
			checkVector(t, v, c, p, body)
		}
	}
	// Nothing fell out of the file: each packet is there for each version that has it.
	for key, got := range seen {
		var state, dir, name = splitKey(key)
		if name == proto.Unknown {
			t.Errorf("%s is no packet we know", key)
		}
		for _, ver := range proto.Supported() {
			if _, has := ver.ID(state, dir, name); has != got[ver.Protocol] && !partlyUsed[key] {
				t.Errorf("%s: version %d has it: %v, vectors: %v", key, ver.Protocol, has, got[ver.Protocol])
			}
		}
	}
	if len(seen) != 32 {
		t.Errorf("%d packets in the vectors: %v", len(seen), slices.Collect(mapKeys(seen)))
	}
}

// partlyUsed are packets of which we only use some versions.
var partlyUsed = map[string]bool{"play/toClient/chat": true, "play/toClient/title": true}

func mapKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func splitKey(key string) (proto.State, proto.Dir, proto.Packet) {
	parts := bytes.Split([]byte(key), []byte("/"))
	name := string(parts[2])
	for from, to := range map[string]string{"compress": "set_compression", "success": "login_success", "kick_disconnect": "disconnect",
		"settings": "client_information", "server_info": "status_response"} {
		if name == from {
			name = to
		}
	}
	if name == "ping" && string(parts[0]) == "status" {
		name = "status_ping"
	}
	dir := proto.Clientbound
	if string(parts[1]) == "toServer" {
		dir = proto.Serverbound
	}
	p, _ := proto.ByName(name)
	return loginStates[string(parts[0])], dir, p
}

func checkVector(t *testing.T, v loginVector, c loginCodec, p int32, body []byte) {
	t.Helper()
	s := loginStates[v.State]
	var want any
	if c.zero != nil {
		ptr := reflect.New(reflect.TypeOf(c.zero))
		d := json.NewDecoder(bytes.NewReader(v.Fields))
		d.DisallowUnknownFields()
		if err := d.Decode(ptr.Interface()); err != nil {
			t.Fatalf("%s %d: %v", v.Packet, p, err)
		}
		want = ptr.Elem().Interface()
	} else {
		var component string
		if err := json.Unmarshal(v.Fields, &component); err != nil {
			t.Fatal(err)
		}
		text, err := ParseText(component)
		if err != nil {
			t.Fatal(err)
		}
		want = text
	}
	if got := c.append(p, s, want); !bytes.Equal(got, body) {
		t.Errorf("%s %s in %d: %s\nwrote %x\nwant  %x", v.State, v.Packet, p, v.Fields, got, body)
	}
	if c.parse == nil {
		return
	}
	got, err := c.parse(p, s, body)
	if err != nil {
		t.Errorf("%s %s in %d: %v", v.State, v.Packet, p, err)
		return
	}
	if text, ok := got.(Text); ok {
		if text.String() != want.(Text).String() || !bytes.Equal(c.append(p, s, text), body) {
			t.Errorf("%s %s in %d: read %q from %x", v.State, v.Packet, p, text, body)
		}
	} else if !reflect.DeepEqual(got, want) {
		t.Errorf("%s %s in %d: read %+v\nwant %+v", v.State, v.Packet, p, got, want)
	}
	for n := range body { // every part of a body is needed, but of those that end in data or in a lenient string
		if short, err := c.parse(p, s, body[:n]); err == nil && !openEnded[v.Packet] {
			t.Errorf("%s %s in %d: %d of %d bytes were enough for %+v", v.State, v.Packet, p, n, len(body), short)
			break
		}
	}
	if _, err := c.parse(p, s, append(bytes.Clone(body), 0)); (err == nil) != (openEnded[v.Packet] || v.Packet == "server_info") {
		if v.Packet != "login_plugin_response" {
			t.Errorf("%s %s in %d: a byte too much: %v", v.State, v.Packet, p, err)
		}
	}
}

var openEnded = map[string]bool{"custom_payload": true, "login_plugin_request": true, "login_plugin_response": true}

// fuzz checks that what a decoder accepts it can write, and reads the same from what it wrote.
func fuzzLogin(f *testing.F, names ...string) {
	used := 0
	for _, v := range loginVectors(f) {
		if !slices.Contains(names, v.Packet) && !slices.Contains(names, v.Dir+"/"+v.Packet) {
			continue
		}
		body, _ := hex.DecodeString(v.Hex)
		for _, p := range v.Protocols {
			f.Add(body, uint8(slices.IndexFunc(proto.Supported(), func(x *proto.Version) bool { return x.Protocol == p })), uint8(slices.Index(names, v.Packet)))
			used++
		}
	}
	for _, c := range captures(f) {
		if which := slices.Index(names, c.codec()); which >= 0 {
			f.Add(c.body, uint8(slices.Index(proto.Supported(), proto.Lookup(c.protocol))), uint8(which))
		}
	}
	if used == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, body []byte, version, which uint8) {
		name := names[int(which)%len(names)]
		c := loginCodecs[name]
		p := proto.Supported()[int(version)%len(proto.Supported())].Protocol
		for _, s := range []proto.State{proto.Login, proto.Play} {
			v, err := c.parse(p, s, body)
			if err != nil {
				continue
			}
			if m, ok := v.(PluginMessage); ok && string(PluginChannel(body)) != m.Channel {
				t.Fatalf("%x is on %q, the brief form has %q", body, m.Channel, PluginChannel(body))
			}
			again := c.append(p, s, v)
			v2, err := c.parse(p, s, again)
			if err != nil || !reflect.DeepEqual(v, v2) {
				t.Fatalf("%s in %d: %x is %+v, written as %x that is %+v, %v", name, p, body, v, again, v2, err)
			}
			if len(again) > len(body)+8 {
				t.Fatalf("%s in %d: %d bytes became %d", name, p, len(body), len(again))
			}
		}
	})
}

func FuzzHandshake(f *testing.F)          { fuzzLogin(f, "set_protocol") }
func FuzzLoginStart(f *testing.F)         { fuzzLogin(f, "login_start") }
func FuzzEncryptionResponse(f *testing.F) { fuzzLogin(f, "toServer/encryption_begin") }
func FuzzEncryptionRequest(f *testing.F)  { fuzzLogin(f, "toClient/encryption_begin") }
func FuzzLoginSuccess(f *testing.F)       { fuzzLogin(f, "success") }
func FuzzLoginPlugin(f *testing.F)        { fuzzLogin(f, "login_plugin_request", "login_plugin_response") }
func FuzzCookies(f *testing.F)            { fuzzLogin(f, "cookie_request", "cookie_response") }
func FuzzDisconnect(f *testing.F)         { fuzzLogin(f, "disconnect", "kick_disconnect") }
func FuzzSmallPackets(f *testing.F) {
	fuzzLogin(f, "compress", "ping", "server_info", "keep_alive", "custom_payload")
}
func FuzzClientInformation(f *testing.F) { fuzzLogin(f, "settings") }

// TestSessionIDBoundary: neither 26.1 nor 26.2 takes the other's login success for its own.
func TestSessionIDBoundary(t *testing.T) {
	tried := map[int32]int{}
	for _, v := range loginVectors(t) {
		if v.Packet != "success" {
			continue
		}
		body, err := hex.DecodeString(v.Hex)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []int32{proto.V26_1, proto.V26_2} {
			if !slices.Contains(v.Protocols, p) {
				continue
			}
			tried[p]++
			other := proto.V26_1 + proto.V26_2 - p
			if got, err := ParseLoginSuccess(other, body); err == nil {
				t.Errorf("%s of %d is %+v in %d", v.Hex, p, got, other)
			}
		}
	}
	if tried[proto.V26_1] == 0 || tried[proto.V26_2] == 0 {
		t.Errorf("tried %v", tried)
	}
}
