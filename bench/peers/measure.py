"""The comparison: all systems side by side in the same minutes, then the maximum load of each, then the handoffs.

Owns the order and the durations. A failure is reported and the rest goes on.
"""

from __future__ import annotations

import asyncio
import platform
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec
import psutil

from bench import figures, machine
from bench.areas.realtime import google
from bench.clients.client import EchoResult
from bench.clients.load import LoadError
from bench.peers import handoff, load
from bench.peers.adapters.wire import FIRST, KEY, RESUMABLE_MODEL, SECOND
from bench.peers.catalogue import PEERS, SDK, Peer
from bench.peers.environment import Uninstallable, install, release_of
from bench.peers.results import P99_LIMIT_MS, Absent, Comparison, Measured, cpu, judged
from bench.peers.systems import OURS, RELAY, TITLES, System, cores, on_cores, peer, product, sdk_relay
from bench.stack import Child, StackError, child_environment
from voxbridge.shared.setting import PREFIX

Say = Callable[[str], None]

SESSIONS: Final = 20
"""Sessions side by side: as many as every system is known to hold on one core."""

RUNGS: Final = (10, 25, 50, 75, 100, 150, 200)
_WRONG: Final = (StackError, LoadError, OSError, TimeoutError, ValueError, psutil.Error)
_START_S: Final = 60.0
_CALL_S: Final = 4.0
_WORDS_LIMIT: Final = 300


class Lengths(msgspec.Struct, frozen=True):
    """Size of a comparison: rounds and seconds side by side, rungs and seconds of the ladder, handoffs of each system."""

    rounds: int
    seconds: float
    rungs: tuple[int, ...]
    rung_seconds: float
    handoffs: int


FULL: Final = Lengths(3, 6.0, RUNGS, 4.0, 14)
QUICK: Final = Lengths(1, 2.0, RUNGS[:3], 2.0, 4)


async def compare(names: Sequence[str], *, quick: bool, say: Say) -> Comparison:
    """Measure every figure; raises `StackError` when the stand-in or the product does not start."""
    before = machine.load_average()
    lengths = QUICK if quick else FULL
    there, absent = installed(names, say)
    systems = {OURS: _of_ours(OURS), RELAY: _of_ours(RELAY), **{one.name: _of_peer(one) for one in there}}
    own, others = cores()
    async with AsyncExitStack() as running:
        with on_cores(others):
            found = await running.enter_async_context(google())
        started: dict[str, System] = {}
        for name, measured in systems.items():
            say(f"starting {measured.title}")
            try:
                with on_cores(own):
                    started[name] = await running.enter_async_context(_system(name, found))
            except _WRONG as error:
                if name == OURS:
                    raise
                measured.failed = f"it did not start: {_said(error)}"
                say(f"{measured.title}: {measured.failed}")
        await _side_by_side(systems, started, lengths, say)
        await _ladders(systems, started, lengths, say)
    for name, measured in systems.items():
        if not measured.failed and not measured.no_handoff:
            await _handoffs(name, measured, lengths, say)
    late = max((one.late_ms.p99 or 0.0 for measured in systems.values() for one in measured.side), default=0.0)
    noisy = [f"load average {before:.2f} before the run"] if machine.busy(before) else []
    noisy += [f"the client itself was up to {late:.1f} ms late (p99)"] if late > figures.LATE_MS else []
    return Comparison(
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        quick=quick,
        machine=machine.facts(),
        load_before=before,
        load_after=machine.load_average(),
        sessions=SESSIONS,
        one_core=bool(own),
        noisy=noisy,
        systems=list(systems.values()),
        absent=absent,
        figures=judged(list(systems.values()), absent, quick=quick),
    )


def installed(names: Sequence[str], say: Say) -> tuple[list[Peer], list[Absent]]:
    """Install the peers. Return those that are installed, and those that could not be."""
    there: list[Peer] = []
    absent: list[Absent] = []
    for name in names:
        one = PEERS[name]
        try:
            install(one, say)
        except Uninstallable as error:
            absent.append(Absent(name=name, title=one.title, version=one.version, error=str(error)))
            say(f"{one.title} is left out: {error}")
        else:
            there.append(one)
    return there, absent


async def _side_by_side(systems: Mapping[str, Measured], started: Mapping[str, System], lengths: Lengths, say: Say) -> None:
    for name, system in started.items():
        # The first call of a process loads code and caches, which is not part of the comparison.
        say(f"a first call on {systems[name].title}")
        await _take(systems[name], system, 1, 1.0, say)
    for number in range(lengths.rounds):
        for name, system in started.items():
            say(f"round {number + 1} of {lengths.rounds}: {SESSIONS} sessions on {systems[name].title}")
            result = await _take(systems[name], system, SESSIONS, lengths.seconds, say)
            if result is not None:
                systems[name].side.append(result)


async def _ladders(systems: Mapping[str, Measured], started: Mapping[str, System], lengths: Lengths, say: Say) -> None:
    for name, system in started.items():
        for sessions in lengths.rungs:
            say(f"{sessions} sessions on {systems[name].title}")
            result = await _take(systems[name], system, sessions, lengths.rung_seconds, say)
            if result is None:
                break
            systems[name].rungs.append(result)
            if result.rtt_ms.p99 is None or result.rtt_ms.p99 > P99_LIMIT_MS:
                break


async def _take(measured: Measured, system: System, sessions: int, seconds: float, say: Say) -> EchoResult | None:
    """Run one load. A failure is reported, kept in `failed`, and ends the measurement of this system."""
    if measured.failed:
        return None
    try:
        result = await load.echo(system, sessions, seconds)
    except _WRONG as error:
        measured.failed = f"with {sessions} sessions: {_why(system, error)}"
        say(f"{measured.title} {measured.failed}")
        return None
    trip = result.rtt_ms
    say(f"  p50 {_ms(trip.p50)}, p99 {_ms(trip.p99)}, {result.lost} of {result.frames} lost, {cpu(result):.0f} µs of CPU a frame")
    return result


def _why(system: System, error: Exception) -> str:
    """Return the last output of a system that has ended, which says more than the client's error, else the error."""
    try:
        system.check()
    except StackError as ended:
        return _said(ended)
    return _said(error)


async def _handoffs(name: str, measured: Measured, lengths: Lengths, say: Say) -> None:
    say(f"handoffs of {measured.title}")
    own, _ = cores()
    try:
        async with handing_google() as found, AsyncExitStack() as running:
            with on_cores(own):
                system = await running.enter_async_context(_system(name, found, "_handoff"))
            task = handoff.Task(url=system.url, bare=system.bare, calls=lengths.handoffs)
            at_most = lengths.handoffs * _CALL_S + 2 * handoff.PATIENCE_S
            said = await load.run("bench.peers.handoff", msgspec.json.encode(task).decode(), at_most)
    except _WRONG as error:
        measured.no_handoff = f"it failed: {_said(error)}"
        say(f"{measured.title}: {measured.no_handoff}")
        return
    done = msgspec.json.decode(said, type=handoff.Handoffs)
    measured.handoffs = done
    if not done.ms:
        measured.no_handoff = f"it failed: {'; '.join(done.failed)}"
    say(f"  {', '.join(f'{ms:.1f}' for ms in done.ms)} ms{'; failed: ' + '; '.join(done.failed) if done.failed else ''}")


def _system(name: str, found: Mapping[str, str], module: str = "") -> AbstractAsyncContextManager[System]:
    """Return a system by its name, or its `module` for handoffs."""
    if name == OURS:
        return product(found)
    return sdk_relay(found, module) if name == RELAY else peer(PEERS[name], found, f"{name}{module}")


@asynccontextmanager
async def handing_google() -> AsyncIterator[dict[str, str]]:
    """Run the stand-in of the handoffs; yield the environment variables by which a system finds it, and the product's two agents."""
    with tempfile.TemporaryDirectory(prefix="voxbridge-bench-") as name:
        folder = Path(name)
        (folder / "agents").mkdir()
        for agent, prompt, voice, handoffs in ((handoff.AGENT, FIRST, "Aoede", "[second]"), ("second", SECOND, "Charon", "[]")):
            lines = (f"model: gemini:{RESUMABLE_MODEL}", f"prompt: {prompt}", f"voice: {voice}", f"handoffs: {handoffs}", "")
            (folder / "agents" / f"{agent}.yaml").write_text("\n".join(lines))
        with on_cores(cores()[1]):
            child = Child("google", ["bench.peers.handoff_google", name], child_environment(), folder)
            child.__enter__()
        try:
            end = time.monotonic() + _START_S
            while not (folder / "url").exists():
                child.check()
                if time.monotonic() > end:
                    raise StackError("The stand-in of the handoffs did not start.")
                await asyncio.sleep(0.05)
            url, ca_file = (folder / "url").read_text().split()
            yield {
                "GOOGLE_GEMINI_BASE_URL": url,
                "SSL_CERT_FILE": ca_file,
                "GEMINI_API_KEY": KEY,
                f"{PREFIX}AGENTS_DIR": str(folder / "agents"),
            }
        finally:
            child.__exit__()


def _of_ours(name: str) -> Measured:
    mine = name == OURS
    return Measured(
        name=name,
        title=TITLES[name],
        version=version("voxbridge") if mine else version(SDK),
        sdk=version(SDK),
        python=platform.python_version(),
        settings="the whole product: gateway, nats-server, voice, Valkey and tools as `voxbridge up` runs them, Gemini mode"
        if mine
        else "`bench/clients/relay.py` and, for handoffs, `relay_handoff.py`: one process with nothing but uvicorn and the SDK; "
        "20 ms pieces up, out as they come",
    )


def _of_peer(one: Peer) -> Measured:
    return Measured(
        name=one.name,
        title=one.title,
        version=one.version,
        sdk=one.sdk,
        python=release_of(one),
        settings=one.settings,
        no_handoff=one.no_handoff,
    )


def _said(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:_WORDS_LIMIT]


def _ms(value: float | None) -> str:
    return "lost" if value is None else f"{value:.1f} ms"
