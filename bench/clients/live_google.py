"""Control client of the stand-in for Gemini Live, and its record of a caller's numbered frames.

Owns the control connection; the process is that of `realtime.google`, its commands are those of `tests.fakes.gemini.process`. A crash here
loses one measurement.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench.clients.live_call import LiveCall, number_of
from bench.stack import StackError
from tests.fakes.gemini.process import CONTROL, LINE_LIMIT, Command, Connection, Report, Seen, Told

ANSWER_S: Final = 10.0
ARRIVAL_S: Final = 2.0
"""Seconds until frames under way count as lost."""

POLL_S: Final = 0.01
REPORT_LIMIT: Final = 64 * 1024 * 1024
"""Bytes of a report."""


class Google:
    """Control client of the stand-in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    @asynccontextmanager
    async def of(cls, folder: Path) -> AsyncIterator[Google]:
        """Connect to the stand-in whose files are in this folder."""
        reader, writer = await asyncio.open_unix_connection(folder / CONTROL, limit=REPORT_LIMIT)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()

    async def tell(self, command: Command) -> int:
        """Send a command. Return the number of the newest connection. Raises `StackError` when the command fails."""
        told = msgspec.json.decode(await self._ask(command), type=Told)
        if told.error:
            raise StackError(f"The stand-in for Gemini does not follow: {told.error}")
        return told.newest

    async def seen(self, after: int = 0) -> list[Connection]:
        """Return the connections with higher numbers."""
        return msgspec.json.decode(await self._ask(Report(after)), type=Seen).connections

    async def heard_all(self, call: LiveCall, after: int) -> tuple[list[Connection], int]:
        """Return the connections with higher numbers, and how many of the frames sent by now are missing `ARRIVAL_S` later."""
        sent, end = call.sent, time.monotonic() + ARRIVAL_S
        while True:
            seen = await self.seen(after)
            lost = len(lost_frames(sent, seen))
            if not lost or time.monotonic() > end:
                return seen, lost
            await asyncio.sleep(POLL_S)

    async def _ask(self, command: Command) -> bytes:
        line = msgspec.json.encode(command) + b"\n"
        if len(line) > LINE_LIMIT:
            raise ValueError(f"A command of {len(line)} bytes; {LINE_LIMIT} are the limit.")
        self._writer.write(line)
        async with asyncio.timeout(ANSWER_S):
            answer = await self._reader.readline()
        if not answer:
            raise StackError("The stand-in for Gemini is gone.")
        return answer


def lost_frames(sent: int, seen: Sequence[Connection]) -> set[int]:
    """Return the numbers of a call's frames that reached none of its connections."""
    came = {number_of(mark) for connection in seen for mark in connection.marks}
    return {number for number in range(sent) if number not in came}
