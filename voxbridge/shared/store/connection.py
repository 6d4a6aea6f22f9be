"""The connection of a process to Redis (Valkey), made so that an outage is waited out and logged, and is never fatal or silent.

Owns the client's settings. Does not own what is kept there (`voxbridge.shared.store.store`). A command that was under way in a crash may or
may not have been carried out. Separate from `voxbridge.shared.bus.connection`, because this client takes a third of a second to load, and
commands that only read the log do without it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import MasterDownError, ReadOnlyError, RedisError
from redis.exceptions import TimeoutError as NoAnswer

from voxbridge.shared.secrets.mounted import read_secret
from voxbridge.shared.wait_for_server import START_TIMEOUT_S, host_and_port, until_reached

POOL_TIMEOUT_S: Final = 5.0
RETRIES: Final = 3
_PROBE_TIMEOUT_S: Final = 0.5
_DEMOTED: Final = (ReadOnlyError, MasterDownError)

_log = logging.getLogger(__name__)


async def connect_redis(url: str, *, timeout_s: float = START_TIMEOUT_S, password_file: str = "") -> Redis:
    """Return a client with short timeouts and three retries; a 65th concurrent command waits for a connection. Raises `Unavailable` after
    `timeout_s`, and `INVALID_ARGUMENT` when the file cannot be used."""
    secret = {"password": read_secret(password_file, "VOXBRIDGE_REDIS_PASSWORD_FILE")} if password_file else {}

    async def leave() -> None:
        await pool.disconnect(inuse_connections=False)

    pool = BlockingConnectionPool.from_url(
        url,
        **secret,
        timeout=POOL_TIMEOUT_S,
        socket_timeout=2.0,
        socket_connect_timeout=1.0,
        health_check_interval=15,
        max_connections=64,
        decode_responses=True,
        retry=_Retry(leave),
    )
    client = Redis.from_pool(pool)
    try:
        await until_reached("Redis", host_and_port(url), lambda: redis_answers(client), timeout_s)
    except BaseException:
        await client.aclose()
        raise
    return client


async def redis_answers(client: Redis) -> bool:
    """Return whether Redis answers a PING within half a second."""
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            return bool(await client.ping())
    except (RedisError, OSError, TimeoutError):
        return False


class _Retry(Retry):
    """Retry policy: tries again over a new connection, also when the server says that it takes no writes: it became a replica, and its host
    name leads to the new primary now. Idle connections are closed too: their reads would be stale."""

    def __init__(self, leave: Callable[[], Awaitable[None]]) -> None:
        super().__init__(ExponentialBackoff(cap=0.5, base=0.05), RETRIES, (NoConnection, NoAnswer, *_DEMOTED))
        self._leave = leave

    def __deepcopy__(self, _: object) -> _Retry:
        # Each connection has a copy of its own; all of them use one pool.
        return _Retry(self._leave)

    async def call_with_retry(
        self,
        do: Callable[[], Awaitable[Any]],
        fail: Callable[..., Any],
        is_retryable: Callable[[Exception], bool] | None = None,
        with_failure_count: bool = False,
    ) -> Any:
        async def failed(error: Exception, count: int) -> None:
            if isinstance(error, _DEMOTED):
                _log.warning("Redis takes no writes where it is connected to (%s); it is connected to anew.", str(error).partition(".")[0])
                await self._leave()
            await (fail(error, count) if with_failure_count else fail(error))

        return await super().call_with_retry(do, failed, is_retryable, with_failure_count=True)
