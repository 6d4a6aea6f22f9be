"""Functions for tests of the executor: they count their runs, wait to be released, and misbehave."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.inputs import Alarm
from voxbridge.services.tools.registry import Isolation, function
from voxbridge.shared.events.tools import NoteRemembered


def _ran(file: str) -> None:
    """Append a line to the file, to count runs over several processes."""
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{os.getpid()}\n".encode())
    os.close(handle)


async def _released(file: str) -> None:
    while not Path(f"{file}.go").exists():  # noqa: ASYNC110, ASYNC240 - another process makes the file
        await asyncio.sleep(0.005)


@function(effect="read", idempotent=False)
async def echo(text: str) -> dict[str, Any]:
    """Say it back.

    Args:
        text: What to say.
    """
    return {"text": text, "spoken": text}


@function(effect="read", idempotent=False)
async def effect(file: str, ctx: Context) -> dict[str, Any]:
    """Leave one line in a file for each run, then wait for the file's release.

    Args:
        file: Where.
    """
    _ran(file)
    await _released(file)
    return {"attempt": ctx.attempt}


@function(effect="destructive")
async def guarded(text: str) -> dict[str, Any]:
    """Say it back, when a person approved.

    Args:
        text: What to say.
    """
    return {"text": text}


@function()
async def change(file: str) -> dict[str, Any]:
    """Leave one line in a file for each run, then wait for the file's release; taken to change something, as it declares nothing else.

    Args:
        file: Where.
    """
    _ran(file)
    await _released(file)
    return {"spoken": "Changed."}


@function(effect="destructive")
async def destroy(file: str) -> dict[str, Any]:
    """Leave one line in a file for each run, then wait for the file's release; only if a person approves.

    Args:
        file: Where.
    """
    _ran(file)
    await _released(file)
    return {"spoken": "Gone."}


@function(idempotent=True)
async def harmless(file: str, ctx: Context) -> dict[str, Any]:
    """Leave lines like `effect`, and may be run again.

    Args:
        file: Where.
    """
    _ran(file)
    await _released(file)
    return {"attempt": ctx.attempt}


@function(effect="read", idempotent=False)
async def stubborn(file: str) -> dict[str, Any]:
    """Return normally although it is cancelled.

    Args:
        file: Where.
    """
    _ran(file)
    try:
        await _released(file)
    except asyncio.CancelledError:
        return {"stopped": False}
    return {"stopped": False}


@function(effect="read", idempotent=False, timeout_s=0.2)
async def slow() -> dict[str, Any]:
    """Wait for ever."""
    await asyncio.Event().wait()
    return {}


@function(effect="read", idempotent=False, timeout_s=0.2)
def blocking(seconds: float) -> dict[str, Any]:
    """Block the thread.

    Args:
        seconds: How long.
    """
    time.sleep(seconds)
    return {}


@function(effect="read")
async def large(size: int) -> dict[str, Any]:
    """Return a text of this length as a plain value.

    Args:
        size: Characters.
    """
    return {"text": "x" * size}


@function()
async def print_pages(size: int) -> dict[str, Any]:
    """Do something, and return a text of this length of it.

    Args:
        size: Characters.
    """
    return {"text": "x" * size}


@function()
async def faulty() -> dict[str, Any]:
    """Raise an unexpected error."""
    raise RuntimeError("secret detail")


@function(effect="read")
async def unsayable() -> Any:
    """Return a value that is not JSON."""
    endless: list[Any] = []
    endless.append(endless)
    return endless


@function(kind="async")
async def work(file: str, ctx: Context) -> dict[str, Any]:
    """Go on in the background until released.

    Args:
        file: Where.
    """
    _ran(file)
    await ctx.progress(0.5, "half way")
    await _released(file)
    return {"pages": 3, "announce": "Your report is ready."}


@function(kind="async")
async def chatter(size: int, ctx: Context) -> dict[str, Any]:
    """Tell something on the way.

    Args:
        size: Characters of it.
    """
    await ctx.progress(0.25, "a quarter")
    await ctx.tell("x" * size)
    return {}


@function(kind="async", idempotent=True)
async def remind(ms: int) -> Alarm:
    """Speak up after some milliseconds.

    Args:
        ms: How long.
    """
    return Alarm(after_ms=ms, announce="It is time.", spoken="Set.", label="test")


@function()
async def note(text: str, ctx: Context) -> dict[str, Any]:
    """State a fact.

    Args:
        text: The fact.
    """
    await ctx.emit(NoteRemembered(note_id=ctx.call_id, account=ctx.account, text=text))
    return {}


@function(isolated=True)
def double(number: int) -> dict[str, Any]:
    """Double a number, and say where.

    Args:
        number: The number.
    """
    return {"doubled": 2 * number, "pid": os.getpid()}


@function(effect="read", idempotent=False, isolated=True, timeout_s=30)
def spin(file: str) -> dict[str, Any]:
    """Use the processor for ever.

    Args:
        file: Where to say that it began.
    """
    _ran(file)
    while True:
        pass


@function(isolated=Isolation(cpu_s=1), timeout_s=30)
def burn() -> dict[str, Any]:
    """Use more processor time than allowed."""
    while True:
        pass


@function(effect="read", idempotent=False, isolated=True, timeout_s=1)
def overrun(file: str) -> dict[str, Any]:
    """Take longer than allowed.

    Args:
        file: Where to say that it began.
    """
    return spin(file)


@function(isolated=Isolation(memory_mb=32))
def hoard(mebibytes: int) -> dict[str, Any]:
    """Allocate memory.

    Args:
        mebibytes: How much.
    """
    return {"bytes": len(bytearray(mebibytes * 1024 * 1024))}


@function(isolated=True)
def leaves(file: str) -> dict[str, Any]:
    """Return, and leave a thread and a process behind.

    Args:
        file: Where to write the process's id.
    """
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(file).write_text(str(left.pid))
    return {"pid": os.getpid()}


@function(isolated=True)
def misbehaves(how: str) -> Any:
    """Do what no function should.

    Args:
        how: What.
    """
    match how:
        case "exit":
            sys.exit(3)
        case "vanish":
            os._exit(3)
        case "print":
            sys.stdout.write("x" * 1_000)
            return {"environment": sorted(name for name in os.environ if name.startswith("VOXBRIDGE_"))}
        case "large":
            return "x" * 1_000_000
        case _:
            raise RuntimeError("secret detail")
