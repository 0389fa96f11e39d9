package watchcommit

import (
	"strings"
	"testing"
)

// A shard's steps are held against the cursor that is there when they are to be pushed.
func TestWhatACursorCoversIsLeftOut(t *testing.T) {
	for _, c := range []struct {
		name   string
		begun  string // the cursor when the drain began
		steps  string // versions; R410 is a replay that came to 410
		cursor string // now
		left   string
		again  bool
	}{
		{"nobody was here", "100", "101 102", "100", "101 102", false},
		{"another drain passed the first", "100", "101 102 103", "101", "102 103", false},
		{"another drain passed all", "100", "101 102", "102", "", false},
		{"another drain is beyond", "100", "101 102", "900", "", false},
		{"versions are numbers", "99", "100 101", "100", "101", false},
		{"the cursor is gone", "100", "101", "", "", true},
		{"somebody replayed a cluster that was set back", "9000", "9001", "410", "", true},
		{"the first replay", "", "R410 411", "", "R410 411", false},
		{"a replay after a read-back", "100", "101 102 R410 411", "100", "101 102 R410 411", false},
		{"a replay of a cluster that was set back", "9000", "R410 411", "9000", "R410 411", false},
		{"another drain replayed the same state", "", "R410 411", "410", "411", false},
		{"another drain replayed a newer state", "", "R410 411 420", "411", "420", false},
		{"another drain replayed an older state: what lies between may be missing", "", "R410 411", "405", "", true},
		{"another drain passed some of what was read back", "100", "101 102 R410", "101", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &shard{cursor: c.begun}
			part := &portion{shard: s, from: c.cursor}
			for word := range strings.FieldsSeq(c.steps) {
				step := &change{shard: s, rv: strings.TrimPrefix(word, "R")}
				if strings.HasPrefix(word, "R") {
					step.replay = &replay{shard: s}
				}
				part.steps = append(part.steps, step)
			}
			again := !part.leaveOut()
			var left []string
			for _, step := range part.left {
				if step.replay != nil {
					left = append(left, "R"+step.rv)
				} else {
					left = append(left, step.rv)
				}
			}
			if got := strings.Join(left, " "); got != c.left || again != c.again {
				t.Errorf("begun at %q, cursor now %q: left %q again %v, want %q %v", c.begun, c.cursor, got, again, c.left, c.again)
			}
		})
	}
}
