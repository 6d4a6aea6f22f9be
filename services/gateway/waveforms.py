"""Waveforms of sessions: peaks of the recorded audio, or of what a live session said in the last seconds.

Owns which stream is read and how much of it for one request. Recorded audio is read once, page by page, and only its peaks are kept,
for the sessions that were looked at last; a long recording is therefore given in parts. Nothing is lost in a crash here.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from shared import bus
from shared.config import Config
from shared.log import Log, position

if TYPE_CHECKING:
    from services.gateway.peaks import Peaks

BINS_LIMIT: Final = 4_000
KEPT: Final = 32
"""Channels whose peaks are kept; a session has two."""

LONGEST_MS: Final = 6 * 3_600_000
"""Of a longer session, the first six hours."""

PAGE: Final = 250
"""Frames that are read at a time: events of live sessions wait no longer than those take."""

BUDGET_S: Final = 0.25
"""How long one request reads; the rest is for the next one."""


class Channel:
    """What was read of one channel."""

    def __init__(self, stream: str, subject: str, peaks: Peaks) -> None:
        self.stream = stream
        self.subject = subject
        self.peaks = peaks
        self.after = 0
        self.complete = False
        self.reading = asyncio.Lock()


class Waveforms:
    """Reads what was recorded."""

    def __init__(self, log: Log, config: Config) -> None:
        self._log = log
        self._recording = config.record is not None
        self._kept: OrderedDict[tuple[str, str], Channel] = OrderedDict()

    async def waveform(
        self, sid: str, channel: str, *, began_ms: int, live: bool, from_ms: int, to_ms: int | None, bins: int
    ) -> dict[str, Any]:
        """The peaks of a channel from `from_ms` to `to_ms` of the session (by default to the end of its audio).

        `complete` is false while a long recording is being read: asked again, it goes on. Raises `UNAVAILABLE`.
        """
        found = self._channel(sid, channel, began_ms, live=live)
        async with found.reading:
            await self._read_on(found)
        peaks = found.peaks
        end_ms = peaks.end_ms if to_ms is None else to_ms
        recorded = found.stream == bus.RECORD_STREAM and peaks.end_ms > 0
        answer: dict[str, Any] = {
            "recorded": recorded,
            "source": "record" if recorded else "live" if peaks.end_ms > 0 else "none",
            "channel": channel,
            "from_ms": from_ms,
            "to_ms": max(end_ms, from_ms),
            "complete": found.complete,
            "low": [],
            "high": [],
        }
        if peaks.end_ms > from_ms and end_ms > from_ms:
            answer["low"], answer["high"] = await asyncio.to_thread(peaks.between, from_ms, end_ms, bins)
        return answer

    def _channel(self, sid: str, channel: str, began_ms: int, *, live: bool) -> Channel:
        # numpy is not loaded until somebody looks: a gateway starts within its second.
        from services.gateway.peaks import Peaks

        # What is live and not recorded is still in the memory that bridges a takeover, for ten seconds.
        stream = bus.AUDIO_STREAM if live and not self._recording else bus.RECORD_STREAM
        found = self._kept.get((sid, channel))
        if found is None or (found.stream != stream and not found.peaks.end_ms):
            passing = bus.audio_in if channel == "in" else bus.audio_out
            subject = bus.recorded(sid, channel) if stream == bus.RECORD_STREAM else passing(sid)
            found = self._kept[sid, channel] = Channel(stream, subject, Peaks(channel, began_ms))
        self._kept.move_to_end((sid, channel))
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found

    async def _read_on(self, channel: Channel) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + BUDGET_S
        more = True
        while more and loop.time() < until:
            page = await self._log.frames(channel.stream, channel.subject, after=channel.after, limit=PAGE)
            if page.messages:
                await asyncio.to_thread(channel.peaks.take, [message.data for message in page.messages])
                channel.after = position(page.messages[-1])
            more = page.more
        channel.complete = not more
