"""Creation of the streams and the consumers where the services may not create them: at the start, and again after the bus was away.

The audio streams are kept in the server's memory, so they are gone whenever the server was restarted. Owns nothing that lasts; a crash here
leaves everything as it is, and the next start checks again.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from pathlib import Path
from typing import Final

from nats.aio.client import Client

from voxbridge.shared.bus.accounts import ADMIN
from voxbridge.shared.bus.connection import EVENTS_PENDING, close_nats, connect_nats
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log import streams

LOOK_S: Final = 5.0
REQUEST_S: Final = 5.0
CONNECT_S: Final = 1.0

_log = logging.getLogger(__name__)


async def make_streams(config: Config) -> None:
    """Create everything in JetStream once; raises `UNAVAILABLE`."""
    nc = await _connect(config)
    try:
        await _ensure(nc, config)
    finally:
        await close_nats(nc)


async def keep_streams(config: Config, ready: Path | None) -> None:
    """Create everything, and check again whenever the bus was away and every `LOOK_S`, until SIGTERM. `ready` is a file that exists while
    everything is in place."""
    stopping, again = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)

    async def back() -> None:
        again.set()

    nc = await _connect(config, back)
    stop = asyncio.create_task(stopping.wait())
    try:
        while not stopping.is_set():
            again.clear()
            try:
                await _ensure(nc, config)
                _mark(ready, True)
            except VoxbridgeError as error:
                _log.warning("%s", error.message)
                _mark(ready, False)
            waiting = asyncio.create_task(again.wait())
            await asyncio.wait({waiting, stop}, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
    finally:
        stop.cancel()
        _mark(ready, False)
        await close_nats(nc)


class StreamAdmin:
    """Creator of everything for the servers of this machine: at the start, after each cut, and when something is gone; its caller polls
    `made`."""

    def __init__(self, config: Config) -> None:
        self.trouble = ""
        """Reason why something could not be created at the last try."""
        self._config = config
        self._nc: Client | None = None
        self._made_at = -LOOK_S
        self._making = asyncio.Lock()

    async def made(self) -> bool:
        """Return whether everything is in place, as of the last check; checks again after `LOOK_S`, and after a cut at once."""
        try:
            async with self._making:
                if self._nc is None:
                    self._nc = await connect_nats(
                        self._config.nats_url,
                        "voxbridge-up-streams",
                        pending=EVENTS_PENDING,
                        timeout_s=CONNECT_S,
                        on_reconnected=self._back,
                    )
                if not self._nc.is_connected:
                    return False
                if time.monotonic() - self._made_at >= LOOK_S:
                    await _ensure(self._nc, self._config)
                    self._made_at = time.monotonic()
        except VoxbridgeError as error:
            self.trouble = error.message
            return False
        self.trouble = ""
        return True

    async def close(self) -> None:
        """Close the connection."""
        if self._nc is not None:
            await close_nats(self._nc)

    async def _back(self) -> None:
        self._made_at = -LOOK_S
        await self.made()


def _mark(ready: Path | None, there: bool) -> None:
    if ready is not None:
        ready.touch() if there else ready.unlink(missing_ok=True)


async def _connect(config: Config, back: object = None) -> Client:
    return await connect_nats(
        config.nats_url,
        "voxbridge-admin",
        pending=EVENTS_PENDING,
        user=ADMIN,
        seed_file=config.nats_seed_file,
        on_reconnected=back if callable(back) else None,
    )


async def _ensure(nc: Client, config: Config) -> None:
    js = nc.jetstream(timeout=REQUEST_S)
    await streams.ensure_streams(js, retention_days=config.event_retention_days, recording=config.record, replicas=config.replica_count)
    for stream, wanted in streams.DURABLES:
        await streams.ensure_consumer(js, wanted, stream)
