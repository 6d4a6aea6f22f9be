"""Handlers that went through a page's bundler: each runs as it was written, or is refused with its name, the identifier, and the remedy.

The bundlers are real, at the versions of `bundlers/package-lock.json`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.npm import environment, installed
from tests.tools.sandbox.conftest import Room
from voxbridge.shared.platform.handlers import GivenTool, configuration_of
from voxbridge.shared.platform.problems import Problem

PINNED: Final = Path(__file__).with_name("bundlers")
RUNS: Final = frozenset({"arrow", "method", "plain", "counted", "failing"})
"""Handlers that need nothing from outside themselves."""

ARGUMENTS: Final[dict[str, Any]] = {
    "arrow": {"city": "Oslo"},
    "method": {"items": [{"name": "b", "price": 2}, {"name": "a", "price": 3, "count": 2}]},
    "plain": {"text": "one two  three", "n": 1},
    "counted": {"upTo": 4},
    "failing": {"id": "7"},
    "closed": {"n": 1},
    "imported": {"n": 2},
}
VALUES: Final[dict[str, Any]] = {
    "arrow": {"city": "OSLO", "days": 3, "fetches": "function"},
    "method": {"total": 8, "names": ["a", "b"]},
    "plain": {"words": 3, "rest": {"n": 1, "seen": True}},
    "counted": 10,
    "closed": 101,
    "imported": 4,
}
FAILS: Final = "No order 7: SyntaxError"
MODERN: Final = ("esbuild", "esbuild, minified", "Vite", "Vite, not minified", "SWC, minified", "Babel, current browsers")
"""Bundlers whose target is not older than ES2022: they rewrite no syntax, so that every handler of `RUNS` runs."""


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The texts of the handlers, by bundler and handler."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "node_modules").symlink_to(installed(PINNED) / "node_modules")
    for name in ("build.mjs", "page.js", "shared.js"):
        shutil.copy(PINNED / name, folder)
    done = subprocess.run(["node", folder / "build.mjs"], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


async def came_of(room: Room, name: str, text: str) -> Any:
    """Return what a handler returns, the message with which it fails, or the problem for which it is refused."""
    (tool,) = configuration_of(tools=[GivenTool(name=name, parameters={}, handler=text)]).tools
    try:
        await room.sandboxes.check((tool,))
    except Problem as problem:
        return problem
    outcome = await room.call(tool.source, ARGUMENTS[name])
    return json.loads(outcome.value) if outcome.error is None else outcome.error.message


@pytest.mark.timeout(120)
async def test_a_bundled_handler_does_what_was_written_or_is_refused(bundled: dict[str, dict[str, str]], room: Room) -> None:
    refused: dict[str, set[str]] = {}
    for bundler, handlers in bundled.items():
        for name, text in handlers.items():
            found = await came_of(room, name, text)
            if isinstance(found, Problem):
                refused.setdefault(bundler, set()).add(name)
                assert (found.tool, found.field) == (name, f"tools.{name}.handler")
                assert found.identifier
                assert found.identifier in text
                assert f"`{found.identifier}`" in str(found)
                assert "ES2022 or later" in str(found)
            else:
                assert FAILS in found if name == "failing" else found == VALUES[name], (bundler, name)
    assert not any(refused.get(bundler, set()) & RUNS for bundler in MODERN)
    assert refused["esbuild"] == {"closed", "imported"}
    assert refused["Babel, ES5"] == refused["SWC, ES5"] == refused["Vite, ES2015"] == RUNS | {"closed", "imported"}
