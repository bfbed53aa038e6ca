package packet

import (
	"testing"

	"github.com/earshot-mc/earshot/proxy/field"
)

// What follows the age differs between versions, and nothing is made of it; what is cut off is an error.
func TestWorldAgeAndHealth(t *testing.T) {
	for _, tail := range [][]byte{nil, field.AppendI64(nil, 6000), {1, 0, 1, 2, 3}} {
		if a, err := ParseWorldAge(append(field.AppendI64(nil, 105_000), tail...)); err != nil || a != 105_000 {
			t.Errorf("%d, %v", a, err)
		}
		if h, err := ParseHealth(append(field.AppendF32(nil, -1.5), tail...)); err != nil || h != -1.5 {
			t.Errorf("%v, %v", h, err)
		}
	}
	for n := range 8 {
		if _, err := ParseWorldAge(make([]byte, n)); err == nil {
			t.Errorf("%d bytes are an age", n)
		}
		if _, err := ParseHealth(make([]byte, n)); (err == nil) != (n >= 4) {
			t.Errorf("%d bytes of health: %v", n, err)
		}
	}
}

func FuzzWorldAgeAndHealth(f *testing.F) {
	f.Add(field.AppendI64(nil, 105_000))
	f.Add(field.AppendF32(nil, 20))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := ParseWorldAge(body); (err == nil) != (len(body) >= 8) {
			t.Error(err)
		}
		if _, err := ParseHealth(body); (err == nil) != (len(body) >= 4) {
			t.Error(err)
		}
	})
}
