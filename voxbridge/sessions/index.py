"""Listing of an imported session in the running product.

Owns that one entry. Does not own the list (`voxbridge.shared.store.store`), which is rebuilt from the log when Valkey has lost it.
"""

from __future__ import annotations

from typing import Final

from voxbridge.shared.bus import subjects
from voxbridge.shared.store.connection import connect_redis
from voxbridge.shared.store.store import Store

_TIMEOUT_S: Final = 10.0


async def list_it(redis_url: str, sid: str, began: int, *, password_file: str = "") -> None:
    """Put an imported session into the running product's list, if its Valkey is known; otherwise it is listed when the list is next built
    from the log. The log of an account is in no list."""
    if redis_url and not subjects.account_of(sid):
        redis = await connect_redis(redis_url, timeout_s=_TIMEOUT_S, password_file=password_file)
        try:
            await Store(redis).add_to_index({sid: began}, {})
        finally:
            await redis.aclose()
