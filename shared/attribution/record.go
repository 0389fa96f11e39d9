package attribution

import (
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"
)

// Record is a stored Proof: the Fact's JSON and, after it, what the rules of order need.
type Record struct {
	Fact
	Received   string   `json:"received,omitempty"` // RFC 3339; absent when equal to stageTimestamp
	Deletion   Deletion `json:"deletion,omitempty"`
	Deleting   bool     `json:"deleting,omitempty"`
	Unverified bool     `json:"unverified,omitempty"`
	Manager    string   `json:"manager,omitempty"`
	Proven     bool     `json:"proven,omitempty"`
	Skew       string   `json:"skew,omitempty"` // what the clocks of its sender may differ by, where that is known
	// Claims are the requests of up to two people that could have done it instead of Author: for a
	// final deletion the two that ended last, else the two that were received first. Absent when only
	// Author claims, with this one request.
	Claims []Claim `json:"claims,omitempty"`
	// Write is the best Record of a write, where Record itself is a delete that repeats its version.
	Write *Record `json:"write,omitempty"`
}

// Claim is one person's request for what a Record is about.
type Claim struct {
	Author   string `json:"author"`
	Received string `json:"received,omitempty"`
	Staged   string `json:"staged,omitempty"`
}

// ParseRecord reads a stored value. A value without an author, or that is no record, is a miss.
func ParseRecord(value string) (Record, bool) {
	var r Record
	if !parsePlain(value, &r) {
		r = Record{}
		if json.Unmarshal([]byte(value), &r) != nil {
			return Record{}, false
		}
	}
	if r.Author == "" {
		return Record{}, false
	}
	r.Tier = ""
	return r, true
}

// Contested tells whether somebody else's request overlaps the author's, so that nobody can say whose
// it was from that alone. skew is what the API servers' clocks may differ by. Two requests received at the very same
// microsecond have the receipt of something before the API server, not their own: the other's counts as unknown.
func (r *Record) Contested(skew time.Duration) bool {
	if len(r.Claims) == 0 {
		return false
	}
	if own, err := time.ParseDuration(r.Skew); err == nil {
		skew = max(skew, own)
	}
	staged, ok := parseInstant(r.StageTimestamp)
	if !ok {
		return false
	}
	received, ok := parseInstant(r.Received)
	if !ok {
		received = staged
	}
	for _, c := range r.Claims {
		if c.Author == r.Author {
			continue
		}
		from, ok := parseInstant(c.Received)
		borrowed := from.Equal(received) && received.Before(staged)
		if ok && !borrowed && from.Before(staged.Add(skew)) {
			return true
		}
		if to, ok := parseInstant(c.Staged); ok && r.Unverified && to.After(received.Add(-skew)) {
			return true
		}
	}
	return false
}

// writtenMeanwhile tells whether the write of the version that a delete shows overlaps the delete, so that nobody can say
// which of the two made the version. Requests received at the very same microsecond do not; see Contested.
func (r *Record) writtenMeanwhile(skew time.Duration) bool {
	w := r.Write
	return w != nil && w.Author != r.Author && !w.received().Equal(r.received()) && overlap(r, w, skew)
}

// shared tells whether somebody else asked for the same.
func (r *Record) shared() bool {
	return slices.ContainsFunc(r.Claims, func(c Claim) bool { return c.Author != r.Author })
}

func parseInstant(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

// AppendRecord appends the proof as stored: what json.Marshal makes of its Record.
func AppendRecord(dst []byte, p *Proof) []byte {
	f := &p.Fact
	start := len(dst)
	dst = append(dst, '{')
	dst = appendField(dst, start, "groupResource", f.GroupResource)
	dst = appendField(dst, start, "namespace", f.Namespace)
	dst = appendField(dst, start, "name", f.Name)
	dst = appendField(dst, start, "uid", f.UID)
	dst = appendKey(dst, start, "author")
	dst = appendString(dst, f.Author)
	dst = appendField(dst, start, "displayName", f.DisplayName)
	dst = appendField(dst, start, "email", f.Email)
	dst = appendField(dst, start, "verb", f.Verb)
	dst = appendField(dst, start, "subresource", f.Subresource)
	dst = appendField(dst, start, "auditID", f.AuditID)
	dst = appendField(dst, start, "resourceVersion", f.ResourceVersion)
	dst = appendField(dst, start, "stageTimestamp", f.StageTimestamp)
	dst = appendTrue(dst, start, "isServiceAccount", f.IsServiceAccount)
	dst = appendField(dst, start, "impersonatedBy", f.ImpersonatedBy)
	if !p.Received.Equal(p.Staged) {
		dst = appendKey(dst, start, "received")
		dst = append(dst, '"')
		dst = p.Received.UTC().AppendFormat(dst, time.RFC3339Nano)
		dst = append(dst, '"')
	}
	dst = appendField(dst, start, "deletion", string(p.Deletion))
	dst = appendTrue(dst, start, "deleting", p.Deleting)
	dst = appendTrue(dst, start, "unverified", p.Unverified)
	dst = appendField(dst, start, "manager", p.Manager)
	dst = appendTrue(dst, start, "proven", p.Proven)
	if p.Skew > 0 {
		dst = appendField(dst, start, "skew", p.Skew.String())
	}
	return append(dst, '}')
}

func appendKey(dst []byte, start int, key string) []byte {
	if len(dst) > start+1 {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, key...)
	return append(dst, '"', ':')
}

func appendField(dst []byte, start int, key, value string) []byte {
	if value == "" {
		return dst
	}
	return appendString(appendKey(dst, start, key), value)
}

func appendTrue(dst []byte, start int, key string, value bool) []byte {
	if !value {
		return dst
	}
	return append(appendKey(dst, start, key), "true"...)
}

const hexDigits = "0123456789abcdef"

// appendString appends s as encoding/json does, byte for byte.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' {
				i++
				continue
			}
			dst = append(dst, s[plain:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
			}
			i++
			plain = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, s[plain:i]...), `\ufffd`...)
			plain = i + size
		case r == '\u2028' || r == '\u2029':
			dst = append(append(dst, s[plain:i]...), '\\', 'u', '2', '0', '2', hexDigits[r&0xf])
			plain = i + size
		}
		i += size
	}
	return append(append(dst, s[plain:]...), '"')
}
