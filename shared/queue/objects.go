package queue

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // git names objects so
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Bounds of the git object cache. One repository uses at most about MaxCachedBytes.
const (
	ObjectCacheTTL  = 24 * time.Hour
	MaxObjectBytes  = 512 << 10
	MaxCachedBytes  = 32 << 20
	generationBytes = MaxCachedBytes / 2
)

// ObjectCache keeps git trees and commits between drains, by id. Losing it costs a fetch, nothing else;
// an entry that does not hash to its id is not returned.
//
// Each repository has two generations in one slot: what is written goes to the first; when that is full it
// becomes the second and the former second is dropped.
type ObjectCache struct{ store *RedisStore }

// ObjectCache returns the cache in this store.
func (s *RedisStore) ObjectCache() *ObjectCache { return &ObjectCache{store: s} }

func (s *RedisStore) repositoryKey(repository string) string {
	return s.prefix + ":commit:v1:repo:{" + digest(repository) + "}"
}

// repositoryObjectsKey: hash, object id to "type size\0content"; the field "bytes" is its size.
func (s *RedisStore) repositoryObjectsKey(repository string) string {
	return s.repositoryKey(repository) + ":objects"
}

// repositoryObjectsBeforeKey: the generation before repositoryObjectsKey, of the same shape.
func (s *RedisStore) repositoryObjectsBeforeKey(repository string) string {
	return s.repositoryKey(repository) + ":objects-before"
}

// Get returns those of the objects that are cached and intact, in one round trip. Contents begin with git's
// own header, "type size\0".
func (c *ObjectCache) Get(ctx context.Context, repository string, ids []string) (map[string][]byte, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	pipe := c.store.client.Pipeline()
	generations := []*redis.SliceCmd{
		pipe.HMGet(ctx, c.store.repositoryObjectsKey(repository), ids...),
		pipe.HMGet(ctx, c.store.repositoryObjectsBeforeKey(repository), ids...),
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("read cached git objects: %w", err)
	}
	out := make(map[string][]byte, len(ids))
	for _, generation := range generations {
		for i, value := range generation.Val() {
			content, ok := value.(string)
			if _, have := out[ids[i]]; have || !ok || !hashesTo([]byte(content), ids[i]) {
				continue
			}
			out[ids[i]] = []byte(content)
		}
	}
	return out, nil
}

// putObjects adds objects to the first generation and turns it over when it is full.
//
// KEYS[1] objects, KEYS[2] objects of the generation before
// ARGV[1] bytes of a generation, ARGV[2] TTL in seconds, then for each object: id, content
// returns the bytes in the first generation
var putObjects = redis.NewScript(`
local size = tonumber(redis.call('HGET', KEYS[1], 'bytes') or '0')
for i = 3, #ARGV, 2 do
  if redis.call('HSET', KEYS[1], ARGV[i], ARGV[i+1]) == 1 then size = size + #ARGV[i] + #ARGV[i+1] end
end
redis.call('HSET', KEYS[1], 'bytes', size)
redis.call('EXPIRE', KEYS[1], ARGV[2])
if size >= tonumber(ARGV[1]) then
  redis.call('RENAME', KEYS[1], KEYS[2])
  size = 0
end
return size`)

// Put caches objects in one round trip. Objects over MaxObjectBytes, and those that do not hash to their id,
// are left out.
func (c *ObjectCache) Put(ctx context.Context, repository string, objects map[string][]byte) error {
	args := []any{generationBytes, int(ObjectCacheTTL.Seconds())}
	for id, content := range objects {
		if len(content) <= MaxObjectBytes && hashesTo(content, id) {
			args = append(args, id, content)
		}
	}
	if len(args) == 2 {
		return nil
	}
	err := putObjects.Run(ctx, c.store.client,
		[]string{c.store.repositoryObjectsKey(repository), c.store.repositoryObjectsBeforeKey(repository)}, args...).Err()
	if err != nil {
		return fmt.Errorf("cache git objects: %w", err)
	}
	return nil
}

// hashesTo verifies content against a hexadecimal SHA-1 or SHA-256 object id.
func hashesTo(content []byte, id string) bool {
	want, err := hex.DecodeString(id)
	if err != nil {
		return false
	}
	switch len(want) {
	case sha1.Size:
		sum := sha1.Sum(content) //nolint:gosec // git names objects so
		return bytes.Equal(sum[:], want)
	case sha256.Size:
		sum := sha256.Sum256(content)
		return bytes.Equal(sum[:], want)
	default:
		return false
	}
}
