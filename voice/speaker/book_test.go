package speaker

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/ogg"
	"github.com/earshot-mc/earshot/voice/wire"
)

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const tone = "../ogg/testdata/mono_20ms.opus" // 100 frames

type memory struct {
	*bytes.Reader
	closed int
}

func (m *memory) Close() error { m.closed++; return nil }

// doubled makes a file whose packets hold two frames each of those of another one.
func doubled(t testing.TB, file []byte) (out []byte) {
	t.Helper()
	head := ogg.Seal(file)
	titles := head + ogg.Seal(file[head:])
	o := ogg.NewOpus(bytes.NewReader(file))
	out = append(out, file[:titles]...)
	for i := 0; ; i++ {
		a, err := o.Next()
		if err != nil {
			return out
		}
		a = bytes.Clone(a)
		b, err := o.Next()
		if err != nil || len(a) < 2 || len(a) > 200 || len(b) > 200 {
			t.Fatal(len(a), len(b), err)
		}
		packet := append(append([]byte{a[0] | 2, byte(len(a) - 1)}, a[1:]...), b[1:]...)
		var sizes []byte
		for n := len(packet); n >= 0; n -= 255 {
			sizes = append(sizes, byte(min(n, 255)))
		}
		page := append(bytes.Clone(file[head:head+26]), byte(len(sizes)))
		page = append(append(page, sizes...), packet...)
		ogg.Seal(page)
		out = append(out, page...)
	}
}

func TestOpusFile(t *testing.T) {
	all := read(t, tone)
	for what, file := range map[string][]byte{"a frame in each packet": all, "two frames in each packet": doubled(t, all)} {
		for _, loop := range []bool{false, true} {
			m := &memory{Reader: bytes.NewReader(file)}
			f, err := OpenOpus(m, loop)
			if err != nil || f.Length() != 2*time.Second {
				t.Fatalf("%s: %v, %+v", what, err, f)
			}
			var first []byte
			for i := range 250 {
				p, err := f.Next(make([]byte, 0, wire.MaxOpus))
				if !loop && i >= 100 {
					if !errors.Is(err, io.EOF) {
						t.Fatalf("%s: frame %d: %v", what, i, err)
					}
					break
				}
				if err != nil || !wire.OpusOK(p) {
					t.Fatalf("%s: frame %d: %x, %v", what, i, p, err)
				}
				switch {
				case i == 0:
					first = bytes.Clone(p)
				case loop && i%100 == 0 && !bytes.Equal(p, first):
					t.Fatalf("%s: frame %d is not the first one again", what, i)
				}
			}
			if f.Close(); m.closed != 1 {
				t.Errorf("%s: closed %d times", what, m.closed)
			}
		}
	}
	dir := "../soundfile/testdata/"
	broken := bytes.Clone(all)
	broken[len(broken)/2] ^= 1
	empty := all[:ogg.Seal(all)]
	empty = all[:len(empty)+ogg.Seal(all[len(empty):])]
	for what, c := range map[string]struct {
		file []byte
		want string
	}{
		"stereo": {read(t, dir+"stereo_20ms.opus"), Convert}, "2.5 ms": {read(t, dir+"mono_2ms.opus"), Convert},
		"chained": {read(t, dir+"chained.opus"), Convert}, "vorbis": {read(t, dir+"mono_48k.ogg"), Convert}, "mp3": {read(t, dir+"stereo_44k.mp3"), Convert},
		"wav": {read(t, dir+"stereo16_44k.wav"), Convert}, "nothing": {nil, Convert}, "a flipped bit": {broken, "damaged"}, "cut off": {all[:len(all)-10], "cut off"},
		"no sound": {empty, "no sound"},
	} {
		m := &memory{Reader: bytes.NewReader(c.file)}
		if _, err := OpenOpus(m, true); err == nil || !strings.Contains(err.Error(), c.want) || m.closed != 1 {
			t.Errorf("%s: %v, want one with %q; closed %d times", what, err, c.want, m.closed)
		}
	}
}

// What libopus makes of 60 ms is three frames of 20 ms in a packet.
func TestOpusFileOf60ms(t *testing.T) {
	f, err := OpenOpus(&memory{Reader: bytes.NewReader(read(t, "../soundfile/testdata/mono_60ms.opus"))}, false)
	if err != nil || f.Length() != 26*FrameTime {
		t.Fatal(err, f)
	}
}

// Nothing but the directory's own files can be reached.
func TestSounds(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "sounds")
	for path, b := range map[string][]byte{"secret.opus": read(t, tone), "sounds/good.opus": read(t, tone), "sounds/sub/inner.opus": read(t, tone), "sounds/notes.txt": nil} {
		path = filepath.Join(base, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	s := Sounds(dir)
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil && runtime.GOOS != "windows" {
			t.Fatal(err)
		}
	}
	link("../secret.opus", "out.opus")
	link(filepath.Join(base, "secret.opus"), "far.opus")
	link("good.opus", "in.opus")
	link("..", "up")
	if err := os.WriteFile(filepath.Join(dir, "huge.opus"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "huge.opus"), MaxSound+1); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"", ".", "..", "../secret.opus", "sub/inner.opus", "./good.opus", filepath.Join(base, "secret.opus"), `..\secret.opus`, "good.opus/", "C:good.opus",
		"good.opus\x00", "out.opus", "far.opus", "up", "sub", "up/secret.opus", "none.opus", "notes.txt", "huge.opus",
	} {
		if f, err := s.Open(name, false, nil); err == nil {
			f.Close()
			t.Errorf("%q is opened", name)
		}
	}
	for _, name := range []string{"good.opus", "in.opus"} {
		if f, err := s.Open(name, false, nil); err != nil {
			t.Error(err)
		} else {
			f.Close()
		}
	}
	if got, want := s.Names(false), []string{"far.opus", "good.opus", "huge.opus", "in.opus", "out.opus"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	if _, err := Sounds(filepath.Join(base, "nowhere")).Open("good.opus", false, nil); err == nil || !strings.Contains(err.Error(), "make that directory") {
		t.Error(err)
	}
}

// TestFilesThatAreConverted: what cannot be sent as it is goes to the converter, whole and from its beginning; without
// one the error says what is missing.
func TestFilesThatAreConverted(t *testing.T) {
	dir := t.TempDir()
	for name, b := range map[string][]byte{"good.opus": read(t, tone), "song.mp3": []byte("any sound"), "notes.txt": nil} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var got []byte
	convert := func(src io.ReadSeekCloser, loop bool) (Sound, error) {
		defer src.Close()
		got, _ = io.ReadAll(src)
		return nil, errors.New("as the converter says")
	}
	s := Sounds(dir)
	if f, err := s.Open("good.opus", false, convert); err != nil || got != nil {
		t.Error(err, got)
	} else {
		f.Close()
	}
	if f, err := s.Open("song.mp3", false, convert); f != nil || err == nil || !strings.Contains(err.Error(), "as the converter says") || string(got) != "any sound" {
		t.Error(f, err, got)
	}
	if f, err := s.Open("song.mp3", false, nil); f != nil || !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "built with libopus") {
		t.Error(f, err)
	}
	if got := s.Names(true); !slices.Equal(got, []string{"good.opus", "song.mp3"}) {
		t.Error(got)
	}
}

// stand is a book whose changes are applied to another one, as a store does.
type stand struct {
	*Book
	stored map[uuid.UUID]Record
	told   int
}

func (h *house) stand(sounds string) *stand {
	s := &stand{stored: map[uuid.UUID]Record{}}
	s.Book = NewBook(h.set, Sounds(sounds), func(put []Record, gone []uuid.UUID) {
		s.told++
		for _, r := range put {
			text, err := json.Marshal(r)
			if err == nil {
				r = Record{}
				err = json.Unmarshal(text, &r)
			}
			if err != nil {
				h.t.Fatal(err)
			}
			s.stored[r.ID] = r
		}
		for _, id := range gone {
			delete(s.stored, id)
		}
	})
	return s
}

var jukebox = Record{Name: "Jukebox", Server: "survival", World: "overworld", Volume: 1, Range: 16}

func TestBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		a := h.join("anna", 4)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "tone.opus"), read(t, tone), 0o644); err != nil {
			t.Fatal(err)
		}
		b := h.stand(dir)
		if err := b.Put(jukebox); err != nil {
			t.Fatal(err)
		}
		made := b.All()[0]
		louder := jukebox
		louder.Name, louder.Volume, louder.Allow = "JUKEBOX", 0.5, []uuid.UUID{a.Player.ID}
		if err := b.Put(louder); err != nil {
			t.Fatal(err)
		}
		if got := b.All(); len(got) != 1 || got[0].ID != made.ID || got[0].Name != "Jukebox" || got[0].Volume != 0.5 || len(got[0].Allow) != 1 {
			t.Errorf("changed to %+v", got)
		}
		bad := jukebox
		bad.Range = -1
		if b.Put(bad) == nil || b.Put(Record{Name: "nowhere"}) == nil || b.All()[0].Range != 16 || b.told != 2 {
			t.Errorf("a bad record is taken; told %d times", b.told)
		}

		length, err := b.Play("jukebox", "tone.opus", false)
		if err != nil || length != 2*time.Second {
			t.Fatal(length, err)
		}
		time.Sleep(time.Second + time.Millisecond)
		if got := b.All()[0]; got.File != "tone.opus" || got.Loop != "" {
			t.Errorf("while it plays: %+v", got)
		}
		time.Sleep(2 * time.Second)
		got := a.take()
		if len(got) != 100 || got[0].Channel != made.ID || got[0].DX != -4 || got[0].Gain != 96 || b.All()[0].File != "" || b.told != 2 {
			t.Errorf("%d frames, the first %+v; then %+v", len(got), got[0], b.All()[0])
		}
		// Over and over, which is kept, until it is stopped, which takes back what is queued.
		if _, err := b.Play("jukebox", "tone.opus", true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if n := len(a.take()); n < 250 || b.stored[made.ID].Loop != "tone.opus" {
			t.Errorf("%d frames in five seconds; stored %+v", n, b.stored[made.ID])
		}
		if _, err := b.Play("jukebox", "none.opus", false); err == nil || b.All()[0].File != "tone.opus" {
			t.Error("a file that is not there ends what plays:", err)
		}
		if !b.Stop("JukeBox") || b.Stop("jukebox") || b.Stop("none") || !slices.Equal(a.gone, []uuid.UUID{made.ID}) || b.stored[made.ID].Loop != "" {
			t.Errorf("stopping is once, and takes back: %v, stored %+v", a.gone, b.stored[made.ID])
		}
		a.take()
		time.Sleep(time.Second)
		if n := len(a.take()); n != 0 {
			t.Errorf("%d frames after it was stopped", n)
		}

		if err := b.Relay("jukebox", a.Player.ID); err != nil {
			t.Fatal(err)
		}
		if got := b.All()[0]; got.From != a.Player.ID || b.stored[made.ID].Relay != a.Player.ID {
			t.Errorf("relays %+v", got)
		}
		// Another book, of the next start, has it all again, and stores nothing.
		again := h.stand(dir)
		var all []Record
		for _, r := range b.stored {
			all = append(all, r)
		}
		if !b.Remove("jukebox") || b.Remove("jukebox") || len(b.stored) != 0 || len(h.set.All()) != 0 {
			t.Error("removing is once")
		}
		looped := jukebox
		looped.ID, looped.Name, looped.Loop = uuid.New(), "Loop", "tone.opus"
		lost := looped
		lost.ID, lost.Name, lost.Loop = uuid.New(), "Lost", "none.opus"
		twin := looped
		twin.ID = uuid.New()
		err = again.Apply(append(all, looped, lost, twin, Record{}), nil)
		if err == nil || !strings.Contains(err.Error(), "none.opus") || !strings.Contains(err.Error(), "another one") || again.told != 0 {
			t.Errorf("%v; told %d times", err, again.told)
		}
		states := again.All()
		if len(states) != 3 || !reflect.DeepEqual(states[0].Record, all[0]) || states[0].From != a.Player.ID || states[1].File != "tone.opus" || states[2].File != "" {
			t.Fatalf("%+v", states)
		}
		stopped := looped
		stopped.Loop = ""
		if err := again.Apply([]Record{stopped}, []uuid.UUID{lost.ID, uuid.New()}); err != nil {
			t.Fatal(err)
		}
		if states := again.All(); len(states) != 2 || states[1].File != "" {
			t.Errorf("%+v", states)
		}
	})
}

// A file that is played over and over and loses its sound ends the loop, says so once, and is not tried at the next
// start. Everything else goes on.
func TestALoopWhoseFileLosesItsSoundEndsWithAMessage(t *testing.T) {
	whole := read(t, tone)
	first := bytes.Index(whole[4:], []byte("OggS")) + 4
	second := first + bytes.Index(whole[first+4:], []byte("OggS")) + 4
	for what, size := range map[string]int{"nothing": 0, "part of a header": 20, "its headers": second, "one byte of sound": second + 40} {
		synctest.Test(t, func(t *testing.T) {
			h := build(t)
			a := h.join("anna", 4)
			path := filepath.Join(t.TempDir(), "tone.opus")
			if err := os.WriteFile(path, whole, 0o644); err != nil {
				t.Fatal(err)
			}
			b := h.stand(filepath.Dir(path))
			type end struct{ speaker, file string }
			ended := make(chan end, 10)
			b.Ended = func(speaker, file string, err error) { ended <- end{speaker, file} }
			if err := b.Put(jukebox); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Play("jukebox", "tone.opus", true); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			if err := os.Truncate(path, int64(size)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			got := b.All()[0]
			if len(ended) != 1 || got.File != "" || got.Failed == "" || b.stored[got.ID].Loop != "" {
				t.Errorf("%s: %d messages, %+v", what, len(ended), got)
			}
			a.take()
			if b.Stop("jukebox") || b.All()[0].Failed != "" {
				t.Errorf("%s: it plays", what)
			}
			if err := os.WriteFile(path, whole, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Play("jukebox", "tone.opus", true); err != nil {
				t.Errorf("%s: whole again: %v", what, err)
			}
			time.Sleep(time.Second)
			if n := len(a.take()); n < 50 {
				t.Errorf("%s: whole again: %d frames", what, n)
			}
		})
	}
}

func TestBookIsBounded(t *testing.T) {
	h := build(t)
	b := h.stand("")
	for i := range MaxBook {
		r := jukebox
		r.Name = strings.Repeat("x", 1+i%60) + string(rune('a'+i/60))
		if err := b.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Put(jukebox); err == nil || !strings.Contains(err.Error(), "256") {
		t.Error(err)
	}
	crowded := b.All()[0].Record
	crowded.Allow = make([]uuid.UUID, MaxAllow+1)
	if err := b.Put(crowded); err == nil || !strings.Contains(err.Error(), "1024") || b.All()[0].Allow != nil {
		t.Error(err)
	}
	b.Remove(crowded.Name)
	if err := b.Put(crowded); err == nil || len(b.All()) != MaxBook-1 {
		t.Error(err)
	}
	h.set.Close()
	b.Remove(b.All()[0].Name)
	if err := b.Put(jukebox); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
