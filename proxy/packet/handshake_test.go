package packet

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/proxy/field"
)

var hosts = []struct {
	raw      string
	protocol int32
	host     string
	marker   string
}{
	{"Play.Example.ORG", 47, "play.example.org", ""},
	{"play.example.org.", 775, "play.example.org", ""},
	{"play.example.org.:25565", 775, "play.example.org", ""},
	{"play.example.org:25565.", 775, "play.example.org", ""},
	{"a...", 775, "a", ""},
	{"10.0.0.1:25565", 775, "10.0.0.1", ""},
	{"::1", 775, "::1", ""},
	{"[2001:DB8::1]:25565", 775, "2001:db8::1", ""},
	{"[::1]", 775, "::1", ""},
	{"", 775, "", ""},
	{"shield.example///1.2.3.4:5///1600000000", 340, "shield.example", ""},
	{"shield.example///1.2.3.4\x00FML\x00", 340, "shield.example", "\x00FML\x00"},
	{"a.b\x00FML\x00", 340, "a.b", "\x00FML\x00"},
	{"a.b.\x00FML\x00", 47, "a.b", "\x00FML\x00"},
	{"a.b\x00FML\x00", 393, "a.b", ""}, // newer loaders say more
	{"a.b\x00FML", 340, "a.b", ""},
	{"a.b\x00FML\x00x", 340, "a.b", ""},
	{"a.b\x00FML2\x00", 393, "a.b", "\x00FML2\x00"},
	{"a.b\x00FML2\x00", 340, "a.b", ""},
	{"a.b\x00FML3\x00", 763, "a.b", "\x00FML3\x00"},
	{"a.b\x00FML3", 763, "a.b", "\x00FML3"},
	{"a.b\x00FML3\x00", 764, "a.b", ""},
	{"a.b\x00FORGE", 764, "a.b", "\x00FORGE"},
	{"a.b\x00FORGE12\x00", 775, "a.b", "\x00FORGE12\x00"},
	{"a.b\x00FORGERY", 775, "a.b", ""},
	{"FORGE.example", 775, "forge.example", ""}, // a name is no marker
	{"FML2.example\x00x", 393, "fml2.example", ""},
	{"xFML2\x00yFML2\x00", 393, "xfml2", ""},
	{"a.b\x001.2.3.4\x0000112233445566778899aabbccddeeff\x00[]\x00FML2\x00", 393, "a.b", "\x00FML2\x00"},
}

func TestCleanHost(t *testing.T) {
	for _, c := range hosts {
		if host, marker := CleanHost(c.raw, c.protocol); host != c.host || marker != c.marker {
			t.Errorf("%q in %d: %q, %q; want %q, %q", c.raw, c.protocol, host, marker, c.host, c.marker)
		}
	}
}

func FuzzCleanHost(f *testing.F) {
	for _, c := range hosts {
		f.Add(c.raw, c.protocol)
	}
	f.Fuzz(func(t *testing.T, raw string, protocol int32) {
		host, marker := CleanHost(raw, protocol)
		if strings.ContainsAny(host, "\x00") || strings.HasSuffix(host, ".") || strings.ToLower(host) != host {
			t.Fatalf("%q: %q is not clean", raw, host)
		}
		if marker != "" && (!strings.Contains(raw, marker) || marker[0] != 0) {
			t.Fatalf("%q: marker %q is not in it", raw, marker)
		}
	})
}

func TestHandshakeRefuses(t *testing.T) {
	ok := Handshake{Protocol: 47, Host: strings.Repeat("a", MaxHost), Port: 1, Intent: IntentLogin}
	if _, err := ParseHandshake(AppendHandshake(nil, ok), MaxHost); err != nil {
		t.Error(err)
	}
	for _, intent := range []Intent{-1, 0, 4, 7, 1 << 30} {
		h := ok
		h.Intent = intent
		if _, err := ParseHandshake(AppendHandshake(nil, h), MaxHost); err == nil {
			t.Errorf("intent %d accepted", intent)
		}
	}
	long := ok
	long.Host += "a"
	if _, err := ParseHandshake(AppendHandshake(nil, long), MaxHost); err == nil {
		t.Error("a long host accepted")
	}
	if h, err := ParseHandshake(AppendHandshake(nil, long), MaxForwardedHost); err != nil || h != long {
		t.Error("a long host refused behind a proxy")
	}
}

func TestChannels(t *testing.T) {
	for _, c := range []struct {
		protocol int32
		data     string
		want     []string
	}{
		{47, "FML|HS\x00MC|Brand\x00\x00socketsvc:voice\x00" + strings.Repeat("x", 21) + "\x00a b", []string{"FML|HS", "MC|Brand", "socketsvc:voice"}},
		{393, "a:b\x00\x00A:b\x00a:b/c_d-e.f\x00:\x00a:\x00:x\x00a:b:c\x00bare\x00ä:b\x00a/b:c", []string{"a:b", "a:b/c_d-e.f", ":x", "bare"}},
		{775, "", nil},
		{775, "\x00\x00", nil},
	} {
		got, err := ParseChannels(c.protocol, []byte(c.data))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q in %d: %q, %v", c.data, c.protocol, got, err)
		}
		if again, err := ParseChannels(c.protocol, AppendChannels(nil, got)); err != nil || !slices.Equal(again, got) {
			t.Errorf("%q came back as %q, %v", got, again, err)
		}
	}
	if got, err := ParseChannels(775, []byte(strings.Repeat("a:b\x00", MaxChannels))); err != nil || len(got) != MaxChannels {
		t.Errorf("%d channels, %v", len(got), err)
	}
	if _, err := ParseChannels(775, []byte(strings.Repeat("a:b\x00", MaxChannels+1))); err == nil {
		t.Error("too many channels accepted")
	}
	for p, want := range map[int32]string{340: "REGISTER MC|Brand", 393: "minecraft:register minecraft:brand"} {
		if got := RegisterChannel(p) + " " + BrandChannel(p); got != want || !ValidChannel(p, RegisterChannel(p)) || !ValidChannel(p, BrandChannel(p)) {
			t.Errorf("%d: %s", p, got)
		}
	}
}

func FuzzChannels(f *testing.F) {
	f.Add([]byte("a:b\x00\x00FML|HS"), int32(47))
	f.Add([]byte("a:b\x00\x00A:b"), int32(775))
	f.Fuzz(func(t *testing.T, data []byte, protocol int32) {
		got, err := ParseChannels(protocol, data)
		if err != nil {
			return
		}
		again, err := ParseChannels(protocol, AppendChannels(nil, got))
		if err != nil || !slices.Equal(got, again) || len(got) > len(data) {
			t.Fatalf("%q: %q, then %q, %v", data, got, again, err)
		}
	})
}

func TestBrand(t *testing.T) {
	for data, want := range map[string]string{"\x07vanilla": "vanilla", "vanilla": "vanilla", "\x00": "", "\x05abc": "\x05abc"} {
		if got, err := ParseBrand([]byte(data)); got != want || err != nil {
			t.Errorf("%q: %q, %v", data, got, err)
		}
	}
	for _, bad := range []string{"", "\xff\xfe", strings.Repeat("x", 300)} {
		if got, err := ParseBrand([]byte(bad)); err == nil {
			t.Errorf("%q is %q", bad, got)
		}
	}
	if got, _ := ParseBrand(AppendBrand(nil, "Paper (Earshot)")); got != "Paper (Earshot)" {
		t.Error(got)
	}
}

func FuzzBrand(f *testing.F) {
	f.Add([]byte("\x07vanilla"))
	f.Add([]byte("vanilla"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := ParseBrand(data); err == nil {
			if again, err := ParseBrand(AppendBrand(nil, got)); again != got || err != nil {
				t.Fatalf("%q: %q, then %q, %v", data, got, again, err)
			}
		}
	})
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{"Notch": true, "a": true, "_0123456789ABCDz": true, "": false, "0123456789abcdefg": false,
		"a b": false, ".bedrock": false, "é": false, "a\x00": false, "a-b": false} {
		if ValidName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// TestLoginCaps: one more than each cap is refused, the cap itself is not.
func TestLoginCaps(t *testing.T) {
	n := func(n int) []byte { return make([]byte, n) }
	s := func(n int) string { return strings.Repeat("x", n) }
	key := func(pub, sig int) []byte {
		return AppendLoginStart(nil, 759, LoginStart{Name: "a", Key: &ProfileKey{1, n(pub), n(sig)}})
	}
	props := func(count, name, value, sign int) []byte {
		return AppendLoginSuccess(nil, 763, LoginSuccess{Name: "a", Properties: slices.Repeat([]Property{{s(name), s(value), s(sign)}}, count)})
	}
	start := func(b []byte) error { _, err := ParseLoginStart(759, b); return err }
	success := func(b []byte) error { _, err := ParseLoginSuccess(763, b); return err }
	response := func(b []byte) error { _, err := ParseEncryptionResponse(763, b); return err }
	signed := func(b []byte) error { _, err := ParseEncryptionResponse(759, b); return err }
	request := func(b []byte) error { _, err := ParseEncryptionRequest(763, b); return err }
	plugin := func(b []byte) error { _, err := ParseLoginPluginRequest(b); return err }
	answer := func(b []byte) error { _, err := ParseLoginPluginResponse(b); return err }
	cookie := func(b []byte) error { _, err := ParseCookieResponse(b); return err }
	for name, c := range map[string]struct {
		parse   func([]byte) error
		ok, bad []byte
	}{
		"name":             {start, AppendLoginStart(nil, 759, LoginStart{Name: s(16)}), AppendLoginStart(nil, 759, LoginStart{Name: s(17)})},
		"public key":       {start, key(512, 1), key(513, 1)},
		"key signature":    {start, key(1, 4096), key(1, 4097)},
		"properties":       {success, props(64, 1, 1, 1), props(65, 1, 1, 1)},
		"property name":    {success, props(1, 64, 1, 1), props(1, 65, 1, 1)},
		"property value":   {success, props(1, 1, 32767, 1), props(1, 1, 32768, 1)},
		"property sign":    {success, props(1, 1, 1, 1024), props(1, 1, 1, 1025)},
		"secret":           {response, AppendEncryptionResponse(nil, 763, EncryptionResponse{Secret: n(256)}), AppendEncryptionResponse(nil, 763, EncryptionResponse{Secret: n(257)})},
		"token":            {response, AppendEncryptionResponse(nil, 763, EncryptionResponse{Token: n(256)}), AppendEncryptionResponse(nil, 763, EncryptionResponse{Token: n(257)})},
		"signature":        {signed, AppendEncryptionResponse(nil, 759, EncryptionResponse{Signed: true, Signature: n(4096)}), AppendEncryptionResponse(nil, 759, EncryptionResponse{Signed: true, Signature: n(4097)})},
		"server id":        {request, AppendEncryptionRequest(nil, 763, EncryptionRequest{ServerID: s(20)}), AppendEncryptionRequest(nil, 763, EncryptionRequest{ServerID: s(21)})},
		"plugin data":      {plugin, AppendLoginPluginRequest(nil, LoginPluginRequest{Data: n(1 << 20)}), AppendLoginPluginRequest(nil, LoginPluginRequest{Data: n(1<<20 + 1)})},
		"plugin answer":    {answer, AppendLoginPluginResponse(nil, LoginPluginResponse{Understood: true, Data: n(1 << 20)}), AppendLoginPluginResponse(nil, LoginPluginResponse{Understood: true, Data: n(1<<20 + 1)})},
		"cookie":           {cookie, AppendCookieResponse(nil, CookieResponse{Found: true, Value: n(5120)}), AppendCookieResponse(nil, CookieResponse{Found: true, Value: n(5121)})},
		"count of nothing": {success, props(0, 0, 0, 0), append(append(n(16), 1, 'a'), 64)},
	} {
		if err := c.parse(c.ok); err != nil {
			t.Errorf("%s at its cap: %v", name, err)
		}
		if c.parse(c.bad) == nil {
			t.Errorf("%s over its cap was accepted", name)
		}
	}
	for _, id := range []string{"", "069a79f444e94726a5befca90e38aaf5", "069a79f4-44e9-4726-a5be-fca90e38aaf", "zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz"} {
		if _, err := ParseLoginSuccess(47, field.AppendString(field.AppendString(nil, id), "a")); err == nil {
			t.Errorf("uuid %q accepted", id)
		}
	}
}

func TestPluginChannel(t *testing.T) {
	body := AppendPluginMessage(nil, PluginMessage{"socketsvc:hello", []byte("x")})
	want := []byte("socketsvc:")
	if n := testing.AllocsPerRun(100, func() {
		if !bytes.HasPrefix(PluginChannel(body), want) {
			t.Fatal("channel not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := PluginChannel([]byte{200, 1, 'a'}); got != nil {
		t.Errorf("%q", got)
	}
	if _, err := ParsePluginMessage([]byte{5, 'a'}); err == nil {
		t.Error("half a channel accepted")
	}
	m, err := ParsePluginMessage(body)
	if err != nil || &m.Data[0] != &body[len(body)-1] {
		t.Errorf("data does not alias the body: %v", err)
	}
}

func TestForgeMods(t *testing.T) {
	mods, err := ParseForgeMods([]byte("\x02\x03fml\x018\x05forge\x0214"))
	if want := []ForgeMod{{"fml", "8"}, {"forge", "14"}}; err != nil || !slices.Equal(mods, want) {
		t.Errorf("%+v, %v", mods, err)
	}
	for _, bad := range []string{"", "\x01", "\x01\x01a", "\x01\x01a\x01bc", "\xff\xff\xff\xff\x07", "\x00\x00", "\x81\x20" + strings.Repeat("\x00\x00", 4097)} {
		if mods, err := ParseForgeMods([]byte(bad)); err == nil {
			t.Errorf("%q: %d mods", bad, len(mods))
		}
	}
}

func FuzzForgeMods(f *testing.F) {
	f.Add([]byte("\x02\x03fml\x018\x05forge\x0214"))
	f.Add([]byte("\xff\xff\xff\xff\x07"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if mods, err := ParseForgeMods(data); len(mods) > len(data)/2 || err != nil && mods != nil {
			t.Errorf("%d mods, %v", len(mods), err)
		}
	})
}
