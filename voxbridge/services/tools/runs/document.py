"""The document of a macro or a workflow: its triggers, its inputs, its steps, and what to do when one of them fails.

Owns the types, the bounds, and reading a document from data of outside (`parse`). Does not own whether its functions exist and its pipes
fit (`checks`). Pure.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from voxbridge.services.tools.runs import shorthand
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.nesting import is_deep

STEPS_LIMIT: Final = 50
"""Steps of one document."""

DEPTH_LIMIT: Final = 3
"""Documents within one another: a macro, one that it runs, and one that this runs."""

DOCUMENT_BYTES: Final = 32 * 1024
"""Size of a document as JSON."""

BUNDLE_BYTES: Final = 128 * 1024
"""Size of a document with all that it runs, as JSON."""

NESTING_LIMIT: Final = 16
"""Nesting of the objects and lists of a document."""

TRIGGERS_LIMIT: Final = 8
INPUTS_LIMIT: Final = 16
QUEUED_LIMIT: Final = 5
PARALLEL_LIMIT: Final = 8
RETRIES_LIMIT: Final = 5
BACKOFF_LIMIT_S: Final = 60.0
TEXT_CHARACTERS: Final = 2_000
CONDITION_CHARACTERS: Final = 500
TIMEOUT_S: Final = 300.0
"""Default time of a whole run."""

TIMEOUT_LIMIT_S: Final = 86_400.0
ASK_S: Final = 300.0
"""Default time for an answer of the user."""

_LEAST: Final = -(2**63)
_MOST: Final = 2**64 - 1
"""Whole numbers that a log can hold."""

Identifier = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
Name = Annotated[str, Meta(min_length=1, max_length=64)]
Text = Annotated[str, Meta(min_length=1, max_length=TEXT_CHARACTERS)]
Seconds = Annotated[float, Meta(gt=0, le=TIMEOUT_LIMIT_S)]


class Retry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="do", tag="retry"):
    """Further attempts of a failed step, each after twice the pause of the one before, and what to do when all have failed."""

    n: Annotated[int, Meta(ge=1, le=RETRIES_LIMIT)] = 2
    backoff_s: Annotated[float, Meta(ge=0, le=BACKOFF_LIMIT_S)] = 1.0
    then: Literal["stop", "continue", "ask"] = "stop"


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="do", tag="call"):
    """Call a function. Texts among the arguments may hold pipes."""

    function: Name
    arguments: dict[str, Any] = {}


class Say(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="do", tag="say"):
    """Say a text to the user, with pipes."""

    text: Text


Substitute = Call | Say


class Fallback(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do", tag="fallback"):
    """Something else to do in place of a failed step; its result is the step's."""

    step: Substitute


class Ask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="do", tag="ask"):
    """Ask the user a question; the result is `{"text": answer}`. Without an answer in time, the step fails."""

    question: Text
    timeout_s: Seconds = ASK_S


class Wait(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="do", tag="wait"):
    """Wait for a time."""

    seconds: Seconds


class Stop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="do", tag="stop"):
    """End the run here: well, or as an error. `result` may be a pipe."""

    reason: Annotated[str, Meta(max_length=TEXT_CHARACTERS)] = ""
    error: bool = False
    result: Any = None


class RunMacro(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="do", tag="run"):
    """Run the steps of another document; its result is the step's."""

    name: Name
    inputs: dict[str, Any] = {}


Action = Call | Say | Ask | Wait | Stop | RunMacro
OnError = Literal["stop", "continue", "ask"] | Retry | Fallback


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One step. It is skipped where `when` is false; `on_error` is that of the document unless it has its own."""

    id: Identifier
    action: Action
    when: Annotated[str, Meta(max_length=CONDITION_CHARACTERS)] = ""
    on_error: OnError | None = None
    timeout_s: Seconds | None = None


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value that a run is given. One without a default must be given."""

    type: Literal["string", "number", "integer", "boolean"] = "string"
    description: Annotated[str, Meta(max_length=200)] = ""
    default: str | int | float | bool | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A macro or a workflow.

    `mode` says what happens when it is started while it runs: the new start is refused (`single`), replaces the run (`restart`), waits for
    it (`queued`, `limit` of them), or runs beside it (`parallel`, `limit` of them).
    """

    name: Name
    description: Annotated[str, Meta(max_length=500)] = ""
    triggers: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=120)], ...], Meta(max_length=TRIGGERS_LIMIT)] = ()
    inputs: Annotated[dict[Identifier, Input], Meta(max_length=INPUTS_LIMIT)] = {}
    mode: Literal["single", "restart", "queued", "parallel"] = "single"
    limit: Annotated[int, Meta(ge=1, le=PARALLEL_LIMIT)] = QUEUED_LIMIT
    on_error: OnError = "stop"
    timeout_s: Seconds = TIMEOUT_S
    confirm: Literal["never", "first", "always"] = "never"
    steps: Annotated[tuple[Step, ...], Meta(min_length=1, max_length=STEPS_LIMIT)]


_TELLING: Final = frozenset("LMNS")
"""Kinds of characters that tell one name from another, by the first letter of their Unicode category: letters, the marks on them, figures
and symbols. Without the marks two words of Hindi are one, and without symbols C++ and C#."""
_ALSO: Final = frozenset("#&@%*")
"""Punctuation that does so too."""
_AT: Final = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")


def parse(data: Any) -> Document:
    """Return the document that `data` (as decoded from JSON or YAML) describes, in full or in shorthand.

    Raises `TOO_LARGE` and `INVALID_ARGUMENT`, naming the field.
    """
    if not isinstance(data, dict):
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "A macro is an object with a name and steps.", field="steps")
    if is_deep(data, NESTING_LIMIT):
        message = f"A macro nests {NESTING_LIMIT} objects and lists at most; make its arguments flatter."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="steps", limit=NESTING_LIMIT)
    if len(_json(data)) > DOCUMENT_BYTES:
        message = f"A macro has at most {DOCUMENT_BYTES} bytes as JSON; split it into several."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="steps", limit=DOCUMENT_BYTES)
    steps = data.get("steps")
    if isinstance(steps, list | tuple) and len(steps) > STEPS_LIMIT:
        message = f"A macro has at most {STEPS_LIMIT} steps, and this one {len(steps)}; split it into several."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="steps", limit=STEPS_LIMIT)
    try:
        document = msgspec.convert(shorthand.expanded(data), Document)
    except msgspec.ValidationError as error:
        raise _invalid(error) from error
    if len(_json(document)) > DOCUMENT_BYTES:  # defaults and ids that the shorthand left out count, too
        message = f"A macro has at most {DOCUMENT_BYTES} bytes as JSON; split it into several."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="steps", limit=DOCUMENT_BYTES)
    _check(document)
    return document


def as_data(document: Document) -> dict[str, Any]:
    """Return a document as plain data that `parse` reads."""
    data: dict[str, Any] = msgspec.to_builtins(document)
    return data


def _json(data: Any) -> bytes:
    try:
        return msgspec.json.encode(data)
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        message = f"A macro holds texts, numbers, lists and objects only: {error}."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="steps") from error


def _check(document: Document) -> None:
    """Check what types cannot say."""
    if not macro_id(document.name):
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "A macro needs a name with a letter or a figure in it.", field="name")
    if not document.name.isprintable():
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "A macro's name has characters that cannot be shown; leave them out.", field="name")
    if document.mode == "queued" and document.limit > QUEUED_LIMIT:
        message = f"At most {QUEUED_LIMIT} runs of a macro may wait."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="limit", limit=QUEUED_LIMIT)
    seen: set[str] = set()
    for number, step in enumerate(document.steps):
        if step.id in seen:
            message = f"Two steps have the id {step.id!r}; give each its own."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=f"steps[{number}].id")
        seen.add(step.id)
        if step.timeout_s is not None and not isinstance(step.action, Call):
            message = f"The step {step.id!r} calls no function, so it has no timeout_s of its own."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=f"steps[{number}].timeout_s")
    for name, given in document.inputs.items():
        if given.default is not None and not fits(given.default, given.type):
            message = f"The default of {name!r} is not of the type {given.type}."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=f"inputs.{name}.default")


def macro_id(name: str) -> str:
    """Return the id of a macro of this name: names that differ in case, spaces, hyphens and other punctuation alone have one id."""
    folded = unicodedata.normalize("NFC", name.casefold())
    kept = (letter if letter in _ALSO or unicodedata.category(letter)[0] in _TELLING else " " for letter in folded)
    return "_".join("".join(kept).split())


def fits(value: Any, kind: str) -> bool:
    """Return whether a value is of an input's type, and one that a log can hold."""
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, float) and not (value.is_integer() if kind == "integer" else math.isfinite(value)):
        return False
    return kind == "number" or _LEAST <= value <= _MOST


def _invalid(error: msgspec.ValidationError) -> VoxbridgeError:
    text = str(error)
    found = _AT.search(text)
    field = found["path"] if found else ""
    what = _AT.sub("", text)
    where = f" at {field}" if field else ""
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"The macro cannot be read: {what}{where}.", field=field or None)
