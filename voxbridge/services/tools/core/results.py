"""Results of functions: JSON within a limit.

Pure, with few imports: the process of an isolated function checks its result with this before sending it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import Failure

RESULT_LIMIT: Final = 64 * 1024
"""Bytes of a result as JSON."""

MESSAGE_LIMIT: Final = 600
"""Characters of an error's message."""


def as_failure(error: VoxbridgeError) -> Failure:
    """Return an error as the log keeps it.

    Messages repeat what strangers wrote, so characters that cannot be shown become spaces, and a long message is cut.
    """
    shown = " ".join("".join(one if one.isprintable() else " " for one in error.message).split())
    message = shown if len(shown) <= MESSAGE_LIMIT else f"{shown[: MESSAGE_LIMIT - 2]}…."
    return Failure(code=error.code, message=message, retryable=error.retryable, field=error.field or "")


def _written(value: object) -> str:
    if hasattr(value, "__fspath__"):
        return str(value.__fspath__())
    raise TypeError(f"a {type(value).__name__} has no JSON")


def as_result(name: str, value: Any) -> dict[str, Any]:
    """Return a function's result as a JSON object: anything but an object is `{"result": value}`, and a path is its text.

    Raises `TOO_LARGE`, and `INTERNAL` when it cannot be written as JSON.
    """
    try:
        encoded = msgspec.json.encode(value, enc_hook=_written)
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise VoxbridgeError(Code.INTERNAL, f"{name} returned what cannot be written as JSON: {error}.", retryable=False) from error
    if len(encoded) > RESULT_LIMIT:
        raise VoxbridgeError(
            Code.TOO_LARGE,
            f"{name} returned {len(encoded)} bytes; a result has at most {RESULT_LIMIT}.",
            field="result",
            limit=RESULT_LIMIT,
        )
    decoded = msgspec.json.decode(encoded)
    try:
        msgspec.msgpack.encode(decoded)
    except OverflowError as error:
        raise VoxbridgeError(Code.INTERNAL, f"{name} returned a whole number of more than 64 bits.", retryable=False) from error
    return decoded if isinstance(decoded, dict) else {"result": decoded}
