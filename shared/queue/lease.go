package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	fenceTTL = 7 * 24 * time.Hour
	dirtyTTL = time.Hour
)

// BranchID names a branch of a repository in keys without spelling its URL.
func BranchID(repository, branch string) string { return digest(repository + "\x00" + branch) }

func digest(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:16])
}

func (s *RedisStore) branchKey(branchID string) string {
	return s.prefix + ":commit:v1:branch:{" + escapeKeyPart(branchID) + "}"
}

// leaseKey: string, the fencing token of the drain that holds the branch.
func (s *RedisStore) leaseKey(branchID string) string { return s.branchKey(branchID) + ":lease" }

// fenceKey: string, the greatest fencing token given out.
func (s *RedisStore) fenceKey(branchID string) string { return s.branchKey(branchID) + ":fence" }

// dirtyKey: string, there when somebody asked for a drain while one was running.
func (s *RedisStore) dirtyKey(branchID string) string { return s.branchKey(branchID) + ":dirty" }

// acquireLease takes the branch, or leaves word that there is more to do.
//
// KEYS[1] lease, KEYS[2] fence, KEYS[3] dirty
// ARGV[1] lease in ms, ARGV[2] fence TTL in seconds, ARGV[3] dirty TTL in seconds, 0 leaves no word
// returns the fencing token, or 0 when another drain holds the branch
var acquireLease = redis.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then
  if ARGV[3] ~= '0' then redis.call('SET', KEYS[3], '1', 'EX', ARGV[3]) end
  return 0
end
local token = redis.call('INCR', KEYS[2])
redis.call('EXPIRE', KEYS[2], ARGV[2])
redis.call('SET', KEYS[1], token, 'PX', ARGV[1])
redis.call('DEL', KEYS[3])
return token`)

// AcquireLease takes the branch for ttl and returns a fencing token greater than every earlier one. When
// another drain holds it, the branch is marked dirty, so that drain goes round once more, and the token is 0.
//
// A lease is a courtesy: it saves work, it does not make writing safe.
func (s *RedisStore) AcquireLease(ctx context.Context, branchID string, ttl time.Duration) (int64, error) {
	return s.acquire(ctx, branchID, ttl, dirtyTTL)
}

// TakeLease is AcquireLease for one who has asked already: it does not mark the branch.
func (s *RedisStore) TakeLease(ctx context.Context, branchID string, ttl time.Duration) (int64, error) {
	return s.acquire(ctx, branchID, ttl, 0)
}

func (s *RedisStore) acquire(ctx context.Context, branchID string, ttl, dirty time.Duration) (int64, error) {
	token, err := acquireLease.Run(ctx, s.client,
		[]string{s.leaseKey(branchID), s.fenceKey(branchID), s.dirtyKey(branchID)},
		ttl.Milliseconds(), int(fenceTTL.Seconds()), int(dirty.Seconds())).Int64()
	if err != nil {
		return 0, fmt.Errorf("acquire lease: %w", err)
	}
	return token, nil
}

// renewLease keeps a lease that is still ours.
//
// KEYS[1] lease, ARGV[1] token, ARGV[2] lease in ms
// returns 1, or 0 when the lease was lost
var renewLease = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`)

// RenewLease prolongs the lease and says whether it is still ours.
func (s *RedisStore) RenewLease(ctx context.Context, branchID string, token int64, ttl time.Duration) (bool, error) {
	n, err := renewLease.Run(ctx, s.client, []string{s.leaseKey(branchID)}, token, ttl.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("renew lease: %w", err)
	}
	return n == 1, nil
}

// releaseLease gives the branch back unless there is more to do.
//
// KEYS[1] lease, KEYS[2] dirty
// ARGV[1] token, ARGV[2] lease in ms
// returns 1 released, 0 refused: a wake came meanwhile (the flag is taken, the lease prolonged), -1 not ours
var releaseLease = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
if redis.call('DEL', KEYS[2]) == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
redis.call('DEL', KEYS[1])
return 1`)

// Release is the answer to giving a lease back.
type Release int

const (
	Released     Release = 1
	ReleaseDirty Release = 0  // a wake came during the drain: still ours, go round once more
	ReleaseLost  Release = -1 // it was not ours any more
)

// ReleaseLease gives the lease back. While the branch is dirty it refuses, takes the flag and prolongs the
// lease by ttl: a wake during a drain is never lost.
func (s *RedisStore) ReleaseLease(ctx context.Context, branchID string, token int64, ttl time.Duration) (Release, error) {
	n, err := releaseLease.Run(ctx, s.client, []string{s.leaseKey(branchID), s.dirtyKey(branchID)}, token, ttl.Milliseconds()).Int()
	if err != nil {
		return ReleaseLost, fmt.Errorf("release lease: %w", err)
	}
	return Release(n), nil
}

// yieldLease gives a lease back whatever the flag says, and keeps the flag for the next drain.
//
// KEYS[1] lease, ARGV[1] token
// returns 1 if it was ours
var yieldLease = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`)

// YieldLease gives the lease back at once: for a drain that failed or has no time left.
func (s *RedisStore) YieldLease(ctx context.Context, branchID string, token int64) error {
	if err := yieldLease.Run(ctx, s.client, []string{s.leaseKey(branchID)}, token).Err(); err != nil {
		return fmt.Errorf("yield lease: %w", err)
	}
	return nil
}
