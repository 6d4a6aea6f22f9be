"""An installation whose officer is a model of OpenAI, with terminals beside it: the model makes the call that its user dictates."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.fakes.openai.realtime import KEY, OpenAIRealtimeServer, Session
from tests.fakes.openai.realtime_turns import Turn
from tests.faults import told
from tests.faults.installation import Installation, installed
from tests.faults.told import Wired
from tests.terminals.coding_agent import PROGRAM
from tests.terminals.serving import Viewer, process, viewing
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import Definition

GIVEN: Final = "given"
"""File in the folder of a terminal, in which its program writes down what it is given."""

OFFICER: Final = """
model: openai
prompt: You pass on orders.
tools: [send_to_terminal, send_key, run_in_terminal, forward_output]
"""
_ORDER: Final = "order "
"""Beginning of the words that stand for an order; its call follows as JSON."""

_HELD: Final = "held order "
"""The same, but the model stops in the middle of the call."""


class Stand(NamedTuple):
    """The installation, the terminals beside it, and the vendor of the model."""

    there: Installation
    servers: Wired
    fleet: Viewer
    vendor: OpenAIRealtimeServer


def order(function: str, *, held: bool = False, **arguments: Any) -> str:
    """Return the words for a call."""
    return (_HELD if held else _ORDER) + json.dumps({"function": function, "arguments": arguments})


def _answer(session: Session) -> Turn:
    last: dict[str, Any] = next(reversed(session.items.values()), {})
    said = " ".join(str(part.get("text", "")) for part in last.get("content") or ()) if last.get("role") == "user" else ""
    held = said.startswith(_HELD)
    if not held and not said.startswith(_ORDER):
        return Turn(says=told.OTHERWISE, audio_ms=100)
    call = json.loads(said.removeprefix(_HELD).removeprefix(_ORDER))
    return Turn(calls=((call["function"], json.dumps(call["arguments"])),), hold_call=held)


@asynccontextmanager
async def bridged(folder: Path, *wired: str) -> AsyncIterator[Stand]:
    """Run everything; these services are behind wires."""
    crew = folder / "crew"
    crew.mkdir()
    (crew / "officer.yaml").write_text(OFFICER)
    async with AsyncExitStack() as leaving:
        server = await leaving.enter_async_context(OpenAIRealtimeServer())
        server.reply = _answer
        servers = Wired(folder, wired, leaving)
        keys = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
        packs = "voxbridge.services.tools.packs.terminals.functions"
        there = await leaving.enter_async_context(
            installed(folder, servers, env=keys, agents_dir=crew, tool_packs=packs, tool_timeout_s=120)
        )
        leaving.enter_context(process(servers.nats.url_of("terminals"), servers.valkey.url))
        fleet = await leaving.enter_async_context(viewing(servers.nats.url))
        program = folder / "agent.py"
        program.write_text(PROGRAM)
        definition = Definition(id="mine", title="Mine", kind="agent", command=(sys.executable, str(program), GIVEN), approve="enter")
        await fleet.ask(asked.Define(by="tester", definition=definition))
        yield Stand(there, servers, fleet, server)


async def started(stand: Stand, folder: Path, *, shell: bool = False, name: str = "") -> str:
    """Start a program in a folder of its own, and return its terminal once it waits."""
    folder.mkdir(parents=True)  # noqa: ASYNC240 - a moment, in a test
    card = await stand.fleet.ask(asked.Start(by="tester", definition="bash" if shell else "mine", directory=str(folder), name=name))
    assert (await stand.fleet.ask(asked.Wait(by="tester", terminal=card.id, until="idle", timeout_s=60))).met
    return card.id


def given(folder: Path) -> list[str]:
    """Return what the program of a folder was given, in order."""
    file = folder / GIVEN
    return [one.strip() for one in file.read_text().split("---") if one.strip()] if file.exists() else []
