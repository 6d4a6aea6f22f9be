"""`voxbridge up`: the whole product on this machine, in one console.

Owns which processes there are and with what settings. Does not own how they are kept running (`voxbridge.supervisor.supervisor`). A crash
here ends them all, and loses nothing that was acknowledged: the next start continues from the log.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from voxbridge.installation import runtime
from voxbridge.installation.preflight import FolderLock, check_folder, check_port, check_secrets, make_vault
from voxbridge.installation.streams import StreamAdmin
from voxbridge.services.terminals import folder
from voxbridge.services.terminals.holder import holder
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.servers import EmbeddedServer, StartError
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.service.process import STAND_BY
from voxbridge.shared.setting import PREFIX
from voxbridge.supervisor import environment
from voxbridge.supervisor.children import Child, Command, Probe, Program, child_environment, embedded, start_command
from voxbridge.supervisor.console import Board
from voxbridge.supervisor.logfile import LogFile
from voxbridge.supervisor.probes import Probes
from voxbridge.supervisor.repeats import Repeats
from voxbridge.supervisor.standby import Standby
from voxbridge.supervisor.supervisor import Supervisor

SERVICES: Final = ("models", "knowledge", "awareness", "terminals", "tools", "voice", "gateway")
STANDING_BY: Final = ("gateway", "terminals")
"""Services whose next process stands by: every browser waits for the gateway, and whoever types into a program for the terminals service.
Of the voice service two workers run anyway."""


def up(config: Config, board: Board) -> int:
    """Check, fetch what is missing, start everything, wait for a signal, stop everything; return the exit code."""
    # The status of the servers already shows what this process's own NATS connection would log.
    logging.getLogger().addHandler(logging.NullHandler())
    url = config.own_url
    check_folder(config.data_dir)
    check_secrets(config)
    lock = FolderLock.take(config.data_dir, url)
    runtime.forget(config.data_dir)  # a crash may have left the file behind
    try:
        make_vault(config)
        check_port(config.host, config.port, "VOXBRIDGE_PORT")
        if not config.models_url:
            check_port("127.0.0.1", config.models_port, "VOXBRIDGE_MODELS_PORT")
            _fetch_models(config)
        with board:
            asyncio.run(_run(config, board, url))
    finally:
        lock.release()
    return 0


def _fetch_models(config: Config) -> None:
    done = subprocess.run([sys.executable, "-m", "voxbridge", "models", "get"], env=child_environment(config.as_env(), PREFIX), check=False)
    if done.returncode:
        raise StartError("The models are not all here, so nothing was started; the reason is above.", field="VOXBRIDGE_MODELS_SOURCE")


async def _run(config: Config, board: Board, url: str) -> None:
    config, servers = with_servers(config)
    probes = Probes(config.nats_url)
    bus = next((server for server in servers if isinstance(server, NatsServer)), None)
    store = next((server for server in servers if isinstance(server, ValkeyServer)), None)
    maker = StreamAdmin(config) if bus is not None else None
    programs = [_with_streams(embedded(server), maker if server is bus else None) for server in servers]
    supervisor = Supervisor([*programs, *services(config, probes, board.line, bus, store)], board, url)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, supervisor.stop)
    runtime.tell(config, url)
    try:
        await supervisor.run()
    finally:
        # What runs in terminals outlives the death of any service, and ends with the product.
        await asyncio.to_thread(holder.stop, folder.place(config.terminals_path))
        runtime.forget(config.data_dir)
        await probes.close()
        if maker is not None:
            await maker.close()


def _with_streams(server: Program, maker: StreamAdmin | None) -> Program:
    """Let nats-server count as ready only once its streams exist: the services, which sign in as themselves, may not create them."""
    answers = server.ready
    if maker is None or answers is None:
        return server

    async def ready() -> bool:
        return await answers() and await maker.made()

    return replace(server, ready=ready, why=lambda: server.why() or maker.trouble)


def with_servers(config: Config) -> tuple[Config, list[EmbeddedServer]]:
    """Return the settings with the URLs of the servers that this process starts, and those servers."""
    servers: list[EmbeddedServer] = []
    if not config.nats_url:
        bus = NatsServer(config.data_dir / "nats", sync_interval=config.sync_interval)
        servers.append(bus)
        config = replace(config, nats_url=bus.reserve())
    if not config.redis_url:
        store = ValkeyServer(config.data_dir / "valkey")
        servers.append(store)
        config = replace(config, redis_url=store.reserve())
    return config, servers


def services(
    config: Config,
    probes: Probes,
    say: Callable[[str], None],
    bus: NatsServer | None = None,
    store: ValkeyServer | None = None,
) -> list[Program]:
    """Return one program per service that this machine runs; for the voice service one per worker. Each signs in to those servers that are
    given as itself."""
    ready: Mapping[str, Probe] = {
        "models": probes.http(f"http://127.0.0.1:{config.models_port}/readyz"),
        "knowledge": probes.bus("knowledge"),
        "awareness": probes.bus("awareness"),
        "terminals": probes.bus("terminals"),
        "tools": probes.bus("tools"),
        "gateway": probes.http(f"{config.own_url}/readyz"),
    }
    programs: list[Program] = []
    for name in names(config):
        service = name.partition("-")[0]
        starting = _Service(name, environment.of_service(service, config, bus, store), config.data_dir / "logs", say)
        if service == "voice":
            asked = probes.bus("voice", starting.number)
            programs.append(Program(name=name, spawn=starting.spawn, ready=asked, ended=probes.a_voice_worker_died))
        else:
            standby = starting.standby if service in STANDING_BY else None
            programs.append(Program(name=name, spawn=starting.spawn, ready=ready[service], standby=standby))
    return programs


def names(config: Config) -> list[str]:
    """Return the names of the processes that this machine runs, after their services: `voice`, and `voice-2` beside it."""
    found = [name for name in SERVICES if name != "models" or not config.models_url]
    after = found.index("voice") + 1
    return [*found[:after], *(f"voice-{number}" for number in range(2, config.voice_workers + 1)), *found[after:]]


class _Service:
    """Starter of one process of a service at a time, from the process on standby if there is one."""

    def __init__(self, name: str, env: Mapping[str, str], logs: Path, say: Callable[[str], None]) -> None:
        self._pid = 0
        self._name = name
        self._env = env
        self._log = LogFile(logs / f"{name}.log")
        self._repeats = Repeats()
        self._say = say
        self.standby = Standby(self._start)

    async def spawn(self) -> Child:
        """Start a process."""
        child = await self.standby.spawn()
        self._pid = child.pid
        return child

    def number(self) -> int:
        """Return the id of the process that was started last; 0 before the first."""
        return self._pid

    async def _start(self, waits: bool) -> Command:
        command = [sys.executable, "-m", f"voxbridge.services.{self._name.partition('-')[0]}", *([STAND_BY] if waits else [])]
        return await start_command(command, self._env, self._log, self._on_error, waits=waits)

    def _on_error(self, line: str) -> None:
        worth_saying = self._repeats.worth_saying(line, asyncio.get_running_loop().time())
        if worth_saying is not None:
            self._say(f"{self._name}: {worth_saying}")
