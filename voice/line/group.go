package line

import (
	"strings"

	"github.com/earshot-mc/earshot/voice/talk"
)

// field is one argument of a request.
type field uint8

const (
	argGroup       field = iota // <group>
	argDestination              // <group|->
	argPlayer                   // <player>
	argType                     // <type>
	argPersistent               // <0|1>
	argName                     // <b64 name>
	argPassword                 // <b64 password|->, none where it cannot be read
	argNewPassword              // <b64 password|->, garbled where it cannot be read
)

// forms has the arguments of each request.
var forms = [...][]field{
	talk.Create:   {argType, argPersistent, argName, argPassword},
	talk.Join:     {argGroup, argPassword},
	talk.Leave:    nil,
	talk.Invite:   {argGroup, argPlayer},
	talk.Accept:   {argGroup},
	talk.Decline:  {argGroup},
	talk.Move:     {argPlayer, argDestination},
	talk.Rename:   {argGroup, argName},
	talk.Password: {argGroup, argNewPassword},
	talk.Type:     {argGroup, argType},
	talk.Kick:     {argGroup, argPlayer},
	talk.Delete:   {argGroup},
}

// parseGroup reads the text behind the prefix.
func parseGroup(s string) (r talk.GroupRequest, err error) {
	words := strings.Split(s, " ")
	verb, ok := talk.ParseVerb(words[0])
	if !ok || len(words)-1 != len(forms[verb]) {
		return r, ErrUnsupported
	}
	r.Verb = verb
	for i, f := range forms[verb] {
		word := words[i+1]
		if ok = plain(word); ok {
			ok = read(&r, f, word)
		}
		if !ok {
			return talk.GroupRequest{}, ErrUnsupported
		}
	}
	return r, nil
}

// read takes one argument.
func read(r *talk.GroupRequest, f field, word string) (ok bool) {
	var err error
	switch f {
	case argDestination:
		if r.Out = word == absent; r.Out {
			return true
		}
		fallthrough
	case argGroup:
		r.Group, err = parseUUID(word)
		return err == nil
	case argPlayer:
		r.Player, err = parseUUID(word)
		return err == nil
	case argType:
		r.Type, ok = talk.ParseGroupType(word)
		return ok
	case argPersistent:
		r.Persistent, ok = flag(word)
		return ok
	case argName:
		r.Name, _ = decode(word)
	case argPassword:
		r.Password, _ = decode(word)
	case argNewPassword:
		if r.Password, ok = decode(word); !ok && word != absent {
			r.Password = talk.Garbled
		}
	}
	return true
}

// appendGroup writes the text behind the prefix.
func appendGroup(dst []byte, r *talk.GroupRequest) []byte {
	dst = append(dst, r.Verb.String()...)
	if int(r.Verb) >= len(forms) {
		return dst
	}
	for _, f := range forms[r.Verb] {
		dst = append(dst, ' ')
		switch {
		case f == argDestination && r.Out:
			dst = append(dst, absent...)
		case f == argGroup || f == argDestination:
			dst = appendUUID(dst, r.Group)
		case f == argPlayer:
			dst = appendUUID(dst, r.Player)
		case f == argType:
			dst = append(dst, r.Type.String()...)
		case f == argPersistent:
			dst = appendFlag(dst, r.Persistent)
		case f == argName:
			dst = appendText(dst, r.Name)
		default:
			dst = appendText(dst, r.Password)
		}
	}
	return dst
}

const resultPrefix = "SSVC_GROUP_RESULT_V1 "

// AppendGroupResult writes "SSVC_GROUP_RESULT_V1 <VERB> <CODE>".
func AppendGroupResult(dst []byte, r talk.GroupResult) []byte {
	dst = append(append(dst, resultPrefix...), r.Verb.String()...)
	return append(append(dst, ' '), r.Code.String()...)
}

// parseGroupResult ignores a verb or a code of a later version.
func parseGroupResult(s string) (any, error) {
	word, code, ok := strings.Cut(s, " ")
	if !ok || !plain(word) || !plain(code) {
		return nil, ErrMalformed
	}
	verb, ok := talk.ParseVerb(word)
	if !ok {
		return nil, nil
	}
	if c, ok := talk.ParseCode(code); ok {
		return &talk.GroupResult{Verb: verb, Code: c}, nil
	}
	return nil, nil
}
