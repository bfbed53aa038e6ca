package frame

// A Violation is a framing rule that a peer broke; the connection is of no use afterwards. Its text is short and fixed,
// fit to be the label of a counter.
type Violation string

// The rules. Some bind a client only, and say so: modded backends break them, and vanilla clients do not mind.
const (
	BadLength        Violation = "length prefix longer than 3 bytes"
	FrameTooLarge    Violation = "frame larger than allowed"
	EmptyFrames      Violation = "too many empty frames in a row" // client
	BadID            Violation = "packet id missing or malformed"
	BadDataLength    Violation = "data length malformed"
	InflatedTooLarge Violation = "inflated size larger than allowed"
	SizeMismatch     Violation = "inflated size differs from the declared size"
	BadDeflate       Violation = "compressed data is damaged"
	NotCompressed    Violation = "frame at or above the threshold sent uncompressed" // client
	BelowThreshold   Violation = "frame below the threshold sent compressed"         // client
	Bomb             Violation = "compression ratio above 1024"                      // client
	OverBudget       Violation = "too many inflated bytes per second"                // client
	Unframeable      Violation = "packet too large for the other side, which takes it uncompressed"
)

// Violations lists every Violation, so that each can be counted from zero.
func Violations() []Violation {
	return []Violation{BadLength, FrameTooLarge, EmptyFrames, BadID, BadDataLength, InflatedTooLarge, SizeMismatch,
		BadDeflate, NotCompressed, BelowThreshold, Bomb, OverBudget, Unframeable}
}

// Error implements error.
func (v Violation) Error() string { return "frame: " + string(v) }
