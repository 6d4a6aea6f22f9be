"""Gate: a `core/` depends on its inputs alone. It and all modules of ours that it imports use no clock, no randomness and no I/O."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deploy.gates import ROOT

FORBIDDEN: Final = frozenset(
    {
        "aiohttp", "asyncio", "concurrent", "ctypes", "fcntl", "glob", "http", "httpx", "io", "logging", "multiprocessing", "nats",
        "numpy.random", "onnxruntime", "openai", "os", "pathlib", "queue", "random", "redis", "requests", "secrets", "select", "selectors",
        "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib.request", "uuid",
        "uvloop", "websockets",
        "voxbridge.shared.clock", "voxbridge.shared.embedded.servers", "voxbridge.shared.ids.new_process_id",
        "voxbridge.shared.ids.new_session_id", "voxbridge.shared.log.reader", "voxbridge.shared.bus.connection",
        "voxbridge.shared.store.connection", "voxbridge.shared.service.process",
    }
)  # fmt: skip
_OURS: Final = ("voxbridge.",)
_CALLS: Final = frozenset({"open", "input", "print", "exec", "eval", "__import__", "breakpoint"})
_DATETIME_NOW: Final = frozenset({"now", "utcnow", "today"})


def cores() -> list[Path]:
    """Return every module of the services' cores, and of the runs of macros, which the core of tools is composed of."""
    services = ROOT / "voxbridge" / "services"
    return sorted((*services.glob("*/core/**/*.py"), *services.glob("tools/runs/*.py")))


def problems() -> list[str]:
    """Return each import or call that a core may not have, in the core or in a module that it reaches."""
    return [problem for core in cores() for problem in problems_of(core)]


def problems_of(core: Path) -> list[str]:
    """Return the problems of one core and of all modules of ours that it imports."""
    found: list[str] = []
    seen: set[Path] = set()
    waiting = [core]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        for line, name in _imports(tree):
            if _is_forbidden(name):
                found.append(f"{_name(path)}:{line} imports {name}, and {_name(core)} must be pure.")
            else:
                waiting += _ours(name)
        found += [f"{_name(path)}:{line} calls {name}, and {_name(core)} must be pure." for line, name in _calls(tree)]
    return found


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)


def _calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in _CALLS:
            yield node.lineno, node.func.id
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _DATETIME_NOW and not node.args:
            yield node.lineno, node.func.attr


def _is_forbidden(name: str) -> bool:
    parts = name.split(".")
    return any(".".join(parts[: count + 1]) in FORBIDDEN for count in range(len(parts)))


def _ours(name: str) -> list[Path]:
    if not name.startswith(_OURS):
        return []
    whole, parent = ROOT.joinpath(*name.split(".")), ROOT.joinpath(*name.split(".")[:-1])
    found = [whole.with_suffix(".py"), whole / "__init__.py", parent.with_suffix(".py"), parent / "__init__.py"]
    return [path for path in found if path.is_file()]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
