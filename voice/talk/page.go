package talk

import "github.com/google/uuid"

// Nearby says where somebody is, in whole blocks from the reader.
type Nearby struct {
	ID         uuid.UUID
	DX, DY, DZ int32
}

// Rights says what a player may do with their voice.
type Rights struct{ Speak, Listen, Clips bool }
