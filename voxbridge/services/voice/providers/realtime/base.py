"""The seam to realtime models: speech in, speech out, one connection per session. Each provider is one class behind it.

`RealtimeModel.connect` opens a connection and returns when it takes audio; `Connection.run` then reports what the model says until
the connection is over. What is said comes as `voxbridge.services.voice.core.provider_events` inputs, audio beside them, both in the order
in which the provider sent them. A provider decides nothing: when to reconnect, with what, and what is said again is `live`'s. A crash loses
the connection; the session goes on over a new one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec

from voxbridge.services.voice.core.outputs import Message
from voxbridge.services.voice.core.provider_events import ProviderInput
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.errors import Code, VoxbridgeError


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What a connection is opened with. `handle` is the provider's own, secret; empty for a new conversation, which `history` may
    seed."""

    model: str
    voice: str
    language: str
    instructions: str
    functions: tuple[Function, ...] = ()
    history: tuple[Message, ...] = ()
    handle: str = ""
    closed: Callable[[], Awaitable[None]] | None = None
    """Returns when the conversation of `handle` has no other connection: only then a provider takes it up. Dialling need not wait."""
    manual_activity: bool = False
    """The installation's own detector says when the user speaks (`Connection.activity`), not the provider's."""

    search: bool = False
    """Ground answers by the provider's own web search, where it has one."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call, for the connection that asked for it."""

    ref: str
    name: str
    result: dict[str, Any]


class Listener(Protocol):
    """Who a connection reports to; called from `Connection.run` only, in order, and never blocking."""

    effect: int
    """The id that every input carries."""

    @property
    def audio_ms(self) -> int:
        """Microphone audio heard so far, ms."""

    def take(self, input: ProviderInput) -> None:
        """What the model says."""

    def play(self, pcm: bytes) -> None:
        """Audio of the model's response: PCM16 at 24 kHz. Before the first of a response `AgentAudio` is taken."""

    def keep_handle(self, handle: str) -> str:
        """Keep a resumption handle; returns the reference under which it is known, for `HandleUpdated`."""


class Connection(Protocol):
    """An open connection. Every method may raise `ConnectionLost`; then `run` does too."""

    resumed: bool
    """Whether the provider took up the conversation of `Setup.handle`."""

    async def run(self, listener: Listener) -> None:
        """Report until cancelled. Raises `ConnectionLost` when the connection is over."""

    def send_audio(self, pcm: bytes | memoryview) -> None:
        """Microphone audio: PCM16 at 16 kHz. Never waits: a connection that takes none for long is over."""

    async def say(self, text: str, *, respond: bool = True) -> None:
        """Add what the user typed, or what the agent is to know; with `respond` the model answers to it."""

    async def answer(self, answers: Sequence[Answer]) -> None:
        """Give the results of calls of this connection; the model goes on when it has all of them."""

    async def activity(self, *, speaking: bool) -> None:
        """With `manual_activity`: the user began or ceased to speak."""

    async def end_audio(self) -> None:
        """The microphone was paused: what was being said is finished, do not wait for silence."""

    async def cut_short(self, heard_ms: int) -> None:
        """Of the response that was stopped, the user heard this much: forget the rest, where the provider can."""

    async def interrupt(self) -> None:
        """Stop the response that is being made, where the provider can."""

    async def close(self) -> None:
        """Close the socket; returns when it is closed, at the latest after 1 s. Never raises."""


class RealtimeModel(Protocol):
    """A provider."""

    async def connect(self, setup: Setup) -> Connection:
        """Open a connection; returns when it takes audio. Raises `ConnectionLost`."""

    async def prepare(self) -> None:
        """Make what connections share, so that the first one need not wait. Never raises."""

    async def close(self) -> None:
        """Give up what connections share."""


class ConnectionLost(VoxbridgeError):
    """A connection is over or was refused. `close_code` is that of the socket (1006: none came). `retryable` says whether the same
    setup may work in a moment; `handle_refused` whether it may work without its handle."""

    def __init__(self, message: str, *, close_code: int = 1006, retryable: bool = True, handle_refused: bool = False) -> None:
        super().__init__(Code.PROVIDER_UNAVAILABLE if retryable else Code.PROVIDER_REFUSED, message, retryable=retryable)
        self.close_code = close_code
        self.handle_refused = handle_refused
