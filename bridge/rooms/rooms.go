// Package rooms is a room engine: peers join a room, leave and come back, see one state that an [Authority] makes, and
// talk. It promises that one peer never holds up another, that what a peer shows is always what the room was at some
// tick, and that everything a peer can make the room do has a bound.
//
// It speaks the Rooms protocol over any [Conn]: a WebSocket, a pipe in memory ([MemoryPair]), or whatever else carries
// frames.
package rooms

import (
	"errors"
	"log/slog"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

// Conn is the sending side of one peer's transport. No method may wait for the peer. Frames must not be changed, as
// several peers may be given the same one. The engine calls it from one goroutine.
type Conn interface {
	// Control sends a frame, after all earlier ones. It fails when more waits than may: the peer is sent away.
	Control(frame []byte) error
	// State sends a frame in place of a waiting one.
	State(frame []byte)
	// Recover sends frames as Control does, in place of waiting ones of the last Recover.
	Recover(frames ...[]byte)
	// Waiting returns since when a state frame could not be sent; zero: none waits.
	Waiting() time.Time
	// Reliable reports that frames given to State are neither lost nor overtaken.
	Reliable() bool
	// Identity returns who the peer is, as the transport has verified; empty: it has not.
	Identity() string
	// Close ends the transport after the frames of Control. An empty reason is none.
	Close(code frame.Code, reason string)
}

// BinaryConn is a transport that also carries binary frames, on the same lanes.
type BinaryConn interface {
	Conn
	ControlBinary(frame []byte) error
	StateBinary(frame []byte)
	RecoverBinary(frames ...[]byte)
}

// ErrFull is the error of a lane with more waiting frames than it may have.
var ErrFull = errors.New("rooms: the peer does not take what it is sent")

// Refusal is an error for a peer, which gets its text as it is. No other error of an [Authority] is told to a peer.
type Refusal = frame.Refusal

// Member, Message and Location are what the protocol says of a peer, of what was said, and of a place.
type (
	Member   = frame.Member
	Message  = frame.Message
	Location = frame.Location
)

// The refusals of joins and frames, and the notices.
const (
	ErrProtocol = Refusal("Unsupported protocol version; this server speaks 1")
	ErrName     = Refusal("Invalid name")
	ErrBanned   = Refusal("You are banned from this room")
	ErrLocked   = Refusal("The room is locked")
	ErrRoomFull = Refusal("The room is full")
	ErrNoRoom   = Refusal("No such room")
	ErrEnter    = Refusal("You may not enter this room")
	ErrOften    = Refusal("You are in this room too often")
	ErrToken    = Refusal("The resume token is unknown or expired")
	ErrRate     = Refusal("Too many frames")
	ErrJoined   = Refusal("Already joined")

	noticeLeader   = "Only the leader may do that"
	noticeNobody   = "No such player here"
	noticeYourself = "You cannot do that to yourself"
	noticeIdentity = "That player has no verified identity and cannot be banned"
	noticeBans     = "The ban list is full"
	noticeText     = "Messages are 1 to 280 characters on one line, without hidden characters"
	noticeChat     = "You write too fast"
	noticeMayNot   = "You may not write here"
	noticePing     = "You ping too often"
	noticeKind     = "Unknown kind of ping"
	noticeNowhere  = "You are nowhere yet"
	noticeAction   = "Unknown action"

	toldRemoved = "Removed by the host"
)

// Join is a peer that wants to come in.
type Join struct {
	ID       string // that it will have
	Name     string // may be changed
	Identity string // verified by the transport; empty: nobody knows who it is
	Fields   state.Object
}

// Command is a frame of the game.
type Command struct {
	Type   string
	Fields state.Object // the whole frame
}

// Authority is the game in a room. Its methods are called one at a time, from the room's goroutine, and must not wait.
// A panic ends its room and no other.
type Authority interface {
	// Capacity returns how many peers there may be, those included that may still come back.
	Capacity() int
	// ValidateJoin returns why a peer may not come in. The fields of the join are only the peer's own word.
	ValidateJoin(*Join) error
	// Joined and Left tell of a peer that has a place from now on, or has it no longer.
	Joined(id string)
	Left(id string)
	// Welcome returns what a peer is told about the game when it has joined or come back; it may be nil. Its keys must
	// not be those of frames: [state.Object.Check].
	Welcome(id string) state.Object
	// Epoch returns the number of the present state of affairs. It grows when the state becomes another one altogether:
	// then everybody gets it whole, and commands for the former one are dropped.
	Epoch() int64
	// Step simulates n steps; first is the number of the first.
	Step(first uint64, n int)
	// Command takes a frame of the game. An error ends the transport of the peer.
	Command(id string, c *Command) error
	// Snapshot returns the state to show, with keys in ascending order. dst is an earlier result, to be written over.
	// The room is done with the result before it calls Snapshot for the same view again.
	Snapshot(v View, dst state.Object) state.Object
}

// View names what a peer is shown: a comparable value. Peers with the same view see the same.
type View any

type own string

// Own returns the view of one peer alone.
func Own(id string) View { return own(id) }

// Viewer is an [Authority] that shows different peers different states.
type Viewer interface{ View(id string) View }

// Fine is an [Authority] that may want each of its steps at its time, and not several at each snapshot.
type Fine interface{ FineSteps() bool }

// SocialAuthority is an [Authority] that says who leads and where pings are.
type SocialAuthority interface {
	// Leader returns the id of one of the members, or nothing.
	Leader([]Member) string
	// PingLocation returns where a peer points. A Refusal's text is told to the peer.
	PingLocation(id, kind string) (Location, error)
}

// Talk is an [Authority] that says who may write what. A Refusal's text is told to the peer.
type Talk interface{ MayChat(id, text string) error }

// Audience is an [Authority] that hides peers from each other, in rosters and in what is said.
type Audience interface {
	// Knows reports whether one peer may know about another. An empty recipient stands for everybody who comes later.
	Knows(recipient, subject string) bool
	// AudienceOf returns a comparable value. Knows answers alike for recipients with the same one.
	AudienceOf(recipient string) View
}

// Config says how a room is run. The zero value is the protocol's.
type Config struct {
	SimulationHz int            // steps a second; 0: 120
	SnapshotHz   int            // at most one snapshot a step; 0: 20. It has to divide SimulationHz.
	Rounding     state.Rounding // of floats; the zero value: four decimals
	Grace        time.Duration  // that a place is kept for who is gone; 0: 15 s
	Each         int            // places that one identity may have; 0: four
	Codec        state.Codec    // of binary states; nil: all are JSON
	Log          *slog.Logger
	Stats        *Stats // may be shared by rooms
}

func (c Config) complete() Config {
	if c.SimulationHz <= 0 {
		c.SimulationHz = frame.SimulationHz
	}
	if c.SnapshotHz <= 0 {
		c.SnapshotHz = frame.SnapshotHz
	}
	if c.SimulationHz%c.SnapshotHz != 0 {
		panic("rooms: the snapshots a second have to divide the steps a second")
	}
	if c.Rounding.Default == 0 && c.Rounding.Fields == nil {
		c.Rounding = state.Rounded()
	}
	if c.Grace <= 0 {
		c.Grace = frame.GraceMs * time.Millisecond
	}
	if c.Each <= 0 {
		c.Each = 4
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Stats == nil {
		c.Stats = NewStats()
	}
	return c
}

// Times of the protocol.
const (
	joinWithin = frame.JoinMs * time.Millisecond
	stallAfter = frame.StallMs * time.Millisecond
	expiry     = frame.ExpiryMs * time.Millisecond
	clamp      = frame.ClampMs * time.Millisecond
	chatWithin = frame.ChatMs * time.Millisecond
	pingWithin = frame.PingMs * time.Millisecond

	recoverEach = time.Second            // between two recoveries of a peer
	waitsLong   = time.Second            // that a state frame may wait
	rosterEach  = 250 * time.Millisecond // between two rosters, and
	rosterPer   = 2 * time.Millisecond   // for each member
)

// Bounds of this engine.
const (
	maxQueued = 256 << 10 // bytes of one peer's frames
	maxState  = 1 << 20   // bytes of a view's state
	maxViews  = 64        // that share an encoder
)
