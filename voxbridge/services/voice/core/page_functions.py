"""Functions that a session's web page answers: which are offered, their checks, their timeouts, and calls without a page. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from voxbridge.services.voice.core import agents as session_agents
from voxbridge.services.voice.core.state import Client
from voxbridge.shared.agents.functions import Function, is_names, with_names
from voxbridge.shared.agents.model import HANDOFF, Agent
from voxbridge.shared.errors import Code
from voxbridge.shared.events.gateway import SessionRequested

LOCAL_BYTES: Final = 4_096
"""Bytes of declarations, as JSON, that the installation's own language model may be offered: it has 4,096 tokens for instructions,
functions and conversation together."""


def offered(own: Sequence[Function], request: SessionRequested) -> tuple[Function, ...]:
    """Return the functions of a session: of those that a page answers, the ones that this page can. What the page declares itself takes the
    place of the catalogue's function of that name; a declaration that only says what an argument may name goes into the catalogue's."""
    names = {function.name: function for function in request.functions if is_names(function)}
    declared = {function.name: function for function in request.functions if function.name not in names}
    answered = {*request.client.browser, *names} - declared.keys()
    key = request.key  # anybody may have read it: it offers of the installation what it names, and nothing else
    known = own if key is None else tuple(one for one in own if one.name in key.functions)
    here = (one for one in known if one.kind != "browser" or one.name in answered)
    return (*(_named(one, names[one.name]) if one.name in names else one for one in here), *declared.values())


def _named(own: Function, declared: Function) -> Function:
    properties = declared.parameters["properties"]
    return with_names(own, {name: value["enum"] for name, value in properties.items()})


def absent(client: Client, function: Function | None) -> str:
    """Return why a call cannot be answered because no page is there; empty if it can."""
    if function is None or function.kind != "browser" or not client.away_since:
        return ""
    return f"{function.name} was not done: the user's page is not connected at the moment."


def wrong(declared: Sequence[Function], own: Sequence[Function], agents: Sequence[Agent]) -> tuple[Code, str]:
    """Return why a session cannot begin with these functions; an empty message where it can."""
    taken = {function.name for function in own if function.kind != "browser"} | {HANDOFF}
    clashes = [function.name for function in declared if function.name in taken]
    if clashes:
        message = f"`tools` declares {', '.join(clashes)}, which this installation has itself; choose another name."
        return Code.INVALID_ARGUMENT, message
    size = sum(len(msgspec.json.encode((one.name, one.description, one.parameters))) for one in declared)
    if size > LOCAL_BYTES and any(session_agents.thinks_here(agent) for agent in agents):
        message = f"`tools` has {size} bytes, and the local language model is offered {LOCAL_BYTES} at most: shorten the declarations."
        return Code.TOO_LARGE, message
    return Code.INVALID_ARGUMENT, ""


def wait_ms(function: Function | None, timeout_ms: int, margin_ms: int) -> int:
    """Return how long to wait for a call, ms. An executor reports the timeout itself, so it gets a margin; a page does not."""
    return timeout_ms if function is not None and function.kind == "browser" else timeout_ms + margin_ms
