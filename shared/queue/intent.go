package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// IntentTTL is how long an intent waits to be settled. It is longer than WatchCursorTTL: a shard whose
// cursor is gone replays, and then no intent is needed.
const IntentTTL = 24 * time.Hour

// ErrLeaseLost says that a later drain has taken the branch over.
var ErrLeaseLost = errors.New("a later drain has taken over the branch")

// Intent is what a drain is about to do, stored before it pushes. Whoever finds New on the branch knows
// that the push happened and moves the cursors; whoever finds the branch moved on without it drops it.
type Intent struct {
	At    time.Time    `json:"at"`
	Old   string       `json:"old,omitempty"` // the tip it builds on; empty: the branch did not exist
	New   string       `json:"new"`           // the commit it pushes
	Moves []CursorMove `json:"moves"`
	// Commits are what RememberCommits is told when the push has landed.
	Commits map[string]string `json:"commits,omitempty"`
}

// intentsKey: hash, the commit id to the JSON of an Intent.
func (s *RedisStore) intentsKey(branchID string) string { return s.branchKey(branchID) + ":intents" }

// storeIntent keeps an intent unless a later drain has the branch.
//
// KEYS[1] intents, KEYS[2] fence
// ARGV[1] token, ARGV[2] commit id, ARGV[3] intent, ARGV[4] TTL in seconds
// returns 1, or 0 when a greater token was given out
var storeIntent = redis.NewScript(`
local fence = redis.call('GET', KEYS[2])
if fence and tonumber(fence) > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1`)

// StoreIntent stores what is about to be pushed. It returns ErrLeaseLost, and stores nothing, when a drain
// with a greater token has begun.
func (s *RedisStore) StoreIntent(ctx context.Context, branchID string, token int64, intent Intent) error {
	value, err := json.Marshal(intent)
	if err != nil {
		return fmt.Errorf("encode intent: %w", err)
	}
	n, err := storeIntent.Run(ctx, s.client, []string{s.intentsKey(branchID), s.fenceKey(branchID)},
		token, intent.New, value, int(IntentTTL.Seconds())).Int()
	if err != nil {
		return fmt.Errorf("store intent: %w", err)
	}
	if n == 0 {
		return ErrLeaseLost
	}
	return nil
}

// Intents returns every intent of the branch that is not settled. Read the tip before them and the cursors
// after them: then each commit in that tip is either here or already in the cursors.
func (s *RedisStore) Intents(ctx context.Context, branchID string) ([]Intent, error) {
	values, err := s.client.HVals(ctx, s.intentsKey(branchID)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read intents: %w", err)
	}
	out := make([]Intent, 0, len(values))
	for _, value := range values {
		intent := Intent{}
		if err := json.Unmarshal([]byte(value), &intent); err != nil {
			return nil, fmt.Errorf("read intents: %w", err)
		}
		out = append(out, intent)
	}
	return out, nil
}

// DropIntents forgets settled intents, named by their commit ids.
func (s *RedisStore) DropIntents(ctx context.Context, branchID string, commitIDs ...string) error {
	if len(commitIDs) == 0 {
		return nil
	}
	if err := s.client.HDel(ctx, s.intentsKey(branchID), commitIDs...).Err(); err != nil {
		return fmt.Errorf("drop intents: %w", err)
	}
	return nil
}

// tipKey: string, the commit at which the branch was last seen.
func (s *RedisStore) tipKey(branchID string) string { return s.branchKey(branchID) + ":tip" }

// TipMemory remembers where branches were last seen. A stale or lost tip costs one request.
type TipMemory struct{ store *RedisStore }

// TipMemory returns the memory in this store.
func (s *RedisStore) TipMemory() *TipMemory { return &TipMemory{store: s} }

// RememberedTip is the tip's id in hexadecimal, and empty when nothing is remembered.
func (m *TipMemory) RememberedTip(ctx context.Context, repository, branch string) (string, error) {
	tip, err := m.store.client.Get(ctx, m.store.tipKey(BranchID(repository, branch))).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read remembered tip: %w", err)
	}
	return tip, nil
}

// RememberTip keeps the tip for IntentTTL.
func (m *TipMemory) RememberTip(ctx context.Context, repository, branch, tip string) error {
	if err := m.store.client.Set(ctx, m.store.tipKey(BranchID(repository, branch)), tip, IntentTTL).Err(); err != nil {
		return fmt.Errorf("remember tip: %w", err)
	}
	return nil
}
