package line

import (
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// The lines of a page, which has no view of the game; they are this product's own.
const (
	nearHeader   = "SSVC_NEAR_V1"
	rightsPrefix = "SSVC_RIGHTS_V1 "
	micPrefix    = "SSVC_MIC_V1 "
	beatedPrefix = "SSVC_BEAT_V1 "
)

// MaxNear bounds the people whose places a client is told.
const MaxNear = 50

// maxAway bounds how many blocks away somebody can be, in each direction.
const maxAway = 60_000_000

// Near says where people with a voice are, the nearest first.
type Near struct{ People []talk.Nearby }

// Rights says what the player may do.
type Rights struct{ talk.Rights }

// MicToggle asks a client to open its microphone if it is closed, and to close it if it is open.
type MicToggle struct{}

// Beaten answers a beat.
type Beaten struct {
	Beat     int32
	Accepted int64 // frames of this connection that were taken so far
}

// AppendNear writes the header, then "<uuid> <dx> <dy> <dz>" and a line feed for each.
func AppendNear(dst []byte, people []talk.Nearby) []byte {
	dst = append(append(dst, nearHeader...), '\n')
	for _, p := range people {
		dst = appendUUID(dst, p.ID)
		for _, v := range [...]int32{p.DX, p.DY, p.DZ} {
			dst = strconv.AppendInt(append(dst, ' '), int64(v), 10)
		}
		dst = append(dst, '\n')
	}
	return dst
}

// AppendRights writes "SSVC_RIGHTS_V1 <speak> <listen> <clips>", each 0 or 1.
func AppendRights(dst []byte, r talk.Rights) []byte {
	dst = append(dst, rightsPrefix...)
	dst = append(appendFlag(dst, r.Speak), ' ')
	dst = append(appendFlag(dst, r.Listen), ' ')
	return appendFlag(dst, r.Clips)
}

// AppendMicToggle writes "SSVC_MIC_V1 toggle".
func AppendMicToggle(dst []byte) []byte { return append(append(dst, micPrefix...), "toggle"...) }

// AppendBeaten writes "SSVC_BEAT_V1 <n> <accepted>".
func AppendBeaten(dst []byte, b Beaten) []byte {
	dst = strconv.AppendInt(append(dst, beatedPrefix...), int64(b.Beat), 10)
	return strconv.AppendInt(append(dst, ' '), b.Accepted, 10)
}

// parseCount reads a whole number in its shortest form.
func parseCount(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == s
}

func parseNear(rows string) (any, error) {
	n := &Near{}
	seen := map[uuid.UUID]bool{}
	for row := range strings.Lines(rows) {
		row, ended := strings.CutSuffix(row, "\n")
		words := strings.Split(row, " ")
		if !ended || len(words) != 4 || len(n.People) == MaxNear {
			return nil, ErrMalformed
		}
		id, err := parseUUID(words[0])
		if err != nil || seen[id] {
			return nil, ErrMalformed
		}
		seen[id] = true
		p := talk.Nearby{ID: id}
		for i, v := range [...]*int32{&p.DX, &p.DY, &p.DZ} {
			d, err := strconv.ParseInt(words[i+1], 10, 32)
			if err != nil || d > maxAway || d < -maxAway || strconv.FormatInt(d, 10) != words[i+1] {
				return nil, ErrMalformed
			}
			*v = int32(d)
		}
		n.People = append(n.People, p)
	}
	return n, nil
}

func parseRights(rest string) (any, error) {
	if len(rest) != 5 || rest[1] != ' ' || rest[3] != ' ' {
		return nil, ErrMalformed
	}
	r := &Rights{}
	for i, v := range [...]*bool{&r.Speak, &r.Listen, &r.Clips} {
		switch rest[2*i] {
		case '0':
		case '1':
			*v = true
		default:
			return nil, ErrMalformed
		}
	}
	return r, nil
}

// parseMic ignores requests of later versions.
func parseMic(rest string) (any, error) {
	if rest != "toggle" {
		return nil, nil
	}
	return &MicToggle{}, nil
}

func parseBeaten(rest string) (any, error) {
	n, accepted, two := strings.Cut(rest, " ")
	beat, ok := parseCount(n)
	count, fine := parseCount(accepted)
	if !two || !ok || !fine || beat > math.MaxInt32 {
		return nil, ErrMalformed
	}
	return &Beaten{int32(beat), count}, nil
}
