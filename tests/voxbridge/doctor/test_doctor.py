"""`voxbridge doctor` on real servers, healthy, damaged and dead."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import nats
import pytest
from click.testing import CliRunner
from redis.asyncio import Redis

from tests.ports import free_port
from tests.stopped import stop
from tests.tools.conftest import Executors
from voxbridge.cli import cli
from voxbridge.doctor import examination, machine
from voxbridge.doctor.examination import examine
from voxbridge.doctor.finding import Finding, fail, ok, warn, worst
from voxbridge.installation import runtime
from voxbridge.installation.preflight import FolderLock
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.condition import Condition
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.unreadable import BROKEN
from voxbridge.shared.service.health import valkey_condition
from voxbridge.shared.store.store import Store


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """An installation without any running process."""
    return Config(data_dir=tmp_path / "data", models_dir=tmp_path / "models", port=free_port(), models_port=free_port())


def named(findings: list[Finding], area: str, name: str) -> Finding:
    (found,) = [one for one in findings if (one.area, one.name) == (area, name)]
    return found


async def test_nothing_that_runs_is_said_with_how_to_start_it(config: Config) -> None:
    findings = await examine(config)
    assert named(findings, "product", "voxbridge").level == "FAIL"
    assert "make up" in named(findings, "product", "voxbridge").do
    assert named(findings, "machine", f"port {config.port}").says == "free"
    assert named(findings, "models", "weights").do == "Run `voxbridge models get`."
    assert not config.data_dir.exists(), "it looks and changes nothing"


async def test_a_taken_port_names_who_has_it_and_what_to_set(config: Config) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", config.port))
        holder.listen()
        found = named(await examine(config), "machine", f"port {config.port}")
    assert found.level == "FAIL"
    assert str(os.getpid()) in found.says
    assert "VOXBRIDGE_PORT" in found.do


async def test_a_full_disk_is_said(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    config.data_dir.mkdir()
    monkeypatch.setattr(machine, "MIN_FREE_BYTES", 1 << 60)
    found = named(await examine(config), "machine", "disk")
    assert found.level == "FAIL"
    assert "full" in found.says
    assert "Free some space" in found.do


def test_a_workspace_that_functions_cannot_use_is_said(config: Config, tmp_path: Path) -> None:
    named_folders = replace(config, workspace_dirs=f"{tmp_path}{os.pathsep}{tmp_path / 'none'}")
    found = named(machine.look(named_folders, running=True), "machine", "workspace")
    assert (found.level, found.says) == ("WARN", f"{tmp_path / 'none'} does not exist: functions cannot use it.")
    assert "VOXBRIDGE_WORKSPACE_DIRS" in found.do
    assert named(machine.look(replace(config, workspace_dirs="/proc"), running=True), "machine", "workspace").level == "FAIL"
    assert named(machine.look(config, running=True), "machine", "workspace").level == "OK"


async def test_a_running_product_is_found_by_its_folder_and_examined_part_by_part(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BROKEN, "count", 0)  # other tests met broken events in this process
    config.data_dir.mkdir()
    with NatsServer(config.data_dir / "nats") as server, ValkeyServer(config.data_dir / "valkey") as valkey:
        lock = FolderLock.take(config.data_dir, "http://here")
        runtime.tell(replace(config, nats_url=server.url, redis_url=valkey.url), "http://here")
        try:
            async with Executors(Config(nats_url=server.url, redis_url=valkey.url)).running():
                elsewhere = replace(config, port=free_port(), models_port=free_port())
                findings = await examine(elsewhere)  # as from a shell without its settings
        finally:
            lock.release()
    assert "in use" in named(findings, "machine", "data folder").says
    assert str(config.port) in named(findings, "services", "gateway's port").says
    assert str(config.models_port) in named(findings, "models", "service").says
    for area, name in (("event log", "NATS"), ("event log", "stream EV"), ("event log", "queue tools"), ("event log", "room")):
        assert named(findings, area, name).level == "OK", (area, name)
    assert named(findings, "event log", "queue voice").level == "FAIL", "no voice service has made it"
    assert named(findings, "event log", "clock").level == "OK"
    assert named(findings, "valkey", "persistence").level == "OK"
    assert named(findings, "sessions", "owners").level == "OK"
    tools, voice = named(findings, "services", "tools"), named(findings, "services", "voice")
    assert tools.says != "is not running."
    assert (voice.level, voice.says) == ("FAIL", "is not running.")
    assert "logs/voice.log" in voice.do
    secrets = {server.system_password(), (config.data_dir / "nats" / "password").read_text()}
    assert not any(secret in finding.says + finding.do for finding in findings for secret in secrets)


async def test_what_runs_elsewhere_is_examined_without_this_machine(config: Config, nats_url: str, redis_url: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        allowed = f"host: 127.0.0.1:{config.port}\r\n".encode() in asked.lower()
        writer.write(b"HTTP/1.1 %s\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}" % (b"200 OK" if allowed else b"403 Forbidden"))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        findings = await examine(replace(config, nats_url=nats_url, redis_url=redis_url, gateway_url=f"{url}/"))
    assert [finding.name for finding in findings if finding.area == "machine"] == ["versions"]
    port = named(findings, "services", "gateway's port")
    assert (port.level, port.says) == ("OK", f"{url} is ready")
    assert "docker compose logs voice" in named(findings, "services", "voice").do
    assert "docker compose logs models" in named(findings, "models", "service").do


async def test_broken_events_forsaken_sessions_and_a_lost_index_are_said(config: Config, nats_url: str, redis_url: str) -> None:
    nc = await nats.connect(nats_url)
    await Log(nc).ensure_streams(retention_days=1)
    sid = new_session_id()
    broken = (await nc.jetstream().publish(subjects.event_subject(sid, "voice", True, "user.said"), b"\xc1")).seq
    await nc.close()
    async with Redis.from_url(redis_url, decode_responses=True) as redis:
        store, now = Store(redis), SystemClock().now_us()
        await store.session_opened(sid, now - 3_600_000_000)
        findings = await examine(replace(config, nats_url=nats_url, redis_url=redis_url))
    events = named(findings, "event log", "events")
    assert events.level == "WARN"
    assert f"{broken} (unreadable of session {sid[:8]})" in events.says
    owners = named(findings, "sessions", "owners")
    assert (owners.level, sid[:8] in owners.says) == ("WARN", True)
    assert named(findings, "sessions", "index").level == "WARN"


async def test_servers_that_are_dead_are_said_to_be(config: Config) -> None:
    begun = time.monotonic()
    findings = await examine(replace(config, nats_url=f"nats://127.0.0.1:{free_port()}", redis_url=f"redis://127.0.0.1:{free_port()}"))
    assert time.monotonic() - begun < 10
    assert named(findings, "event log", "NATS").level == "FAIL"
    assert named(findings, "valkey", "Valkey").level == "FAIL"
    assert named(findings, "services", "gateway's port").level == "FAIL"
    assert all(finding.do for finding in findings if finding.level != "OK")


async def test_servers_that_say_nothing_cost_their_time_out_and_no_more(
    config: Config, own_nats: Callable[[], NatsServer], own_valkey: Callable[[], ValkeyServer]
) -> None:
    server, valkey = own_nats(), own_valkey()
    stopped = [pid for pid in (server.pid, valkey.pid) if pid is not None]
    for pid in stopped:
        stop(pid)
    try:
        async with asyncio.timeout(examination.BOUND_S + 2):
            findings = await examine(replace(config, nats_url=server.url, redis_url=valkey.url))
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    found = named(findings, "event log", "NATS")
    assert (found.level, f":{server.port} " in found.says, bool(found.do)) == ("FAIL", True, True)
    assert named(findings, "valkey", "Valkey").level == "FAIL"


async def test_a_valkey_that_was_only_late_once_is_asked_again(
    config: Config, monkeypatch: pytest.MonkeyPatch, nats_url: str, redis_url: str
) -> None:
    asked: list[Redis] = []

    async def late_once(redis: Redis) -> Condition:
        asked.append(redis)
        return await valkey_condition(redis) if len(asked) > 1 else Condition("down", "Valkey does not answer. See that it runs.")

    monkeypatch.setattr("voxbridge.doctor.valkey.valkey_condition", late_once)
    findings = await examine(replace(config, nats_url=nats_url, redis_url=redis_url))
    assert named(findings, "valkey", "Valkey").says.startswith("answers at ")
    assert len(asked) == 2


async def test_a_full_valkey_is_said_to_be_full(config: Config, own_valkey: Callable[[], ValkeyServer], nats_url: str) -> None:
    valkey = own_valkey()
    async with Redis.from_url(valkey.url) as redis:
        await redis.config_set("maxmemory", "1")
        found = named(await examine(replace(config, nats_url=nats_url, redis_url=valkey.url)), "valkey", "Valkey")
    assert found.level == "FAIL"
    assert "full" in found.says
    assert "maxmemory" in found.do


def test_the_command_prints_a_table_or_json_and_ends_with_1_when_something_fails(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in config.as_env().items():
        monkeypatch.setenv(name, value)
    shown = CliRunner().invoke(cli, ["doctor"])
    assert shown.exit_code == 1
    assert "FAIL" in shown.output
    assert "→" in shown.output
    told = CliRunner().invoke(cli, ["doctor", "--json"])
    assert told.exit_code == 1
    answer = json.loads(told.output)
    assert answer["level"] == "FAIL"
    assert {"area", "name", "level", "says", "do"} == set(answer["findings"][0])
    monkeypatch.setenv("VOXBRIDGE_PORT", "many")
    wrong = CliRunner().invoke(cli, ["doctor"])
    assert wrong.exit_code == 2
    assert "VOXBRIDGE_PORT" in wrong.output


def test_the_worst_finding_decides() -> None:
    good, soon, bad = ok("a", "n", "s"), warn("a", "n", "s", "d"), fail("a", "n", "s", "d")
    assert (worst([]), worst([good]), worst([good, soon]), worst([soon, bad, good])) == ("OK", "OK", "WARN", "FAIL")
