package opus

import (
	"errors"
	"testing"
)

// TestBuiltOrSaidSo: a program has libopus, or says what is missing.
func TestBuiltOrSaidSo(t *testing.T) {
	_, eerr := NewEncoder()
	_, derr := NewDecoder()
	for _, err := range []error{eerr, derr} {
		if Built && err != nil || !Built && !errors.Is(err, ErrMissing) {
			t.Errorf("built with libopus: %v, %v", Built, err)
		}
	}
}
