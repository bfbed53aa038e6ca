package state

import (
	"errors"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Errors of [Parse].
var (
	ErrSyntax    = errors.New("state: no JSON")
	ErrTwice     = errors.New("state: a key twice in one object")
	ErrDepth     = errors.New("state: too deep")
	ErrSurrogate = errors.New("state: half of a character")
)

// Parse reads one JSON value, and nothing behind it. It is stricter than most: a key may not come twice, a text may not
// have half of a surrogate pair, and at most [MaxDepth] values may lie in each other. A number without fraction and
// exponent that an int64 holds is an Int, any other a Float.
func Parse(b []byte) (Value, error) {
	p := parser{b: b}
	p.space()
	v, err := p.value(1)
	if err != nil {
		return Value{}, err
	}
	if p.space(); p.at < len(b) {
		return Value{}, ErrSyntax
	}
	return v, nil
}

type parser struct {
	b  []byte
	at int
}

func (p *parser) space() {
	for p.at < len(p.b) {
		switch p.b[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// next returns the byte that comes next; 0 at the end, which no JSON begins with.
func (p *parser) next() byte {
	if p.at < len(p.b) {
		return p.b[p.at]
	}
	return 0
}

func (p *parser) word(w string, v Value) (Value, error) {
	if len(p.b)-p.at < len(w) || string(p.b[p.at:p.at+len(w)]) != w {
		return Value{}, ErrSyntax
	}
	p.at += len(w)
	return v, nil
}

func (p *parser) value(depth int) (Value, error) {
	switch c := p.next(); c {
	case '{', '[':
		if depth > MaxDepth {
			return Value{}, ErrDepth
		}
		p.at++
		if c == '{' {
			return p.object(depth)
		}
		return p.list(depth)
	case '"':
		s, err := p.text()
		return OfStr(s), err
	case 't':
		return p.word("true", OfBool(true))
	case 'f':
		return p.word("false", OfBool(false))
	case 'n':
		return p.word("null", Value{})
	default:
		return p.number()
	}
}

func (p *parser) object(depth int) (Value, error) {
	o := Object{}
	sorted := true
	for first := true; ; first = false {
		p.space()
		if first && p.next() == '}' {
			p.at++
			return OfObj(o), nil
		}
		if p.next() != '"' {
			return Value{}, ErrSyntax
		}
		key, err := p.text()
		if err != nil {
			return Value{}, err
		}
		if p.space(); p.next() != ':' {
			return Value{}, ErrSyntax
		}
		p.at++
		p.space()
		v, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		sorted = sorted && (len(o) == 0 || o[len(o)-1].Key < key)
		o = append(o, Member{key, v})
		p.space()
		switch p.next() {
		case ',':
			p.at++
		case '}':
			p.at++
			if !sorted {
				n := len(o)
				if o = o.Sort(); len(o) < n {
					return Value{}, ErrTwice
				}
			}
			return OfObj(o), nil
		default:
			return Value{}, ErrSyntax
		}
	}
}

func (p *parser) list(depth int) (Value, error) {
	v := Value{kind: List, sub: []Member{}}
	for first := true; ; first = false {
		p.space()
		if first && p.next() == ']' {
			p.at++
			return v, nil
		}
		one, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		v.sub = append(v.sub, Member{Value: one})
		p.space()
		switch p.next() {
		case ',':
			p.at++
		case ']':
			p.at++
			return v, nil
		default:
			return Value{}, ErrSyntax
		}
	}
}

func (p *parser) digits() bool {
	from := p.at
	for p.at < len(p.b) && '0' <= p.b[p.at] && p.b[p.at] <= '9' {
		p.at++
	}
	return p.at > from
}

func (p *parser) number() (Value, error) {
	from, whole := p.at, true
	if p.next() == '-' {
		p.at++
	}
	if p.next() == '0' {
		p.at++
	} else if !p.digits() {
		return Value{}, ErrSyntax
	}
	if p.next() == '.' {
		p.at++
		if whole = false; !p.digits() {
			return Value{}, ErrSyntax
		}
	}
	if c := p.next(); c == 'e' || c == 'E' {
		p.at++
		if c := p.next(); c == '+' || c == '-' {
			p.at++
		}
		if whole = false; !p.digits() {
			return Value{}, ErrSyntax
		}
	}
	s := string(p.b[from:p.at])
	if whole && s != "-0" {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return OfInt(n), nil
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return Value{}, ErrSyntax // beyond the range of floats
	}
	return OfFloat(f), nil
}

// text reads a string whose opening quote comes next.
func (p *parser) text() (string, error) {
	p.at++
	from := p.at
	for p.at < len(p.b) { // most have nothing to undo
		c := p.b[p.at]
		if c == '"' {
			s := p.b[from:p.at]
			p.at++
			if !utf8.Valid(s) {
				return "", ErrSyntax
			}
			return string(s), nil
		}
		if c == '\\' {
			break
		}
		if c < ' ' {
			return "", ErrSyntax
		}
		p.at++
	}
	out := append([]byte(nil), p.b[from:p.at]...)
	for p.at < len(p.b) {
		c := p.b[p.at]
		switch {
		case c == '"':
			p.at++
			if !utf8.Valid(out) {
				return "", ErrSyntax
			}
			return string(out), nil
		case c < ' ':
			return "", ErrSyntax
		case c != '\\':
			out = append(out, c)
			p.at++
			continue
		}
		p.at++
		e := p.next()
		p.at++
		switch e {
		case '"', '\\', '/':
			out = append(out, e)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := p.hex()
			if !ok {
				return "", ErrSyntax
			}
			if utf16.IsSurrogate(r) {
				if p.next() != '\\' || p.at+1 >= len(p.b) || p.b[p.at+1] != 'u' {
					return "", ErrSurrogate
				}
				p.at += 2
				low, ok := p.hex()
				if !ok {
					return "", ErrSyntax
				}
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					return "", ErrSurrogate
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			return "", ErrSyntax
		}
	}
	return "", ErrSyntax
}

func (p *parser) hex() (r rune, ok bool) {
	if len(p.b)-p.at < 4 {
		return 0, false
	}
	for _, c := range p.b[p.at : p.at+4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	p.at += 4
	return r, true
}

// AppendStr writes a text as JSON.
func AppendStr(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(append(dst, s[from:i]...), `\ufffd`...)
			i++
			from = i
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			const digits = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

// appendFloat writes a number in its shortest form without an exponent; NaN and the infinities become null.
func appendFloat(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(dst, "null"...)
	}
	if v == 0 { // and never -0
		return append(dst, '0')
	}
	if w := math.Trunc(v); w == v && math.Abs(v) < 1<<53 {
		return strconv.AppendInt(dst, int64(v), 10)
	}
	// Most have four decimal places at most, and are quicker to write so; with fifteen digits in all there is no
	// shorter form.
	if n := math.Round(v * 1e4); math.Abs(n) < 1e15 && n/1e4 == v {
		if n < 0 {
			dst, n = append(dst, '-'), -n
		}
		whole, part := uint64(n)/1e4, uint64(n)%1e4
		dst = append(strconv.AppendUint(dst, whole, 10), '.')
		for div := uint64(1e3); part > 0; div /= 10 {
			dst = append(dst, byte('0'+part/div))
			part %= div
		}
		return dst
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}

// AppendJSON writes the value as JSON, with floats as they are.
func (v Value) AppendJSON(dst []byte) []byte {
	switch v.kind {
	case Bool:
		return strconv.AppendBool(dst, v.num == 1)
	case Int:
		return strconv.AppendInt(dst, int64(v.num), 10)
	case Float:
		return appendFloat(dst, math.Float64frombits(v.num))
	case Str:
		return AppendStr(dst, v.str)
	case List:
		dst = append(dst, '[')
		for i, m := range v.sub {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = m.Value.AppendJSON(dst)
		}
		return append(dst, ']')
	case Obj:
		dst = append(dst, '{')
		for i, m := range v.sub {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendStr(dst, m.Key), ':')
			dst = m.Value.AppendJSON(dst)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}
