package gitpoll

import "github.com/redis/go-redis/v9"

// The scripts are sent in full each time, which saves asking whether the server has them: a sweep is three round
// trips, also the first.

// beginSweep numbers a sweep, unless one is running.
//
// KEYS[1] lease, KEYS[2] fence, KEYS[3] known, KEYS[4] hosts
// ARGV[1] lease in ms, ARGV[2] TTL in s
// returns {number, known, hosts}, the latter two as flat lists; the number is 0 when a sweep is running
var beginSweep = redis.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then
  return {0, {}, {}}
end
local number = redis.call('INCR', KEYS[2])
redis.call('EXPIRE', KEYS[2], ARGV[2])
redis.call('SET', KEYS[1], number, 'PX', ARGV[1])
return {number, redis.call('HGETALL', KEYS[3]), redis.call('HGETALL', KEYS[4])}`)

// publishSweep replaces the state of the fleet by what a sweep found, if no newer sweep has begun. Of a source it
// carries over what is of the same URL and tracking ref: on success the time its commit was first seen, on failure
// the commit too, and always the commit last notified. Sources that are not among the results are dropped. A sweep
// with nothing to notify gives its lease back.
//
// KEYS[1] fence, KEYS[2] sources, KEYS[3] known, KEYS[4] hosts, KEYS[5] lease
// ARGV[1] number of the sweep, ARGV[2] now in ms, ARGV[3] TTL in s, ARGV[4] most moves to return,
// ARGV[5], ARGV[6], ARGV[7] how many results, known and hosts follow
// a result is source, URL, ref, commit (empty: failed), time in ms, kind, error, separated by newlines; known and hosts
// are pairs of field and value
// returns {published 0|1, all moves, sources dropped, moves…}; a move is source, URL, ref, commit last notified, commit,
// time first seen
var publishSweep = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {0, 0, 0}
end
local results, known, hosts = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local limit, first = tonumber(ARGV[4]), 8
local reply, moved, present = {1, 0, 0}, 0, {}

for at = first, first + results - 1, 500 do
  local last = math.min(at + 499, first + results - 1)
  local sources, rest = {}, {}
  for i = at, last do
    local source, tail = string.match(ARGV[i], '^([^\n]*)\n(.*)$')
    sources[#sources + 1] = source
    rest[#rest + 1] = tail
    present[source] = true
  end
  local old = redis.call('HMGET', KEYS[2], unpack(sources))
  local writes = {}
  for i, source in ipairs(sources) do
    local url, ref, sha, time, kind, err = string.match(rest[i], '^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
    local seen, notified = '', ''
    if old[i] then
      local u, r, s, f, n = string.match(old[i], '^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n')
      if u == url and r == ref then
        notified = n
        if sha == '' then
          sha, seen = s, f
        elseif sha == s then
          seen = f
        end
      end
    end
    if sha ~= '' and seen == '' then
      seen = time
    end
    writes[#writes + 1] = source
    writes[#writes + 1] = table.concat({url, ref, sha, seen, notified, time, kind, err}, '\n')
    if sha ~= notified then
      moved = moved + 1
      if moved <= limit then
        for _, part in ipairs({source, url, ref, notified, sha, seen}) do
          reply[#reply + 1] = part
        end
      end
    end
  end
  redis.call('HSET', KEYS[2], unpack(writes))
end

local gone = {}
for _, source in ipairs(redis.call('HKEYS', KEYS[2])) do
  if not present[source] and string.sub(source, 1, 1) ~= '@' then
    gone[#gone + 1] = source
  end
end
for at = 1, #gone, 500 do
  redis.call('HDEL', KEYS[2], unpack(gone, at, math.min(at + 499, #gone)))
end
redis.call('HSET', KEYS[2], '@sweep', ARGV[1], '@at', ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[3])

local from = first + results
redis.call('DEL', KEYS[3], KEYS[4])
for at = from, from + known * 2 - 1, 500 do
  redis.call('HSET', KEYS[3], unpack(ARGV, at, math.min(at + 499, from + known * 2 - 1)))
end
from = from + known * 2
for at = from, from + hosts * 2 - 1, 500 do
  redis.call('HSET', KEYS[4], unpack(ARGV, at, math.min(at + 499, from + hosts * 2 - 1)))
end
redis.call('EXPIRE', KEYS[3], ARGV[3])
redis.call('EXPIRE', KEYS[4], ARGV[3])

if moved == 0 and redis.call('GET', KEYS[5]) == ARGV[1] then
  redis.call('DEL', KEYS[5])
end
reply[2], reply[3] = moved, #gone
return reply`)

// endSweep notes which moves were notified, and gives the lease back. A source that has moved on since is left alone:
// its newer commit is still to be notified.
//
// KEYS[1] sources, KEYS[2] lease
// ARGV[1] number of the sweep, then pairs of source and commit
// returns how many were noted
var endSweep = redis.NewScript(`
local noted = 0
for i = 2, #ARGV, 2 do
  local record = redis.call('HGET', KEYS[1], ARGV[i])
  if record then
    local url, ref, sha, seen, notified, rest = string.match(record, '^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
    if sha == ARGV[i + 1] then
      redis.call('HSET', KEYS[1], ARGV[i], table.concat({url, ref, sha, seen, sha, rest}, '\n'))
      noted = noted + 1
    end
  end
end
if redis.call('GET', KEYS[2]) == ARGV[1] then
  redis.call('DEL', KEYS[2])
end
return noted`)
