"""The sessions that an executor holds in memory, and the recording of what must not be lost while the log is away.

Owns which sessions are held, and their number. Does not own what is taken (`voxbridge.services.tools.core.step`) nor how it is recorded
(`voxbridge.services.tools.session.session`). A crash loses nothing that the log does not have.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Final

from voxbridge.services.tools.core.inputs import CallInput, Input
from voxbridge.services.tools.session.faulted import faulted
from voxbridge.services.tools.session.intake import Intake
from voxbridge.services.tools.session.session import Decide, Perform, Session
from voxbridge.shared.clock import Clock
from voxbridge.shared.errors import Conflict, VoxbridgeError
from voxbridge.shared.log.reader import Log
from voxbridge.shared.step.effects import Tasks
from voxbridge.shared.step.journal import LogInput

SESSIONS_KEPT: Final = 1_024
RECORD_TRIES: Final = 8

_log = logging.getLogger(__name__)


class Sessions:
    """The sessions of the executor `process_id`; `decide` and `perform` are theirs (see `Session`)."""

    def __init__(self, log: Log, clock: Clock, intake: Intake, *, process_id: str, decide: Decide, perform: Perform) -> None:
        self._log = log
        self._clock = clock
        self._intake = intake
        self._process_id = process_id
        self._decide = decide
        self._perform = perform
        self._held: OrderedDict[str, Session] = OrderedDict()
        self._opened = 0
        self._closing = Tasks[None]("the sessions of the tool executor")

    def __len__(self) -> int:
        return len(self._held)

    def held(self, sid: str) -> Session | None:
        """Return a session that is in memory, or None."""
        return self._held.get(sid)

    def of(self, sid: str) -> Session:
        """Return the session of this id in this process; open it at its first input."""
        session = self._held.get(sid)
        if session is None:
            self._opened += 1
            stem = f"{self._process_id}-{self._opened}"
            session = Session(self._log, sid, stem=stem, clock=self._clock, decide=self._decide, perform=self._perform)
            self._held[sid] = session
            self._forget_idle(sid)
        self._held.move_to_end(sid)
        return session

    def _forget_idle(self, keep: str) -> None:
        if len(self._held) <= SESSIONS_KEPT:
            return
        for sid, session in self._held.items():
            if sid != keep and not session.busy and not self._intake.holds_any(sid):
                del self._held[sid]
                self._closing.background(session.close())
                return

    async def take(self, session: Session, input: Input | LogInput) -> None:
        """Take an input. One that cannot be taken, whatever it raised, ends the call that it is about (`core/faults.py`): delivered again,
        it would raise again. Raises `UNAVAILABLE` and `CONFLICT` when the log did not accept it, and what was raised by an input that is
        about no call."""
        try:
            await session.take(input)
        except Exception as error:
            if isinstance(error, Conflict) or (isinstance(error, VoxbridgeError) and error.retryable):
                raise
            await session.opened()
            fault = faulted(session.state, input, error)
            if fault is None:
                raise
            _log.exception("session %s: a %s could not be taken, and ends the call %s.", session.sid, _kind(input), fault.call_id)
            await session.take(fault)

    async def record(self, session: Session, input: Input | LogInput) -> None:
        """Take an input that must not be lost while the log is away. After the last try its message is released, so that the call is
        delivered again: one that runs is seen as interrupted, and of one that has ended what was left to do is done."""
        wait = 0.2
        for _ in range(RECORD_TRIES):
            try:
                await self.take(session, input)
            except VoxbridgeError as error:
                _log.warning("session %s: %s; tried again.", session.sid, error.message)
                await asyncio.sleep(wait)
                wait = min(wait * 2, 5.0)
            else:
                return
        if isinstance(input, CallInput):
            call = session.state.open.get(input.call_id)
            seq = session.state.ended.get(input.call_id) if call is None else call.seq
            if seq is not None:
                self._intake.release(session.sid, seq)
        _log.error("session %s: gave up on %s.", session.sid, type(input).__name__)

    async def close(self, timeout_s: float) -> None:
        """Write the rest of the journals of sessions that take nothing now."""
        await self._closing.background_idle(timeout_s)
        for session in self._held.values():
            if not session.busy:
                await session.close()


def _kind(input: Input | LogInput) -> str:
    return type(input.recorded.event if isinstance(input, LogInput) else input).__name__
