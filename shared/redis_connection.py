"""The connection of a process to Redis (Valkey), made so that an outage is waited out and said, never fatal or silent.

Owns the client's settings. Does not own what is kept there (`shared.store`). A command that was under way in a crash may or may not
have been carried out. Apart from `shared.nats_connection`, because this client takes a third of a second to load, which commands that
read the log alone do without.
"""

from __future__ import annotations

import asyncio
from typing import Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import RedisError

from shared.mounted_secret import read_secret
from shared.reaching import START_TIMEOUT_S, host_and_port, until_reached

POOL_TIMEOUT_S: Final = 5.0
_PROBE_TIMEOUT_S: Final = 0.5


async def connect_redis(url: str, *, timeout_s: float = START_TIMEOUT_S, password_file: str = "") -> Redis:
    """A client with short time-outs and three retries; a 65th command waits for a connection. Raises `Unavailable` after `timeout_s`,
    and `INVALID_ARGUMENT` when the file cannot be used."""
    secret = {"password": read_secret(password_file, "VOXBRIDGE_REDIS_PASSWORD_FILE")} if password_file else {}
    pool = BlockingConnectionPool.from_url(
        url,
        **secret,
        timeout=POOL_TIMEOUT_S,
        socket_timeout=2.0,
        socket_connect_timeout=1.0,
        health_check_interval=15,
        max_connections=64,
        decode_responses=True,
        retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), 3),
    )
    client = Redis.from_pool(pool)
    try:
        await until_reached("Redis", host_and_port(url), lambda: redis_answers(client), timeout_s)
    except BaseException:
        await client.aclose()
        raise
    return client


async def redis_answers(client: Redis) -> bool:
    """Whether Redis answers a PING within half a second."""
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            return bool(await client.ping())
    except (RedisError, OSError, TimeoutError):
        return False
