"""The files of a new pack of functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PROJECT: Final = """[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "voxbridge-{dashed}"
version = "0.1.0"
description = "Functions for Voxbridge agents: {words}."
requires-python = ">=3.11"
dependencies = ["voxbridge[tools]"]

[project.entry-points."voxbridge.packs"]
{name} = "voxbridge_{name}.functions"

[tool.hatch.build.targets.wheel]
packages = ["voxbridge_{name}"]
"""
_FUNCTIONS: Final = '''"""What agents can do about {words}. Each function is declared here; the work is done in modules beside this one."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from voxbridge.services.tools.registry import function
from voxbridge.shared.errors import Code, VoxbridgeError


@function(effect="read", timeout_s=5)
def find_{name}(query: Annotated[str, Meta(min_length=1, max_length=200)]) -> dict[str, Any]:
    """Find something among the {words}.

    Args:
        query: What to look for.

    Examples:
        look up the {words}
        is there anything new about the {words}
        search the {words} for yesterday
    """
    found = [entry for entry in _KNOWN if query.casefold() in entry.casefold()]
    if not found:
        raise VoxbridgeError(Code.NOT_FOUND, f"I found nothing about {{query}}.", field="query")
    return {{"found": found[:5], "count": len(found), "spoken": f"I found {{found[0]}}."}}


_KNOWN = ["a first entry", "a second entry"]
'''
_TEST: Final = '''"""The functions, as an agent calls them."""

import pytest

from voxbridge.services.tools.registry import load
from voxbridge.shared.errors import VoxbridgeError

TOOLS = load(["voxbridge_{name}.functions"], timeout_s=30)


def test_what_is_there_is_found() -> None:
    tool = TOOLS["find_{name}"]
    assert tool.run(query="second")["found"] == ["a second entry"]
    assert tool.effect == "read"


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(VoxbridgeError, match="I found nothing about a third"):
        TOOLS["find_{name}"].run(query="a third")


@pytest.mark.parametrize("arguments", [{{}}, {{"query": ""}}, {{"query": 3}}, {{"query": "x" * 201}}, {{"query": "x", "more": 1}}])
def test_wrong_arguments_are_refused_by_name(arguments: dict[str, object]) -> None:
    with pytest.raises(VoxbridgeError) as refused:
        TOOLS["find_{name}"].check(arguments)
    assert refused.value.field in ("query", "more")
'''
_README: Final = """# {title} for Voxbridge

Functions that agents of a Voxbridge installation can call. Install it where the tool executor runs, and name it:

    pip install -e .
    VOXBRIDGE_TOOL_PACKS=built-in,{name} voxbridge up

`voxbridge functions` then lists `find_{name}`. Say how people ask for a function in `Examples` of its docstring: small models choose by
them.
"""


def files(name: str) -> Mapping[str, str]:
    """Return the files of a pack by their paths in its folder."""
    given = {"name": name, "dashed": name.replace("_", "-"), "words": name.replace("_", " "), "title": name.replace("_", " ").capitalize()}
    package = f"voxbridge_{name}"
    return {
        "pyproject.toml": _PROJECT.format(**given),
        "README.md": _README.format(**given),
        f"{package}/__init__.py": f'"""Functions about {given["words"]}."""\n',
        f"{package}/functions.py": _FUNCTIONS.format(**given),
        "tests/test_functions.py": _TEST.format(**given),
    }
