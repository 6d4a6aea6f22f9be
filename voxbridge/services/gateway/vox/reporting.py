"""Reports of one socket: what its page tells of the user's screen goes into the log of the account, not into that of the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from voxbridge.services.gateway.awareness.recorder import Recorder
from voxbridge.services.gateway.core import outbound
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.events.gateway import ContextSet, ErrorReported, PageVisited

REPORTS: Final = (PageVisited, ErrorReported, ContextSet)
Report = PageVisited | ErrorReported | ContextSet


class Reporting:
    """The reports of one socket, the `client`. `say` gets an error, once until a report is taken again."""

    def __init__(self, recorder: Recorder, client: str, say: Callable[[dict[str, Any]], None]) -> None:
        self._recorder = recorder
        self._client = client
        self._say = say
        self._refused = False

    async def record(self, account: str, session: str, event: Report) -> None:
        """Record a report of a session. It is dropped without an account, as that of a resumed session whose request has expired."""
        if not account:
            return
        try:
            await self._recorder.report(account, replace(event, session=session), client=self._client)
            self._refused = False
        except VoxbridgeError as error:
            if not self._refused:
                self._say(outbound.of_error(error))
            self._refused = True
