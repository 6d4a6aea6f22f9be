"""Calls of cascades whose executor is killed after the effect: by the local model and by Claude, and each with a barge-in before, too.

Each call has one result in the model's history, and the user is told its end once."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.eventually import eventually
from tests.fakes.anthropic.server import KEY, AnthropicServer, Use
from tests.faults import orders
from tests.faults.stack import Talker, stack, talker
from tests.ports import free_port
from tests.voice.model_server import ModelServer, call
from voxbridge.shared.config import Config

pytestmark = pytest.mark.timeout(240)
LOST: Final = "Charge was interrupted; whether it took effect is not known."
SAID: Final[dict[str, dict[str, Any]]] = {
    "local": {"type": "transcript", "role": "assistant", "final": True},
    "claude": {"type": "text"},
}
"""Message that tells the client what the agent said: Claude's calls are answered in text unless the client asks for a voice."""


class Case(NamedTuple):
    """A call of a function in a session of its own; `cut_off`: the user goes on before it has ended."""

    mode: str
    cut_off: bool
    folder: Path
    person: Talker


def told_to_claude(body: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the ids of the calls and of the results in a request."""
    blocks = [block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    return calls, [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


def told_to_local(body: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the ids of the calls and of the results in a request."""
    calls = [one["id"] for message in body["messages"] for one in message.get("tool_calls") or ()]
    return calls, [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]


@asynccontextmanager
async def another_executor(config: Config) -> AsyncIterator[None]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("VOXBRIDGE_")} | config.as_env()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "voxbridge.services.tools", env=env, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        await process.wait()


async def begins(case: Case, claude: AnthropicServer, models: ModelServer) -> None:
    """Have the model make the call, and wait until it took effect; then have the user go on, if the case is so."""
    arguments = {"folder": str(case.folder)}
    await case.person.start(case.mode)
    if case.mode == "claude":
        claude.script([Use("charge", arguments)])
    else:
        models.script("llm", call("charge", json.dumps(arguments)))
    await case.person.say("Charge it.")
    await eventually(lambda: orders.effects(case.folder, orders.CHARGES))
    if case.cut_off:
        await case.person.say("Are you there?")
        await case.person.until("function_cancelled")
        await case.person.until("turn_complete", turn=2)


async def ends(case: Case) -> None:
    """Wait until the user was told the end, and have the model asked once more."""
    if case.cut_off:
        await case.person.until(**SAID[case.mode], text=LOST)
    else:
        result = await case.person.until("function_result", name="charge")
        assert result["result"]["code"] == "INTERRUPTED"
        await case.person.until("turn_complete", turn=1, reason="completed")
    await case.person.say("What now?")
    await case.person.until("turn_complete", turn=3 if case.cut_off else 2)


async def test_a_call_that_was_lost_has_one_result_for_its_model_and_is_told_once(
    config: Config, model_server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = replace(config, port=free_port(), models_port=free_port(), tool_packs="tests.faults.orders")
    async with AnthropicServer() as claude, AsyncExitStack() as leaving:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", claude.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        running = await leaving.enter_async_context(stack(whole))
        cases = []
        for mode, cut_off in (("local", False), ("local", True), ("claude", False), ("claude", True)):
            folder = tmp_path / f"{mode}-{cut_off}"
            folder.mkdir()
            cases.append(Case(mode, cut_off, folder, await leaving.enter_async_context(talker(whole))))
            await begins(cases[-1], claude, model_server)
        running["tools"].kill()
        await running["tools"].wait()
        async with another_executor(whole):
            for case in cases:
                await ends(case)
        for case in cases:
            bodies = claude.bodies if case.mode == "claude" else model_server.asked("llm")
            (*_, last) = [body for body in bodies if str(case.folder) in json.dumps(body)]
            calls, results = told_to_claude(last) if case.mode == "claude" else told_to_local(last)
            assert (len(calls), results) == (1, calls)
            told = [one for one in case.person.told if SAID[case.mode].items() <= one.items() and one["text"] == LOST]
            assert len(told) == case.cut_off, case
            assert len(orders.effects(case.folder, orders.CHARGES)) == 1
        assert claude.refused == []
