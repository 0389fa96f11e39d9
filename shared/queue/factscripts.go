package queue

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// fileFactsSource files what a POST proves: many keys in one call on a single server, one key in each call on a
// Cluster, where the keys are not in one slot. It keeps a Record's JSON as Go wrote it and only ever changes its
// tail, claims and write. It compares instants, as text of one width: the stamps of Go's JSON have their zeros trimmed. An
// unknown stamp is "".
//
// KEYS[i] the keys to file under
// ARGV[1] TTL in ms, [2] how many Requests to keep under one key; then five for each key:
// what to do, a letter and a rank (below); the value; and three more, whose meaning depends on the letter.
// An empty value stands for that of the key before, with its three more.
// returns a digit for each key: 1 when the value is now the stored one, 0 when another stays
//
// "v" claims a version for a Record. The earliest stageTimestamp keeps the version, as a request that changed nothing
// repeats it later; with equal stamps what is there stays. Of two that overlap one that is proven to have written the
// version goes before one that is not. For a version that carries a deletionTimestamp a delete goes before other verbs: its rank is 1, all
// others' 0; the best of those stays with it, as write, since a delete of an object that is going already changes
// nothing. An earlier request of somebody else is kept as a claim, whatever the order of arrival. Three more: stage,
// received, author.
//
// "l" files a Record as the last of its object: the newest write (rank 0) by stageTimestamp or, before any write, the
// newest delete that may have been a dry run (rank 1) or, before that, the first one that started the removal (rank 2)
// or, before that, the newest one that finished it (rank 3). With equal stamps the newcomer stays, but not among started
// removals. Three more: stage, received, author.
//
// "q" files a Request among those of the same name or collection, a line each, of which the newest are kept.
// Three more: its time in µs, and two that are empty.
const fileFactsSource = `
local ttl, kept = ARGV[1], ARGV[2]
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
local function store(key, value) redis.call('SET', key, value, 'PX', ttl) end
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
local function contend(value, record, newcomer, newstage, newreceived, author)
  local stage = instant(record.stageTimestamp)
  local received = instant(record.received)
  if received == '' then received = stage end
  local claims, changed = merge(record, {author = record.author, what = 'received', at = received},
    {author = author, what = 'received', at = newreceived}, earlier)
  local proven = string.find(newcomer, ',"proven":true', 1, true) ~= nil
  local wins = earlier(newstage, stage)
  if proven and not record.proven and earlier(newreceived, stage) then wins = true end
  if not proven and record.proven and earlier(received, newstage) then wins = false end
  if wins then return with(newcomer, needed(claims, author, newreceived)), true, true end
  return with(value, needed(claims, record.author, received)), changed, false
end
local function claimVersion(key, newcomer, newrank, newstage, newreceived, author)
  if redis.call('SET', key, newcomer, 'PX', ttl, 'NX') then return 1 end
  local top, write = split(redis.call('GET', key))
  local old = read(top)
  if not old then store(key, newcomer); return 1 end
  local rank = 0
  if type(old.verb) == 'string' and string.lower(old.verb) == 'delete' and (old.deleting == true or old.deletion == nil) then rank = 1 end
  if newrank > rank then store(key, join(newcomer, top)); return 1 end
  local value, changed, won
  if newrank == rank then
    value, changed, won = contend(top, old, newcomer, newstage, newreceived, author)
    if changed then store(key, join(value, write)) end
    return won and 1 or 0
  end
  local other = read(write)
  if not other then store(key, join(top, newcomer)); return 0 end
  value, changed = contend(write, other, newcomer, newstage, newreceived, author)
  if changed then store(key, join(top, value)) end
  return 0
end

local function keepLast(key, value, newrank, newstage, newreceived, author)
  local stored = redis.call('GET', key)
  local old = read(stored)
  if not old then store(key, value); return 1 end
  local rank = 0
  local verb = type(old.verb) == 'string' and string.lower(old.verb) or ''
  if old.deletion == 'final' then rank = old.unverified == true and 1 or 3
  elseif old.deletion == 'started' or verb == 'deletecollection' then rank = 2
  elseif verb == 'delete' then rank = (type(old.resourceVersion) == 'string' and old.resourceVersion ~= '') and 2 or 3 end
  if newrank < rank then return 0 end
  if newrank > rank then store(key, value); return 1 end
  local stage = instant(old.stageTimestamp)
  if rank == 0 then
    if later(stage, newstage) then return 0 end
    store(key, value)
    return 1
  end
  local received = instant(old.received)
  if received == '' then received = stage end
  local wins, own, new, better
  if rank == 2 then
    wins, better = earlier(newstage, stage), earlier
    own = {author = old.author, what = 'received', at = received}
    new = {author = author, what = 'received', at = newreceived}
  else
    wins, better = not later(stage, newstage), later
    own = {author = old.author, what = 'staged', at = stage}
    new = {author = author, what = 'staged', at = newstage}
  end
  local claims, changed = merge(old, own, new, better)
  if wins then
    store(key, with(value, needed(claims, new.author, new.at)))
    return 1
  end
  if changed then store(key, with(stored, needed(claims, own.author, own.at))) end
  return 0
end

local function keepRequest(key, value, _, at)
  if redis.call('SET', key, value, 'PX', ttl, 'NX') then return 1 end
  local oldest = tonumber(at) - tonumber(ttl) * 1000
  local lines, times = {value}, {tonumber(at)}
  for line in string.gmatch(redis.call('GET', key), '[^\n]+') do
    if line == value then return 0 end
    local time = tonumber(string.match(line, '"r":(%-?%d+),"s":') or '')
    if time and time >= oldest then lines[#lines+1] = line; times[#times+1] = time end
  end
  if #lines > tonumber(kept) then
    local first = 1
    for i = 2, #lines do
      if times[i] < times[first] or times[i] == times[first] and lines[i] < lines[first] then first = i end
    end
    table.remove(lines, first)
  end
  store(key, table.concat(lines, '\n'))
  return 1
end

local file = {v = claimVersion, l = keepLast, q = keepRequest}
local results = {}
local value, one, two, three
for i, key in ipairs(KEYS) do
  local at = 5 * i - 2
  if ARGV[at+1] ~= '' then value, one, two, three = ARGV[at+1], ARGV[at+2], ARGV[at+3], ARGV[at+4] end
  results[i] = file[string.sub(ARGV[at], 1, 1)](key, value, tonumber(string.sub(ARGV[at], 2)), one, two, three)
end
return table.concat(results)`

var fileFacts = newFactScript(fileFactsSource)

type factScript struct{ source, sha string }

func newFactScript(source string) factScript {
	sum := sha1.Sum([]byte(source))
	return factScript{source: source, sha: hex.EncodeToString(sum[:])}
}

// prepare makes the script known to the servers. On one node it queues its loading ahead of what the
// pipeline goes on to say, so it costs no round trip; a Cluster's nodes are asked one by one, once.
func (l *scriptLoader) prepare(ctx context.Context, client redis.UniversalClient, pipe redis.Pipeliner) error {
	if l.loaded.Load() {
		return nil
	}
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		pipe.ScriptLoad(ctx, fileFacts.source)
		return nil
	}
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		_, err := node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.ScriptLoad(ctx, fileFacts.source)
			return nil
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("load the script: %w", err)
	}
	l.loaded.Store(true)
	return nil
}

func isNoScript(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") }
