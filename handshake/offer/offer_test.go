package offer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/itest/testkit"
)

type vector struct {
	name, channel, outcome, want string
	bytes                        []byte
}

func vectors(t testing.TB) (out []vector) {
	t.Helper()
	for _, r := range testkit.Rows(t, "vectors.txt", 5) {
		c := r.Columns
		out = append(out, vector{name: c[0], channel: c[1], outcome: c[2], want: c[3], bytes: r.Bytes(t, 4)})
	}
	return out
}

// decode parses b as the channel's message and writes it again.
func decode(channel string, b []byte) (what string, again []byte, err error) {
	switch channel {
	case "hello":
		if err := ParseHello(b); err != nil {
			return "", nil, err
		}
		return "", AppendHello(nil), nil
	case "handshake":
		o, err := ParseHandshake(b)
		if err != nil {
			return "", nil, err
		}
		words := []string{short(o.URL), short(o.Token), fmt.Sprint(int(o.TTL / time.Second))}
		if len(o.URL) > 100 {
			words[1] = fmt.Sprint(len(o.Token))
		}
		return strings.Join(strings.Fields(strings.Join(words, " ")), " "), AppendHandshake(nil, o.URL, o.Token, o.TTL), nil
	default:
		r, err := ParseUnavailable(b)
		if err != nil {
			return "", nil, err
		}
		return short(string(r)), AppendUnavailable(nil, r), nil
	}
}

func short(s string) string {
	if len(s) >= 64 {
		return fmt.Sprintf("%d bytes", len(s))
	}
	return s
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.name, func(t *testing.T) {
			what, again, err := decode(v.channel, v.bytes)
			got := "ok"
			switch {
			case errors.Is(err, ErrMalformed):
				got = "malformed"
			case errors.Is(err, ErrVersion):
				got = "version"
			}
			if got != v.outcome {
				t.Fatalf("outcome %s, want %s", got, v.outcome)
			}
			if what != v.want {
				t.Errorf("decoded %q, want %q", what, v.want)
			}
			if err == nil && !bytes.Equal(again, v.bytes) {
				t.Errorf("encodes to %x, was %x", again, v.bytes)
			}
		})
	}
}

func TestLifeIsCutToSeconds(t *testing.T) {
	o, err := ParseHandshake(AppendHandshake(nil, "u", "t", 59*time.Second+999*time.Millisecond))
	if err != nil || o.TTL != 59*time.Second {
		t.Errorf("%v %v", o.TTL, err)
	}
}

func FuzzParse(f *testing.F) {
	channels := []string{"hello", "handshake", "unavailable"}
	for _, v := range vectors(f) {
		for i, c := range channels {
			if c == v.channel {
				f.Add(uint8(i), v.bytes)
			}
		}
	}
	f.Fuzz(func(t *testing.T, channel uint8, b []byte) {
		_, again, err := decode(channels[channel%3], b)
		if err == nil && !bytes.Equal(again, b) {
			t.Fatalf("encodes to %x, was %x", again, b)
		}
	})
}
