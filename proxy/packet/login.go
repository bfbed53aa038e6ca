package packet

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Bounds of the login packets: characters of strings, bytes of the rest.
const (
	MaxName         = 16
	maxServerID     = 20
	maxPublicKey    = 512
	maxKeySignature = 4096
	maxSecret       = 256 // an RSA-2048 answer; RSA-1024 gives 128
	maxToken        = 256
	maxIdentifier   = 32767
	maxPluginData   = 1 << 20
	maxProperties   = 64
	maxPropName     = 64
	maxPropValue    = 32767
	maxPropSign     = 1024
	maxCookie       = 5120
)

// ProfileKey is the key a player of 759 and 760 (1.19 to 1.19.2) signs chat with, certified by Mojang.
type ProfileKey struct {
	Expires   int64  // milliseconds since 1970
	PublicKey []byte // X.509 DER
	Signature []byte // Mojang's; what it covers differs between 759 and 760
}

func readProfileKey(r *field.Reader) *ProfileKey {
	return &ProfileKey{r.I64(), bytes.Clone(r.Bytes(maxPublicKey)), bytes.Clone(r.Bytes(maxKeySignature))}
}

// AppendProfileKey writes the three fields of a key, as login start and identity forwarding have them.
//
// Layout: login/toServer/login_start.
func AppendProfileKey(dst []byte, k *ProfileKey) []byte {
	return field.AppendBytes(field.AppendBytes(field.AppendI64(dst, k.Expires), k.PublicKey), k.Signature)
}

// LoginStart says who a client claims to be.
type LoginStart struct {
	Name string
	Key  *ProfileKey // 759 and 760, and optional there
	// ID is the client's own idea of its UUID; HasID tells whether it sent one (759 and before: never, 760 to 763:
	// perhaps, 764 on: always). It is a claim, not an identity.
	ID    uuid.UUID
	HasID bool
}

// ParseLoginStart reads a login start. ValidName tells whether the name is acceptable.
//
// Layout: login/toServer/login_start.
func ParseLoginStart(protocol int32, body []byte) (LoginStart, error) {
	r := field.NewReader(body)
	l := LoginStart{Name: r.String(MaxName)}
	if hasKey(protocol) && r.Bool() {
		l.Key = readProfileKey(r)
	}
	if proto.Has(protocol, proto.LoginUUIDAlways) || proto.Has(protocol, proto.LoginUUID) && r.Bool() {
		l.ID, l.HasID = r.UUID(), true
	}
	return done(r, "login start", l)
}

// AppendLoginStart writes a login start with the parts that the version has.
func AppendLoginStart(dst []byte, protocol int32, l LoginStart) []byte {
	dst = field.AppendString(dst, l.Name)
	if hasKey(protocol) {
		if dst = field.AppendBool(dst, l.Key != nil); l.Key != nil {
			dst = AppendProfileKey(dst, l.Key)
		}
	}
	if proto.Has(protocol, proto.LoginUUID) && !proto.Has(protocol, proto.LoginUUIDAlways) {
		dst = field.AppendBool(dst, l.HasID)
	}
	if proto.Has(protocol, proto.LoginUUIDAlways) || proto.Has(protocol, proto.LoginUUID) && l.HasID {
		dst = field.AppendUUID(dst, l.ID)
	}
	return dst
}

func hasKey(protocol int32) bool { return proto.Has(protocol, proto.ProfileKeys) }

// ValidName tells whether name is 1 to 16 letters, digits and underscores, as all names given out today are.
func ValidName(name string) bool {
	return name != "" && len(name) <= MaxName && strings.IndexFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_'
	}) < 0
}

// EncryptionRequest opens the exchange of an online login.
type EncryptionRequest struct {
	ServerID     string // empty since 1.7
	PublicKey    []byte // X.509 DER
	Token        []byte
	Authenticate bool // 766 on: the client shall report to the session server; before, it always does
}

// ParseEncryptionRequest reads the question of a server in online mode.
//
// Layout: login/toClient/encryption_begin.
func ParseEncryptionRequest(protocol int32, body []byte) (EncryptionRequest, error) {
	r := field.NewReader(body)
	e := EncryptionRequest{r.String(maxServerID), bytes.Clone(r.Bytes(maxPublicKey)), bytes.Clone(r.Bytes(maxToken)), true}
	if proto.Has(protocol, proto.EncryptionAuthenticates) {
		e.Authenticate = r.Bool()
	}
	return done(r, "encryption request", e)
}

// AppendEncryptionRequest writes an encryption request.
func AppendEncryptionRequest(dst []byte, protocol int32, e EncryptionRequest) []byte {
	dst = field.AppendBytes(field.AppendBytes(field.AppendString(dst, e.ServerID), e.PublicKey), e.Token)
	if proto.Has(protocol, proto.EncryptionAuthenticates) {
		dst = field.AppendBool(dst, e.Authenticate)
	}
	return dst
}

// EncryptionResponse is the client's answer.
type EncryptionResponse struct {
	Secret []byte // encrypted with the server's key
	Token  []byte // the same; nil when Signed
	// Signed, 759 and 760 only: instead of the token there is a signature over token and salt, made with the profile
	// key.
	Signed    bool
	Salt      int64
	Signature []byte
}

// ParseEncryptionResponse reads the answer to an encryption request.
//
// Layout: login/toServer/encryption_begin.
func ParseEncryptionResponse(protocol int32, body []byte) (EncryptionResponse, error) {
	r := field.NewReader(body)
	e := EncryptionResponse{Secret: bytes.Clone(r.Bytes(maxSecret))}
	if hasKey(protocol) && !r.Bool() && r.Err() == nil {
		e.Signed, e.Salt, e.Signature = true, r.I64(), bytes.Clone(r.Bytes(maxKeySignature))
	} else {
		e.Token = bytes.Clone(r.Bytes(maxToken))
	}
	return done(r, "encryption response", e)
}

// AppendEncryptionResponse writes the answer to an encryption request.
func AppendEncryptionResponse(dst []byte, protocol int32, e EncryptionResponse) []byte {
	dst = field.AppendBytes(dst, e.Secret)
	if hasKey(protocol) {
		if dst = field.AppendBool(dst, !e.Signed); e.Signed {
			return field.AppendBytes(field.AppendI64(dst, e.Salt), e.Signature)
		}
	}
	return field.AppendBytes(dst, e.Token)
}

// Property is a part of a player's profile, such as the skin.
type Property struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	Signature string `json:"signature,omitempty"` // empty: not signed
}

// ReadProperties reads a counted list of properties within the caps of a profile.
//
// Layout: login/toClient/success.
func ReadProperties(r *field.Reader) []Property {
	n := r.Count(3)
	if n > maxProperties {
		r.Fail(fmt.Errorf("%d properties, at most %d allowed", n, maxProperties))
	}
	var ps []Property
	for range n {
		if r.Err() != nil {
			return nil
		}
		p := Property{Name: r.String(maxPropName), Value: r.String(maxPropValue)}
		if r.Bool() {
			p.Signature = r.String(maxPropSign)
		}
		ps = append(ps, p)
	}
	return ps
}

// AppendProperties writes a counted list of properties.
//
// Layout: login/toClient/success.
func AppendProperties(dst []byte, ps []Property) []byte {
	dst = field.AppendVarInt(dst, int32(len(ps)))
	for _, p := range ps {
		dst = field.AppendString(field.AppendString(dst, p.Name), p.Value)
		if dst = field.AppendBool(dst, p.Signature != ""); p.Signature != "" {
			dst = field.AppendString(dst, p.Signature)
		}
	}
	return dst
}

// LoginSuccess ends the login with the identity the server gives the player.
type LoginSuccess struct {
	ID         uuid.UUID
	Name       string
	Properties []Property // 759 on
	// Strict, 766 and 767 only: the client shall skip packets that it cannot read.
	Strict  bool
	Session uuid.UUID // 776 on: any, of the server's choice
}

// ParseLoginSuccess reads a login success.
//
// Layout: login/toClient/success.
func ParseLoginSuccess(protocol int32, body []byte) (LoginSuccess, error) {
	r := field.NewReader(body)
	var l LoginSuccess
	if proto.Has(protocol, proto.BinaryUUID) {
		l.ID = r.UUID()
	} else if id := r.String(36); r.Err() == nil {
		var err error
		if l.ID, err = uuid.Parse(id); err != nil || len(id) != 36 {
			r.Fail(errors.New("uuid is not 36 characters of hex with dashes"))
		}
	}
	l.Name = r.String(MaxName)
	if proto.Has(protocol, proto.LoginProperties) {
		l.Properties = ReadProperties(r)
	}
	if hasStrict(protocol) {
		l.Strict = r.Bool()
	}
	if proto.Has(protocol, proto.LoginSessionID) {
		l.Session = r.UUID()
	}
	return done(r, "login success", l)
}

// AppendLoginSuccess writes a login success with the parts that the version has.
func AppendLoginSuccess(dst []byte, protocol int32, l LoginSuccess) []byte {
	if proto.Has(protocol, proto.BinaryUUID) {
		dst = field.AppendUUID(dst, l.ID)
	} else {
		dst = field.AppendString(dst, l.ID.String())
	}
	dst = field.AppendString(dst, l.Name)
	if proto.Has(protocol, proto.LoginProperties) {
		dst = AppendProperties(dst, l.Properties)
	}
	if hasStrict(protocol) {
		dst = field.AppendBool(dst, l.Strict)
	}
	if proto.Has(protocol, proto.LoginSessionID) {
		dst = field.AppendUUID(dst, l.Session)
	}
	return dst
}

func hasStrict(protocol int32) bool { return proto.Has(protocol, proto.LoginStrict) }

// ParseSetCompression reads the threshold in bytes from which packets are compressed; negative: none are.
//
// Layout: login/toClient/compress.
func ParseSetCompression(body []byte) (int, error) {
	r := field.NewReader(body)
	return done(r, "set compression", int(r.VarInt()))
}

// AppendSetCompression writes a threshold.
func AppendSetCompression(dst []byte, threshold int) []byte {
	return field.AppendVarInt(dst, int32(threshold))
}

// LoginPluginRequest is a question a server asks during login; from 393 (1.13) on.
type LoginPluginRequest struct {
	ID      int32
	Channel string
	Data    []byte
}

// ParseLoginPluginRequest reads a login plugin request.
//
// Layout: login/toClient/login_plugin_request.
func ParseLoginPluginRequest(body []byte) (LoginPluginRequest, error) {
	r := field.NewReader(body)
	q := LoginPluginRequest{r.VarInt(), r.String(maxIdentifier), pluginData(r)}
	return done(r, "login plugin request", q)
}

// AppendLoginPluginRequest writes a login plugin request.
func AppendLoginPluginRequest(dst []byte, q LoginPluginRequest) []byte {
	return append(field.AppendString(field.AppendVarInt(dst, q.ID), q.Channel), q.Data...)
}

// LoginPluginResponse answers the request with the same ID.
type LoginPluginResponse struct {
	ID         int32
	Understood bool
	Data       []byte // nil unless Understood
}

// ParseLoginPluginResponse reads a login plugin response.
//
// Layout: login/toServer/login_plugin_response.
func ParseLoginPluginResponse(body []byte) (LoginPluginResponse, error) {
	r := field.NewReader(body)
	a := LoginPluginResponse{ID: r.VarInt(), Understood: r.Bool()}
	if a.Understood {
		a.Data = pluginData(r)
	}
	return done(r, "login plugin response", a)
}

// AppendLoginPluginResponse writes a login plugin response.
func AppendLoginPluginResponse(dst []byte, a LoginPluginResponse) []byte {
	dst = field.AppendBool(field.AppendVarInt(dst, a.ID), a.Understood)
	if a.Understood {
		dst = append(dst, a.Data...)
	}
	return dst
}

func pluginData(r *field.Reader) []byte {
	if r.Len() > maxPluginData {
		r.Fail(fmt.Errorf("data of %d bytes, at most %d allowed", r.Len(), maxPluginData))
	}
	return bytes.Clone(r.Rest())
}

// ParseCookieRequest reads the key of the cookie a server asks the client for; from 766 (1.20.5) on.
//
// Layout: login/toClient/cookie_request.
func ParseCookieRequest(body []byte) (string, error) {
	r := field.NewReader(body)
	return done(r, "cookie request", r.String(maxIdentifier))
}

// AppendCookieRequest writes a cookie request.
func AppendCookieRequest(dst []byte, key string) []byte { return field.AppendString(dst, key) }

// CookieResponse is a cookie, or the news that there is none.
type CookieResponse struct {
	Key   string
	Found bool
	Value []byte // at most 5120 bytes; nil unless Found
}

// ParseCookieResponse reads a cookie response.
//
// Layout: login/toServer/cookie_response.
func ParseCookieResponse(body []byte) (CookieResponse, error) {
	r := field.NewReader(body)
	c := CookieResponse{Key: r.String(maxIdentifier), Found: r.Bool()}
	if c.Found {
		c.Value = bytes.Clone(r.Bytes(maxCookie))
	}
	return done(r, "cookie response", c)
}

// AppendCookieResponse writes a cookie response.
func AppendCookieResponse(dst []byte, c CookieResponse) []byte {
	dst = field.AppendBool(field.AppendString(dst, c.Key), c.Found)
	if c.Found {
		dst = field.AppendBytes(dst, c.Value)
	}
	return dst
}
