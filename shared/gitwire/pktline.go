package gitwire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// PacketKind tells a data packet from the special ones.
type PacketKind byte

// The kinds of packets.
const (
	Data        PacketKind = iota
	Flush                  // 0000: the end of a message
	Delim                  // 0001: the end of a section
	ResponseEnd            // 0002: the end of a stateless response
)

// MaxPayload is the largest payload of a packet.
const MaxPayload = 65520 - 4

// ErrTruncated is an answer that ended before it was complete. It says nothing about the repository.
var ErrTruncated = errors.New("answer cut short")

// ErrProtocol is an answer that is not git's protocol.
var ErrProtocol = errors.New("answer is not git's protocol")

// PacketReader reads pkt-lines.
type PacketReader struct {
	r       *bufio.Reader
	payload []byte
}

// NewPacketReader reads packets from r.
func NewPacketReader(r io.Reader) *PacketReader { return &PacketReader{r: bufio.NewReader(r)} }

// Next returns the next packet. The payload is valid until the following call. The error is io.EOF when the stream
// ends between packets, ErrTruncated when it ends inside one, ErrProtocol when the length is malformed, or the
// reader's own.
func (p *PacketReader) Next() (PacketKind, []byte, error) {
	head, err := p.r.Peek(4)
	if err != nil {
		if errors.Is(err, io.EOF) && len(head) > 0 {
			return 0, nil, ErrTruncated
		}
		return 0, nil, err
	}
	size, ok := packetLength(head)
	if !ok {
		return 0, nil, fmt.Errorf("%w: malformed packet length", ErrProtocol)
	}
	_, _ = p.r.Discard(4) // they were just peeked
	switch size {
	case 0:
		return Flush, nil, nil
	case 1:
		return Delim, nil, nil
	case 2:
		return ResponseEnd, nil, nil
	case 3:
		return 0, nil, fmt.Errorf("%w: malformed packet length", ErrProtocol)
	}
	size -= 4
	if cap(p.payload) < size {
		p.payload = make([]byte, size, max(size, 512))
	}
	p.payload = p.payload[:size]
	if _, err := io.ReadFull(p.r, p.payload); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil, ErrTruncated
		}
		return 0, nil, err
	}
	return Data, p.payload, nil
}

// Line is Next for text: a trailing newline is cut, an end of stream is ErrTruncated, and an ERR packet is returned
// as a *RemoteError.
func (p *PacketReader) Line() (PacketKind, []byte, error) {
	kind, payload, err := p.Next()
	if errors.Is(err, io.EOF) {
		return 0, nil, ErrTruncated
	}
	if err != nil {
		return 0, nil, err
	}
	payload = bytes.TrimSuffix(payload, []byte("\n"))
	if kind == Data && bytes.HasPrefix(payload, []byte("ERR ")) {
		return 0, nil, &RemoteError{Text: printable(payload[4:])}
	}
	return kind, payload, nil
}

func packetLength(head []byte) (int, bool) {
	n := 0
	for _, c := range head[:4] {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | int(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | int(c-'a'+10)
		case 'A' <= c && c <= 'F':
			n = n<<4 | int(c-'A'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// AppendPacket appends a data packet. The payload is at most MaxPayload long.
func AppendPacket[T ~string | ~[]byte](b []byte, payload T) []byte {
	const hex = "0123456789abcdef"
	n := len(payload) + 4
	b = append(b, hex[n>>12&15], hex[n>>8&15], hex[n>>4&15], hex[n&15])
	return append(b, payload...)
}

// AppendFlush appends a flush packet.
func AppendFlush(b []byte) []byte { return append(b, "0000"...) }

// AppendDelim appends a delimiter packet.
func AppendDelim(b []byte) []byte { return append(b, "0001"...) }
