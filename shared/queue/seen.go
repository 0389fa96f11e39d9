package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// NotesTTL is how long what was seen of a shard outlives its last note.
const NotesTTL = time.Hour

// SightReplay is the Type of a note that says at which version a replay found all objects of the shard.
const SightReplay = "REPLAY"

// Sight is one change that a watch delivered, or one replay, that the cursor has not passed yet. It holds no content:
// the API server keeps that, and for some minutes also the versions it no longer watches.
type Sight struct {
	Shard     Shard     `json:"-"`
	RV        string    `json:"rv"`
	UID       string    `json:"uid"`
	Namespace string    `json:"ns,omitempty"`
	Name      string    `json:"name"`
	Type      string    `json:"type"` // ADDED, MODIFIED or DELETED, or SightReplay without UID and names
	SeenAt    time.Time `json:"seenAt"`
}

// Object is what the mirror knows of a live object: the last version that was passed and the id of its file.
type Object struct {
	RV    string
	Blob  string // ObjectRemoved when its deletion has begun and the file is gone already
	Trace string `json:",omitempty"` // what attribution remembers of the version; no spaces
}

// ObjectRemoved stands for the blob of an object whose file was removed when its deletion began.
const ObjectRemoved = "-"

func decodeObject(value string) Object {
	rv, rest, _ := strings.Cut(value, " ")
	blob, trace, _ := strings.Cut(rest, " ")
	return Object{RV: rv, Blob: blob, Trace: trace}
}

func (s *RedisStore) shardKey(sh Shard) string {
	return s.prefix + ":commit:v1:target:{" + escapeKeyPart(sh.TargetUID) + ":" + groupResourceKey(sh.GVR.GroupResource()) + ":" + sh.scope() + "}"
}

// waitingKey: hash, "<rv>:<uid>" to the JSON of a Sight.
func (s *RedisStore) waitingKey(sh Shard) string { return s.shardKey(sh) + ":waiting" }

// objectsKey: hash, uid to "<rv> <blob> <trace>".
func (s *RedisStore) objectsKey(sh Shard) string { return s.shardKey(sh) + ":objects" }

// Noted is the store's answer to one Sight.
type Noted struct {
	SeenAt time.Time // when any copy of the function first saw the change
	Known  Object    // the object's last passed version; the zero value when unknown
}

// noteSights keeps the first note of each change and answers with what is stored.
//
// KEYS[1] waiting, KEYS[2] objects
// ARGV[1] TTL in seconds, then for each change: field, value, uid
// returns for each change: the stored value, the object's entry or ""
var noteSights = redis.NewScript(`
local out = {}
for i = 2, #ARGV, 3 do
  redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i+1])
  out[#out+1] = redis.call('HGET', KEYS[1], ARGV[i])
  out[#out+1] = redis.call('HGET', KEYS[2], ARGV[i+2]) or ''
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return out`)

// NoteSights stores changes that were seen and not passed, in one round trip, and answers each with when it
// was first seen and what is known of its object. The first note of a change stays.
func (s *RedisStore) NoteSights(ctx context.Context, sights []Sight) ([]Noted, error) {
	if len(sights) == 0 {
		return nil, nil
	}
	var order []Shard
	byShard := map[Shard][]int{}
	for i, sight := range sights {
		if _, known := byShard[sight.Shard]; !known {
			order = append(order, sight.Shard)
		}
		byShard[sight.Shard] = append(byShard[sight.Shard], i)
	}
	pipe := s.client.Pipeline()
	cmds := make([]*redis.Cmd, len(order))
	for n, sh := range order {
		args := []any{int(NotesTTL.Seconds())}
		for _, i := range byShard[sh] {
			value, err := json.Marshal(sights[i])
			if err != nil {
				return nil, fmt.Errorf("encode note: %w", err)
			}
			args = append(args, sights[i].RV+":"+sights[i].UID, value, sights[i].UID)
		}
		cmds[n] = noteSights.Eval(ctx, pipe, []string{s.waitingKey(sh), s.objectsKey(sh)}, args...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("note seen changes: %w", err)
	}
	out := make([]Noted, len(sights))
	for n, sh := range order {
		answer, err := cmds[n].StringSlice()
		if err != nil || len(answer) != 2*len(byShard[sh]) {
			return nil, fmt.Errorf("note seen changes of %s: unexpected answer: %w", sh.GVR.GroupResource(), err)
		}
		for k, i := range byShard[sh] {
			var stored Sight
			if err := json.Unmarshal([]byte(answer[2*k]), &stored); err != nil {
				stored = sights[i] // an unreadable note counts from now
			}
			out[i] = Noted{SeenAt: stored.SeenAt}
			if answer[2*k+1] != "" {
				out[i].Known = decodeObject(answer[2*k+1])
			}
		}
	}
	return out, nil
}

// Sights returns what was seen of a shard after the given version and not passed, oldest first, a replay behind the
// change that made its version. An empty version means all.
func (s *RedisStore) Sights(ctx context.Context, sh Shard, after string) ([]Sight, error) {
	values, err := s.client.HVals(ctx, s.waitingKey(sh)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read seen changes of %s: %w", sh.GVR.GroupResource(), err)
	}
	var out []Sight
	for _, value := range values {
		sight := Sight{}
		if json.Unmarshal([]byte(value), &sight) != nil {
			continue
		}
		sight.Shard = sh
		if after != "" {
			if order, err := resourceversion.CompareResourceVersion(sight.RV, after); err != nil || order <= 0 {
				continue
			}
		}
		out = append(out, sight)
	}
	sort.SliceStable(out, func(i, j int) bool {
		order, err := resourceversion.CompareResourceVersion(out[i].RV, out[j].RV)
		return err == nil && (order < 0 || order == 0 && out[i].Type != SightReplay && out[j].Type == SightReplay)
	})
	return out, nil
}

// passShard drops the notes that the cursor has passed and remembers the objects' last versions.
//
// KEYS[1] waiting, KEYS[2] objects
// ARGV[1] the cursor, ARGV[2] "watch" or "replay", ARGV[3] TTL in seconds,
// then for each object: uid, rv, "<blob> <trace>" or "" to forget it
// returns the number of notes that remain
//
// A replay knows every object. An older version never replaces a newer.
var passShard = redis.NewScript(`
local function less(a, b)
  a = string.gsub(a, '^0+', ''); b = string.gsub(b, '^0+', '')
  if #a ~= #b then return #a < #b end
  return a < b
end
if ARGV[2] == 'replay' then redis.call('DEL', KEYS[2]) end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if not less(ARGV[1], string.match(field, '^[^:]*')) then redis.call('HDEL', KEYS[1], field) end
end
for i = 4, #ARGV, 3 do
  local cur = redis.call('HGET', KEYS[2], ARGV[i])
  if not (cur and less(ARGV[i+1], string.match(cur, '^[^ ]*'))) then
    if ARGV[i+2] == '' then redis.call('HDEL', KEYS[2], ARGV[i])
    else redis.call('HSET', KEYS[2], ARGV[i], ARGV[i+1] .. ' ' .. ARGV[i+2]) end
  end
end
redis.call('EXPIRE', KEYS[2], ARGV[3])
return redis.call('HLEN', KEYS[1])`)

func (s *RedisStore) passShard(ctx context.Context, pipe redis.Pipeliner, m CursorMove) {
	how := "watch"
	if m.Replayed {
		how = "replay"
	}
	args := make([]any, 0, 3+3*len(m.Objects))
	args = append(args, m.To, how, int(NotesTTL.Seconds()))
	for uid, o := range m.Objects {
		rest := ""
		if o.Blob != "" {
			rest = o.Blob + " " + o.Trace
		}
		args = append(args, uid, o.RV, rest)
	}
	passShard.Eval(ctx, pipe, []string{s.waitingKey(m.Shard), s.objectsKey(m.Shard)}, args...)
}
