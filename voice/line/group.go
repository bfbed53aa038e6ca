package line

import (
	"strings"

	"github.com/google/uuid"
)

// Verb is what a group request wants.
type Verb uint8

// The verbs.
const (
	Create Verb = iota
	Join
	Leave
	Invite
	Accept
	Decline
	Move
	Rename
	Password
	Type
	Kick
	Delete
)

// Edits tells whether the verb belongs to the group-edit extension, which is
// negotiated apart from groups.
func (v Verb) Edits() bool { return v >= Rename && v <= Delete }

// String is the word that travels.
func (v Verb) String() string {
	if int(v) < len(forms) {
		return forms[v].word
	}
	return "unknown"
}

func parseVerb(word string) (Verb, bool) {
	for v, f := range forms {
		if f.word == word {
			return Verb(v), true
		}
	}
	return 0, false
}

// GroupType is how a group's members hear and are heard by others. The zero
// value is the ordinary one.
type GroupType uint8

// The types of groups.
const (
	NormalGroup   GroupType = iota // talk stays inside; others nearby are heard
	OpenGroup                      // others nearby hear and are heard
	IsolatedGroup                  // nothing goes in or out

	GroupTypes = iota // how many there are
)

var groupTypes = [GroupTypes]string{NormalGroup: "NORMAL", OpenGroup: "OPEN", IsolatedGroup: "ISOLATED"}

// String is the word that travels.
func (t GroupType) String() string {
	if int(t) < len(groupTypes) {
		return groupTypes[t]
	}
	return "unknown"
}

// ParseGroupType reads the word that travels.
func ParseGroupType(word string) (GroupType, bool) {
	for t, w := range groupTypes {
		if w == word {
			return GroupType(t), true
		}
	}
	return 0, false
}

// GroupRequest is a request about groups. Which fields it uses depends on the
// verb; see the forms below. Nothing but the form has been checked: names and
// passwords have to be held against [ValidGroupName] and [ValidPassword].
type GroupRequest struct {
	Verb       Verb
	Group      uuid.UUID
	Out        bool // of MOVE: out of every group, and Group means nothing
	Player     uuid.UUID
	Type       GroupType
	Persistent bool
	Name       string // empty where it is no base64 of UTF-8, which no group may be called
	Password   string // empty is none; of PASSWORD [Garbled] where it is no base64 of UTF-8
}

// Garbled stands for a new password that could not be read. [ValidPassword]
// refuses it, so that it cannot be taken for none, which would open the group.
const Garbled = "\xff"

// field is one argument of a request.
type field uint8

const (
	argGroup       field = iota // <group>
	argDestination              // <group|->
	argPlayer                   // <player>
	argType                     // <type>
	argPersistent               // <0|1>
	argName                     // <b64 name>
	argPassword                 // <b64 password|->, none where it cannot be read
	argNewPassword              // <b64 password|->, garbled where it cannot be read
)

// forms are the requests.
var forms = [...]struct {
	word string
	args []field
}{
	Create:   {"CREATE", []field{argType, argPersistent, argName, argPassword}},
	Join:     {"JOIN", []field{argGroup, argPassword}},
	Leave:    {"LEAVE", nil},
	Invite:   {"INVITE", []field{argGroup, argPlayer}},
	Accept:   {"ACCEPT", []field{argGroup}},
	Decline:  {"DECLINE", []field{argGroup}},
	Move:     {"MOVE", []field{argPlayer, argDestination}},
	Rename:   {"RENAME", []field{argGroup, argName}},
	Password: {"PASSWORD", []field{argGroup, argNewPassword}},
	Type:     {"TYPE", []field{argGroup, argType}},
	Kick:     {"KICK", []field{argGroup, argPlayer}},
	Delete:   {"DELETE", []field{argGroup}},
}

// parseGroup reads what follows the prefix.
func parseGroup(s string) (r GroupRequest, err error) {
	words := strings.Split(s, " ")
	verb, ok := parseVerb(words[0])
	if !ok || len(words)-1 != len(forms[verb].args) {
		return r, ErrUnsupported
	}
	r.Verb = verb
	for i, f := range forms[verb].args {
		word := words[i+1]
		if ok = plain(word); ok {
			ok = r.read(f, word)
		}
		if !ok {
			return GroupRequest{}, ErrUnsupported
		}
	}
	return r, nil
}

// read takes one argument.
func (r *GroupRequest) read(f field, word string) (ok bool) {
	var err error
	switch f {
	case argDestination:
		if r.Out = word == absent; r.Out {
			return true
		}
		fallthrough
	case argGroup:
		r.Group, err = parseUUID(word)
		return err == nil
	case argPlayer:
		r.Player, err = parseUUID(word)
		return err == nil
	case argType:
		r.Type, ok = ParseGroupType(word)
		return ok
	case argPersistent:
		r.Persistent, ok = flag(word)
		return ok
	case argName:
		r.Name, _ = decode(word)
	case argPassword:
		r.Password, _ = decode(word)
	case argNewPassword:
		if r.Password, ok = decode(word); !ok && word != absent {
			r.Password = Garbled
		}
	}
	return true
}

// appendGroup writes what follows the prefix.
func appendGroup(dst []byte, r *GroupRequest) []byte {
	dst = append(dst, r.Verb.String()...)
	if int(r.Verb) >= len(forms) {
		return dst
	}
	for _, f := range forms[r.Verb].args {
		dst = append(dst, ' ')
		switch {
		case f == argDestination && r.Out:
			dst = append(dst, absent...)
		case f == argGroup || f == argDestination:
			dst = appendUUID(dst, r.Group)
		case f == argPlayer:
			dst = appendUUID(dst, r.Player)
		case f == argType:
			dst = append(dst, r.Type.String()...)
		case f == argPersistent:
			dst = appendFlag(dst, r.Persistent)
		case f == argName:
			dst = appendText(dst, r.Name)
		default:
			dst = appendText(dst, r.Password)
		}
	}
	return dst
}

// Code is what became of a group request.
type Code uint8

// The codes. AlreadyInvited and InboxFull are this product's addition, which a
// client that does not know them ignores.
const (
	OK Code = iota
	Disabled
	NoPermission
	InvalidName
	InvalidPassword
	NameTaken
	TooManyGroups
	NotFound
	WrongPassword
	GroupFull
	AlreadyInGroup
	NotInGroup
	TypeNotAllowed
	PasswordsNotAllowed
	PersistentNotAllowed
	AlreadyInvited
	InboxFull
)

var codes = [...]string{
	OK: "OK", Disabled: "DISABLED", NoPermission: "NO_PERMISSION", InvalidName: "INVALID_NAME",
	InvalidPassword: "INVALID_PASSWORD", NameTaken: "NAME_TAKEN", TooManyGroups: "TOO_MANY_GROUPS",
	NotFound: "NOT_FOUND", WrongPassword: "WRONG_PASSWORD", GroupFull: "GROUP_FULL",
	AlreadyInGroup: "ALREADY_IN_GROUP", NotInGroup: "NOT_IN_GROUP", TypeNotAllowed: "TYPE_NOT_ALLOWED",
	PasswordsNotAllowed: "PASSWORDS_NOT_ALLOWED", PersistentNotAllowed: "PERSISTENT_NOT_ALLOWED",
	AlreadyInvited: "ALREADY_INVITED", InboxFull: "INBOX_FULL",
}

// String is the word that travels.
func (c Code) String() string {
	if int(c) < len(codes) {
		return codes[c]
	}
	return "unknown"
}

// GroupResult answers one request, on the connection that made it.
type GroupResult struct {
	Verb Verb
	Code Code
}

const resultPrefix = "SSVC_GROUP_RESULT_V1 "

// AppendGroupResult writes "SSVC_GROUP_RESULT_V1 <VERB> <CODE>".
func AppendGroupResult(dst []byte, r GroupResult) []byte {
	dst = append(append(dst, resultPrefix...), r.Verb.String()...)
	return append(append(dst, ' '), r.Code.String()...)
}

// parseGroupResult ignores a verb or a code of a later version.
func parseGroupResult(s string) (any, error) {
	word, code, ok := strings.Cut(s, " ")
	if !ok || !plain(word) || !plain(code) {
		return nil, ErrMalformed
	}
	verb, ok := parseVerb(word)
	if !ok {
		return nil, nil
	}
	for c, w := range codes {
		if w == code {
			return &GroupResult{verb, Code(c)}, nil
		}
	}
	return nil, nil
}
