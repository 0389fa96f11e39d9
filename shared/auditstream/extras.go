package auditstream

import "github.com/tidemark-dev/tidemark/shared/attribution"

// extras holds the values of the user extras that are read, in the order of their keys.
type extras struct {
	keys   *attribution.ExtraKeys
	values []string // of DisplayName's keys, then of Email's
	any    bool
}

func (x *extras) prepare(keys *attribution.ExtraKeys) {
	x.keys = keys
	if n := len(keys.DisplayName) + len(keys.Email); len(x.values) != n {
		x.values = make([]string, n)
	}
	x.any = true
	x.forget()
}

func (x *extras) forget() {
	if x.any {
		clear(x.values)
		x.any = false
	}
}

// chosen are the display name and the e-mail address: of each, the first that is not empty.
func (x *extras) chosen() (displayName, email string) {
	if !x.any {
		return "", ""
	}
	n := len(x.keys.DisplayName)
	return firstValue(x.values[:n]), firstValue(x.values[n:])
}

func firstValue(values []string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// wants reports whether key is one of those that are read.
func (x *extras) wants(key []byte) bool {
	for _, list := range [2][]string{x.keys.DisplayName, x.keys.Email} {
		for _, k := range list {
			if string(key) == k {
				return true
			}
		}
	}
	return false
}

// set stores the value of the index-th key and of every later one that is the same.
func (x *extras) set(key, value string) {
	x.any = true
	n := len(x.keys.DisplayName)
	for i := range x.values {
		if i < n && x.keys.DisplayName[i] == key || i >= n && x.keys.Email[i-n] == key {
			x.values[i] = value
		}
	}
}

// readExtras reads the extras of a user: lists of strings, of which the first counts.
func (d *Decoder) readExtras(x *extras) bool {
	what := d.object(&d.bad, func(name []byte) bool {
		if !x.wants(name) {
			return d.skip()
		}
		key, value := d.text.add(name), ""
		if !d.readFirst(&value) {
			return false
		}
		x.set(key, value)
		return true
	})
	if what == null {
		x.forget()
	}
	return what != broken
}

// readFirst reads the first string of a list.
func (d *Decoder) readFirst(value *string) bool {
	return d.array(&d.bad, func(first bool) bool {
		if first {
			return d.readString(value, &d.bad)
		}
		return d.skip()
	}) != broken
}
