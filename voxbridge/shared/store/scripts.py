"""Scripts that Valkey runs as one step: each reads and writes what no other command may change in between."""

from __future__ import annotations

from typing import Final

ACQUIRE: Final = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local term = math.max(tonumber(redis.call('GET', KEYS[2]) or '0'), tonumber(ARGV[3])) + 1
redis.call('SET', KEYS[2], term, 'EX', 2592000)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return term
"""
"""Take a free lease; return its term, or 0 if it is held. KEYS: lease, term. ARGV: worker, ms, the least term."""

REGAIN: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return math.max(tonumber(redis.call('GET', KEYS[2]) or '0'), tonumber(ARGV[3]))
end
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local term = math.max(tonumber(redis.call('GET', KEYS[2]) or '0'), tonumber(ARGV[3])) + 1
redis.call('SET', KEYS[2], term, 'EX', 2592000)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return term
"""
"""Renew a lease, or take it if it is free; return its term, or 0 if another worker holds it. KEYS and ARGV as for `ACQUIRE`."""

RENEW: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
"""
"""Renew a lease that the worker holds; return 1, or 0 if it does not hold it. KEYS: lease. ARGV: worker, ms."""

RELEASE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
"""Release a lease that the worker holds. KEYS: lease. ARGV: worker."""

HAND_OVER: Final = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local term = tonumber(redis.call('GET', KEYS[2]) or '0') + 1
redis.call('SET', KEYS[2], term, 'EX', 2592000)
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return term
"""
"""Give a lease to another worker; return the new term, or 0 if the worker does not hold it. KEYS: lease, term. ARGV: from, to, ms."""

HANDED: Final = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return tonumber(redis.call('GET', KEYS[2]) or '1')
"""
"""Renew a lease that was handed over; return its term, or 0 if the worker does not hold it. KEYS: lease, term. ARGV: worker, ms."""

ADD_NOTE: Final = """
if redis.call('SISMEMBER', KEYS[3], ARGV[1]) == 1 then return 0 end
redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[1], 'NX', ARGV[3], ARGV[1])
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -(tonumber(ARGV[4]) + 1))) do
  redis.call('ZREM', KEYS[1], id)
  redis.call('HDEL', KEYS[2], id)
end
return 1
"""
"""Keep a note that was not erased, and drop the oldest beyond the limit. KEYS: order, texts, erased. ARGV: id, note, time, limit."""

SWEEP: Final = """
local live = redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1] + ARGV[2] - 1, 'WITHSCORES')
local free, owners, seen = {}, {}, {}
for i = 1, #live, 2 do
  local owner = redis.call('GET', 'vx:lease:{' .. live[i] .. '}')
  if not owner then
    local ever = redis.call('EXISTS', 'vx:term:{' .. live[i] .. '}')
    if ever == 1 or tonumber(live[i + 1]) <= tonumber(ARGV[3]) then
      free[#free + 1] = live[i]
      free[#free + 1] = ever
    end
  elseif not seen[owner] then
    seen[owner] = true
    if redis.call('ZSCORE', KEYS[2], owner) then owners[#owners + 1] = owner end
  end
end
return {#live / 2, free, owners}
"""
"""Return the free ones of some live sessions, and the owners of the others. KEYS: live, workers. ARGV: first, count, age in µs."""

HELD_BY: Final = """
local live = redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1] + ARGV[2] - 1)
local found = {}
for _, sid in ipairs(live) do
  if redis.call('GET', 'vx:lease:{' .. sid .. '}') == ARGV[3] then found[#found + 1] = sid end
end
return {#live, found}
"""
"""Return which of some live sessions a worker holds. KEYS: live. ARGV: first, count, worker."""
