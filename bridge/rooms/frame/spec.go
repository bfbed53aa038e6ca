package frame

import (
	_ "embed"
	"encoding/json"
)

//go:generate go run ./gen

// SpecFile is the protocol as programs read it: /spec/rooms-protocol.json.
//
//go:embed rooms-protocol.json
var SpecFile []byte

// Field is a field of a frame.
type Field struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Optional bool   `json:"optional,omitempty"`
	Choice   bool   `json:"choice,omitempty"` // this server's, where the protocol is silent
}

// Frame is one kind of frame.
type Frame struct {
	Type   string  `json:"type"`
	Lane   string  `json:"lane"`
	Fields []Field `json:"fields"`
}

// Close is one way in which a transport ends.
type Close struct {
	Code   Code   `json:"code"`
	Reason string `json:"reason"`
	When   string `json:"when"`
}

// Spec is what [SpecFile] holds.
type Spec struct {
	Name         string         `json:"name"`
	Protocol     int            `json:"protocol"`
	SimulationHz int            `json:"simulationHz"`
	SnapshotHz   int            `json:"snapshotHz"`
	GraceMs      int            `json:"graceMs"`
	Limits       map[string]any `json:"limits"`
	Lanes        map[string]any `json:"lanes"`
	CloseCodes   []Close        `json:"closeCodes"`
	Frames       struct {
		ClientToServer []Frame `json:"clientToServer"`
		ServerToClient []Frame `json:"serverToClient"`
	} `json:"frames"`
	Codecs []string `json:"codecs"`
}

// Times and rates of the protocol, in ms and Hz, as the file has them.
const (
	SimulationHz = 120
	SnapshotHz   = 20
	GraceMs      = 15_000
	JoinMs       = 5_000
	StallMs      = 5_000
	AckWindow    = 64 // snapshots
	ExpiryMs     = 1_000
	ClampMs      = 100
	ChatEach     = 4 // in ChatMs
	ChatMs       = 10_000
	PingEach     = 3 // in PingMs
	PingMs       = 5_000
	PingExpiryMs = 8_000
	BubbleMs     = 10_000
)

// TheSpec returns the protocol that this package and the room speak.
func TheSpec() Spec {
	s := Spec{
		Name: "rooms", Protocol: Protocol, SimulationHz: SimulationHz, SnapshotHz: SnapshotHz, GraceMs: GraceMs,
		Limits: map[string]any{
			"frameChars": MaxChars, "framesPerSecond": FramesPerSecond, "joinTimeoutMs": JoinMs, "stallMs": StallMs, "ackWindow": AckWindow,
			"burstFrames": MaxBurst, "burstExpiryMs": ExpiryMs, "stepClampMs": ClampMs, "chatChars": MaxChat, "chatPer": []int{ChatEach, ChatMs},
			"pingPer": []int{PingEach, PingMs}, "pingExpiryMs": PingExpiryMs, "bubbleMs": BubbleMs, "history": History, "bans": Bans, "decimals": 4,
		},
		Lanes: map[string]any{"control": map[string]bool{"reliable": true}, "state": map[string]bool{"reliable": false}},
		CloseCodes: []Close{
			{Normal, Elsewhere, "the session was resumed on another transport"},
			{GoingAway, Closed, "the room is closed or drained"},
			{GoingAway, Stalled, "nothing was acknowledged for 5 s while the receiver was blocked"},
			{Policy, Timeout, "no join within 5 s"},
			{Policy, Invalid, "after any error"},
			{Policy, Removed, "kicked or banned"},
		},
		Codecs: []string{"packed-1"},
	}
	field := func(name, kind string) Field { return Field{Name: name, Type: kind} }
	maybe := func(f Field) Field { f.Optional = true; return f }
	ours := func(f Field) Field { f.Choice = true; return f }
	kind, ack := field("type", "string"), maybe(field("ack", "int"))
	s.Frames.ClientToServer = []Frame{
		{Join, "control", []Field{kind, field("protocol", "int"), maybe(field("name", "string")), maybe(field("resume", "string")), maybe(field("binaryStates", "bool")), ack}},
		{Ack, "control", []Field{kind, field("ack", "int")}},
		{Chat, "control", []Field{kind, field("text", "string"), ack}},
		{Ping, "control", []Field{kind, field("kind", "string"), ack}},
		{Moderate, "control", []Field{kind, field("action", "string"), maybe(field("locked", "bool")), maybe(field("playerId", "string")), ack}},
		{Leave, "control", []Field{kind, ack}},
	}
	message := field("message", "string")
	s.Frames.ServerToClient = []Frame{
		{Welcome, "control", []Field{kind, field("protocol", "int"), field("id", "string"), field("resume", "string"), field("capacity", "int"), ours(field("sequence", "int")), ours(maybe(field("stateCodec", "string")))}},
		{Baseline, "control", []Field{kind, field("epoch", "int"), field("tick", "int")}},
		{Snapshot, "control", []Field{kind, field("epoch", "int"), field("tick", "int"), maybe(field("initial", "bool"))}},
		{State, "state", []Field{kind, field("base", "int"), field("tick", "int"), field("epoch", "int"), field("delta", "object")}},
		{Social, "control", []Field{kind, field("leaderId", "string or null"), field("locked", "bool"), field("members", "list"), maybe(field("history", "list"))}},
		{Chat, "control", []Field{kind, field("message", "object")}},
		{Ping, "control", []Field{kind, field("ping", "object")}},
		{Left, "control", []Field{kind}},
		{Remove, "control", []Field{kind, message}},
		{Notice, "control", []Field{kind, message}},
		{Error, "control", []Field{kind, message}},
	}
	return s
}

// Generated returns the content that [SpecFile] must have.
func Generated() []byte {
	b, err := json.MarshalIndent(TheSpec(), "", "  ")
	if err != nil {
		panic(err) // everything in it is JSON
	}
	return append(b, '\n')
}
