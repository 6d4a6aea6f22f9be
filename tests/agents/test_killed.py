"""`kill -9` of executor, voice worker and gateway at the events of a child session: nothing is half told, and nothing twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.agents.conftest import Installation, calls, says
from tests.eventually import BOUND_S, eventually
from tests.gateway.processes import Processes
from tests.tools.conftest import Executors
from tests.tools.replaced import replaced
from tests.voice.conftest import Workers
from voxbridge.shared import child_sessions, events
from voxbridge.shared.events import gateway, tools, voice

PACKS = "built-in,tests.tools.dying"
pytestmark = pytest.mark.timeout(180)


async def begins(installed: Installation) -> str:
    """Have a user's session run an agent that answers with one sum; return the session."""
    page = await installed.session()
    says(installed.model, calls("run_agent", '{"name": "helper", "input": "What is 6 times 7?"}'))
    await page.says(gateway.TextReceived(text="Have the helper work that out"))
    await page.event(voice.ToolCalled, name="run_agent")
    return page.sid


async def told_once(installed: Installation, sid: str) -> None:
    """Check that the task ended once, with the answer of the one child that was asked once."""

    async def ends() -> list[Any]:
        return await installed.of(sid, tools.TaskCompleted, tools.TaskFailed, tools.TaskCancelled, tools.TaskInterrupted)

    await eventually(ends)
    (done,) = await ends()
    assert isinstance(done, tools.TaskCompleted), done
    asked = {one.child for one in await installed.of(sid, tools.ChildOpened)}
    assert asked == {done.result["session"]}
    (child,) = asked
    await installed.until(child, voice.SessionEnded)
    assert len(await installed.of(child, gateway.SessionRequested)) == 1
    assert len(await installed.of(child, voice.UserSaid)) == 1
    assert len(await installed.of(child, voice.SessionEnded)) == 1
    said = " ".join(one.text for one in await installed.of(child, voice.AgentSaid))
    assert done.result["answer"] == said
    assert len(await installed.of(sid, tools.TaskStarted)) == 1

    async def told() -> int:
        return sum(done.announce in one.text for one in await installed.of(sid, voice.AgentSaid))

    await eventually(told)
    assert await told() == 1, "the user is told once"


@pytest.mark.parametrize("after", range(1, 12))
async def test_an_executor_killed_at_any_of_its_writes_has_the_answer_told_once(bare: Installation, after: int) -> None:
    async with Workers(bare.config).running(), replaced(bare.config, PACKS, after) as first_died:
        sid = await begins(bare)
        await told_once(bare, sid)
        died = first_died()
    assert died or after > 7, "the process was killed in the middle"


@pytest.mark.parametrize("at", [gateway.SessionRequested, voice.SessionOwned, voice.SessionStarted, voice.UserSaid, voice.TurnCompleted])
async def test_a_voice_worker_killed_at_an_event_of_the_child_is_followed_by_another(bare: Installation, at: type[events.Event]) -> None:
    async with Executors(bare.config).running("built-in"):
        async with Workers(bare.config).process() as first:
            sid = await begins(bare)
            child = await bare.child(sid)
            await bare.until(child, at)
            first.kill()
            await asyncio.wait_for(first.wait(), BOUND_S)
        async with Workers(bare.config).running():
            await told_once(bare, sid)


@pytest.mark.parametrize("dies", ["before 1", "before 2", "after 2"])
async def test_a_gateway_killed_beside_the_request_and_the_text_of_a_child_is_followed_by_another(
    bare: Installation, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    config = bare.config
    monkeypatch.setattr(child_sessions, "ANSWER_S", 2.0)
    await bare.gateway.gateway.resources.micro.stop()  # nobody but the processes below opens a child session
    env = {"VOXBRIDGE_AGENTS_DIR": str(config.agents_dir), "VOXBRIDGE_LLM_URL": config.llm_url}
    async with (
        Processes(config.data_dir, config.nats_url, config.redis_url) as gateways,
        Executors(config).running("built-in"),
        Workers(config).running(),
    ):
        first = await gateways.gateway(module="tests.agents.dying_gateway", more=env | {"VOXBRIDGE_TEST_DIES": dies})
        sid = await begins(bare)
        assert await first.killed()
        await gateways.gateway(more=env)
        await told_once(bare, sid)


async def test_the_next_question_to_an_expert_survives_the_gateway_that_took_it(
    bare: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = bare.config
    monkeypatch.setattr(child_sessions, "ANSWER_S", 2.0)
    await bare.gateway.gateway.resources.micro.stop()
    env = {"VOXBRIDGE_AGENTS_DIR": str(config.agents_dir), "VOXBRIDGE_LLM_URL": config.llm_url}
    async with (
        Processes(config.data_dir, config.nats_url, config.redis_url) as gateways,
        Executors(config).running("built-in"),
        Workers(config).running(),
    ):
        first = await gateways.gateway(module="tests.agents.dying_gateway", more=env | {"VOXBRIDGE_TEST_DIES": "after 3"})
        page = await bare.session()
        for number, answer in enumerate(("Thirty days a year [1].", "Mary Poppins [1]."), 1):
            says(bare.model, calls("chat_with_expert", '{"expert": "librarian", "message": "How many holidays?"}'), [answer])
            await page.says(gateway.TextReceived(text=f"Ask the librarian {number}"))
            called = await page.event(voice.ToolCalled, number, name="chat_with_expert")
            if number == 2:
                assert await first.killed()
                await gateways.gateway(more=env)
            done = await bare.until(page.sid, tools.ToolCompleted, call_id=called.call_id)
            assert done.result["answer"] == answer.removesuffix(" [1].") + "."
            await page.until(voice.TurnCompleted, number)
        said = await bare.of(done.result["session"], voice.UserSaid)
        assert len(said) == 2, "each question was asked once"
