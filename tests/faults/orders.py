"""Functions whose effects can be counted from outside, even when the process that runs them dies."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.registry import function

CHARGES = "charges"
BOOKINGS = "bookings"
GO = "go"


@function()
async def charge(folder: str, ctx: Context) -> dict[str, Any]:
    """Charge the guest's card, and wait for the bank.

    Args:
        folder: Where it is written down.
    """
    _write(Path(folder), CHARGES, ctx.call_id)
    await _released(Path(folder))
    return {"charged": True}


@function(idempotent=True)
async def book(folder: str, ctx: Context) -> dict[str, Any]:
    """Book a table, once for each call however often it is run, and wait for the restaurant.

    Args:
        folder: Where it is written down.
    """
    with suppress(FileExistsError):
        os.close(os.open(Path(folder) / ctx.call_id, os.O_CREAT | os.O_EXCL))
        _write(Path(folder), BOOKINGS, ctx.call_id)
    await _released(Path(folder))
    return {"table": 7}


def release(folder: Path) -> None:
    """Let all present and future calls of the functions return."""
    (folder / GO).touch()


def effects(folder: Path, name: str) -> list[str]:
    """Return the calls that had an effect, one entry for each effect."""
    path = folder / name
    return path.read_text().split() if path.exists() else []


def _write(folder: Path, name: str, call_id: str) -> None:
    handle = os.open(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{call_id}\n".encode())
    os.close(handle)


async def _released(folder: Path) -> None:
    while not (folder / GO).exists():  # noqa: ASYNC110 - another process makes the file
        await asyncio.sleep(0.005)
