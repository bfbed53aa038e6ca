package line

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// MaxS2C bounds a server's text message as a client reads it, in bytes: the longest that the protocol names, the group
// snapshot, of ASCII.
const MaxS2C = 262_144

// MaxChanges bounds a message of roster 2 in the same way: 16,000 people.
const MaxChanges = 1 << 20

// ErrMalformed is a server's line that a client rejects whole.
var ErrMalformed = errors.New("malformed server line")

// Person is a row of the roster.
type Person struct {
	ID   uuid.UUID
	Name string // no blanks, no control characters
}

// Roster lists who is in voice, as far as one recipient may know. The lists of UUIDs are written only with Status, and
// then always, empty or not.
type Roster struct {
	People   []Person
	Status   bool // the recipient negotiated status 1
	Deafened []uuid.UUID
	Tiers    [talk.Tiers][]uuid.UUID // players who speak so; the ordinary tier has no list
}

// Pose says where the recipient itself stands and looks, for clients that have no view of the game. Yaw is in degrees,
// 0 south (+z), 90 west; it is written within [-180, 180). Coordinates are in blocks. Both travel with two decimals.
type Pose struct {
	Yaw, X, Y, Z float64
	World        string
}

// maxCoordinate bounds a coordinate that a client accepts; the game's world ends at thirty million blocks.
const maxCoordinate = 1e9

// The prefixes end with the blank that precedes the value, also where the value is an empty list (a choice).
const (
	posePrefix     = "SSVC_POSE_V1 "
	deafenedPrefix = "SSVC_DEAFENED_V1 "
)

// tierPrefixes begin the rows of players who speak so: "SSVC_WHISPERING_V1 " and so on, none for the ordinary tier.
var tierPrefixes = func() (all [talk.Tiers]string) {
	for t := range all {
		if doing := talk.Tier(t).Doing(); doing != "" {
			all[t] = "SSVC_" + strings.ToUpper(doing) + "_V1 "
		}
	}
	return all
}()

// AppendPerson writes one row, "<uuid> <name>" and a line feed.
func AppendPerson(dst []byte, p Person) []byte {
	dst = appendUUID(dst, p.ID)
	return append(append(append(dst, ' '), p.Name...), '\n')
}

// AppendRoster writes the roster. The protocol gives it no header: a message whose first row starts with a UUID is one
// (a choice), so there must be at least one person: the recipient.
func AppendRoster(dst []byte, r *Roster) []byte {
	for _, p := range r.People {
		dst = AppendPerson(dst, p)
	}
	if r.Status {
		dst = AppendStatus(dst, r.Deafened, &r.Tiers)
	}
	return dst
}

// AppendStatus writes the rows that end the roster of a status socket.
func AppendStatus(dst []byte, deafened []uuid.UUID, tiers *[talk.Tiers][]uuid.UUID) []byte {
	dst = appendList(dst, deafenedPrefix, deafened)
	for t, prefix := range tierPrefixes {
		if prefix != "" {
			dst = appendList(dst, prefix, tiers[t])
		}
	}
	return dst
}

func appendList(dst []byte, prefix string, ids []uuid.UUID) []byte {
	dst = append(dst, prefix...)
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendUUID(dst, id)
	}
	return append(dst, '\n')
}

// AppendPose writes "SSVC_POSE_V1 <yaw> <x> <y> <z> <b64 world>".
func AppendPose(dst []byte, p *Pose) []byte {
	dst = append(dst, posePrefix...)
	yaw := hundredths(math.Mod(p.Yaw, 360))
	switch {
	case yaw >= 180:
		yaw -= 360
	case yaw < -180:
		yaw += 360
	}
	for _, v := range [...]float64{yaw, p.X, p.Y, p.Z} {
		dst = append(strconv.AppendFloat(dst, hundredths(v), 'f', 2, 64), ' ')
	}
	return strict.AppendEncode(dst, []byte(p.World))
}

// hundredths rounds to two decimals, and never to minus zero.
func hundredths(v float64) float64 { return math.Round(v*100)/100 + 0 }

// ParseS2C reads a server's message, as a client does: *Roster, *Pose, *Speakers, *Groups, *GroupResult, *Mute,
// *Ranges, *Near, *Rights, *MicToggle, *Beaten, *Changes, or nil for a line that this version does not know and is to
// ignore. Whether the socket negotiated the line is for the caller to check.
func ParseS2C(b []byte) (any, error) {
	if len(b) > MaxS2C && !(len(b) <= MaxChanges && bytes.HasPrefix(b, []byte(rosterPrefix))) || !utf8.Valid(b) {
		return nil, ErrMalformed
	}
	s := string(b)
	for _, l := range singles {
		if rest, ok := strings.CutPrefix(s, l.prefix); ok {
			return l.parse(rest)
		}
	}
	row, rows, ended := strings.Cut(s, "\n")
	switch row {
	case speakersHeader:
		return parseSpeakers(s)
	case nearHeader:
		if !ended {
			return nil, ErrMalformed
		}
		return parseNear(rows)
	case groupsHeader:
		if !ended {
			return nil, ErrMalformed
		}
		return parseGroups(rows)
	}
	if word, _, _ := strings.Cut(row, " "); len(word) == 36 {
		if _, err := parseUUID(word); err == nil {
			return parseRoster(s)
		}
	}
	return nil, nil
}

// singles are the messages of one line, by their prefix.
var singles = [...]struct {
	prefix string
	parse  func(rest string) (any, error)
}{
	{posePrefix, parsePose}, {mutePrefix, parseMute}, {rangesPrefix, parseRanges}, {resultPrefix, parseGroupResult},
	{rosterPrefix, parseChanges}, {rightsPrefix, parseRights}, {micPrefix, parseMic}, {beatedPrefix, parseBeaten},
}

func parseRoster(s string) (any, error) {
	r := &Roster{}
	var seen [1 + talk.Tiers]bool
	list := func(row string) (value string, ids *[]uuid.UUID, n int) {
		if value, ok := strings.CutPrefix(row, deafenedPrefix); ok {
			return value, &r.Deafened, 0
		}
		for t, prefix := range tierPrefixes {
			if value, ok := strings.CutPrefix(row, prefix); ok && prefix != "" {
				return value, &r.Tiers[t], 1 + t
			}
		}
		return "", nil, 0
	}
	for row := range strings.Lines(s) {
		row, ended := strings.CutSuffix(row, "\n")
		if !ended {
			return nil, ErrMalformed
		}
		if value, ids, n := list(row); ids != nil {
			var err error
			if *ids, err = parseList(value); err != nil || seen[n] {
				return nil, ErrMalformed
			}
			seen[n], r.Status = true, true
			continue
		}
		if strings.HasPrefix(row, "SSVC_") {
			continue // a row of a later version
		}
		word, name, _ := strings.Cut(row, " ")
		id, err := parseUUID(word)
		if err != nil || !plain(name) {
			return nil, ErrMalformed
		}
		r.People = append(r.People, Person{id, name})
	}
	return r, nil
}

func parseList(s string) ([]uuid.UUID, error) {
	if s == "" {
		return nil, nil
	}
	var ids []uuid.UUID
	for word := range strings.SplitSeq(s, ",") {
		id, err := parseUUID(word)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func parsePose(s string) (any, error) {
	words := strings.Split(s, " ")
	if len(words) != 5 {
		return nil, ErrMalformed
	}
	p := &Pose{}
	for i, v := range [...]*float64{&p.Yaw, &p.X, &p.Y, &p.Z} {
		// Digits only: ParseFloat also takes hex, underscores and "inf".
		if strings.Trim(words[i], "-.0123456789") != "" {
			return nil, ErrMalformed
		}
		var err error
		if *v, err = strconv.ParseFloat(words[i], 64); err != nil || math.Abs(*v) > maxCoordinate {
			return nil, ErrMalformed
		}
	}
	var ok bool
	if p.World, ok = decode(words[4]); !ok {
		return nil, ErrMalformed
	}
	return p, nil
}

func appendUUID(dst []byte, id uuid.UUID) []byte {
	for i, end := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, id[[...]int{0, 4, 6, 8, 10}[i]:end])
	}
	return dst
}

// parseUUID takes the 36-character form in lower case only, as it is written; uuid.Parse would take four more.
func parseUUID(s string) (uuid.UUID, error) {
	id, err := uuid.Parse(s)
	if err != nil || id.String() != s {
		return uuid.Nil, ErrMalformed
	}
	return id, nil
}
