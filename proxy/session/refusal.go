package session

// Refusal is an error that has a text of the table for players.
type Refusal struct {
	err   string
	key   string
	named []string
}

func refusal(err, key string, named ...string) *Refusal { return &Refusal{err, key, named} }

// Error returns the error for logs.
func (r *Refusal) Error() string { return r.err }

// Told returns the key of the text, and names and values in turn.
func (r *Refusal) Told() (key string, named []string) { return r.key, r.named }
