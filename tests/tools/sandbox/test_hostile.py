"""Handlers that mean harm end as the table says; afterwards no process is left, and neighbours noticed little."""

from __future__ import annotations

import asyncio
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.eventually import eventually
from tests.tools.sandbox.conftest import Room
from voxbridge.services.tools.sandbox import jail, sandboxes
from voxbridge.shared.errors import Code


class Hostile(NamedTuple):
    """A handler, its kind of end, and the words or the value of it."""

    source: str
    kind: str
    told: Any = ""


TABLE = Path(__file__).with_name("hostile.toml").read_text(encoding="utf-8")
HOSTILE = {one.pop("name"): Hostile(**one) for one in tomllib.loads(TABLE)["handler"]}
SOME = {name: HOSTILE[name] for name in [*HOSTILE][::2] if HOSTILE[name].kind != "memory"}
"""Handlers of `make test`: every second one, without those that fill the memory, which take seconds each."""

TIME_S = 0.4
"""Seconds after which a handler is killed here; on the platform it is the deadline of its call."""

WAITED_S = 90.0
"""Seconds that a handler which ends by itself may take on a machine that is busy."""

LATE_S = 10.0
"""Seconds after which a handler that was killed has ended on a machine that is busy."""

BATCH = 3


async def judge(room: Room, name: str, one: Hostile) -> str:
    """Run a handler; return how it ended other than the table says, or an empty text."""
    began = time.monotonic()
    try:
        outcome = await room.call(one.source, sid=name, account=name, within_s=TIME_S if one.kind == "over" else WAITED_S)
    except TimeoutError:
        late = time.monotonic() - began - TIME_S
        return "" if one.kind == "over" and late < LATE_S else f"ended after {late:.1f} s too many, and {one.kind} was expected"
    message = outcome.error.message if outcome.error is not None else ""
    if one.kind == "over":  # memory may run out before the time does
        return "" if (outcome.error is not None and outcome.error.code == Code.TOO_LARGE) else f"{outcome}"
    if one.kind == "memory":
        return "" if outcome.error is not None and outcome.error.code in (Code.TOO_LARGE, Code.INTERRUPTED) else f"{outcome}"
    if one.kind == "fails":
        return "" if outcome.error is not None and str(one.told) in message else f"{outcome}"
    return "" if outcome.error is None and msgspec.json.decode(outcome.value) == one.told else f"{outcome}"


def test_there_are_as_many_handlers_as_were_promised() -> None:
    assert len(HOSTILE) >= 80
    assert len(SOME) >= 30


async def test_some_hostile_handlers_end_as_the_table_says(room: Room) -> None:
    await end_as_the_table_says(room, SOME)


@pytest.mark.timeout(600)
async def test_the_other_hostile_handlers_end_as_the_table_says(room: Room) -> None:
    await end_as_the_table_says(room, {name: one for name, one in HOSTILE.items() if name not in SOME})


async def end_as_the_table_says(room: Room, handlers: Mapping[str, Hostile]) -> None:
    """Run handlers, a few at a time; check how each ended, and that none of their processes is left."""
    await room.value("() => 1")
    gate = asyncio.Semaphore(BATCH)

    async def bounded(name: str, one: Hostile) -> str:
        async with gate:
            return await judge(room, name, one)

    ends = await asyncio.gather(*(bounded(name, one) for name, one in handlers.items()))
    assert {name: end for name, end in zip(handlers, ends, strict=True) if end} == {}
    for name in handlers:
        room.sandboxes.release(name)
    await eventually(lambda: len(room.sandboxes) <= 1 + sandboxes.SPARE + len(handlers) // 2)
    assert await room.value("() => 1") == 1


async def test_a_loop_is_gone_from_the_machine_when_its_time_is_over(room: Room) -> None:
    await room.value("() => 1")
    await eventually(lambda: len(room.sandboxes) == 1 + sandboxes.SPARE)
    before = set(room.sandboxes.pids)
    took = []
    for number in range(5):
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            await room.call("async () => { await 0; for (;;); }", sid=f"loop{number}", within_s=0.2)
        took.append(time.monotonic() - began - 0.2)
        assert [pid for pid in before if _ended(pid)]  # the process that looped
        before = set(room.sandboxes.pids)
    assert max(took) < LATE_S, took


async def test_a_handler_at_full_tilt_does_not_keep_another_from_answering(room: Room) -> None:
    await room.value("() => 1")
    loops = [asyncio.create_task(room.call("() => { for (;;); }", sid=f"l{n}", account=f"l{n}", within_s=3)) for n in range(2)]
    await eventually(lambda: len(room.sandboxes._running) == 2)
    assert await room.value("() => 2") == 2
    for loop in loops:
        with pytest.raises(TimeoutError):
            await loop


async def test_a_process_is_bounded_by_the_kernel(room: Room) -> None:
    await room.value("() => 1")
    await eventually(lambda: bool(room.sandboxes._idle))
    (pid,) = (idle.process.pid for idle in room.sandboxes._idle.values())
    limits, status = _told(pid, "limits"), _told(pid, "status")
    assert "Seccomp:\t2" in status
    assert "NoNewPrivs:\t1" in status
    assert f"Uid:\t{jail.NOBODY}" in status or "Uid:\t0" not in status
    bounds = {line[:26].strip(): line[26:].split()[:2] for line in limits.splitlines()}
    assert "unlimited" not in bounds["Max address space"]
    assert bounds["Max core file size"] == bounds["Max file size"] == ["0", "0"]
    assert bounds["Max open files"] == [str(jail.FILES)] * 2
    assert bounds["Max cpu time"] == [str(jail.CPU_S)] * 2


async def test_a_call_leaves_nothing_for_the_next_one(room: Room) -> None:
    leaving = [
        "() => { globalThis.left = 1; }",
        "() => { Array.prototype.map = () => 'mine'; }",
        "() => { Promise.prototype.then = () => 'mine'; }",
        "() => { JSON.stringify = () => 'mine'; }",
        "() => { Object.prototype.left = 1; }",
        "() => { Math.left = 1; }",
        "() => { URL.prototype.left = 1; }",
        "() => { Object.getPrototypeOf(async () => 1).left = 1; }",
        "() => { Object.setPrototypeOf(Array.prototype, { left: 1 }); }",
        "() => { setTimeout(() => { globalThis.left = 1; }, 1); }",
        "() => { delete globalThis.Map; }",
        "() => { Object.defineProperty(globalThis, 'Date', { value: 1 }); }",
        "() => { Array.prototype[Symbol.iterator] = function* () { yield 'mine'; }; }",
    ]
    look = """() => [typeof left, [1].map((x) => x + 1)[0], ({}).left ?? '', Math.left ?? '', typeof Map, typeof Date, [...[7]][0],
      (async () => 1).left ?? '', [].left ?? '', URL.prototype.left ?? '']"""
    for source in leaving:
        await room.call(source)
        assert await room.value(look) == ["undefined", 2, "", "", "function", "function", 7, "", "", ""], source


async def test_a_process_serves_a_session_again_but_never_another(room: Room) -> None:
    tell = "() => performance.timeOrigin"
    await room.value("() => 1", sid="one")
    await eventually(lambda: bool(room.sandboxes._idle))
    first = {key: idle.process.pid for key, idle in room.sandboxes._idle.items()}
    await room.value(tell, sid="one")
    await eventually(lambda: bool(room.sandboxes._idle))
    assert {key: idle.process.pid for key, idle in room.sandboxes._idle.items()} == first
    await room.value(tell, sid="two")
    await eventually(lambda: len(room.sandboxes._idle) == 2)
    assert len({idle.process.pid for idle in room.sandboxes._idle.values()}) == 2


async def test_calls_beyond_the_limits_are_refused(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "WAIT_S", 0.01)
    await room.value("() => 1")
    slow = "() => new Promise((done) => setTimeout(done, 400))"
    full = [asyncio.create_task(room.call(slow, sid=f"s{n}")) for n in range(sandboxes.ACCOUNT_LIMIT)]
    await eventually(lambda: room.sandboxes._running["a1"] == sandboxes.ACCOUNT_LIMIT)
    with pytest.raises(Exception, match=f"{sandboxes.ACCOUNT_LIMIT} handlers run already"):
        await room.call("() => 1")
    assert await room.value("() => 2", account="other") == 2
    assert all(outcome.error is None for outcome in await asyncio.gather(*full))


async def test_the_console_is_kept_within_its_limits(room: Room) -> None:
    outcome = await room.call("() => { for (let n = 0; n < 500; n += 1) console.info('line', n); }")
    assert (len(outcome.console), outcome.lines) == (100, 500)
    assert outcome.console[0] == ("info", "line 0")
    outcome = await room.call("() => { console.log('x'.repeat(1e6)); console.error(new TypeError('y')); }")
    assert [len(text) for _, text in outcome.console] == [16_384]


def _told(pid: int, what: str) -> str:
    return Path(f"/proc/{pid}/{what}").read_text(encoding="utf-8")


def _ended(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
