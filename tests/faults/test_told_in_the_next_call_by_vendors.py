"""A timer that rings after its call, with OpenAI Realtime, Gemini Live and Claude: the model of the account's next call is told its end,
once, also when the page is reloaded or its worker is killed meanwhile, and that of the call after it is told nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.eventually import eventually
from tests.fakes.anthropic.server import KEY as ANTHROPIC_KEY
from tests.fakes.anthropic.server import AnthropicServer, Use
from tests.fakes.gemini.session import Session as GeminiSession
from tests.fakes.gemini.turns import Call as GeminiCall
from tests.fakes.gemini.turns import Turn as GeminiTurn
from tests.fakes.openai.realtime import KEY, OpenAIRealtimeServer
from tests.fakes.openai.realtime import Session as OpenAISession
from tests.fakes.openai.realtime_turns import Turn as OpenAITurn
from tests.faults.caller import Caller
from tests.faults.installation import Installation, installed

pytestmark = pytest.mark.timeout(240)
TOLD = "From an earlier call: Your tea timer is done."
ASKED = "Set a tea timer for one second."
ARGUMENTS = {"seconds": 1, "label": "tea"}
VENDORS = ("openai", "gemini", "claude")


class Stand(NamedTuple):
    """The installation, and the stand-ins that it does not have itself."""

    there: Installation
    openai: OpenAIRealtimeServer
    claude: AnthropicServer

    def told(self, vendor: str) -> list[int]:
        """Return how often each connection of a model of this vendor was told the end, or each request to it, oldest first."""
        if vendor == "openai":
            return [json.dumps(list(one.items.values())).count(TOLD) for one in self.openai.sessions]
        if vendor == "gemini":
            return [json.dumps([*one.contents, *one.texts]).count(TOLD) for one in self.there.google.sessions]
        return [json.dumps(body).count(TOLD) for body in self.claude.bodies]


def gemini(session: GeminiSession) -> GeminiTurn:
    last = session.history[-1].text if session.history else ""
    return (
        GeminiTurn(calls=(GeminiCall("set_timer", ARGUMENTS),), after="Set.", blocking=True) if last == ASKED else GeminiTurn(says="Yes.")
    )


def openai(session: OpenAISession) -> OpenAITurn:
    last: dict[str, Any] = next(reversed(session.items.values()), {})
    if last.get("role") == "user" and ASKED in json.dumps(last):
        return OpenAITurn(calls=(("set_timer", json.dumps(ARGUMENTS)),))
    return OpenAITurn(says="Yes.", audio_ms=100)


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with OpenAIRealtimeServer() as server, AnthropicServer() as claude:
        keys = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "ANTHROPIC_BASE_URL": claude.url, "ANTHROPIC_API_KEY": ANTHROPIC_KEY}
        (tmp_path / "work").mkdir()
        async with installed(tmp_path, env=keys, tool_packs="built-in", workspace_dirs=str(tmp_path / "work")) as found:
            found.google.reply = gemini
            server.reply = openai
            yield Stand(found, server, claude)


async def begins(caller: Caller, mode: str) -> None:
    await caller.start(mode=mode)
    if mode != "claude":
        await caller.until("provider", status="connected")


async def talks(caller: Caller, claude: AnthropicServer, mode: str, text: str, *turns: Any) -> None:
    """Say something, and wait for the end of the turn."""
    if mode == "claude":
        claude.script(*turns)
    before = len(caller.facts("turn_complete"))
    await caller.types(text)
    await caller.until("turn_complete", before + 1)


@pytest.mark.parametrize("meanwhile", ["nothing", "reload", "worker killed"])
@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_timer_that_rings_after_its_call_is_told_once_in_the_next(stand: Stand, vendor: str, meanwhile: str) -> None:
    async with AsyncExitStack() as leaving:
        first, second, third = (Caller(stand.there.config.port) for _ in range(3))
        for caller in (first, second, third):
            leaving.push_async_callback(caller.stop)
        await begins(first, vendor)
        await talks(first, stand.claude, vendor, ASKED, [Use("set_timer", ARGUMENTS)], ["Set."])
        await first.until("async_task_started")
        await first.ends()
        await begins(second, vendor)
        done = await second.until("async_task_complete", function="set_timer")
        if meanwhile == "reload":
            await second.reload()
        elif meanwhile == "worker killed":
            await stand.there.kill(await stand.there.owner(second.sid))
        await eventually(lambda: is_told(stand, vendor, second))
        if vendor != "claude":  # what is typed before the model begins is answered first, and the model is told the end again after it
            await second.until("transcript", role="assistant", final=True)
        await talks(second, stand.claude, vendor, "What was that?", ["It was for your tea."])
        await second.ends()
        in_second = len(stand.told(vendor))
        await begins(third, vendor)
        await talks(third, stand.claude, vendor, "Good morning.", ["Good morning."])
        await third.ends()
    assert done["result"]["label"] == "tea"
    assert set(stand.told(vendor)[:in_second]) == {0, 1}, "a connection that a successor makes has the end in what it is told anew"
    assert meanwhile == "worker killed" or vendor == "claude" or sum(stand.told(vendor)) == 1
    assert set(stand.told(vendor)[in_second:]) == {0}
    assert [one for one in third.told if one["type"].startswith("async_task")] == []
    if vendor == "claude":
        assert said(second) == 1
        assert said(first) == said(third) == 0


def is_told(stand: Stand, vendor: str, caller: Caller) -> bool:
    return said(caller) == 1 if vendor == "claude" else sum(stand.told(vendor)) > 0


def said(caller: Caller) -> int:
    """Return how often the page was shown the agent's words about the end."""
    return len({one["seq"] for one in caller.told if "seq" in one and TOLD in str(one.get("text", ""))})
