"""Routers of sets of functions: which one serves while another one is trained."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.eventually import eventually
from voxbridge.services.models.api import routers
from voxbridge.services.models.api.router_files import RouterFiles
from voxbridge.services.models.api.routers import Routers
from voxbridge.services.models.choice.router import Before, Known, Router
from voxbridge.services.models.core.chatml import Tool


def tool(name: str, *utterances: str, values: tuple[str, ...] = ()) -> Tool:
    """Return a tool that is asked for by these, of which an argument has one of these values."""
    return Tool(name, f"The function {name}.", {"properties": {"value": {"enum": list(values)}}} if values else {}, utterances)


TIME = tool("current_time", "what time is it in Rome", "tell me the time")
NOTE = tool("remember", "remember that my bike is red", "keep in mind that I am late")
THEME = tool("switch_theme", "switch to the dark theme", "light mode please")
ALL = [TIME, NOTE, THEME]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the sets that are trained from now on."""
    sizes: list[int] = []
    train = Routers._train

    def counted(self: Routers, functions: tuple[Known, ...]) -> Router:
        sizes.append(len(functions))
        return train(self, functions)

    monkeypatch.setattr(Routers, "_train", counted)
    return sizes


async def test_a_part_of_a_set_is_served_by_the_router_of_the_whole_and_trained_later(
    trained: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Routers()
    whole = await kept.of(ALL)
    part = await kept.of([TIME, NOTE])
    assert whole is not None
    assert part is not None
    assert trained == [3]
    assert part.decide("what time is it in Oslo").shortlist[0] == "current_time"
    assert "switch_theme" in whole.decide("switch to the light theme").shortlist
    assert "switch_theme" not in part.decide("switch to the light theme").shortlist
    monkeypatch.setattr(routers, "LATER_S", 0.0)
    await kept.of([TIME, THEME])
    await eventually(lambda: trained == [3, 2])

    async def own() -> bool:
        served = await kept.of([TIME, THEME])
        return served is not None and served.names == ["current_time", "switch_theme"]

    await eventually(own)
    assert await kept.of(ALL) is whole


async def test_a_set_waits_for_the_router_that_is_being_trained_and_knows_more(trained: list[int]) -> None:
    kept = Routers()
    whole, part = await asyncio.gather(kept.of(ALL), kept.of([NOTE]))
    assert whole is not None
    assert part is not None
    assert (trained, part.names) == ([3], whole.names)
    assert part.decide("what time is it in Oslo").mode == "words"


async def test_other_names_of_things_are_served_by_the_router_that_is_there(trained: list[int]) -> None:
    kept = Routers()
    first = await kept.of([TIME, tool("read", "read the screen", values=("Build",))])
    second = await kept.of([TIME, tool("read", "read the screen", values=("Build", "Pier"))])
    assert (trained, second) == ([2], first)


async def test_other_utterances_and_further_functions_are_trained_at_once(trained: list[int]) -> None:
    kept = Routers()
    await kept.of([TIME])
    await kept.of([TIME, NOTE])
    await kept.of([tool("current_time", "how late is it")])
    assert trained == [1, 2, 1]


async def test_a_router_on_disk_is_read_at_once(trained: list[int], tmp_path: Path) -> None:
    await Routers(RouterFiles(tmp_path)).of([TIME, NOTE])
    kept = Routers(RouterFiles(tmp_path))
    await kept.of(ALL)
    part = await kept.of([TIME, NOTE])
    assert part is not None
    assert part.names == ["current_time", "remember"]
    assert len(trained) == 3  # the last one was read


async def test_a_router_that_could_not_be_trained_serves_no_other_set(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Routers()
    with monkeypatch.context() as broken:
        broken.setattr(Routers, "_train", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await kept.of(ALL)
    part = await kept.of([TIME])
    assert part is not None
    assert part.names == ["current_time"]


def test_a_function_that_the_caller_lacks_is_never_chosen_nor_followed_up() -> None:
    router = Router([routers.known(one) for one in ALL])
    assert router.without(frozenset()) is router
    lacking = router.without({"switch_theme", "remember"})
    for said in ("switch to the dark theme", "remember the milk", "what time is it in Oslo", "and in Lima", ""):
        for before in (None, Before("switch to the dark theme", "switch_theme")):
            assert {"switch_theme", "remember"}.isdisjoint(lacking.decide(said, before).shortlist)
    assert lacking.without({"current_time", "switch_theme", "remember"}).decide("what time is it in Oslo").mode == "words"
    assert router.decide("switch to the dark theme").shortlist[0] == "switch_theme", "the router itself has it still"
