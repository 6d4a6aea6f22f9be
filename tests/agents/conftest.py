"""A whole installation whose agents work in the background: a gateway, a voice worker, an executor, and a model that is scripted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Running, Serve, publish, serve
from tests.knowledge.serving import serving as knowledge
from tests.tools.conftest import Executors
from tests.voice.conftest import Page, Workers, connection, model_server, pages, silero, store
from tests.voice.model_server import ModelServer, call
from voxbridge.services.voice.audio.vad import SileroModel
from voxbridge.shared import events
from voxbridge.shared.config import Config
from voxbridge.shared.events import tools, voice
from voxbridge.shared.knowledge import Asks, Ingest
from voxbridge.shared.log.reader import Log

__all__ = ["connection", "model_server", "pages", "serve", "silero", "store"]

AGENTS = {
    "host": "prompt: You are the host.\ngreeting: ''\n",
    "helper": "description: Does small jobs.\ngreeting: Hello there!\ntools: [calculate, forget_all, run_agent, run_tool, set_timer]\n",
    "librarian": "description: Knows the handbook.\nprompt: You answer from documents.\nexpert: true\nknowledge: [handbook]\ntools: []\n",
    "parrot": "description: Only speaks.\nmodel: gemini\n",
    "claude": "description: Thinks with Claude.\nllm: anthropic\n",
}
LEAVE = "# Leave\n\nEvery employee has thirty days of holidays in a year. Questions about holidays go to Mary Poppins.\n"


class Installation:
    """A running installation, and the parts of it that tests look at."""

    def __init__(self, config: Config, running: Running, model: ModelServer, asks: Asks, page: Callable[[], Page], log: Log) -> None:
        self.config = config
        self.gateway = running
        self.model = model
        self.asks = asks
        self.page = page
        self.log = log

    async def session(self, **options: Any) -> Page:
        """Open a session of a user, with the agent `host`."""
        page = await self.page().open(agent="host", output="text", **options)
        await page.until(voice.SessionStarted)
        return page

    async def rest(self, name: str, /, **arguments: Any) -> httpx.Response:
        """Call a function over REST."""
        async with httpx.AsyncClient(base_url=self.gateway.base, trust_env=False, timeout=BOUND_S) as client:
            return await client.post(f"/api/vox/function/{name}", json={"args": arguments})

    async def of(self, sid: str, *kinds: type[events.Event]) -> list[Any]:
        """Return the events of a session of these types."""
        return [one.event async for one in self.log.read_all(sid) if isinstance(one.event, kinds)]

    async def until(self, sid: str, kind: type[events.Event], count: int = 1, **fields: Any) -> Any:
        """Wait for the n-th event of this type with these fields in any session's log."""

        async def found() -> Any:
            fitting = [one for one in await self.of(sid, kind) if all(getattr(one, name) == value for name, value in fields.items())]
            return fitting[count - 1 : count]

        return (await eventually(found))[0]

    async def child(self, sid: str, count: int = 1) -> str:
        """Return the id of the n-th child session that a function of this session asked for."""
        opened: tools.ChildOpened = await self.until(sid, tools.ChildOpened, count)
        return opened.child


@pytest.fixture
def config(nats_url: str, redis_url: str, model_server: ModelServer, silero: SileroModel, tmp_path: Path) -> Config:
    folder = tmp_path / "agents"
    folder.mkdir()
    for name, text in AGENTS.items():
        (folder / f"{name}.yaml").write_text(text)
    url = model_server.url
    return Config(
        nats_url=nats_url,
        redis_url=redis_url,
        greeting="",
        agents_dir=folder,
        data_dir=tmp_path / "data",
        knowledge_dir=str(tmp_path / "graphs"),
        knowledge_reading=0,
        embeddings_model="off",
        workspace_dirs=str(tmp_path),
        models_url=url,
        stt_url=url,
        llm_url=url,
        tts_url=url,
        models_dir=Config.from_env().models_dir,
    )


@pytest.fixture
async def bare(
    config: Config, serve: Serve, model_server: ModelServer, pages: Callable[[], Page], connection: Any
) -> AsyncIterator[Installation]:
    """The installation without an executor and without a voice worker."""
    publish(config)
    own = {name: getattr(config, name) for name in ("agents_dir", "data_dir")}
    gateway_process = await serve(config.nats_url, config.redis_url, **own)
    async with knowledge(config) as (_, asks):
        await asks(Ingest(account="local", graph="handbook", source="leave.md", title="Leave", text=LEAVE, at=1))
        yield Installation(config, gateway_process, model_server, asks, pages, Log(connection))


@pytest.fixture
async def installed(bare: Installation) -> AsyncIterator[Installation]:
    async with Executors(bare.config).running("built-in,tests.agents.pack"), Workers(bare.config).running():
        yield bare


def says(model: ModelServer, *answers: list[Any]) -> None:
    """Have the model answer its next requests so."""
    model.script("llm", *answers)


def calls(name: str, arguments: str) -> list[Any]:
    """Return the answer of a model that calls a function."""
    return call(name, arguments)
