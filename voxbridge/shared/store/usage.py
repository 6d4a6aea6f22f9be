"""Counts of keys in Valkey: calls at a time, and calls, seconds and tokens of a day, over all gateways.

Owns the keys `vx:usage:*` and `vx:pending:*`. The day is that of Valkey's clock (UTC), so that gateways whose clocks differ count the same
day. A place of a gateway that died is free again after `PLACE_MS`. Losing Valkey makes today's counts begin anew: keys themselves are in
the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from voxbridge.shared.errors import Unavailable
from voxbridge.shared.platform.handlers import Configuration
from voxbridge.shared.platform.keys import Limits

PLACE_MS: Final = 6_000
"""Milliseconds that a place is held after its gateway held it last."""

KEPT_S: Final = 3 * 86_400
"""Seconds for which the counts of a day are kept."""

PENDING_LIMIT: Final = 16
"""Configurations of an account that wait for approval; the oldest gives way."""

PENDING_S: Final = 86_400
"""Seconds for which they wait."""

Full = Literal["", "concurrent", "seconds", "tokens"]

_ENTER: Final = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local day = KEYS[1] .. ':' .. math.floor(tonumber(time[1]) / 86400)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 'concurrent' end
if ARGV[6] ~= '1' then
  if tonumber(redis.call('HGET', day, 'seconds') or '0') >= tonumber(ARGV[4]) then return 'seconds' end
  if tonumber(redis.call('HGET', day, 'tokens') or '0') >= tonumber(ARGV[5]) then return 'tokens' end
end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], 10 * ARGV[2])
return ''
"""
"""Take a place. KEYS: places. ARGV: name of the place, ms, limits of places, seconds and tokens, 1 for a place that only resumes."""

_BEGIN: Final = """
local time = redis.call('TIME')
local day = KEYS[1] .. ':' .. math.floor(tonumber(time[1]) / 86400)
if tonumber(redis.call('HGET', day, 'seconds') or '0') >= tonumber(ARGV[1]) then return 'seconds' end
if tonumber(redis.call('HGET', day, 'tokens') or '0') >= tonumber(ARGV[2]) then return 'tokens' end
redis.call('HINCRBY', day, 'calls', 1)
redis.call('EXPIRE', day, ARGV[3])
return ''
"""
"""Count a call that begins. KEYS: places. ARGV: limits of seconds and tokens, seconds for which the day is kept."""

_KEEP: Final = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local day = KEYS[1] .. ':' .. math.floor(tonumber(time[1]) / 86400)
if ARGV[5] == '1' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], 10 * ARGV[2])
end
if ARGV[3] ~= '0' or ARGV[4] ~= '0' then
  redis.call('HINCRBY', day, 'seconds', ARGV[3])
  redis.call('HINCRBY', day, 'tokens', ARGV[4])
  redis.call('EXPIRE', day, ARGV[6])
end
"""
"""Hold a place, or leave it, and count. KEYS: places. ARGV: name, ms, seconds, tokens, 1 to leave, seconds for which the day is kept."""


class Took(msgspec.Struct, frozen=True):
    """Seconds and tokens that a call took since they were counted last."""

    key_id: str
    place: str
    seconds: int
    tokens: int
    leaves: bool = False


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration that a page with a live key wanted and nobody has approved."""

    digest: str
    key_id: str
    origin: str
    asked_ms: int
    configuration: Configuration


class UsageStore:
    """The counts over one connection pool."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._enter = redis.register_script(_ENTER)
        self._begin = redis.register_script(_BEGIN)
        self._keep = redis.register_script(_KEEP)

    async def enter(self, key_id: str, place: str, limits: Limits, *, resumes: bool = False) -> Full:
        """Take a place; return the limit that is reached, empty where there was room. One that only `resumes` is bound by twice the number
        of calls alone: the call that it resumes has a place already. Raises `UNAVAILABLE`."""
        concurrent = limits.concurrent * (2 if resumes else 1)
        args = (place, PLACE_MS, concurrent, limits.seconds_a_day, limits.tokens_a_day, int(resumes))
        return _full(await _run(self._enter(keys=[_places(key_id)], args=args)))

    async def begin(self, key_id: str, limits: Limits) -> Full:
        """Count a call that begins; return the limit of the day that is reached, empty where there was room. Raises `UNAVAILABLE`."""
        args = (limits.seconds_a_day, limits.tokens_a_day, KEPT_S)
        return _full(await _run(self._begin(keys=[_places(key_id)], args=args)))

    async def keep(self, took: Sequence[Took]) -> None:
        """Count what calls took, and hold their places or leave them. Raises `UNAVAILABLE`."""
        if not took:
            return
        async with self._redis.pipeline(transaction=False) as pipeline:
            for one in took:
                args = (one.place, PLACE_MS, one.seconds, one.tokens, int(one.leaves), KEPT_S)
                await self._keep(keys=[_places(one.key_id)], args=args, client=pipeline)
            await _run(pipeline.execute())

    async def holds(self, key_id: str, place: str) -> bool:
        """Tell whether a gateway holds this place. Raises `UNAVAILABLE`."""
        seconds, micros = await _run(self._redis.time())
        until = await _run(self._redis.zscore(_places(key_id), place))
        return until is not None and float(until) > int(seconds) * 1_000 + int(micros) // 1_000

    async def today(self, key_id: str) -> Mapping[str, int]:
        """Return the calls, seconds and tokens of today, and the calls now (`concurrent`). Raises `UNAVAILABLE`."""
        seconds, micros = await _run(self._redis.time())
        now = int(seconds) * 1_000 + int(micros) // 1_000
        async with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.hgetall(f"{_places(key_id)}:{int(seconds) // 86_400}")
            pipeline.zcount(_places(key_id), now, "+inf")
            found, concurrent = await _run(pipeline.execute())
        counts = {_text(name): int(value) for name, value in found.items()}
        return {name: counts.get(name, 0) for name in ("calls", "seconds", "tokens")} | {"concurrent": int(concurrent)}

    async def put_pending(self, account: str, pending: Pending) -> None:
        """Keep a configuration for its owner to look at. Raises `UNAVAILABLE`."""
        texts, order = _pending(account), f"{_pending(account)}:order"
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.hset(texts, pending.digest, msgspec.json.encode(pending).decode())
            pipeline.zadd(order, {pending.digest: pending.asked_ms})
            pipeline.zrange(order, 0, -(PENDING_LIMIT + 1))
            pipeline.expire(texts, PENDING_S)
            pipeline.expire(order, PENDING_S)
            oldest = [_text(one) for one in (await _run(pipeline.execute()))[2]]
        if oldest:
            await self.drop_pending(account, *oldest)

    async def drop_pending(self, account: str, *digests: str) -> None:
        """Forget configurations that wait. Raises `UNAVAILABLE`."""
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.hdel(_pending(account), *digests)
            pipeline.zrem(f"{_pending(account)}:order", *digests)
            await _run(pipeline.execute())

    async def pending(self, account: str) -> list[Pending]:
        """Return the configurations that wait, newest first. Raises `UNAVAILABLE`."""
        found = await _run(self._redis.hvals(_pending(account)))
        waiting = [msgspec.json.decode(one, type=Pending) for one in found]
        return sorted(waiting, key=lambda one: -one.asked_ms)


async def _run(command: Awaitable[Any]) -> Any:
    try:
        return await command
    except (RedisError, OSError) as error:
        raise Unavailable(f"Valkey does not count the use of keys: {error}.", retry_after_ms=1_000) from error


def _full(answer: Any) -> Full:
    text = _text(answer)
    if text in ("", "concurrent", "seconds", "tokens"):
        return text  # type: ignore[return-value]  # one of these
    raise RuntimeError(f"a script answered {text!r}")


def _text(value: bytes | str) -> str:
    # Depends on the client's `decode_responses`.
    return value.decode() if isinstance(value, bytes) else value


def _places(key_id: str) -> str:
    return f"vx:usage:{{{key_id}}}"


def _pending(account: str) -> str:
    return f"vx:pending:{{{account}}}"
