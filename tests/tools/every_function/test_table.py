"""Every function, by each door: what it answers to good arguments, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from tests.tools.every_function.agents import AGENTS
from tests.tools.every_function.cases import TEXTS, Case, refused, texts_of, unbounded
from tests.tools.every_function.conftest import CANARY
from tests.tools.every_function.doors import MARKS, OWNED, Door, Doors, Outcome
from tests.tools.every_function.entry import Entry
from tests.tools.every_function.packs import PACKS, PAGE
from tests.tools.every_function.terminals import TERMINALS
from tests.tools.every_function.utilities import UTILITIES
from voxbridge.services.tools.registry import BUILT_IN, Tool, load
from voxbridge.services.tools.runs.checks import HIDDEN
from voxbridge.shared.errors import Code

pytestmark = pytest.mark.timeout(900)
TABLE: Final[dict[str, Entry]] = {**PACKS, **AGENTS, **TERMINALS, **UTILITIES}
TOOLS: Final = load(BUILT_IN, timeout_s=30)
DOORS: Final[tuple[Door, ...]] = get_args(Door)
WITHIN_S: Final = 20.0
"""Seconds in which a bad call is refused."""

PAGE_ANSWERS_S: Final = 5.0
"""Seconds that a page has for an answer."""

FAULTS: Final = (Code.INTERNAL, Code.INTERRUPTED, Code.TIMED_OUT, Code.CANCELLED, Code.OVERLOADED)
"""Codes that no argument may lead to."""

SOME: Final[Mapping[Door, Collection[str]]] = {
    "model": TEXTS.keys(),
    "rest": ("NUL", "control characters", "other planes", "JSON", "header", "figure"),
    "macro": ("NUL", "bidi", "pipe", "input pipe", "template", "instruction"),
}
"""Texts that each door gets here: all come by a model's call, and by the others those that these doors read themselves; `tests/long` gives
all to all."""

AT_ONCE: Final = 96
"""Calls of hostile arguments at a time: each has a few seconds, on a busy machine, too."""

_FEW: Final[Mapping[Door, Collection[str]]] = {"model": SOME["rest"], "rest": (), "macro": ()}
"""Texts for functions whose every call reaches a program in a terminal."""


async def test_every_function_answers_the_same_by_each_door(doors: Doors) -> None:
    locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def one(name: str, entry: Entry) -> list[str]:
        async with locks[entry.alone or name]:
            found = {door: await good(doors, door, name) for door in DOORS if door != "macro" or entry.step}
        faults = [fault for door, outcome in found.items() for fault in _wrong(doors, door, name, outcome)]
        told = {door: _comparable(entry, door, outcome) for door, outcome in found.items()}
        return faults or [f"{name} by {door}: {text}, and by model {told['model']}" for door, text in told.items() if text != told["model"]]

    await no_faults(one(name, entry) for name, entry in TABLE.items())


async def test_every_function_refuses_what_its_schema_does_not_have(doors: Doors) -> None:
    async def one(door: Door, name: str, case: Case) -> list[str]:
        outcome = await doors.ask(door, name, filled(doors, door, name, case.arguments))
        where = f"{name} by {door}, {case.what}: {outcome} after {outcome.took_s:.1f} s"
        return [] if _is_refusal(case, door, outcome) and outcome.took_s <= WITHIN_S else [where]

    await no_faults(one(door, name, case) for name, door in asked() for case in refused(TOOLS[name].parameters, TABLE[name].arguments))


async def test_every_function_bears_what_strangers_write(doors: Doors) -> None:
    await bears(doors, SOME)


async def test_what_no_step_may_call_is_refused_when_a_macro_is_saved(doors: Doors) -> None:
    assert {name for name, entry in TABLE.items() if not entry.step} == HIDDEN
    for name in (*sorted(HIDDEN), *PAGE):
        outcome = await doors.ask("macro", name, {})
        assert (outcome.code, name in outcome.message) == (Code.INVALID_ARGUMENT, True), outcome


async def test_a_function_of_a_page_is_unavailable_at_once_without_one(doors: Doors) -> None:
    for name, (arguments, _) in PAGE.items():
        for door in ("model", "rest"):
            outcome = await doors.ask(door, name, arguments)
            assert (outcome.code, "page" in outcome.message) == (Code.UNAVAILABLE, True), outcome
            assert outcome.took_s < PAGE_ANSWERS_S, "no page was waited for"


def test_every_function_has_an_entry() -> None:
    missing = TOOLS.keys() ^ (TABLE.keys() | PAGE.keys())
    assert not missing, f"add these to tests/tools/every_function, or take them out: {sorted(missing)}"
    assert {name for name, tool in TOOLS.items() if tool.browser} == PAGE.keys()


async def bears(doors: Doors, texts: Mapping[Door, Collection[str]]) -> None:
    """Give every function hostile arguments by each door; `texts` names those of `TEXTS` that come by it."""
    turns: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(4))  # fewer than a limit of their own would refuse

    at_once = asyncio.Semaphore(AT_ONCE)

    async def one(door: Door, name: str, arguments: dict[str, Any], what: str, code: str | None) -> list[str]:
        async with turns["owned" if name in OWNED else f"{name}-{door}"], at_once:  # one account has 8 tasks at most
            outcome = await doors.ask(door, name, filled(doors, door, name, arguments))
            await doors.cancel(door, name, outcome)
        where = f"{name} by {door}, {what}: {outcome} after {outcome.took_s:.1f} s"
        return [] if _bears(name, outcome) and (code is None or _is(outcome, code, door)) else [where]

    await no_faults(first(doors, door, name) for name, door in asked())
    await no_faults(
        one(door, name, arguments, what, code)
        for name, door in asked()
        for what, arguments, code in hostile(TOOLS[name], TABLE[name])
        if code is not None or (what.partition(": ")[2] in (_FEW[door] if name in OWNED else texts[door]))
    )


def asked() -> Iterable[tuple[str, Door]]:
    """Yield the functions of the table, each with the doors by which it is asked for."""
    return ((name, door) for name, entry in TABLE.items() for door in DOORS if door != "macro" or entry.step)


async def first(doors: Doors, door: Door, name: str) -> list[str]:
    """Make the calls that must come before; return what is wrong with them."""
    faults = []
    for before in TABLE[name].before:
        by: Door = "model" if door == "macro" else door
        arguments = filled(doors, door, name, before.arguments)
        outcome = await doors.ask(by, before.name, arguments, scope=before.scope, subject=f"{name}-{door}")
        if outcome.code:
            faults.append(f"{name} by {door}, {before.name} before it: {outcome}")
    return faults


async def good(doors: Doors, door: Door, name: str) -> Outcome:
    """Ask for a function as its entry says, after what must come first."""
    faults = await first(doors, door, name)
    assert not faults, faults
    return await doors.ask(door, name, filled(doors, door, name, TABLE[name].arguments))


def hostile(tool: Tool, entry: Entry) -> Iterable[tuple[str, dict[str, Any], str | None]]:
    """Yield hostile arguments: those of the function's own kind with the code they get, and texts of strangers for each text."""
    for own, code in entry.hostile:
        yield str(own)[:80], {**entry.arguments, **own}, code
    for name, limit in texts_of(tool.parameters).items():
        for what, text in TEXTS.items():
            yield f"{name}: {what}", {**entry.arguments, name: text[:limit]}, None


def filled(doors: Doors, door: Door, name: str, value: Any) -> Any:
    """Return arguments with the words that stand for the door, and for what is known only here."""
    text = json.dumps(value)
    for word, meant in {"@@": MARKS[door], "{own}": name, **doors.values}.items():
        text = text.replace(word, meant)
    return json.loads(text)


async def no_faults(cases: Iterable[Awaitable[list[str]]]) -> None:
    """Run all cases at the same time; fail with all that is wrong."""
    faults = [fault for found in await asyncio.gather(*cases) for fault in found]
    assert not faults, f"{len(faults)} cases:\n" + "\n".join(faults[:60])


def _wrong(doors: Doors, door: Door, name: str, outcome: Outcome) -> Iterable[str]:
    """Yield what is not as the table has it."""
    entry = TABLE[name]
    where = f"{name} by {door}"
    if outcome.result is None:
        yield f"{where}: {outcome}"
        return
    wanted = filled(doors, door, name, dict(entry.wanted))
    found = {key: outcome.result.get(key) for key in wanted}
    if found != wanted:
        yield f"{where}: {found} instead of {wanted}"
    if entry.check is not None and not entry.check(outcome.result):
        yield f"{where}: the check fails for {outcome}"
    if not 0 < len(outcome.result["spoken"]) <= 300:
        yield f"{where}: says {outcome.result['spoken']!r}"
    for file, text in entry.files.items():
        path = doors.workspace / filled(doors, door, name, file)
        if not path.is_file() or text not in path.read_text():
            yield f"{where}: no {path.name} with {text}"


def _comparable(entry: Entry, door: Door, outcome: Outcome) -> str:
    """Return a result as it is by each door."""
    kept = {key: value for key, value in (outcome.result or {}).items() if key not in entry.varies}
    text = json.dumps(kept, sort_keys=True)
    return text.replace(MARKS[door], "@@").replace(MARKS[door].capitalize(), "@@")


def _is_refusal(case: Case, door: Door, outcome: Outcome) -> bool:
    return (
        outcome.code in (Code.INVALID_ARGUMENT, Code.TOO_LARGE)
        and outcome.field.partition(".")[0].partition("[")[0]
        in (case.field, "body" if door == "rest" else "steps" if door == "macro" else "")
        and _is_sentence(outcome.message)
        and (case.limit is None or outcome.field in ("body", "steps") or str(case.limit) in outcome.message.replace(",", ""))
    )


def _is(outcome: Outcome, code: str, door: Door) -> bool:
    too_long_for_a_step = (Code.TOO_LARGE, "steps")
    by_the_check_of_steps = Code.INVALID_ARGUMENT if code else ""
    wanted = (code, by_the_check_of_steps) if door == "macro" else (code,)
    return outcome.code in wanted or (door == "macro" and (outcome.code, outcome.field) == too_long_for_a_step)


def _bears(name: str, outcome: Outcome) -> bool:
    if name == "cancel_task" and outcome.code == Code.CANCELLED:
        return True  # the run in which it was a step
    whole = CANARY not in json.dumps(outcome.result) and CANARY not in outcome.message
    return whole and outcome.took_s <= WITHIN_S and (not outcome.code or (outcome.code not in FAULTS and _is_sentence(outcome.message)))


def _is_sentence(message: str) -> bool:
    return message.isprintable() and 10 < len(message) < 700 and message.rstrip().endswith((".", "?"))


def test_the_doors_have_words_of_their_own(tmp_path: Path) -> None:
    assert len(set(MARKS.values())) == len(DOORS)


def test_every_argument_that_a_model_could_make_large_has_a_bound() -> None:
    assert {f"{name}.{argument}" for name, tool in TOOLS.items() for argument in unbounded(tool.parameters)} == set()


def test_there_are_more_than_a_hundred_and_twenty_hostile_cases() -> None:
    assert sum(len(entry.hostile) for entry in TABLE.values()) >= 120
    assert sum(1 for name, entry in TABLE.items() for _ in hostile(TOOLS[name], entry)) >= 1_200
