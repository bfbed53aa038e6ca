package line

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
)

type vector struct{ name, outcome, want, text string }

// vectors reads testdata/name; an empty file is a failure, for then nothing
// would be tested.
func vectors(t testing.TB, name string) []vector {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []vector
	for i, row := range strings.Split(string(data), "\n") {
		if row == "" || row[0] == '#' {
			continue
		}
		col := strings.SplitN(row, "|", 4)
		if len(col) != 4 {
			t.Fatalf("%s:%d: %d columns, want 4", name, i+1, len(col))
		}
		for j := range col {
			col[j] = strings.TrimSpace(col[j])
		}
		text, err := unquote(col[3])
		if err != nil {
			t.Fatalf("%s:%d: %v", name, i+1, err)
		}
		out = append(out, vector{col[0], col[1], col[2], text})
	}
	if len(out) == 0 {
		t.Fatalf("%s holds no vectors", name)
	}
	return out
}

// unquote joins Go strings, each of which may be followed by *n.
func unquote(s string) (string, error) {
	var out strings.Builder
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", err
		}
		text, err := strconv.Unquote(quoted)
		if err != nil {
			return "", err
		}
		s = s[len(quoted):]
		n := 1
		if rest, ok := strings.CutPrefix(s, "*"); ok {
			digits, tail, _ := strings.Cut(rest, " ")
			if n, err = strconv.Atoi(digits); err != nil {
				return "", err
			}
			s = tail
		}
		out.WriteString(strings.Repeat(text, n))
	}
	return out.String(), nil
}

func describeC2S(r C2S) string {
	switch r.Request {
	case Deafen:
		return fmt.Sprint("deafen ", r.Deafened)
	case Range:
		return "range " + r.Tier.String()
	}
	if len(r.Args) == 1 && len(r.Args[0]) > 100 {
		return fmt.Sprintf("group %s %d", r.Verb, len(r.Args[0]))
	}
	return fmt.Sprintf("group %s %v", r.Verb, r.Args)
}

func TestC2SVectors(t *testing.T) {
	for _, v := range vectors(t, "c2s.txt") {
		t.Run(v.name, func(t *testing.T) {
			r, err := ParseC2S([]byte(v.text))
			got := "ok"
			if errors.Is(err, ErrUnsupported) {
				got = "close 1003"
			} else if err != nil {
				got = err.Error()
			}
			if got != v.outcome {
				t.Fatalf("outcome %q, want %q", got, v.outcome)
			}
			if err != nil {
				return
			}
			if got := describeC2S(r); got != v.want {
				t.Errorf("decoded %q, want %q", got, v.want)
			}
			if again := AppendC2S(nil, &r); string(again) != v.text {
				t.Errorf("encodes to %q", again)
			}
		})
	}
}

func describeS2C(m any) string {
	switch m := m.(type) {
	case *Pose:
		return fmt.Sprintf("pose %v %v %v %s %s", m.Yaw, m.X, m.Y, strconv.FormatFloat(m.Z, 'f', -1, 64), m.World)
	case *Roster:
		s := "roster"
		for _, p := range m.People {
			if len(p.Name) > 100 {
				s += fmt.Sprintf(" %x= and %d more", p.ID[15], len(p.Name)-5)
				continue
			}
			s += fmt.Sprintf(" %x=%s", p.ID[15], p.Name)
		}
		if m.Status {
			s += fmt.Sprintf(" deaf%x low%x high%x", ends(m.Deafened), ends(m.Whispering), ends(m.Shouting))
		}
		return s
	}
	return ""
}

func ends(ids []uuid.UUID) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id[15])
	}
	return out
}

func appendS2C(m any) []byte {
	switch m := m.(type) {
	case *Roster:
		return AppendRoster(nil, m)
	case *Pose:
		return AppendPose(nil, m)
	}
	return nil
}

func TestS2CVectors(t *testing.T) {
	for _, v := range vectors(t, "s2c.txt") {
		t.Run(v.name, func(t *testing.T) {
			m, err := ParseS2C([]byte(v.text))
			var got string
			switch {
			case errors.Is(err, ErrMalformed):
				got = "reject"
			case err != nil:
				got = err.Error()
			case m == nil:
				got = "ignored"
			case string(appendS2C(m)) == v.text:
				got = "ok"
			default:
				got = "tolerated"
			}
			if got != v.outcome {
				t.Fatalf("outcome %q, want %q (encodes to %.200q)", got, v.outcome, appendS2C(m))
			}
			if got := describeS2C(m); err == nil && got != v.want {
				t.Errorf("decoded %q, want %q", got, v.want)
			}
		})
	}
}

func TestPoseIsWrappedAndRounded(t *testing.T) {
	for _, c := range []struct {
		yaw  float64
		want string
	}{
		{0, "0.00"}, {180, "-180.00"}, {-180, "-180.00"}, {359, "-1.00"}, {-181, "179.00"}, {720.5, "0.50"},
		{-3600, "0.00"}, {179.999, "-180.00"}, {-0.001, "0.00"}, {359.999, "0.00"},
	} {
		want := "SSVC_POSE_V1 " + c.want + " 0.00 0.00 0.00 dw=="
		if got := string(AppendPose(nil, &Pose{Yaw: c.yaw, X: -0.001, World: "w"})); got != want {
			t.Errorf("yaw %v: %q, want %q", c.yaw, got, want)
		}
	}
}

func TestUnits(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "語": 1, "😀": 2, "\xff": 1} {
		if got := Units(s); got != want {
			t.Errorf("Units(%q) = %d, want %d", s, got, want)
		}
	}
}

// A held key sends these at any rate; they must not cost garbage.
func TestStateLinesDoNotAllocate(t *testing.T) {
	lines := [][]byte{[]byte("SSVC_DEAFEN_V1:1"), []byte("SSVC_RANGE_V1:shout")}
	if n := testing.AllocsPerRun(100, func() {
		for _, b := range lines {
			if _, err := ParseC2S(b); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseC2S(f *testing.F) {
	for _, v := range vectors(f, "c2s.txt") {
		f.Add([]byte(v.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseC2S(b)
		if err != nil {
			if !errors.Is(err, ErrUnsupported) {
				t.Fatal(err)
			}
			return
		}
		if again := AppendC2S(nil, &r); string(again) != string(b) {
			t.Fatalf("encodes to %q, was %q", again, b)
		}
	})
}

func FuzzParseS2C(f *testing.F) {
	for _, v := range vectors(f, "s2c.txt") {
		if len(v.text) < 4096 { // the largest only slow the mutator down
			f.Add([]byte(v.text))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseS2C(b)
		if err != nil || m == nil {
			return
		}
		// A client may be given what we would not write; once written by us it
		// must be read as the same thing and stay the same.
		text := appendS2C(m)
		again, err := ParseS2C(text)
		if err != nil || again == nil {
			t.Fatalf("own text %q is not understood: %v", text, err)
		}
		if second := appendS2C(again); string(second) != string(text) {
			t.Fatalf("encodes to %q, then to %q", text, second)
		}
	})
}
