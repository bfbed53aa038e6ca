//go:build cgo && nolibopusfile

package opus

import "testing"

func TestDecodeLong(t *testing.T) {
	d, err := NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	pcm := make([]int16, MaxLong)
	for name, c := range map[string]struct {
		packet []byte
		want   int
	}{
		"2.5 ms":       {[]byte{0xe0, 0, 0}, 120},
		"60 ms":        {[]byte{0x18, 0, 0}, 2880},
		"two frames":   {[]byte{0xf9, 0, 0, 0, 0}, 1920},
		"stereo":       {[]byte{0xfc, 0, 0}, 960},
		"six of 20 ms": {[]byte{0xfb, 6, 0, 0, 0, 0, 0, 0}, 5760},
		"seven":        {[]byte{0xfb, 7, 0, 0, 0, 0, 0, 0, 0}, -1},
		"empty":        {nil, -1},
	} {
		n, err := d.DecodeLong(c.packet, pcm)
		if c.want < 0 != (err != nil) || err == nil && n != c.want {
			t.Errorf("%s: %d samples, %v", name, n, err)
		}
	}
	if _, err := d.DecodeLong([]byte{0xf8, 0, 0}, pcm[:FrameSize]); err == nil {
		t.Error("decodes into too little room")
	}
}
