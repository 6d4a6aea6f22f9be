"""Past sessions for Studio without models: real servers, gateway and executor, and the voice service's inspector, in a separate process.

`python -m tests.browser.stage.past FOLDER` writes a long call and its recording into the log, prints one line of JSON and runs until its
standard input ends. Agents are those of FOLDER/agents.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import nats
import nats.micro

from tests.awareness.serving import serving as serving_awareness
from tests.eventually import eventually
from tests.long_call import TURN_S, Call
from tests.ports import free_port
from voxbridge.services.gateway.service import Gateway
from voxbridge.services.tools.service import build
from voxbridge.services.voice.audio.waveforms import Waveforms
from voxbridge.services.voice.inspection import SUBJECT, Inspector
from voxbridge.shared.audio.recordings import DataKeys
from voxbridge.shared.bus.subjects import WAVEFORM
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.child import die_with_parent
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import End, SessionWriter
from voxbridge.shared.secrets.secret_file import vault_key_file
from voxbridge.shared.secrets.vault import Vault
from voxbridge.shared.service.process import connected

TURNS: Final = 180
"""Turns of the long call: half an hour."""

SHORT: Final = 12
_PIPE: Final = subprocess.PIPE


@dataclass(frozen=True)
class Past:
    """Address of the server and its two sessions: half an hour of the owner's, and two recorded minutes of Ada's."""

    url: str
    nats_url: str
    long: str
    short: str

    def goes_on(self, sid: str, *happened: Any) -> None:
        """Append events to a session now."""

        async def write() -> None:
            nc = await nats.connect(self.nats_url)
            try:
                log = Log(nc)
                for event, writer in happened:
                    number = len([one async for one in log.read_all(sid)])
                    appender = SessionWriter(log, sid, writer, stem="test", fenced=False, end=End(number))
                    await appender.append(event, ts=time.time_ns() // 1_000, cause=None)
            finally:
                await nc.close()

        # In a thread, because the browser's event loop runs in this one.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, write()).result(30)


@contextmanager
def past(folder: Path, *, allowed_hosts: str = "", functions: bool = False, packs: str = "built-in") -> Iterator[Past]:
    """Serve it while the block runs. With `functions` there is an executor too, with those of `packs`, which also answers for the calls
    of the past."""
    command = [sys.executable, "-m", "tests.browser.stage.past", str(folder), allowed_hosts, *([packs] if functions else [])]
    with (folder / "output").open("wb") as said:
        # Like the product's own children, it must end with the tests.
        process = subprocess.Popen(command, stdin=_PIPE, stdout=_PIPE, stderr=said, preexec_fn=die_with_parent())  # noqa: PLW1509
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, (folder / "output").read_text()
        yield Past(**json.loads(line))
    finally:
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(40)
        finally:
            process.kill()
            process.wait()


async def serve(folder: Path, allowed_hosts: str, packs: str) -> None:
    """Serve until standard input ends."""
    with NatsServer(folder / "nats", sync_interval="1s") as bus, ValkeyServer(folder / "valkey") as store:
        config = Config(
            port=free_port(),
            nats_url=bus.url,
            redis_url=store.url,
            models_port=free_port(),
            recording="on",
            allowed_hosts=allowed_hosts,
            data_dir=folder / "data",
            agents_dir=folder / "agents",
            tool_packs=packs or "built-in",
        )
        async with AsyncExitStack() as running, connected(config, "gateway", "gateway-past", SystemClock()) as resources:
            Vault(vault_key_file(config)).publish(config.vault_public_key_path)  # as `voxbridge up` does
            gateway = Gateway(resources)
            await resources.log.ensure_streams(retention_days=1, recording=config.record)
            calls = await _written(resources.log, DataKeys.of(config, resources.redis))
            serving = asyncio.create_task(gateway.serve())  # which lists the sessions that are there when it starts
            await gateway.sessions.ensure_index()
            if packs:
                await running.enter_async_context(executor(config))
            await running.enter_async_context(serving_awareness(config))
            inspecting = await nats.connect(bus.url)
            micro = await nats.micro.add_service(inspecting, name="voxbridge-voice", version="0.0.0")
            await micro.add_endpoint(name="state", subject=SUBJECT, handler=Inspector(Log(inspecting)).serve)
            drawn = Waveforms(Log(inspecting), DataKeys.of(config, resources.redis))
            await micro.add_endpoint(name="waveform", subject=WAVEFORM, handler=drawn.serve)
            await eventually(lambda: gateway.health()["listening"] or serving.done())
            sys.stdout.write(json.dumps({"url": f"http://127.0.0.1:{config.port}", "nats_url": bus.url, **calls}) + "\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.read)
            await micro.stop()
            await inspecting.close()
            await gateway.drain()
            await serving


@asynccontextmanager
async def executor(config: Config) -> AsyncIterator[None]:
    """Run an executor with the built-in functions."""
    async with connected(config, "tools", "tools-past", SystemClock()) as resources:
        service = await build(resources)
        serving = asyncio.create_task(service.serve())
        try:
            yield
        finally:
            await service.drain()
            await serving


async def _written(log: Log, keys: DataKeys) -> dict[str, str]:
    now = time.time_ns() // 1_000
    calls = {}
    first = 1
    for name, turns, account in (("long", TURNS, "local"), ("short", SHORT, "ada")):
        call = Call(new_session_id(), turns=turns, began_us=now - (turns + 6) * TURN_S * 1_000_000, first=first, account=account)
        await call.write(log)
        first += len(call.facts)
        calls[name] = call.sid
        if name == "short":
            await call.record(log, keys)
    return calls


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2], "".join(sys.argv[3:4])))
