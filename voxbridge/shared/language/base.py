"""The interface to language models: a conversation in, text and calls out. Each vendor is one class behind it.

Owns what all of them share: the protocol, the limits, the conversation as alternating turns, and the conversion of an HTTP failure to a
`VoxbridgeError`. Does not own which model is asked (`models`) nor with which key (`endpoints`). A crash here loses the answer in
progress; it is requested again.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal, Protocol

import msgspec

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language.conversation import Complete, Message, ToolUse, Written
from voxbridge.shared.log.storable import storable

CONNECT_TIMEOUT_S: Final = 3.0
READ_TIMEOUT_S: Final = 60.0
RETRIES: Final = 1
RETRY_WAIT_S: Final = 2.0
"""Longest wait, in seconds, that a vendor may ask for before the one retry; a longer one is an error at once."""

RETRY_AFTER_LIMIT_MS: Final = 60_000
"""Milliseconds to which the wait that a vendor asks for is cut before it is passed on."""

ARGUMENTS_LIMIT: Final = 64 * 1024
"""Characters of the arguments of one call."""

WORDS_LIMIT: Final = 300
"""Characters of a vendor's own words in an error."""

OPENING: Final = "(The call begins.)"
GO_ON: Final = "(Go on.)"
"""Texts that stand for the user's turn where a vendor wants the user first or last, and the user said nothing."""

UNANSWERED: Final = '{"success":false,"error":"The call was interrupted; it has no result.","code":"INTERRUPTED"}'

TOO_LONG: Final = ("context_length", "context length", "context window")
"""Phrases of servers that refuse a conversation for its length without a status of its own."""

_BUSY: Final = frozenset({408, 409, 425, 429})
_KEY_REFUSED: Final = frozenset({401, 403})


class LanguageModel(Protocol):
    """The language models of one vendor."""

    def complete(self, effect: int, request: Complete) -> AsyncGenerator[Written, None]:
        """Run the model; yield inputs for the core as they come: text, then all calls, then `Completed`. Calls come only if every one
        of them could be read. Raises `VoxbridgeError`."""

    async def close(self) -> None:
        """Close the connections."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a call: JSON as `text`. `failed` marks an error."""

    use: ToolUse
    text: str
    failed: bool


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one side said before the other went on. Only turns of the user have `results`, only those of the assistant have `uses`.

    Each message is a text of its own: what is told of the user's screen is never within the user's words.
    """

    role: Literal["user", "assistant"]
    texts: tuple[str, ...] = ()
    uses: tuple[ToolUse, ...] = ()
    results: tuple[Result, ...] = ()


def turns(messages: Sequence[Message]) -> tuple[str, list[Turn]]:
    """Return the standing instructions, and the conversation as alternating turns, the first and the last by the user. All calls of a
    turn are answered in the next one: a missing result is replaced by an interruption, and a result without a call is left out."""
    results = {message.call_id: message.text for message in messages if message.role == "tool"}
    found: list[Turn] = []
    for message in messages:
        if message.role == "user":
            _add(found, Turn(role="user", texts=(message.text,)))
        elif message.role == "assistant":
            _add(found, Turn(role="assistant", texts=(message.text,), uses=message.uses))
            if message.uses:
                answers = tuple(_result(use, results.get(use.call_id, UNANSWERED)) for use in message.uses)
                found.append(Turn(role="user", results=answers))
    if not found or found[0].role == "assistant":
        found.insert(0, Turn(role="user", texts=(OPENING,)))
    if found[-1].role == "assistant":
        found.append(Turn(role="user", texts=(GO_ON,)))
    return "\n\n".join(message.text for message in messages if message.role == "system" and message.text.strip()), found


def _add(found: list[Turn], turn: Turn) -> None:
    texts = tuple(text.strip() for text in turn.texts if text.strip())
    if not texts and not turn.uses:
        return
    last = found[-1] if found else None
    if last is None or last.role != turn.role:
        found.append(msgspec.structs.replace(turn, texts=texts))
    else:
        found[-1] = msgspec.structs.replace(last, texts=(*last.texts, *texts), uses=(*last.uses, *turn.uses))


def _result(use: ToolUse, text: str) -> Result:
    try:
        value = msgspec.json.decode(text, type=dict[str, Any])
        failed = value.get("success") is False or bool(value.get("error"))
    except msgspec.DecodeError:
        failed = text.startswith(('{"success":false', '{"error":'))  # the JSON of a long result was cut
    return Result(use=use, text=text, failed=failed)


def bounded(arguments: str) -> None:
    """Refuse arguments that have grown beyond `ARGUMENTS_LIMIT`."""
    if len(arguments) > ARGUMENTS_LIMIT:
        message = f"The language model wrote more than {ARGUMENTS_LIMIT} characters of arguments."
        raise VoxbridgeError(Code.PROVIDER_REFUSED, message, limit=ARGUMENTS_LIMIT)


def arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a call as the model wrote them; an empty text gives an empty object."""
    try:
        found = msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise VoxbridgeError(Code.PROVIDER_REFUSED, f"The language model wrote arguments that are not JSON: {error}.") from error
    return storable(found)  # type: ignore[no-any-return]


def cut_off(part: str = "language") -> VoxbridgeError:
    """Return the error for an answer that stopped before its end."""
    return VoxbridgeError(Code.PROVIDER_UNAVAILABLE, f"The {part} model stopped in the middle of its answer.")


def refused(words: str) -> VoxbridgeError:
    """Return the error for a language model that refuses to go on, however often it is asked."""
    return VoxbridgeError(Code.PROVIDER_REFUSED, f"The language model {words}"[:WORDS_LIMIT], retryable=False)


def timed_out(part: str) -> VoxbridgeError:
    """Return the error for a model that did not answer in time."""
    return VoxbridgeError(Code.TIMED_OUT, f"The {part} model did not answer in time.")


def unreachable(part: str, error: Exception, key: str = "") -> VoxbridgeError:
    """Return the error for a connection that could not be made, or broke."""
    return VoxbridgeError(Code.PROVIDER_UNAVAILABLE, f"The {part} model cannot be reached: {without(key, str(error))}")


def unreadable(part: str, error: Exception, key: str = "") -> VoxbridgeError:
    """Return the error for an answer that cannot be read."""
    told = without(key, f"{error!r:.200}")
    return VoxbridgeError(Code.PROVIDER_REFUSED, f"The {part} model answered something that cannot be read: {told}", retryable=False)


def failed(part: str, status: int, words: str, *, key: str = "", headers: Mapping[str, str] | None = None) -> VoxbridgeError:
    """Return the error for an HTTP status: overload and server failures may pass, all others do not. The text about a refused key is
    never repeated, since vendors quote the key."""
    if status in _KEY_REFUSED:
        return VoxbridgeError(Code.PROVIDER_REFUSED, f"The {part} model refused the key (HTTP {status}).", retryable=False)
    told = without(key, words)[:WORDS_LIMIT]
    if status == 413 or (status == 400 and any(phrase in words for phrase in TOO_LONG)):
        return VoxbridgeError(Code.TOO_LARGE, f"The {part} model finds the conversation too long: {told}", field="messages")
    if status in _BUSY or status >= 500:
        wait = retry_after_s(headers or {})
        wait_ms = None if wait is None else min(round(wait * 1_000), RETRY_AFTER_LIMIT_MS)
        return VoxbridgeError(Code.PROVIDER_UNAVAILABLE, f"The {part} model failed: {told}", retry_after_ms=wait_ms)
    return VoxbridgeError(Code.PROVIDER_REFUSED, f"The {part} model refused: {told}", retryable=False)


def without(key: str, words: str) -> str:
    """Return the words without the key."""
    return words.replace(key, "[key]") if key else words


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds from now a vendor asks to wait; None if it does not say."""
    for name, divisor in (("retry-after-ms", 1_000), ("retry-after", 1)):
        text = headers.get(name, "")
        try:
            wait = float(text) / divisor
        except ValueError:
            continue
        return max(wait, 0.0) if math.isfinite(wait) else None
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max((at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
