package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// mapping is the YAML of m: the keys named in first come first, in that order, the others in byte order.
func mapping(m map[string]any, first ...string) (*yaml.Node, error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		if !slices.Contains(first, k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, k := range append(slices.Clone(first), keys...) {
		v, there := m[k]
		if !there {
			continue
		}
		value, err := node(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		n.Content = append(n.Content, key(k), value)
	}
	return n, nil
}

func node(v any) (*yaml.Node, error) {
	switch v := v.(type) {
	case nil:
		return plain("!!null", "null"), nil
	case bool:
		return plain("!!bool", strconv.FormatBool(v)), nil
	case string:
		return text(v), nil
	case map[string]any:
		return mapping(v)
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for i, x := range v {
			item, err := node(x)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			n.Content = append(n.Content, item)
		}
		return n, nil
	default:
		return number(v)
	}
}

func number(v any) (*yaml.Node, error) {
	switch v := v.(type) {
	case int64:
		return plain("!!int", strconv.FormatInt(v, 10)), nil
	case int:
		return plain("!!int", strconv.Itoa(v)), nil
	case int32:
		return plain("!!int", strconv.FormatInt(int64(v), 10)), nil
	case uint64:
		return plain("!!int", strconv.FormatUint(v, 10)), nil
	case json.Number:
		return digits(v.String()), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is no JSON number", v)
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		return digits(string(b)), nil
	default:
		return nil, fmt.Errorf("a %T is no JSON value", v)
	}
}

// digits is a number as JSON spells it. YAML 1.1 reads 1e21 as a string, so an exponent gets its fraction.
func digits(s string) *yaml.Node {
	if !strings.ContainsAny(s, ".eE") {
		if len(strings.TrimPrefix(s, "-")) > 18 && !inRange(s) {
			return plain("!!float", s) // written digit by digit all the same: YAML readers call it a float
		}
		return plain("!!int", s)
	}
	if at := strings.IndexAny(s, "eE"); at > 0 && !strings.Contains(s, ".") {
		s = s[:at] + ".0" + s[at:]
	}
	return plain("!!float", s)
}

func inRange(s string) bool {
	_, signed := strconv.ParseInt(s, 10, 64)
	_, unsigned := strconv.ParseUint(s, 10, 64)
	return signed == nil || unsigned == nil
}

func plain(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

// unmistakable are the strings that every YAML reader, 1.1 or 1.2, takes for a string when they stand bare: no
// number, date, null or infinity begins with a letter or a slash. Whether a character in it has a meaning in YAML
// (`a: b`) is for the encoder to see.
var unmistakable = regexp.MustCompile(`^[A-Za-z/][^\x00-\x1f\x7f]*$`)

// ambiguous are the bare words that a YAML 1.1 reader takes for a boolean or for null.
var ambiguous = map[string]bool{
	"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true, "true": true, "false": true, "null": true,
}

// printable tells a text that a literal block (|) can hold byte for byte.
func printable(s string) bool {
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
		case r < 0x20, r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r >= 0xfffe && r <= 0xffff:
			return false
		}
	}
	return true
}

// text writes a string: several lines as a literal block, so that a change of one line is a change of one line;
// what no reader mistakes as it is; everything else in double quotes.
func text(s string) *yaml.Node {
	n := plain("!!str", strings.ToValidUTF8(s, "\ufffd"))
	switch {
	case len(s) <= 256 && unmistakable.MatchString(s) && !ambiguous[strings.ToLower(s)]:
	case strings.Contains(s, "\n") && strings.Trim(s, "\n") != "" && !strings.ContainsAny(s[:1], " \t\n") && printable(s):
		n.Style = yaml.LiteralStyle
	default:
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// key writes a mapping's key, which is never a block.
func key(s string) *yaml.Node {
	n := text(s)
	if n.Style == yaml.LiteralStyle {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
