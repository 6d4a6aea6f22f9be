"""Sayings of programs in their output: OSC 7501 (program status), 633 (our shell integration), 133 (prompt marks), and messages to the
officer (`shared/terminals/peers.py`).

All of it is untrusted. It sets a state and authorises nothing; a report that breaks a limit is void as a whole. 633 counts only with the
terminal's nonce, which programs in it are not given.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final, Literal, NamedTuple

from voxbridge.shared.terminals import peers

REPORT_LIMIT: Final = 4_096
"""Bytes of a report."""

ID_LIMIT: Final = 128
MESSAGE_LIMIT: Final = 2_048
"""Bytes of a message, decoded."""

PROMPT_MARK: Final = re.compile(rb"\x1b\]133;([ABCD])(?:;([^\x07\x1b]{0,200}))?(?:\x07|\x1b\\)")
"""A mark of a prompt in a program's output."""

_STATES: Final = ("idle", "working", "blocked", "done", "error", "clear")
_KINDS: Final = ("permission", "question", "auth")
_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,32}(?:/[A-Za-z0-9._-]{1,32}){0,7}")


class Report(NamedTuple):
    """A program's report on one of its parts: its state, the reason if it is blocked, its words, and its progress in percent."""

    part: str
    state: str
    reason: str = ""
    words: str = ""
    progress: int | None = None


class Query(NamedTuple):
    """A program's question whether its reports are read."""


class Prompt(NamedTuple):
    """A mark of a shell: A a prompt begins, B it ends, C a command runs, D it ended with an exit code."""

    mark: Literal["A", "B", "C", "D"]
    code: int | None = None
    trusted: bool = False


Mark = Report | Query | Prompt | peers.Message


def of_sequence(content: bytes, nonce: str, secret: str = "") -> Mark | None:
    """Return what an OSC sequence says; None for one that says nothing here, or breaks a limit. `secret` signs messages to the officer."""
    if len(content) > REPORT_LIMIT:
        return None
    try:
        number, _, rest = content.decode("ascii").partition(";")
    except UnicodeDecodeError:
        return None
    if number == "7501":
        return Query() if rest.strip() == "?" else _report(rest)
    if number == peers.NUMBER:
        return peers.read(rest, secret)
    return _shell(rest.split(";"), nonce) if number == "633" else None


def of_prompt(mark: bytes, parameters: bytes | None) -> Prompt:
    """Return what a mark of OSC 133 says."""
    return _prompt(mark.decode("ascii"), (parameters or b"").decode("ascii", "replace").split(";")[0], trusted=False)


def _shell(parts: list[str], nonce: str) -> Prompt | None:
    mark, *rest = parts
    if mark not in ("A", "B", "C", "D") or not rest or not nonce or rest[-1] != nonce:
        return None
    return _prompt(mark, rest[0] if len(rest) > 1 else "", trusted=True)


def _prompt(mark: str, code: str, *, trusted: bool) -> Prompt:
    known = int(code) if mark == "D" and re.fullmatch(r"-?\d{1,5}", code) else None
    return Prompt(mark, known, trusted)  # type: ignore[arg-type]  # one of four, by the patterns above


def _report(text: str) -> Report | None:
    fields: dict[str, str] = {}
    for pair in text.split(":"):
        name, is_there, value = pair.strip().partition("=")
        if not is_there or name in fields:
            return None
        fields[name] = value
    state, part, reason = fields.get("state", ""), fields.get("id", ""), fields.get("kind", "")
    if state not in _STATES or len(part) > ID_LIMIT or (part and not _ID.fullmatch(part)):
        return None
    if reason and (reason not in _KINDS or state != "blocked"):
        return None
    progress = fields.get("progress")
    if progress is not None and not (progress.isdigit() and int(progress) <= 100):
        return None
    words = _decoded(fields.get("msg", ""))
    if words is None:
        return None
    return Report(part, state, reason, words, None if progress is None else int(progress))


def _decoded(message: str) -> str | None:
    try:
        data = base64.b64decode(message + "=" * (-len(message) % 4), validate=True)
        text = data.decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    if len(data) > MESSAGE_LIMIT or any(character < " " or "\x7f" <= character <= "\x9f" for character in text):
        return None
    return text
