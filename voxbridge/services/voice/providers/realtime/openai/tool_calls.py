"""Calls of functions as OpenAI Realtime sends them: their arguments, read within limits, and the ids that were seen. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import msgspec

from voxbridge.shared.log.storable import storable

ARGUMENTS_LIMIT: Final = 64 * 1024
"""Characters of the arguments of one call."""

CALLS_LIMIT: Final = 32
"""Calls without a result at a time."""

_REMEMBERED: Final = 256
_arguments: Final = msgspec.json.Decoder(dict[str, Any])


def read(text: str, *, open_calls: int) -> tuple[str, dict[str, Any]]:
    """Return what is wrong with a call, for the model, or an empty text and the arguments of the call. `open_calls` have no result yet."""
    if len(text) > ARGUMENTS_LIMIT:
        return f"The arguments have more than {ARGUMENTS_LIMIT} characters.", {}
    if open_calls >= CALLS_LIMIT:
        return f"{CALLS_LIMIT} calls are open; wait for their results.", {}
    try:
        return "", storable(_arguments.decode(text or "{}"))
    except msgspec.DecodeError:
        return "The arguments are not a JSON object.", {}


class Recent:
    """The last few ids that were seen."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def add(self, call_id: str) -> bool:
        """Add an id; return whether it is new."""
        if call_id in self._ids:
            return False
        self._ids[call_id] = None
        if len(self._ids) > _REMEMBERED:
            self._ids.popitem(last=False)
        return True
