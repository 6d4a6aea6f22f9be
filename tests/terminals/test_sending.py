"""Texts that are sent to an agent while it starts up."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests.terminals.fleets import BY, Viewed, fleet, held_folder
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import Definition

STARTING: Final = """
import sys, time, termios, tty
print("loading", flush=True)
time.sleep(2.5)
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
"""An agent that loads for longer than silence takes to count, and then throws away what was typed before, as the Gemini CLI does."""


@pytest.fixture
async def here() -> AsyncIterator[Viewed]:
    with held_folder() as folder:
        (folder / "starting.py").write_text(STARTING)
        async with fleet(folder) as viewed:
            row = Definition(id="starting", title="Starting", kind="agent", command=(sys.executable, str(folder / "starting.py")))
            await viewed.ask(asked.Define(by=BY, definition=row))
            yield viewed


async def test_a_text_waits_until_an_agent_reads(here: Viewed) -> None:
    terminal = await here.start("starting")
    await here.wait(terminal, "text", "loading")
    sent = await here.send(terminal, "hello there")
    assert sent.outcome == "submitted"
    await here.wait(terminal, "text", "got hello there")


async def test_an_agent_that_loads_is_not_idle(here: Viewed) -> None:
    terminal = await here.start("starting")
    await here.wait(terminal, "idle")
    assert "ready" in await here.text(terminal)
