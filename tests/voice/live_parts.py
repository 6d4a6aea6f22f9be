"""Parts of `live_world`: the agents, the scripted behaviour of the model, and a connection as both sides know it."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from voxbridge.services.voice.core import outputs as out
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import Agent, ModelName

GREETING: Final = "Welcome to our house."
LIVE: Final = "gemini-3.8-live"
TOKENS_PER_SECOND: Final = 25
"""Tokens of audio in each direction; the microphone also sends silence."""

TRIGGER_TOKENS: Final = 24_000
TARGET_TOKENS: Final = 12_000
"""Tokens that remain when a context exceeds `TRIGGER_TOKENS`: after 16 minutes, and every 8 from then on."""

FUNCTION: Final = Function(name="look_up", description="Look something up.", parameters={"type": "object"}, timeout_s=5.0)


def agents(model: str = LIVE) -> tuple[Agent, ...]:
    """Return a host who greets, and an advisor."""
    chosen = ModelName("gemini", model)
    return (
        Agent(name="host", prompt="You are the host.", greeting=GREETING, voice="Puck", handoffs=("advisor",), realtime=chosen),
        Agent(name="advisor", prompt="You advise.", voice="Charon", handoffs=("host",), realtime=chosen),
    )


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """Behaviour of the model when it is asked a question; empty parts are skipped."""

    says: str = ""
    calls: str = ""
    """Function that is called after these words; with `to:`, the agent to hand over to."""

    after: str = ""
    """Words after the result, or those of the other agent."""

    late_ms: int = 0
    """Milliseconds after the start of the answer at which the user's words arrive; 0: before it."""

    empty: int = 0
    """Number of times that the turn ends without a word."""

    silent: int = 0
    """Number of times that there is no answer at all."""

    dies_after: int = 0
    """Words after which the connection is lost, the first time."""

    cancels: bool = False
    """A user who speaks while the call is open makes the model cancel it."""

    @property
    def whole(self) -> str:
        """All words of the answer."""
        return f"{self.says} {self.after}".strip()


class Heard(msgspec.Struct):
    """Speech of the user: words, with the time in ms at which each one ends."""

    words: list[tuple[int, str]]

    @property
    def end(self) -> int:
        """End of the last word in ms."""
        return self.words[-1][0]


class Turn(msgspec.Struct):
    """A turn of the model under way."""

    words: list[str]
    number: int = 0
    call: str = ""
    after: str = ""
    fragments: list[str] = []
    late_ms: int = 0
    dies_after: int = 0
    cancels: bool = False
    ref: str = ""
    """Reference of the call that it waits for."""

    began: int = 0
    said: int = 0


class Known(NamedTuple):
    """A part of a model's context."""

    user: bool
    text: str
    tokens: int


class Context(msgspec.Struct):
    """Context of a connection's model: its instructions, which stay, and a sliding window over the conversation."""

    instructions: str
    parts: list[Known]
    at: int
    """Time in ms up to which microphone audio is counted."""

    def hears(self, text: str, at: int) -> None:
        """Add words of the user."""
        tokens, self.at = (at - self.at) * TOKENS_PER_SECOND // 1_000, at
        self.parts.append(Known(True, text, tokens))

    def says(self, word: str, ms: int) -> None:
        """Add a word of the model."""
        before = Known(False, "", 0) if not self.parts or self.parts[-1].user else self.parts.pop()
        self.parts.append(Known(False, f"{before.text} {word}".strip(), before.tokens + ms * TOKENS_PER_SECOND // 1_000))

    @property
    def tokens(self) -> int:
        """Tokens of all parts."""
        return sum(part.tokens for part in self.parts)

    def compress(self) -> tuple[Known, ...]:
        """Drop the oldest parts if there are too many, up to an utterance of the user; the last utterance is kept. Return the dropped
        parts."""
        left = self.tokens
        if left <= TRIGGER_TOKENS:
            return ()
        last = max(index for index, part in enumerate(self.parts) if part.user)
        cut = 0
        while cut < last and (left > TARGET_TOKENS or not self.parts[cut].user):
            left -= self.parts[cut].tokens
            cut += 1
        forgotten, self.parts = self.parts[:cut], self.parts[cut:]
        return tuple(forgotten)


class Compression(NamedTuple):
    """A compression of a model's context: its connection, its time, and the question that was asked."""

    at: int
    effect: int
    agent: str
    resumed: bool
    number: int
    tokens: int
    """Tokens before the compression."""

    forgotten: tuple[Known, ...]


class Connection(msgspec.Struct):
    """A connection, as the provider and the worker know it."""

    effect: int
    asked: out.Connect
    knows: Context
    open: bool = True
    turn: Turn | None = None
    queue: list[str] = []
    generation: int = 0
    made: int = 0
    reported: int = 0
    heard_to: int = 0
    """Time up to which speech was processed."""
