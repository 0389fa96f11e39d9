package gitauth

import "regexp"

// What credentials look like in words that a server or a library gives back.
var (
	authorizationWords = regexp.MustCompile(`(?i)\b(basic|bearer|token|password|passwd|secret)([\s:=]+)[^\s,;'"]+`)
	urlUserinfo        = regexp.MustCompile(`(\w+://)[^/\s@]*@`)
	queryValues        = regexp.MustCompile(`(\?|&)([^=&\s]+)=[^&\s'"]+`)
)

// Redact removes what looks like credentials from text: userinfo and query values of URLs, and what follows words
// such as Bearer. It is the last line of defence for words that others wrote; ours never contain them.
func Redact(text string) string {
	text = urlUserinfo.ReplaceAllString(text, "${1}***@")
	text = queryValues.ReplaceAllString(text, "${1}${2}=***")
	return authorizationWords.ReplaceAllString(text, "${1}${2}***")
}
