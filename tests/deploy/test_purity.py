"""The decisions of every service are pure: their modules use no clock, no randomness, no event loop, no I/O (architecture, §3)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORES = sorted((ROOT / "voxbridge" / "services").glob("*/core/**/*.py"))
PURE_SHARED = {
    "voxbridge.shared.agents.model",
    "voxbridge.shared.agents.notes",
    "voxbridge.shared.agents.talking",
    "voxbridge.shared.agents.tasks",
    "voxbridge.shared.nesting",
    "voxbridge.shared.errors",
    "voxbridge.shared.audio.frames",
    "voxbridge.shared.awareness",
    "voxbridge.shared.awareness.prompt",
    "voxbridge.shared.awareness.text",
    "voxbridge.shared.awareness.view",
    "voxbridge.shared.agents.functions",
    "voxbridge.shared.bus.moments",
    "voxbridge.shared.bus.partials",
    "voxbridge.shared.language.conversation",
    "voxbridge.shared.language.yes_no",
    "voxbridge.shared.macros.answers",
    "voxbridge.shared.macros.known",
    "voxbridge.shared.macros.trace",
    "voxbridge.shared.macros.triggers",
    "voxbridge.shared.platform.handlers",
    "voxbridge.shared.platform.keys",
    "voxbridge.shared.platform.parameters",
    "voxbridge.shared.platform.problems",
    "voxbridge.shared.sections",
    "voxbridge.shared.spoken_modes",
    "voxbridge.shared.step.fold",
    "voxbridge.shared.step.journal",
    "voxbridge.shared.terminals.model",
    "voxbridge.shared.terminals.peers",
    "voxbridge.shared.terminals.questions",
    "voxbridge.shared.time_zones",
    "voxbridge.shared.tours.orders",
}
"""Modules of `shared` that a core may use, in addition to `voxbridge.shared.events`."""

OUTSIDE = {
    "__future__",
    "abc",
    "ast",
    "base64",
    "binascii",
    "bisect",
    "collections",
    "copy",
    "dataclasses",
    "decimal",
    "difflib",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "hmac",
    "itertools",
    "json",
    "keyword",
    "math",
    "msgspec",
    "numpy",
    "operator",
    "re",
    "sentencex",
    "simpleeval",
    "string",
    "struct",
    "textwrap",
    "types",
    "typing",
    "unicodedata",
    "zlib",
}
"""Libraries that only compute."""

OUTSIDE_WHOLE = {"urllib.parse"}
"""Modules that do, of libraries that do more."""

FORBIDDEN_CALLS = {"open", "input", "print", "exec", "eval", "breakpoint", "__import__"}


def service_of(core: Path) -> str:
    """Return the service whose core has this module."""
    parts = core.parts
    return parts[parts.index("core") - 1] if "core" in parts else core.parent.name


def imports(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield `(module, name)` of every import; the name is None for `import module`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from ((node.module or "", alias.name) for alias in node.names)


def source(module: str) -> Path | None:
    path = ROOT / Path(*module.split("."))
    return (
        path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py" if (path / "__init__.py").exists() else None
    )


def reached(core: Path) -> dict[Path, list[str]]:
    """Return every module of the project that a core reaches, with its violations."""
    found: dict[Path, list[str]] = {}
    waiting = [core]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        wrong = found[path] = []
        for module, name in imports(path):
            top = module.split(".")[0]
            if top != "voxbridge":
                if top not in OUTSIDE and module not in OUTSIDE_WHOLE:
                    wrong.append(f"imports {module}")
                continue
            inner = f"{module}.{name}" if name and source(f"{module}.{name}") else module
            if inner.startswith("voxbridge.shared.") or inner == "voxbridge.shared":
                if not inner.startswith("voxbridge.shared.events") and inner not in PURE_SHARED:
                    wrong.append(f"imports {inner}")
                    continue
            elif not inner.startswith(f"voxbridge.services.{service_of(core)}."):
                wrong.append(f"imports {inner}")
                continue
            if (next_one := source(inner)) is not None:
                waiting.append(next_one)
        wrong += [
            f"calls {node.func.id}"
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS
        ]
        wrong += [f"has an async {node.name}" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.AsyncFunctionDef)]
    return found


def test_the_services_have_cores() -> None:
    assert {service_of(core) for core in CORES} >= {"voice"}


@pytest.mark.parametrize("core", CORES, ids=service_of)
def test_a_core_reaches_no_clock_no_chance_no_loop_and_no_io(core: Path) -> None:
    wrong = [f"{path.relative_to(ROOT)} {what}" for path, all_wrong in reached(core).items() for what in all_wrong]
    assert wrong == []


@pytest.mark.parametrize("core", CORES, ids=service_of)
def test_a_core_is_loaded_where_clock_and_chance_raise(core: Path) -> None:
    """A core uses neither during its import: both raise once the permitted libraries are loaded."""
    module = ".".join(core.relative_to(ROOT).with_suffix("").parts)
    program = f"""
import asyncio, datetime, os, random, secrets, socket, time, uuid
import msgspec, voxbridge.shared.step.fold, voxbridge.shared.events, voxbridge.shared.audio.frames, voxbridge.shared.bus.moments
def refuse(*_, **__):
    raise AssertionError("a core asked for the time or for chance")
for owner, names in (
    (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")),
    (random, ("random", "randrange", "choice", "randint", "getrandbits", "uniform")),
    (secrets, ("token_hex", "token_bytes", "token_urlsafe", "randbelow", "choice")),
    (uuid, ("uuid1", "uuid4")),
    (os, ("urandom", "getenv")),
    (asyncio, ("sleep", "get_running_loop", "create_task")),
    (socket, ("create_connection",)),
):
    for name in names:
        setattr(owner, name, refuse)
import {module}
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import time", "imports time"),
        ("from asyncio import sleep", "imports asyncio"),
        ("from voxbridge.shared.clock import SystemClock", "imports voxbridge.shared.clock"),
        ("from voxbridge.shared.log import reader", "imports voxbridge.shared.log.reader"),
        ("from voxbridge.shared.step.runner import StepRunner", "imports voxbridge.shared.step.runner"),
        ("from voxbridge.services.voice.core import step", "imports voxbridge.services.voice.core.step"),
        ("open('x')", "calls open"),
        ("async def f(): ...", "has an async f"),
        ("def f():\n    import random", "imports random"),
    ],
)
def test_what_is_not_pure_is_found(tmp_path: Path, text: str, what: str) -> None:
    core = tmp_path / "toy" / "core.py"
    core.parent.mkdir()
    core.write_text(text + "\n")
    assert reached(core)[core] == [what]
