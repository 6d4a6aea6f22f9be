"""Orders that are cancelled while they are spoken, thought about, waited for, or asked about: nothing is typed after."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.openai.realtime_turns import Turn
from tests.faults import bridge
from tests.faults.bridge import Stand, bridged, given, order, started
from tests.faults.caller import Caller
from tests.voice.sounds import speech
from voxbridge.shared.terminals import questions as asked

pytestmark = pytest.mark.timeout(300)


@asynccontextmanager
async def calling(stand: Stand) -> AsyncIterator[Caller]:
    """Call the officer."""
    caller = Caller(stand.there.config.port)
    try:
        await caller.start(mode="openai", agent="officer")
        await caller.until("provider", status="connected")
        yield caller
    finally:
        await caller.stop()


async def only(stand: Stand, terminal: str, folder: Path) -> list[str]:
    """Have the program given one more thing, which all that was typed before it precedes, and return what it was given before."""
    sent = await stand.fleet.send(terminal, "the last")
    assert sent.outcome == "submitted", sent
    *before, last = given(folder)
    assert last == "the last"
    return before


async def test_nothing_is_typed_for_an_order_that_was_cancelled(tmp_path: Path) -> None:
    async with bridged(tmp_path) as stand:
        await _while_it_is_thought_about(stand, tmp_path / "thinking")
        await _while_it_waits(stand, tmp_path / "waiting")
        for how in ("denied", "ended"):
            await _while_it_is_asked_about(stand, tmp_path / how, how)
        await _while_it_is_spoken(stand, tmp_path / "spoken")  # the last: nobody takes the call that its words would have been


async def _while_it_is_spoken(stand: Stand, folder: Path) -> None:
    terminal = await started(stand, folder)
    call = ("send_to_terminal", json.dumps({"terminal": terminal, "text": "go on"}))
    stand.vendor.script(Turn(hears="Tell it to go on.", calls=(call,)))
    async with calling(stand) as caller:
        begun = speech(800)
        await caller.speaks(begun)
        await stand.vendor.sessions[-1].until_heard(len(begun))
        await caller.ends()
        assert caller.facts("function_call") == []
    assert await only(stand, terminal, folder) == []


async def _while_it_is_thought_about(stand: Stand, folder: Path) -> None:
    terminal = await started(stand, folder)
    async with calling(stand) as caller:
        # What is cancelled is told to its end nevertheless: the call with all of its arguments, as the service does.
        await caller.types(order("send_to_terminal", held=True, terminal=terminal, text="go on"))
        await caller.when(lambda: any(one.get("state") == "thinking" for one in caller.told))
        await caller.says({"type": "interrupt"})
        await caller.until("turn_complete")
        assert caller.facts("function_call") == []
    assert await only(stand, terminal, folder) == []


async def _while_it_waits(stand: Stand, folder: Path) -> None:
    source = await started(stand, folder / "source", name="Claude")
    terminal = await started(stand, folder / "taker", name="Codex")
    await stand.fleet.send(source, "ask before you go on")
    await stand.fleet.ask(asked.Wait(by="tester", terminal=source, until="blocked", timeout_s=20))
    async with calling(stand) as caller:
        await caller.types(order("forward_output", source="Claude", terminal="Codex", when="done"))
        task = (await caller.until("async_task_started", function="forward_output"))["task_id"]
        await caller.says({"type": "cancel_task", "task_id": task})
        ended = await caller.until("async_task_complete", function="forward_output")
        assert ended["result"]["code"] == "CANCELLED"
        await stand.fleet.ask(asked.SendKey(by="tester", terminal=source, key="enter"))
        assert (await stand.fleet.ask(asked.Wait(by="tester", terminal=source, until="turn_end", timeout_s=20))).met
    assert await only(stand, terminal, folder / "taker") == []


async def _while_it_is_asked_about(stand: Stand, folder: Path, how: str) -> None:
    terminal = await started(stand, folder, shell=True)
    async with calling(stand) as caller:
        await caller.types(order("run_in_terminal", terminal=terminal, command=f"echo typed --- >> {bridge.GIVEN}"))
        question = await caller.until("approval_requested")
        if how == "denied":
            await caller.says({"type": "approval_answer", "approval_id": question["approval_id"], "answer": "denied"})
            assert (await caller.until("approval_ended"))["outcome"] == "denied"
        else:
            await caller.ends()
    sent = await stand.fleet.send(terminal, f"echo the last --- >> {bridge.GIVEN}")
    assert sent.outcome == "submitted", sent
    assert (await stand.fleet.ask(asked.Wait(by="tester", terminal=terminal, until="turn_end", timeout_s=20))).met
    assert given(folder) == ["the last"]
