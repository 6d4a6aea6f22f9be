"""Messages between the tools service and a sandbox's process: JSON, each with its length in front.

Owns the form and its bounds. Whatever comes out of a sandbox is taken for hostile: it is decoded into these structs or refused. Pure.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

HEAD: Final = struct.Struct(">I")
"""Header of a message: the length of its payload in bytes."""

IN_LIMIT: Final = 3 * 1024 * 1024
"""Bytes of a message to a sandbox: an answer of `ctx.fetch` with its body."""

OUT_LIMIT: Final = 1024 * 1024
"""Bytes of a message from a sandbox: a request with its body in base64, or a result beside what the console took."""


class CallFrame(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="call"):
    """Run a handler. `arguments` is JSON, `secrets` are the stand-ins by name."""

    source: str
    arguments: str
    secrets: dict[str, str]


class CheckFrame(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="check"):
    """Read a handler."""

    source: str
    allowed: tuple[str, ...]


class AnswerFrame(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="answer", rename="camel", omit_defaults=True):
    """Answer what a handler asked: of `ctx.fetch` with a response, whose body is `text` or `bytes` in base64; of `ctx.hmac` with `text`."""

    id: int
    ok: bool
    message: str = ""
    status: int = 0
    status_text: str = ""
    url: str = ""
    redirected: bool = False
    headers: list[tuple[str, str]] = []
    text: str | None = None
    bytes: str | None = None


class AskFrame(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="ask"):
    """A handler asks: to fetch, or to sign."""

    id: int
    what: str
    url: str = ""
    method: str = "GET"
    headers: list[tuple[str, str]] = []
    body: str | None = None
    redirect: str = "follow"
    timeout: float | None = 0
    name: str = ""
    data: str = ""
    algorithm: str = ""
    encoding: str = ""


class DoneFrame(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="done"):
    """The call is over: with `value`, which is JSON, or with a `message` and its kind. `console` has what it wrote, `lines` how many."""

    value: str = ""
    kind: str = ""
    message: str = ""
    console: list[tuple[str, str]] = []
    lines: int = 0


class RestFrame(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="rest"):
    """The process can take another call. `clean`: the last one left nothing behind in it."""

    clean: bool


class CheckedFrame(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="checked"):
    """A handler was read: `problem` is empty, or says as JSON why it cannot run."""

    problem: str


Incoming = AskFrame | DoneFrame | RestFrame | CheckedFrame
DECODER: Final = msgspec.json.Decoder(Incoming)
