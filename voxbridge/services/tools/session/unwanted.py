"""Cancelling a task of another session of the account, in whichever process has its call.

A call can only be stopped where it runs, so the others are asked for it first; where nobody has it, its session is told here, and whoever
takes the call next finds it cancelled. A crash here loses the wish; the function that has it is begun again.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from voxbridge.services.tools.core.calls import task_id
from voxbridge.services.tools.core.inputs import TaskOver, TaskUnwanted
from voxbridge.services.tools.core.state import Call, State
from voxbridge.services.tools.session.accounts import Accounts
from voxbridge.services.tools.session.intake import Intake
from voxbridge.services.tools.session.sessions import Sessions
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.reader import Log

SUBJECT: Final = "vx.svc.tools.unwanted"
"""Subject on which the process that has a task is asked to cancel it; only that one answers."""

ASK_S: Final = 2.0
"""Seconds within which the process that has the task answers."""

_log = logging.getLogger(__name__)


class Unwanted:
    """The wishes of users to end tasks of other sessions."""

    def __init__(self, log: Log, intake: Intake, sessions: Sessions, accounts: Accounts, *, process_id: str) -> None:
        self._log = log
        self._intake = intake
        self._sessions = sessions
        self._accounts = accounts
        self._process_id = process_id

    async def start(self) -> None:
        """Listen to what other processes ask."""
        await self._log.nc.subscribe(SUBJECT, cb=self._asked)

    async def cancel(self, account: str, sid: str, task: str) -> None:
        """Cancel a task. One that is over is listed no more. Raises `UNAVAILABLE`."""
        session = self._sessions.of(sid)
        await session.refreshed()
        call = _call(session.state, task)
        if call is None:
            await self._accounts.of(account).take(TaskOver(task=f"{sid} {task.removeprefix('task-')}"))
            return
        if not self._intake.holds(sid, call.seq) and await self._elsewhere(sid, task):
            return
        await session.take(TaskUnwanted(task_id=task))

    async def _elsewhere(self, sid: str, task: str) -> bool:
        question = msgspec.json.encode([self._process_id, sid, task])
        try:
            await self._log.nc.request(SUBJECT, question, timeout=ASK_S)
        except (NatsError, TimeoutError):
            return False
        return True

    async def _asked(self, message: Msg) -> None:
        try:
            process_id, sid, task = msgspec.json.decode(message.data, type=tuple[str, str, str])
        except msgspec.MsgspecError:
            return
        session = self._sessions.held(sid)
        if process_id == self._process_id or session is None:
            return
        call = _call(session.state, task)
        if call is None or not self._intake.holds(sid, call.seq):
            return
        try:
            await session.take(TaskUnwanted(task_id=task))
        except VoxbridgeError as error:
            _log.warning("session %s: %s cannot be cancelled now: %s", sid, task, error.message)
        else:
            await message.respond(b"")


def _call(state: State, task: str) -> Call | None:
    return next((call for call in state.open.values() if task_id(call.id) == task), None)
