"""Conditions of NATS and Valkey, as one process sees them, each with a sentence that says what to do.

Owns the two probes that every service shares. Does not own the connections (`voxbridge.shared.bus.connection`,
`voxbridge.shared.store.connection`) nor a service's other dependencies. Keeps nothing.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from nats.aio.client import Client
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from voxbridge.shared.condition import Condition

PROBE_S: Final = 0.9
SLOW_MS: Final = 250
"""Milliseconds above which Valkey is slow: it normally answers within one, and beyond this leases are in danger."""

_KEY: Final = "vx:probe"
_KEY_MS: Final = 1_000
_ALMOST_FULL: Final = 0.9


def nats_condition(*connections: Client) -> Condition:
    """Return whether all of a process's connections are up, as a condition."""
    if all(connection.is_connected for connection in connections):
        return Condition("ok", "connected")
    return Condition("down", "NATS does not answer; what was said waits for it. It is reconnected by itself: see that nats-server runs.")


async def valkey_condition(redis: Redis) -> Condition:
    """Return whether Valkey answers, in time, and accepts a key, as a condition; takes at most `PROBE_S`."""
    try:
        async with asyncio.timeout(PROBE_S):
            told = await redis.info("memory")
            took_ms = await _took_ms(redis)
            if took_ms > SLOW_MS:  # this process itself may have been slow
                took_ms = min(took_ms, await _took_ms(redis))
    except (RedisConnectionError, RedisTimeoutError, OSError, TimeoutError):
        return Condition(
            "down", "Valkey does not answer; calls go on, and new ones wait. It is reconnected by itself: see that valkey-server runs."
        )
    except RedisError as error:
        return _refused(str(error))
    if took_ms > SLOW_MS:
        return Condition("degraded", f"Valkey is slow: it took {took_ms:.0f} ms. See what else this machine or this server does.")
    used, limit = int(told.get("used_memory", 0)), int(told.get("maxmemory", 0))
    if limit and used > limit * _ALMOST_FULL:
        share = f"{used >> 20} of {limit >> 20} MiB are used"
        return Condition("degraded", f"Valkey is almost full: {share}. Raise maxmemory, or remove what is not Voxbridge's.")
    return Condition("ok", "answers")


async def _took_ms(redis: Redis) -> float:
    begun = time.monotonic()
    await redis.set(_KEY, b"1", px=_KEY_MS)
    return (time.monotonic() - begun) * 1_000


def _refused(words: str) -> Condition:
    if words.startswith("OOM") or "maxmemory" in words:
        return Condition(
            "down",
            "Valkey is full and takes no key. Calls go on; new ones cannot be taken. Raise maxmemory, or remove what is not Voxbridge's.",
        )
    if "MISCONF" in words:
        return Condition("down", "Valkey cannot write to its disk and takes no key. Calls go on. Free some space; it recovers by itself.")
    if "LOADING" in words:
        return Condition("down", "Valkey is starting: it reads its file. Wait for it.")
    return Condition("down", f"Valkey refuses a key: {words[:200]}")
