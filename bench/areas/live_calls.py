"""Events in a call on Gemini Live: its agent hands over, its connection is about to be closed, its worker is killed while a function runs
or is stopped with all of its calls. Runs the whole product with a stand-in for Google that records what it sees.
"""

from __future__ import annotations

import asyncio
import struct
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Final

import psutil

from bench.areas import live_figures
from bench.areas.audio import Found, Say
from bench.areas.live_figures import DRAINED, LONG_TEXT, LONG_TURNS, Drain, Handoff, Kill, Rotation
from bench.areas.realtime import google
from bench.clients.client import FRAME_S
from bench.clients.live_call import LiveCall
from bench.clients.live_google import Google
from bench.stack import LIGHT, Stack, stack
from tests.fakes.gemini.process import Connection, GoAway, Instant, Script, Watch
from tests.fakes.gemini.turns import Call, Turn
from tests.faults import orders
from voxbridge.shared.setting import PREFIX

HANDOFFS: Final = 20
"""Handoffs of each kind; every other one with the notice that the session cannot be resumed for now."""

LONG: Final = 3
"""Handoffs late in a long call."""


ROTATIONS: Final = 7
KILLS: Final = 3

RESUMABLE: Final = "gemini-2.5-flash-native-audio-latest"
"""A model that can change its voice when a session is resumed; the usual one is seeded with the history instead."""

PIPELINES: Final = {"seeded": "gemini", "resumed": f"gemini:{RESUMABLE}"}
STEADY_S: Final = 0.5
"""Seconds of microphone audio before a handoff and after it."""

FLOWING_S: Final = 5.0
"""Seconds of audio in both directions before a connection is replaced: longer than the audio that the new one replays."""

LASTING_S: Final = 10.5
"""Seconds of audio in both directions before a worker is stopped: its successor reads all microphone audio that the bus keeps, ten seconds.
"""

BACK_FRAMES: Final = 25
"""Frames that come to each call after its worker is gone."""

AFTER_S: Final = 2.0
"""Seconds that a call is observed after its connection was replaced."""

WITHIN_S: Final = 15.0
POLL_S: Final = 0.01
NOTICE: Final = "3s"
"""As short as the product's own safety margin: it leaves at once, in the middle of a reply."""

SECOND: Final = 2_345
"""Value of every sample of the second agent's voice."""

_SPEECH: Final = struct.pack("<960h", *[SECOND] * 960)
_NAME: Final = "I am Ann."
_FIRST: Final = "Good morning, Ann."


async def live_calls(quick: bool, say: Say) -> Found:
    """Measure handoffs with both kinds of model, rotations, killed workers, and a stopped worker with 20 calls."""
    async with AsyncExitStack() as running:
        found = await running.enter_async_context(google())
        there = await running.enter_async_context(Google.of(Path(found["SSL_CERT_FILE"]).parent))
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="voxbridge-bench-")))
        write_agents(folder / "agents")
        extra = {**found, f"{PREFIX}AGENTS_DIR": str(folder / "agents"), f"{PREFIX}TOOL_PACKS": orders.__name__}
        product = await running.enter_async_context(stack(LIGHT, greeting=False, extra=extra))
        await there.tell(Watch(echo=False))
        handoffs: dict[str, list[Handoff]] = {kind: [] for kind in PIPELINES}
        for number in range(1 + (3 if quick else HANDOFFS)):
            for kind, taken in handoffs.items():
                say(f"live calls: handoff {number + 1}, {kind}")
                handoff = await _handoff(product, there, kind, unresumable=number % 2 == 1)
                if number:  # the first handoff of a process is not counted
                    taken.append(handoff)
        remembered = []
        for number in range(1 if quick else LONG):
            say(f"live calls: handoff after {LONG_TURNS} turns, round {number + 1}")
            remembered.append(await _handed_over_late(product, there))
        worker = product.processes["voice"]
        kills = []
        for number in range(1 if quick else KILLS):
            say(f"live calls: worker killed, round {number + 1}")
            written = folder / f"orders-{number}"
            written.mkdir()
            killed, worker = await _killed(product, there, worker, written)
            kills.append(killed)
        await there.tell(Watch(echo=True))
        rotations = []
        for number in range(3 if quick else ROTATIONS):
            say(f"live calls: rotation {number + 1}")
            rotations.append(await _rotated(product, there))
        say(f"live calls: worker with {DRAINED} calls stopped")
        drain = await _drained(product, worker)
    detail = {"handoffs": handoffs, "late": remembered, "rotations": rotations, "kills": kills, "drain": drain}
    return (
        [*live_figures.of_handoffs(handoffs), live_figures.of_late_ones(remembered), *live_figures.of_others(rotations, kills, drain)],
        detail,
        [],
    )


def write_agents(folder: Path) -> None:
    """Write two pipelines of two agents with different voices: `seeded` on the usual model, `resumed` on one that resumes with changes."""
    (folder / "pipelines").mkdir(parents=True)
    for name, model in PIPELINES.items():
        for agent, voice in (("first", "Aoede"), ("second", "Charon")):
            (folder / f"{name}-{agent}.yaml").write_text(f"model: {model}\nvoice: {voice}\nprompt: You are the {agent} agent.\n")
        first, second = (f"  - phase: {agent}\n    agent: {name}-{agent}\n" for agent in ("first", "second"))
        (folder / "pipelines" / f"{name}.yaml").write_text(f"stages:\n{first}    next: second\n{second}")


async def _acquainted(call: LiveCall, there: Google) -> None:
    """Switch the microphone on and have a first turn that the model is to remember."""
    call.speak()
    await there.tell(Script([Turn(says=_FIRST)]))
    call.type(_NAME)
    await call.until("turn_complete")


async def _handoff(product: Stack, there: Google, pipeline: str, *, unresumable: bool) -> Handoff:
    before = await there.tell(Script([]))
    async with LiveCall.begun(product.url, pipeline) as call:
        await _acquainted(call, there)
        await asyncio.sleep(STEADY_S)
        asked = Call("handoff_conversation", {"target": f"{pipeline}-second", "reason": "advice"})
        await there.tell(Script([Turn(calls=[asked], unresumable=unresumable), Turn(says="Second.", pcm=_SPEECH * 10)]))
        call.type("I need advice.")
        heard = await call.until_heard(lambda one: one.sample == SECOND)
        await asyncio.sleep(STEADY_S)
        seen, lost = await there.heard_all(call, before)
        first, *_, second = seen
        called, ready, spoke = _only(first.called), _only([second.ready]), second.spoke[0]
        return Handoff(
            ms=(heard.at - called.at) * 1_000,
            ready_ms=(ready.at - called.at) * 1_000,
            stand_in_ms=(spoke.cpu - called.cpu) * 1_000,
            kept=_remembers(second) and first.voice != second.voice,
            lost=lost,
            unresumable=unresumable,
        )


async def _handed_over_late(product: Stack, there: Google) -> bool:
    """Return whether the second agent's model knows what both said in the first turn of a long call."""
    before = await there.tell(Script([]))
    async with LiveCall.begun(product.url, "seeded") as call:
        await _acquainted(call, there)
        await there.tell(Script([Turn(says=f"Go on, {number}.", ms_per_char=5) for number in range(2, LONG_TURNS + 1)]))
        for number in range(2, LONG_TURNS + 1):
            call.type(f"{number}. {LONG_TEXT}")
            await call.until("turn_complete", count=number)
        asked = Call("handoff_conversation", {"target": "seeded-second", "reason": "advice"})
        await there.tell(Script([Turn(calls=[asked]), Turn(says="Second.", pcm=_SPEECH * 10)]))
        call.type("I need advice.")
        await call.until_heard(lambda one: one.sample == SECOND)
        *_, second = await there.seen(before)
        return _remembers(second)


async def _rotated(product: Stack, there: Google) -> Rotation:
    before = await there.tell(Script([]))
    async with LiveCall.begun(product.url, "seeded-first") as call:
        call.speak()
        await call.until_heard(lambda _: True)
        await asyncio.sleep(FLOWING_S)
        since = call.heard[-1].at
        await there.tell(GoAway(NOTICE))
        await call.until("provider", count=2, status="connected")
        await asyncio.sleep(AFTER_S)
        until = time.monotonic()
        seen, lost = await there.heard_all(call, before)
        return Rotation(
            gap_ms=longest_gap_ms([one.at for one in call.heard], since, until),
            theirs_ms=longest_gap_ms(sorted(one.at for connection in seen for one in connection.spoke), since, until),
            again_ms=(sum(len(one.marks) for one in seen) - len({mark for one in seen for mark in one.marks})) * FRAME_S * 1_000,
            lost=lost,
        )


async def _killed(product: Stack, there: Google, worker: psutil.Process, folder: Path) -> tuple[Kill, psutil.Process]:
    before = await there.tell(Script([]))
    async with LiveCall.begun(product.url, "seeded-first") as call:
        await _acquainted(call, there)
        successor = await product.start("voice")
        asked = Call("charge", {"folder": str(folder)})
        await there.tell(Script([Turn(calls=[asked], after="It is done.", blocking=True), Turn(says="It is done.")]))
        call.type("Book a table.")
        await call.until("function_call")
        await _effects(folder)
        moment = time.monotonic()
        worker.kill()
        await asyncio.to_thread(worker.wait, WITHIN_S)
        orders.release(folder)
        heard = await call.until_heard(lambda one: one.at > moment, within_s=WITHIN_S)
        await call.until("turn_complete", count=2)
        seen, lost = await there.heard_all(call, before)
        last = seen[-1]
        killed = Kill(
            ms=(heard.at - moment) * 1_000,
            effects=len(orders.effects(folder, orders.CHARGES)),
            results=sum("charged" in said for one in seen for said in (*one.told, *map(str, one.answers))),
            kept=_remembers(last),
            lost=lost,
        )
        return killed, successor


async def _drained(product: Stack, worker: psutil.Process) -> Drain:
    async with AsyncExitStack() as running:
        calls = [await running.enter_async_context(LiveCall.begun(product.url, "seeded-first")) for _ in range(DRAINED)]
        for call in calls:
            call.speak()
        await product.start("voice")
        await asyncio.sleep(LASTING_S)
        moment = time.monotonic()
        worker.terminate()
        await asyncio.to_thread(worker.wait, WITHIN_S)
        gone = time.monotonic()
        back = [await call.until_heard(lambda one: one.at > gone, count=BACK_FRAMES, within_s=WITHIN_S) for call in calls]
        until = time.monotonic()
        return Drain(
            moved_ms=(max(one.at for one in back) - moment) * 1_000,
            pauses_ms=[longest_gap_ms([one.at for one in call.heard], moment, until) for call in calls],
        )


def longest_gap_ms(times: Sequence[float], since: float, until: float) -> float:
    """Return the longest interval in ms between two of these ascending times or the ends of the range; times in s."""
    within = [since, *(at for at in times if since < at < until), until]
    return max(later - earlier for earlier, later in pairwise(within)) * 1_000


def _remembers(connection: Connection) -> bool:
    """Return whether a conversation knows what both said in its first turn, verbatim or from its summary."""
    return all(any(text in line.text for line in connection.history) for text in (_NAME, _FIRST))


def _only(instants: Sequence[Instant | None]) -> Instant:
    if len(instants) != 1 or instants[0] is None:
        raise ValueError(f"one was expected, not {len(instants)}")
    return instants[0]


async def _effects(folder: Path) -> None:
    """Wait until the function has had its effect."""
    async with asyncio.timeout(WITHIN_S):
        while not orders.effects(folder, orders.CHARGES):  # noqa: ASYNC110 - another process writes the file
            await asyncio.sleep(POLL_S)
