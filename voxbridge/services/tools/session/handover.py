"""Handing work to the process that serves its session, so that several processes do not write in one session by turns.

The consumer delivers a message to any executor. One that writes in a session after another finds its state outdated and its append
refused, and must read the session again; with two executors that cost more than the second one brought. So each hears who ends calls in
which session, and hands over what another one serves. Owns that knowledge and the offers. Correctness does not rest on it but on the log's
fence. A message that is handed over stays unacknowledged: if the process that took it dies, it is delivered again. A crash here loses the
knowledge of who serves what, which comes again with the next calls.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.js.api import Header

from voxbridge.services.tools.session.intake import ASK_S, Intake
from voxbridge.services.tools.session.session import WRITER
from voxbridge.shared.bus import subjects
from voxbridge.shared.log.reader import Log

TAKE: Final = "vx.svc.tools.take"
"""Subject, followed by the id of a process, on which that process is offered a message."""

OWNERS_LIMIT: Final = 16_384
"""Sessions whose process is remembered; a forgotten one is served by whoever gets its next call."""

_LIVE: Final = tuple(subjects.live_subject(kind, WRITER, "c", ">") for kind in ("*", subjects.ACCOUNTS))
_TAKEN: Final = b"taken"
_FULL: Final = b"full"
_STOPPING: Final = b"stopping"


class Owners:
    """The processes that serve sessions, as far as one of them heard. All that hear the same come to the same conclusion."""

    def __init__(self) -> None:
        self._owners: OrderedDict[str, str] = OrderedDict()

    def of(self, sid: str) -> str:
        """Return the process that serves a session; empty when it is not known."""
        return self._owners.get(sid, "")

    def heard(self, message_id: str) -> None:
        """Take note of the id of an executor's message: it names the session and the process."""
        sid, _, rest = message_id.partition(f".{WRITER}.")
        process = rest.partition(".")[0].rsplit("-", 2)[0]
        if not process:
            return
        known = self._owners.get(sid, process)
        # Where two began in one session at a time, the same one must win in the eyes of all, and not always the same process.
        self.set(sid, max(known, process, key=lambda one: (zlib.crc32(f"{sid}{one}".encode()), one)))

    def set(self, sid: str, process: str) -> None:
        """Take note that this process serves a session."""
        self._owners[sid] = process
        self._owners.move_to_end(sid)
        if len(self._owners) > OWNERS_LIMIT:
            self._owners.popitem(last=False)

    def forget(self, sid: str) -> None:
        """Forget who serves a session, because that process does no more."""
        self._owners.pop(sid, None)


class Handover:
    """The offers that this process makes and takes. `room` says how many messages it can still take; None while it stops."""

    def __init__(self, log: Log, intake: Intake, *, process_id: str, room: Callable[[], int | None]) -> None:
        self.given = 0
        """Messages that other processes took."""
        self.owners = Owners()
        """The process that serves each session."""
        self._nc = log.nc
        self._intake = intake
        self._process_id = process_id
        self._room = room

    async def start(self) -> None:
        """Subscribe to offers, and to the live copies of what executors write."""
        await self._nc.subscribe(f"{TAKE}.{self._process_id}", cb=self._offered)
        for subject in _LIVE:
            await self._nc.subscribe(subject, cb=self._heard)

    async def offer(self, sid: str, seq: int) -> bool:
        """Offer a held message to the process that serves its session; return whether it is no longer this process's.

        A message that was delivered before, or handed over to here, is not offered. Without an answer nobody knows whether it was taken:
        it is held no longer, and delivered again unless the other one holds it.
        """
        owner = self.owners.of(sid)
        if not owner or owner == self._process_id:
            return False
        held = self._intake.part_with(sid, seq)
        if held is None:
            return False
        message = held.message
        offer = msgspec.msgpack.encode((message.reply, message.subject, message.data))
        try:
            answer = (await self._nc.request(f"{TAKE}.{owner}", offer, timeout=ASK_S)).data
        except NoRespondersError:
            answer = _STOPPING
        except (NatsError, TimeoutError):
            self.owners.forget(sid)
            return True
        if answer == _TAKEN:
            self.given += 1
            return True
        if answer == _STOPPING:
            self.owners.forget(sid)
        self._intake.hold(held)
        return False

    async def _offered(self, message: Msg) -> None:
        room = self._room()
        if room is None or room <= 0:
            await message.respond(_STOPPING if room is None else _FULL)
            return
        try:
            reply, subject, data = msgspec.msgpack.decode(message.data, type=tuple[str, str, bytes])
        except msgspec.MsgspecError:
            return
        self.owners.set(subjects.parse_event_subject(subject)[0], self._process_id)
        await self._intake.receive(Msg(self._nc, subject, reply, data), handed_over=True)
        await message.respond(_TAKEN)

    async def _heard(self, message: Msg) -> None:
        self.owners.heard((message.headers or {}).get(Header.MSG_ID, ""))
