"""Supervisor of programs: keeps them running, reports when all are ready, and stops all within five seconds.

Owns each program's process from start to reaping. Does not own what the programs are (`voxbridge.supervisor.up`), when one is tried again
(`voxbridge.supervisor.restart`) or what ready means (`voxbridge.supervisor.readiness`). When it is killed, the kernel kills its children.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Protocol

from voxbridge.shared.embedded.child import end_group
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.supervisor.children import Child, Program, how_it_ended
from voxbridge.supervisor.readiness import Part, Phase, Whole, update, waits_for
from voxbridge.supervisor.restart import History, after_exit

STOP_S: Final = 4.0
"""Seconds that services get between SIGTERM and SIGKILL; the servers, stopped after them, get the rest of five seconds."""
STOP_SERVERS_S: Final = 0.7
START_S: Final = 15.0
PROBE_OFTEN_S: Final = 0.1
PROBE_SELDOM_S: Final = 4.0
"""Seconds between two probes of a program that runs; its death is seen at once, without one."""

PROBE_TIMEOUT_S: Final = 2.0

LATE_S: Final = 15.0
"""Seconds without readiness after which the parts that are waited for are named; the next time after four times as long."""

LATE_MOST_S: Final = 300.0


class Display(Protocol):
    """Display on which the supervisor reports what happens."""

    def line(self, text: str) -> None:
        """Print a line that stays."""

    def show(self, whole: Whole) -> None:
        """Show the current state, for a live status."""


class Supervisor:
    """Supervisor that runs until `stop` is called. If a server cannot be started the first time, `run` raises its error."""

    def __init__(self, programs: Sequence[Program], display: Display, url: str) -> None:
        self._programs = list(programs)
        self._display = display
        self._url = url
        self._whole = Whole(parts={program.name: Part() for program in programs})
        self._children: dict[str, Child] = {}
        self._served: set[str] = set()
        """Programs whose last process was ready at some time."""
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._moved = asyncio.Event()
        self._doubt = asyncio.Event()
        self._telling: set[asyncio.Task[None]] = set()
        self._late: asyncio.TimerHandle | None = None

    @property
    def whole(self) -> Whole:
        """State of every part, as far as it is known."""
        return self._whole

    def stop(self) -> None:
        """Stop everything; a second call kills at once what has not ended."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()
        self._moved.set()

    async def run(self) -> None:
        """Start the servers, then the rest, and keep them all running until `stop`."""
        servers = [program for program in self._programs if program.server]
        services = [program for program in self._programs if not program.server]
        keepers: dict[str, asyncio.Task[None]] = {}
        self._expect(LATE_S)
        try:
            for program in servers:
                keepers[program.name] = asyncio.create_task(self._keep(program, first=await program.spawn()))
            await self._until_ready([program.name for program in servers])
            if not self._stopping.is_set():
                keepers |= {program.name: asyncio.create_task(self._keep(program)) for program in services}
            waiting = asyncio.create_task(self._stopping.wait())
            done, _ = await asyncio.wait({waiting, *keepers.values()}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            for task in done - {waiting}:
                task.result()
        finally:
            self._stopping.set()
            self._expect(None)
            await self._end([keepers[program.name] for program in services if program.name in keepers], services, STOP_S)
            await self._end([keepers[program.name] for program in servers if program.name in keepers], servers, STOP_SERVERS_S)
            await asyncio.gather(*(program.standby.close() for program in services if program.standby is not None))
            for telling in self._telling:
                telling.cancel()

    async def _until_ready(self, names: Sequence[str]) -> None:
        try:
            async with asyncio.timeout(START_S):
                while not self._stopping.is_set() and any(self._whole.parts[name].phase is not Phase.READY for name in names):
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            late = next(name for name in names if self._whole.parts[name].phase is not Phase.READY)
            self._display.line(f"{late} does not answer after {START_S:g} s; the services are started and wait for it.")

    async def _keep(self, program: Program, first: Child | None = None) -> None:
        history = History()
        while first is not None or not self._stopping.is_set():  # a child that was started is watched to its end, even after `stop`
            begun = time.monotonic()
            self._served.discard(program.name)
            try:
                child = first or await program.spawn()
                first = None
            except (OSError, VoxbridgeError) as error:
                detail = f"cannot be started: {error}"
            else:
                detail = await self._live(program, child)
            if self._stopping.is_set():
                return
            restart = after_exit(history, time.monotonic() - begun, served=program.name in self._served)
            history = restart.history
            phase = Phase.LOOPING if restart.looping else Phase.CRASHED
            self._change(program.name, phase=phase, pid=None, detail=detail)
            if not restart.looping:
                self._display.line(f"{program.name} {detail}; it is started again in {restart.wait_s:g} s.")
            elif restart.news:
                self._display.line(f"{program.name} keeps failing ({detail}); it is tried again every {restart.wait_s:g} s.")
            with suppress(TimeoutError):
                async with asyncio.timeout(restart.wait_s):
                    await self._stopping.wait()
            self._change(program.name, restarts=self._whole.parts[program.name].restarts + 1)

    async def _live(self, program: Program, child: Child) -> str:
        """Watch one process from its start to its end; return how it ended, in words."""
        self._children[program.name] = child
        self._change(program.name, phase=Phase.STARTING, pid=child.pid, detail="")
        if self._stopping.is_set():  # told to stop while the process was being started
            _terminate(child)
        watch = asyncio.create_task(self._watch(program))
        try:
            code = await child.wait()
            if program.ended is not None and not self._stopping.is_set():
                telling = asyncio.create_task(program.ended())
                self._telling.add(telling)
                telling.add_done_callback(self._telling.discard)
        finally:
            watch.cancel()
            end_group(child.pid, signal.SIGKILL)
            self._children.pop(program.name, None)
        words = child.last_words()
        return f"{how_it_ended(code)}: {words}" if words and code > 0 else how_it_ended(code)

    async def _watch(self, program: Program) -> None:
        while True:
            ready = True
            if program.ready is not None:
                try:
                    async with asyncio.timeout(PROBE_TIMEOUT_S):
                        ready = await program.ready()
                except TimeoutError:
                    ready = False
                if ready:
                    self._served.add(program.name)
            phase = self._whole.parts[program.name].phase
            if ready and phase in (Phase.STARTING, Phase.CHECKING):
                self._change(program.name, phase=Phase.READY, detail="")
            elif not ready and phase is Phase.READY:
                self._change(program.name, phase=Phase.STARTING, detail=program.why() or "does not say that it is ready")
            elif not ready and (why := program.why()) and why != self._whole.parts[program.name].detail:
                self._change(program.name, detail=why)
            if program.standby is not None and self._whole.ready:  # while programs are starting, it would only compete with them
                program.standby.prepare()
            with suppress(TimeoutError):
                async with asyncio.timeout(PROBE_SELDOM_S if self._whole.ready else PROBE_OFTEN_S):
                    await self._doubt.wait()
            self._doubt.clear()

    async def _end(self, keepers: Sequence[asyncio.Task[None]], programs: Sequence[Program], bound_s: float) -> None:
        """Send SIGTERM to each process, and SIGKILL to whole groups when the time is over or `stop` was called again."""
        for program in programs:
            child = self._children.get(program.name)
            if child is not None:
                self._change(program.name, phase=Phase.STOPPING)
                _terminate(child)
        if keepers:
            everyone = asyncio.gather(*keepers, return_exceptions=True)
            hurry = asyncio.create_task(self._hurry.wait())
            waited: set[asyncio.Future[Any]] = {everyone, hurry}
            await asyncio.wait(waited, timeout=bound_s, return_when=asyncio.FIRST_COMPLETED)
            hurry.cancel()
            for program in programs:
                child = self._children.get(program.name)
                if child is not None:
                    self._display.line(f"{program.name} did not stop in time and was killed.")
                    end_group(child.pid, signal.SIGKILL)
            await everyone
        for program in programs:
            self._change(program.name, phase=Phase.STOPPED, pid=None, detail="")

    def _change(self, name: str, **changes: object) -> None:
        part = replace(self._whole.parts[name], **changes)  # type: ignore[arg-type]
        self._whole, line = update(self._whole, name, part, self._url)
        if line is not None:
            self._display.line(line)
        if line is not None and not self._whole.announced:
            self._doubt.set()
        if line is not None:
            self._expect(None if self._whole.announced else LATE_S)
        self._moved.set()
        self._display.show(self._whole)

    def _expect(self, within_s: float | None, waited_s: float = 0.0) -> None:
        """Have it said what is waited for, unless everything is ready within this time; with None, forget about it."""
        if self._late is not None:
            self._late.cancel()
            self._late = None
        if within_s is not None and not self._stopping.is_set():
            self._late = asyncio.get_running_loop().call_later(within_s, self._say_late, within_s, waited_s + within_s)

    def _say_late(self, within_s: float, waited_s: float) -> None:
        self._display.line(f"Voxbridge is not ready after {waited_s:g} s; it waits for {waits_for(self._whole)}.")
        self._expect(min(4 * within_s, LATE_MOST_S), waited_s)


def _terminate(child: Child) -> None:
    """Ask the process, not its group, to end: it ends its own children in order, and they are killed with the group if it does not."""
    with suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGTERM)
