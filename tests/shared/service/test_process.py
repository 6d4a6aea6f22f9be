from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.eventually import BOUND_S, eventually
from voxbridge.shared.bus.connection import AUDIO_PENDING, connect_nats
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.service.process import DRAIN_TIMEOUT_S, Resources, Service, health_subject, run
from voxbridge.shared.store.connection import connect_redis, redis_answers


class Echo(Service):
    """A small real service that answers on one subject until it is drained."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self.drained = asyncio.Event()
        self.warm = False

    async def serve(self) -> None:
        async def answer(message: Msg) -> None:
            await message.respond(message.data)

        subscription = await self.resources.events_nc.subscribe("echo", cb=answer)
        await self.drained.wait()
        await subscription.unsubscribe()

    async def drain(self) -> None:
        self.drained.set()

    def health(self) -> dict[str, bool]:
        return {"warm": self.warm}

    def stats(self) -> dict[str, float]:
        return {"sessions": 3}


class Running:
    """A service under test, with the service object once it is built."""

    def __init__(self, config: Config, make: Callable[[Resources], Service] = Echo) -> None:
        self.built: asyncio.Future[Service] = asyncio.get_running_loop().create_future()

        async def build(resources: Resources) -> Service:
            service = make(resources)
            self.built.set_result(service)
            return service

        self.exit = asyncio.create_task(run("echo", build, config))


async def _ask(client: Client, subject: str, payload: bytes = b"") -> bytes:
    """Return the answer to a request; repeats it while there is no subscriber."""
    async with asyncio.timeout(BOUND_S):
        while True:
            try:
                return (await client.request(subject, payload, timeout=1)).data
            except nats.errors.NoRespondersError:
                await asyncio.sleep(0.01)


async def test_a_service_answers_tells_its_health_and_drains_on_a_signal(nats_url: str, redis_url: str) -> None:
    running = Running(Config(nats_url=nats_url, redis_url=redis_url))
    client = await nats.connect(nats_url)
    assert await _ask(client, "echo", b"hello") == b"hello"
    health = json.loads(await _ask(client, "vx.svc.echo.health"))
    assert health["dependencies"] == {"nats": True, "redis": True, "log": True, "warm": False}
    assert {name: one["state"] for name, one in health["conditions"].items()} == {"nats": "ok", "redis": "ok", "log": "ok", "warm": "down"}
    assert health["ready"] is False
    service = await running.built
    assert isinstance(service, Echo)
    service.warm = True
    assert json.loads(await _ask(client, "vx.svc.echo.health"))["ready"] is True
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running.exit, BOUND_S) == 0
    assert service.resources.events_nc.is_closed
    assert service.resources.audio_nc.is_closed
    await client.close()


async def test_the_micro_framework_lists_the_service_with_its_figures(nats_url: str, redis_url: str) -> None:
    running = Running(Config(nats_url=nats_url, redis_url=redis_url))
    client = await nats.connect(nats_url)
    await _ask(client, "vx.svc.echo.health")
    ping = json.loads(await _ask(client, "$SRV.PING.voxbridge-echo"))
    assert ping["name"] == "voxbridge-echo"
    info = json.loads(await _ask(client, "$SRV.INFO.voxbridge-echo"))
    assert "vx.svc.echo.health" in [endpoint["subject"] for endpoint in info["endpoints"]]
    stats = json.loads(await _ask(client, "$SRV.STATS.voxbridge-echo"))
    health = next(endpoint for endpoint in stats["endpoints"] if endpoint["name"] == "health")
    assert health["num_requests"] >= 1
    assert health["data"]["sessions"] == 3
    os.kill(os.getpid(), signal.SIGINT)
    assert await asyncio.wait_for(running.exit, BOUND_S) == 0
    await client.close()


class Cold(Echo):
    """A service with something to load, which can fail."""

    loaded = asyncio.Event()
    fails = False

    async def warm_up(self) -> None:
        await self.loaded.wait()
        if self.fails:
            raise ValueError("there is nothing to load")


@pytest.mark.parametrize("fails", [False, True])
async def test_a_process_works_at_once_and_is_counted_as_ready_when_it_is_warm(nats_url: str, redis_url: str, fails: bool) -> None:
    Cold.loaded, Cold.fails = asyncio.Event(), fails
    running = Running(Config(nats_url=nats_url, redis_url=redis_url), Cold)
    client = await nats.connect(nats_url)
    assert await _ask(client, "echo", b"hello") == b"hello"
    assert json.loads(await _ask(client, health_subject("echo", socket.gethostname())))["process"]
    with pytest.raises(nats.errors.NoRespondersError):
        await client.request(health_subject("echo"), timeout=BOUND_S)
    Cold.loaded.set()
    assert json.loads(await _ask(client, health_subject("echo")))["process"]
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running.exit, BOUND_S) == 0
    await client.close()


async def test_a_service_waits_for_servers_that_come_up_later(tmp_path: Path, redis_url: str) -> None:
    server = NatsServer(tmp_path / "nats").start()
    server.stop()
    running = Running(Config(nats_url=server.url, redis_url=redis_url))
    done, _ = await asyncio.wait({running.exit}, timeout=0.2)
    assert not done
    with server:
        client = await nats.connect(server.url)
        assert await _ask(client, "echo", b"late") == b"late"
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(running.exit, BOUND_S) == 0
        await client.close()


async def test_a_signal_ends_the_wait_for_servers(tmp_path: Path, redis_url: str) -> None:
    server = NatsServer(tmp_path / "nats").start()
    server.stop()
    running = Running(Config(nats_url=server.url, redis_url=redis_url))
    done, _ = await asyncio.wait({running.exit}, timeout=0.1)
    assert not done
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running.exit, BOUND_S) == 0
    assert not running.built.done()


async def test_a_server_that_never_comes_is_named_without_its_password(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats").start()
    server.stop()
    with pytest.raises(Unavailable) as caught:
        await connect_nats(server.url, "test", pending=AUDIO_PENDING, timeout_s=0.1)
    assert f"NATS at 127.0.0.1:{server.port} could not be reached within 0.1 s" in caught.value.message
    assert caught.value.retryable
    with pytest.raises(Unavailable) as caught:
        await connect_redis(f"unix://:secret@{tmp_path}/none.sock", timeout_s=0.1)
    assert f"Redis at {tmp_path}/none.sock" in caught.value.message
    assert "secret" not in caught.value.message


async def test_a_failing_service_ends_with_code_1(nats_url: str, redis_url: str, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Echo):
        async def serve(self) -> None:
            raise RuntimeError("the reason")

    running = Running(Config(nats_url=nats_url, redis_url=redis_url), Failing)
    assert await asyncio.wait_for(running.exit, BOUND_S) == 1
    assert any("echo failed" in record.getMessage() and record.exc_info for record in caplog.records)


async def test_a_service_that_does_not_drain_is_cut_off_at_the_bound(nats_url: str, redis_url: str) -> None:
    class Stubborn(Echo):
        async def drain(self) -> None:
            """Never set the event that ends `serve`."""

    running = Running(Config(nats_url=nats_url, redis_url=redis_url), Stubborn)
    client = await nats.connect(nats_url)
    await _ask(client, "echo")
    begun = time.monotonic()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running.exit, BOUND_S) == 0
    assert DRAIN_TIMEOUT_S - 0.1 <= time.monotonic() - begun <= DRAIN_TIMEOUT_S + 10
    await client.close()


async def test_connections_come_back_after_the_servers_were_killed(
    own_nats: Callable[[], NatsServer], own_valkey: Callable[[], ValkeyServer]
) -> None:
    bus, store = own_nats(), own_valkey()
    running = Running(Config(nats_url=bus.url, redis_url=store.url))
    service = await asyncio.wait_for(running.built, BOUND_S)
    assert isinstance(service, Echo)

    async def dependencies() -> dict[str, bool]:
        return {name: one.ok for name, one in (await service.resources.conditions()).items() if name != "log"}

    bus.kill()
    store.kill()
    await _becomes(dependencies, {"nats": False, "redis": False})
    bus.start()
    store.start()
    begun = time.monotonic()
    await _becomes(dependencies, {"nats": True, "redis": True})
    assert time.monotonic() - begun < 10
    assert await redis_answers(service.resources.redis)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running.exit, BOUND_S) == 0


async def _becomes(ask: Callable[[], Awaitable[dict[str, bool]]], expected: dict[str, bool]) -> None:
    async def holds() -> bool:
        return await ask() == expected

    await eventually(holds)


def test_wrong_settings_end_a_process_with_one_line() -> None:
    code = "from voxbridge.shared.service.process import main; main('echo', None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"VOXBRIDGE_PORT": "many"}, check=False)
    assert done.returncode == 2
    assert done.stderr == "VOXBRIDGE_PORT must be a whole number from 1 to 65535; it is 'many'.\n"


async def test_a_service_that_is_stopped_while_nats_is_away_ends_with_one_line_and_code_0(
    own_nats: Callable[[], NatsServer], redis_url: str
) -> None:
    bus = own_nats()
    code = """
from voxbridge.shared.service.process import main
from tests.shared.service.test_process import Echo

class Publishing(Echo):
    async def drain(self):
        await self.resources.events_nc.publish("late", b"news")
        await super().drain()

async def build(resources):
    return Publishing(resources)

main("echo", build)
"""
    env = {**os.environ, "VOXBRIDGE_NATS_URL": bus.url, "VOXBRIDGE_REDIS_URL": redis_url}
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, env=env, stderr=asyncio.subprocess.PIPE)
    client = await nats.connect(bus.url)
    assert await _ask(client, "echo", b"hello") == b"hello"
    await client.close()
    bus.kill()
    assert process.stderr is not None
    async with asyncio.timeout(BOUND_S):
        while "it reconnects" not in (await process.stderr.readline()).decode():
            assert process.returncode is None
    process.send_signal(signal.SIGTERM)
    _, said = await asyncio.wait_for(process.communicate(), BOUND_S)
    lines = said.decode()
    assert process.returncode == 0, lines
    assert "Traceback" not in lines
    assert "echo ends." in lines


async def test_a_service_whose_tasks_do_not_end_ends_all_the_same_and_says_which(
    own_nats: Callable[[], NatsServer], redis_url: str
) -> None:
    """A cancellation can be lost: a task that polls NATS would then continue as long as NATS is down."""
    code = """
import asyncio
from voxbridge.shared.service import process
from tests.shared.service.test_process import Echo

async def deaf():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

class Deaf(Echo):
    async def serve(self):
        self.task = asyncio.create_task(deaf())
        await super().serve()

    async def drain(self):
        await deaf()

async def build(resources):
    return Deaf(resources)

process.DRAIN_TIMEOUT_S = 0.2
process.main("echo", build)
"""
    bus = own_nats()
    env = {**os.environ, "VOXBRIDGE_NATS_URL": bus.url, "VOXBRIDGE_REDIS_URL": redis_url}
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, env=env, stderr=asyncio.subprocess.PIPE)
    client = await nats.connect(bus.url)
    assert await _ask(client, "echo", b"hello") == b"hello"
    await client.close()
    process.send_signal(signal.SIGTERM)
    _, said = await asyncio.wait_for(process.communicate(), BOUND_S)
    lines = said.decode()
    assert process.returncode == 0, lines
    assert "echo was not drained within 0.2 s" in lines
    assert "echo ends without _drained, deaf." in lines
    assert "Traceback" not in lines


@pytest.mark.parametrize("seed", ["", "not a seed", "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VX!", "é"])
async def test_a_file_that_holds_no_seed_is_refused_without_showing_what_it_holds(tmp_path: Path, seed: str) -> None:
    file = tmp_path / "nats.seed"
    file.write_text(seed)
    with pytest.raises(VoxbridgeError) as refused:
        await connect_nats("nats://127.0.0.1:1", "test", pending=AUDIO_PENDING, user="voice", seed_file=str(file))
    assert (refused.value.code, refused.value.field) == (Code.INVALID_ARGUMENT, "VOXBRIDGE_NATS_SEED_FILE")
    assert not seed or seed not in refused.value.message
