package talk

import "github.com/google/uuid"

// Nearby is where somebody is, in whole blocks from the reader.
type Nearby struct {
	ID         uuid.UUID
	DX, DY, DZ int32
}

// Rights is what a player may do with their voice.
type Rights struct{ Speak, Listen, Clips bool }
