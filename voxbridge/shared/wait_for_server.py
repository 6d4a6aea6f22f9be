"""Waiting at the start for a server that is not up yet.

Owns how long, how often, and what is logged meanwhile. Does not own the connections (`voxbridge.shared.bus.connection`,
`voxbridge.shared.store.connection`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from nats.errors import Error as NatsError

from voxbridge.shared.errors import Unavailable

START_TIMEOUT_S: Final = 30.0
"""Seconds that a process waits for NATS and Redis before it gives up and lets the supervisor start it again."""
_SAY_EVERY_S: Final = 5.0

_log = logging.getLogger(__name__)


async def until_reached(
    what: str, address: str, attempt: Callable[[], Awaitable[bool]], timeout_s: float, told: Sequence[str] = ()
) -> None:
    """Repeat `attempt` until it succeeds. Raises `Unavailable` after `timeout_s`, with the last reason.

    `told` collects the errors that the client reports on the side: with wrong credentials it retries by itself and never raises.
    """
    clock = asyncio.get_running_loop().time
    begun = said = clock()
    wait = 0.02
    reason = "it does not answer"
    while True:
        try:
            async with asyncio.timeout_at(begun + timeout_s):
                if await attempt():
                    return
        except (NatsError, OSError, TimeoutError) as error:
            reason = told[-1] if told else str(error) or type(error).__name__
        now = clock()
        if now - begun + wait > timeout_s:
            raise Unavailable(f"{what} at {address} could not be reached within {timeout_s:g} s: {reason}. Is it running?")
        if now - said >= _SAY_EVERY_S:
            said = now
            _log.warning("Waiting for %s at %s since %.0f s: %s.", what, address, now - begun, reason)
        await asyncio.sleep(wait)
        wait = min(wait * 1.5, 0.5)


def host_and_port(url: str) -> str:
    """Return the address of a URL, without its credentials; of several URLs separated by commas, all addresses."""
    if "," in url:
        return ", ".join(host_and_port(one.strip()) for one in url.split(",") if one.strip())
    parts = urlsplit(url if "//" in url else f"nats://{url}")
    if parts.scheme == "unix":
        return parts.path
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
