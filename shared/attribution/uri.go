package attribution

import (
	"net/url"
	"strings"
)

// queryValue returns the first value of one parameter of a query string, unescaped. It does not
// allocate for a query that does not name the parameter.
func queryValue(query, name string) string {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(pair, "=")
		if strings.ContainsAny(key, "%+") {
			plain, err := url.QueryUnescape(key)
			if err != nil {
				continue
			}
			key = plain
		}
		if key != name || value == "" {
			continue
		}
		plain, err := url.QueryUnescape(value)
		if err != nil {
			return value
		}
		return plain
	}
	return ""
}
