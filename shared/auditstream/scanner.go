package auditstream

import (
	"encoding/binary"
	"io"
	"math/bits"
)

const (
	// window is how much of the body is held at a time; it grows only for a string that is longer and is read.
	window = 64 << 10
	// maxToken bounds that growth.
	maxToken = 4 << 20
	// maxEmptyReads is how often a source may return nothing at all.
	maxEmptyReads = 100
)

// scanner reads JSON tokens from a stream through a window. It never goes back. A value that nobody wants is skipped by
// its brackets and quotes alone, so that it costs a look at each byte and no memory.
type scanner struct {
	src      io.Reader
	buf      []byte
	pos, end int
	passed   int64 // bytes of the body before buf[0]
	maxBody  int64
	keep     int   // first byte that must stay in the window, or -1
	depth    int   // brackets that are open in the event being read
	err      error // why no more comes; io.EOF at the proper end
	long     bool  // a token did not fit
	scratch  []byte
}

func (s *scanner) reset(src io.Reader, maxBody int64) {
	if s.buf == nil {
		s.buf = make([]byte, window)
	}
	*s = scanner{src: src, buf: s.buf, maxBody: maxBody, keep: -1, scratch: s.scratch[:0]}
}

// at is the offset in the body of the next byte.
func (s *scanner) at() int64 { return s.passed + int64(s.pos) }

// fill brings at least one more byte into the window and reports whether it could. Indexes into the window change.
func (s *scanner) fill() bool {
	if s.err != nil {
		return false
	}
	from := s.pos
	if s.keep >= 0 {
		from = s.keep
	}
	if from > 0 {
		copy(s.buf, s.buf[from:s.end])
		s.passed += int64(from)
		s.pos, s.end = s.pos-from, s.end-from
		if s.keep >= 0 {
			s.keep = 0
		}
	}
	if s.end == len(s.buf) {
		if len(s.buf) >= maxToken {
			// Not the end of the stream: the caller skips the token, which needs no room.
			s.long = true
			return false
		}
		grown := make([]byte, 2*len(s.buf))
		copy(grown, s.buf[:s.end])
		s.buf = grown
	}
	for range maxEmptyReads {
		n, err := s.src.Read(s.buf[s.end:])
		s.end += n
		s.err = err
		if s.maxBody > 0 && s.passed+int64(s.end) > s.maxBody {
			s.err = ErrBodyTooLarge
			return false
		}
		if n > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
	s.err = io.ErrNoProgress
	return false
}

// token passes white space and returns the byte that begins the next token, without passing it; 0 when there is none.
func (s *scanner) token() byte {
	for {
		for s.pos < s.end {
			switch c := s.buf[s.pos]; c {
			case ' ', '\n', '\r', '\t':
				s.pos++
			default:
				return c
			}
		}
		if !s.fill() {
			return 0
		}
	}
}

// take passes the byte c if it begins the next token.
func (s *scanner) take(c byte) bool {
	if s.token() != c {
		return false
	}
	s.pos++
	return true
}

// literal passes the word, which the next token must be.
func (s *scanner) literal(word string) bool {
	for i := range len(word) {
		if s.pos == s.end && !s.fill() {
			return false
		}
		if s.buf[s.pos] != word[i] {
			return false
		}
		s.pos++
	}
	return true
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// zeroBytes marks the zero bytes of w; the lowest mark is right, the higher ones need not be.
func zeroBytes(w uint64) uint64 { return (w - ones) &^ w & highs }

// plain returns how many bytes of b, from the start, are those of a string that need no second look: ASCII, no quote, no
// backslash, no control character.
func plain(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		special := zeroBytes(w^(ones*'"')) | zeroBytes(w^(ones*'\\')) | (w-ones*' ')&^w&highs | w&highs
		if special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' || c >= 0x80 {
			return i
		}
	}
	return i
}

// unquoted returns how many bytes of b, from the start, are neither quote nor backslash.
func unquoted(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		if special := zeroBytes(w^(ones*'"')) | zeroBytes(w^(ones*'\\')); special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for ; i < len(b); i++ {
		if b[i] == '"' || b[i] == '\\' {
			return i
		}
	}
	return i
}

// skipString passes the rest of a string whose opening quote is passed.
func (s *scanner) skipString() bool {
	for {
		s.pos += unquoted(s.buf[s.pos:s.end])
		if s.pos == s.end {
			if !s.fill() {
				return false
			}
			continue
		}
		if s.buf[s.pos] == '"' {
			s.pos++
			return true
		}
		s.pos++ // the backslash, and what it escapes
		if s.pos == s.end && !s.fill() {
			return false
		}
		s.pos++
	}
}

// The bytes that matter outside strings.
const (
	opens = iota + 1
	closes
	quotes
)

var structure = [256]uint8{'{': opens, '[': opens, '}': closes, ']': closes, '"': quotes}

// leave passes everything up to and including the bracket that closes the depth innermost open ones.
func (s *scanner) leave(depth int) bool {
	for {
		buf := s.buf[:s.end]
		for p := s.pos; p < len(buf); p++ {
			switch structure[buf[p]] {
			case opens:
				depth++
			case closes:
				if depth--; depth == 0 {
					s.pos = p + 1
					return true
				}
			case quotes:
				p++
				n := unquoted(buf[p:])
				if p+n < len(buf) && buf[p+n] == '"' {
					p += n
					continue
				}
				s.pos = p
				if !s.skipString() {
					return false
				}
				buf = s.buf[:s.end]
				p = s.pos - 1
			}
		}
		s.pos = s.end
		if !s.fill() {
			return false
		}
	}
}

// skip passes the next value.
func (s *scanner) skip() bool {
	switch c := s.token(); c {
	case '"':
		s.pos++
		return s.skipString()
	case '{', '[':
		s.pos++
		return s.leave(1)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		_, ok := s.number()
		return ok
	}
}

// number reads the next value, a number, as its text, which is valid until the window moves. It must not be followed
// by what could continue it.
func (s *scanner) number() ([]byte, bool) {
	if c := s.token(); c != '-' && (c < '0' || c > '9') {
		return nil, false
	}
	s.keep = s.pos
	defer func() { s.keep = -1 }()
	for {
		for s.pos < s.end {
			switch c := s.buf[s.pos]; {
			case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
				s.pos++
				continue
			}
			return s.buf[s.keep:s.pos], true
		}
		if !s.fill() {
			return s.buf[s.keep:s.pos], s.err == io.EOF && !s.long //nolint:errorlint // sources return io.EOF itself
		}
	}
}
