"""Agents of a session, the one that speaks, and a handoff between two of them."""

from __future__ import annotations

from typing import Literal

import msgspec

from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import Agent
from voxbridge.shared.macros.triggers import Spoken


class Handoff(msgspec.Struct, frozen=True, kw_only=True):
    """A handoff in progress."""

    source: str
    target: str
    at: int
    """Start time, µs."""

    note: str = ""
    """Note for the agent that takes over."""

    back: bool = False
    """True if the source could not be reached and returns the conversation to the agent that had handed over to it."""


class Team(msgspec.Struct, kw_only=True):
    """Agents that may take part, and what the one that speaks is made of."""

    agents: tuple[Agent, ...] = ()
    """Agents that may take part; empty if the session's options define the agent."""

    providers: tuple[str, ...] = ()
    """Providers that were available when the session began; empty if unknown."""

    usual: str = ""
    """Name of the installation's own language model."""

    catalogue: tuple[Function, ...] = ()
    """All functions of the session; `functions` are those of the agent."""

    agent: Agent = Agent(name="")
    """Agent that speaks. Its name is empty if the session's options define it."""

    model: str = ""
    voice: str = ""
    output: Literal["audio", "text"] = "audio"
    instructions: str = ""
    functions: tuple[Function, ...] = ()
    macros: tuple[Spoken, ...] = ()
    """Macros of the account, as they are known now."""

    names: dict[str, dict[str, tuple[str, ...]]] = msgspec.field(default_factory=dict)
    """Things that there were when the session began, by function and argument."""

    handoff: Handoff | None = None
    handed: tuple[str, int] = ("", -1)
    """Agent that handed over to the one that speaks, and the turn of the handoff. In that turn, it must answer and cannot hand back."""

    returned: int = -1
    """Turn in which the agent got the conversation back because the target of its handoff could not be reached; -1 if there is none."""
