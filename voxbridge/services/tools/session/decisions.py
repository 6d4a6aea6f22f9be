"""Decisions about calls: made within a step, from what was read before it.

Owns what a decision depends on beside the catalogue: the standing approvals and the documents of an account. They are read anew for each
call that they matter to; a step of a run is decided upon by what was read when the run was taken.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import msgspec

from voxbridge.services.tools.core.inputs import Accepted, Rejected
from voxbridge.services.tools.core.outputs import Resolve
from voxbridge.services.tools.registry import Tool
from voxbridge.services.tools.runs.document import Document
from voxbridge.services.tools.runs.inputs import Kind
from voxbridge.services.tools.session import standing
from voxbridge.services.tools.session.library import Library
from voxbridge.services.tools.session.lookup import kinds_of, look_up, needs_approval
from voxbridge.services.tools.session.standing import Standing
from voxbridge.shared import events
from voxbridge.shared.events.gateway import ToolRequested
from voxbridge.shared.events.voice import ToolCalled
from voxbridge.shared.log.reader import Log

ACCOUNTS_KEPT: Final = 256
"""Accounts of which something is in memory."""


class _Known(msgspec.Struct):
    standing: Standing
    documents: dict[Kind, dict[str, Document]]


class Decisions:
    """The decisions of one executor, with the functions of `tools`."""

    def __init__(self, log: Log, tools: Mapping[str, Tool], library: Library) -> None:
        self._log = log
        self._tools = tools
        self._library = library
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def learn(self, event: events.Event) -> None:
        """Read what the decision about a call depends on. Raises `UNAVAILABLE`."""
        if not isinstance(event, ToolCalled | ToolRequested):
            return
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
        known = self._known.get(wanted.account) or _Known(Standing(), {})
        return look_up(self._tools, wanted, known.standing, known.documents, full=full)
