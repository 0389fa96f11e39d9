package history

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// ByReplay is the class of a change that no watch delivered, in place of the classes of evidence.
const ByReplay = "replay"

// ByAbsent is the class of a change that nobody could be named for.
const ByAbsent = "absent"

const impersonated = ", impersonated by "

// Record is what a commit says about one change.
type Record struct {
	Verb            Verb
	Group, Resource string
	Namespace, Name string
	ResourceVersion string
	By              string // the class of the evidence, ByReplay or ByAbsent
	Tier            string
	AuditID         string
	Why             string
	ByCommitter     bool // the actor is on ignoreActors
}

// Message is what a commit message of Tidemark says.
type Message struct {
	Actor          string // "" for a reconcile commit and for unresolved changes; a username over 256 bytes is cut
	ImpersonatedBy string
	Request        string // namespace/name of the CommitRequest
	Changes        []Record
	Omitted        int // changes of a reconcile commit that are not listed
}

func record(ch Change) Record {
	r := Record{
		Verb: ch.Verb, Group: ch.Group, Resource: ch.Resource, Namespace: ch.Namespace, Name: ch.Name, ResourceVersion: ch.ResourceVersion,
		By: ch.Evidence.Class, Tier: ch.Evidence.Tier, AuditID: ch.Evidence.AuditID, Why: ch.Evidence.Why, ByCommitter: ch.ByCommitter,
	}
	switch {
	case ch.Replayed:
		r.By, r.Tier, r.AuditID, r.Why = ByReplay, "", "", ""
	case ch.Actor == nil || r.By == "":
		r.By, r.Tier = ByAbsent, ""
	}
	return r
}

// String is the value of a Change trailer. ParseMessage reads it back.
func (r Record) String() string {
	var b strings.Builder
	b.WriteString(token(string(r.Verb)) + " " + resource(r.Group, r.Resource) + " " + object(r.Namespace, r.Name))
	for _, f := range []struct{ key, value string }{
		{"rv", r.ResourceVersion}, {"by", r.By}, {"tier", r.Tier}, {"audit", r.AuditID}, {"why", r.Why},
	} {
		if f.value != "" {
			b.WriteString(" " + f.key + "=" + token(f.value))
		}
	}
	if r.ByCommitter {
		b.WriteString(" as=committer")
	}
	return b.String()
}

// ParseMessage reads the trailers of a commit message: those of its last paragraph, where words of other people
// can not be. It answers false for a message without a readable Change or with a damaged one.
func ParseMessage(message string) (Message, bool) {
	message = strings.TrimRight(message, "\n")
	if at := strings.LastIndex(message, "\n\n"); at >= 0 {
		message = message[at+2:]
	}
	var m Message
	for line := range strings.Lines(message) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		ok := true
		switch key {
		case keyActor:
			m.Actor, m.ImpersonatedBy, ok = parseActor(value)
		case keyRequest:
			request, err := url.PathUnescape(value)
			m.Request, ok = request, err == nil
		case keyOmitted:
			n, err := strconv.Atoi(value)
			m.Omitted, ok = n, err == nil && n > 0
		case keyChange:
			var r Record
			r, ok = parseRecord(value)
			m.Changes = append(m.Changes, r)
		}
		if !ok {
			return Message{}, false
		}
	}
	return m, len(m.Changes) > 0
}

func parseRecord(value string) (Record, bool) {
	words := strings.Split(value, " ")
	if len(words) < 4 {
		return Record{}, false
	}
	r := Record{Verb: Verb(words[0])}
	ok := true
	read := func(s string) string {
		v, err := url.PathUnescape(s)
		ok = ok && err == nil
		return v
	}
	if group, res, grouped := strings.Cut(words[1], "/"); grouped {
		r.Group, r.Resource = read(group), read(res)
	} else {
		r.Resource = read(words[1])
	}
	if ns, name, namespaced := strings.Cut(words[2], "/"); namespaced {
		r.Namespace, r.Name = read(ns), read(name)
	} else {
		r.Name = read(words[2])
	}
	for _, w := range words[3:] {
		key, v, _ := strings.Cut(w, "=")
		switch key {
		case "rv":
			r.ResourceVersion = read(v)
		case "by":
			r.By = read(v)
		case "tier":
			r.Tier = read(v)
		case "audit":
			r.AuditID = read(v)
		case "why":
			r.Why = read(v)
		case "as":
			r.ByCommitter = v == "committer"
		}
	}
	return r, ok && r.Resource != "" && r.Name != "" && r.By != ""
}

// resource is `apps/deployments`, or `configmaps` in the core group.
func resource(group, res string) string {
	if group == "" {
		return token(res)
	}
	return token(group) + "/" + token(res)
}

// object is `shop/web`, or `shop` for an object of the cluster.
func object(namespace, name string) string {
	if namespace == "" {
		return token(name)
	}
	return token(namespace) + "/" + token(name)
}

// token is s in one word without surprises: everything but letters, digits and . _ : @ + ~ - is written %XX.
func token(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._:@+~-", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

var bareUsername = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/+~-]*$`)

// quote is a username in an Actor trailer: as it is, or between quotes with everything but ASCII escaped. One of
// more than 256 bytes is cut and ends in a digest, so that two long names stay apart.
func quote(username string) string {
	if len(username) > 256 {
		sum := sha256.Sum256([]byte(username))
		username = strings.ToValidUTF8(username[:200], "") + "~" + hex.EncodeToString(sum[:8])
	}
	if bareUsername.MatchString(username) {
		return username
	}
	return strconv.QuoteToASCII(username)
}

func parseActor(value string) (username, by string, ok bool) {
	username, rest, ok := unquote(value)
	if !ok || rest == "" {
		return username, "", ok
	}
	rest, ok = strings.CutPrefix(rest, impersonated)
	if !ok {
		return "", "", false
	}
	by, rest, ok = unquote(rest)
	return username, by, ok && rest == ""
}

// unquote reads what quote wrote from the start of s, and gives what follows it.
func unquote(s string) (username, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexByte(s, ',')
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], bareUsername.MatchString(s[:end])
	}
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", "", false
	}
	username, err = strconv.Unquote(quoted)
	return username, s[len(quoted):], err == nil
}
