package line

import (
	"strings"

	"github.com/google/uuid"
)

// Speaker is a named source of sound in the world.
type Speaker struct {
	ID   uuid.UUID // of the channel
	Name string    // see [ValidSpeakerName]; it never tells channels apart
}

// Speakers is the snapshot of those that the reader may hear. An empty one
// clears the reader's list.
type Speakers struct{ List []Speaker }

// Bounds of a snapshot of speakers.
const (
	MaxSpeakers      = 32
	maxSpeakersChars = 10_000 // more than MaxSpeakers rows of the longest names
)

const speakersHeader = "SSVC_SPEAKERS_V1"

// AppendSpeakers writes the snapshot, of the first [MaxSpeakers].
func AppendSpeakers(dst []byte, list []Speaker) []byte {
	dst = append(append(dst, speakersHeader...), '\n')
	for _, s := range list[:min(len(list), MaxSpeakers)] {
		dst = append(appendText(append(appendUUID(dst, s.ID), ' '), s.Name), '\n')
	}
	return dst
}

// parseSpeakers reads the whole message.
func parseSpeakers(s string) (any, error) {
	if len(s) > maxSpeakersChars && Units(s) > maxSpeakersChars {
		return nil, ErrMalformed
	}
	rows, headed := strings.CutPrefix(s, speakersHeader+"\n")
	if !headed {
		return nil, ErrMalformed
	}
	out := &Speakers{}
	seen := map[uuid.UUID]bool{}
	for row := range strings.Lines(rows) {
		row, ended := strings.CutSuffix(row, "\n")
		word, encoded, _ := strings.Cut(row, " ")
		id, err := parseUUID(word)
		name, ok := decode(encoded)
		if !ended || err != nil || !ok || !ValidSpeakerName(name) || seen[id] || len(out.List) == MaxSpeakers {
			return nil, ErrMalformed
		}
		seen[id] = true
		out.List = append(out.List, Speaker{id, name})
	}
	return out, nil
}
