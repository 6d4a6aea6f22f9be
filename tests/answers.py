"""Checks that distinguish answers from apologies and fillers. A test that waits for an answer must not accept the agent's apology.

Accepts events as the voice service writes them (`AgentSaid`), log lines as the HTTP API returns them (`{"type", "data"}`) and the messages
of a socket (`{"type": "transcript", …}`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from voxbridge.shared.events.voice import AgentSaid


def is_apology(said: Any) -> bool:
    """Return whether the agent apologised for a missing or incomplete answer."""
    found = _of_agent(said)
    return found is not None and bool(found.get("apology"))


def is_answer(said: Any) -> bool:
    """Return whether the agent was heard to say something that is neither an apology nor a filler."""
    found = _of_agent(said)
    return found is not None and bool(found.get("text")) and not found.get("apology") and found.get("final", True)


def answers(said: Iterable[Any]) -> list[str]:
    """Return the heard texts of the agent's answers, in order."""
    return [_text(one) for one in said if is_answer(one)]


def apologies(said: Iterable[Any]) -> list[str]:
    """Return the texts of its apologies, including those that could not be spoken."""
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
