"""Engines that outlive the service that started them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import psutil
import pytest

from tests.eventually import BOUND_S, eventually
from tests.ports import free_port
from tests.processes import gone
from voxbridge.services.models.processes import engine_process as child_module
from voxbridge.services.models.processes.engine_process import Child, Launch
from voxbridge.services.models.processes.home import Home, Record
from voxbridge.services.models.processes.keeper import GRACE_S
from voxbridge.shared.errors import Unavailable


class WebServer(Child):
    """Python's web server, as an engine that starts fast."""

    name = "web"
    start_timeout_s = 15.0

    def __init__(self, home: Home, made_of: str = "one", *, command: tuple[str, ...] = ()) -> None:
        super().__init__(home)
        self.made_of = made_of
        self._command = command

    def identity(self) -> tuple[object, ...]:
        return (self.made_of,)

    def launch(self) -> Launch:
        port = free_port()
        command = self._command or (sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1")
        return Launch(command=command, url=f"http://127.0.0.1:{port}")

    async def serves(self) -> bool:
        async with httpx.AsyncClient(trust_env=False) as client:
            return (await client.get(self.url)).status_code == httpx.codes.OK

    async def abandon(self) -> Callable[[], Awaitable[None]]:
        """Leave the engine behind as a killed service does. Return a function that waits for the engine's end."""
        assert self._watch is not None
        assert self._keeper is not None
        self._watch.cancel()
        return self._keeper.wait


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path, 1)
    home.take()
    yield home
    home.leave()


async def _until(holds: Callable[[], bool]) -> None:
    await eventually(holds)


def _next_service(home: Home) -> Home:
    home.leave()  # as when the service is killed
    again = Home(home.folder.parents[1], 1)
    again.take()
    return again


async def test_the_next_service_adopts_an_engine_and_stops_it_with_itself(home: Home) -> None:
    first = WebServer(home)
    await first.start()
    engine = psutil.Process(first.pid).children()[0].pid
    ended = await first.abandon()
    home = _next_service(home)
    second = WebServer(home)
    await second.start()
    assert (second.pid, second.url) == (first.pid, first.url)
    await second.close()
    await ended()
    await _until(lambda: gone(engine))
    assert home.record("web") is None
    home.leave()


async def test_an_engine_made_of_something_else_is_not_adopted(home: Home) -> None:
    first = WebServer(home)
    await first.start()
    assert first.pid is not None
    ended = await first.abandon()
    home = _next_service(home)
    second = WebServer(home, "other weights")
    await second.start()
    await ended()
    assert second.pid != first.pid
    await second.close()
    home.leave()


async def test_a_record_of_a_process_that_is_something_else_is_not_believed(home: Home) -> None:
    home.remember("web", Record(pid=os.getpid(), identity="", url="http://127.0.0.1:1"))
    engine = WebServer(home)
    await engine.start()
    assert engine.pid != os.getpid()
    await engine.close()


async def test_a_record_that_cannot_be_read_costs_a_start(home: Home) -> None:
    (home.folder / "web.json").write_text('{"pid": "none"')
    engine = WebServer(home)
    await engine.start()
    await engine.close()


async def test_an_adopted_engine_that_dies_is_started_again(home: Home) -> None:
    first = WebServer(home)
    await first.start()
    ended = await first.abandon()
    home = _next_service(home)
    second = WebServer(home)
    await second.start()
    psutil.Process(second.pid).children()[0].kill()
    await _until(lambda: second.restarts == 1 and second.pid not in (None, first.pid) and second._up.is_set())
    assert await second.serves()
    await ended()
    await second.close()
    home.leave()


async def test_a_killed_keeper_takes_its_engine_along_and_both_come_back(home: Home) -> None:
    engine = WebServer(home)
    await engine.start()
    assert engine.pid is not None
    old = psutil.Process(engine.pid).children()[0].pid
    os.kill(engine.pid, signal.SIGKILL)
    await _until(lambda: gone(old) and engine.restarts == 1 and engine._up.is_set())
    assert await engine.serves()
    await engine.close()


async def test_an_engine_that_nobody_adopts_ends(home: Home) -> None:
    engine = WebServer(home)
    await engine.start()
    assert engine.pid is not None
    loop = asyncio.get_running_loop()
    begun = loop.time()
    home.leave()
    await _until(lambda: engine.restarts == 1)  # its keeper has ended, and this service, which still runs, starts the engine again
    assert loop.time() - begun >= GRACE_S
    home.take()
    await engine.close()


async def test_an_engine_ends_when_the_process_that_started_the_service_isgone(home: Home) -> None:
    starter = await asyncio.create_subprocess_exec(sys.executable, "-c", "import signal; signal.pause()")
    keeper = [sys.executable, "-m", "voxbridge.services.models.processes.keeper", str(home.folder), "web", str(starter.pid)]
    kept = await asyncio.create_subprocess_exec(*keeper, sys.executable, "-m", "http.server", str(free_port()))
    starter.kill()
    await starter.wait()
    assert await asyncio.wait_for(kept.wait(), BOUND_S) == 128 + signal.SIGTERM


async def test_what_an_engine_said_last_is_in_the_error(home: Home) -> None:
    engine = WebServer(home, command=(sys.executable, "-c", "import sys; print('loading'); sys.exit('the file is torn')"))
    with pytest.raises(Unavailable, match="the file is torn"):
        await engine.start()
    assert engine.pid is None


async def test_an_engine_that_never_serves_is_given_up(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WebServer, "start_timeout_s", 0.5)
    engine = WebServer(home, command=(sys.executable, "-c", "import signal; signal.pause()"))
    with pytest.raises(Unavailable, match=r"did not serve within 0 s|did not serve within 1 s"):
        await engine.start()
    assert engine.pid is None


def test_one_service_at_a_time_holds_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxbridge.services.models.processes.home.LOCK_TIMEOUT_S", 0.1)
    first, second = Home(tmp_path, 1), Home(tmp_path, 1)
    first.take()
    with pytest.raises(Unavailable, match="Another models service holds"):
        second.take()
    first.leave()
    second.take()
    second.leave()


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match=r"cannot be written: Not a directory\. Free it, or set VOXBRIDGE_DATA_DIR"):
        Home(tmp_path / "file", 1).take()


async def test_only_this_user_reads_the_key_of_an_engine(home: Home) -> None:
    home.remember("web", Record(pid=1, identity="", url="http://127.0.0.1:1", key="secret"))
    assert (home.folder / "web.json").stat().st_mode & 0o777 == 0o600
    assert home.folder.stat().st_mode & 0o777 == 0o700
    assert child_module.fingerprint(home.folder / "web.json")[1] > 0
