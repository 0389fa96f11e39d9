package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WatchCursorTTL is how long a cursor outlives its last write. Every drain writes it, moved or not, so only
// a shard that nobody drained for this long has to replay.
const WatchCursorTTL = time.Hour

// Shard is one watch: a resource of one target, in one namespace or in all of them.
type Shard struct {
	TargetUID string
	GVR       schema.GroupVersionResource
	Namespace string // empty: the whole cluster
}

func (sh Shard) scope() string {
	if sh.Namespace == "" {
		return "cluster"
	}
	return "namespace:" + escapeKeyPart(sh.Namespace)
}

// watchCursorKey: string, the resourceVersion up to which git has acknowledged the shard's changes.
func (s *RedisStore) watchCursorKey(sh Shard) string {
	return s.prefix + ":watch:v1:target:" + escapeKeyPart(sh.TargetUID) + ":" + groupResourceKey(sh.GVR.GroupResource()) + ":" + sh.scope() + ":last-rv"
}

// LookupWatchCursor returns the cursor, or false when there is none or the store cannot say.
// WatchCursors tells these two apart.
func (s *RedisStore) LookupWatchCursor(ctx context.Context, gitTargetUID string, gvr schema.GroupVersionResource, namespace string) (string, bool) {
	rv, err := s.client.Get(ctx, s.watchCursorKey(Shard{gitTargetUID, gvr, namespace})).Result()
	return rv, err == nil && rv != ""
}

// RecordWatchCursor sets the cursor whatever it was before. An empty rv is a no-op. Drains use Pass instead, whose moves
// cannot undo each other.
func (s *RedisStore) RecordWatchCursor(ctx context.Context, gitTargetUID string, gvr schema.GroupVersionResource, namespace, rv string) error {
	if rv == "" {
		return nil
	}
	if err := s.client.Set(ctx, s.watchCursorKey(Shard{gitTargetUID, gvr, namespace}), rv, WatchCursorTTL).Err(); err != nil {
		return fmt.Errorf("record watch cursor of %s: %w", gvr.GroupResource(), err)
	}
	return nil
}

// WatchCursors returns the cursor of each shard in order, "" where there is none, in one round trip.
func (s *RedisStore) WatchCursors(ctx context.Context, shards []Shard) ([]string, error) {
	if len(shards) == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	gets := make([]*redis.StringCmd, len(shards))
	for i, sh := range shards {
		gets[i] = pipe.Get(ctx, s.watchCursorKey(sh))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read watch cursors: %w", err)
	}
	out := make([]string, len(shards))
	for i, get := range gets {
		rv, err := get.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("read watch cursor of %s: %w", shards[i].GVR.GroupResource(), err)
		}
		out[i] = rv
	}
	return out, nil
}

// CursorMove is how one shard's cursor goes on when a push is acknowledged.
type CursorMove struct {
	Shard Shard
	From  string // what the cursor was when the drain began; "" means there was none
	To    string
	// Replayed: To comes from a replay and not from the watch that From began. The cursor is replaced only
	// if it still is From, so of two replays that overlap the first one counts.
	Replayed bool
	// Objects are the last passed versions, by uid. An empty Blob forgets the object.
	Objects map[string]Object `json:",omitempty"`
}

// moveCursor moves one cursor and rewrites its TTL.
//
// KEYS[1] the cursor
// ARGV[1] from, ARGV[2] to, ARGV[3] "replace" or "advance", ARGV[4] TTL in seconds
// returns 1 if the cursor is now at ARGV[2], 0 if it was left where it is
//
// Versions are compared as decimal numbers of any length: without leading zeros, the longer one is greater.
// "advance" never goes back, and refuses a cursor that is gone or behind from: someone replayed meanwhile.
var moveCursor = redis.NewScript(`
local function less(a, b)
  a = string.gsub(a, '^0+', ''); b = string.gsub(b, '^0+', '')
  if #a ~= #b then return #a < #b end
  return a < b
end
local cur = redis.call('GET', KEYS[1]) or ''
if ARGV[3] == 'replace' then
  if cur ~= ARGV[1] then return cur == ARGV[2] and 1 or 0 end
else
  if ARGV[1] ~= '' and (cur == '' or less(cur, ARGV[1])) then return 0 end
  if cur ~= '' and not less(cur, ARGV[2]) then
    redis.call('EXPIRE', KEYS[1], ARGV[4])
    return cur == ARGV[2] and 1 or 0
  end
end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[4])
return 1`)

// AdvanceWatchCursor moves one cursor forward; an older rv than the stored one changes nothing.
func (s *RedisStore) AdvanceWatchCursor(ctx context.Context, gitTargetUID string, gvr schema.GroupVersionResource, namespace, rv string) error {
	if rv == "" {
		return nil
	}
	_, err := s.MoveWatchCursors(ctx, []CursorMove{{Shard: Shard{gitTargetUID, gvr, namespace}, To: rv}})
	return err
}

// MoveWatchCursors applies the moves in one round trip and says for each whether the cursor is now where
// the move wanted it. Doing the same again changes nothing.
func (s *RedisStore) MoveWatchCursors(ctx context.Context, moves []CursorMove) ([]bool, error) {
	if len(moves) == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	cmds := make([]*redis.Cmd, len(moves))
	for i, m := range moves {
		how := "advance"
		if m.Replayed {
			how = "replace"
		}
		cmds[i] = moveCursor.Eval(ctx, pipe, []string{s.watchCursorKey(m.Shard)}, m.From, m.To, how, int(WatchCursorTTL.Seconds()))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("move watch cursors: %w", err)
	}
	out := make([]bool, len(moves))
	for i, cmd := range cmds {
		n, err := cmd.Int()
		if err != nil {
			return nil, fmt.Errorf("move watch cursor of %s: %w", moves[i].Shard.GVR.GroupResource(), err)
		}
		out[i] = n == 1
	}
	return out, nil
}

// Pass moves the cursors and then brings the shards' notes up to date: two round trips. It answers like
// MoveWatchCursors, and doing it again changes nothing.
func (s *RedisStore) Pass(ctx context.Context, moves []CursorMove) ([]bool, error) {
	moved, err := s.MoveWatchCursors(ctx, moves)
	if err != nil || len(moves) == 0 {
		return nil, err
	}
	pipe := s.client.Pipeline()
	for i, m := range moves {
		if moved[i] || !m.Replayed {
			s.passShard(ctx, pipe, m)
		}
	}
	if pipe.Len() == 0 {
		return moved, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("update notes of passed changes: %w", err)
	}
	return moved, nil
}

// ForgetShard drops the cursor and all notes of a shard that left its target, or whose cluster was set back, so that it
// replays.
func (s *RedisStore) ForgetShard(ctx context.Context, sh Shard) error {
	pipe := s.client.Pipeline()
	pipe.Del(ctx, s.watchCursorKey(sh))
	pipe.Del(ctx, s.waitingKey(sh))
	pipe.Del(ctx, s.objectsKey(sh))
	pipe.HDel(ctx, s.shardsKey(sh.TargetUID), sh.field())
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("forget shard %s: %w", sh.GVR.GroupResource(), err)
	}
	return nil
}
