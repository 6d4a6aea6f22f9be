"""Pipes: references in a step's texts to the inputs of the run and to the results of earlier steps.

    ${input.name}   ${steps.build.result.version}   ${steps.build.error.message}
    ${prev}         ${prev.items.0}                 ${prev.name default: "nobody"}

A text that is one pipe and nothing else takes the value with its type; in a longer text a value becomes text. `$${` is a plain `${`.
What a pipe brings is never read for pipes again, so no result can name another. Owns the syntax and the resolving, with its bounds. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import Failure

RESOLVED_BYTES: Final = 64 * 1024
"""Size as JSON of what the pipes of one step may bring, in all."""

PIPES_LIMIT: Final = 200
"""Pipes of one step."""

PATH_LIMIT: Final = 16
"""Parts of a pipe's path."""

PIPE_CHARACTERS: Final = 300

_PIPE: Final = re.compile(
    r"\$\{[ ]*(?P<path>[A-Za-z0-9_.-]{1,256})[ ]*(?:default:[ ]*"
    r"(?P<default>\"(?:[^\"\\]|\\.)*\"|-?[0-9]{1,18}(?:\.[0-9]{1,18})?|true|false|null|\[\]|\{\})[ ]*)?\}"
)
_START: Final = re.compile(r"(?P<plain>\$\$\{)|\$\{")


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of a step, as later steps see it."""

    state: Literal["completed", "failed", "skipped"]
    result: Any = None
    error: Failure | None = None


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The values that pipes may refer to: the inputs, the ended steps by id, and the id of the last one that was completed."""

    inputs: Mapping[str, Any]
    steps: Mapping[str, Outcome]
    last: str = ""


class Pipe(msgspec.Struct, frozen=True):
    """A pipe: the parts of its path, and its default as JSON, if it has one."""

    parts: tuple[str, ...]
    default: str | None = None

    @property
    def text(self) -> str:
        """The path as it is written."""
        return ".".join(self.parts)

    @property
    def step(self) -> str:
        """Id of the step that it refers to; empty for an input and for `prev`."""
        return self.parts[1] if self.parts[0] == "steps" else ""


Part = str | Pipe


def split(text: str, *, field: str = "") -> list[Part]:
    """Return a text as plain texts and pipes, in order. Raises `INVALID_ARGUMENT` for a pipe that cannot be read."""
    parts: list[Part] = []
    at = 0
    plain = ""
    while (found := _START.search(text, at)) is not None:
        plain += text[at : found.start()]
        if found["plain"]:
            plain += "${"
            at = found.end()
            continue
        pipe = _PIPE.match(text, found.start(), found.start() + PIPE_CHARACTERS)
        if pipe is None and _PIPE.match(text, found.start()) is not None:
            message = f"A pipe has at most {PIPE_CHARACTERS} characters, with its default."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field or None, limit=PIPE_CHARACTERS)
        if pipe is None:
            shown = text[found.start() : found.start() + 40]
            raise VoxbridgeError(
                Code.INVALID_ARGUMENT,
                f"{shown!r} is not a pipe. Write ${{input.name}}, ${{steps.id.result.path}} or ${{prev}}, and $${{ for a plain ${{.",
                field=field or None,
            )
        if plain:
            parts.append(plain)
            plain = ""
        parts.append(_pipe(pipe["path"], pipe["default"], field))
        at = pipe.end()
    plain += text[at:]
    return [*parts, plain] if plain or not parts else parts


def _pipe(path: str, default: str | None, field: str) -> Pipe:
    parts = tuple(path.split("."))
    where = field or None
    if len(parts) > PATH_LIMIT or not all(parts):
        message = f"The pipe ${{{path[:40]}}} has an empty part, or more than {PATH_LIMIT} parts."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=where, limit=PATH_LIMIT)
    head = parts[0]
    if head == "input" and len(parts) == 2:
        return Pipe(parts, default)
    if head == "prev":
        return Pipe(parts, default)
    if head == "steps" and len(parts) >= 3 and (parts[2] == "result" or parts[2:] == ("state",) or parts[2] == "error"):
        return Pipe(parts, default)
    message = f"The pipe ${{{path[:40]}}} refers to nothing. Write ${{input.name}}, ${{steps.id.result.path}} or ${{prev}}."
    raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=where)


def pipes_in(value: Any, *, field: str = "") -> Iterator[tuple[str, Pipe]]:
    """Yield the pipes of all texts in a value, each with where it stands. Raises `INVALID_ARGUMENT`, also for pipes in names."""
    if isinstance(value, str):
        for part in split(value, field=field):
            if isinstance(part, Pipe):
                yield field, part
    elif isinstance(value, Mapping):
        for name, one in value.items():
            if "${" in name:
                message = f"The name {name[:40]!r} holds a pipe; only values may."
                raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field or None)
            yield from pipes_in(one, field=f"{field}.{name}" if field else name)
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            yield from pipes_in(one, field=f"{field}[{number}]")


class Missing(VoxbridgeError):
    """Error of a pipe whose value is not there."""

    def __init__(self, pipe: Pipe, why: str) -> None:
        message = f"The pipe ${{{pipe.text}}} has no value: {why}. Give it a default, or run the step only where it is there."
        super().__init__(Code.INVALID_ARGUMENT, message, field=pipe.text)


class Resolver:
    """Replaces the pipes of one step by their values, within `RESOLVED_BYTES` and `PIPES_LIMIT`."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._left = RESOLVED_BYTES
        self._pipes = PIPES_LIMIT

    def value(self, value: Any) -> Any:
        """Return a value with the pipes of its texts replaced. Raises `Missing`, `TOO_LARGE` and `INVALID_ARGUMENT`."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {name: self.value(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(one) for one in value]
        return value

    def text(self, value: str) -> str:
        """Return a text with its pipes replaced by texts."""
        return as_text(self._text(value))

    def pipe(self, pipe: Pipe) -> Any:
        """Return the value of a pipe."""
        self._pipes -= 1
        value = self._found(pipe)
        size = len(value) if isinstance(value, str) else len(msgspec.json.encode(value)) if isinstance(value, dict | list) else 8
        self._left -= size
        if self._left < 0 or self._pipes < 0:
            message = f"The pipes of this step bring more than {RESOLVED_BYTES} bytes, or are more than {PIPES_LIMIT}. Refer to less."
            raise VoxbridgeError(Code.TOO_LARGE, message, field=pipe.text, limit=RESOLVED_BYTES)
        return value

    def _text(self, text: str) -> Any:
        if "${" not in text:
            return text
        parts = split(text)
        if len(parts) == 1 and isinstance(parts[0], Pipe):
            return self.pipe(parts[0])
        return "".join(as_text(self.pipe(part)) if isinstance(part, Pipe) else part for part in parts)

    def _found(self, pipe: Pipe) -> Any:
        try:
            return self._followed(pipe)
        except Missing:
            if pipe.default is None:
                raise
            return _default(pipe, pipe.default)

    def _followed(self, pipe: Pipe) -> Any:
        head, *path = pipe.parts
        if head == "input":
            if path[0] not in self._scope.inputs:
                raise Missing(pipe, f"the run was given no {path[0]!r}")
            return self._scope.inputs[path[0]]
        if head == "prev":
            if not self._scope.last:
                raise Missing(pipe, "no step before it was completed")
            return _follow(pipe, self._scope.steps[self._scope.last].result, path)
        outcome = self._scope.steps.get(path[0])
        if outcome is None:
            raise Missing(pipe, f"the step {path[0]!r} has not run")
        if path[1] == "state":
            return outcome.state
        if path[1] == "error":
            if outcome.error is None:
                raise Missing(pipe, f"the step {path[0]!r} has no error")
            return _follow(pipe, {"code": outcome.error.code, "message": outcome.error.message}, path[2:])
        if outcome.state != "completed":
            raise Missing(pipe, f"the step {path[0]!r} was {'skipped' if outcome.state == 'skipped' else 'not completed'}")
        return _follow(pipe, outcome.result, path[2:])


def _default(pipe: Pipe, written: str) -> Any:
    try:
        value = msgspec.json.decode(written)
        msgspec.msgpack.encode(value)  # the log has integers of 64 bits
    except (msgspec.DecodeError, OverflowError):
        raise Missing(pipe, f"its default {written[:40]} is not a value of JSON within 64 bits") from None
    return value


def _follow(pipe: Pipe, value: Any, path: list[str]) -> Any:
    """Follow names of objects and numbers of lists; nothing else has parts."""
    for part in path:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and len(part) <= 6 and int(part) < len(value):
            value = value[int(part)]
        else:
            raise Missing(pipe, f"there is no {part!r}")
    return value


def as_text(value: Any) -> str:
    """Return a value as it stands in a longer text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return msgspec.json.encode(value).decode()
