"""The gateway's messages in the words of `/session` (docs/protocol.md, section 11), and in their order. Pure.

Owns the translation: each message of `voxbridge.v1` is none, one or two of this door; a client that speaks `voxbridge.v1` gets both. Models
that hear and speak themselves may write down what the user said after they have answered it: the text of the answer waits for that, until
its sound ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from voxbridge.services.gateway.core.outbound import Message
from voxbridge.services.gateway.platform import messages
from voxbridge.services.gateway.platform.messages import ServerMessage
from voxbridge.shared.audio import frames

_ALIKE: Final = frozenset({"greeting", "chat", "reset", "error"})
"""Types that both have: what `voxbridge.v1` has beyond them does no harm there."""

_EXTRA: Final = frozenset({"turn", "generation", "seq"})
"""Fields that only `voxbridge.v1` has."""


class Dialect:
    """The words for one socket. `framed`: its client speaks `voxbridge.v1`, too. `hears`: the model hears the user itself, whose words are
    known late: that it thinks is told with the session's state."""

    def __init__(self, *, framed: bool, hears: bool = False) -> None:
        self._framed = framed
        self._hears = hears
        self._turn = 0
        """Newest turn whose words the client was told."""

        self._held: Message | None = None
        """Text of an answer to words that the client was not told yet."""

        self._answered = 0
        """Newest turn whose answer the client was told, or is about to be."""

        self._sounding = False
        self._thinking = False

    def told(self, message: Message) -> Sequence[Message]:
        """Return the messages by which the client is told one of `voxbridge.v1`."""
        kind = message["type"]
        if kind == "chat":
            self._held = message
            self._answered = max(self._answered, message["turn"])
            return self._released() if message["turn"] <= self._turn else ()
        if kind in _ALIKE:
            return (self._plain(message),)
        said = [message] if self._framed else []
        match message:
            case {"type": "setup_complete"}:
                said.append(encoded(messages.Ready(sample_rate=frames.INPUT_RATE, tts_sample_rate=frames.OUTPUT_RATE)))
            case {"type": "transcript", "role": "user", "final": True, "text": text, "turn": turn}:
                said.append(encoded(messages.Turn(text)))
                self._turn = max(self._turn, turn)
                if turn > self._answered:
                    said.extend(self._thinks())
                said.extend(self._released())
            case {"type": "state", "state": "thinking"} if self._hears:
                said.extend(self._thinks())
            case {"type": "state", "state": "user_speaking"}:
                self._thinking = False
            case {"type": "transcript", "role": "user", "text": text} if not self._framed:
                said.append(encoded(messages.Transcript(text, final=False)))
            case {"type": "go_away", "message": text}:
                said.append(encoded(messages.Error(message=text, code="UNAVAILABLE", retryable=True)))
        return said

    def ended(self, frame: bytes) -> Sequence[Message]:
        """Return the messages that follow a reply frame: that all of a reply was sent, or that it was stopped."""
        prefix = frames.parse(frame)
        flushed = prefix.kind == frames.FLUSH
        self._sounding, self._thinking = not (flushed or prefix.flags & frames.LAST), False
        if self._sounding:
            return ()
        return [*self._released(), encoded(messages.Cancelled() if flushed else messages.TtsDone())]

    def _thinks(self) -> Sequence[Message]:
        if self._thinking or self._sounding:
            return ()
        self._thinking = True
        return (encoded(messages.Thinking()),)

    def _released(self) -> Sequence[Message]:
        held, self._held = self._held, None
        return () if held is None else (self._plain(held),)

    def _plain(self, message: Message) -> Message:
        return message if self._framed else {name: value for name, value in message.items() if name not in _EXTRA}


def encoded(message: ServerMessage) -> Message:
    """Return a message as an object of JSON."""
    built: Message = msgspec.to_builtins(message)
    return built
