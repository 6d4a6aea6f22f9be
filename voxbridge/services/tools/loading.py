"""The packs that an executor can use. One that cannot be imported, hangs there, or takes a taken name is left out, and the others serve.

Owns the trial of foreign packs in a process of their own, and the reasons. Does not own what a pack declares (`registry`).
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from voxbridge.services.tools.registry import BUILT_IN, Tool, of_pack, unusable
from voxbridge.shared.condition import Condition
from voxbridge.shared.embedded.child import end_group
from voxbridge.shared.errors import VoxbridgeError

IMPORT_S: Final = 15.0
"""Seconds that the import of a foreign pack may take."""

_WHY_LIMIT: Final = 600
_TRIAL: Final = """
import importlib, os, sys
try:
    importlib.import_module(sys.argv[1])
    said = "+"
except BaseException as error:
    said = f"{type(error).__name__}: {error}"
os.write(int(sys.argv[2]), said.encode("utf-8", "replace")[:2000] or b"?")
os._exit(0)
"""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The packs in use, their functions by name, and why others were left out."""

    packs: tuple[str, ...] = ()
    tools: Mapping[str, Tool] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def condition(self) -> Condition:
        """Say which packs were left out, for health answers."""
        return Condition("degraded", " ".join(self.left_out.values())) if self.left_out else Condition()


def usable(packs: Iterable[str], *, timeout_s: float) -> Loaded:
    """Load the packs that can be used. Blocks: foreign packs are tried in processes of their own first, all at once.

    Of two packs with a function of one name the first keeps it, and those of Voxbridge come before all others: a pack whose call is
    another's than its name says is worse than none.
    """
    wanted = list(dict.fromkeys(packs))
    left_out = _tried([pack for pack in wanted if pack not in BUILT_IN and pack not in sys.modules])
    found: dict[str, list[Tool]] = {}
    owners: dict[str, str] = {}
    for pack in sorted(wanted, key=lambda pack: pack not in BUILT_IN):
        if pack in left_out:
            continue
        try:
            tools = of_pack(pack, timeout_s=timeout_s)
            for tool in tools:
                if tool.name in owners:
                    raise unusable(pack, f"its function {tool.name} has the name of one of {owners[tool.name]}")
        except VoxbridgeError as error:
            left_out[pack] = error.message
            continue
        found[pack] = tools
        owners |= {tool.name: pack for tool in tools}
    for why in left_out.values():
        _log.error("%s It is left out.", why)
    kept = tuple(pack for pack in wanted if pack in found)
    return Loaded(kept, {tool.name: tool for pack in kept for tool in found[pack]}, left_out)


def prepare(packs: Iterable[str]) -> None:
    """Call `prepare()` of each pack that has one: it does what would make the first call slow. Blocks; run it in a thread."""
    for pack in packs:
        ready = getattr(importlib.import_module(pack), "prepare", None)
        if ready is None:
            continue
        try:
            ready()
        except (Exception, SystemExit):  # noqa: BLE001 - then the first call is slow
            _log.exception("the pack %s could not prepare.", pack)


def _tried(packs: list[str]) -> dict[str, str]:
    """Import each pack in a process of its own; return why some cannot be. Neither a crash nor a loop there stays in this process."""
    begun = [(pack, *_begin(pack)) for pack in packs]
    until = time.monotonic() + IMPORT_S
    return {pack: unusable(pack, why).message for pack, process, said in begun if (why := _ended(process, said, until))}


def _begin(pack: str) -> tuple[subprocess.Popen[bytes], int]:
    said, writing = os.pipe()
    paths = os.pathsep.join(dict.fromkeys(path or os.getcwd() for path in sys.path))  # noqa: PTH109 - the working folder as it is
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _TRIAL, pack, str(writing)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(writing,),
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,
        )
    except OSError:
        os.close(said)
        raise
    finally:
        os.close(writing)
    return process, said


def _ended(process: subprocess.Popen[bytes], said: int, until: float) -> str:
    """Return why the import failed, or an empty text; the process is gone then."""
    try:
        readable, _, _ = select.select([said], [], [], max(until - time.monotonic(), 0))
        told = os.read(said, 4_096).decode("utf-8", "replace") if readable else None
    finally:
        os.close(said)
        if process.poll() is None and (not readable or not told):
            with contextlib.suppress(subprocess.TimeoutExpired):  # it closed the pipe as it dies
                process.wait(timeout=1.0 if readable else 0)
        end_group(process.pid, signal.SIGKILL)
        status = process.wait()
    if told == "+":
        return ""
    if told is None:
        return f"it cannot be imported: its import did not end within {IMPORT_S:g} s"
    return f"it cannot be imported: {told or f'its import ended the process (status {status})'}"[:_WHY_LIMIT]
