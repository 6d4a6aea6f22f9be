"""What `live_world` is made of: the agents, what the model does when it is asked, and a connection as both sides know it."""

from __future__ import annotations

from typing import Final

import msgspec

from services.voice import outputs as out
from shared.agents import Agent, ModelName
from shared.functions import Function

GREETING: Final = "Welcome to our house."
LIVE: Final = "gemini-3.8-live"
FUNCTION: Final = Function(name="look_up", description="Look something up.", parameters={"type": "object"}, timeout_s=5.0)


def agents(model: str = LIVE) -> tuple[Agent, ...]:
    """A host who greets, and an advisor."""
    chosen = ModelName("gemini", model)
    return (
        Agent(name="host", prompt="You are the host.", greeting=GREETING, voice="Puck", handoffs=("advisor",), realtime=chosen),
        Agent(name="advisor", prompt="You advise.", voice="Charon", handoffs=("host",), realtime=chosen),
    )


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What the model does when it is asked; what is left out does not happen."""

    says: str = ""
    calls: str = ""
    """A function that is called behind these words, or the agent that is handed over to with `to:`."""

    after: str = ""
    """What follows when there is a result, or what the other agent says."""

    late_ms: int = 0
    """The words of the user come so long after the answer began; 0: before it."""

    empty: int = 0
    """So many times the turn ends without a word."""

    silent: int = 0
    """So many times nothing comes at all."""

    dies_after: int = 0
    """The first time, the connection is lost after so many words."""

    cancels: bool = False
    """A user who speaks while the call is open makes the model take it back."""

    @property
    def whole(self) -> str:
        """All that is said."""
        return f"{self.says} {self.after}".strip()


class Heard(msgspec.Struct):
    """What the user says aloud: words and when each of them is over."""

    words: list[tuple[int, str]]

    @property
    def end(self) -> int:
        """When the last word is over."""
        return self.words[-1][0]


class Turn(msgspec.Struct):
    """A turn of the model, at work."""

    words: list[str]
    number: int = 0
    call: str = ""
    after: str = ""
    fragments: list[str] = []
    late_ms: int = 0
    dies_after: int = 0
    cancels: bool = False
    ref: str = ""
    """The call that it waits for."""

    began: int = 0
    said: int = 0


class Connection(msgspec.Struct):
    """A connection: what the provider and the worker know of it."""

    effect: int
    asked: out.Connect
    knows: list[str]
    open: bool = True
    turn: Turn | None = None
    queue: list[str] = []
    generation: int = 0
    made: int = 0
    reported: int = 0
    heard_to: int = 0
    """What was said up to here was heard."""
