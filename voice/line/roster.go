package line

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// rosterPrefix begins the roster of roster 2, which is this product's own.
const rosterPrefix = "SSVC_ROSTER_V2 "

// Revision names one state of a reader's roster. It says nothing about how many there were before it.
type Revision uint64

// Changes turns the roster of one revision into that of another one. A client that has not the revision From has to
// ignore the changes and to wait for a whole roster.
type Changes struct {
	Whole    bool // nobody else is in the roster
	From, To Revision
	Put      []State     // who is new, or is otherwise than before
	Gone     []uuid.UUID // who is not there any more; nobody with Whole
}

// State is a person of the roster, and how they are.
type State struct {
	Person
	Deafened bool
	Tier     talk.Tier
}

// AppendChangesHead writes "SSVC_ROSTER_V2 <from|-> <to>" and a line feed: revisions of 16 hex digits, and a dash where
// the roster is whole.
func AppendChangesHead(dst []byte, whole bool, from, to Revision) []byte {
	dst = append(dst, rosterPrefix...)
	if whole {
		dst = append(dst, absent...)
	} else {
		dst = appendRevision(dst, from)
	}
	return append(appendRevision(append(dst, ' '), to), '\n')
}

// AppendState writes "P <uuid> <deafened 0|1> <tier> <name>" and a line feed.
func AppendState(dst []byte, s *State) []byte {
	dst = appendFlag(append(appendUUID(append(dst, "P "...), s.ID), ' '), s.Deafened)
	dst = append(append(dst, ' '), s.Tier.String()...)
	return append(append(append(dst, ' '), s.Name...), '\n')
}

// AppendGone writes "D <uuid>" and a line feed.
func AppendGone(dst []byte, id uuid.UUID) []byte {
	return append(appendUUID(append(dst, "D "...), id), '\n')
}

// AppendChanges writes a message of roster 2.
func AppendChanges(dst []byte, c *Changes) []byte {
	dst = AppendChangesHead(dst, c.Whole, c.From, c.To)
	for i := range c.Put {
		dst = AppendState(dst, &c.Put[i])
	}
	for _, id := range c.Gone {
		dst = AppendGone(dst, id)
	}
	return dst
}

func appendRevision(dst []byte, r Revision) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(r))
	return hex.AppendEncode(dst, b[:])
}

func parseRevision(s string) (Revision, bool) {
	var b [8]byte
	if len(s) != 2*len(b) || strings.ToLower(s) != s {
		return 0, false
	}
	_, err := hex.Decode(b[:], []byte(s))
	return Revision(binary.BigEndian.Uint64(b[:])), err == nil
}

func parseChanges(s string) (any, error) {
	head, rows, ended := strings.Cut(s, "\n")
	from, to, _ := strings.Cut(head, " ")
	c := &Changes{Whole: from == absent}
	var fromOK, toOK bool
	if c.From, fromOK = parseRevision(from); c.Whole {
		c.From, fromOK = 0, true
	}
	if c.To, toOK = parseRevision(to); !ended || !fromOK || !toOK {
		return nil, ErrMalformed
	}
	seen := map[uuid.UUID]bool{}
	for row := range strings.Lines(rows) {
		row, ended := strings.CutSuffix(row, "\n")
		if !ended || len(row) < 2+36 || row[1] != ' ' {
			return nil, ErrMalformed
		}
		id, err := parseUUID(row[2 : 2+36])
		if err != nil || seen[id] {
			return nil, ErrMalformed
		}
		seen[id] = true
		switch rest := row[2+36:]; row[0] {
		case 'P':
			words := strings.Split(rest, " ")
			if len(words) != 4 || words[0] != "" {
				return nil, ErrMalformed
			}
			p := State{Person: Person{ID: id, Name: words[3]}}
			var flagOK, tierOK bool
			p.Deafened, flagOK = flag(words[1])
			p.Tier, tierOK = talk.ParseTier(words[2])
			if !flagOK || !tierOK || !plain(p.Name) {
				return nil, ErrMalformed
			}
			c.Put = append(c.Put, p)
		case 'D':
			if rest != "" || c.Whole {
				return nil, ErrMalformed
			}
			c.Gone = append(c.Gone, id)
		default:
			return nil, ErrMalformed
		}
	}
	return c, nil
}
