//go:build cgo && nolibopusfile

package opus

import (
	"bytes"
	"math"
	"testing"
)

// tone returns frame i of a 440 Hz sine of the given peak.
func tone(i int, peak float64) []int16 {
	pcm := make([]int16, FrameSize)
	for k := range pcm {
		pcm[k] = int16(peak * math.Sin(2*math.Pi*440*float64(i*FrameSize+k)/SampleRate))
	}
	return pcm
}

// level returns the amplitude of the given frequency in pcm.
func level(pcm []int16, hz float64) float64 {
	var re, im float64
	for k, v := range pcm {
		s, c := math.Sincos(2 * math.Pi * hz * float64(k) / SampleRate)
		re += float64(v) * c
		im += float64(v) * s
	}
	return 2 * math.Hypot(re, im) / float64(len(pcm))
}

func rms(pcm []int16) float64 {
	var sum float64
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(len(pcm)))
}

func packets(t testing.TB, n int) [][]byte {
	t.Helper()
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for i := range n {
		p, err := e.Encode(tone(i, 10_000), make([]byte, 0, 4*MaxPacket))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func decoder(t testing.TB) *Decoder {
	t.Helper()
	d, err := NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A tone comes out with its pitch and its level, in packets of the one shape that the protocol allows: 20 ms, mono, one
// frame.
func TestToneSurvives(t *testing.T) {
	d := decoder(t)
	var heard []int16
	for i, p := range packets(t, 50) {
		const stereoAndCount = 7
		if len(p) == 0 || len(p) > MaxPacket || p[0]&stereoAndCount != 0 || !twentyMillis(p[0]>>3) {
			t.Fatalf("packet %d: %d bytes, first % x", i, len(p), p[:1])
		}
		pcm, err := d.Decode(p)
		if err != nil || len(pcm) != FrameSize {
			t.Fatal(len(pcm), err)
		}
		if i >= 10 {
			heard = append(heard, pcm...)
		}
	}
	if l := level(heard, 440); l < 9000 || l > 11000 {
		t.Errorf("440 Hz at %.0f", l)
	}
	for _, hz := range []float64{220, 880, 1000} {
		if l := level(heard, hz); l > 500 {
			t.Errorf("%.0f Hz at %.0f", hz, l)
		}
	}
}

// twentyMillis returns column 20 ms of RFC 6716, table 2.
func twentyMillis(config byte) bool {
	switch {
	case config < 12:
		return config%4 == 2
	case config < 16:
		return config%2 == 1
	}
	return config%4 == 3
}

func TestEncodeAppends(t *testing.T) {
	e, _ := NewEncoder()
	p, err := e.Encode(tone(0, 9000), []byte("head"))
	if err != nil || !bytes.HasPrefix(p, []byte("head")) || len(p) < 6 {
		t.Errorf("%q %v", p, err)
	}
	if p, err = e.Encode(make([]int16, 480), []byte("head")); err == nil || string(p) != "head" {
		t.Errorf("half a frame: %q %v", p, err)
	}
}

// After Reset an encoder gives the same packets again.
func TestEncoderReset(t *testing.T) {
	e, _ := NewEncoder()
	run := func() (all []byte) {
		for i := range 5 {
			all, _ = e.Encode(tone(i, 5000), all)
		}
		return
	}
	first := run()
	if bytes.Equal(run(), first) {
		t.Error("the state does not matter, so the test tests nothing")
	}
	if err := e.Reset(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(run(), first) {
		t.Error("differs after Reset")
	}
}

// Concealment continues the tone, fades, and the real sound comes back; Reset leaves silence instead of the past.
func TestConceal(t *testing.T) {
	d := decoder(t)
	all := packets(t, 60)
	for _, p := range all[:30] {
		if _, err := d.Decode(p); err != nil {
			t.Fatal(err)
		}
	}
	pcm, err := d.Conceal()
	if err != nil || len(pcm) != FrameSize {
		t.Fatal(len(pcm), err)
	}
	if l := level(pcm, 440); l < 3000 {
		t.Errorf("first concealed frame has 440 Hz at %.0f", l)
	}
	for range 50 {
		if pcm, err = d.Conceal(); err != nil {
			t.Fatal(err)
		}
	}
	if l := rms(pcm); l > 500 {
		t.Errorf("still %.0f after a second", l)
	}
	for _, p := range all[30:] {
		if pcm, err = d.Decode(p); err != nil {
			t.Fatal(err)
		}
	}
	if l := level(pcm, 440); l < 8000 {
		t.Errorf("after concealment 440 Hz at %.0f", l)
	}
	if err := d.Reset(); err != nil {
		t.Fatal(err)
	}
	if pcm, err = d.Conceal(); err != nil || rms(pcm) > 1 {
		t.Errorf("after Reset: %.0f %v", rms(pcm), err)
	}
}

func TestBadPackets(t *testing.T) {
	d := decoder(t)
	good := packets(t, 3)
	tenMillis := []byte{30 << 3, 1, 2, 3} // CELT fullband, 10 ms
	for name, p := range map[string][]byte{"empty": nil, "too long": make([]byte, MaxPacket+1), "10 ms": tenMillis,
		"two frames": append([]byte{31<<3 | 1}, make([]byte, 20)...), "code 3 cut short": {31<<3 | 3}} {
		if pcm, err := d.Decode(p); err == nil {
			t.Errorf("%s: %d samples", name, len(pcm))
		}
	}
	for _, p := range good {
		if _, err := d.Decode(p); err != nil {
			t.Errorf("goes on: %v", err)
		}
	}
}

// Whatever arrives decodes to one frame or to an error.
func FuzzDecode(f *testing.F) {
	for _, p := range packets(f, 4) {
		f.Add(p)
	}
	f.Add([]byte{31<<3 | 3, 0xff})
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, p []byte) {
		d := decoder(t)
		for range 2 {
			if pcm, err := d.Decode(p); (err == nil) != (len(pcm) == FrameSize) {
				t.Fatal(len(pcm), err)
			}
			if pcm, err := d.Conceal(); err != nil || len(pcm) != FrameSize {
				t.Fatal(len(pcm), err)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	e, _ := NewEncoder()
	pcm, buf := tone(3, 9000), make([]byte, 0, MaxPacket)
	b.ReportAllocs()
	for b.Loop() {
		e.Encode(pcm, buf)
	}
}

func BenchmarkDecode(b *testing.B) {
	all := packets(b, 50)
	d := decoder(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Decode(all[i%50])
	}
}
