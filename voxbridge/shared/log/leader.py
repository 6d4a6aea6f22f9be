"""Questions to the leader of the event log, for a log with replicas: any replica answers a direct get, even one that is behind.

Owns the questions whether there are replicas and what the last position of a subject is. On one server only the first is asked, once: there
the only server answers every direct get. Does not own reading (`voxbridge.shared.log.reader`). A crash here loses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.api import Header, RawStreamMsg
from nats.js.errors import NotFoundError

from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Unavailable

ASK_S: Final = 1.0
"""Seconds that one request waits. A leader that died answers none, and its followers elect another within a few seconds."""

_EVERYTHING: Final = {
    subjects.ACCOUNT_STREAM: subjects.ACCOUNT_SUBJECTS,
    subjects.AWARENESS_STREAM: subjects.AWARENESS_SUBJECTS,
    subjects.TERMINALS_STREAM: subjects.TERMINALS_SUBJECTS,
}
_AGAIN_S: Final = 0.05
T = TypeVar("T")


class Leader:
    """Client for the leaders of the log's streams. `patience_s` is how long a request is repeated while there is no leader."""

    def __init__(self, nc: Client, *, patience_s: float) -> None:
        self._js = nc.jetstream(timeout=min(ASK_S, patience_s))
        self._patience_s = patience_s
        self._replicas: dict[str, int] = {}

    async def has_followers(self, stream: str = subjects.EVENT_STREAM) -> bool:
        """Return whether a stream of the log has replicas; asked once, until `forget`. Raises `UNAVAILABLE`."""
        if stream not in self._replicas:
            try:
                config = (await self._ask(lambda: self._js.stream_info(stream))).config
            except NotFoundError as error:
                raise Unavailable("The event log is not there yet; it is asked again.", retry_after_ms=1_000) from error
            self._replicas[stream] = config.num_replicas or 1
        return self._replicas[stream] > 1

    def forget(self) -> None:
        """Forget the number of replicas, which may have changed."""
        self._replicas.clear()

    async def last(self, subject: str) -> tuple[int, str]:
        """Return `(position, id)` of the leader's last event under a subject; `(0, "")` without one. Raises `UNAVAILABLE`."""
        found = await self._last(subject)
        return (found.seq or 0, (found.headers or {}).get(Header.MSG_ID, "")) if found is not None else (0, "")

    async def subject_at(self, stream: str, seq: int) -> str:
        """Return the subject of the leader's event at a position; empty if there is none. Raises `UNAVAILABLE`."""
        try:
            return (await self._ask(lambda: self._js.get_msg(stream, seq=seq))).subject or ""
        except NotFoundError:
            return ""

    async def newest(self, stream: str = subjects.EVENT_STREAM) -> tuple[int, str]:
        """Return position and subject of the last event of a whole stream; `(0, "")` for an empty one. Raises `UNAVAILABLE`."""
        found = await self._last(_EVERYTHING.get(stream, subjects.EVENT_SUBJECTS))
        return (found.seq or 0, found.subject or "") if found is not None else (0, "")

    async def _last(self, subject: str) -> RawStreamMsg | None:
        try:
            return await self._ask(lambda: self._js.get_msg(subjects.stream_holding(subject), subject=subject))
        except NotFoundError:
            return None

    async def _ask(self, question: Callable[[], Awaitable[T]]) -> T:
        """Repeat a request until it is answered; `NotFoundError` counts as an answer and is raised."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._patience_s
        while True:
            try:
                return await question()
            except NotFoundError:
                raise
            except (TimeoutError, NatsError) as error:
                if loop.time() + _AGAIN_S >= end:
                    reason = str(error) or type(error).__name__
                    message = f"The leader of the event log does not answer ({reason}); it is asked again."
                    raise Unavailable(message, retry_after_ms=1_000) from error
                await asyncio.sleep(_AGAIN_S)
