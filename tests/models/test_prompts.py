"""Prompts on disk: kept ones, valid ones, and data that is never written."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio

from voxbridge.services.models.core.chatml import Prompt
from voxbridge.services.models.engines import llm as llm_module
from voxbridge.services.models.engines import prompt_cache as prompts_module
from voxbridge.services.models.engines.llm import Llm, Sampling
from voxbridge.services.models.engines.prompt_cache import FILES, Prompts, digest
from voxbridge.services.models.processes.home import Home
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError

SECRET = "My door code is 4711."
FAMILY = "<|im_start|>system\nYou are an agent.<|im_end|>\n"
ASKED = Prompt(FAMILY, f"{FAMILY}<|im_start|>user\n{SECRET}<|im_end|>\n<|im_start|>assistant\n")


def _kept(prompts: Prompts, prompt: str, content: bytes = b"knowledge") -> str:
    name = prompts.unfinished()
    (prompts.folder / name).write_bytes(content)
    assert prompts.keep(prompt, name)
    found = prompts.find(prompt)
    assert found is not None
    return found


@pytest.fixture
def prompts(tmp_path: Path) -> Prompts:
    found = Prompts(tmp_path / "prompts", ("engine 1", "weights"))
    assert found.open()
    return found


def test_a_prompt_is_found_again_by_the_next_process(prompts: Prompts) -> None:
    name = _kept(prompts, "a")
    again = Prompts(prompts.folder, ("engine 1", "weights"))
    assert again.open()
    assert again.find("a") == name
    assert again.find("b") is None


def test_only_this_user_can_read_what_is_kept(prompts: Prompts) -> None:
    path = prompts.folder / _kept(prompts, "a")
    assert prompts.folder.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir(mode=0o755)
    assert Prompts(folder, ()).open()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_torn_file_is_removed_and_not_believed(prompts: Prompts) -> None:
    path = prompts.folder / _kept(prompts, "a")
    path.write_bytes(b"knowledg")
    assert prompts.find("a") is None
    assert not path.exists()


def test_a_file_is_read_once_by_a_process_to_see_that_it_is_whole(prompts: Prompts, monkeypatch: pytest.MonkeyPatch) -> None:
    name = _kept(prompts, "a")
    assert prompts.has("a")
    monkeypatch.setattr(Prompts, "_name", lambda *_: pytest.fail("it was read again"))
    assert prompts.find("a") == name


def test_what_another_engine_or_other_weights_wrote_is_not_believed(prompts: Prompts) -> None:
    _kept(prompts, "a")
    assert Prompts(prompts.folder, ("engine 2", "weights")).find("a") is None
    assert Prompts(prompts.folder, ("engine 1", "other weights")).find("a") is None


def test_files_that_are_no_prompts_are_removed_at_the_start_and_folders_are_left_alone(prompts: Prompts) -> None:
    kept = _kept(prompts, "a")
    (prompts.folder / "notes.txt").write_text("?")
    unfinished = prompts.folder / prompts.unfinished()
    unfinished.write_bytes(b"half")
    os.utime(unfinished, (1, 1))
    being_written = prompts.folder / prompts.unfinished()
    being_written.write_bytes(b"of another service")
    (prompts.folder / "folder").mkdir()
    assert Prompts(prompts.folder, ("engine 1", "weights")).open()
    assert {path.name for path in prompts.folder.iterdir()} == {kept, being_written.name, "folder"}


def test_the_prompt_used_longest_ago_makes_room(prompts: Prompts) -> None:
    for number in range(FILES):
        path = prompts.folder / _kept(prompts, f"p{number}")
        os.utime(path, (number + 1, number + 1))
    assert prompts.has("p0")  # used again
    _kept(prompts, "one more")
    assert sum(1 for _ in prompts.folder.iterdir()) == FILES
    assert prompts.find("p1") is None
    assert prompts.find("p0") is not None


def test_the_folder_holds_no_more_bytes_than_its_bound(prompts: Prompts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts_module, "BYTES", 100)
    old = prompts.folder / _kept(prompts, "old", b"x" * 60)
    os.utime(old, (1, 1))
    _kept(prompts, "at the bound", b"x" * 40)
    assert old.exists()
    _kept(prompts, "one byte", b"x")
    assert not old.exists()


def test_a_prompt_that_is_kept_again_has_one_file(prompts: Prompts) -> None:
    _kept(prompts, "a", b"first")
    _kept(prompts, "a", b"second")
    assert sum(1 for _ in prompts.folder.iterdir()) == 1


def test_a_disk_that_cannot_be_written_costs_reading_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    prompts = Prompts(tmp_path / "file" / "prompts", ())
    assert not prompts.open()
    assert prompts.find("a") is None
    assert not prompts.has("a")
    assert not prompts.keep("a", prompts.unfinished())


PROGRESS = [
    {"content": "", "stop": False, "tokens_evaluated": 40, "prompt_progress": {"total": 40, "cache": 0, "processed": done, "time_ms": done}}
    for done in (0, 32, 40)
]
"""Lines by which the engine says how much of a prompt it has read, as `return_progress` gives them."""


class Engine:
    """A stand-in for llama.cpp that records its requests. A slot keeps the prompt that it read last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[tuple[str, str]] = []
        self.slots = [""] * 3
        self.refuses = ""
        self.breaks_off = False
        """True if its answers end before they are complete."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body: dict[str, Any] = msgspec.json.decode(request.content) if request.content else {}
        if request.url.path == "/slots":
            return httpx.Response(200, json=[])
        if request.url.path == "/completion":
            self.slots[body["id_slot"]] = body["prompt"]
            self.asked.append(("read", body["prompt"]))
            assert body["stream"]
            assert body["return_progress"]
            lines = [*PROGRESS, {"content": "Yes.", "stop": not self.breaks_off, "stop_type": "eos"}]
            return httpx.Response(200, text="".join(f"data: {msgspec.json.encode(line).decode()}\n\n" for line in lines))
        action, slot = request.url.params["action"], int(request.url.path.rpartition("/")[2])
        self.asked.append((action, body["filename"]))
        if action == self.refuses:
            return httpx.Response(400, json={"error": {"message": "no"}})
        if action == "save":
            (self.folder / body["filename"]).write_text(self.slots[slot])
            if self.refuses == "save, its caller gone":
                raise asyncio.CancelledError
        else:
            self.slots[slot] = (self.folder / body["filename"]).read_text()
        return httpx.Response(200, json={})

    @property
    def actions(self) -> list[str]:
        """Requested actions, in order."""
        return [action for action, _ in self.asked]


async def _llm(home: Home, weights: Path, engine: Engine) -> Llm:
    llm = Llm(home, weights, 1, sha256="w")
    await llm._client.aclose()
    llm._client = httpx.AsyncClient(transport=httpx.MockTransport(engine), base_url="http://engine")
    llm.url = "http://engine"
    assert await llm.serves()
    llm._up.set()
    return llm


class Place:
    """An engine, and services that use it one after the other."""

    def __init__(self, folder: Path) -> None:
        self.weights = folder / "weights.gguf"
        self.weights.touch()
        self.home = Home(folder, 1)
        self.home.take()
        self.engine = Engine(self.home.prompts)
        self._llms: list[Llm] = []

    async def service(self, *, new_engine: bool = False) -> Llm:
        """Start a service; `new_engine`: its engine was restarted, too."""
        if new_engine:
            self.engine.slots = [""] * 3
            self.home.note("llama.cpp", b"")
        self.engine.asked.clear()
        llm = await _llm(self.home, self.weights, self.engine)
        self._llms.append(llm)
        return llm

    async def close(self) -> None:
        """Close all services and the home."""
        for llm in self._llms:
            await llm.close()
        self.home.leave()


@pytest_asyncio.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    found = Place(tmp_path)
    yield found
    await found.close()


async def _ask(llm: Llm, prompt: Prompt = ASKED, *, keep: bool = True) -> None:
    assert [step.text async for step in llm.generate(prompt, Sampling(), keep=keep)] == ["Yes."]


async def test_what_is_kept_is_the_agents_prompt_and_no_word_of_a_conversation(place: Place) -> None:
    llm = await place.service()
    await _ask(llm)
    assert place.engine.actions == ["read", "save", "read"]
    assert [path.read_text() for path in place.home.prompts.iterdir()] == [FAMILY]
    await _ask(llm)
    assert place.engine.actions == ["read", "save", "read", "read"]


async def test_of_a_prompt_that_may_not_be_kept_nothing_is_written(place: Place) -> None:
    await _ask(await place.service(), keep=False)
    assert place.engine.actions == ["read"]
    assert not list(place.home.prompts.iterdir())


async def test_a_new_engine_takes_a_kept_prompt_from_disk(place: Place) -> None:
    await _ask(await place.service())
    await _ask(await place.service(new_engine=True), keep=False)
    assert place.engine.actions == ["restore", "read"]


async def test_the_next_service_knows_what_the_slots_of_a_running_engine_hold(place: Place) -> None:
    await _ask(await place.service())
    await _ask(await place.service())
    assert place.engine.actions == ["read"]  # a restored slot would no longer contain the conversation


async def test_a_change_of_agent_reads_nothing_again(place: Place) -> None:
    llm = await place.service()
    families = [f"agent {number}" for number in range(4)]
    for family in families:
        await _ask(llm, Prompt(family, f"{family} hello"))
    place.engine.asked.clear()
    for family in families:
        await _ask(llm, Prompt(family, f"{family} hello"))
    assert place.engine.actions == ["restore", "read"] * 4


async def test_a_file_that_the_engine_refuses_is_removed_and_the_prompt_kept_anew(place: Place) -> None:
    await _ask(await place.service())
    place.engine.refuses = "restore"
    await _ask(await place.service(new_engine=True))
    assert place.engine.actions == ["restore", "read", "save", "read"]
    place.engine.refuses = "save"
    for path in place.home.prompts.iterdir():
        path.unlink()
    await _ask(await place.service(new_engine=True))
    assert place.engine.actions == ["read", "save", "read"]
    assert not list(place.home.prompts.iterdir())


async def test_a_caller_that_goes_away_while_a_prompt_is_written_leaves_no_file(place: Place) -> None:
    llm = await place.service()
    place.engine.refuses = "save, its caller gone"
    with pytest.raises(asyncio.CancelledError):
        await _ask(llm)
    assert not list(place.home.prompts.iterdir())


async def test_a_torn_file_is_read_again_from_the_prompt(place: Place) -> None:
    await _ask(await place.service())
    (file,) = place.home.prompts.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    await _ask(await place.service(new_engine=True))
    assert place.engine.actions == ["read", "save", "read"]
    assert [path.read_text() for path in place.home.prompts.iterdir()] == [FAMILY]


def test_names_tell_nothing_of_a_prompt(prompts: Prompts) -> None:
    assert "secret" not in _kept(prompts, "secret")
    assert len(digest("secret")) == 32


async def test_the_progress_of_reading_is_no_part_of_an_answer(place: Place) -> None:
    llm = await place.service()
    steps = [step async for step in llm.generate(ASKED, Sampling())]
    assert [(step.text, step.reason) for step in steps] == [("Yes.", "stop")]


async def test_a_prompt_that_is_read_for_too_long_has_no_answer(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = await place.service()
    monkeypatch.setattr(llm_module, "FIRST_TOKEN_TIMEOUT_S", -1.0)
    with pytest.raises(VoxbridgeError) as refused:
        _ = [step async for step in llm.generate(ASKED, Sampling())]
    assert refused.value.code == Code.TIMED_OUT


async def test_a_reading_that_breaks_off_is_not_kept(place: Place) -> None:
    llm = await place.service()
    place.engine.breaks_off = True
    with pytest.raises(Unavailable):
        await llm.read(ASKED.family, keep=True)
    assert place.engine.actions == ["read"]
    assert not llm.knows(ASKED.family)
