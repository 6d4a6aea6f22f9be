"""A macro does no more than who makes it, and who runs it, may do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.conftest import Caller, Executors
from voxbridge.shared.errors import Code
from voxbridge.shared.events.tools import TaskCompleted, ToolCompleted, ToolFailed
from voxbridge.shared.events.voice import ToolCalled

PACKS = "tests.tools.pack,voxbridge.services.tools.packs.macros.functions"
ECHO = {"call": "echo", "arguments": {"text": "hello"}}
SLOW: dict[str, Any] = {"call": "faulty", "on_error": "continue"}


async def call(caller: Caller, function: str, call_id: str, allowed: tuple[str, ...] | None, **arguments: Any) -> None:
    await caller.say(
        ToolCalled(
            call_id=call_id, name=function, arguments=arguments, kind="server", turn=1, deadline_ms=30_000, account="local", allowed=allowed
        )
    )


@pytest.mark.parametrize(
    ("steps", "allowed", "saved"),
    [
        ([ECHO], None, True),
        ([ECHO], ("create_macro", "echo"), True),
        ([ECHO], ("create_macro",), False),
        ([ECHO, SLOW], ("create_macro", "echo"), False),
        ([{**ECHO, "on_error": {"fallback": SLOW["call"]}}], ("create_macro", "echo"), False),
        ([{"run": "inner"}], ("create_macro", "echo"), False),
    ],
)
async def test_nobody_saves_what_is_beyond_their_rights(
    executors: Executors, caller: Caller, steps: list[Any], allowed: tuple[str, ...] | None, saved: bool
) -> None:
    async with executors.running(PACKS):
        await call(caller, "create_macro", "inner", None, name="inner", steps=[SLOW])
        await caller.next(ToolCompleted, "inner")
        await call(caller, "create_macro", "make", allowed, name="mine", steps=steps)
        if saved:
            await caller.next(ToolCompleted, "make")
        else:
            assert (await caller.next(ToolFailed, "make"))[0].error.code == Code.PERMISSION_DENIED


async def test_nobody_runs_what_is_beyond_their_rights(executors: Executors, caller: Caller) -> None:
    async with executors.running(PACKS):
        for name, steps in (("inner", [ECHO]), ("outer", [{"run": "inner"}])):
            await call(caller, "create_macro", name, None, name=name, steps=steps)
            await caller.next(ToolCompleted, name)
        await call(caller, "run_macro", "refused", ("run_macro",), name="outer")
        error = (await caller.next(ToolFailed, "refused"))[0].error
        assert (error.code, error.message) == (
            Code.PERMISSION_DENIED,
            "inner calls echo, which may not be called here, so it was not run.",
        )
        await call(caller, "run_macro", "run", ("run_macro", "echo"), name="outer")
        assert (await caller.next(TaskCompleted, "run"))[0].result["text"] == "hello"
