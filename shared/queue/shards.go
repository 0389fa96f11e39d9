package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// shardsKey: hash, "<gr> <scope>" to what the shard's cursor was made for.
func (s *RedisStore) shardsKey(targetUID string) string {
	return s.prefix + ":commit:v1:target:{" + escapeKeyPart(targetUID) + "}:shards"
}

func (sh Shard) field() string {
	return groupResourceKey(sh.GVR.GroupResource()) + " " + sh.Namespace
}

func shardOf(targetUID, field string) Shard {
	gr, namespace, _ := strings.Cut(field, " ")
	group, resource, grouped := strings.Cut(gr, "/")
	if !grouped {
		group, resource = "", gr
	}
	return Shard{TargetUID: targetUID, GVR: schema.GroupVersionResource{Group: group, Resource: resource}, Namespace: namespace}
}

// SettleShards compares the shards of a target, each with the purpose its cursor serves (where it writes and
// what it selects), with those of the last drain. Shards that left, and shards whose purpose is another now, lose
// their cursor and notes, so they replay. Those of a resource that is absent, as it may be for a moment after the API
// server began, keep them. It returns how many were forgotten.
func (s *RedisStore) SettleShards(ctx context.Context, targetUID string, purposes map[Shard]string, absent ...schema.GroupResource) (forgotten int, err error) {
	key := s.shardsKey(targetUID)
	before, err := s.client.HGetAll(ctx, key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("read shards of a target: %w", err)
	}
	now := make(map[string]string, len(purposes))
	for sh, purpose := range purposes {
		now[sh.field()] = purpose
	}
	for field, purpose := range before {
		shard := shardOf(targetUID, field)
		if now[field] == purpose || slices.Contains(absent, shard.GVR.GroupResource()) {
			continue
		}
		if err := s.ForgetShard(ctx, shard); err != nil {
			return forgotten, err
		}
		forgotten++
	}
	if len(now) == 0 {
		return forgotten, nil
	}
	pipe := s.client.Pipeline()
	pipe.HSet(ctx, key, now)
	pipe.Expire(ctx, key, WatchCursorTTL)
	if _, err := pipe.Exec(ctx); err != nil {
		return forgotten, fmt.Errorf("note shards of a target: %w", err)
	}
	return forgotten, nil
}

// commitsKey: hash, the digest of a username to the id of the author's last commit on the branch; that of a CommitRequest to
// its commit, until its status says so.
func (s *RedisStore) commitsKey(branchID string) string { return s.branchKey(branchID) + ":commits" }

// RememberCommits keeps the last commit of each author on a branch, by username.
func (s *RedisStore) RememberCommits(ctx context.Context, branchID string, byAuthor map[string]string) error {
	if len(byAuthor) == 0 {
		return nil
	}
	values := make(map[string]string, len(byAuthor))
	for author, id := range byAuthor {
		values[digest(author)] = id
	}
	pipe := s.client.Pipeline()
	pipe.HSet(ctx, s.commitsKey(branchID), values)
	pipe.Expire(ctx, s.commitsKey(branchID), fenceTTL)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("remember authors' commits: %w", err)
	}
	return nil
}

// LastCommit is the id of the author's last commit on a branch, "" when none is remembered. A branch that nobody has
// committed to for seven days is forgotten.
func (s *RedisStore) LastCommit(ctx context.Context, branchID, author string) (string, error) {
	id, err := s.client.HGet(ctx, s.commitsKey(branchID), digest(author)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read an author's last commit: %w", err)
	}
	return id, nil
}

// ForgetCommit drops what RememberCommits keeps for one author.
func (s *RedisStore) ForgetCommit(ctx context.Context, branchID, author string) error {
	if err := s.client.HDel(ctx, s.commitsKey(branchID), digest(author)).Err(); err != nil {
		return fmt.Errorf("forget an author's last commit: %w", err)
	}
	return nil
}
