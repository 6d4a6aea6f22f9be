"""Decisions about calls: made within a step, from what was read before it.

Owns what a decision depends on beside the catalogue: the standing approvals and the documents of an account. They are read anew for each
call that they matter to; a step of a run is decided upon by what was read when the run was taken.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from voxbridge.services.tools.core.inputs import Accepted, Rejected
from voxbridge.services.tools.core.outputs import Resolve
from voxbridge.services.tools.core.tasks import refusal
from voxbridge.services.tools.registry import Tool
from voxbridge.services.tools.runs.document import Document
from voxbridge.services.tools.runs.inputs import Kind
from voxbridge.services.tools.session import standing
from voxbridge.services.tools.session.customers import Customers
from voxbridge.services.tools.session.faulted import failure_of
from voxbridge.services.tools.session.library import Library
from voxbridge.services.tools.session.lookup import kinds_of, look_up, needs_approval
from voxbridge.services.tools.session.standing import Standing
from voxbridge.shared import events
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.events.gateway import ToolRequested
from voxbridge.shared.events.voice import Failure, ToolCalled
from voxbridge.shared.log.reader import Log

ACCOUNTS_KEPT: Final = 256
"""Accounts of which something is in memory."""

_log = logging.getLogger(__name__)

Count = Callable[[str, str, str], Awaitable[bool]]
"""Count a task, by account, session and call. Return whether there is room for it."""


class _Known(msgspec.Struct):
    standing: Standing
    documents: dict[Kind, dict[str, Document]]


class Decisions:
    """The decisions of one executor, with the functions of `tools`."""

    def __init__(self, log: Log, tools: Mapping[str, Tool], library: Library, count: Count, customers: Customers) -> None:
        self._log = log
        self._tools = tools
        self._customers = customers
        self._library = library
        self._count = count
        self._counted: dict[str, bool] = {}
        """Calls that are being taken and are tasks: is there room for them?"""

        self._unread: dict[str, Failure] = {}
        """Calls that are being taken and cannot be decided upon, with the reason."""

        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def learn(self, sid: str, event: events.Event) -> None:
        """Read what the decision about a call depends on, and count a task. Raises `UNAVAILABLE`. A call of which that cannot be read is
        refused."""
        if not isinstance(event, ToolCalled | ToolRequested):
            return
        try:
            await self._learn(sid, event)
        except Exception as error:
            if isinstance(error, VoxbridgeError) and error.retryable:
                raise
            _log.exception("session %s: the call %s cannot be decided upon.", sid, event.call_id)
            self._unread[event.call_id] = failure_of(error)

    async def _learn(self, sid: str, event: ToolCalled | ToolRequested) -> None:
        await self._customers.learn(sid, event)
        await self._read(event)
        allowed = event.allowed if isinstance(event, ToolCalled) else None
        decided = self.decide(Resolve(event.call_id, event.name, event.arguments, event.account, allowed), full=False)
        if isinstance(decided, Accepted) and decided.mode in ("task", "run"):
            self._counted[event.call_id] = await self._count(event.account, sid, event.call_id)

    def taken(self, event: events.Event) -> ToolCalled | ToolRequested | None:
        """Forget a call that was taken. Return it if it was counted."""
        self._customers.taken(event)
        if isinstance(event, ToolCalled | ToolRequested):
            self._unread.pop(event.call_id, None)
        counted = isinstance(event, ToolCalled | ToolRequested) and self._counted.pop(event.call_id, False)
        return event if counted and isinstance(event, ToolCalled | ToolRequested) else None

    async def _read(self, event: ToolCalled | ToolRequested) -> None:
        kinds = kinds_of(event.name, event.arguments)
        if not kinds and not needs_approval(self._tools, event.name, event.arguments):
            return
        found = await standing.read(self._log, event.account)
        documents = {kind: await self._library.of(event.account, kind) for kind in kinds}
        before = self._known.pop(event.account, None)
        self._known[event.account] = _Known(found, {**(before.documents if before else {}), **documents})
        while len(self._known) > ACCOUNTS_KEPT:
            self._known.popitem(last=False)

    def decide(self, wanted: Resolve, *, full: bool) -> Accepted | Rejected:
        """Decide on a call; `full`: this executor has all the calls it can hold."""
        if (failure := self._unread.get(wanted.call_id)) is not None:
            return Rejected(call_id=wanted.call_id, error=failure)
        known = self._known.get(wanted.account) or _Known(Standing(), {})
        own = self._customers.called(wanted.call_id)
        try:
            decided = look_up(self._tools if own is None else own, wanted, known.standing, known.documents, full=full)
        except Exception as error:  # noqa: BLE001 - whatever it is, the call ends with it
            _log.exception("the call %s of %s cannot be decided upon.", wanted.call_id, wanted.name)
            return Rejected(call_id=wanted.call_id, error=failure_of(error))
        room = self._counted.get(wanted.call_id)
        if room is None or isinstance(decided, Rejected):
            return decided
        if room:
            return msgspec.structs.replace(decided, counted=True)
        return Rejected(call_id=wanted.call_id, error=refusal())
