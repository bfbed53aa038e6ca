package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// The buckets that Earshot uses.
const (
	Mutes    = "mutes"    // by player
	Groups   = "groups"   // persistent ones, by id
	Speakers = "speakers" // by channel id
	Domains  = "domains"  // declared while running, by name
	Listens  = "listens"  // by listener and domain
	Edges    = "edges"    // by speaker and listener
	Names    = "names"    // of players who were here, by player
)

// Bounds of what is stored, in bytes.
const (
	MaxRecord = 64 << 10
	MaxKey    = 200
)

const (
	prefix     = "earshot_" // of our buckets on a server that has others
	quarantine = prefix + "quarantine"
)

// Spec describes a bucket's records.
type Spec[T any] struct {
	Name    string // one of the constants above
	Version int    // of the records' form, from 1; to be raised when an older program could not read them
	// Check returns what is wrong with a record, beyond its form; nil checks nothing. A record that it refuses is set
	// aside when it comes from the server, and not taken when it comes from here.
	Check func(key string, v *T) error
	// Upgrade reads the data of an older version; nil cannot.
	Upgrade func(version int, data []byte) (T, error)
}

// envelope is a record as it is stored.
type envelope struct {
	Version int             `json:"v"`
	Sum     string          `json:"sum,omitempty"` // of key, version and data; before there were sums: none
	Data    json.RawMessage `json:"data"`
}

func (e *envelope) sum(key string) string {
	return checksum(key, " ", strconv.Itoa(e.Version), " ", string(e.Data))
}

// errDamaged is the error of a record that has changed since it was written.
var errDamaged = errors.New("its checksum is wrong: it is damaged")

// errNewer is the error of a record of a later program. It is not broken, and other nodes may live by it.
var errNewer = errors.New("it was written by a later version of Earshot")

func (s *Spec[T]) encode(key string, v T) ([]byte, error) {
	if s.Check != nil {
		if err := s.Check(key, &v); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	e := envelope{Version: s.Version, Data: data}
	e.Sum = e.sum(key)
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if len(raw) > MaxRecord {
		return nil, fmt.Errorf("%d bytes are too many for a record, which has at most %d", len(raw), MaxRecord)
	}
	return raw, nil
}

func (s *Spec[T]) decode(key string, raw []byte) (v T, err error) {
	if len(raw) > MaxRecord {
		return v, fmt.Errorf("it has %d bytes", len(raw))
	}
	var e envelope
	if err := strictly(raw, &e); err != nil {
		return v, err
	}
	switch {
	case e.Sum != "" && e.Sum != e.sum(key):
		return v, errDamaged
	case e.Version > s.Version:
		return v, fmt.Errorf("version %d: %w", e.Version, errNewer)
	case e.Version == s.Version:
		err = strictly(e.Data, &v)
	case e.Version < 1 || s.Upgrade == nil:
		err = fmt.Errorf("version %d is not one that this program reads", e.Version)
	default:
		v, err = s.Upgrade(e.Version, e.Data)
	}
	if err == nil && s.Check != nil {
		err = s.Check(key, &v)
	}
	return v, err
}

// strictly reads one JSON value and nothing else, without unknown fields: those would be lost with the next writing.
func strictly(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}

// Aside is a record that could not be read.
type Aside struct {
	Bucket   string    `json:"bucket"`
	Key      string    `json:"key"`
	Revision uint64    `json:"revision"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
	Data     []byte    `json:"data"`
}

// escape turns any text into a key: characters that NATS does not take become = and two hex digits.
func escape(key string) (string, error) {
	if key == "" || len(key) > MaxKey {
		return "", fmt.Errorf("a key has 1 to %d bytes, not %d", MaxKey, len(key))
	}
	var out strings.Builder
	for _, c := range []byte(key) {
		if safe(c) {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "=%02X", c)
		}
	}
	return out.String(), nil
}

func safe(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '_'
}

// unescape undoes escape, and nothing else.
func unescape(s string) (key string, ok bool) {
	var out []byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '=' {
			const digits = "0123456789ABCDEF"
			if i+2 >= len(s) {
				return "", false
			}
			high, low := strings.IndexByte(digits, s[i+1]), strings.IndexByte(digits, s[i+2])
			c = byte(high<<4 | low)
			if high < 0 || low < 0 || safe(c) {
				return "", false
			}
			i += 2
		} else if !safe(c) {
			return "", false
		}
		out = append(out, c)
	}
	return string(out), len(out) > 0 && len(out) <= MaxKey
}
