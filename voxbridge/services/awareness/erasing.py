"""Erasing in the log of what is known of a screen: each message is overwritten in the server's file, since a purge leaves its bytes there.

Owns which messages go. Does not own when (`account`). Stopped halfway, it is done again from the start; what is gone is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nats.errors import Error as NatsError
from nats.js.errors import APIError

from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Unavailable
from voxbridge.shared.log.reader import Log, position

_NO_MESSAGE: Final = (10037, 10043, 10057)
"""The server's codes for a message that is not there."""

_TOPICS: Final = {"pages": ("page.visited",), "errors": ("error.reported", subjects.MAIN), "context": ("context.set",)}
"""Topics of the reports of each source; the main one has what was resolved."""


class Erasing:
    """The erasing in one account's log."""

    def __init__(self, log: Log, log_id: str) -> None:
        self._log = log
        self._log_id = log_id

    async def own(self, before: int) -> None:
        """Erase what this service wrote before a position, but for the last `awareness.changed`, which says what agents are told now."""
        changed = subjects.event_subject(self._log_id, "awareness", visible=False, event_type="awareness.changed")
        kept = {one.seq for one in await self._log.last([changed])}
        await self._erase([one for one in await self._positions("awareness", ">", before - 1) if one not in kept])

    async def reports(self, sources: Sequence[str], up_to: int) -> None:
        """Erase what clients reported of these sources up to a position."""
        for source in sources:
            for topic in _TOPICS[source]:
                await self._erase(await self._positions("gateway", topic, up_to))

    async def _positions(self, writer: str, topic: str, up_to: int) -> list[int]:
        found: list[int] = []
        async for page in self._log.pages(self._log_id, writer=writer, topic=topic):
            found += [position(message) for message in page.messages]
            if found and found[-1] > up_to:
                break
        return [one for one in found if one <= up_to]

    async def _erase(self, positions: Sequence[int]) -> None:
        for one in positions:
            try:
                await self._log.js.delete_msg(subjects.AWARENESS_STREAM, one)
            except APIError as error:
                if error.err_code not in _NO_MESSAGE:
                    raise Unavailable(f"The event log did not delete a message: {error.description}.") from error
            except (TimeoutError, NatsError) as error:
                raise Unavailable("The event log does not answer; what is to be erased is erased later.") from error
