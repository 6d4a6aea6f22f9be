"""A full disk, and a slow one, under a nats-server that keeps answering."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import nats
import pytest
from nats.aio.msg import Msg

from tests.eventually import BOUND_S, eventually
from tests.faults.stack import Talker, stack, talker
from tests.ports import free_port
from tests.shared.backends import open_log
from tests.stopped import stop
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import wall_ms32
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.events.gateway import TextReceived
from voxbridge.shared.events.voice import UserSaid
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.append_stats import SLOW_S
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.supervisor.children import embedded
from voxbridge.supervisor.readiness import Phase, Whole
from voxbridge.supervisor.supervisor import Supervisor


class Said:
    """Output of a supervisor."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.whole = Whole()

    def line(self, text: str) -> None:
        self.lines.append(text)

    def show(self, whole: Whole) -> None:
        self.whole = whole


class Disk:
    """Size limit on a server's files: behaves like a full disk, without filling a real one."""

    def __init__(self, server: NatsServer) -> None:
        self._server = server

    def full(self, at_bytes: int) -> None:
        assert self._server.pid is not None
        _, hard = resource.prlimit(self._server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self._server.pid, resource.RLIMIT_FSIZE, (at_bytes, hard))


@asynccontextmanager
async def supervised(server: NatsServer) -> AsyncIterator[Said]:
    server.reserve()
    said = Said()
    supervisor = Supervisor([embedded(server)], said, "http://nowhere")
    running = asyncio.create_task(supervisor.run())
    try:
        await eventually(
            lambda: said.whole.parts.get(server.name) is not None and said.whole.parts[server.name].phase is Phase.READY, within_s=BOUND_S
        )
        yield said
    finally:
        supervisor.stop()
        await running


def said(turn: int) -> UserSaid:
    return UserSaid(text="x" * 10_000, turn=turn, source="text")


async def test_a_full_disk_is_said_calls_keep_their_audio_and_the_log_goes_on_by_itself_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = NatsServer(tmp_path / "nats")
    room = False
    monkeypatch.setattr(server, "has_room", lambda: room)
    async with supervised(server) as supervisor, open_log(server.url) as log:
        writer = SessionWriter(log, new_session_id(), "voice")
        acked = [await writer.append(said(turn), ts=turn, cause=None) for turn in range(5)]
        Disk(server).full(at_bytes=100_000)
        waiting = [asyncio.create_task(writer.append(said(turn), ts=turn, cause=None)) for turn in range(5, 25)]
        await eventually(lambda: supervisor.whole.parts[server.name].phase is not Phase.READY)
        assert "write error" in supervisor.lines[-1]

        await eventually(lambda: log.appends.condition().state == "down")
        assert "disk may be full" in log.appends.condition().detail
        done = [task for task in waiting if task.done()]
        assert len(done) < len(waiting)

        # The bus still works: audio passes while the log accepts nothing.
        sid, frames = new_session_id(), asyncio.Queue[Msg]()
        await log.nc.subscribe(subjects.audio_in(sid), cb=frames.put)
        await log.nc.publish(subjects.audio_in(sid), b"frame")
        assert (await asyncio.wait_for(frames.get(), BOUND_S)).data == b"frame"

        pid = server.pid
        room = True
        acked += await asyncio.wait_for(asyncio.gather(*waiting), BOUND_S)
        assert server.pid != pid, "only a start makes it write again"
        assert log.appends.condition().state == "ok"

        outside = await nats.connect(server.url)
        read = [recorded async for recorded in Log(outside).read_all(writer.sid)]
        await outside.close()
        assert [recorded.seq for recorded in read] == acked
        assert [recorded.ts for recorded in read] == list(range(25))


def test_a_server_that_dies_on_a_full_disk_comes_back_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with NatsServer(tmp_path / "nats") as server:
        monkeypatch.setattr(server, "_min_free", 1 << 60)
        assert not server.has_room()
        server.kill()
        server.start()
        assert server.answers()
        assert server.ailment() == ""


async def test_appends_that_are_late_are_said_with_their_time_and_none_is_lost(tmp_path: Path) -> None:
    with NatsServer(tmp_path / "nats") as server:
        async with open_log(server.url) as log:
            writer = SessionWriter(log, new_session_id(), "voice")
            await writer.append(said(0), ts=0, cause=None)
            assert server.pid is not None
            for turn in range(1, 4):
                stop(server.pid)
                late = asyncio.create_task(writer.append(said(turn), ts=turn, cause=None))
                await eventually(lambda: log.appends.waiting_s() >= 2 * SLOW_S)
                os.kill(server.pid, signal.SIGCONT)
                await asyncio.wait_for(late, BOUND_S)
            condition = log.appends.condition()
            assert condition.state == "degraded"
            assert "disk is slow" in condition.detail
            assert [recorded.ts for recorded in await log.read(writer.sid)] == [0, 1, 2, 3]
            for turn in range(4, 64):
                await writer.append(said(turn), ts=turn, cause=None)
            assert log.appends.waiting_s() == 0


async def test_a_call_over_a_full_disk_keeps_its_audio_and_loses_no_word(
    own_nats: Callable[[], NatsServer], redis_url: str, config: Config, tmp_path: Path
) -> None:
    server = own_nats()
    whole = replace(config, nats_url=server.url, redis_url=redis_url, port=free_port(), models_port=free_port(), data_dir=tmp_path)
    whole = replace(whole, tool_packs="tests.tools.pack")
    async with stack(whole), talker(whole) as person:
        await person.start("echo")
        speaking = asyncio.create_task(_speak(person))
        try:
            await person.frames_over(20)
            Disk(server).full(at_bytes=1)
            for word in ("first", "second"):
                await person.say(word)
            async with asyncio.timeout(BOUND_S), httpx.AsyncClient(trust_env=False, timeout=5) as client:
                while True:
                    log = (await client.get(f"http://127.0.0.1:{whole.port}/readyz")).json()["dependencies"]["event_log"]
                    if log["state"] == "down" and "disk" in log["detail"]:
                        break
                    await asyncio.sleep(0.1)
            await person.frames_over(person.frames + 50)
            server.kill()  # as the supervisor does once there is room
            server.start()
            await person.frames_over(person.frames + 50)
        finally:
            speaking.cancel()
            await asyncio.wait({speaking})
        outside = await nats.connect(server.url)
        try:
            read = Log(outside)
            async with asyncio.timeout(BOUND_S):
                typed: list[str] = []
                while len(typed) < 2:
                    await asyncio.sleep(0.1)
                    typed = [one.event.text async for one in read.read_all(person.sid) if isinstance(one.event, TextReceived)]
        finally:
            await outside.close()
    assert typed == ["first", "second"]
    assert [one for one in person.told if one["type"] in ("error", "session_ended", "go_away")] == []


async def _speak(person: Talker) -> None:
    """Send microphone frames, one each 20 ms."""
    sequence = 0
    while True:
        await person.sound(frames.pack(frames.PCM16, 0, sequence, wall_ms32(), b"\x01\x02" * 320))
        sequence += 1
        await asyncio.sleep(0.02)
