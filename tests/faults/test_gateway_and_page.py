"""A gateway that is killed while calls and tasks are held before and after each of their appends and effects, and pages that resume at the
next one, or were reloaded meanwhile: each effect happens once, and each page is told each end once."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.eventually import eventually
from tests.faults import deeds, told
from tests.faults.caller import Caller
from tests.faults.installation import Installation, installed
from tests.faults.told import Wired
from tests.faults.wire import Stop
from voxbridge.shared.events import tools
from voxbridge.shared.events import voice as ev

pytestmark = pytest.mark.timeout(240)
HELD_S = 120
"""Seconds for which a call may be held before its time is over."""

APPENDS = {
    "charge": [("voice", "tool.called"), ("tools", "tool.started"), ("tools", "tool.completed")],
    "report": [("tools", "task.started"), ("tools", "task.completed")],
}
PLACES: list[tuple[str, str, str]] = [
    (function, place, when)
    for function, appends in APPENDS.items()
    for place in [*(f"{writer} {event}" for writer, event in appends), "effect"]
    for when in ("before", "after")
]
ENDS = {"charge": tools.ToolCompleted, "report": tools.TaskCompleted}


class Case(NamedTuple):
    """A call in a session of its own, and the place at which it is held."""

    function: str
    place: str
    when: str
    folder: Path
    caller: Caller


@pytest.fixture
async def wired(tmp_path: Path) -> AsyncIterator[tuple[Installation, Wired]]:
    async with AsyncExitStack() as leaving:
        servers = Wired(tmp_path, ("tools", "voice"), leaving)
        async with installed(tmp_path, servers, tool_packs="tests.faults.deeds", tool_timeout_s=HELD_S) as there:
            there.google.reply = told.gemini
            yield there, servers


async def begins(case: Case, servers: Wired) -> None:
    """Make the call; it is then held at its place."""
    case.folder.mkdir()
    await case.caller.start(mode="gemini", agent="triage")
    await case.caller.until("provider", status="connected")
    if case.place == "effect":
        (case.folder / case.when).touch()
    else:
        service, event = case.place.split()
        servers.wires[service].stop_at(case.caller.sid, Stop("before" if case.when == "before" else "after", event))
    await case.caller.types(f"{case.function} {case.folder}")


def is_held(case: Case, servers: Wired) -> bool:
    return (case.folder / f"{case.when}.reached").exists() or any(wire.holds(case.caller.sid) for wire in servers.wires.values())


async def test_a_gateway_and_pages_may_be_lost_anywhere_in_a_call(wired: tuple[Installation, Wired], tmp_path: Path) -> None:
    there, servers = wired
    async with AsyncExitStack() as leaving:
        cases = [
            Case(*place, tmp_path / f"{reloads}-{'-'.join(place).replace(' ', '-')}", Caller(there.config.port))
            for place in PLACES
            for reloads in (False, True)
        ]
        for case in cases:
            leaving.push_async_callback(case.caller.stop)
            await begins(case, servers)
        await eventually(lambda: all(is_held(case, servers) for case in cases))
        await there.stand_by("gateway")
        for case in cases:
            case.caller.reloads = case.folder.name.startswith("True")
        await there.kill("gateway")
        await there.start("gateway")
        for case in cases:
            assert (await case.caller.resumed())["recovered"]
        for case in cases:
            (case.folder / deeds.GO).touch()
            for wire in servers.wires.values():
                wire.release(case.caller.sid)
        for case in cases:
            await check(there, case)


async def check(there: Installation, case: Case) -> None:
    """Check that a call had one effect and one end, which its page was told once."""
    await case.caller.when(lambda: told.is_over(case.caller))
    await case.caller.until("turn_complete")
    log, seen = await there.events(case.caller.sid), told.page(case.caller)
    (called,) = [one.event.call_id for one in log if isinstance(one.event, ev.ToolCalled)]
    assert deeds.effects(case.folder) == [called], case
    assert seen["calls"] == {called: 1}, case
    assert seen["tasks"] == seen["begun"] == ({f"task-{called}": 1} if case.function == "report" else {}), case
    assert not [one for one in case.caller.facts("function_result") + case.caller.facts("async_task_complete") if "error" in one["result"]]
    assert len([one for one in log if isinstance(one.event, ENDS[case.function])]) == 1, case
    assert Counter(one["seq"] for one in case.caller.facts()).most_common(1)[0][1] == 1, "each fact is told once"
    assert len(case.caller.resumes) == 1
