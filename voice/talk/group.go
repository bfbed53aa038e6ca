package talk

import (
	"slices"

	"github.com/google/uuid"
)

// Verb is the kind of a group request.
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

// Edits tells whether the verb belongs to the group-edit extension, which is negotiated apart from groups.
func (v Verb) Edits() bool { return v >= Rename && v <= Delete }

var verbs = [...]string{
	Create: "CREATE", Join: "JOIN", Leave: "LEAVE", Invite: "INVITE", Accept: "ACCEPT", Decline: "DECLINE",
	Move: "MOVE", Rename: "RENAME", Password: "PASSWORD", Type: "TYPE", Kick: "KICK", Delete: "DELETE",
}

// String returns the word of the wire.
func (v Verb) String() string { return word(verbs[:], v) }

// ParseVerb reads the word of the wire. It is false for any other word.
func ParseVerb(word string) (Verb, bool) { return parse[Verb](verbs[:], word) }

// word returns the word of a value, or one that no format has.
func word[V ~uint8](words []string, v V) string {
	if int(v) < len(words) {
		return words[v]
	}
	return "unknown"
}

func parse[V ~uint8](words []string, word string) (V, bool) {
	i := slices.Index(words, word)
	if i < 0 {
		return 0, false
	}
	return V(i), true
}

// GroupType says how a group's members hear others and are heard. The zero value is the ordinary one.
type GroupType uint8

// The types of groups.
const (
	NormalGroup   GroupType = iota // talk stays inside; others nearby are heard
	OpenGroup                      // others nearby hear and are heard
	IsolatedGroup                  // nothing goes in or out

	GroupTypes = iota // the number of types
)

var groupTypes = [GroupTypes]string{NormalGroup: "NORMAL", OpenGroup: "OPEN", IsolatedGroup: "ISOLATED"}

// String returns the word of the wire: NORMAL, OPEN or ISOLATED.
func (t GroupType) String() string { return word(groupTypes[:], t) }

// ParseGroupType reads the word of the wire: NORMAL, OPEN or ISOLATED. It is false for any other word.
func ParseGroupType(word string) (GroupType, bool) { return parse[GroupType](groupTypes[:], word) }

// GroupRequest is a request about groups. Its verb says which fields it uses. Only its form has been checked: names and
// passwords have still to pass [ValidGroupName] and [ValidPassword].
type GroupRequest struct {
	Verb       Verb
	Group      uuid.UUID
	Out        bool // of MOVE: out of every group; Group means nothing then
	Player     uuid.UUID
	Type       GroupType
	Persistent bool
	Name       string // empty where it could not be read: no group may be called that
	Password   string // empty is none; of PASSWORD [Garbled] where it could not be read
}

// Garbled stands for a new password that could not be read. [ValidPassword] refuses it, so that it cannot be taken for
// none, which would open the group.
const Garbled = "\xff"

// Code is the result of a group request.
type Code uint8

// The codes. AlreadyInvited and InboxFull are this product's addition, which a client that does not know them ignores.
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

// String returns the word of the wire.
func (c Code) String() string { return word(codes[:], c) }

// ParseCode reads the word of the wire. It is false for any other word.
func ParseCode(word string) (Code, bool) { return parse[Code](codes[:], word) }

// GroupResult answers one request, on the connection that made it.
type GroupResult struct {
	Verb Verb
	Code Code
}

// GroupCaps says what the reader may do with groups.
type GroupCaps struct{ Use, Create, Admin, Invite bool }

// GroupRow is one group.
type GroupRow struct {
	ID         uuid.UUID
	Type       GroupType
	Locked     bool // has a password
	Persistent bool
	Owner      uuid.UUID // zero: nobody, or nobody whom the reader may know about
	Name       string
}

// GroupMember says that a player is in a group.
type GroupMember struct{ Group, Player uuid.UUID }

// MaxInvitations bounds the invitations that wait for one player.
const MaxInvitations = 8
