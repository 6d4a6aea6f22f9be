"""A real executor with some packs and a workspace, and its answers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import psutil

from tests.tools.conftest import Caller, Executors
from voxbridge.shared.events.tools import ToolCompleted, ToolFailed
from voxbridge.shared.events.voice import Failure, ToolCalled

PACKS: Final = "voxbridge.services.tools.packs."


class Asking:
    """Calls functions and returns what they answered."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._numbers = count(1)

    async def answer(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Return a result; fails on an error."""
        found = await self.outcome(name, arguments)
        assert not isinstance(found, Failure), found
        return found

    async def refusal(self, name: str, /, **arguments: Any) -> Failure:
        """Return an error; fails on a result."""
        found = await self.outcome(name, arguments)
        assert isinstance(found, Failure), found
        assert len(found.message) < 500
        assert found.message.isprintable()
        return found

    async def outcome(self, name: str, arguments: dict[str, Any]) -> dict[str, Any] | Failure:
        """Return a result or an error."""
        call_id = f"p{next(self._numbers)}-{id(self)}"
        called = ToolCalled(call_id=call_id, name=name, arguments=arguments, kind="server", turn=1, deadline_ms=60_000, account="local")
        await self._caller.say(called)
        event: ToolCompleted | ToolFailed
        event, _ = await self._caller.next(ToolCompleted | ToolFailed, call_id)  # type: ignore[arg-type]
        return event.error if isinstance(event, ToolFailed) else event.result


@asynccontextmanager
async def asking(executors: Executors, caller: Caller, workspace: Path, *packs: str, **settings: Any) -> AsyncIterator[Asking]:
    """Run an executor with packs: names of folders, or of modules with a dot. Afterwards neither a child nor a temporary file is left."""
    os.makedirs(workspace, exist_ok=True)  # noqa: PTH103 - a moment, in a test
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    named = ",".join(f"{PACKS}{pack if '.' in pack else f'{pack}.functions'}" for pack in packs)
    async with executors.running(named, workspace_dirs=str(workspace), **settings):
        yield Asking(caller)
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert not left
    assert not [name for _, _, files in os.walk(workspace) for name in files if name.endswith(".tmp")]
