from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest

from tests.eventually import BOUND_S
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.servers import StartError
from voxbridge.supervisor.children import Child, Command, Program, embedded, start_command
from voxbridge.supervisor.logfile import LogFile
from voxbridge.supervisor.readiness import Phase, Whole
from voxbridge.supervisor.restart import LOOP_AFTER
from voxbridge.supervisor.standby import Standby
from voxbridge.supervisor.supervisor import STOP_S, STOP_SERVERS_S, Supervisor

URL = "http://127.0.0.1:1"

STEADY = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('up', flush=True); signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"
FAILING = "import sys; sys.exit('the reason')"
GRANDCHILD = (
    "import subprocess, sys, signal; p = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()']);"
    "print('child', p.pid, flush=True); signal.pause()"
)


@dataclass
class Said:
    """A display that records its output, with events to wait for."""

    lines: list[str] = field(default_factory=list)
    whole: Whole = field(default_factory=Whole)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def line(self, text: str) -> None:
        self.lines.append(text)
        self.news.set()

    def show(self, whole: Whole) -> None:
        self.whole = whole
        self.news.set()

    async def until(self, phase: Phase, *names: str) -> None:
        await self._until(lambda: bool(self.whole.parts) and all(self.whole.parts[name].phase is phase for name in names))

    async def until_said(self, words: str) -> None:
        await self._until(lambda: any(words in line for line in self.lines))

    async def _until(self, holds: object) -> None:
        assert callable(holds)
        async with asyncio.timeout(BOUND_S):
            while not holds():
                self.news.clear()
                await self.news.wait()


def _program(name: str, code: str, folder: Path, errors: list[str] | None = None) -> Program:
    """Return a small real program; it is ready once it has written something."""
    log = LogFile(folder / f"{name}.log")
    shown = [] if errors is None else errors

    async def spawn() -> Child:
        return await start_command([sys.executable, "-c", code], dict(os.environ), log, shown.append)

    async def ready() -> bool:
        return (folder / f"{name}.log").exists() and (folder / f"{name}.log").stat().st_size > 0

    return Program(name=name, spawn=spawn, ready=ready)


@asynccontextmanager
async def _running(programs: Sequence[Program]) -> AsyncIterator[tuple[Supervisor, Said]]:
    said = Said()
    supervisor = Supervisor(programs, said, URL)
    task = asyncio.create_task(supervisor.run())
    try:
        yield supervisor, said
    finally:
        supervisor.stop()
        await asyncio.wait_for(task, BOUND_S)


def _pids(said: Said) -> list[int]:
    return [part.pid for part in said.whole.parts.values() if part.pid is not None]


async def test_everything_starts_is_announced_once_and_stops(tmp_path: Path) -> None:
    programs = [embedded(NatsServer(tmp_path / "nats")), _program("one", STEADY, tmp_path), _program("two", STEADY, tmp_path)]
    async with _running(programs) as (_, said):
        await said.until(Phase.READY, "nats-server", "one", "two")
        pids = _pids(said)
        assert len(pids) == 3
        assert said.lines == [f"Voxbridge is ready at {URL}"]
        begun = time.monotonic()
    assert time.monotonic() - begun < 2
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert all(part.phase is Phase.STOPPED for part in said.whole.parts.values())
    assert said.lines == [f"Voxbridge is ready at {URL}"]


async def test_a_killed_program_is_back_within_a_second_and_readiness_is_said_again(tmp_path: Path) -> None:
    async with _running([_program("one", STEADY, tmp_path), _program("two", STEADY, tmp_path)]) as (_, said):
        await said.until(Phase.READY, "one", "two")
        pid = said.whole.parts["one"].pid
        assert pid is not None
        begun = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        await said.until_said("ready again")
        assert time.monotonic() - begun < 5
        assert said.whole.parts["one"].pid != pid
        assert said.whole.parts["one"].restarts == 1
        assert said.whole.parts["two"].restarts == 0
    assert said.lines == [
        f"Voxbridge is ready at {URL}",
        "Voxbridge is not ready: one was killed by SIGKILL",
        "one was killed by SIGKILL; it is started again in 0.1 s.",
        f"Voxbridge is ready again at {URL}",
    ]


async def test_a_process_that_stands_by_begins_once_the_one_before_it_is_dead(tmp_path: Path) -> None:
    log, waiting = LogFile(tmp_path / "one.log"), asyncio.Queue[int]()

    async def start(waits: bool) -> Command:
        code = f"import sys; print('loaded', flush=True); {'sys.stdin.readline() or sys.exit(9);' if waits else ''} {STEADY}"
        child = await start_command([sys.executable, "-c", code], dict(os.environ), log, print, waits=waits)
        if waits:
            waiting.put_nowait(child.pid)
        return child

    async def ready() -> bool:
        return log.path.exists() and "up" in log.path.read_text()

    standby = Standby(start)
    program = Program(name="one", spawn=standby.spawn, ready=ready, standby=standby)
    async with asyncio.timeout(BOUND_S), _running([program]) as (_, said):
        await said.until(Phase.READY, "one")
        first, second = said.whole.parts["one"].pid, await waiting.get()
        assert first is not None
        os.kill(second, signal.SIGKILL)  # a standby process that dies is replaced silently
        third = await waiting.get()
        assert log.path.read_text().split().count("up") == 1
        os.kill(first, signal.SIGKILL)
        await said.until_said("ready again")
        assert said.whole.parts["one"].pid == third
        pids = [third, await waiting.get()]
    assert not any(psutil.pid_exists(pid) for pid in pids)


async def test_a_killed_server_comes_back_at_the_same_address(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats")
    url = server.reserve()
    async with _running([embedded(server), _program("one", STEADY, tmp_path)]) as (_, said):
        await said.until(Phase.READY, "nats-server", "one")
        pid = said.whole.parts["nats-server"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await said.until_said("ready again")
        assert server.answers()
        assert server.url == url


async def test_a_crash_loop_is_said_plainly_once_and_tried_on(tmp_path: Path) -> None:
    async with _running([replace(_program("broken", FAILING, tmp_path), ready=None)]) as (_, said):
        await said.until_said("keeps failing")
        assert said.whole.parts["broken"].phase is Phase.LOOPING
    assert len([line for line in said.lines if "is started again" in line]) == LOOP_AFTER - 1
    assert [line for line in said.lines if "keeps failing" in line] == [
        "broken keeps failing (ended with code 1: the reason); it is tried again every 1.6 s."
    ]
    assert (tmp_path / "broken.log").read_text().splitlines() == ["the reason"] * LOOP_AFTER


async def test_a_program_that_ignores_the_signal_is_killed_at_the_bound(tmp_path: Path) -> None:
    async with _running([_program("deaf", DEAF, tmp_path), _program("one", STEADY, tmp_path)]) as (_, said):
        await said.until(Phase.READY, "deaf", "one")
        pids = _pids(said)
        begun = time.monotonic()
    assert STOP_S - 0.1 <= time.monotonic() - begun < STOP_S + STOP_SERVERS_S + 0.3
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert "deaf did not stop in time and was killed." in said.lines


async def test_a_second_stop_does_not_wait(tmp_path: Path) -> None:
    async with _running([_program("deaf", DEAF, tmp_path)]) as (supervisor, said):
        await said.until(Phase.READY, "deaf")
        begun = time.monotonic()
        supervisor.stop()
    assert time.monotonic() - begun < 1


async def test_what_a_program_started_does_not_outlive_it(tmp_path: Path) -> None:
    async with _running([_program("parent", GRANDCHILD, tmp_path)]) as (_, said):
        await said.until(Phase.READY, "parent")
        grandchild = psutil.Process(int((tmp_path / "parent.log").read_text().split()[1]))
        pid = said.whole.parts["parent"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await said.until_said("ready again")
        assert not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE


async def test_stopping_before_anything_is_ready_leaves_nothing(tmp_path: Path) -> None:
    before = psutil.Process().children()
    async with _running([embedded(NatsServer(tmp_path / "nats")), _program("one", STEADY, tmp_path)]) as (supervisor, said):
        supervisor.stop()
    assert _pids(said) == []
    assert not set(psutil.Process().children()) - set(before)


async def test_a_server_that_cannot_start_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    supervisor = Supervisor([embedded(NatsServer(tmp_path / "file"))], Said(), URL)
    with pytest.raises(StartError, match="cannot be written"):
        await supervisor.run()


async def test_errors_of_a_program_are_shown_and_a_line_without_end_does_not_stop_the_reading(tmp_path: Path) -> None:
    errors: list[str] = []
    code = "print('x' * 300_000); print('2026 error voice x: it broke', flush=True); import signal; signal.pause()"
    async with _running([_program("noisy", code, tmp_path, errors)]) as (_, said):
        await said.until(Phase.READY, "noisy")
        assert errors == ["2026 error voice x: it broke"]


async def test_children_die_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    code = f"""
import asyncio, os, sys
from pathlib import Path

from tests.voxbridge.supervisor.test_supervisor import GRANDCHILD, STEADY, Said, _program
from voxbridge.supervisor.children import embedded
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.supervisor.supervisor import Supervisor
folder = Path({str(tmp_path)!r})
class Telling(Said):
    def show(self, whole):
        if whole.ready:
            print(*(part.pid for part in whole.parts.values()), flush=True)
asyncio.run(Supervisor([embedded(NatsServer(folder / "n")), _program("one", STEADY, folder)], Telling(), "u").run())
"""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    children = [psutil.Process(int(pid)) for pid in (await asyncio.wait_for(parent.stdout.readline(), BOUND_S)).split()]
    assert len(children) == 2
    parent.kill()
    await parent.wait()
    _, alive = await asyncio.to_thread(psutil.wait_procs, children, 5)
    assert not alive


async def test_what_is_waited_for_is_named_when_it_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxbridge.supervisor.supervisor.LATE_S", 0.05)

    async def never() -> bool:
        return False

    late = replace(_program("two", STEADY, tmp_path), ready=never, why=lambda: "it cannot write")
    async with _running([_program("one", STEADY, tmp_path), late]) as (_, said):
        await said.until(Phase.READY, "one")
        await said.until_said("it waits for two (it cannot write).")
        await said.until_said("Voxbridge is not ready after 0.25 s; ")
    assert not any("is ready" in line for line in said.lines)
