"""Prompts that a real engine has read survive its restart, and contain no conversation."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from voxbridge.services.models.core import chatml
from voxbridge.services.models.engines import llm as llm_module
from voxbridge.services.models.engines.llm import Llm, Sampling
from voxbridge.services.models.processes.home import Home
from voxbridge.services.models.weights import manifest
from voxbridge.services.models.weights.shelf import Shelf
from voxbridge.shared.cancellation import ended
from voxbridge.shared.config import Config

SYSTEM = chatml.Message(
    role="system", text="You are the voice of a small museum. Visitors ask you about paintings and the way to the café."
)
SECRET = "Aardvark marmalade zeppelin."


@pytest_asyncio.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    found = Home(tmp_path, 1)
    found.take()
    yield found
    found.leave()


async def _ask(llm: Llm, text: str) -> tuple[int, int]:
    """Send a request. Return its number of tokens, and how many of them were cached."""
    prompt = chatml.render([SYSTEM, chatml.Message(role="user", text=text)])
    *_, last = [step async for step in llm.generate(prompt, Sampling(max_tokens=1), keep=True)]
    return last.prompt_tokens, last.cached_tokens


def _tokens(path: Path) -> list[int]:
    """Return the tokens of a llama.cpp state file."""
    content = path.read_bytes()
    magic, _version, _size, mark, _format, count = struct.unpack_from("<4sIIiII", content)
    assert (magic, mark) == (b"qsgg", -1)
    return list(struct.unpack_from(f"<{count}i", content, 24))


@asynccontextmanager
async def engine(home: Home) -> AsyncIterator[Llm]:
    (model,) = (model for model in manifest.load().chosen("default") if model.role == "llm")
    weights = Shelf(Config.from_env().models_dir).path(model, model.files[0])
    llm = Llm(home, weights, 2, sha256=model.files[0].sha256)
    await llm.start()
    try:
        yield llm
    finally:
        await llm.close()


async def test_a_request_that_goes_away_while_its_prompt_is_restored_leaves_no_cold_slot(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine(home) as first:
        _, known = await _ask(first, SECRET)
    async with engine(home) as second:
        restored, begun = second._slot, asyncio.Event()

        async def never(*_: object) -> bool:
            begun.set()
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

        monkeypatch.setattr(second, "_slot", never)
        gone = asyncio.create_task(_ask(second, "Hello"))
        await begun.wait()
        await ended(gone)
        monkeypatch.setattr(second, "_slot", restored)
        assert (await _ask(second, "Hello"))[1] == known


async def test_what_is_read_ahead_is_not_read_again_and_drives_out_no_conversation(home: Home) -> None:
    said = [SYSTEM, chatml.Message("user", "Where are the paintings?"), chatml.Message("assistant", "Upstairs, in the blue room.")]
    family = chatml.render([SYSTEM]).family
    async with engine(home) as llm:
        await llm.read_on(chatml.render(said))
        assert not llm.knows(family), "a conversation whose beginning nobody read yet is not read either"
        await llm.read(family)
        await llm.read_on(chatml.render(said))
        await llm.read(family)
        prompt = chatml.render([*said, chatml.Message("user", "And the café?")])
        *_, last = [step async for step in llm.generate(prompt, Sampling(max_tokens=1))]
        *_, again = [step async for step in llm.generate(chatml.render(said), Sampling(max_tokens=1))]
        assert last.cached_tokens >= again.prompt_tokens - 4  # less the beginning of an answer


async def test_a_conversation_that_went_on_a_moment_ago_is_driven_out_by_no_other(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [SYSTEM, chatml.Message("user", "Where are the paintings?"), chatml.Message("assistant", "Upstairs, in the blue room.")]
    other = chatml.render([SYSTEM, chatml.Message("user", "Do you sell umbrellas?"), chatml.Message("assistant", "At the desk.")])

    async def goes_on(llm: Llm) -> tuple[int, int]:
        """Return how much of the conversation was read already, of how much that was said."""
        prompt = chatml.render([*mine, chatml.Message("user", "And the café?")])
        *_, last = [step async for step in llm.generate(prompt, Sampling(max_tokens=1))]
        return last.cached_tokens, last.prompt_tokens

    async with engine(home) as llm:
        *_, first = [step async for step in llm.generate(chatml.render(mine), Sampling(max_tokens=1), keep=True)]
        await llm.read_on(other)
        assert (await goes_on(llm))[0] >= first.prompt_tokens - 4  # less the beginning of an answer
        [step async for step in llm.generate(other, Sampling(max_tokens=1))]  # in a slot to spare
        assert (await goes_on(llm))[0] >= first.prompt_tokens
        monkeypatch.setattr(llm_module, "TALKED_S", 0.0)
        await llm.read_on(other)
        assert (await goes_on(llm))[0] < first.prompt_tokens - 4


async def test_a_prompt_that_was_read_once_is_known_after_a_stop_and_after_a_death_of_the_engine(home: Home) -> None:
    (model,) = (model for model in manifest.load().chosen("default") if model.role == "llm")
    weights = Shelf(Config.from_env().models_dir).path(model, model.files[0])
    first = Llm(home, weights, 2, sha256=model.files[0].sha256)
    await first.start()
    whole, known = await _ask(first, SECRET)
    (kept,) = home.prompts.iterdir()
    of_the_agent = _tokens(kept)
    assert known == len(of_the_agent)
    shorter, _ = await _ask(first, "Hi")
    assert len(of_the_agent) < shorter < whole  # the user's text comes after it, and is not in it
    words = await first._client.post(f"{first.url}/detokenize", json={"tokens": of_the_agent}, headers=first._door())
    assert words.json()["content"] == chatml.render([SYSTEM]).family
    await first.close()

    second = Llm(home, weights, 2, sha256=model.files[0].sha256)
    await second.start()
    assert (await _ask(second, "Where are the paintings?"))[1] == len(of_the_agent)
    engine = psutil.Process(second.pid).children()[0]
    engine.kill()
    engine.wait(10)
    second._up.clear()  # as its watch does a moment later
    assert (await _ask(second, "Where is the café?"))[1] == len(of_the_agent)
    await second.close()
