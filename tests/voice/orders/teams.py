"""Teams of agents for random calls."""

from __future__ import annotations

from typing import Any, Final

from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import Agent, ModelName

FUNCTIONS: Final = (
    Function(name="look_up", description="Look something up.", parameters={"type": "object"}, timeout_s=5.0),
    Function(name="take_long", description="Take long.", parameters={"type": "object"}, timeout_s=60.0),
)


def _team(**agents: dict[str, Any]) -> tuple[Agent, ...]:
    """Return agents who may all hand over to each other; the first one greets."""
    return tuple(
        Agent(
            name=name,
            prompt=f"You are {name}.",
            greeting="" if index else "Welcome.",
            handoffs=tuple(other for other in agents if other != name),
            **given,
        )
        for index, (name, given) in enumerate(agents.items())
    )


_LIVE: Final = {"realtime": ModelName("gemini", "gemini-3.8-live")}
_NATIVE: Final = {"realtime": ModelName("gemini", "gemini-2.5-flash-native-audio-latest")}
_OPENAI: Final = {"realtime": ModelName("openai", "gpt-realtime-2.1")}
_MANUAL: Final = {**_LIVE, "manual_activity": True}
_LOCAL: Final[dict[str, Any]] = {}
_TEXT: Final = {"output": "text", "llm": ModelName("anthropic", "")}

TEAMS: Final[dict[str, tuple[Agent, ...]]] = {
    "gemini": _team(host=_LIVE, advisor=_LIVE),
    "native": _team(host=_NATIVE, advisor=_NATIVE),
    "openai": _team(host=_OPENAI, advisor=_OPENAI),
    "manual": _team(host=_MANUAL, advisor=_MANUAL),
    "cascade": _team(host=_LOCAL, advisor=_LOCAL),
    "text": _team(host=_TEXT, advisor=_TEXT),
    "realtime first": _team(host=_LIVE, advisor=_LOCAL, clerk=_OPENAI, writer=_TEXT),
    "cascade first": _team(host=_LOCAL, advisor=_NATIVE, clerk=_MANUAL, writer=_TEXT),
    "written gemini": _team(host=_LIVE, advisor=_LIVE),
    "written openai": _team(host=_OPENAI, advisor=_LOCAL),
    "text first": _team(host=_TEXT, advisor=_OPENAI, clerk=_LOCAL, writer=_LIVE),
}

BEGIN_IN_TEXT: Final = ("written gemini", "written openai")
"""Teams whose calls begin in text, whoever they are."""
