"""Functions of every kind whose effects are counted in a file outside, and which stop right before or after their effect where a test asked
for it by a file of that name."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.inputs import Alarm
from voxbridge.services.tools.registry import function

EFFECTS: Final = "effects"
GO: Final = "go"
BEFORE: Final = "before"
AFTER: Final = "after"
LOOK_S: Final = 0.01


@function(effect="read")
async def look(folder: str, ctx: Context) -> dict[str, Any]:
    """Read something; each time it is done leaves a line.

    Args:
        folder: Where.
    """
    await _done(Path(folder), ctx.call_id)
    return {"spoken": "Seen."}


@function()
async def charge(folder: str, ctx: Context) -> dict[str, Any]:
    """Change something that must not be changed twice.

    Args:
        folder: Where.
    """
    await _done(Path(folder), ctx.call_id)
    return {"spoken": "Charged."}


@function(idempotent=True)
async def book(folder: str, ctx: Context) -> dict[str, Any]:
    """Change something once for each call, however often it is begun.

    Args:
        folder: Where.
    """
    await _stop(Path(folder), BEFORE)
    with suppress(FileExistsError):
        os.close(os.open(Path(folder) / f"booked-{ctx.call_id}", os.O_CREAT | os.O_EXCL))
        _note(Path(folder), ctx.call_id)
    await _stop(Path(folder), AFTER)
    return {"spoken": "Booked."}


@function(effect="destructive")
async def wipe(folder: str, ctx: Context) -> dict[str, Any]:
    """Destroy something, if a person approves.

    Args:
        folder: Where.
    """
    await _done(Path(folder), ctx.call_id)
    return {"spoken": "Wiped."}


@function(kind="async")
async def report(folder: str, ctx: Context) -> dict[str, Any]:
    """Change something in the background, and say how far it is.

    Args:
        folder: Where.
    """
    await ctx.progress(0.3, "begun")
    await ctx.progress(0.6, "half way")
    await _done(Path(folder), ctx.call_id)
    await ctx.progress(0.9, "nearly there")
    return {"spoken": "Reported.", "pages": 3}


@function(kind="async", idempotent=True)
async def ring(folder: str) -> Alarm:
    """Ring in a moment.

    Args:
        folder: Where.
    """
    return Alarm(after_ms=300, announce="It rings.", spoken="Set.", label=Path(folder).name)


@function(isolated=True)
def press(folder: str) -> dict[str, Any]:
    """Change something, in a process of its own.

    Args:
        folder: Where.
    """
    for when in (BEFORE, AFTER):
        if (Path(folder) / when).exists():
            (Path(folder) / f"{when}.reached").touch()
            while not (Path(folder) / GO).exists():
                time.sleep(LOOK_S)
        if when == BEFORE:
            _note(Path(folder), "press")
    return {"spoken": "Pressed."}


def effects(folder: Path) -> list[str]:
    """Return the calls that had an effect in a folder, one entry for each effect."""
    path = folder / EFFECTS
    return path.read_text().split() if path.exists() else []


async def _done(folder: Path, call_id: str) -> None:
    await _stop(folder, BEFORE)
    _note(folder, call_id)
    await _stop(folder, AFTER)


async def _stop(folder: Path, when: str) -> None:
    if (folder / when).exists():
        (folder / f"{when}.reached").touch()
        while not (folder / GO).exists():  # noqa: ASYNC110 - another process makes the file
            await asyncio.sleep(LOOK_S)


def _note(folder: Path, call_id: str) -> None:
    handle = os.open(folder / EFFECTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{call_id}\n".encode())
    os.close(handle)
