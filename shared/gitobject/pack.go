package gitobject

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// EncodePack writes a pack of whole objects. Packs of a push are a few kilobytes: deltas would cost more than they save.
func EncodePack(f Format, objects []Object) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("PACK")
	b.Write(binary.BigEndian.AppendUint32(nil, 2))
	b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(objects))))
	z := zlib.NewWriter(&b)
	for _, o := range objects {
		b.Write(entryHeader(o.Type, uint64(len(o.Data))))
		z.Reset(&b)
		if _, err := z.Write(o.Data); err != nil {
			return nil, fmt.Errorf("pack: compress %s %s: %w", o.Type, o.ID.Short(), err)
		}
		if err := z.Close(); err != nil {
			return nil, fmt.Errorf("pack: compress %s %s: %w", o.Type, o.ID.Short(), err)
		}
	}
	h := f.Hash()
	h.Write(b.Bytes())
	return h.Sum(b.Bytes()), nil
}

// entryHeader is type and size of a pack's entry: four bits of size beside the type, then seven a byte, low bits first.
func entryHeader(t Type, size uint64) []byte {
	c := byte(t)<<4 | byte(size&0x0f)
	size >>= 4
	var out []byte
	for size > 0 {
		out = append(out, c|0x80)
		c = byte(size & 0x7f)
		size >>= 7
	}
	return append(out, c)
}

// A pack's entries that are no objects of their own.
const (
	offsetDelta Type = 6
	refDelta    Type = 7
)

// PackLimits bound what reading a pack may cost; whatever a server sends beyond them is an error.
type PackLimits struct {
	Objects int   // entries of the pack
	Bytes   int64 // sum of the sizes of the objects kept
}

// DefaultPackLimits are enough for every tree of a repository with a million files.
var DefaultPackLimits = PackLimits{Objects: 4 << 20, Bytes: 512 << 20}

// ReadPack reads a whole pack and returns its commits and trees by id, each named by the hash of its content.
// Blobs and tags are read and forgotten: a server without filters sends them, and nothing here wants them.
func ReadPack(f Format, r io.Reader, limits PackLimits) (map[ID]Object, error) {
	p := packReader{format: f, in: newHashingReader(f, r), limits: limits,
		byOffset: map[int64]Object{}, kept: map[ID]Object{}}
	if err := p.read(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return p.kept, nil
}

type packReader struct {
	format   Format
	in       *hashingReader
	z        io.ReadCloser
	limits   PackLimits
	size     int64
	byOffset map[int64]Object
	kept     map[ID]Object
	waiting  []waitingDelta
}

// waitingDelta is a delta whose base has not been read yet.
type waitingDelta struct {
	base   ID
	offset int64
	data   []byte
}

func (p *packReader) read() error {
	var head [12]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return fmt.Errorf("read its header: %w", unexpected(err))
	}
	if string(head[:4]) != "PACK" || binary.BigEndian.Uint32(head[4:8]) != 2 {
		return fmt.Errorf("this is no pack of version 2")
	}
	count := int(binary.BigEndian.Uint32(head[8:]))
	if count > p.limits.Objects {
		return fmt.Errorf("%d objects are more than the limit of %d", count, p.limits.Objects)
	}
	for i := range count {
		if err := p.entry(); err != nil {
			return fmt.Errorf("object %d of %d: %w", i+1, count, unexpected(err))
		}
	}
	if err := p.settleWaiting(); err != nil {
		return err
	}
	return p.in.verifyTrailer()
}

func (p *packReader) entry() error {
	start := p.in.offset
	kind, size, err := p.entryHead()
	if err != nil {
		return err
	}
	switch kind {
	case CommitType, TreeType:
		data, err := p.inflate(size)
		if err != nil {
			return err
		}
		p.keep(start, kind, data)
		return nil
	case BlobType, TagType:
		return p.discard(size)
	case offsetDelta:
		back, err := p.baseOffset()
		if err != nil {
			return err
		}
		base, found := p.byOffset[start-back]
		if !found {
			return p.discard(size) // a delta of something that is not kept either
		}
		return p.delta(start, base, size)
	case refDelta:
		raw := make([]byte, p.format.Size())
		if _, err := io.ReadFull(p.in, raw); err != nil {
			return err
		}
		if base, found := p.kept[idFromBytes(raw)]; found {
			return p.delta(start, base, size)
		}
		data, err := p.inflate(size)
		if err != nil {
			return err
		}
		p.waiting = append(p.waiting, waitingDelta{base: idFromBytes(raw), offset: start, data: data})
		return nil
	}
	return fmt.Errorf("%s is unknown", kind)
}

func (p *packReader) entryHead() (Type, int64, error) {
	c, err := p.in.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	kind, size := Type(c>>4&7), int64(c&0x0f)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if shift > 53 {
			return 0, 0, fmt.Errorf("its size is absurd")
		}
		if c, err = p.in.ReadByte(); err != nil {
			return 0, 0, err
		}
		size |= int64(c&0x7f) << shift
	}
	return kind, size, nil
}

func (p *packReader) baseOffset() (int64, error) {
	c, err := p.in.ReadByte()
	if err != nil {
		return 0, err
	}
	back := int64(c & 0x7f)
	for c&0x80 != 0 {
		if c, err = p.in.ReadByte(); err != nil {
			return 0, err
		}
		if back > 1<<47 {
			return 0, fmt.Errorf("its base is absurdly far away")
		}
		back = (back+1)<<7 | int64(c&0x7f)
	}
	return back, nil
}

func (p *packReader) stream() (io.Reader, error) {
	if p.z == nil {
		z, err := zlib.NewReader(p.in)
		p.z = z
		return z, err
	}
	return p.z, p.z.(zlib.Resetter).Reset(p.in, nil)
}

func (p *packReader) inflate(size int64) ([]byte, error) {
	if p.size += size; p.size > p.limits.Bytes {
		return nil, fmt.Errorf("commits and trees are larger than the limit of %d bytes", p.limits.Bytes)
	}
	z, err := p.stream()
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	data.Grow(int(min(size, 1<<20)))
	n, err := io.Copy(&data, io.LimitReader(z, size+1))
	if err != nil {
		return nil, err
	}
	if n != size {
		return nil, fmt.Errorf("it has another size than its header says")
	}
	return data.Bytes(), nil
}

func (p *packReader) discard(size int64) error {
	z, err := p.stream()
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(z, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("it has another size than its header says")
	}
	return err
}

func (p *packReader) delta(start int64, base Object, size int64) error {
	data, err := p.inflate(size)
	if err != nil {
		return err
	}
	return p.patch(start, base, data)
}

func (p *packReader) patch(start int64, base Object, delta []byte) error {
	data, err := applyDelta(base.Data, delta, p.limits.Bytes-p.size)
	if err != nil {
		return err
	}
	p.size += int64(len(data))
	p.keep(start, base.Type, data)
	return nil
}

func (p *packReader) keep(start int64, kind Type, data []byte) {
	o := New(p.format, kind, data)
	p.byOffset[start], p.kept[o.ID] = o, o
}

// settleWaiting resolves deltas whose base came later, until none is left that can be: the rest are deltas of blobs.
func (p *packReader) settleWaiting() error {
	for progress := true; progress; {
		progress = false
		rest := p.waiting[:0]
		for _, w := range p.waiting {
			base, found := p.kept[w.base]
			if !found {
				rest = append(rest, w)
				continue
			}
			if err := p.patch(w.offset, base, w.data); err != nil {
				return err
			}
			progress = true
		}
		p.waiting = rest
	}
	return nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
