package queue

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// claimVersion and keepLast keep a Record's JSON as Go wrote it and only ever change its tail, claims and write.
// They compare instants, as text of one width: the stamps of Go's JSON have their zeros trimmed.
// An unknown stamp is "".
const factPrelude = `
local function instant(s)
  if type(s) ~= 'string' then return '' end
  local head, fraction = string.match(s, '^(%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d)%.?(%d*)Z$')
  if not head then return '' end
  return head .. '.' .. string.sub(fraction .. '000000000', 1, 9) .. 'Z'
end
local function read(value)
  if not value then return nil end
  local ok, record = pcall(cjson.decode, value)
  if ok and type(record) == 'table' and type(record.author) == 'string' and record.author ~= '' then return record end
end
-- The Record's JSON with other claims; what is stored has nothing behind them.
local function with(value, claims)
  local tail = string.find(value, ',"claims":[', 1, true)
  if tail then value = string.sub(value, 1, tail - 1) .. '}' end
  if #claims == 0 then return value end
  local parts = {}
  for i, c in ipairs(claims) do
    parts[i] = '{"author":' .. cjson.encode(c.author) .. ',"' .. c.what .. '":"' .. c.at .. '"}'
  end
  return string.sub(value, 1, -2) .. ',"claims":[' .. table.concat(parts, ',') .. ']}'
end
local function store(value) redis.call('SET', KEYS[1], value, 'PX', ARGV[2]) end
-- The best claims of at most two people. better(x, y) tells whether x is to be kept rather than y.
local function merge(record, own, new, better)
  local claims = {own}
  if type(record.claims) == 'table' and #record.claims > 0 then
    claims = {}
    for _, c in ipairs(record.claims) do
      claims[#claims+1] = {author = c.author, what = own.what, at = instant(c[own.what])}
    end
  end
  local changed, mine = false, nil
  for _, c in ipairs(claims) do
    if c.author == new.author then mine = c end
  end
  if mine then
    if better(new.at, mine.at) then mine.at = new.at; changed = true end
  elseif #claims < 2 then
    claims[#claims+1] = new; changed = true
  else
    local worst = better(claims[1].at, claims[2].at) and 2 or 1
    if better(new.at, claims[worst].at) then claims[worst] = new; changed = true end
  end
  return claims, changed
end
-- One claim that the record itself tells is not written out.
local function needed(claims, author, at)
  if #claims == 1 and claims[1].author == author and claims[1].at == at then return {} end
  return claims
end
local function earlier(x, y) return x ~= '' and (y == '' or x < y) end
local function later(x, y) return x ~= '' and (y == '' or x > y) end
`

// claimVersion files a Record under the version it claims. The earliest stageTimestamp keeps the version,
// as a request that changed nothing repeats it later; with equal stamps what is there stays. For a version
// that carries a deletionTimestamp a delete goes before other verbs; the best of those stays with it, as
// write, since a delete of an object that is going already changes nothing. An earlier request of somebody
// else is kept as a claim, whatever the order of arrival.
//
// KEYS[1] the exact key or the rv key
// ARGV[1] the Record's JSON, [2] TTL in ms, [3] "1" for a delete of a version with a deletionTimestamp,
// [4] stage, [5] received: instants of one width or "", [6] author
// returns 1 when the Record is now the stored one, 0 when another stays
const claimVersionSource = factPrelude + `
local function split(value)
  local at = value and string.find(value, ',"write":{', 1, true)
  if not at then return value end
  return string.sub(value, 1, at - 1) .. '}', string.sub(value, at + 9, -2)
end
local function join(value, write)
  if not write then return value end
  return string.sub(value, 1, -2) .. ',"write":' .. write .. '}'
end
-- The Record's JSON after the newcomer, whether that is other than before, and whether it is the newcomer's.
local function contend(value, record)
  local stage = instant(record.stageTimestamp)
  local received = instant(record.received)
  if received == '' then received = stage end
  local claims, changed = merge(record, {author = record.author, what = 'received', at = received},
    {author = ARGV[6], what = 'received', at = ARGV[5]}, earlier)
  if earlier(ARGV[4], stage) then return with(ARGV[1], needed(claims, ARGV[6], ARGV[5])), true, true end
  return with(value, needed(claims, record.author, received)), changed, false
end
local top, write = split(redis.call('GET', KEYS[1]))
local old = read(top)
if not old then store(ARGV[1]); return 1 end
local rank = 0
if type(old.verb) == 'string' and string.lower(old.verb) == 'delete' and (old.deleting == true or old.deletion == nil) then rank = 1 end
local newrank = tonumber(ARGV[3])
if newrank > rank then store(join(ARGV[1], top)); return 1 end
local value, changed, won
if newrank == rank then
  value, changed, won = contend(top, old)
  if changed then store(join(value, write)) end
  return won and 1 or 0
end
local other = read(write)
if not other then store(join(top, ARGV[1])); return 0 end
value, changed = contend(write, other)
if changed then store(join(top, value)) end
return 0`

// keepLast files a Record as the last of its object: the newest write by stageTimestamp or, before any
// write, the first delete that started the removal or, before that, the newest one that finished it. With
// equal stamps the newcomer stays, but not among started removals.
//
// KEYS[1] the last key
// ARGV[1] the Record's JSON, [2] TTL in ms, [3] "0" write, "1" removal started, "2" removal finished,
// [4] stage, [5] received: instants of one width or "", [6] author
// returns 1 when the Record is now the stored one, 0 when another stays
const keepLastSource = factPrelude + `
local stored = redis.call('GET', KEYS[1])
local old = read(stored)
if not old then store(ARGV[1]); return 1 end
local rank = 0
local verb = type(old.verb) == 'string' and string.lower(old.verb) or ''
if old.deletion == 'final' then rank = 2
elseif old.deletion == 'started' or verb == 'deletecollection' then rank = 1
elseif verb == 'delete' then rank = (type(old.resourceVersion) == 'string' and old.resourceVersion ~= '') and 1 or 2 end
local newrank = tonumber(ARGV[3])
if newrank < rank then return 0 end
if newrank > rank then store(ARGV[1]); return 1 end
local stage = instant(old.stageTimestamp)
if rank == 0 then
  if later(stage, ARGV[4]) then return 0 end
  store(ARGV[1])
  return 1
end
local received = instant(old.received)
if received == '' then received = stage end
local wins, own, new, better
if rank == 1 then
  wins, better = earlier(ARGV[4], stage), earlier
  own = {author = old.author, what = 'received', at = received}
  new = {author = ARGV[6], what = 'received', at = ARGV[5]}
else
  wins, better = not later(stage, ARGV[4]), later
  own = {author = old.author, what = 'staged', at = stage}
  new = {author = ARGV[6], what = 'staged', at = ARGV[4]}
end
local claims, changed = merge(old, own, new, better)
if wins then
  store(with(ARGV[1], needed(claims, new.author, new.at)))
  return 1
end
if changed then store(with(stored, needed(claims, own.author, own.at))) end
return 0`

// keepRequest files a Request among those of the same name or collection. The newest are kept.
//
// KEYS[1] the name key or the scope key
// ARGV[1] the Request's JSON, [2] TTL in ms, [3] how many to keep, [4] its time in µs
// returns 1
const keepRequestSource = `
redis.call('ZADD', KEYS[1], ARGV[4], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', tonumber(ARGV[4]) - tonumber(ARGV[2]) * 1000))
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[3]))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`

var (
	keepRequest  = newFactScript(keepRequestSource)
	claimVersion = newFactScript(claimVersionSource)
	keepLast     = newFactScript(keepLastSource)
)

type factScript struct{ source, sha string }

func newFactScript(source string) factScript {
	sum := sha1.Sum([]byte(source))
	return factScript{source: source, sha: hex.EncodeToString(sum[:])}
}

// prepare makes the scripts known to the servers. On one node it queues their loading ahead of what the
// pipeline goes on to say, so it costs no round trip; a Cluster's nodes are asked one by one, once.
func (l *scriptLoader) prepare(ctx context.Context, client redis.UniversalClient, pipe redis.Pipeliner) error {
	if l.loaded.Load() {
		return nil
	}
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		loadFactScripts(ctx, pipe)
		return nil
	}
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		_, err := node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			loadFactScripts(ctx, pipe)
			return nil
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("load scripts: %w", err)
	}
	l.loaded.Store(true)
	return nil
}

func loadFactScripts(ctx context.Context, pipe redis.Pipeliner) {
	for _, script := range []factScript{claimVersion, keepLast, keepRequest} {
		pipe.ScriptLoad(ctx, script.source)
	}
}

func isNoScript(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") }
