// Package gitobject is git's object model in memory: ids, trees, commits and packs, for SHA-1 and SHA-256
// repositories alike. It is pure: no network, no files, no clock.
//
// It holds what building and reading commits over the wire takes and leaves out the rest: an index, a
// working tree, annotated tags and deltas on writing do not exist here.
package gitobject

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
)

// Format is a repository's object format: which hash names its objects.
type Format uint8

// The two formats git knows. The zero Format is SHA1, as in git.
const (
	SHA1 Format = iota
	SHA256
)

// FormatNamed is the format that a server calls name in its object-format capability.
func FormatNamed(name string) (Format, error) {
	switch name {
	case "", "sha1":
		return SHA1, nil
	case "sha256":
		return SHA256, nil
	}
	return SHA1, fmt.Errorf("object format %q is neither sha1 nor sha256", name)
}

func (f Format) String() string {
	if f == SHA256 {
		return "sha256"
	}
	return "sha1"
}

// Size is the length of an id in bytes.
func (f Format) Size() int {
	if f == SHA256 {
		return sha256.Size
	}
	return sha1.Size
}

// Hash starts a hash of the format.
func (f Format) Hash() hash.Hash {
	if f == SHA256 {
		return sha256.New()
	}
	return sha1.New()
}

// Zeros is the wire's spelling of "no object" in this format.
func (f Format) Zeros() string { return strings.Repeat("0", 2*f.Size()) }

// ID names an object. It is comparable; the zero ID means that there is no object.
type ID struct {
	sum  [sha256.Size]byte
	size uint8
}

// ParseID reads an id's 40 or 64 hexadecimal digits. All zeros give the zero ID.
func ParseID(text string) (ID, error) {
	if len(text) != 2*sha1.Size && len(text) != 2*sha256.Size {
		return ID{}, fmt.Errorf("object id of %d characters is neither sha1 nor sha256", len(text))
	}
	var id ID
	if _, err := hex.Decode(id.sum[:], []byte(text)); err != nil {
		return ID{}, fmt.Errorf("object id holds something else than hexadecimal digits")
	}
	if id.sum == ([sha256.Size]byte{}) {
		return ID{}, nil
	}
	id.size = uint8(len(text) / 2)
	return id, nil
}

// MustParseID is ParseID for ids written in source code; it panics on a bad one.
func MustParseID(text string) ID {
	id, err := ParseID(text)
	if err != nil {
		panic(err)
	}
	return id
}

func idFromBytes(raw []byte) ID {
	var id ID
	id.size = uint8(copy(id.sum[:], raw))
	if id.sum == ([sha256.Size]byte{}) {
		return ID{}
	}
	return id
}

// IsZero says that the id names no object.
func (id ID) IsZero() bool { return id.size == 0 }

// Format is the format the id belongs to; SHA1 for the zero ID.
func (id ID) Format() Format {
	if id.size == sha256.Size {
		return SHA256
	}
	return SHA1
}

// String is the id in hexadecimal, forty zeros for the zero ID.
func (id ID) String() string {
	if id.IsZero() {
		return SHA1.Zeros()
	}
	return hex.EncodeToString(id.sum[:id.size])
}

// Wire is the id as written on the wire of a repository of format f, where "no object" has as many zeros as an id has digits.
func (id ID) Wire(f Format) string {
	if id.IsZero() {
		return f.Zeros()
	}
	return id.String()
}

// Short is the id's first seven digits, for people.
func (id ID) Short() string { return id.String()[:7] }

// Type is what kind of object it is; the values are a pack's.
type Type uint8

// The types of objects.
const (
	CommitType Type = 1
	TreeType   Type = 2
	BlobType   Type = 3
	TagType    Type = 4
)

func (t Type) String() string {
	switch t {
	case CommitType:
		return "commit"
	case TreeType:
		return "tree"
	case BlobType:
		return "blob"
	case TagType:
		return "tag"
	}
	return "type " + strconv.Itoa(int(t))
}

func typeNamed(name string) (Type, bool) {
	for _, t := range []Type{CommitType, TreeType, BlobType, TagType} {
		if t.String() == name {
			return t, true
		}
	}
	return 0, false
}

// Object is one object of a repository.
type Object struct {
	ID   ID
	Type Type
	Data []byte
}

// New is the object of that type and content.
func New(f Format, t Type, data []byte) Object {
	h := f.Hash()
	h.Write(header(t, len(data)))
	h.Write(data)
	return Object{ID: idFromBytes(h.Sum(nil)), Type: t, Data: data}
}

func header(t Type, size int) []byte {
	return append(strconv.AppendInt(append([]byte(t.String()), ' '), int64(size), 10), 0)
}

// Loose is the object as git hashes it: its type, its size, and the content. A cache that keeps this form can
// be distrusted: FromLoose proves by hashing that the bytes are the object asked for.
func (o Object) Loose() []byte { return append(header(o.Type, len(o.Data)), o.Data...) }

// FromLoose reads what Loose wrote and refuses anything but the object named id.
func FromLoose(id ID, loose []byte) (Object, error) {
	h := id.Format().Hash()
	h.Write(loose)
	if id.IsZero() || idFromBytes(h.Sum(nil)) != id {
		return Object{}, fmt.Errorf("object %s: the bytes are those of another object", id.Short())
	}
	head, data, found := strings.Cut(string(loose), "\x00")
	name, size, spaced := strings.Cut(head, " ")
	kind, known := typeNamed(name)
	if !found || !spaced || !known || size != strconv.Itoa(len(data)) {
		return Object{}, fmt.Errorf("object %s: its header is malformed", id.Short())
	}
	return Object{ID: id, Type: kind, Data: loose[len(head)+1:]}, nil
}
