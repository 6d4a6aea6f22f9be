"""Prompts that the language model reads ahead of time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from tests.eventually import BOUND_S
from tests.voice.conversation import PAGE_FUNCTIONS, Conversation
from voxbridge.services.voice.core import agents, step
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.providers.cascade.models import Models
from voxbridge.services.voice.providers.cascade.warmup import Warmup
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import HANDOFF, Agent, ModelName
from voxbridge.shared.config import Config
from voxbridge.shared.events import gateway
from voxbridge.shared.store.store import Store

STANDING = "You are an agent."
_BODY = b'{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[]}'
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_BODY)


class Endpoint:
    """A chat endpoint that answers when it is released, and counts its requests."""

    def __init__(self) -> None:
        self.asked = 0
        self.arrived = asyncio.Event()
        self.answer = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(length)
        self.asked += 1
        self.arrived.set()
        await self.answer.wait()
        writer.write(_HEAD + _BODY)
        await writer.drain()
        writer.close()


@pytest_asyncio.fixture
async def endpoint() -> AsyncIterator[tuple[Endpoint, Warmup]]:
    found = Endpoint()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        models = Models(Config(llm_url=f"http://127.0.0.1:{port}/v1"))
        redis = Redis()
        yield found, Warmup(models, Store(redis), "m", STANDING, idle=lambda: True)
        found.answer.set()
        await models.close()
        await redis.aclose()


async def test_a_session_with_the_standing_prompt_asks_for_nothing(endpoint: tuple[Endpoint, Warmup]) -> None:
    found, warmth = endpoint
    await warmth.warm_session(STANDING, ())
    assert found.asked == 0


async def test_a_session_with_other_functions_than_the_standing_ones_has_its_prompt_read(endpoint: tuple[Endpoint, Warmup]) -> None:
    found, warmth = endpoint
    found.answer.set()
    await warmth.warm_session(STANDING, (Function(name="add", description="A sum.", parameters={"type": "object"}),))
    assert found.asked == 1


async def test_a_prompt_is_not_put_in_line_behind_another(endpoint: tuple[Endpoint, Warmup]) -> None:
    found, warmth = endpoint
    async with asyncio.timeout(BOUND_S), asyncio.TaskGroup() as group:
        group.create_task(warmth.warm_session("You sell tea.", ()))
        await found.arrived.wait()
        await warmth.warm_session("You sell coffee.", ())
        assert found.asked == 1
        found.answer.set()


async def test_after_one_prompt_was_read_the_next_one_is(endpoint: tuple[Endpoint, Warmup]) -> None:
    found, warmth = endpoint
    found.answer.set()
    async with asyncio.timeout(BOUND_S):
        await warmth.warm_session("You sell tea.", ())
        await warmth.warm_session("You sell coffee.", ())
    assert found.asked == 2


async def test_a_prompt_that_is_needed_later_is_read_behind_another(endpoint: tuple[Endpoint, Warmup]) -> None:
    found, warmth = endpoint
    async with asyncio.timeout(BOUND_S), asyncio.TaskGroup() as group:
        group.create_task(warmth.warm_session("You sell tea.", ()))
        await found.arrived.wait()
        later = group.create_task(warmth.read_ahead("You sell coffee.", ()))
        found.answer.set()
        await later
    assert found.asked == 2


def test_of_a_team_that_others_think_for_the_first_agent_who_thinks_here_is_read_ahead() -> None:
    triage = Agent(name="triage", realtime=ModelName("gemini"), handoffs=("closer",))
    advisor = Agent(name="advisor", llm=ModelName("anthropic"), handoffs=("closer",))
    closer = Agent(name="closer", prompt="You close.", tools=("add",), handoffs=("advisor",))
    add = Function(name="add", description="A sum.", parameters={"type": "object"})
    state = step.initial("a" * 32)
    state.team.agents, state.team.agent, state.team.catalogue = (triage, advisor, closer), triage, (add,)
    arriving, going_on = agents.read_ahead(state)
    assert "You close." in arriving[0] == going_on[0]
    assert [one.name for one in arriving[1]] == ["add"]
    assert [one.name for one in going_on[1]] == ["add", HANDOFF]
    state.team.agents = (triage, advisor)
    assert agents.read_ahead(state) == ()
    state.team.agents, state.team.agent = (closer, advisor), closer
    assert agents.read_ahead(state) == (), "its own prompt is read when the session begins"


@pytest.mark.parametrize(
    ("custom", "declared", "shared"),
    [("", (), True), ("The user is Ann, born in 1980.", (), False), ("", PAGE_FUNCTIONS, False)],
)
def test_only_what_is_an_agents_alone_may_be_kept(custom: str, declared: tuple[Function, ...], shared: bool) -> None:
    call = Conversation(prompt=custom, functions=declared)
    call.log(gateway.TextReceived(text="Hello."))
    assert call.last_effect(out.Complete)[1].shared is shared


async def test_a_server_that_is_not_the_installations_own_is_not_asked_to_keep_anything() -> None:
    models = Models(Config())
    assert models._language._own._offer((), shared=True) == {"extra_body": {"keep_prompt": True}}
    assert models._language._own._offer((), shared=False) == {"extra_body": None}
    await models.close()
    models = Models(Config(llm_url="http://127.0.0.1:9/v1"))
    assert "extra_body" not in models._language._own._offer((), shared=True)
    await models.close()
