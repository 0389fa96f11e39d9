package attribution

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Request is a successful request that does not show which version it wrote: at the Metadata level, cut
// short by the audit backend, or answered with something else than the object. It is filed under the
// object's name or, for a collection delete, under the collection.
type Request struct {
	Author         string
	DisplayName    string
	Email          string
	ImpersonatedBy string
	AuditID        string

	Verb        string
	Subresource string
	// Received and Staged have microseconds.
	Received, Staged time.Time
	// Manager is the field manager under which the API server recorded the write.
	Manager string
	// UID and Replaces are the object's uid and the version that the request replaced, where it named them.
	UID, Replaces string
	// Created tells that the request made the object.
	Created bool
	// Unverified marks a delete that may have been a dry run: only its body would have said so.
	Unverified bool
	// LabelSelector and FieldSelector are those of a collection delete.
	LabelSelector, FieldSelector string
}

// wireRequest keeps stored requests short.
type wireRequest struct {
	Author         string `json:"u"`
	DisplayName    string `json:"d,omitempty"`
	Email          string `json:"e,omitempty"`
	ImpersonatedBy string `json:"b,omitempty"`
	AuditID        string `json:"a,omitempty"`
	Verb           string `json:"v"`
	Subresource    string `json:"x,omitempty"`
	Received       int64  `json:"r"`
	Staged         int64  `json:"s"`
	Manager        string `json:"m,omitempty"`
	UID            string `json:"o,omitempty"`
	Replaces       string `json:"p,omitempty"`
	Created        bool   `json:"c,omitempty"`
	Unverified     bool   `json:"n,omitempty"`
	LabelSelector  string `json:"l,omitempty"`
	FieldSelector  string `json:"f,omitempty"`
}

// ParseRequest reads a stored request. Whatever is no request, or names nobody, is a miss.
func ParseRequest(value string) (Request, bool) {
	var w wireRequest
	if json.Unmarshal([]byte(value), &w) != nil || w.Author == "" {
		return Request{}, false
	}
	return Request{
		Author: w.Author, DisplayName: w.DisplayName, Email: w.Email, ImpersonatedBy: w.ImpersonatedBy, AuditID: w.AuditID,
		Verb: w.Verb, Subresource: w.Subresource, Received: time.UnixMicro(w.Received).UTC(), Staged: time.UnixMicro(w.Staged).UTC(),
		Manager: w.Manager, UID: w.UID, Replaces: w.Replaces, Created: w.Created, Unverified: w.Unverified,
		LabelSelector: w.LabelSelector, FieldSelector: w.FieldSelector,
	}, true
}

// AppendRequest appends the proof as a stored Request. Equal events give equal bytes.
func AppendRequest(dst []byte, p *Proof) []byte {
	f := &p.Fact
	start := len(dst)
	dst = append(dst, '{')
	dst = appendKey(dst, start, "u")
	dst = appendString(dst, f.Author)
	dst = appendField(dst, start, "d", f.DisplayName)
	dst = appendField(dst, start, "e", f.Email)
	dst = appendField(dst, start, "b", f.ImpersonatedBy)
	dst = appendField(dst, start, "a", f.AuditID)
	dst = appendKey(dst, start, "v")
	dst = appendString(dst, f.Verb)
	dst = appendField(dst, start, "x", f.Subresource)
	dst = strconv.AppendInt(appendKey(dst, start, "r"), p.Received.UnixMicro(), 10)
	dst = strconv.AppendInt(appendKey(dst, start, "s"), p.Staged.UnixMicro(), 10)
	dst = appendField(dst, start, "m", p.Manager)
	dst = appendField(dst, start, "o", f.UID)
	dst = appendField(dst, start, "p", p.Replaces)
	dst = appendTrue(dst, start, "c", p.Created)
	dst = appendTrue(dst, start, "n", p.Unverified)
	dst = appendField(dst, start, "l", p.LabelSelector)
	dst = appendField(dst, start, "f", p.FieldSelector)
	return append(dst, '}')
}

// fact is what a commit is told of the request, for the object that was seen.
func (r *Request) fact(gr string, s *Sighting, tier Tier) Fact {
	return Fact{
		GroupResource: gr, Namespace: s.Namespace, Name: s.Name, UID: s.UID,
		Author: r.Author, DisplayName: r.DisplayName, Email: r.Email, ImpersonatedBy: r.ImpersonatedBy,
		Verb: r.Verb, Subresource: r.Subresource, AuditID: r.AuditID,
		StageTimestamp:   r.Staged.Format(time.RFC3339Nano),
		IsServiceAccount: strings.HasPrefix(r.Author, serviceAccountPrefix),
		Tier:             tier,
	}
}

// removes tells whether the request asked for the object's deletion.
func (r *Request) removes() bool {
	return strings.EqualFold(r.Verb, verbDelete) || r.Subresource == subresourceEviction
}

const (
	subresourceEviction = "eviction"
	subresourceBinding  = "binding"
	subresourceScale    = "scale"
	subresourceStatus   = "status"
)

// withoutWrite are the subresources whose requests do not write the parent.
var withoutWrite = map[string]bool{"token": true, "exec": true, "attach": true, "portforward": true, "proxy": true, "log": true}

const maxManagerLength = 128

// manager is the field manager of a request as the API server derives it: the parameter, else the user
// agent up to its first slash, unprintable characters left out, at most 128 bytes.
func manager(e *Event) string {
	if _, query, found := strings.Cut(e.RequestURI, "?"); found {
		if m := queryValue(query, "fieldManager"); m != "" {
			return m
		}
	}
	agent, _, _ := strings.Cut(e.UserAgent, "/")
	plain := len(agent) <= maxManagerLength
	for i := 0; plain && i < len(agent); i++ {
		plain = agent[i] >= ' ' && agent[i] < 0x7f
	}
	if plain {
		return agent
	}
	var b strings.Builder
	for _, r := range agent {
		if !unicode.IsPrint(r) {
			continue
		}
		if b.Len()+utf8.RuneLen(r) > maxManagerLength {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}
