"""Answers, told from apologies and fillers. A test that waits for an answer must not take the agent's apology for one.

Takes events as the voice service writes them (`AgentSaid`), lines of the log as HTTP gives them (`{"type", "data"}`) and the messages
of a socket (`{"type": "transcript", …}`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from voxbridge.shared.events.voice import AgentSaid


def is_apology(said: Any) -> bool:
    """Whether the agent owned up to having no answer, or none to the end."""
    found = _of_agent(said)
    return found is not None and bool(found.get("apology"))


def is_answer(said: Any) -> bool:
    """Whether the agent was heard to say something that is neither an apology nor there to cover a wait."""
    found = _of_agent(said)
    return found is not None and bool(found.get("text")) and not found.get("apology") and found.get("final", True)


def answers(said: Iterable[Any]) -> list[str]:
    """What was heard of the agent's answers, in order."""
    return [_text(one) for one in said if is_answer(one)]


def apologies(said: Iterable[Any]) -> list[str]:
    """The same of its apologies, also those that could not be spoken."""
    return [_text(one) for one in said if is_apology(one)]


def _text(said: Any) -> str:
    found = _of_agent(said) or {}
    return " ".join(filter(None, [str(found.get("text", "")), str(found.get("unheard", "")) if found.get("apology") else ""]))


def _of_agent(said: Any) -> Mapping[str, Any] | None:
    event = getattr(said, "event", said)
    if isinstance(event, AgentSaid):
        return msgspec.structs.asdict(event)
    if not isinstance(event, Mapping):
        return None
    if event.get("type") == "agent.said":
        data = event["data"]
        return data if isinstance(data, Mapping) else None
    return event if event.get("type") in ("transcript", "text") and event.get("role", "assistant") == "assistant" else None
