package auditstream

import "unsafe"

const (
	textChunk = 32 << 10
	// maxFree is how many chunks are kept for the next body.
	maxFree = 16
)

// text holds the strings of events, one behind the other, in chunks that are used again after forget. The strings it
// hands out point into the chunks, which is why events are valid until then only.
type text struct {
	chunk []byte   // the one being filled
	spent [][]byte // full ones
	free  [][]byte // empty ones
	size  int
}

func (t *text) forget() {
	for i, chunk := range t.spent {
		if len(t.free) < maxFree {
			t.free = append(t.free, chunk[:0])
		}
		t.spent[i] = nil
	}
	t.spent, t.chunk, t.size = t.spent[:0], t.chunk[:0], 0
}

// add keeps a copy of b.
func (t *text) add(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	t.size += len(b)
	if len(b) > textChunk/4 {
		return string(b)
	}
	if len(t.chunk)+len(b) > cap(t.chunk) {
		t.grow()
	}
	from := len(t.chunk)
	t.chunk = append(t.chunk, b...)
	return unsafe.String(&t.chunk[from], len(b))
}

func (t *text) grow() {
	if t.chunk != nil {
		t.spent = append(t.spent, t.chunk)
	}
	if last := len(t.free) - 1; last >= 0 {
		t.chunk, t.free = t.free[last], t.free[:last]
		return
	}
	t.chunk = make([]byte, 0, textChunk)
}
