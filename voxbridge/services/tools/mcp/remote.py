"""Tools of MCP servers as tools of the catalogue.

Owns what a person approves of such a tool, and the first check of arguments. The server checks them against its own schema. This process
does not use that schema, because an untrusted one may contain patterns that never finish matching.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Protocol

import msgspec

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.mcp import content, names
from voxbridge.services.tools.mcp.config import Server, policy
from voxbridge.services.tools.mcp.messages import Offer
from voxbridge.services.tools.registry import Tool
from voxbridge.shared.errors import Code, VoxbridgeError

ARGUMENTS_LIMIT: Final = 64 * 1024
"""Bytes of the arguments of a call as JSON."""

Report = Callable[[float, str], Awaitable[None]]


class Call(Protocol):
    """A way to call a tool of a server."""

    async def __call__(self, server: str, tool: str, arguments: dict[str, Any], report: Report | None) -> dict[str, Any]:
        """Return its result; tell its progress to `report`."""


class Given(msgspec.Struct, frozen=True):
    """Arguments as they are passed on."""

    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTool(Tool):
    """A tool of an MCP server."""

    run: Callable[..., Any] = field(compare=False)
    origin: str
    output: dict[str, Any] | None = None

    @property
    def definition(self) -> str:
        """Digest of what a person approves: where the server comes from, and all that it says of the tool."""
        said = [self.name, self.origin, self.description, self.parameters, self.output, self.effect]
        return sha256(msgspec.json.encode(said, order="deterministic")).hexdigest()[:32]

    def check(self, arguments: dict[str, Any]) -> msgspec.Struct:
        """Return the arguments. Raises `INVALID_ARGUMENT` for one that is missing or not known, and `TOO_LARGE`."""
        known: Mapping[str, Any] = self.parameters.get("properties", {})
        told = ", ".join(list(known)[:16]) or "none"
        for name in self.parameters.get("required", []):
            if name not in arguments:
                message = f"{self.name} needs the argument `{name}`. Its arguments are: {told}."
                raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=name)
        for name in arguments:
            if name not in known and self.parameters.get("additionalProperties") is False:
                message = f"{self.name} has no argument `{name[:64]}`. Its arguments are: {told}."
                raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=name[:64])
        size = len(msgspec.json.encode(arguments))
        if size > ARGUMENTS_LIMIT:
            message = f"The arguments of {self.name} have {size} bytes; {ARGUMENTS_LIMIT} is the most."
            raise VoxbridgeError(Code.TOO_LARGE, message, limit=ARGUMENTS_LIMIT)
        return Given(arguments)


def tools_of(name: str, server: Server, offers: Iterable[Offer], call: Call) -> tuple[list[RemoteTool], list[str]]:
    """Return the tools of a server, and why some of what it offers is none."""
    offers = list(offers)
    doubled = names.collisions(name, [offer.name for offer in offers])
    refused = [f"The tools {' and '.join(sorted(doubled))} are not offered: they would have the same name here."] if doubled else []
    return [_tool(name, server, offer, call) for offer in offers if offer.name not in doubled], refused


def _tool(name: str, server: Server, offer: Offer, call: Call) -> RemoteTool:
    rules = policy(server, offer.name, offer.hints)

    async def run(arguments: dict[str, Any], ctx: Context) -> dict[str, Any]:
        result = await call(name, offer.name, arguments, ctx.progress if rules.task else None)
        if offer.output is None or result.get("status") == "needs_input":
            return result
        if "structured" not in result:
            return result if "warning" in result else content.mismatch(result, name, "no structured answer came")
        try:
            verdict = await ctx.in_child(content.checked, schema=offer.output, value=result["structured"])
        except VoxbridgeError as error:
            return content.mismatch(result, name, f"the check of its answer did not end ({error.code})")
        return content.mismatch(result, name, verdict["why"]) if verdict["why"] else result

    return RemoteTool(
        name=names.tool_name(name, offer.name),
        description=offer.description,
        parameters=offer.parameters,
        mode="task" if rules.task else "call",
        timeout_s=rules.timeout_s,
        idempotent=rules.idempotent,
        arguments=Given,
        context_parameter="ctx",
        run=run,
        effect=rules.effect,
        approval=rules.approval,
        category=name,
        listed=rules.listed,
        origin=server.origin,
        output=offer.output,
        utterances=rules.examples,
    )
