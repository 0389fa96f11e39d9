package auditstream

import (
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// member passes to the next member of an object whose opening brace is passed, and past the colon behind its name. The
// name is valid until the next token is read. began is false for the first member.
func (s *scanner) member(began bool) (name []byte, more, ok bool) {
	c := s.token()
	if c == '}' {
		s.pos++
		s.depth--
		return nil, false, true
	}
	if began {
		if c != ',' {
			return nil, false, false
		}
		s.pos++
		c = s.token()
	}
	if c != '"' {
		return nil, false, false
	}
	s.pos++
	s.keep = s.pos
	s.pos += plain(s.buf[s.pos:s.end])
	if s.pos < s.end && s.buf[s.pos] == '"' { // the usual name, in the window as a whole
		length := s.pos - s.keep
		s.pos++
		if ok = s.take(':'); ok {
			name = s.buf[s.keep : s.keep+length]
		}
		s.keep = -1
		return name, ok, ok
	}
	s.pos = s.keep
	name, ok = s.stringRest()
	if !ok {
		return nil, false, false
	}
	if len(name) > 0 && len(s.scratch) == 0 { // taking the colon may move the window under the name
		s.scratch = append(s.scratch, name...)
		name = s.scratch
	}
	ok = s.take(':')
	return name, ok, ok
}

// element passes to the next element of an array whose opening bracket is passed. began is false for the first one.
func (s *scanner) element(began bool) (more, ok bool) {
	c := s.token()
	switch {
	case c == ']':
		s.pos++
		s.depth--
		return false, true
	case !began:
		return c != 0, c != 0
	case c == ',':
		s.pos++
		return true, true
	}
	return false, false
}

// found is what kind of value was met.
type found int

const (
	broken  found = iota // no value at all
	null                 // passed
	opened               // the bracket that was asked for, passed
	another              // of another type, passed
)

// open passes the bracket if the next value begins with it, and the whole value if not.
func (s *scanner) open(bracket byte) found {
	switch c := s.token(); {
	case c == bracket:
		s.pos++
		s.depth++
		return opened
	case c == 'n' && s.literal("null"):
		return null
	case c != 'n' && s.skip():
		return another
	}
	return broken
}

// object reads the next value, which should be an object: member reads the value of each member, whose name is valid until
// then. A value of another type sets bad.
func (s *scanner) object(bad *bool, member func(name []byte) bool) found {
	what := s.open('{')
	if what == another {
		*bad = true
	}
	if what != opened {
		return what
	}
	for began := false; ; began = true {
		name, more, ok := s.member(began)
		if ok && !more {
			return opened
		}
		if !ok || !member(name) {
			return broken
		}
	}
}

// array reads the next value, which should be an array: element reads each of them and is told which is the first. A value
// of another type sets bad.
func (s *scanner) array(bad *bool, element func(first bool) bool) found {
	what := s.open('[')
	if what == another {
		*bad = true
	}
	if what != opened {
		return what
	}
	for began := false; ; began = true {
		more, ok := s.element(began)
		if ok && !more {
			return opened
		}
		if !ok || !element(!began) {
			return broken
		}
	}
}

// stringValue reads the next value, which must be a string; nothing is passed when it is none. The text is valid until
// the next token is read. Not ok with the value passed means that it is no proper string: see malformed.
func (s *scanner) stringValue() (value []byte, ok bool) {
	if s.token() != '"' {
		return nil, false
	}
	s.pos++
	return s.stringRest()
}

// stringRest reads a string whose opening quote is passed.
func (s *scanner) stringRest() (value []byte, ok bool) {
	s.scratch = s.scratch[:0]
	s.keep = s.pos
	for {
		s.pos += plain(s.buf[s.pos:s.end])
		if s.pos < s.end {
			break
		}
		if !s.fill() {
			s.keep = -1
			if s.long {
				s.skipString()
			}
			return nil, false
		}
	}
	value = s.buf[s.keep:s.pos]
	if s.buf[s.pos] == '"' {
		s.keep = -1
		s.pos++
		return value, true
	}
	// Copied from here on, because the text in the window is not the value.
	s.scratch = append(s.scratch, value...)
	s.keep = -1
	return s.unescape()
}

// unescape reads the rest of a string into scratch.
func (s *scanner) unescape() ([]byte, bool) {
	for {
		n := plain(s.buf[s.pos:s.end])
		s.scratch = append(s.scratch, s.buf[s.pos:s.pos+n]...)
		s.pos += n
		if len(s.scratch) > maxToken {
			s.long = true
			s.skipString()
			return nil, false
		}
		if s.pos == s.end {
			if !s.fill() {
				return nil, false
			}
			continue
		}
		switch c := s.buf[s.pos]; {
		case c == '"':
			s.pos++
			return s.scratch, true
		case c == '\\':
			s.pos++
			if !s.escape() {
				s.skipString()
				return nil, false
			}
		case c < ' ':
			s.skipString()
			return nil, false
		default:
			s.rune()
		}
	}
}

// rune copies one character beyond ASCII; bytes that are none become U+FFFD, as in encoding/json.
func (s *scanner) rune() {
	for !utf8.FullRune(s.buf[s.pos:s.end]) && s.fill() {
		continue
	}
	r, size := utf8.DecodeRune(s.buf[s.pos:s.end])
	s.scratch = utf8.AppendRune(s.scratch, r)
	s.pos += size
}

// escape reads what follows a backslash. After a false the string can still be passed over.
func (s *scanner) escape() bool {
	if s.pos == s.end && !s.fill() {
		return false
	}
	c := s.buf[s.pos]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return s.unicode()
	default:
		return false
	}
	s.pos++
	s.scratch = append(s.scratch, c)
	return true
}

// unicode reads uXXXX, and the second half of a surrogate pair.
func (s *scanner) unicode() bool {
	r, ok := s.hex()
	if !ok {
		return false
	}
	s.pos += len("uXXXX")
	if utf16.IsSurrogate(r) {
		pair := rune(utf8.RuneError)
		if s.need(len(`\uXXXX`)) && s.buf[s.pos] == '\\' && s.buf[s.pos+1] == 'u' {
			s.pos++
			low, ok := s.hex()
			s.pos--
			if ok {
				pair = utf16.DecodeRune(r, low)
			}
		}
		if pair != utf8.RuneError {
			s.pos += len(`\uXXXX`)
		}
		r = pair
	}
	s.scratch = utf8.AppendRune(s.scratch, r)
	return true
}

// hex reads the digits of uXXXX without passing them.
func (s *scanner) hex() (rune, bool) {
	if !s.need(len("uXXXX")) {
		return 0, false
	}
	var r rune
	for _, c := range s.buf[s.pos+1 : s.pos+5] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// need brings n bytes into the window, if there are so many.
func (s *scanner) need(n int) bool {
	for s.end-s.pos < n {
		if !s.fill() {
			return false
		}
	}
	return true
}

// integer reads a number that must be an int32.
func (s *scanner) integer() (int32, bool) {
	text, ok := s.number()
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 32)
	return int32(n), err == nil
}

const microTime = "2006-01-02T15:04:05.000000Z07:00"

// instant reads an audit timestamp, which always has microseconds.
func instant(b []byte) (time.Time, bool) {
	const form = "2006-01-02T15:04:05.000000Z"
	if len(b) == len(form) && b[26] == 'Z' && b[4] == '-' && b[7] == '-' && b[10] == 'T' && b[13] == ':' && b[16] == ':' && b[19] == '.' {
		year, ok1 := digits(b[0:4])
		month, ok2 := digits(b[5:7])
		day, ok3 := digits(b[8:10])
		hour, ok4 := digits(b[11:13])
		minute, ok5 := digits(b[14:16])
		second, ok6 := digits(b[17:19])
		micro, ok7 := digits(b[20:26])
		if ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7 &&
			month >= 1 && month <= 12 && day >= 1 && day <= shortest[month] && hour < 24 && minute < 60 && second < 60 {
			return time.Date(year, time.Month(month), day, hour, minute, second, micro*1000, time.UTC), true
		}
	}
	t, err := time.Parse(microTime, string(b))
	return t, err == nil
}

// shortest is how many days each month has at least; a leap day takes the longer way.
var shortest = [...]int{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

func digits(b []byte) (n int, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
