"""What `live_world` is made of: the agents, what the model does when it is asked, and a connection as both sides know it."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from voxbridge.services.voice.core import outputs as out
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import Agent, ModelName

GREETING: Final = "Welcome to our house."
LIVE: Final = "gemini-3.8-live"
TOKENS_PER_SECOND: Final = 25
"""Of audio, each way; the microphone sends silence, too."""

TRIGGER_TOKENS: Final = 24_000
TARGET_TOKENS: Final = 12_000
"""What a context is shortened to that has more than `TRIGGER_TOKENS`: after 16 minutes, and every 8 from then on."""

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


class Known(NamedTuple):
    """A part of what a model knows of a call."""

    user: bool
    text: str
    tokens: int


class Context(msgspec.Struct):
    """What a connection's model knows: its instructions, which stay, and a sliding window over what was said."""

    instructions: str
    parts: list[Known]
    at: int
    """The microphone was counted up to here, in ms."""

    def hears(self, text: str, at: int) -> None:
        """The user says something."""
        tokens, self.at = (at - self.at) * TOKENS_PER_SECOND // 1_000, at
        self.parts.append(Known(True, text, tokens))

    def says(self, word: str, ms: int) -> None:
        """The model says a word."""
        before = Known(False, "", 0) if not self.parts or self.parts[-1].user else self.parts.pop()
        self.parts.append(Known(False, f"{before.text} {word}".strip(), before.tokens + ms * TOKENS_PER_SECOND // 1_000))

    @property
    def tokens(self) -> int:
        """All that counts."""
        return sum(part.tokens for part in self.parts)

    def compress(self) -> tuple[Known, ...]:
        """Forget the oldest parts if there are too many, up to where the user spoke; what was said last is kept."""
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
    """A model forgot the oldest that it knew: on which connection, and when it was asked what."""

    at: int
    effect: int
    agent: str
    resumed: bool
    number: int
    tokens: int
    """Before."""

    forgotten: tuple[Known, ...]


class Connection(msgspec.Struct):
    """A connection: what the provider and the worker know of it."""

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
    """What was said up to here was heard."""
