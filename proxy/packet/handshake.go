package packet

import (
	"errors"
	"fmt"
	"strings"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Bounds on the host of a handshake, in characters: the game's 255 and room for the markers of mod loaders; and the
// room that a proxy in front of us needs to forward a player's identity.
const (
	MaxHost          = 255 + 64
	MaxForwardedHost = 32767
)

// Intent says why a client opens a connection.
type Intent int32

// IntentTransfer is IntentLogin after another server sent the player here; from 766 (1.20.5) on.
const (
	IntentStatus   Intent = 1
	IntentLogin    Intent = 2
	IntentTransfer Intent = 3
)

// Handshake is the first packet of every connection, the same in all versions.
type Handshake struct {
	Protocol int32
	Host     string // as the client sent it, markers and all; see CleanHost
	Port     uint16
	Intent   Intent
}

// ParseHandshake reads a handshake whose host has at most maxHost characters. An intent that the game does not have is
// an error like any other: scanners send them all day.
//
// Layout: handshaking/toServer/set_protocol.
func ParseHandshake(body []byte, maxHost int) (Handshake, error) {
	r := field.NewReader(body)
	h := Handshake{Protocol: r.VarInt(), Host: r.String(maxHost), Port: r.U16(), Intent: Intent(r.VarInt())}
	if h.Intent < IntentStatus || h.Intent > IntentTransfer {
		r.Fail(fmt.Errorf("intent %d does not exist", h.Intent))
	}
	return done(r, "handshake", h)
}

// AppendHandshake writes a handshake.
func AppendHandshake(dst []byte, h Handshake) []byte {
	dst = field.AppendString(field.AppendVarInt(dst, h.Protocol), h.Host)
	return field.AppendVarInt(field.AppendU16(dst, h.Port), int32(h.Intent))
}

// CleanHost splits the host of a handshake into the name the player typed, in lower case, and the mod loader's marker
// ("" without one), to be appended when a backend is dialled. It drops everything else behind the name: other proxies'
// data, a port, the dots that a look-up leaves.
//
// Layout: https://minecraft.wiki/w/Minecraft_Wiki:Projects/wiki.vg_merge/Minecraft_Forge_Handshake, "Changes to
// Handshake packet".
func CleanHost(raw string, protocol int32) (host, marker string) {
	host, _, _ = strings.Cut(raw, "\x00")
	host, _, _ = strings.Cut(host, "///") // a DDoS protection puts the client's address behind this
	host = strings.TrimRight(host, ".")
	if strings.HasPrefix(host, "[") {
		host, _, _ = strings.Cut(host[1:], "]")
	} else if strings.Count(host, ":") == 1 {
		host, _, _ = strings.Cut(host, ":")
	}
	return strings.ToLower(strings.TrimRight(host, ".")), forgeMarker(raw, protocol)
}

// forgeMarker finds the marker among the parts between zero bytes. Only a whole part counts, never a piece of a name,
// and only in the versions whose mod loader sends it.
func forgeMarker(raw string, protocol int32) string {
	parts := strings.Split(raw, "\x00")[1:]
	for i, p := range parts {
		var found bool
		switch {
		case !proto.Has(protocol, proto.NamespacedChannels):
			found = p == "FML" && i == len(parts)-2 && parts[i+1] == "" // it closes the host, with a zero byte
		case !proto.Has(protocol, proto.Configuration):
			found = strings.HasPrefix(p, "FML2") || strings.HasPrefix(p, "FML3")
		default:
			number, ok := strings.CutPrefix(p, "FORGE")
			found = ok && strings.Trim(number, "0123456789") == ""
		}
		if found && i < len(parts)-1 {
			p += "\x00"
		}
		if found {
			return "\x00" + p
		}
	}
	return ""
}

// ForgeMod is a mod of a client.
type ForgeMod struct{ ID, Version string }

const maxForgeMods = 4096

// ParseForgeMods reads the list of mods in a message of Forge's handshake up to 340 (1.12.2), behind its discriminator.
//
// Layout: https://minecraft.wiki/w/Minecraft_Wiki:Projects/wiki.vg_merge/Minecraft_Forge_Handshake, "ModList".
func ParseForgeMods(data []byte) ([]ForgeMod, error) {
	r := field.NewReader(data)
	n := r.Count(2)
	if n > maxForgeMods {
		r.Fail(fmt.Errorf("%d mods, at most %d allowed", n, maxForgeMods))
	}
	var mods []ForgeMod
	for range n {
		if r.Err() != nil {
			break
		}
		mods = append(mods, ForgeMod{r.String(256), r.String(256)})
	}
	return done(r, "list of mods", mods)
}

// Channel names of the two plugin messages every version has.
const (
	legacyRegister, modernRegister = "REGISTER", "minecraft:register"
	legacyBrand, modernBrand       = "MC|Brand", "minecraft:brand"
)

// RegisterChannel returns the channel on which that protocol announces the channels it listens to.
func RegisterChannel(protocol int32) string {
	if !proto.Has(protocol, proto.NamespacedChannels) {
		return legacyRegister
	}
	return modernRegister
}

// BrandChannel returns the channel on which that protocol names its software.
func BrandChannel(protocol int32) string {
	if !proto.Has(protocol, proto.NamespacedChannels) {
		return legacyBrand
	}
	return modernBrand
}

// MaxChannels bounds the channels in one register message.
const MaxChannels = 1024

// ParseChannels reads the data of a register message: names with zero bytes between them. Empty names and names the
// version does not allow are skipped, because mods send them; only more than MaxChannels is an error.
//
// Layout: https://minecraft.wiki/w/Java_Edition_protocol/Plugin_channels, "minecraft:register".
func ParseChannels(protocol int32, data []byte) ([]string, error) {
	var out []string
	for name := range strings.SplitSeq(string(data), "\x00") {
		if !ValidChannel(protocol, name) {
			continue
		}
		if out = append(out, name); len(out) > MaxChannels {
			return nil, fmt.Errorf("register: more than %d channels", MaxChannels)
		}
	}
	return out, nil
}

// AppendChannels writes the data of a register message.
func AppendChannels(dst []byte, channels []string) []byte {
	return append(dst, strings.Join(channels, "\x00")...)
}

// ValidChannel tells whether that protocol allows the name: any 20 printable characters below 393 (1.13), from then on
// a resource location (lower case; the namespace may be left out).
func ValidChannel(protocol int32, name string) bool {
	if !proto.Has(protocol, proto.NamespacedChannels) {
		return name != "" && len(name) <= 20 && strings.IndexFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
	}
	space, path, ok := strings.Cut(name, ":")
	if !ok {
		space, path = "", name
	}
	return path != "" && len(name) <= 32767 && onlyOf(space, "_-.") && onlyOf(path, "_-./")
}

func onlyOf(s, punctuation string) bool {
	return strings.IndexFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune(punctuation, c)
	}) < 0
}

// ParseBrand reads the data of a brand message. Some software leaves out the length; then all of it is the brand.
//
// Layout: https://minecraft.wiki/w/Java_Edition_protocol/Plugin_channels, "minecraft:brand".
func ParseBrand(data []byte) (string, error) {
	r := field.NewReader(data)
	if s := r.String(256); r.End() == nil {
		return s, nil
	}
	if r = field.NewReader(field.AppendBytes(nil, data)); len(data) == 0 {
		return "", errors.New("brand: empty")
	}
	return done(r, "brand", r.String(256))
}

// AppendBrand writes the data of a brand message.
func AppendBrand(dst []byte, brand string) []byte { return field.AppendString(dst, brand) }
