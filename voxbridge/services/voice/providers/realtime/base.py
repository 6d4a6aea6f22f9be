"""The interface to realtime models: speech in, speech out, one connection per session. Each provider is one class behind it.

`RealtimeModel.connect` opens a connection and returns when it takes audio; `Connection.run` then reports what the model says until
the connection is over. Reports are `voxbridge.services.voice.core.provider_events` inputs, with audio beside them, both in the order in
which the provider sent them. A provider decides nothing: `core.realtime` decides when to reconnect, with what, and what is repeated. A
crash loses the connection; the session continues over a new one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec

from voxbridge.services.voice.core.provider_events import ProviderInput
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language.conversation import Message


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of a new connection. `handle` is the provider's own, and secret; it is empty for a new conversation, which `history`
    may seed."""

    model: str
    voice: str
    language: str
    instructions: str
    functions: tuple[Function, ...] = ()
    history: tuple[Message, ...] = ()
    handle: str = ""
    closed: Callable[[], Awaitable[None]] | None = None
    """Waits until the conversation of `handle` has no other connection: only then does a provider resume it. Dialling need not wait."""
    manual_activity: bool = False
    """True if the installation's own detector, not the provider's, reports when the user speaks (`Connection.activity`)."""

    search: bool = False
    """True to ground answers by the provider's own web search, where it has one."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call, for the connection that asked for it."""

    ref: str
    name: str
    result: dict[str, Any]


class Listener(Protocol):
    """Receiver of a connection's reports. It is called from `Connection.run` only, in order, and never blocks."""

    effect: int
    """Effect id that every input carries."""

    @property
    def audio_ms(self) -> int:
        """Milliseconds of microphone audio heard so far."""

    def take(self, input: ProviderInput) -> None:
        """Take an input that reports what the model says."""

    def play(self, pcm: bytes) -> None:
        """Play audio of the model's response: PCM16 at 24 kHz. `AgentAudio` is taken before the first piece of a response."""

    def keep_handle(self, handle: str) -> str:
        """Keep a resumption handle; return the reference under which it is known, for `HandleUpdated`."""


class Connection(Protocol):
    """An open connection. Every method may raise `ConnectionLost`; then `run` does too."""

    resumed: bool
    """True if the provider resumed the conversation of `Setup.handle`."""

    async def run(self, listener: Listener) -> None:
        """Report until cancelled. Raises `ConnectionLost` when the connection is over."""

    def send_audio(self, pcm: bytes | memoryview) -> None:
        """Send microphone audio: PCM16 at 16 kHz. Never waits; a connection that accepts no audio for long is over."""

    async def say(self, text: str, *, respond: bool = True) -> None:
        """Add text that the user typed, or that the agent is to know; with `respond` the model answers it."""

    async def answer(self, answers: Sequence[Answer]) -> None:
        """Send the results of calls of this connection; the model goes on when it has all of them."""

    async def activity(self, *, speaking: bool) -> None:
        """Report that the user began or stopped speaking; used with `manual_activity`."""

    async def end_audio(self) -> None:
        """Report that the microphone was paused: the utterance is finished, and the provider need not wait for silence."""

    async def cut_short(self, heard_ms: int) -> None:
        """Report how much of the stopped response the user heard, so that the model forgets the rest, where the provider can."""

    async def interrupt(self) -> None:
        """Stop the response in progress, where the provider can."""

    async def close(self) -> None:
        """Close the socket; returns when it is closed, after 1 s at the latest. Never raises."""


class RealtimeModel(Protocol):
    """The realtime models of one provider."""

    async def connect(self, setup: Setup) -> Connection:
        """Open a connection; returns when it takes audio. Raises `ConnectionLost`."""

    async def prepare(self) -> None:
        """Create the resources that connections share, so that the first one need not wait. Never raises."""

    async def close(self) -> None:
        """Release the resources that connections share."""


class ConnectionLost(VoxbridgeError):
    """Error of a connection that is over or was refused. `close_code` is that of the socket (1006: none came). `retryable` tells
    whether the same setup may work in a moment, and `handle_refused` whether it may work without its handle."""

    def __init__(self, message: str, *, close_code: int = 1006, retryable: bool = True, handle_refused: bool = False) -> None:
        super().__init__(Code.PROVIDER_UNAVAILABLE if retryable else Code.PROVIDER_REFUSED, message, retryable=retryable)
        self.close_code = close_code
        self.handle_refused = handle_refused
