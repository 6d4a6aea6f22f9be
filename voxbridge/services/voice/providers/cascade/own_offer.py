"""Functions as the installation's own models service takes them: with what people say to want each, by which it chooses among many.

A session keeps functions without those utterances, since they would be in every session's memory and log; they are looked up in the
catalogue when a request is made. Functions that a session is not told of, and reaches through `run_tool`, go along unlisted: the service
may choose one as well, and the call becomes one of `run_tool`. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from voxbridge.services.voice.core.inputs import ToolRequested
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import HANDOFF

RUN_TOOL: Final = "run_tool"
OFFER_LIMIT: Final = 128
"""Functions that the service takes; unlisted ones are left out beyond it."""

UTTERANCES_LIMIT: Final = 16
UTTERANCE_CHARACTERS: Final = 200


def offer(functions: Sequence[Function], catalogue: Sequence[Function]) -> list[dict[str, Any]]:
    """Return the tools of a request: the session's functions, and those that it reaches through `run_tool`."""
    known = {function.name: function for function in catalogue}
    tools = [_tool(function, known.get(function.name)) for function in functions]
    names = {function.name for function in functions}
    if RUN_TOOL not in names:
        return tools
    others = [function for function in catalogue if not function.listed and function.kind != "browser" and function.name not in names]
    return [*tools, *(_tool(function, function, listed=False) for function in others)][: max(OFFER_LIMIT, len(tools))]


def as_offered(requested: ToolRequested, functions: Sequence[Function]) -> ToolRequested:
    """Return a call as one of the session's functions: `run_tool` stands for those that it is not told of."""
    if any(function.name == requested.name for function in functions) or all(function.name != RUN_TOOL for function in functions):
        return requested
    arguments = {"tool_id": requested.name, "params": requested.arguments}
    return ToolRequested(effect=requested.effect, name=RUN_TOOL, arguments=arguments)


def _tool(function: Function, known: Function | None, *, listed: bool = True) -> dict[str, Any]:
    told: dict[str, Any] = {"name": function.name, "description": function.description, "parameters": function.parameters}
    utterances = _handoff(function) if function.name == HANDOFF else known.utterances if known else ()
    if utterances:
        told["utterances"] = [text[:UTTERANCE_CHARACTERS] for text in utterances[:UTTERANCES_LIMIT]]
    if not listed:
        told["listed"] = False
    return {"type": "function", "function": told}


def _handoff(function: Function) -> tuple[str, ...]:
    """Return what people say to be handed over, with the names of the agents that they may be handed to."""
    names: list[str] = function.parameters["properties"]["target"]["enum"]
    about = [line.removeprefix("- ") for line in function.description.splitlines()[1:]]
    ways = ("let me talk to {}", "I would like to speak with {}", "transfer me to {}", "can {} help me with this")
    said = ["hand me over to somebody else", "I want to talk to another agent", *about]
    return tuple([*said, *(way.format(name) for way in ways for name in names)][:UTTERANCES_LIMIT])
