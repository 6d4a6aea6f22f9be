"""Waveforms of sessions: peaks of the recorded audio, or of the last seconds of a live session.

Owns which stream is read, and how much of it for one request. Recorded audio is read once, page by page, and only its peaks are kept,
for the sessions requested last; a long recording is therefore delivered in parts. Each request looks for the key of the recording: the
peaks of a recording that was erased are dropped. A crash loses nothing here.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import msgspec
from nats.micro.request import Request

from voxbridge.services.voice.questions import Questions
from voxbridge.shared.audio import recordings
from voxbridge.shared.audio.recordings import BINS_LIMIT, CHANNELS, LONGEST_MS, DataKeys, Passed, Waveform
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.log.reader import Log, position

if TYPE_CHECKING:
    from voxbridge.services.voice.audio.peaks import Peaks

KEPT: Final = 32
"""Number of channels whose peaks are kept; a session has two."""

PAGE: Final = 250
"""Frames read at a time: events of live sessions wait no longer than this read takes."""

BLOCKS: Final = 4
"""Blocks of a recording read at a time, of 200 frames each, for the same reason."""

BUDGET_S: Final = 0.25
"""Seconds that one request reads; the rest is left to the next request."""


class Channel:
    """Audio read so far of one channel. `key` opens its recording; it is None where the last seconds are read from the bus."""

    def __init__(self, name: str, key: bytes | None, peaks: Peaks) -> None:
        self.name = name
        self.key = key
        self.peaks = peaks
        self.passed = Passed()
        self.after = 0
        self.complete = False
        self.reading = asyncio.Lock()


class Waveforms:
    """Endpoint that answers requests for waveforms."""

    def __init__(self, log: Log, keys: DataKeys) -> None:
        self._log = log
        self._keys = keys
        self._kept: OrderedDict[tuple[str, str], Channel] = OrderedDict()
        self._questions = Questions(Waveform, "waveform", self._answer)

    async def serve(self, request: Request) -> None:
        """Answer one request; an error is sent as a typed error."""
        await self._questions.serve(request)

    async def _answer(self, asked: Waveform) -> bytes:
        if not (0 < asked.bins <= BINS_LIMIT and 0 <= asked.from_ms <= LONGEST_MS and 0 <= (asked.to_ms or 0) <= LONGEST_MS):
            raise VoxbridgeError(
                Code.INVALID_ARGUMENT, f"A waveform has 1 to {BINS_LIMIT} bins within {LONGEST_MS} ms.", field="bins", limit=BINS_LIMIT
            )
        return msgspec.json.encode(await self.waveform(asked))

    async def waveform(self, asked: Waveform) -> dict[str, Any]:
        """Return the requested peaks.

        `complete` is false while a long recording is being read: the next request continues. Raises `UNAVAILABLE`, and
        `WrongKey` for a recording that was sealed with another vault key.
        """
        sid, channel, from_ms = asked.sid, asked.channel, asked.from_ms
        key = await self._keys.find(sid)
        found = self._channel(sid, channel, asked.began_ms, key)
        async with found.reading:
            if key is not None:
                await self._read_on(sid, found, key)
            elif asked.live:
                await self._read_live(sid, found)
            else:
                found.complete = True
        peaks = found.peaks
        end_ms = peaks.end_ms if asked.to_ms is None else asked.to_ms
        recorded = key is not None and peaks.end_ms > 0
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
            answer["low"], answer["high"] = await asyncio.to_thread(peaks.between, from_ms, end_ms, asked.bins)
        return answer

    def _channel(self, sid: str, channel: str, began_ms: int, key: bytes | None) -> Channel:
        # Imported at the first request for a waveform.
        from voxbridge.services.voice.audio.peaks import Peaks

        found = self._kept.get((sid, channel))
        if found is None or found.key != key:
            found = self._kept[sid, channel] = Channel(channel, key, Peaks(channel, began_ms))
        self._kept.move_to_end((sid, channel))
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found

    async def _read_on(self, sid: str, channel: Channel, key: bytes) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + BUDGET_S
        wanted = CHANNELS.index(channel.name)
        more = True
        while more and loop.time() < until:
            page = await recordings.read(self._log, sid, key, after=channel.after, limit=BLOCKS)
            fresh = [frame for frame in page.frames if channel.passed.fresh(frame)]
            await asyncio.to_thread(channel.peaks.take, [frame.data for frame in fresh if frame.channel == wanted])
            channel.after, more = page.after, page.more
        channel.complete = not more

    async def _read_live(self, sid: str, channel: Channel) -> None:
        """Read what the bus keeps of a live session that is not recorded: its last seconds, which are kept for takeovers."""
        stream, subject = subjects.kept_audio(sid)[CHANNELS.index(channel.name)]
        more = True
        while more:
            page = await self._log.frames(stream, subject, after=channel.after, limit=PAGE)
            if page.messages:
                await asyncio.to_thread(channel.peaks.take, [message.data for message in page.messages])
                channel.after = position(page.messages[-1])
            more = page.more and bool(page.messages)
        channel.complete = True
