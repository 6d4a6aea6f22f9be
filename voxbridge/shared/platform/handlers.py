"""Configuration of a session by its page: instructions, a greeting, and tools with handlers; and its digest.

Owns the structs, their limits, and the canonical digest that an account's owner approves. Does not own whether a handler's source can run
(`voxbridge.services.tools.sandbox` parses it, asked by `check`) nor whether a digest is approved. Pure but for `check`, which asks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from voxbridge.shared.agents.functions import Function
from voxbridge.shared.platform.parameters import schema_of
from voxbridge.shared.platform.problems import invalid, too_large

TOOLS_LIMIT: Final = 32
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
DESCRIPTION_LIMIT: Final = 1_024
"""Characters of a tool's description."""

SOURCE_LIMIT: Final = 65_536
"""Bytes of a handler's source."""

SOURCES_LIMIT: Final = 262_144
"""Bytes of all sources of a configuration."""

INSTRUCTIONS_LIMIT: Final = 16_384
"""Characters of the instructions."""

GREETING_LIMIT: Final = 1_024
"""Characters of the greeting."""

TIMEOUT_S: Final = 30.0
"""Seconds that a call of a handler may take."""


class HandlerTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of a page. `parameters` is a JSON Schema of an object, `source` the text of its handler's function."""

    name: str
    description: str
    parameters: dict[str, Any]
    source: str

    def function(self) -> Function:
        """Return the tool as models are told of it."""
        return Function(name=self.name, description=self.description, parameters=self.parameters, kind="customer", timeout_s=TIMEOUT_S)


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration that a page sends and an owner approves. An empty `greeting` stands for none."""

    instructions: str = ""
    greeting: str = ""
    tools: tuple[HandlerTool, ...] = ()

    def functions(self) -> tuple[Function, ...]:
        """Return the tools as models are told of them."""
        return tuple(tool.function() for tool in self.tools)


class GivenTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a page writes it: `parameters` in any of the three forms, `handler` the text of a function."""

    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    handler: str = ""


def configuration_of(*, instructions: str = "", greeting: str = "", tools: Sequence[GivenTool] = ()) -> Configuration:
    """Return a page's configuration with one JSON Schema for each tool. Raises `Problem` naming tool, field and limit.

    The sources are not read: `voxbridge.shared.platform.checking` has the tools service do that.
    """
    if len(instructions) > INSTRUCTIONS_LIMIT:
        raise too_large("", "instructions", f"the instructions have {len(instructions)} characters", INSTRUCTIONS_LIMIT)
    if len(greeting) > GREETING_LIMIT:
        raise too_large("", "greeting", f"the greeting has {len(greeting)} characters", GREETING_LIMIT)
    if len(tools) > TOOLS_LIMIT:
        raise too_large("", "tools", f"there are {len(tools)} tools", TOOLS_LIMIT)
    made: dict[str, HandlerTool] = {}
    for number, given in enumerate(tools):
        tool = _tool(given, number)
        if tool.name in made:
            raise invalid(tool.name, f"tools[{number}].name", "another tool has the same name")
        made[tool.name] = tool
    size = sum(len(tool.source.encode()) for tool in made.values())
    if size > SOURCES_LIMIT:
        raise too_large("", "tools", f"the handlers have {size} bytes together", SOURCES_LIMIT)
    return Configuration(instructions=instructions, greeting=greeting, tools=tuple(made.values()))


def digest_of(configuration: Configuration) -> str:
    """Return the SHA-256, in hex, of a configuration's canonical JSON, whose keys are sorted. The order of the tools does not count."""
    ordered = msgspec.structs.replace(configuration, tools=tuple(sorted(configuration.tools, key=lambda tool: tool.name)))
    return sha256(b"voxbridge configuration 1\n" + msgspec.json.encode(ordered, order="deterministic")).hexdigest()


def source_digest(source: str) -> str:
    """Return the SHA-256, in hex, of a handler's source."""
    return sha256(source.encode()).hexdigest()


def changes(before: Configuration, after: Configuration) -> Mapping[str, str]:
    """Return what differs between two configurations: `added`, `removed` or `changed` by path (`instructions`, `tools.NAME.source`)."""
    found = {part: "changed" for part in ("instructions", "greeting") if getattr(before, part) != getattr(after, part)}
    old, new = ({tool.name: tool for tool in one.tools} for one in (before, after))
    found |= {f"tools.{name}": "removed" for name in old.keys() - new.keys()}
    found |= {f"tools.{name}": "added" for name in new.keys() - old.keys()}
    for name in old.keys() & new.keys():
        parts = ("description", "parameters", "source")
        found |= {f"tools.{name}.{part}": "changed" for part in parts if getattr(old[name], part) != getattr(new[name], part)}
    return dict(sorted(found.items()))


def _tool(given: GivenTool, number: int) -> HandlerTool:
    where = f"tools[{number}]"
    if not NAME.fullmatch(given.name):
        raise invalid(given.name[:64], f"{where}.name", "a name has 1 to 64 letters, digits and `_`, and begins with no digit")
    if len(given.description) > DESCRIPTION_LIMIT:
        why = f"its description has {len(given.description)} characters"
        raise too_large(given.name, f"tools.{given.name}.description", why, DESCRIPTION_LIMIT)
    source = given.handler.strip()
    if not source:
        raise invalid(given.name, f"tools.{given.name}.handler", "it has no handler; give it a function")
    size = len(source.encode())
    if size > SOURCE_LIMIT:
        raise too_large(given.name, f"tools.{given.name}.handler", f"its handler has {size} bytes", SOURCE_LIMIT)
    description = given.description or f"{given.name.replace('_', ' ').strip().capitalize()}."
    return HandlerTool(name=given.name, description=description, parameters=schema_of(given.name, given.parameters), source=source)
