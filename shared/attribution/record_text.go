package attribution

import (
	"strings"
	"unicode/utf8"
)

// parsePlain reads a Record's JSON as AppendRecord writes nearly all of them: one flat object of strings without escapes
// and of true. The strings are parts of value. It leaves everything else, whatever it is, to encoding/json, whose answer
// it never contradicts.
func parsePlain(value string, r *Record) bool {
	if len(value) < 2 || value[0] != '{' || strings.IndexByte(value, '\\') >= 0 || !plainText(value) {
		return false
	}
	rest := value[1:]
	for {
		name, after, ok := quoted(rest)
		if !ok || after == "" || after[0] != ':' {
			return false
		}
		text, isTrue := "", false
		if after = after[1:]; strings.HasPrefix(after, "true") {
			isTrue, rest = true, after[len("true"):]
		} else if text, rest, ok = quoted(after); !ok {
			return false
		}
		if isTrue && !r.setTrue(name) || !isTrue && !r.setText(name, text) {
			return false
		}
		switch {
		case rest == "}":
			return true
		case rest == "" || rest[0] != ',':
			return false
		}
		rest = rest[1:]
	}
}

// plainText reports whether encoding/json would take the bytes as they are.
func plainText(s string) bool {
	ascii := true
	for i := range len(s) {
		if s[i] < ' ' {
			return false
		}
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	return ascii || utf8.ValidString(s)
}

// quoted splits a string off the text that begins with it.
func quoted(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", "", false
	}
	end := strings.IndexByte(s[1:], '"')
	if end < 0 {
		return "", "", false
	}
	return s[1 : 1+end], s[end+2:], true
}

func (r *Record) setText(name, text string) bool {
	switch name {
	case "groupResource":
		r.GroupResource = text
	case "namespace":
		r.Namespace = text
	case "name":
		r.Name = text
	case "uid":
		r.UID = text
	case "author":
		r.Author = text
	case "displayName":
		r.DisplayName = text
	case "email":
		r.Email = text
	case "verb":
		r.Verb = text
	case "subresource":
		r.Subresource = text
	case "auditID":
		r.AuditID = text
	case "resourceVersion":
		r.ResourceVersion = text
	case "stageTimestamp":
		r.StageTimestamp = text
	case "impersonatedBy":
		r.ImpersonatedBy = text
	case "received":
		r.Received = text
	case "deletion":
		r.Deletion = Deletion(text)
	case "manager":
		r.Manager = text
	case "skew":
		r.Skew = text
	default:
		return false
	}
	return true
}

func (r *Record) setTrue(name string) bool {
	switch name {
	case "isServiceAccount":
		r.IsServiceAccount = true
	case "deleting":
		r.Deleting = true
	case "unverified":
		r.Unverified = true
	case "proven":
		r.Proven = true
	default:
		return false
	}
	return true
}
