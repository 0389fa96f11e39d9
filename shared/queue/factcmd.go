package queue

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// maxPutsOfCmd bounds how long one call of the script keeps the server to itself: about 3 ms. Every answer wakes the
// process, so fewer are better.
const maxPutsOfCmd = 512

// filingCmd is a command whose arguments are set anew for each use. They are pointers, so that setting them
// allocates nothing.
type filingCmd struct {
	cmd  *redis.Cmd
	args []any
	text []string // what args point to
}

var keptRequests = strconv.Itoa(maxRequests)

// fill sets as many commands as the puts need, and returns how many.
func (w *factWriter) fill(text string) (count int) {
	size := maxPutsOfCmd
	_, cluster := w.index.client.(*redis.ClusterClient)
	if cluster {
		size = 1 // the keys of one command must share a slot
	}
	ttl := strconv.FormatInt(w.index.ttl.Milliseconds(), 10)
	for from := 0; from < len(w.puts); from += size {
		if count == len(w.cmds) {
			w.cmds = append(w.cmds, &filingCmd{})
		}
		w.cmds[count].set(w.puts[from:min(from+size, len(w.puts))], text, ttl)
		if cluster {
			w.cmds[count].showKey()
		}
		count++
	}
	return count
}

// set makes the command evalsha SHA N KEY… TTL KEPT, and five more for each key.
func (c *filingCmd) set(puts []factPut, text, ttl string) {
	part := func(s span) string { return text[s.from:s.to] }
	c.text = append(c.text[:0], fileFacts.sha, strconv.Itoa(len(puts)))
	for i := range puts {
		c.text = append(c.text, part(puts[i].key))
	}
	c.text = append(c.text, ttl, keptRequests)
	for i := range puts {
		p := &puts[i]
		if i > 0 && p.value == puts[i-1].value {
			c.text = append(c.text, p.what, "", "", "", "")
			continue
		}
		c.text = append(c.text, p.what, part(p.value), part(p.more[0]), part(p.more[1]), part(p.more[2]))
	}
	c.args = append(c.args[:0], "evalsha")
	for i := range c.text {
		c.args = append(c.args, &c.text[i])
	}
	c.cmd = redis.NewCmd(context.Background(), c.args...)
}

// showKey gives the client the command's key in a form that it looks for a node with.
func (c *filingCmd) showKey() {
	const firstKey = 3
	c.args[firstKey] = c.text[firstKey-1]
}

// claimsLost counts the versions that the last call left with an earlier claim.
func (c *filingCmd) claimsLost() (count int) {
	const before = 2 + 2 // the script and how many keys; behind the keys TTL and KEPT
	const perKey = 5
	results, err := c.cmd.Text()
	if err != nil {
		return 0
	}
	for i := range len(results) {
		if what := c.text[before+len(results)+perKey*i]; results[i] == '0' && (what == putVersion || what == putGoingVersion) {
			count++
		}
	}
	return count
}
