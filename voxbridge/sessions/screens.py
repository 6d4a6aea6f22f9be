"""Erasing what is known of an account's screen, as part of `voxbridge erase`.

The awareness service forgets it first, so that sessions which go on are told; then whatever is left in its log is overwritten, that service
or none running. Does not own what is known (`voxbridge.services.awareness`).
"""

from __future__ import annotations

from typing import Final

from voxbridge.shared.awareness_client import AskForget, ask
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.log.reader import Log, position

WITHIN_S: Final = 60.0
"""Seconds that the service may take: some 5 ms for each of 20,000 events at most."""


async def left(log: Log, account: str) -> list[int]:
    """Return the positions of everything in the log of an account's screen; none for a log of an earlier release. Raises `UNAVAILABLE`."""
    if not any(stream.config.name == subjects.AWARENESS_STREAM for stream in await log.js.streams_info()):
        return []
    return [position(message) async for page in log.pages(subjects.awareness_log(account)) for message in page.messages]


async def forget(log: Log, account: str) -> None:
    """Have the running service forget the account; where none runs, there is nothing in a memory either."""
    try:
        await ask(log.nc, AskForget(account=account), within_s=WITHIN_S)
    except VoxbridgeError as error:
        if error.code != Code.UNAVAILABLE:
            raise
