package history

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// maxListed bounds the trailers of a reconcile commit, which may hold a whole cluster.
const maxListed = 500

// The keys of our trailers. No other line of a message begins with one of them.
const (
	keyActor   = "Actor"
	keyChange  = "Change"
	keyRequest = "Commit-Request"
	keyOmitted = "Changes-Not-Listed"
)

var field = regexp.MustCompile(`\{[^{}]*\}`)

// message is a first line, the requester's words if there are any, and the trailers.
func message(changes []Change, policy Policy) string {
	var b strings.Builder
	first := changes[0]
	if first.Request != nil && strings.TrimSpace(first.Request.Message) != "" {
		b.WriteString(words(first.Request.Message))
	} else {
		b.WriteString(subject(changes, policy))
	}
	b.WriteString("\n\n")
	if first.Actor != nil && !first.Replayed {
		b.WriteString(keyActor + ": " + quote(first.Actor.Username))
		if by := first.Actor.ImpersonatedBy; by != "" {
			b.WriteString(impersonated + quote(by))
		}
		b.WriteByte('\n')
	}
	if first.Request != nil {
		b.WriteString(keyRequest + ": " + object(first.Request.Namespace, first.Request.Name) + "\n")
	}
	for i, ch := range changes {
		if ch.Replayed && i == maxListed {
			fmt.Fprintf(&b, "%s: %d\n", keyOmitted, len(changes)-i)
			break
		}
		b.WriteString(keyChange + ": " + record(ch).String() + "\n")
	}
	return b.String()
}

func subject(changes []Change, policy Policy) string {
	first := changes[0]
	summary := string(first.Verb) + " " + resource(first.Group, first.Resource) + " " + object(first.Namespace, first.Name)
	if n := len(changes) - 1; n > 0 {
		summary += fmt.Sprintf(" and %d more", n)
	}
	if first.Replayed {
		summary = "reconcile with the cluster: " + summary
	}
	template := policy.Message
	if template == "" {
		template = "{summary}"
	}
	author := UnresolvedName
	switch {
	case first.Replayed || first.ByCommitter:
		author = plainName(policy.CommitterName)
	case first.Actor != nil:
		author, _ = identity(*first.Actor)
	}
	line := field.ReplaceAllStringFunc(template, func(f string) string {
		switch f {
		case "{summary}":
			return summary
		case "{verb}":
			return string(first.Verb)
		case "{resource}":
			return resource(first.Group, first.Resource)
		case "{namespace}":
			return token(first.Namespace)
		case "{name}":
			return token(first.Name)
		case "{count}":
			return strconv.Itoa(len(changes))
		case "{author}":
			return author
		default:
			return f
		}
	})
	return words(line)
}

// words is a text for the message's body as people may write it, with nothing in it that is, or passes for, a
// trailer of ours: such a line is indented. It ends without an empty line, so our trailers stay the last paragraph.
func words(text string) string {
	var out []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		line = strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), " \r\n")
		if len(out) == 0 && strings.TrimSpace(line) == "" {
			continue
		}
		if line != "" {
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			line = indent + clean(line, 1000)
		}
		for _, key := range []string{keyActor, keyChange, keyRequest, keyOmitted} {
			if len(line) > len(key) && strings.EqualFold(line[:len(key)], key) && strings.HasPrefix(strings.TrimLeft(line[len(key):], " "), ":") {
				line = " " + line
			}
		}
		out = append(out, line)
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	if len(out) == 0 {
		return "change"
	}
	return strings.Join(out, "\n")
}
