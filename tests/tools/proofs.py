"""Kinds of proofs of a limit, and what takes so much of something and tells how much of it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import msgspec

from tests.tools.core_driver import Told, accepted, called, log_input
from tests.tools.runs.world import World, document
from voxbridge.services.tools.core.inputs import Fact
from voxbridge.services.tools.mcp import config, messages, remote
from voxbridge.services.tools.mcp.messages import Answered
from voxbridge.services.tools.packs.catalogue import functions as catalogue
from voxbridge.services.tools.packs.codegen import outline
from voxbridge.services.tools.packs.device import sensors
from voxbridge.services.tools.packs.knowledge import documents
from voxbridge.services.tools.packs.knowledge import functions as knowledge
from voxbridge.services.tools.packs.playbooks.library import Library
from voxbridge.services.tools.packs.utilities import licences, probes, tables, yaml_text
from voxbridge.services.tools.packs.workflows import functions as workflows
from voxbridge.services.tools.registry import BUILT_IN, Tool, load
from voxbridge.services.tools.runs import draft, failures, schemas, triggers, values
from voxbridge.services.tools.runs.document import parse
from voxbridge.services.tools.runs.state import Frame
from voxbridge.services.tools.session import checkpoints, effects, library
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.gateway import ApprovalClicked
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.fetch import Fetched
from voxbridge.shared.knowledge import Found, Graph, Graphs, ListGraphs, Passage
from voxbridge.shared.workspace import Workspace

Limit = tuple[str, str]
"""Module below `voxbridge.services.tools`, and name."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Takes what has so much, and raises beyond the bound an error that names `field`, where one is to blame, and the limit."""

    take: Callable[[int], object]
    field: str | None
    code: Code = Code.INVALID_ARGUMENT
    step: int = 1


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Takes what has so much, and returns how much of it is kept, shown or said: never more than the bound."""

    take: Callable[[int], int]
    more: int = 0
    """Added where the bound is passed: the mark of a cut."""


@dataclass(frozen=True)
class Elsewhere:
    """Is tested at its bound elsewhere: a file below `tests`, and a test in it."""

    file: str
    test: str


@cache
def tools() -> dict[str, Tool]:
    return dict(load(BUILT_IN, timeout_s=5))


def argument(function: str, name: str, /, **others: Any) -> Refused:
    """Return the proof of a limit of the characters of an argument."""
    return Refused(take=lambda size: tools()[function].check({**others, name: "x" * size}), field=name)


def macro(**parts: Any) -> Any:
    return parse({"name": "m", "steps": ["current_time"], **parts})


def take_facts(count: int) -> int:
    told = Told()
    told.take(*(Fact(kind="approval.standing", data={"name": "fn"}, key=str(number)) for number in range(count)))
    return len(told.state.facts)


def take_granted(count: int) -> int:
    told = Told()
    for number in range(count):
        call_id = f"c{number}"
        told.take(called(call_id, number, a=number), accepted(call_id, effect="destructive", approval="first"))
        told.take(log_input(ApprovalClicked(approval_id=f"approval-{call_id}", answer="approved", scope="function"), 1_000 + number))
    return len(told.state.granted)


def take_undo(size: int) -> int:
    """Return the bytes of what is kept for an undo that needs so many."""
    given = effects._undo(tools()["remember"], {"x": "y" * (size - len('{"x":""}'))})
    return 0 if given is None else len(msgspec.json.encode(given))


def take_checkpoint(size: int) -> int:
    state = Told().state
    spare = len(msgspec.msgpack.encode(msgspec.structs.replace(state, withdrawn={"c": "x" * 70_000}))) - 70_000
    made = checkpoints.made(msgspec.structs.replace(state, withdrawn={"c": "x" * (size - spare)}), taken=1, number=1)
    return 0 if made is None else len(made.state)


def take_frame(size: int) -> object:
    spare = len(messages.framed(Answered(id=1, result={"x": "y" * 70_000}))) - messages.FRAME.size - 70_000
    try:
        return messages.framed(Answered(id=1, result={"x": "y" * (size - spare)}))
    except ValueError as error:
        raise VoxbridgeError(Code.TOO_LARGE, str(error), limit=messages.FRAME_LIMIT) from error


def take_remote(size: int) -> object:
    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    base = tools()["current_time"]
    shared = {field: getattr(base, field) for field in base.__dataclass_fields__}
    wanted = {field: value for field, value in shared.items() if field in remote.RemoteTool.__dataclass_fields__}
    rest = {field: "" for field in remote.RemoteTool.__dataclass_fields__ if field not in wanted}
    tool = remote.RemoteTool(**{**wanted, **rest, "parameters": {}, "run": run})
    return tool.check({"x": "y" * (size - len('{"x":""}'))})


def take_nested(depth: int) -> Any:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


def take_checked(depth: int) -> int:
    """Return how deep a wrong value is still found."""
    value: Any = "no number"
    for _ in range(depth):
        value = [value]
    return depth if list(schemas.problems(value, take_nested(depth), lambda _pipe: "")) else 0


def take_columns(columns: int) -> dict[str, Any]:
    return tables.query(f"select {', '.join(f'a as c{number}' for number in range(columns))} from data", "a\n1\n")


def passage_of(text: str) -> Passage:
    return Passage(graph="g", source="s", title="t", headings=(), line=1, text=text, score=1.0)


def take_methods(count: int) -> int:
    text = "class A:\n" + "".join(f"    def m{number}(self): ...\n" for number in range(count))
    return len(outline.outline(text, "a.py")["classes"][0]["methods"])


def take_common(count: int) -> int:
    text = "a\n" + "".join(f"v{number}\n" * 2 for number in range(count))
    return len(tables.statistics_of(text)["columns"][0]["common"])


def take_servers(count: int) -> object:
    return config.parse(b"servers: {" + b",".join(b"s%d: {command: x}" % number for number in range(count)) + b"}")


def take_inputs(size: int) -> object:
    wanted = macro(inputs={"n": {}})
    return values.given(wanted, {"n": "x" * (size - len('{"n":""}'))})


def take_pause(pause_us: int) -> int:
    """Return the pause before the second attempt of a step whose policy wants one of so many µs."""
    step = macro(steps=[{"call": "a", "on_error": {"retry": {"n": 5, "backoff_s": 60.0}}}]).steps[0]
    frame = Frame(document=macro(steps=[{"call": "a"}]), inputs={}, attempt=1 if pause_us <= failures.PAUSE_LIMIT_US else 2)
    frame = msgspec.structs.replace(frame, document=msgspec.structs.replace(frame.document, steps=(step,)))
    found = failures.verdict(frame, Failure(code=Code.UNAVAILABLE, message="Away."), known=True)
    assert isinstance(found, failures.Again)
    return found.after_us


def take_drafted(depth: int) -> int:
    """Return how deep a value of a result is still found."""
    value: Any = "the value"
    for _ in range(depth):
        value = {"a": value}
    return depth if any(found == "the value" for _, found in draft._parts(value)) else 0


def take_described(size: int) -> int:
    card = msgspec.structs.replace(tools()["recall"].card(), description="x" * size)
    return len(catalogue._described(card)["description"])


def take_licences(count: int) -> int:
    with TemporaryDirectory() as folder:
        for number in range(count):
            (Path(folder) / f"a{number}.py").write_text("# SPDX-License-Identifier: MIT\n")
        found = licences.of_folder(Workspace([folder]), "")
        return int(found["licences"][0]["files"])


def take_workflows(count: int) -> int:
    with TemporaryDirectory() as folder:
        for number in range(count):
            (Path(folder) / f"{number}.json").write_bytes(msgspec.json.encode({"name": f"w{number}", "steps": ["current_time"]}))
        return len(library.read_folders(Path(folder)))


def take_licence(size: int) -> int:
    """Return the size of a file, if it is read."""
    with TemporaryDirectory() as folder:
        line = "# SPDX-License-Identifier: MIT\n"
        (Path(folder) / "a.py").write_text(line + "#" * (size - len(line)))
        return size if licences.of_folder(Workspace([folder]), "")["licences"] else 0


def take_line(size: int) -> int:
    with TemporaryDirectory() as folder:
        (Path(folder) / "temp").write_text("1" * size)
        return len(sensors._line(Path(folder) / "temp"))


def take_sections(count: int) -> int:
    with TemporaryDirectory() as folder:
        (Path(folder) / "a.md").write_text("# a\nb\n" * count)
        found = Library(Path(folder))
        found.search("b", 1)
        return len(found)


def take_documents(count: int) -> object:
    with TemporaryDirectory() as folder:
        (Path(folder) / "all").mkdir()
        for number in range(count):
            (Path(folder) / "all" / f"{number}.md").touch()
        return asyncio.run(documents.documents("all", SimpleNamespace(workspace=Workspace([folder]))))  # type: ignore[arg-type]


def take_listed(count: int) -> int:
    async def known(_kind: str) -> dict[str, Any]:
        return {f"w{number}": macro() for number in range(count)}

    return len(asyncio.run(workflows.list_workflows(SimpleNamespace(documents=known)))["workflows"])  # type: ignore[arg-type]


def take_title(size: int) -> int:
    body = f"<title>{'x' * size}</title>".encode()
    fetched = Fetched(url="", status=200, headers={}, body=body, cut=False, redirects=(), address="", elapsed_ms=1)
    return len(probes.told(fetched)["title"])


def take_slots(count: int) -> object:
    wanted = macro(
        triggers=["go " + " and ".join(f"{{s{number}}}" for number in range(count))], inputs={f"s{number}": {} for number in range(count)}
    )
    triggers.check(wanted, [])
    return wanted


def take_searched(count: int) -> int:
    """Return how many of so many graphs are searched; the others are named as left out."""
    graphs = tuple(Graph(name=f"g{number}", documents=1, passages=1, entities=0, relations=0, changed=0) for number in range(count))

    async def answer(asked: object) -> object:
        return Graphs(graphs=graphs, by="words") if isinstance(asked, ListGraphs) else Found(passages=(), by="words")

    async def progress(_fraction: float, _note: str) -> None: ...

    context: Any = SimpleNamespace(account="local", knowledge=answer, progress=progress)
    result = asyncio.run(knowledge.cross_kg_search("x", context))
    assert len(result["results"]) + len(result.get("not_searched", [])) == count
    return len(result["results"])


def take_aliased(values: int) -> object:
    """Read a YAML text of so many values, nearly all of them by aliases."""
    repeated = "[" + "0," * 999 + "0]"
    rest = values - 1 - 99 * 1_001
    return yaml_text.load(f"[&a {repeated}" + ", *a" * 98 + ", 0" * rest + "]")


def take_said(size: int) -> int:
    """Return the characters that a run says, of steps that said so many."""
    world = World()
    first = size // 2
    world.start(document({"say": "x" * first}, {"say": "y" * (size - first - 1)}))
    return len(world.finished["r1"]["spoken"])
