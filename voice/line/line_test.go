package line

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/talk"
)

type vector struct{ name, outcome, want, text string }

func vectors(t testing.TB, name string) (out []vector) {
	t.Helper()
	for _, r := range testkit.Rows(t, name, 4) {
		text, err := unquote(r.Columns[3])
		if err != nil {
			t.Fatalf("%s: %v", r.Where, err)
		}
		out = append(out, vector{r.Columns[0], r.Columns[1], r.Columns[2], text})
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
	case Beat:
		return fmt.Sprint("beat ", r.Beat)
	}
	g := r.Group
	s := g.Verb.String()
	for _, f := range forms[g.Verb] {
		switch {
		case f == argDestination && g.Out:
			s += " out"
		case f == argGroup || f == argDestination:
			s += fmt.Sprintf(" group=%x", g.Group[15])
		case f == argPlayer:
			s += fmt.Sprintf(" player=%x", g.Player[15])
		case f == argType:
			s += " type=" + g.Type.String()
		case f == argPersistent:
			s += fmt.Sprint(" persistent=", g.Persistent)
		case f == argName:
			s += " name=" + short(g.Name)
		case g.Password == talk.Garbled:
			s += " garbled"
		default:
			s += " password=" + short(g.Password)
		}
	}
	return s
}

// short quotes s, or gives the beginning and the characters of a long one.
func short(s string) string {
	if len(s) <= 60 {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%.3s… (%d)", s, talk.Units(s))
}

func TestC2SVectors(t *testing.T) {
	for _, v := range slices.Concat(vectors(t, "c2s.txt"), vectors(t, "group.txt"), vectors(t, "page-c2s.txt")) {
		t.Run(v.name, func(t *testing.T) {
			r, err := ParseC2S([]byte(v.text))
			var got string
			switch {
			case errors.Is(err, ErrUnsupported):
				got = "close 1003"
			case err != nil:
				got = err.Error()
			case string(AppendC2S(nil, &r)) == v.text:
				got = "ok"
			default:
				got = "tolerated"
			}
			if got != v.outcome {
				t.Fatalf("outcome %q, want %q (encodes to %.200q)", got, v.outcome, AppendC2S(nil, &r))
			}
			if err != nil {
				return
			}
			if got := describeC2S(r); got != v.want {
				t.Errorf("decoded %q, want %q", got, v.want)
			}
			again, err := ParseC2S(AppendC2S(nil, &r))
			if err != nil || again != r {
				t.Errorf("encodes to what is read as %+v, %v", again, err)
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
			s += fmt.Sprintf(" deaf%x low%x high%x", ends(m.Deafened), ends(m.Tiers[talk.Whisper]), ends(m.Tiers[talk.Shout]))
		}
		return s
	case *Speakers:
		s := "speakers"
		for _, p := range m.List {
			s += fmt.Sprintf(" %x=%s", p.ID[15], short(p.Name))
		}
		return s
	case *Groups:
		s := "groups C"
		for _, on := range []bool{m.May.Use, m.May.Create, m.May.Admin, m.May.Invite} {
			s += string(appendFlag(nil, on))
		}
		for _, i := range m.Invites {
			s += fmt.Sprintf(" I%x<%x:%d", i.Group[15], i.From[15], i.Seconds)
		}
		for _, g := range m.Groups {
			s += fmt.Sprintf(" G%x=%v/%v/%v/%x/%q", g.ID[15], g.Type, g.Locked, g.Persistent, g.Owner[15], g.Name)
		}
		for _, p := range m.Members {
			s += fmt.Sprintf(" M%x:%x", p.Group[15], p.Player[15])
		}
		return s
	case *talk.GroupResult:
		return fmt.Sprint("result ", m.Verb, " ", m.Code)
	case *Mute:
		seconds := "-"
		if m.Timed {
			seconds = strconv.Itoa(m.Seconds)
		}
		return fmt.Sprintf("mute %d %s %s", m.Kind, seconds, short(m.Reason))
	case *Near:
		s := "near"
		for _, p := range m.People {
			s += fmt.Sprintf(" %x@%d/%d/%d", p.ID[15], p.DX, p.DY, p.DZ)
		}
		return s
	case *Rights:
		return fmt.Sprint("rights ", m.Speak, " ", m.Listen, " ", m.Clips)
	case *Changes:
		s := "changes whole"
		if !m.Whole {
			s = fmt.Sprintf("changes %x", m.From)
		}
		s += fmt.Sprintf(">%x", m.To)
		for _, p := range m.Put {
			s += fmt.Sprintf(" +%x=%s", p.ID[15], p.Name)
			if p.Deafened {
				s += "/deaf"
			}
			if p.Tier != talk.Normal {
				s += "/" + p.Tier.String()
			}
		}
		for _, id := range m.Gone {
			s += fmt.Sprintf(" -%x", id[15])
		}
		return s
	case *MicToggle:
		return "mic toggle"
	case *Beaten:
		return fmt.Sprint("beaten ", m.Beat, " ", m.Accepted)
	case *Ranges:
		return fmt.Sprint("ranges ", m.Tiers.Has(talk.Whisper), " ", m.Tiers.Has(talk.Shout))
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
	case *Near:
		return AppendNear(nil, m.People)
	case *Rights:
		return AppendRights(nil, m.Rights)
	case *Changes:
		return AppendChanges(nil, m)
	case *MicToggle:
		return AppendMicToggle(nil)
	case *Beaten:
		return AppendBeaten(nil, *m)
	case *Speakers:
		return AppendSpeakers(nil, m.List)
	case *Groups:
		return AppendGroups(nil, m)
	case *talk.GroupResult:
		return AppendGroupResult(nil, *m)
	case *Mute:
		return AppendMute(nil, m)
	case *Ranges:
		return AppendRanges(nil, *m)
	}
	return nil
}

func TestS2CVectors(t *testing.T) {
	for _, v := range slices.Concat(vectors(t, "s2c.txt"), vectors(t, "page.txt"), vectors(t, "roster.txt")) {
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
		if got := talk.Units(s); got != want {
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
	for _, v := range slices.Concat(vectors(f, "c2s.txt"), vectors(f, "group.txt"), vectors(f, "page-c2s.txt")) {
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
		// What a client wrote badly is read as absent and so written otherwise, but it means the same.
		text := AppendC2S(nil, &r)
		again, err := ParseC2S(text)
		if err != nil || again != r {
			t.Fatalf("%q encodes to %q, which is %+v and not %+v: %v", b, text, again, r, err)
		}
		if r.Request != Group && string(text) != string(b) {
			t.Fatalf("encodes to %q, was %q", text, b)
		}
	})
}

func FuzzParseS2C(f *testing.F) {
	for _, v := range slices.Concat(vectors(f, "s2c.txt"), vectors(f, "page.txt"), vectors(f, "roster.txt")) {
		if len(v.text) < 4096 { // the largest only slow the mutator down
			f.Add([]byte(v.text))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseS2C(b)
		if err != nil || m == nil {
			return
		}
		// A client may be given what we would not write; once written by us it must be read as the same thing and stay
		// the same.
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

// Each line has vectors that pass and vectors that do not.
func TestEveryLineHasVectors(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range slices.Concat(vectors(t, "c2s.txt"), vectors(t, "group.txt"), vectors(t, "page-c2s.txt")) {
		name, rest, _ := strings.Cut(v.text, ":")
		if name+":" == groupPrefix {
			name, _, _ = strings.Cut(rest, " ")
		}
		seen[name+" "+v.outcome] = true
	}
	for _, v := range slices.Concat(vectors(t, "s2c.txt"), vectors(t, "page.txt"), vectors(t, "roster.txt")) {
		name, _, _ := strings.Cut(v.text, " ")
		name, _, _ = strings.Cut(name, "\n")
		if _, err := parseUUID(name); err == nil {
			name = "roster"
		}
		seen[name+" "+v.outcome] = true
		if strings.HasPrefix(v.text, resultPrefix) {
			for word := range strings.SplitSeq(v.text[len(resultPrefix):], " ") {
				seen[word+" of a result "+v.outcome] = true
			}
		}
	}
	want := []string{}
	for _, prefix := range []string{deafenPrefix, rangePrefix} {
		want = append(want, strings.TrimSuffix(prefix, ":")+" ok", strings.TrimSuffix(prefix, ":")+" close 1003")
	}
	for v := range forms {
		word := talk.Verb(v).String()
		want = append(want, word+" ok", word+" close 1003", word+" of a result ok")
	}
	for c := talk.OK; c <= talk.InboxFull; c++ {
		want = append(want, c.String()+" of a result ok")
	}
	for _, l := range []string{"roster", speakersHeader, groupsHeader, "SSVC_POSE_V1", "SSVC_MUTE_V1", "SSVC_RANGES_V1", "SSVC_GROUP_RESULT_V1", "SSVC_ROSTER_V2"} {
		want = append(want, l+" ok", l+" reject")
	}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("no vector: %s", w)
		}
	}
}
