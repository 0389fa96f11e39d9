package auditstream

import (
	"strings"
	"unicode/utf8"
)

// names finds a member's name among those that are read. As in encoding/json, a name that fits but for its letters' case
// is taken when none fits exactly.
type names struct {
	byLength [len("requestReceivedTimestamp") + 1][]name
	all      []name
}

type name struct {
	text  string
	field int
}

// unknown is the field of a name that is not read.
const unknown = -1

// fields numbers the names in their order.
func fields(list ...string) *names {
	n := &names{}
	for i, text := range list {
		n.all = append(n.all, name{text, i})
		n.byLength[len(text)] = append(n.byLength[len(text)], name{text, i})
	}
	return n
}

func (n *names) field(key []byte) int {
	if len(key) < len(n.byLength) {
		same := n.byLength[len(key)]
		for i := range same {
			if string(key) == same[i].text {
				return same[i].field
			}
		}
		for i := range same {
			if key[0]|0x20 == same[i].text[0]|0x20 && strings.EqualFold(string(key), same[i].text) {
				return same[i].field
			}
		}
	}
	for _, c := range key {
		if c >= utf8.RuneSelf { // two letters beyond ASCII fold to k and s, so the length can differ
			return n.folded(key)
		}
	}
	return unknown
}

func (n *names) folded(key []byte) int {
	for i := range n.all {
		if strings.EqualFold(string(key), n.all[i].text) {
			return n.all[i].field
		}
	}
	return unknown
}
