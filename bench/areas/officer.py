"""The officer with the installation's own model: a hundred orders over five terminals, and what it called for each.

    python -m bench --only officer

The orders (`bench/officer`) are typed into a session each, over the whole product: real shells, two stand-ins of coding agents,
and the agent `officer` of this installation. What was called stands in the log. Nothing is approved, so that no command runs. The detail
has every miss.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import msgspec
import nats
import yaml
from websockets.asyncio.client import ClientConnection, connect

from bench import figures
from bench.areas.audio import Found, Say
from bench.clients.terminal import Terminals
from bench.report import Figure
from bench.stack import FULL, ROOT, Stack, StackError, stack
from voxbridge.services.terminals.folder import place
from voxbridge.services.terminals.holder import holder
from voxbridge.shared.events.gateway import TextReceived
from voxbridge.shared.events.voice import ToolCalled
from voxbridge.shared.log.reader import Log

SETS: Final = {name: ROOT / "bench" / "officer" / f"{name}.yaml" for name in ("orders", "unseen")}
SHELLS: Final = ("Build", "Notes", "Server")
AGENTS: Final = ("Claude", "Codex")
ANSWER_S: Final = 120.0
QUICK_EVERY: Final = 10
READS: Final = frozenset({"list_terminals", "read_terminal", "wait_for_terminal", "watch_terminals"})
TYPES: Final = frozenset({"send_to_terminal", "run_in_terminal", "send_key", "forward_output"})
WARM: Final = "the officer's prompt, which the model read before the first order"
USUAL: Final[Mapping[str, Any]] = {"until": "done", "when": "now", "program": "bash", "times": 1}
"""Values of arguments that a call leaves out."""

STAND_IN: Final = """
import sys
print("> ", end="", flush=True)
for line in sys.stdin:
    print(f"I did: {line.strip()}", "> ", sep=chr(10), end="", flush=True)
"""
"""A coding agent that does what it is told, at once."""

Calls = list[tuple[str, dict[str, Any]]]


class Asked(msgspec.Struct, frozen=True):
    """An order, what should come of it, what was called, and the ms from the order to the first call (0 for none)."""

    say: str
    wanted: Calls
    called: Calls
    first: bool
    whole: bool
    first_ms: float = 0.0

    @property
    def typed_wrongly(self) -> bool:
        """Tell whether something was to be typed into a terminal into which the order has nothing typed."""
        meant = [set(_words(str(given.get("terminal", "")))) for name, given in self.wanted if name in TYPES]
        into = [set(_words(str(given.get("terminal") or ""))) for name, given in self.called if name in TYPES]
        return not all(any(one <= other and bool(one) == bool(other) for one in meant) for other in into)


async def officer(quick: bool, say: Say) -> Found:
    """Type every order of both sets once."""
    every = {name: orders(name)[:: QUICK_EVERY if quick else 1] for name in SETS}
    async with bridge() as product, manned(product, say) as fleet:
        asked = await _asked(product, fleet, [one for of in every.values() for one in of], say)
    rows: list[Figure] = []
    detail: dict[str, Any] = {}
    for name, of in every.items():
        part, asked = asked[: len(of)], asked[len(of) :]
        rows += _rows(name, part)
        detail[name] = [msgspec.to_builtins(one) for one in part if not one.whole]
    return rows, {"misses": detail}, []


def orders(name: str) -> list[tuple[str, Calls]]:
    """Return the orders of a set with what should be called."""
    found = yaml.safe_load(SETS[name].read_text(encoding="utf-8"))
    return [(one["say"], [(name, arguments) for call in one["calls"] for name, arguments in call.items()]) for one in found]


@asynccontextmanager
async def bridge() -> AsyncIterator[Stack]:
    """Run the whole product, with terminals that end with it."""
    with tempfile.TemporaryDirectory(prefix="vxt-") as home:
        folder = str(Path(home) / "terminals")
        try:
            async with stack((*FULL, "terminals"), greeting=False, extra={"VOXBRIDGE_TERMINALS_DIR": folder}) as product:
                yield product
        finally:
            if holder.stop(place(Path(folder))):
                raise StackError("The holder of the terminals did not end.")


class Fleet(NamedTuple):
    """The terminals of a bridge, the log of what is called over them, and the ids of those that stay."""

    terminals: Terminals
    log: Log
    own: frozenset[str]


@asynccontextmanager
async def manned(product: Stack, say: Say) -> AsyncIterator[Fleet]:
    """Start the shells and the stand-ins of agents, and wait until the model has read the officer's prompt."""
    terminals = Terminals(product.config.port)
    nc = await nats.connect(product.config.nats_url)
    try:
        await _define(product)
        shells = [await terminals.start(name=name) for name in SHELLS]
        agents = [await terminals.start("stand-in", name=name) for name in AGENTS]
        fleet = Fleet(terminals, Log(nc), frozenset((*shells, *agents)))
        say("officer: waiting until the model has read the officer's prompt")
        await ordered(product, fleet, "which terminals are there")
        yield fleet
    finally:
        await nc.close()
        await terminals.close()


async def _asked(product: Stack, fleet: Fleet, every: Sequence[tuple[str, Calls]], say: Say) -> list[Asked]:
    found = []
    for number, (words, wanted) in enumerate(every):
        say(f"officer: order {number + 1} of {len(every)}")
        called, first_ms = await ordered(product, fleet, words)
        harmless = not wanted and all(name in READS for name, _ in called)
        first = harmless or (bool(wanted and called) and is_right(wanted[0], called[0]))
        whole = harmless or (len(called) == len(wanted) and all(is_right(*pair) for pair in zip(wanted, called, strict=True)))
        found.append(Asked(words, wanted, called, first, whole, first_ms))
    return found


async def _define(product: Stack) -> None:
    body = {"title": "Stand-in", "kind": "agent", "command": ["python3", "-u", "-c", STAND_IN]}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{product.config.port}", trust_env=False) as client:
        (await client.put("/api/terminals/definitions/stand-in", json=body)).raise_for_status()


async def ordered(product: Stack, fleet: Fleet, words: str) -> tuple[Calls, float]:
    """Type an order into a session of its own; return what was called for it, and the ms until the first call. Terminals that it started
    are closed again."""
    async with connect(product.url, compression=None, max_size=None) as socket:
        await socket.send(msgspec.json.encode({"type": "start", "mode": "local", "agent": "officer", "output": "text"}).decode())
        sid = str((await _until(socket, "setup_complete"))["sessionId"])
        await socket.send(msgspec.json.encode({"type": "text", "text": words}).decode())
        await _until(socket, "turn_complete")
        await socket.send('{"type":"end"}')
    events = [one async for one in fleet.log.read_all(sid)]
    at = next(one.ts for one in events if isinstance(one.event, TextReceived))
    called = [one for one in events if isinstance(one.event, ToolCalled) and one.ts >= at and one.event.turn > 0]
    calls = [(one.event.name, one.event.arguments) for one in called if isinstance(one.event, ToolCalled)]
    for card in (await fleet.terminals.ask("GET"))["terminals"]:
        if card["id"] not in fleet.own:
            await fleet.terminals.ask("DELETE", f"/{card['id']}")
    return calls, round((called[0].ts - at) / 1_000, 1) if called else 0.0


async def _until(socket: ClientConnection, kind: str) -> dict[str, Any]:
    end = time.monotonic() + ANSWER_S
    while time.monotonic() < end:
        message = await asyncio.wait_for(socket.recv(), ANSWER_S)
        if isinstance(message, str):
            said: dict[str, Any] = msgspec.json.decode(message)
            if said["type"] == kind:
                return said
            if said["type"] == "error":
                raise StackError(f"The officer's session was refused: {said['message']}")
    raise StackError(f"There was no {kind} within {ANSWER_S:g} s.")


def is_right(wanted: tuple[str, Mapping[str, Any]], called: tuple[str, Mapping[str, Any]]) -> bool:
    """Tell whether a call is the one that was wanted: the function, and every argument that matters."""
    name, arguments = wanted
    return called[0] == name and all(_alike(part, value, called[1].get(part, USUAL.get(part))) for part, value in arguments.items())


def _alike(part: str, wanted: Any, given: Any) -> bool:
    if part == "command" or not isinstance(wanted, str):
        return bool(given == wanted)
    said, meant = _words(str(given or "")), _words(wanted)
    # A name may be said with more words: "the build terminal".
    return set(meant) <= set(said) if part in ("terminal", "source") else said == meant


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"[\w.-]+", text.casefold()) if word not in ("the", "a", "an", "to", "terminal")]


def _rows(name: str, asked: Sequence[Asked]) -> list[Figure]:
    key = "officer" if name == "orders" else f"officer.{name}"
    count = len(asked)
    took = figures.series([one.first_ms for one in asked if one.called])
    what = f"{count} {'other ' if name == 'unseen' else ''}orders to the officer, local model: first call right"
    note = f"misses: {count - sum(one.whole for one in asked)}, each in the run's detail"

    def share(of: Sequence[bool]) -> float:
        return round(100 * sum(of) / count, 1)

    return [
        Figure(
            area="officer", what=what, key=f"{key}.first", unit="%", value=share([one.first for one in asked]), target=90, aim="at least"
        ),
        Figure(
            area="officer",
            what="the same, whole sequence right",
            key=f"{key}.whole",
            unit="%",
            value=share([one.whole for one in asked]),
            target=80,
            aim="at least",
            note=note,
        ),
        Figure(
            area="officer",
            what="the same, something typed where nothing was meant to be",
            key=f"{key}.typed",
            unit="",
            value=sum(one.typed_wrongly for one in asked),
            target=0,
        ),
        Figure(
            area="officer", what="the same, order → first call, p50", key=f"{key}.p50", unit="ms", value=took.p50, target=1_500, needs=WARM
        ),
    ]
