"""The service over the bus: questions, refusals, bounds, erasing, and a successor."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.knowledge.serving import serving
from voxbridge.services.knowledge import library as library_module
from voxbridge.services.knowledge import service as service_module
from voxbridge.services.knowledge.library import Library, slug
from voxbridge.shared.bus.connection import connect_nats
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.knowledge import TEXT_LIMIT, Analyse, Asks, Forget, Ingest, ListGraphs, Rebuild, Search, asking


@pytest.fixture
def config(nats_url: str, redis_url: str, tmp_path: Path) -> Config:
    return replace(Config(), nats_url=nats_url, redis_url=redis_url, data_dir=tmp_path)


def ingest(text: str, *, graph: str = "Hand Book", source: str = "a.md", account: str = "local") -> Ingest:
    """Return a question that puts a text into a graph."""
    return Ingest(account=account, graph=graph, source=source, title=source, text=text, at=7)


async def refusal(asks: Asks, question: Any) -> VoxbridgeError:
    """Return the error that a question is answered with."""
    with pytest.raises(VoxbridgeError) as refused:
        await asks(question)
    return refused.value


async def test_documents_are_kept_by_account_and_found_again_by_the_next_process(config: Config) -> None:
    async with serving(config) as (_, asks):
        first = await asks(ingest("# Leave\nHolidays are thirty days."))
        assert (first.graph, first.changed, first.passages, first.total) == ("hand-book", True, 1, 1)
        assert not (await asks(ingest("# Leave\nHolidays are thirty days."))).changed
        await asks(ingest("Ada keeps bees.", account="ada@example.com"))
    async with serving(config) as (_, asks):
        (graph,) = (await asks(ListGraphs(account="local"))).graphs
        assert (graph.name, graph.documents, graph.passages, graph.changed) == ("hand-book", 1, 1, 7)
        found = await asks(Search(account="local", query="how many holidays?"))
        assert [(one.graph, one.source, one.headings, one.text) for one in found.passages] == [
            ("hand-book", "a.md", ("Leave",), "Holidays are thirty days.")
        ]
        assert found.by == "words"
        assert (await asks(Search(account="local", query="bees"))).passages == ()
        assert (await asks(Rebuild(account="local"))).graphs == 1
        assert (await asks(Search(account="local", query="holidays"))).passages == found.passages


async def test_refusals_name_the_field_and_what_there_is(config: Config) -> None:
    async with serving(config) as (_, asks):
        assert "There are none yet" in (await refusal(asks, Search(account="local", query="x", graphs=("nothing",)))).message
        await asks(ingest("Words."))
        unknown = await refusal(asks, Analyse(account="local", graph="nothing"))
        assert (unknown.code, unknown.field) == (Code.NOT_FOUND, "database")
        assert unknown.message == "There is no knowledge graph nothing. There are: hand-book."
        large = await refusal(asks, ingest("x" * (TEXT_LIMIT + 1)))
        assert (large.code, large.field, large.limit) == (Code.TOO_LARGE, "source", TEXT_LIMIT)
        assert (await asks(ingest("x" * TEXT_LIMIT, source="at the limit"))).changed
        assert (await refusal(asks, ingest(" \n\u200b"))).field == "source"
        assert (await refusal(asks, ingest("Words.", graph="../../!"))).code is not Code.INTERNAL
        assert (await refusal(asks, ingest("Words.", graph="..."))).field == "database"
        assert (await refusal(asks, ingest("Words.", account="../etc"))).field == "account"
        assert (await refusal(asks, Search(account="local", query="x", kind="odd"))).field == "node_type"
        assert (await refusal(asks, Search(account="local", query="x", count=1_000))).code == Code.INVALID_ARGUMENT
        assert sorted(path.name for path in config.knowledge_path.iterdir()) == ["local", "lock"]


async def test_an_account_has_a_limit_of_graphs(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "GRAPHS_LIMIT", 2)
    async with serving(config) as (_, asks):
        for name in ("one", "two", "One"):
            await asks(ingest("Words.", graph=name))
        refused = await refusal(asks, ingest("Words.", graph="three"))
        assert (refused.code, refused.field, refused.limit) == (Code.TOO_LARGE, "database", 2)


async def test_more_graphs_than_are_kept_open_are_all_answered(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "OPEN_LIMIT", 2)
    async with serving(config) as (service, asks):
        await asyncio.gather(*(asks(ingest(f"Word{number} here.", graph=f"g{number}")) for number in range(6)))
        found = await asyncio.gather(*(asks(Search(account="local", query=f"word{number}")) for number in range(6)))
        assert [[one.graph for one in each.passages] for each in found] == [[f"g{number}"] for number in range(6)]
        assert service.stats()["graphs"] <= 2 + service_module.THREADS


async def test_beyond_the_bound_questions_are_refused_and_none_is_lost(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "WAITING_LIMIT", 4)
    async with serving(config) as (service, asks):
        await asks(ingest("Words."))
        outcomes = await asyncio.gather(*(asks(Search(account="local", query="words")) for _ in range(60)), return_exceptions=True)
        refused = [one for one in outcomes if isinstance(one, BaseException)]
        assert all(isinstance(one, VoxbridgeError) and one.code == Code.OVERLOADED and one.retryable for one in refused)
        assert refused
        assert service.stats()["refused"] == len(refused)
        assert all(one.passages for one in outcomes if not isinstance(one, BaseException))


async def test_what_is_forgotten_leaves_no_file(config: Config) -> None:
    async with serving(config) as (_, asks):
        await asks(ingest("The word xylophone42."))
        await asks(ingest("Another.", graph="other"))
        assert (await asks(Forget(account="local", graph="other"))).graphs == 1
        assert (await asks(Forget(account="local"))).graphs == 1
        assert (await asks(ListGraphs(account="local"))).graphs == ()
        assert [path.name for path in config.knowledge_path.rglob("*")] == ["lock"]
        assert (await asks(ingest("Again."))).changed


async def test_one_process_holds_the_folder(config: Config) -> None:
    async with serving(config):
        with pytest.raises(VoxbridgeError, match="Another process holds the folder"):
            Library(config.knowledge_path).take()


async def test_without_the_service_there_is_one_sentence(nats_url: str) -> None:
    nc = await connect_nats(nats_url, "asks", pending=1_024, timeout_s=5)
    try:
        refused = await refusal(asking(nc), ListGraphs(account="local"))
    finally:
        await nc.close()
    assert (refused.code, refused.retryable) == (Code.UNAVAILABLE, True)
    assert refused.message == "The knowledge service does not answer: start it, or look at its log, and ask again."


@pytest.mark.parametrize(
    ("said", "name"),
    [("My  Hand_book!", "my-hand-book"), ("Straße", "strasse"), ("ﬁle 2", "file-2"), ("名前", "名前"), ("a" * 90, "a" * 60)],
)
def test_a_graph_is_named_as_it_is_spoken(said: str, name: str) -> None:
    assert slug(said) == name
