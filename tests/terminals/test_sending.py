"""Texts that are sent to an agent while it starts up."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.terminals.fleets import BY, Viewed, fleet, held_folder
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import Definition

LOADS_S: Final = 2.5
"""Seconds of loading: longer than the silence after which an agent counts as idle."""

STARTING: Final = """
import sys, termios, tty
print("loading", flush=True)
open(sys.argv[1]).read()
tty.setraw(0, termios.TCSAFLUSH)
sys.stdout.write("ready\\r\\n> ")
sys.stdout.flush()
said = ""
while True:
    key = sys.stdin.read(1)
    if key == "\\r":
        sys.stdout.write("\\r\\ngot " + said + "\\r\\n> ")
        said = ""
    else:
        said += key
        sys.stdout.write(key)
    sys.stdout.flush()
"""
"""An agent that loads until somebody writes into the FIFO that it is given, and then throws away what was typed before, as the Gemini CLI
does."""


@pytest.fixture
async def here() -> AsyncIterator[Viewed]:
    with held_folder() as folder:
        (folder / "starting.py").write_text(STARTING)
        os.mkfifo(folder / "loaded")
        async with fleet(folder) as viewed:
            command = (sys.executable, str(folder / "starting.py"), str(folder / "loaded"))
            await viewed.ask(asked.Define(by=BY, definition=Definition(id="starting", title="Starting", kind="agent", command=command)))
            yield viewed


async def _loaded() -> None:
    """Have the agent go on."""
    await asyncio.to_thread((Path.home() / "loaded").write_text, "go")


async def test_a_text_waits_until_an_agent_reads(here: Viewed) -> None:
    terminal = await here.start("starting")
    await here.wait(terminal, "text", "loading")
    sending = asyncio.create_task(here.send(terminal, "hello there"))
    await asyncio.wait({sending}, timeout=LOADS_S)
    assert not sending.done()
    await _loaded()
    assert (await sending).outcome == "submitted"
    await here.wait(terminal, "text", "got hello there")


async def test_an_agent_that_loads_is_not_idle(here: Viewed) -> None:
    terminal = await here.start("starting")
    await here.wait(terminal, "text", "loading")
    waited = await here.ask(asked.Wait(by=BY, terminal=terminal, until="idle", timeout_s=LOADS_S))
    assert not waited.met, waited.state
    await _loaded()
    await here.wait(terminal, "idle")
    assert "ready" in await here.text(terminal)
