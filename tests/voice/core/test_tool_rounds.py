"""The limit on rounds of function calls in a turn, with a cascade and with a realtime model."""

from __future__ import annotations

import msgspec
import pytest

from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.turns import Call, Turn
from tests.voice.conftest import Page, Workers
from tests.voice.model_server import ModelServer, call
from tests.voice.realtime_calls import a_turn, asks, said
from tests.voice.replaying import replay, stored
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.events import voice as ev
from voxbridge.shared.store.store import Store

pytestmark = pytest.mark.timeout(120)
LOOK_UP = Function(name="look_up", description="Look something up.", parameters={"type": "object", "properties": {}})
MODEL = "gemini-2.5-flash-native-audio-latest"


@pytest.mark.parametrize("rounds", [1, 7])
async def test_a_language_model_is_offered_functions_for_so_many_rounds(
    workers: Workers, page: Page, model_server: ModelServer, store: Store, rounds: int
) -> None:
    await store.publish_functions([LOOK_UP])
    model_server.script("llm", *[call("look_up", "{}")] * rounds, ["That is all."])
    async with workers.running(tool_rounds=rounds):
        await page.open(output="text")
        await page.until(ev.SessionStarted)
        await asks(page, "Look everything up.")
        for number in range(1, rounds + 1):
            await page.executes(await page.event(ev.ToolCalled, number), {"found": number})
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()
    assert said(page) == ["That is all."]
    assert ["tools" in asked for asked in model_server.asked("llm") if len(asked["messages"]) > 1] == [True] * rounds + [False]
    log = await page.everything()
    assert replay(page.sid, log)[1] == stored(log)


def looking_up(times: int, *, at_once: int = 1) -> Turn:
    """Return a turn that calls a function so many times, one after the other."""
    turn = Turn(says="That is all.")
    for _ in range(times):
        turn = Turn(calls=[Call("look_up")] * at_once, after=turn, blocking=True)
    return turn


@pytest.mark.parametrize(("asked", "refused"), [(3, 0), (4, 1), (6, 3)])
async def test_a_realtime_model_is_refused_calls_beyond_that_and_told_why(
    workers: Workers, page: Page, google: GeminiServer, store: Store, asked: int, refused: int
) -> None:
    await store.publish_functions([LOOK_UP])
    google.script(looking_up(asked))
    async with workers.running(tool_rounds=3):
        await page.open("gemini", model=MODEL)
        await page.until(ev.ProviderConnected)
        await asks(page, "Look everything up.")
        for number in range(1, 4):
            await page.executes(await page.event(ev.ToolCalled, number), {"found": number})
        await page.until(ev.TurnCompleted, reason="completed")
        google.script(looking_up(1))
        await asks(page, "And once more.")
        await page.executes(await page.event(ev.ToolCalled, 4), {"found": 4})
        await page.until(ev.TurnCompleted, 2, reason="completed")
        await page.ends()
    assert said(page) == ["That is all."] * 2
    assert len(page.told(ev.ToolCalled)) == 4, "the next turn has rounds of its own"
    answers = [str(one) for one in google.sessions[0].answers]
    assert sum("OVERLOADED" in one for one in answers) == refused
    assert sum("A turn may have 3 rounds of calls" in one for one in answers) == refused
    log = await page.everything()
    assert replay(page.sid, log)[1] == stored(log)


async def test_calls_that_are_made_at_once_are_one_round(workers: Workers, page: Page, google: GeminiServer, store: Store) -> None:
    await store.publish_functions([LOOK_UP])
    google.script(looking_up(2, at_once=3))
    async with workers.running(tool_rounds=1):
        await page.open("gemini", model=MODEL)
        await page.until(ev.ProviderConnected)
        await asks(page, "Look everything up.")
        for number in range(1, 4):
            await page.executes(await page.event(ev.ToolCalled, number), {"found": number})
        await page.until(ev.TurnCompleted, reason="completed")
        await page.ends()
    assert len(page.told(ev.ToolCalled)) == 3
    assert sum("OVERLOADED" in str(one) for one in google.sessions[0].answers) == 3


async def test_five_rounds_are_usual(workers: Workers, page: Page, model_server: ModelServer) -> None:
    async with workers.running() as worker:
        await page.open(output="text")
        await page.until(ev.SessionStarted)
        session = worker.session(page.sid)
        assert session is not None
        assert session.state.settings.tool_rounds == 5
        await a_turn(page)
        await page.ends()
    assert said(page) == ["All right."]


async def test_a_session_keeps_no_functions_that_its_models_are_not_offered(workers: Workers, page: Page, store: Store) -> None:
    rare = Function(name="rarely_used", description="Rare.", parameters={"type": "object", "properties": {}}, listed=False)
    await store.publish_functions([LOOK_UP, rare])
    async with workers.running():
        await page.open(output="text")
        started = await page.event(ev.SessionStarted)
        await page.ends()
    assert started.tools == ("look_up",)
    journals = [one.event for one in await page.everything() if one.type == "voice.journal"]
    assert b"look_up" in msgspec.msgpack.encode(journals)
    assert b"rarely_used" not in msgspec.msgpack.encode(journals)
