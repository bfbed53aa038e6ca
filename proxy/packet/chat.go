package packet

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Bounds of the packets by which a client chats: characters of text, bytes or elements of the rest.
const (
	MaxChat           = 256   // a line, and commands up to 765
	MaxCommand        = 32767 // commands from 766 (1.20.5) on
	maxArguments      = 8     // signatures a command carries
	maxArgumentName   = 16
	maxKeyedSignature = 1024 // 759 and 760; an RSA-2048 one has 256
	sessionSignature  = 256  // 761 on: no length, always this much
	maxSeen           = 20   // messages a client remembers; 5 in 760
	minSeenMessage    = 16 + 1
	minArgument       = 1 + 1
	seenBits          = 3 // bytes of the fixed bit set of 20
)

// ErrIllegalCharacters says that a chat line or command has characters which the game lets nobody type.
var ErrIllegalCharacters = errors.New("text has control characters or a section sign")

// CheckChat tells whether a client may have typed s: no control characters and no section sign. Else it returns
// ErrIllegalCharacters, and the game disconnects.
func CheckChat(s string) error {
	if strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c == '§' || c == 0x7f }) >= 0 {
		return ErrIllegalCharacters
	}
	return nil
}

// IllegalCharacters returns the text that tells a client of that protocol of ErrIllegalCharacters.
func IllegalCharacters(protocol int32) Text {
	if !proto.Has(protocol, proto.SignedChat) {
		return Plain("Illegal characters in chat")
	}
	return Translatable("multiplayer.disconnect.illegal_characters")
}

// OutOfOrderChat returns the text that tells a client that its messages came out of order; they carry the time from 759
// on.
func OutOfOrderChat() Text { return Translatable("multiplayer.disconnect.out_of_order_chat") }

// ChatMessage is a line of chat. Below 759 (1.19) it is Text alone, and one that begins with a slash is a command. Byte
// slices alias the body.
type ChatMessage struct {
	Text       string
	Time, Salt int64  // milliseconds since 1970; salt of the signature
	Signature  []byte // empty: not signed
	Preview    bool   // 759 and 760: the server's preview is signed
	Seen       Seen
}

// ChatCommand is a command, without its slash. From 766 on ChatCommand packets are Text alone; ChatCommandSigned
// packets sign arguments, or say what the client has seen. Byte slices alias the body.
type ChatCommand struct {
	Text       string
	Time, Salt int64
	Arguments  []ArgumentSignature
	Preview    bool // 759 and 760
	Seen       Seen
}

// ArgumentSignature signs one argument of a command that is a message to other players.
type ArgumentSignature struct {
	Name      string
	Signature []byte
}

// Seen lists the signed messages that a client was shown. 759 has none of it, 760 the messages themselves, later
// versions how far a window moved and which of its 20 places were seen.
type Seen struct {
	Messages []SeenMessage // 760
	Last     *SeenMessage  // 760: the last one received, which is not in Messages

	Offset   int32          // 761 on: messages since the last time
	Bits     [seenBits]byte // 761 on
	Checksum byte           // 770 on; 0: do not check
}

// SeenMessage is a signed message in 760 (1.19.1).
type SeenMessage struct {
	Sender    uuid.UUID
	Signature []byte
}

// ParseChat reads a line of chat: Chat packets below 759, ChatMessage packets from there on. CheckChat is left to the
// caller.
//
// Layout: play/toServer/chat, from 759 on play/toServer/chat_message.
func ParseChat(protocol int32, body []byte) (ChatMessage, error) {
	r := field.NewReader(body)
	m := ChatMessage{Text: r.String(MaxChat)}
	switch {
	case !proto.Has(protocol, proto.SignedChat):
	case !proto.Has(protocol, proto.ChatSessions):
		m.Time, m.Salt, m.Signature, m.Preview = r.I64(), r.I64(), r.Bytes(maxKeyedSignature), r.Bool()
		m.Seen = readSeen(r, protocol)
	default:
		m.Time, m.Salt = r.I64(), r.I64()
		if r.Bool() {
			m.Signature = r.Raw(sessionSignature)
		}
		m.Seen = readSeen(r, protocol)
	}
	return done(r, "chat", m)
}

// AppendChat writes a line of chat, with those parts that the version has. From 761 on a Signature has 256 bytes.
func AppendChat(dst []byte, protocol int32, m ChatMessage) []byte {
	dst = field.AppendString(dst, m.Text)
	if !proto.Has(protocol, proto.SignedChat) {
		return dst
	}
	dst = field.AppendI64(field.AppendI64(dst, m.Time), m.Salt)
	if !proto.Has(protocol, proto.ChatSessions) {
		dst = field.AppendBool(field.AppendBytes(dst, m.Signature), m.Preview)
	} else {
		dst = append(field.AppendBool(dst, len(m.Signature) > 0), m.Signature...)
	}
	return appendSeen(dst, protocol, m.Seen)
}

// ParseChatCommand reads a command; p is ChatCommand (759 on) or ChatCommandSigned (766 on). CheckChat is left to the
// caller.
//
// Layout: play/toServer/chat_command and play/toServer/chat_command_signed.
func ParseChatCommand(protocol int32, p proto.Packet, body []byte) (ChatCommand, error) {
	r := field.NewReader(body)
	if proto.Has(protocol, proto.PlainCommands) && p == proto.ChatCommand {
		return done(r, "command", ChatCommand{Text: r.String(MaxCommand)})
	}
	limit := MaxChat
	if proto.Has(protocol, proto.PlainCommands) {
		limit = MaxCommand
	}
	c := ChatCommand{Text: r.String(limit), Time: r.I64(), Salt: r.I64()}
	if n := r.Count(minArgument); n > maxArguments {
		r.Fail(fmt.Errorf("%d signed arguments, at most %d allowed", n, maxArguments))
	} else if n > 0 {
		c.Arguments = make([]ArgumentSignature, n)
		for i := range c.Arguments {
			a := ArgumentSignature{Name: r.String(maxArgumentName)}
			if !proto.Has(protocol, proto.ChatSessions) {
				a.Signature = r.Bytes(maxKeyedSignature)
			} else {
				a.Signature = r.Raw(sessionSignature)
			}
			c.Arguments[i] = a
		}
	}
	if !proto.Has(protocol, proto.ChatSessions) {
		c.Preview = r.Bool()
	}
	c.Seen = readSeen(r, protocol)
	return done(r, "command", c)
}

// AppendChatCommand writes a command as packet p with those parts that the version has.
func AppendChatCommand(dst []byte, protocol int32, p proto.Packet, c ChatCommand) []byte {
	dst = field.AppendString(dst, c.Text)
	if proto.Has(protocol, proto.PlainCommands) && p == proto.ChatCommand {
		return dst
	}
	dst = field.AppendI64(field.AppendI64(dst, c.Time), c.Salt)
	dst = field.AppendVarInt(dst, int32(len(c.Arguments)))
	for _, a := range c.Arguments {
		dst = field.AppendString(dst, a.Name)
		if !proto.Has(protocol, proto.ChatSessions) {
			dst = field.AppendBytes(dst, a.Signature)
		} else {
			dst = append(dst, a.Signature...)
		}
	}
	if !proto.Has(protocol, proto.ChatSessions) {
		dst = field.AppendBool(dst, c.Preview)
	}
	return appendSeen(dst, protocol, c.Seen)
}

// ParseAcknowledgement reads a MessageAcknowledgement: the messages in 760, from 761 on the Offset alone.
//
// Layout: play/toServer/message_acknowledgement.
func ParseAcknowledgement(protocol int32, body []byte) (Seen, error) {
	r := field.NewReader(body)
	if proto.Has(protocol, proto.ChatSessions) {
		return done(r, "message acknowledgement", Seen{Offset: r.VarInt()})
	}
	return done(r, "message acknowledgement", readSeen(r, protocol))
}

// AppendAcknowledgement writes a MessageAcknowledgement. It leaves the Bits of s out: a server counts places that
// nobody acknowledged as not seen yet, and the next message acknowledges them.
func AppendAcknowledgement(dst []byte, protocol int32, s Seen) []byte {
	if proto.Has(protocol, proto.ChatSessions) {
		return field.AppendVarInt(dst, s.Offset)
	}
	return appendSeen(dst, protocol, s)
}

func readSeen(r *field.Reader, protocol int32) (s Seen) {
	switch {
	case !proto.Has(protocol, proto.ChatSeen):
	case !proto.Has(protocol, proto.ChatSessions):
		n := r.Count(minSeenMessage)
		if n > maxSeen {
			r.Fail(fmt.Errorf("%d messages seen, at most %d allowed", n, maxSeen))
			return s
		}
		for ; n > 0 && r.Err() == nil; n-- {
			s.Messages = append(s.Messages, readSeenMessage(r))
		}
		if r.Bool() {
			last := readSeenMessage(r)
			s.Last = &last
		}
	default:
		s.Offset = r.VarInt()
		copy(s.Bits[:], r.Raw(seenBits))
		if proto.Has(protocol, proto.SeenChecksum) {
			s.Checksum = r.U8()
		}
	}
	return s
}

func readSeenMessage(r *field.Reader) SeenMessage {
	return SeenMessage{r.UUID(), r.Bytes(maxKeyedSignature)}
}

func appendSeen(dst []byte, protocol int32, s Seen) []byte {
	switch {
	case !proto.Has(protocol, proto.ChatSeen):
	case !proto.Has(protocol, proto.ChatSessions):
		dst = field.AppendVarInt(dst, int32(len(s.Messages)))
		for _, m := range s.Messages {
			dst = field.AppendBytes(field.AppendUUID(dst, m.Sender), m.Signature)
		}
		if dst = field.AppendBool(dst, s.Last != nil); s.Last != nil {
			dst = field.AppendBytes(field.AppendUUID(dst, s.Last.Sender), s.Last.Signature)
		}
	default:
		dst = append(field.AppendVarInt(dst, s.Offset), s.Bits[:]...)
		if proto.Has(protocol, proto.SeenChecksum) {
			dst = append(dst, s.Checksum)
		}
	}
	return dst
}
