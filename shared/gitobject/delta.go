package gitobject

import (
	"bufio"
	"bytes"
	"fmt"
	"hash"
	"io"
)

// applyDelta builds an object from its base and the delta's instructions: copy a range of the base, or insert new bytes.
func applyDelta(base, delta []byte, limit int64) ([]byte, error) {
	baseSize, delta, ok := deltaSize(delta)
	if !ok || baseSize != int64(len(base)) {
		return nil, fmt.Errorf("a delta does not fit its base")
	}
	size, delta, ok := deltaSize(delta)
	if !ok || size > limit {
		return nil, fmt.Errorf("a delta's result is larger than the limit")
	}
	out := make([]byte, 0, min(size, 1<<20)) // the size is only what the server says
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		switch {
		case op == 0:
			return nil, fmt.Errorf("a delta holds a reserved instruction")
		case op&0x80 == 0:
			if len(delta) < int(op) {
				return nil, fmt.Errorf("a delta is cut off")
			}
			out = append(out, delta[:op]...)
			delta = delta[op:]
		default:
			var offset, length int
			for bit := range 7 {
				if op&(1<<bit) == 0 {
					continue
				}
				if len(delta) == 0 {
					return nil, fmt.Errorf("a delta is cut off")
				}
				if bit < 4 {
					offset |= int(delta[0]) << (8 * bit)
				} else {
					length |= int(delta[0]) << (8 * (bit - 4))
				}
				delta = delta[1:]
			}
			if length == 0 {
				length = 0x10000
			}
			if offset+length > len(base) {
				return nil, fmt.Errorf("a delta copies from beyond its base")
			}
			out = append(out, base[offset:offset+length]...)
		}
		if int64(len(out)) > size {
			return nil, fmt.Errorf("a delta's result is longer than it says")
		}
	}
	if int64(len(out)) != size {
		return nil, fmt.Errorf("a delta's result is shorter than it says")
	}
	return out, nil
}

func deltaSize(delta []byte) (int64, []byte, bool) {
	var size int64
	for i, c := range delta {
		if i > 7 {
			break
		}
		size |= int64(c&0x7f) << (7 * i)
		if c&0x80 == 0 {
			return size, delta[i+1:], true
		}
	}
	return 0, nil, false
}

// hashingReader hashes exactly the bytes that were consumed, so that the pack's trailer can be checked. It is an
// io.ByteReader: zlib then reads no byte beyond its stream.
type hashingReader struct {
	in     *bufio.Reader
	hash   hash.Hash
	offset int64
	single []byte // bytes read one at a time and not hashed yet: hashing each alone would be slow
}

func newHashingReader(f Format, r io.Reader) *hashingReader {
	return &hashingReader{in: bufio.NewReaderSize(r, 32<<10), hash: f.Hash(), single: make([]byte, 0, 4<<10)}
}

func (h *hashingReader) Read(p []byte) (int, error) {
	n, err := h.in.Read(p)
	h.flush()
	h.hash.Write(p[:n])
	h.offset += int64(n)
	return n, err
}

func (h *hashingReader) ReadByte() (byte, error) {
	c, err := h.in.ReadByte()
	if err == nil {
		if len(h.single) == cap(h.single) {
			h.flush()
		}
		h.single = append(h.single, c)
		h.offset++
	}
	return c, err
}

func (h *hashingReader) flush() {
	h.hash.Write(h.single)
	h.single = h.single[:0]
}

func (h *hashingReader) verifyTrailer() error {
	h.flush()
	want := h.hash.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(h.in, got); err != nil {
		return fmt.Errorf("read its checksum: %w", unexpected(err))
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("its checksum is wrong")
	}
	return nil
}
