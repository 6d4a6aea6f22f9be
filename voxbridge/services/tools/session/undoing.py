"""Taking back what calls did, for the one function that does (`packs/catalogue/functions.py`), whoever calls it.

Owns the order: what is taken back is claimed in the log of the account, then its function's undo runs, then the log says that it was taken
back. A process that dies in between leaves the claim, and the call that is begun again goes on with it. Does not own which call it is
(`voxbridge.services.tools.core.undo`), nor how one is undone (its function).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from voxbridge.services.tools.context import Context, Undone
from voxbridge.services.tools.core.state import Undo
from voxbridge.services.tools.core.undo import key_of
from voxbridge.services.tools.registry import Tool
from voxbridge.services.tools.session.accounts import Accounts
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.tools import ToolUndoable
from voxbridge.shared.log.reader import Log

_TYPE = "tool.undoable"


class Undoing:
    """The undo of an executor with these tools."""

    def __init__(self, log: Log, tools: Mapping[str, Tool], accounts: Callable[[], Accounts]) -> None:
        self._log = log
        self._tools = tools
        self._accounts = accounts

    async def undo(self, context: Context, call_id: str) -> Undone:
        """Take back the named call, or the last one. Raises `UNAVAILABLE`."""
        accounts = self._accounts()
        claimed = await accounts.claim(context.account, context.sid, key_of(context.sid, context.call_id), call_id)
        given = await self._given(context.account, claimed) if claimed else {}
        calls: list[str] = []
        spoken: list[str] = []
        error: VoxbridgeError | None = None
        for one in claimed:
            if error is None and not one.done:
                try:
                    spoken.append(await self._undone(one, given.get(key_of(one.sid, one.call_id)), context))
                except VoxbridgeError as wrong:
                    error = wrong
                await accounts.undone(context.account, one, done=error is None)
            elif error is not None:
                await accounts.undone(context.account, one, done=False)
            if error is None:
                calls.append(one.call_id)
        return Undone(calls=tuple(calls), spoken=tuple(spoken), error=error)

    async def _undone(self, one: Undo, data: Mapping[str, Any] | None, context: Context) -> str:
        tool = self._tools.get(one.function)
        if tool is None or tool.undo is None or data is None:
            message = f"{one.function.replace('_', ' ')} cannot be taken back any more."
            raise VoxbridgeError(Code.NOT_FOUND, message, field="call")
        return await tool.undo({**data, "sid": one.sid}, context)

    async def _given(self, account: str, wanted: list[Undo]) -> dict[str, Mapping[str, Any]]:
        """Return what the undo of each call is given."""
        keys = {key_of(one.sid, one.call_id) for one in wanted}
        found: dict[str, Mapping[str, Any]] = {}
        log_id = subjects.account_log(account)
        async for recorded in self._log.read_all(log_id, writer="tools", visibility="i", topic=_TYPE):
            event = recorded.event
            if isinstance(event, ToolUndoable) and key_of(event.sid, event.call_id) in keys:
                found[key_of(event.sid, event.call_id)] = event.data
        return found
