"""The real Codex and Gemini CLI in terminals: a prompt is proven, their question is told in words and answered, and nothing is left."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.eventually import eventually
from tests.terminals.fleets import BY, Viewed, fleet, held_folder
from tests.terminals.real_agents import COMMAND, DONE, FILE, CodexModel, GeminiModel, programs
from tests.terminals.test_hostile import PASTES
from voxbridge.services.terminals.definitions import BUILT_IN
from voxbridge.shared.terminals import questions as asked

pytestmark = pytest.mark.timeout(300)
MODELS: Final[dict[str, Callable[[], CodexModel | GeminiModel]]] = {"codex": CodexModel, "gemini": GeminiModel}
WORDS: Final = {
    "codex": f"Would you like to run the following command? {COMMAND}",
    "gemini": f"Apply this change? WriteFile Writing to {FILE}",
}
APPROVE: Final = {one.id: one.approve for one in BUILT_IN}
START_S: Final = 60.0


@asynccontextmanager
async def running(definition: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Viewed, str, Path, CodexModel | GeminiModel]]:
    """Run an agent in a terminal until it waits for a prompt. Yield the fleet, the terminal, the folder of work and the model behind it."""
    monkeypatch.setenv("PATH", os.pathsep.join((str(programs()), os.environ["PATH"])))
    model = MODELS[definition]()
    await model.start()
    try:
        with held_folder() as folder:
            work = folder / "work"
            work.mkdir()
            model.configure(folder, work)
            async with fleet(folder) as viewed:
                terminal = await viewed.start(definition, directory=str(work))
                await viewed.wait(terminal, "idle", timeout_s=START_S)
                yield viewed, terminal, work, model
                assert any(definition in one for one in _of(folder)), "the program is among those that must be gone"
                assert (await viewed.ask(asked.Close(by=BY, terminal=terminal))).left == ()
            await eventually(lambda: _of(folder) == [])
    finally:
        await model.stop()


@pytest.mark.parametrize("definition", MODELS)
async def test_an_agent_takes_a_prompt_asks_is_answered_and_leaves_nothing(definition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(definition, monkeypatch) as (viewed, terminal, work, _):
        await _prompted(viewed, terminal, definition, work)


@pytest.mark.parametrize("definition", MODELS)
async def test_an_agent_is_asked_nothing_that_is_not_submitted(definition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(definition, monkeypatch) as (viewed, terminal, work, model):
        trap = work / "trap"
        for paste in PASTES:
            sent = await viewed.send(terminal, paste.format(trap=trap), submit=False)
            assert sent.outcome == "typed", (paste, sent)
        await viewed.send(terminal, " nearly all", submit=False)
        await viewed.wait(terminal, "text", "nearly all")
        assert [one for one in model.requests if str(trap) in json.dumps(one.body)] == []
        sent = await viewed.send(terminal, " to the last")
        assert sent.outcome == "submitted", (sent, await viewed.text(terminal))

        async def is_asked() -> list[str]:
            bodies = [json.dumps(one.body) for one in model.requests]
            return [body for body in bodies if str(trap) in body]

        first = (await eventually(is_asked))[0]
        assert "nearly all to the last" in first, "all of it is one prompt"
        assert not trap.exists()


async def _prompted(viewed: Viewed, terminal: str, definition: str, work: Path) -> None:
    sent = await viewed.send(terminal, f"Please create the file {FILE}")
    assert sent.outcome == "submitted", (sent, await viewed.text(terminal))
    await viewed.wait(terminal, "text", "Yes, proceed" if definition == "codex" else "Allow once", timeout_s=START_S)
    await viewed.wait(terminal, "blocked")
    assert not (work / FILE).exists()

    async def is_told() -> bool:
        return (await viewed.card(terminal)).state.words == WORDS[definition]

    await eventually(is_told)
    assert (await viewed.card(terminal)).state.reason == "permission"
    refused = await viewed.send(terminal, "and now delete it")
    assert (refused.outcome, WORDS[definition] in refused.reason) == ("not_submitted", True), refused
    await viewed.ask(asked.SendKey(by=BY, terminal=terminal, key=APPROVE[definition]))
    await viewed.wait(terminal, "text", DONE, timeout_s=START_S)
    await viewed.wait(terminal, "turn_end")
    assert (work / FILE).read_text() == "hello\n"


def _of(folder: Path) -> list[str]:
    """Return the command lines of processes that have this folder as their home, but for our own, in which they run."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == str(folder) and "voxbridge.services" not in " ".join(process.cmdline()):
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found
