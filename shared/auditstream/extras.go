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
	switch d.open('{') {
	case broken:
		return false
	case another:
		d.bad = true
		return true
	case null:
		x.forget()
		return true
	}
	for began := false; ; began = true {
		name, more, ok := d.member(began)
		if !ok || !more {
			return ok
		}
		if !x.wants(name) {
			if !d.skip() {
				return false
			}
			continue
		}
		key, value := d.text.add(name), ""
		if !d.readFirst(&value) {
			return false
		}
		x.set(key, value)
	}
}

// readFirst reads the first string of a list.
func (d *Decoder) readFirst(value *string) bool {
	switch d.open('[') {
	case broken:
		return false
	case another:
		d.bad = true
		return true
	case null:
		return true
	}
	for began := false; ; began = true {
		more, ok := d.element(began)
		if !ok || !more {
			return ok
		}
		if began {
			ok = d.skip()
		} else {
			ok = d.readString(value, &d.bad)
		}
		if !ok {
			return false
		}
	}
}
