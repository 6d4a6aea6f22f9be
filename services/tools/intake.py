"""Where calls come in: the durable consumer that all executors share, and the messages that this process holds.

An unacknowledged message is open work: it is renewed while its call is open, acknowledged when the call is over, given back when this
process drains, and delivered to another process `ACK_WAIT_S` after this one died. So the consumer is the index of open work, and a
crash here loses none of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.errors import APIError

from shared import bus, events, streams
from shared.errors import VoxbridgeError
from shared.events.voice import ToolCalled
from shared.log import Log

DURABLE: Final = streams.TOOLS_CONSUMER
ACK_WAIT_S: Final = streams.TOOLS_ACK_WAIT_S
HEARTBEAT_S: Final = 3.0
PULL_S: Final = 0.5

_log = logging.getLogger(__name__)


class Intake:
    """The messages of this process. `take` gets each event once for as long as its message is held."""

    def __init__(self, log: Log, take: Callable[[events.Recorded], None]) -> None:
        self.taken = 0
        """Messages that this process was given."""
        self._log = log
        self._take = take
        self._held: dict[tuple[str, int], Msg] = {}
        self._sessions: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._held)

    def holds(self, sid: str, seq: int) -> bool:
        """Whether the work of this event is open here."""
        return (sid, seq) in self._held

    def holds_any(self, sid: str) -> bool:
        """Whether any work of this session is open here."""
        return self._sessions[sid] > 0

    async def ensure(self) -> None:
        """Make the consumer, or bring it to these settings."""
        await streams.ensure_consumer(self._log.js, streams.CONSUMERS[DURABLE])

    async def run(self, stopping: asyncio.Event, room: Callable[[], bool], wait: Callable[[float], Awaitable[None]]) -> None:
        """Take messages until told to stop. Without `room` none is taken: the stream is the queue, and other processes take from it."""
        subscription = await self._log.js.pull_subscribe_bind(DURABLE, stream=bus.EVENT_STREAM)
        while not stopping.is_set():
            if not room():
                await wait(PULL_S)
                continue
            try:
                # One at a time: a larger request would wait for its rest.
                for message in await subscription.fetch(1, timeout=PULL_S):
                    await self._receive(message)
            except TimeoutError:
                continue
            except (NatsError, APIError) as error:
                _log.warning("calls cannot be taken now: %s", error)
                await asyncio.sleep(PULL_S)
                await self._ensure_again()
        await subscription.unsubscribe()

    async def renew(self) -> None:
        """Keep what is held from being delivered to others, for ever."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            for message in list(self._held.values()):
                try:
                    await message.in_progress()
                except NatsError as error:
                    _log.warning("open calls cannot be renewed now: %s", error)
                    break

    async def done(self, sid: str, seq: int) -> None:
        """The work of this event is over."""
        message = self.release(sid, seq)
        if message is not None:
            await message.ack()

    async def give_back(self, sid: str, seq: int, *, after_s: float = 0.0) -> None:
        """Have this event delivered again, here or elsewhere."""
        message = self.release(sid, seq)
        if message is not None:
            await message.nak(delay=after_s)

    async def give_all_back(self) -> None:
        """Hand all open work to other processes at once."""
        for sid, seq in list(self._held):
            await self.give_back(sid, seq)

    def release(self, sid: str, seq: int) -> Msg | None:
        """Hold this message no longer; unless it is answered it is delivered again after `ACK_WAIT_S`."""
        message = self._held.pop((sid, seq), None)
        if message is not None:
            self._sessions[sid] -= 1
            if not self._sessions[sid]:
                del self._sessions[sid]
        return message

    async def _receive(self, message: Msg) -> None:
        sid, writer, visible = bus.parse_event_subject(message.subject)
        seq = message.metadata.sequence.stream
        if (sid, seq) in self._held:
            self._held[sid, seq] = message
            return
        try:
            recorded = events.decode(message.data, seq=seq, writer=writer, visible=visible)
        except VoxbridgeError as error:
            _log.error("%s", error.message)
            await message.term()
            return
        if isinstance(recorded.event, events.Unknown) or (isinstance(recorded.event, ToolCalled) and recorded.event.kind == "browser"):
            await message.ack()
            return
        self.taken += 1
        self._held[sid, seq] = message
        self._sessions[sid] += 1
        self._take(recorded)

    async def _ensure_again(self) -> None:
        try:
            await self.ensure()
        except VoxbridgeError as error:
            _log.warning("the consumer cannot be made now: %s", error)
