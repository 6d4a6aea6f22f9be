"""The ends of calls and tasks, from the logs of sessions and accounts: two durable consumers, one on each stream.

Owns what of an end is an error, and whose it is. A message is acknowledged when its account's log has it; whoever dies before leaves it to
the next process, and the core knows one that it has taken.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext

from voxbridge.services.awareness.core.inputs import CallEnded
from voxbridge.shared import events
from voxbridge.shared.awareness.text import without_secrets
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.gateway import SessionRequested
from voxbridge.shared.events.tools import TaskCompleted, TaskFailed, ToolCompleted, ToolFailed, ToolInterrupted
from voxbridge.shared.log import streams
from voxbridge.shared.log.reader import Log, decode_delivered, is_imported

DURABLE: Final = subjects.AWARENESS_CONSUMER
CONSUMERS: Final = tuple((stream, wanted) for stream, wanted in streams.DURABLES if wanted.durable_name == DURABLE)
FETCH_S: Final = 5.0
AGAIN_S: Final = 1.0
BATCH: Final = 32
OWNERS_KEPT: Final = 1_024
MESSAGE_LIMIT: Final = 2_048
_NO_NEWS: Final = (Code.CANCELLED.value, Code.INTERRUPTED.value, Code.NOT_FOUND.value)
"""Codes of ends that are no error: the user wanted it, knows already, or was answered that there is no such thing."""

_INTERRUPTED: Final = "It was interrupted: whether it was done is not known."

_log = logging.getLogger(__name__)


class Ends:
    """The ends of calls; `take` gets each with its account, and returns once the log has it."""

    def __init__(self, log: Log, take: Callable[[str, CallEnded], Awaitable[None]]) -> None:
        self.taken = 0
        self._log = log
        self._take = take
        self._owners: OrderedDict[str, str] = OrderedDict()

    async def ensure(self) -> None:
        """Create or update the consumers. Raises `UNAVAILABLE`."""
        for stream, wanted in CONSUMERS:
            await streams.ensure_consumer(self._log.js, wanted, stream)

    async def run(self) -> None:
        """Take ends until cancelled."""
        async with asyncio.TaskGroup() as both:
            for stream, _ in CONSUMERS:
                both.create_task(self._pull(stream))

    async def _pull(self, stream: str) -> None:
        subscription: JetStreamContext.PullSubscription | None = None
        while True:
            try:
                if subscription is None:
                    subscription = await self._log.js.pull_subscribe_bind(durable=DURABLE, stream=stream)
                messages = await subscription.fetch(BATCH, timeout=FETCH_S)
            except TimeoutError:
                continue
            except NatsError as error:
                _log.warning("the ends of calls cannot be read now: %s", error or type(error).__name__)
                await asyncio.sleep(AGAIN_S)
                continue
            for message in messages:
                await self._receive(message)

    async def _receive(self, message: Msg) -> None:
        try:
            recorded = decode_delivered(message)
            ended = None if is_imported(message) else of(recorded)
            owner = await self._owner(recorded.sid) if ended is not None else ""
            if ended is not None and owner:
                await self._take(owner, ended)
                self.taken += 1
            await message.ack()
        except (VoxbridgeError, NatsError) as error:
            _log.warning("the end of a call waits: %s", error)
            try:
                await message.nak(delay=AGAIN_S)
            except NatsError:
                return  # it is delivered again when its time is over

    async def _owner(self, sid: str) -> str:
        """Return the account of a session or of an account's own log; empty where the log does not have it any more."""
        if account := subjects.account_of(sid):
            return account
        if sid not in self._owners:
            found = await self._log.last([subjects.event_subject(sid, "gateway", visible=False, event_type="session.requested")])
            request = found[0].event if found else None
            self._owners[sid] = request.account if isinstance(request, SessionRequested) else ""
            while len(self._owners) > OWNERS_KEPT:
                self._owners.popitem(last=False)
        return self._owners[sid]


def of(recorded: events.Recorded) -> CallEnded | None:
    """Return the end that an event tells; None for one that tells none, or that the user wanted."""
    match recorded.event:
        case ToolCompleted(name=function) | TaskCompleted(function=function):
            code = message = ""
        case ToolFailed(name=function, error=error) | TaskFailed(function=function, error=error):
            if error.code in _NO_NEWS:
                return None
            code, message = str(error.code), without_secrets(error.message[:MESSAGE_LIMIT]) or "It failed."
        case ToolInterrupted(name=function):
            code, message = Code.INTERRUPTED.value, _INTERRUPTED
        case _:
            return None
    return CallEnded(sid=recorded.sid, seq=recorded.seq, function=function, at=recorded.ts, code=code, message=message)
