"""Functions as the installation's own models service takes them: with what people say to want each, by which it chooses among many.

A session keeps functions without those utterances, and without the fewer arguments that this model may write, since they would be in every
session's memory and log; they are looked up in the catalogue when a request is made. Functions that a session is not told of, and reaches
through `run_tool`, go along unlisted: the service may choose one as well, and the call becomes one of `run_tool`. Things that there are in
this session alone, such as its page's paths, go along beside the schema: the service trains a router for each set of schemas. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from voxbridge.shared.agents.functions import GROWING, Function
from voxbridge.shared.agents.model import HANDOFF
from voxbridge.shared.language.conversation import ToolRequested

RUN_TOOL: Final = "run_tool"
OFFER_LIMIT: Final = 128
"""Functions that the service takes; unlisted ones are left out beyond it."""

UTTERANCES_LIMIT: Final = 24
UTTERANCE_CHARACTERS: Final = 200
NAMES_LIMIT: Final = 64
NAME_CHARACTERS: Final = 200
"""Things that an argument may name, and characters of one; the others are left out."""


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
    names = _names(function.parameters, known.parameters) if known is not None else None
    parameters = function.parameters
    if known is not None and names is not None:  # and not one of the page's that has the same name
        parameters = known.parameters if known.local is None else known.local
    told: dict[str, Any] = {"name": function.name, "description": function.description, "parameters": parameters}
    utterances = _handoff(function) if function.name == HANDOFF else (known or function).utterances  # a page's own bring theirs along
    if utterances:
        told["utterances"] = [text[:UTTERANCE_CHARACTERS] for text in utterances[:UTTERANCES_LIMIT]]
    if (known or function).orders:
        told["orders"] = list((known or function).orders)
    if (known or function).effect == "read":
        told["reads"] = True
    if not listed:
        told["listed"] = False
    if names:
        told["names"] = names
    return {"type": "function", "function": told}


def _names(here: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, list[str]] | None:
    """Return the things that a session's schema names beyond that of the catalogue; None where the schemas differ in anything else."""
    if here == known:
        return {}
    ours, theirs = here.get("properties", {}), known.get("properties", {})
    named = {name: ours[name]["enum"] for name, value in theirs.items() if name in ours and "enum" in ours[name] and "enum" not in value}
    plain = {name: {key: of for key, of in value.items() if key != "enum"} if name in named else value for name, value in ours.items()}
    for name in GROWING & ours.keys() & theirs.keys():
        there, usual = ours[name].get("examples"), theirs[name].get("examples")
        if there and usual and there != usual:
            named[name], plain[name] = there, {**ours[name], "examples": usual}
    if {**here, "properties": plain} != known or not named:
        return None
    return {name: [one for one in values if len(one) <= NAME_CHARACTERS][:NAMES_LIMIT] for name, values in named.items()}


def _handoff(function: Function) -> tuple[str, ...]:
    """Return what people say to be handed over, with the names of the agents that they may be handed to."""
    names: list[str] = function.parameters["properties"]["target"]["enum"]
    about = [line.removeprefix("- ") for line in function.description.splitlines()[1:]]
    ways = ("let me talk to {}", "I would like to speak with {}", "transfer me to {}", "can {} help me with this")
    said = ["hand me over to somebody else", "I want to talk to another agent", *about]
    return tuple([*said, *(way.format(name) for way in ways for name in names)][:UTTERANCES_LIMIT])
