package gitobject

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Signature says who did something and when. git keeps whole seconds and the zone's offset.
type Signature struct {
	Name  string
	Email string
	When  time.Time
}

// Commit is a commit's content. Signature, when not empty, is the armored signature of the commit without it.
type Commit struct {
	Tree      ID
	Parents   []ID
	Author    Signature
	Committer Signature
	Message   string
	Signature string
}

// Encode writes the commit's content. Names and addresses lose what would break a commit's header (line ends,
// angle brackets, NUL); a message loses NUL and ends in one line end.
func (c Commit) Encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n", c.Author.line(), c.Committer.line())
	if c.Signature != "" {
		name := "gpgsig"
		if c.Tree.Format() == SHA256 {
			name = "gpgsig-sha256"
		}
		fmt.Fprintf(&b, "%s %s\n", name, strings.ReplaceAll(strings.TrimRight(c.Signature, "\n"), "\n", "\n "))
	}
	message := strings.TrimRight(strings.ReplaceAll(strings.ToValidUTF8(c.Message, "\uFFFD"), "\x00", ""), "\n")
	fmt.Fprintf(&b, "\n%s\n", message)
	return b.Bytes()
}

func (s Signature) line() string {
	name := headerText(s.Name)
	if name == "" {
		name = "unknown" // git refuses an identity without a name, and accepts one without an address
	}
	return fmt.Sprintf("%s <%s> %d %s", name, headerText(s.Email), max(s.When.Unix(), 0), s.When.Format("-0700"))
}

// headerText is text as git accepts it in an identity: no angle brackets or control characters, and no
// punctuation at its ends that git itself strips.
func headerText(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '<' || r == '>' || r == 0x7f:
			return -1
		case r < 0x20:
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Trim(clean, " .,:;\"\\'")
}

// ParseCommit reads a commit's content; headers that it does not know are skipped.
func ParseCommit(data []byte) (Commit, error) {
	var c Commit
	head, message, _ := strings.Cut(string(data), "\n\n")
	c.Message = message
	var err error
	for line := range strings.SplitSeq(head, "\n") {
		name, value, _ := strings.Cut(line, " ")
		switch name {
		case "tree":
			c.Tree, err = ParseID(value)
		case "parent":
			var p ID
			p, err = ParseID(value)
			c.Parents = append(c.Parents, p)
		case "author":
			c.Author = parseSignature(value)
		case "committer":
			c.Committer = parseSignature(value)
		}
		if err != nil {
			return Commit{}, fmt.Errorf("commit: its %s: %w", name, err)
		}
	}
	if c.Tree.IsZero() {
		return Commit{}, fmt.Errorf("commit: it names no tree")
	}
	return c, nil
}

// parseSignature reads an identity line leniently: history holds odd ones, and none of it decides anything.
func parseSignature(line string) Signature {
	var s Signature
	open, end := strings.IndexByte(line, '<'), strings.LastIndexByte(line, '>')
	if open < 0 || end < open {
		return Signature{Name: line}
	}
	s.Name, s.Email = strings.TrimSpace(line[:open]), line[open+1:end]
	stamp, zone, _ := strings.Cut(strings.TrimSpace(line[end+1:]), " ")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return s
	}
	s.When = time.Unix(seconds, 0).UTC()
	if at, err := time.Parse("-0700", zone); err == nil {
		s.When = s.When.In(at.Location())
	}
	return s
}
