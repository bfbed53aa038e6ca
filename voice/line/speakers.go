package line

import (
	"strings"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Speakers is the snapshot of the speakers that the reader may hear. An empty one clears the reader's list.
type Speakers struct{ List []talk.Speaker }

// Bounds of a snapshot of speakers.
const (
	maxSpeakersChars = 10_000 // more than MaxSpeakers rows of the longest names
)

const speakersHeader = "SSVC_SPEAKERS_V1"

// AppendSpeakers writes the snapshot, of the first [MaxSpeakers].
func AppendSpeakers(dst []byte, list []talk.Speaker) []byte {
	dst = append(append(dst, speakersHeader...), '\n')
	for _, s := range list[:min(len(list), talk.MaxSpeakers)] {
		dst = append(appendText(append(appendUUID(dst, s.ID), ' '), s.Name), '\n')
	}
	return dst
}

// parseSpeakers reads the whole message.
func parseSpeakers(s string) (any, error) {
	if len(s) > maxSpeakersChars && talk.Units(s) > maxSpeakersChars {
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
		if !ended || err != nil || !ok || !talk.ValidSpeakerName(name) || seen[id] || len(out.List) == talk.MaxSpeakers {
			return nil, ErrMalformed
		}
		seen[id] = true
		out.List = append(out.List, talk.Speaker{ID: id, Name: name})
	}
	return out, nil
}
