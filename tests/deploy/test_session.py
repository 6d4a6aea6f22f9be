"""A whole session with the real services as separate users, as in the compose stack: no permission that they need is missing."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.deploy.conftest import Guarded
from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Address, Client
from tests.ports import free_port
from tests.voice.conftest import silero
from tests.voice.model_server import ModelServer, call
from tests.voice.sounds import speech
from voxbridge.installation.health import ask
from voxbridge.shared import events
from voxbridge.shared.audio.frames import PCM16, pack
from voxbridge.shared.bus.accounts import ADMIN
from voxbridge.shared.bus.connection import EVENTS_PENDING, close_nats, connect_nats
from voxbridge.shared.config import Config
from voxbridge.shared.log.reader import Log

__all__ = ["silero"]

START_S = 60.0
NAMES = ("tools", "voice", "gateway")


@dataclass(frozen=True)
class Stack:
    """The three services as processes with their own credentials; `said` has their log files."""

    door: Address
    models: ModelServer
    configs: dict[str, Config]
    said: dict[str, Path]

    def refused(self) -> list[str]:
        """Return the refusals of NATS that the processes logged."""
        return [line for path in self.said.values() for line in path.read_text().splitlines() if "NATS refuses" in line]


@pytest.fixture
async def stack(streams: Guarded, redis_url: str, silero: object, tmp_path: Path) -> AsyncIterator[Stack]:
    # The password is in a file, as in the compose stack.
    secret, _, place = redis_url.removeprefix("unix://:").partition("@")
    password = tmp_path / "redis.password"
    password.write_text(secret)
    port = free_port()
    async with ModelServer() as models, AsyncExitStack() as running:
        configs = {
            name: streams.config(
                name,
                redis_url=f"unix://{place}",
                redis_password_file=str(password),
                models_url=models.url,
                greeting="",
                port=port,
                data_dir=tmp_path / name,
                models_dir=Config.from_env().models_dir,
            )
            for name in NAMES
        }
        said = {name: tmp_path / f"{name}.log" for name in NAMES}
        for name in NAMES:
            running.push_async_callback(_stop, await _start(name, configs[name], said[name]))
        for name in NAMES:
            await _serves(said[name], name)
        yield Stack(Address(port), models, configs, said)


async def _start(name: str, config: Config, said: Path) -> asyncio.subprocess.Process:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("VOXBRIDGE_")}
    with said.open("wb") as file:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", f"voxbridge.services.{name}", env={**kept, **config.as_env()}, stdout=file, stderr=file
        )


async def _serves(said: Path, name: str) -> None:
    def there() -> bool:
        return f"{name} serves" in said.read_text()

    await eventually(there, within_s=START_S)


async def _stop(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    async with asyncio.timeout(BOUND_S):
        await process.wait()


async def test_a_session_of_words_sound_and_a_tool_is_refused_nothing(stack: Stack, streams: Guarded) -> None:
    stack.models.script("llm", call("calculate", '{"expression": "6*7"}'), ["Good bye."])
    stack.models.script("stt", *(["And now in speech."] for _ in range(8)))  # the first transcriptions can be partial ones
    async with stack.door.client() as client, asyncio.timeout(BOUND_S):
        ready = await client.started("local")
        await client.say({"type": "text", "text": "What is six times seven?"})
        assert await _replied(client) == "That is 42."
        sound = speech(1_500)
        for number, at in enumerate(range(0, len(sound), 640)):
            await client.socket.send(pack(PCM16, 0, number, 0, sound[at : at + 640]))
        await client.say({"type": "audio_end"})
        assert await _replied(client) == "Good bye."
        await client.say({"type": "end"})
        await client.until("session_ended")
    admin = await connect_nats(streams.url, "test", pending=EVENTS_PENDING, user=ADMIN, seed_file=streams.seed(ADMIN))
    try:
        recorded = [one async for one in Log(admin).read_all(ready["sessionId"])]
    finally:
        await close_nats(admin)
    assert {one.writer for one in recorded} == {"gateway", "voice", "tools"}
    assert [one.event.text for one in recorded if isinstance(one.event, events.voice.UserSaid)] == [
        "What is six times seven?",
        "And now in speech.",
    ]
    await _every_health_is_told(stack)
    assert stack.refused() == []


async def _every_health_is_told(stack: Stack) -> None:
    """Check the health of every service as the containers' probes and the gateway do."""
    for name in NAMES:
        assert await ask(stack.configs[name], name) == (True, f"{name} serves")
    assert await ask(stack.configs["tools"], "voice") == (False, "voice does not answer: nats: timeout")
    async with asyncio.timeout(BOUND_S):
        while True:  # on a busy machine a check can exceed its second
            answer = await stack.door.get("/readyz")
            parts = answer.json()["dependencies"]
            if all(parts[name]["ok"] for name in ("nats", "event_log", "valkey", "voice", "tools")):
                break
    assert answer.status_code == httpx.codes.OK, "the stand-in for the models says that it is ready"
    assert len((await stack.door.get("/api/sessions")).json()["sessions"]) == 1


async def _replied(client: Client) -> str:
    while True:
        message: dict[str, Any] = await client.until("transcript")
        if message["role"] == "assistant" and message["final"] and message["text"]:
            return str(message["text"])
