package socket

import (
	"strings"
	"testing"
	"time"
)

// Sound that waits can be taken back by how it begins, whatever stands around it; the part of a frame that is on its
// way cannot.
func TestRetract(t *testing.T) {
	long := strings.Repeat("x", 200) // a longer header
	o, f := &outbox{}, &fake{room: 4}
	for i, s := range []string{"a1", "b1", "a2", "ab" + long, "b2", "a" + long, "c1", "a3"} {
		o.audio(time.Duration(i), []byte(s[:1]), []byte(s[1:]))
	}
	if _, err := o.flush(0, f); err != nil { // a1 goes
		t.Fatal(err)
	}
	f.room = 3 // and the better part of b1
	if _, err := o.flush(0, f); err != nil {
		t.Fatal(err)
	}
	o.retract([]byte("b"))
	o.retract([]byte("a" + long[:5]))
	o.retract([]byte("nobody"))
	if got := o.stats.Drops[DropRetract]; got != 2 {
		t.Errorf("took %d back, want 2", got)
	}
	o.audio(9, []byte("d"), nil)
	f.room = 0
	if _, err := o.flush(9, f); err != nil {
		t.Fatal(err)
	}
	f.want(t, "binary a1", "binary b1", "binary a2", "binary ab"+long, "binary c1", "binary a3", "binary d")
	if o.stats.Sent != 7 || !o.empty() {
		t.Errorf("%+v", o.stats)
	}
	for range 3 {
		o.audio(9, []byte("gone"), nil)
	}
	if o.retract(nil); !o.empty() || o.off != 0 || len(o.sound) != 0 {
		t.Error("something is left")
	}
	o.retract(nil)
}
