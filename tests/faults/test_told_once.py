"""Calls on Gemini Live and OpenAI Realtime whose executor is killed before and after each of its appends, all at the same time, and a voice
worker with it or in its place, or a user who has gone on speaking.

Each call has one end in each model's conversation, each page is told one, and no effect happens twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.eventually import eventually
from tests.fakes.openai.realtime import KEY, OpenAIRealtimeServer
from tests.faults import orders, told
from tests.faults.caller import Caller
from tests.faults.installation import Installation, installed
from tests.faults.told import Wired
from tests.faults.wire import Stop, Wire
from voxbridge.shared.events import tools
from voxbridge.shared.events import voice as ev

pytestmark = pytest.mark.timeout(240)
STOPS = [Stop(when, number) for number in (0, 1, 2, 3) for when in ("before", "after")]
PLACES = [(vendor, stop, name) for vendor in told.VENDORS for stop in STOPS for name in ("charge", "book")]
HELD_S = 120
"""Seconds for which a call may be held before its time is over."""

ENDS = (tools.ToolCompleted, tools.ToolFailed, tools.ToolInterrupted, tools.TaskCompleted, tools.TaskFailed, tools.TaskInterrupted)


class Case(NamedTuple):
    """A call in a session of its own."""

    vendor: str
    stop: Stop
    name: str
    folder: Path
    caller: Caller

    @property
    def done(self) -> list[str]:
        return orders.effects(self.folder, orders.CHARGES if self.name == "charge" else orders.BOOKINGS)


class Stand(NamedTuple):
    """The installation, and the stand-in that it does not have itself."""

    there: Installation
    servers: Wired
    openai: OpenAIRealtimeServer


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with AsyncExitStack() as leaving:
        server = await leaving.enter_async_context(OpenAIRealtimeServer())
        servers = Wired(tmp_path, ("tools",), leaving)
        keys = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
        async with installed(tmp_path, servers, env=keys, tool_timeout_s=HELD_S) as found:
            found.google.reply = told.gemini
            server.reply = told.openai
            yield Stand(found, servers, server)


async def begun(stand: Stand, wire: Wire, tmp_path: Path, leaving: AsyncExitStack) -> list[Case]:
    """Make all calls; each is then held at its place."""
    cases = []
    for number, (vendor, stop, name) in enumerate(PLACES):
        case = Case(vendor, stop, name, tmp_path / f"case{number:02}", Caller(stand.there.config.port))
        case.folder.mkdir()
        orders.release(case.folder)
        leaving.push_async_callback(case.caller.stop)
        await case.caller.start(mode=vendor, **({"agent": "triage"} if vendor == "gemini" else {}))
        await case.caller.until("provider", status="connected")
        wire.stop_at(case.caller.sid, stop)
        await case.caller.types(f"{name} {case.folder}")
        cases.append(case)
    await eventually(lambda: all(wire.holds(case.caller.sid) for case in cases))
    return cases


@pytest.mark.parametrize("victim", ["tools", "voice", "tools and voice", "tools, after a barge-in"])
async def test_each_call_has_one_answer_and_each_result_is_told_once(stand: Stand, victim: str, tmp_path: Path) -> None:
    there, wire = stand.there, stand.servers.wires["tools"]
    async with AsyncExitStack() as leaving:
        cases = await begun(stand, wire, tmp_path, leaving)
        owners = {case.caller.sid: await there.owner(case.caller.sid) for case in cases}
        if "barge-in" in victim:
            for case in cases:
                await case.caller.types("Wait a moment.")
                await case.caller.until("transcript", role="user", text="Wait a moment.")
        lost = ("voice-1",) if "voice" in victim else ()
        killed = (*lost, *(("tools",) if "tools" in victim else ()))
        for name in killed:
            await there.kill(name)
        if "tools" in victim:
            wire.cut()
        await there.start(*killed)
        if "tools" not in victim:
            for case in cases:
                wire.release(case.caller.sid)
        for case in cases:
            await check(stand, case, took_over=owners[case.caller.sid] in lost)


async def check(stand: Stand, case: Case, *, took_over: bool) -> None:
    """Check that a call ended once in the log, for its page and for its model, and that its end is true."""
    await case.caller.when(lambda: told.is_over(case.caller))
    await stand.there.logged(case.caller.sid, "voice", "tool.delivered", 1)  # the page may know of an end before the voice worker does
    log, seen = await stand.there.events(case.caller.sid), told.page(case.caller)
    (called,) = [one.event.call_id for one in log if isinstance(one.event, ev.ToolCalled)]
    assert seen["calls"] == {called: 1}, case
    assert set(seen["tasks"].values()) <= {1}, case
    assert Counter(one.event.call_id for one in log if isinstance(one.event, ev.ToolDelivered)) == {called: 1}, case
    assert len([one for one in log if isinstance(one.event, ENDS)]) == 1, case
    results = [one["result"] for one in case.caller.facts("function_result") + case.caller.facts("async_task_complete")]
    assert len(case.done) <= 1
    for result in results:
        assert "error" not in result or (case.name == "charge" and result["code"] == "INTERRUPTED"), (case, result)
        assert "error" in result or len(case.done) == 1, (case, result)
    *before, last = told.ends_told(case.vendor, stand.there.google, stand.openai, case.folder)
    assert last == 1 or (took_over and 1 in before), (case, before, last)
    assert set(before) <= ({0, 1} if took_over else set()), "a model that was told of the call anew has its end in that"
