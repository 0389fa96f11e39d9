package watchcommit

import (
	"context"
	"time"

	"github.com/tidemark-dev/tidemark/shared/queue"
)

// quietEvery is how often cursors that only move past nothing are stored.
const quietEvery = 5 * time.Second

// passQuietly moves cursors past what changes no file: bookmarks, status updates. It needs no push, and at the end of a
// round it keeps every cursor alive.
func (d *drain) passQuietly(ctx context.Context, last bool) error {
	if !last && d.now().Before(d.nextQuiet) {
		return nil
	}
	d.nextQuiet = d.now().Add(quietEvery)
	var moves []queue.CursorMove
	var of []*shard
	for _, s := range d.shards() {
		n, to := s.quiet()
		if s.cursor == "" || s.target.blocked || to == s.cursor && !last {
			continue
		}
		m := queue.CursorMove{Shard: s.key, From: s.cursor, To: to, Objects: map[string]queue.Object{}}
		for _, c := range s.pending[:n] {
			m.Objects[c.uid] = c.known
		}
		moves, of = append(moves, m), append(of, s)
	}
	moved, err := d.store.Pass(ctx, moves)
	if err != nil {
		return err
	}
	for i, s := range of {
		if !moved[i] {
			continue // another drain is further, or has replayed: the next push finds out
		}
		n, to := s.quiet()
		s.pass(n, to)
	}
	return nil
}

// quiet is how many steps at the beginning of the shard change nothing, and where the cursor may go past them.
func (s *shard) quiet() (n int, to string) {
	for n < len(s.pending) && s.pending[n].nothing {
		n++
	}
	switch {
	case n == len(s.pending) && s.replay == nil:
		return n, s.seen
	case n == 0:
		return 0, s.cursor
	default:
		return n, s.pending[n-1].rv
	}
}
