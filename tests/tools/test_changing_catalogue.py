"""A catalogue whose sets come and go, alone and in a real executor that publishes it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from voxbridge.services.tools.catalogue import Catalogue
from voxbridge.services.tools.registry import Tool, load
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.tools import ToolCompleted, ToolFailed
from voxbridge.shared.store.store import Store

ECHO = load(["tests.tools.pack"], timeout_s=5)["echo"]


def named(name: str, description: str = "Say it back.") -> Tool:
    return replace(ECHO, name=name, description=description)


def test_a_set_is_put_in_the_place_of_the_one_its_source_offered_before() -> None:
    catalogue = Catalogue({"echo": ECHO})
    held = catalogue
    catalogue.replace("files", [named("files__read"), named("files__write")])
    catalogue.replace("web", [named("web__get")])
    catalogue.replace("files", [named("files__read", "Read a file.")])
    assert [tool.name for tool in held.cards()] == ["echo", "web__get", "files__read"]
    assert held["files__read"].description == "Read a file."
    catalogue.replace("files", [])
    assert list(held) == ["echo", "web__get"]


@pytest.mark.parametrize("offered", [["echo"], ["web__get"], ["new", "new"]])
def test_a_name_that_is_taken_is_refused_and_nothing_changes(offered: list[str]) -> None:
    catalogue = Catalogue({"echo": ECHO})
    catalogue.replace("web", [named("web__get")])
    version = catalogue.version
    with pytest.raises(VoxbridgeError, match=offered[0]) as refused:
        catalogue.replace("files", [named(name) for name in offered])
    assert refused.value.code == Code.CONFLICT
    assert (list(catalogue), catalogue.version) == (["echo", "web__get"], version)


async def test_a_change_is_told_once_and_the_same_set_again_is_none() -> None:
    catalogue = Catalogue({"echo": ECHO})
    version = catalogue.version
    waiting = asyncio.create_task(catalogue.changed(version, 30))
    catalogue.replace("files", [named("files__read")])
    assert await waiting
    version = catalogue.version
    catalogue.replace("files", [named("files__read")])
    assert not await catalogue.changed(version, 0.001)


async def test_an_executor_publishes_what_changed_and_runs_it_until_it_leaves(executors: Executors, caller: Caller, store: Store) -> None:
    async with executors.running() as service:

        async def published() -> bool:
            return "files__echo" in {card.name for card in await store.functions()}

        await eventually(store.functions)
        assert not await published()
        service._tools.replace("files", [named("files__echo")])
        await eventually(published)
        await caller.call("files__echo", text="hello")
        done, _ = await caller.next(ToolCompleted)
        assert done.result["text"] == "hello"
        service._tools.replace("files", [])
        await caller.call("files__echo", "c2", text="hello")
        failed, _ = await caller.next(ToolFailed, "c2")
        assert failed.error.code == Code.NOT_FOUND
        await eventually(lambda: _gone(store))


async def _gone(store: Store) -> bool:
    return "files__echo" not in {card.name for card in await store.functions()}
