package attribution

import (
	"slices"
	"strconv"
	"strings"
)

// selects tells whether a label selector, as a request's URI has it, selects an object with these labels. known is false
// for what is no selector. It says what k8s.io/apimachinery/pkg/labels says, whose start every program would pay for.
func selects(selector string, labels map[string]string) (selected, known bool) {
	l := selectorLexer{rest: selector}
	if l.next(); l.token == "" {
		return true, l.rest == ""
	}
	selected = true
	for {
		matches, ok := l.requirement(labels)
		if !ok {
			return false, false
		}
		selected = selected && matches
		switch l.token {
		case "":
			return selected, true
		case ",":
			l.next()
		default:
			return false, false
		}
	}
}

// selectorLexer cuts a selector into names, values and signs.
type selectorLexer struct {
	rest  string
	token string // empty at the end
}

const selectorSigns = "(),!=<>"

func (l *selectorLexer) next() {
	l.rest = strings.TrimLeft(l.rest, " \t\r\n")
	end := strings.IndexAny(l.rest, selectorSigns+" \t\r\n")
	switch {
	case end < 0:
		end = len(l.rest)
	case end == 0 && (strings.HasPrefix(l.rest, "==") || strings.HasPrefix(l.rest, "!=")):
		end = 2
	case end == 0:
		end = 1
	}
	l.token, l.rest = l.rest[:end], l.rest[end:]
}

// word takes a name or a value.
func (l *selectorLexer) word() (string, bool) {
	if l.token == "" || strings.ContainsAny(l.token, selectorSigns) {
		return "", false
	}
	word := l.token
	l.next()
	return word, true
}

// requirement reads one of the parts that all must hold, and tells whether it does.
func (l *selectorLexer) requirement(labels map[string]string) (matches, ok bool) {
	if l.token == "!" {
		l.next()
		key, ok := l.word()
		_, has := labels[key]
		return !has, ok
	}
	key, ok := l.word()
	if !ok {
		return false, false
	}
	value, has := labels[key]
	sign := l.token
	switch sign {
	case "", ",":
		return has, true
	case "=", "==", "!=":
		l.next()
		want, _ := l.word() // nothing is the empty value
		return (has && value == want) == (sign != "!="), true
	case "in", "notin":
		l.next()
		list, ok := l.values()
		return (has && slices.Contains(list, value)) == (sign == "in"), ok
	case "<", ">":
		l.next()
		word, ok := l.word()
		limit, err := strconv.ParseInt(word, 10, 64)
		number, valueErr := strconv.ParseInt(value, 10, 64)
		return has && valueErr == nil && (sign == "<" && number < limit || sign == ">" && number > limit), ok && err == nil
	}
	return false, false
}

// values reads (a,b,…); nothing between two signs is the empty value.
func (l *selectorLexer) values() (list []string, ok bool) {
	if l.token != "(" {
		return nil, false
	}
	for {
		l.next()
		value, _ := l.word()
		list = append(list, value)
		switch l.token {
		case ",":
		case ")":
			l.next()
			return list, true
		default:
			return nil, false
		}
	}
}
