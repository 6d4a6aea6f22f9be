"""Calls of functions, put together from the pieces in which chat completions stream them.

OpenAI gives each call an index of its own. Other servers number all calls 0 (Ollama), or repeat the name in each piece. A new id, or a name
behind arguments that are complete, begins another call.
"""

from __future__ import annotations

import msgspec
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

from voxbridge.shared.language import base


class StreamedCall(msgspec.Struct):
    """A call as far as it has come: its arguments are JSON."""

    id: str
    name: str = ""
    arguments: str = ""


class ToolCalls:
    """The calls of one answer, in their order."""

    def __init__(self) -> None:
        self.calls: list[StreamedCall] = []
        self._of: dict[int, StreamedCall] = {}

    def take(self, piece: ChoiceDeltaToolCall) -> None:
        """Take a piece of a call. Raises `REFUSED` for arguments beyond their limit."""
        name = (piece.function.name if piece.function else None) or ""
        call = self._of.get(piece.index)
        if call is None or (piece.id and call.id and piece.id != call.id) or (name and not piece.id and _is_complete(call.arguments)):
            call = self._of[piece.index] = StreamedCall(id=piece.id or "")
            self.calls.append(call)
        if name != call.name:
            call.name += name
        if piece.function is not None:
            call.arguments += piece.function.arguments or ""
            base.bounded(call.arguments)


def _is_complete(arguments: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(arguments), dict)
    except msgspec.DecodeError:
        return False
