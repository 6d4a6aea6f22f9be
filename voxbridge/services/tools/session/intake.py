"""The intake of calls: the durable consumers that all executors share, one on each stream of the log, and the messages that this process
holds.

An unacknowledged message is open work: it is renewed while its call is open, acknowledged when the call is over, given back when this
process drains, and delivered to another process `ACK_WAIT_S` after this one died. So the consumers are the index of open work, and a crash
here loses none of it.

A redelivered message does not prove that its process died: the server may have been away, or the process too busy to renew. So the receiver
asks the other processes first, and leaves the message to the process that holds it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import ConsumerConfig
from nats.js.errors import APIError

from voxbridge.services.tools.core.step import Decision
from voxbridge.services.tools.session.pull import Pull
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.events.gateway import TaskCancelRequested, ToolRequested
from voxbridge.shared.events.voice import SessionEnded, TasksWanted, ToolCalled, ToolCancelled
from voxbridge.shared.log import streams
from voxbridge.shared.log.reader import Log, decode_delivered, is_imported

DURABLE: Final = subjects.TOOLS_CONSUMER
CONSUMERS: Final = tuple((stream, wanted) for stream, wanted in streams.DURABLES if wanted.durable_name == DURABLE)
ACK_WAIT_S: Final = streams.TOOLS_ACK_WAIT_S
HEARTBEAT_S: Final = 0.6
"""Seconds between two renewals; three of them fit into `ACK_WAIT_S`."""

PULL_S: Final = 0.5
HELD: Final = "vx.svc.tools.held"
"""Subject that asks all executors for the holder of a message; only the holder answers."""

ASK_S: Final = 0.4
RENEWED_AT_ONCE: Final = 256
DELIVERIES_LIMIT: Final = 5
"""Deliveries of an event that fails permanently; after that, it is logged and dropped."""

_log = logging.getLogger(__name__)


class Held(msgspec.Struct, frozen=True):
    """A message that is not yet acknowledged, and the event in it."""

    message: Msg
    recorded: events.Recorded
    handed_over: bool = False
    """True when another process handed it over."""


class Intake:
    """The messages of this process. `take` gets each event once for as long as its message is held."""

    def __init__(self, log: Log, take: Callable[[events.Recorded], None], *, process_id: str) -> None:
        self.taken = 0
        """Messages delivered to this process."""
        self.refused = 0
        """Messages that could not be processed, and will not be delivered again."""
        self._log = log
        self._take = take
        self._process_id = process_id
        self._held: dict[tuple[str, int], Held] = {}
        self._sessions: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._held)

    def holds(self, sid: str, seq: int) -> bool:
        """Tell whether the work of this event is open here."""
        return (sid, seq) in self._held

    def holds_any(self, sid: str) -> bool:
        """Tell whether any work of this session is open here."""
        return self._sessions[sid] > 0

    def held(self) -> list[events.Recorded]:
        """Return the events whose work is open here."""
        return [held.recorded for held in self._held.values()]

    async def ensure(self) -> None:
        """Create or update the consumers, and subscribe to the questions of other processes."""
        for stream, wanted in CONSUMERS:
            await streams.ensure_consumer(self._log.js, wanted, stream)
        await self._log.nc.subscribe(HELD, cb=self._asked)

    async def run(self, stopping: asyncio.Event, room: Callable[[], int], wait: Callable[[float], Awaitable[None]]) -> None:
        """Take as many messages as there is `room` for, until `stopping` is set. The others wait in the stream, and other processes take
        them."""
        async with asyncio.TaskGroup() as both:
            for stream, wanted in CONSUMERS:
                both.create_task(self._pull(stream, wanted, stopping, room, wait))

    async def _pull(
        self,
        stream: str,
        wanted: ConsumerConfig,
        stopping: asyncio.Event,
        room: Callable[[], int],
        wait: Callable[[float], Awaitable[None]],
    ) -> None:
        pull = Pull(self._log.nc, stream, DURABLE, self.receive)
        await pull.start()
        while not stopping.is_set():
            free = room()
            if free <= 0:
                await wait(PULL_S)
                continue
            try:
                await pull.take(-(-free // len(CONSUMERS)), PULL_S)  # a share each, and never less than one
            except (NatsError, APIError) as error:
                _log.warning("calls cannot be taken now: %s", error)
                await asyncio.sleep(PULL_S)
                await self._ensure_again(stream, wanted)
        await pull.stop()

    async def renew(self) -> None:
        """Renew the held messages forever, so that they are not redelivered."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            for number, held in enumerate(list(self._held.values()), 1):
                try:
                    await held.message.in_progress()
                except NatsError as error:
                    _log.warning("open calls cannot be renewed now: %s", error)
                    break
                if number % RENEWED_AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def done(self, sid: str, seq: int) -> None:
        """Acknowledge this event: its work is over."""
        message = self.release(sid, seq)
        if message is not None:
            await message.ack()

    async def give_back(self, sid: str, seq: int, *, after_s: float = 0.0) -> None:
        """Have this event delivered again, here or elsewhere."""
        message = self.release(sid, seq)
        if message is not None:
            await message.nak(delay=after_s)

    async def give_all_back(self) -> None:
        """Give all open work to other processes at once."""
        for sid, seq in list(self._held):
            await self.give_back(sid, seq)

    async def failed(self, sid: str, seq: int, *, after_s: float) -> bool:
        """Give back an event whose processing failed permanently, or drop it after `DELIVERIES_LIMIT` deliveries. Return whether it was
        dropped."""
        held = self._held.get((sid, seq))
        if held is None or held.message.metadata.num_delivered < DELIVERIES_LIMIT:
            await self.give_back(sid, seq, after_s=after_s)
            return False
        self.release(sid, seq)
        self.refused += 1
        _log.error("session %s: the %s at log position %d is given up after %d tries.", sid, held.recorded.type, seq, DELIVERIES_LIMIT)
        await held.message.term()
        return True

    def release(self, sid: str, seq: int) -> Msg | None:
        """Hold this message no longer. Unless it is acknowledged, it is delivered again after `ACK_WAIT_S`."""
        held = self._held.pop((sid, seq), None)
        if held is None:
            return None
        self._sessions[sid] -= 1
        if not self._sessions[sid]:
            del self._sessions[sid]
        return held.message

    async def is_elsewhere(self, sid: str, seq: int) -> bool:
        """Tell whether this message was redelivered although the process that holds it is alive and continues its work."""
        held = self._held.get((sid, seq))
        if held is None or held.message.metadata.num_delivered == 1:
            return False
        return await self.held_elsewhere(sid, seq)

    async def held_elsewhere(self, sid: str, seq: int) -> bool:
        """Tell whether another process has the work of this event open."""
        try:
            await self._log.nc.request(HELD, json.dumps([self._process_id, sid, seq]).encode(), timeout=ASK_S)
        except (NatsError, TimeoutError):
            return False
        return True

    async def _asked(self, message: Msg) -> None:
        try:
            process_id, sid, seq = json.loads(message.data)
        except ValueError:
            return
        if process_id != self._process_id and (held := self._held.get((sid, seq))) is not None:
            await held.message.in_progress()
            await message.respond(b"")

    def hold(self, held: Held) -> None:
        """Hold a message until its work is over."""
        sid = held.recorded.sid
        self._held[sid, held.recorded.seq] = held
        self._sessions[sid] += 1

    def part_with(self, sid: str, seq: int) -> Held | None:
        """Hold this message no longer, to offer it to another process, and return it; None if that process may have had it already."""
        held = self._held.get((sid, seq))
        if held is None or held.handed_over or held.message.metadata.num_delivered > 1:
            return None
        self.release(sid, seq)
        return held

    async def receive(self, message: Msg, *, handed_over: bool = False) -> None:
        """Hold a delivered message and pass its event on, if it is work for an executor."""
        recorded = decode_delivered(message)
        sid, seq = recorded.sid, recorded.seq
        if (sid, seq) in self._held:
            self._held[sid, seq] = Held(message, recorded, handed_over)
            return
        if isinstance(recorded.event, events.Unreadable):
            self.refused += 1
            await message.term()
            return
        if is_imported(message) or not _is_ours(recorded.event):
            await message.ack()
            return
        self.taken += 1
        self.hold(Held(message, recorded, handed_over))
        self._take(recorded)

    async def _ensure_again(self, stream: str, wanted: ConsumerConfig) -> None:
        try:
            await streams.ensure_consumer(self._log.js, wanted, stream)
        except VoxbridgeError as error:
            _log.warning("the consumer cannot be made now: %s", error)


def _is_ours(event: events.Event) -> bool:
    """Tell whether an event is work for an executor; the same subject also carries handoffs and changes of model."""
    if isinstance(event, ToolCalled):
        return event.kind != "browser"
    return isinstance(event, ToolRequested | ToolCancelled | SessionEnded | TaskCancelRequested | TasksWanted | Decision)
