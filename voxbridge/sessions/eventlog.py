"""The event log for a command: that of the running product, of a server that is named, or the one at rest in the data folder.

Owns how the log is found. A log at rest is opened with a nats-server of the command's own, under the folder's lock, for as long as the
command runs. This module writes nothing to the log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from voxbridge.installation import runtime
from voxbridge.installation.preflight import FolderLock, check_folder
from voxbridge.shared.bus.accounts import ADMIN
from voxbridge.shared.bus.connection import EVENTS_PENDING, close_nats, connect_nats
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.servers import StartError
from voxbridge.shared.errors import Unavailable
from voxbridge.shared.log.reader import Log

CONNECT_S: Final = 3.0
TURN_S: Final = 5.0
"""Seconds that a command waits for another one that holds the folder."""

_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Found:
    """An open log. `live` says whether a product may be writing to it; `redis_url` is empty if its Valkey is not known."""

    log: Log
    live: bool
    redis_url: str
    redis_password_file: str = ""


@asynccontextmanager
async def opened(config: Config, *, make: bool = False, live: bool = False, user: str = ADMIN) -> AsyncIterator[Found]:
    """Open the event log. `make` creates one if there is none; `live` refuses one at rest. `user` is the user that the command signs in as
    where users have rights of their own: the owner of the seed file.

    Raises `UNAVAILABLE` with one line that says what to do.
    """
    # The error that ends the command already reports what the connection would log.
    logging.getLogger().addHandler(logging.NullHandler())
    async with AsyncExitStack() as stack:
        if config.nats_url:
            log = await _connected(stack, config.nats_url, config.nats_seed_file, user)
            yield Found(log, live=True, redis_url=config.redis_url, redis_password_file=config.redis_password_file)
            return
        running = await _running(stack, config.data_dir, make=make)
        if running is not None:
            yield Found(await _connected(stack, running.nats_url), live=True, redis_url=running.redis_url)
            return
        if live:
            raise Unavailable(f"No Voxbridge runs on {config.data_dir}, so there is nothing to follow. Start it with `voxbridge up`.")
        server = NatsServer(config.data_dir / "nats", sync_interval=config.sync_interval, min_free_bytes=0)
        stack.enter_context(server)
        log = await _connected(stack, server.url)
        if make:
            await log.ensure_streams(retention_days=config.event_retention_days, recording=config.record, replicas=config.replica_count)
        yield Found(log, live=False, redis_url="")


async def _running(stack: AsyncExitStack, folder: Path, *, make: bool) -> runtime.Runtime | None:
    """Return the product that runs on the folder; if there is none, take the folder's lock and return None."""
    _check(folder, make=make)
    end = time.monotonic() + TURN_S
    while True:
        try:
            lock = FolderLock.take(folder, "a command that reads the log")
        except StartError as error:
            found = runtime.told(folder)
            if found is not None:
                return found
            if time.monotonic() > end:
                raise Unavailable(f"{error.message.partition('. Stop')[0]}, and does not say where its event log is; try again.") from error
            await asyncio.sleep(_POLL_S)  # the product is starting, or another such command holds the folder
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise Unavailable(f"{folder} cannot be opened: {reason}. Set VOXBRIDGE_DATA_DIR to a folder that can.") from error
        else:
            stack.callback(lock.release)
            runtime.forget(folder)
            return None


def _check(folder: Path, *, make: bool) -> None:
    if make:
        check_folder(folder)
    elif not (folder / "nats" / "store").is_dir():
        raise Unavailable(
            f"There is no event log in {folder.absolute()}: nothing has run there yet. "
            "Start it with `voxbridge up`, or set VOXBRIDGE_DATA_DIR or VOXBRIDGE_NATS_URL."
        )


async def _connected(stack: AsyncExitStack, url: str, seed_file: str = "", user: str = ADMIN) -> Log:
    client = await connect_nats(url, "voxbridge", pending=EVENTS_PENDING, timeout_s=CONNECT_S, user=user, seed_file=seed_file)
    stack.push_async_callback(close_nats, client)
    return Log(client)
