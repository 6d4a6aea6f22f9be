"""The process of a sandbox: takes messages from one descriptor and runs what they say, one call at a time.

Forked from `voxbridge.services.tools.sandbox.zygote`, whose contexts are loaded already. It enters the jail before it reads a word of a
handler. Owns nothing that lasts: it is killed from outside at any moment, and that ends only its own call.
"""

from __future__ import annotations

import os
import select
from typing import Final

import msgspec

from voxbridge.services.tools.sandbox import frames, jail
from voxbridge.services.tools.sandbox.engine import Engine, Failed, QuickJs

CHANNEL: Final = 3
"""Descriptor of the socket to the tools service."""

_CALL_OVER: Final = -2


class Out:
    """The way out: writes each message with its length."""

    def __call__(self, text: str) -> None:
        """Write a message; the end of the process where nobody reads."""
        payload = text.encode("utf-8", "surrogatepass" if text.isascii() else "replace")
        data = memoryview(frames.HEAD.pack(len(payload)) + payload)
        try:
            while data:
                data = data[os.write(CHANNEL, data) :]
        except OSError:
            os._exit(0)


def serve(parent: int, running: Engine, checking: QuickJs, out: Out) -> None:
    """Enter the jail and take messages until the other side is gone."""
    jail.enter(parent)
    out('{"op":"rest","clean":true}')
    poll = select.poll()
    poll.register(CHANNEL, select.POLLIN)
    while True:
        text = _read()
        if text.startswith('{"op":"check"'):
            out(_checked(checking, text))
            continue
        _run(running, "message", text)
        while (left := _rest(running)) != _CALL_OVER:
            if left < 0 or poll.poll(left):
                _run(running, "message", _read())
            else:
                _run(running, "timers")
        out('{"op":"rest","clean":true}' if _clean(running) else '{"op":"rest","clean":false}')


def _run(engine: Engine, what: str, text: str = "") -> None:
    try:
        engine.call(what, text)
        engine.run()
    except Failed as error:
        _give_up(engine, str(error))


def _rest(engine: Engine) -> float:
    try:
        return float(engine.call("rest"))
    except Failed as error:
        _give_up(engine, str(error))
        return float(_CALL_OVER)


def _clean(engine: Engine) -> bool:
    try:
        return bool(engine.call("clean"))
    except Failed:
        return False


def _give_up(engine: Engine, why: str) -> None:
    """Say how the call ended, by the script or, where that cannot, without it; the process takes no other."""
    try:
        engine.call("failed", why)
    except Failed:
        Out()(msgspec.json.encode({"op": "done", "kind": "engine", "message": why}).decode())
    Out()('{"op":"rest","clean":false}')
    os._exit(0)


def _checked(engine: QuickJs, text: str) -> str:
    try:
        problem = engine.check(text)
    except Failed as error:
        problem = msgspec.json.encode({"identifier": "", "why": f"it cannot be read: {error}"}).decode()
    return msgspec.json.encode(frames.CheckedFrame(problem=problem)).decode()


def _read() -> str:
    (size,) = frames.HEAD.unpack(_exactly(frames.HEAD.size))
    if size > frames.IN_LIMIT:
        os._exit(1)
    return _exactly(size).decode("utf-8", "replace")


def _exactly(size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = os.read(CHANNEL, min(size - len(parts), 65_536))
        if not part:
            os._exit(0)
        parts += part
    return bytes(parts)
