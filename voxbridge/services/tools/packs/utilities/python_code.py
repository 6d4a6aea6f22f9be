"""Formatting and checking of Python by ruff, run as a process that reads no configuration of the host."""

from __future__ import annotations

import subprocess
from typing import Any, Final

import msgspec

from voxbridge.services.tools.packs.utilities.bounds import LISTED_LIMIT, count, given, refused
from voxbridge.shared.errors import Code, VoxbridgeError

PROCESS_S: Final = 8.0
"""Seconds that ruff may take; the function's own time-out is longer."""
RULES: Final = "F,E4,E7,E9,W6,B,PLE"
"""Rules that find mistakes, and none of style."""


def formatted(code: str) -> str:
    """Return Python laid out by ruff. Raises `INVALID_ARGUMENT` for what is not Python."""
    done = _ruff("format", "--stdin-filename", "code.py", "-", code=code)
    if done.returncode:
        problem = " ".join(done.stderr.decode("utf-8", "replace").split()).removeprefix("error: ").removeprefix("Failed to parse ")
        raise refused(f"This is not valid Python: {problem[:200]}.", "code")
    return given(done.stdout.decode())


def checked(code: str) -> dict[str, Any]:
    """Return the mistakes that ruff finds, comments that silence it left out of account."""
    done = _ruff(
        "check", "--select", RULES, "--ignore-noqa", "--output-format", "json", "--stdin-filename", "code.py", "-", code=code
    )  # fmt: skip
    if done.returncode not in (0, 1):
        raise VoxbridgeError(Code.INTERNAL, "The checker of Python could not be run.")
    found = msgspec.json.decode(done.stdout, type=list[dict[str, Any]])
    problems = [
        {
            "line": one["location"]["row"],
            "column": one["location"]["column"],
            "rule": one.get("code") or "",
            "message": one["message"][:200],
        }
        for one in found[:LISTED_LIMIT]
    ]
    said = f" The first is in line {problems[0]['line']}: {problems[0]['message']}." if problems else ""
    spoken = f"I found {count(len(found), 'problem')}.{said}" if problems else "I found no problem."
    return {"problems": problems, "count": len(found), "spoken": spoken}


def _ruff(command: str, *arguments: str, code: str) -> subprocess.CompletedProcess[bytes]:
    """Run ruff on a text. It gets no environment and one thread, so it has neither settings of the user nor much memory."""
    from ruff import find_ruff_bin

    line = [find_ruff_bin(), command, "--isolated", "--no-cache", *arguments]
    try:
        done = subprocess.run(
            line, input=code.encode(), capture_output=True, timeout=PROCESS_S, cwd="/", env={"RAYON_NUM_THREADS": "1"}, check=False
        )
    except subprocess.TimeoutExpired as error:
        message = f"The code could not be looked through within {PROCESS_S:g} s."
        raise VoxbridgeError(Code.TIMED_OUT, message, limit=PROCESS_S) from error
    if done.returncode < 0:  # ended by a signal: its parser calls itself for each level, until the stack is full
        raise refused("The code nests too deeply to be looked through. Give a flatter part of it.", "code")
    return done
