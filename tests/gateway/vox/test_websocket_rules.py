"""RFC 6455 against the live gateway, in raw bytes that no library would send: framing, fragments, control frames, UTF-8, closing.

Each case is the data that one socket sends after its handshake, and the expected end: `OPEN` means that a later ping is answered, a number
is the code of the close frame that comes. One gateway process serves all cases.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import pytest

from tests.eventually import BOUND_S
from tests.gateway.conftest import Running
from tests.gateway.vox.raw import close, frame, head, received, text, upgraded
from voxbridge.services.gateway.door import transport
from voxbridge.services.gateway.door.transport import FIRST_LIMIT
from voxbridge.shared.websocket import BINARY, CLOSE, FRAGMENTS_LIMIT, PING, PONG, TEXT

OPEN: Final = 0
CONT: Final = 0
_END: Final = b"the end of the case"


class Case(NamedTuple):
    """A case. `parts` are written one after another, each in a segment of its own."""

    name: str
    parts: tuple[bytes, ...]
    ends: int


def case(name: str, ends: int, *parts: bytes) -> Case:
    return Case(name, parts, ends)


def bytewise(data: bytes) -> tuple[bytes, ...]:
    return tuple(data[at : at + 1] for at in range(len(data)))


def framing() -> Iterable[Case]:
    for opcode, name in ((TEXT, "text"), (BINARY, "binary")):
        for size in (0, 1, 125, 126, 127, 128, 65_535, 65_536, FIRST_LIMIT):
            whole = frame(opcode, b"*" * size)
            yield case(f"{name} of {size} bytes", OPEN, whole)
            yield case(f"{name} of {size} bytes in two segments", OPEN, whole[: len(whole) // 2], whole[len(whole) // 2 :])
        yield case(f"{name} byte by byte", OPEN, *bytewise(frame(opcode, b"*" * 130)))
        yield case(f"ten of {name} in one segment", OPEN, frame(opcode, b"*" * 20) * 10)


def lengths() -> Iterable[Case]:
    for opcode, name in ((TEXT, "text"), (BINARY, "binary"), (PING, "ping")):
        yield case(f"{name} of 5 bytes with a length of 16 bits", 1002, head(opcode, 5, bits=16))
        yield case(f"{name} of 5 bytes with a length of 64 bits", 1002, head(opcode, 5, bits=64))
    yield case("125 bytes with a length of 16 bits", 1002, head(BINARY, 125, bits=16))
    yield case("65,535 bytes with a length of 64 bits", 1002, head(BINARY, 65_535, bits=64))
    yield case("a length whose first bit is set", 1002, head(BINARY, 2**63, bits=64))
    yield case("the longest length", 1009, head(BINARY, 2**63 - 1, bits=64))
    yield case("a head that asks for more than a first message may have", 1009, head(BINARY, FIRST_LIMIT + 1, bits=64))
    yield case("the same, byte by byte", 1009, *bytewise(head(TEXT, FIRST_LIMIT + 1, bits=64)))
    half = frame(BINARY, bytes(FIRST_LIMIT // 2), fin=False)
    yield case("fragments that are too much together", 1009, half, head(CONT, FIRST_LIMIT // 2 + 1, bits=64))
    yield case("fragments as much as may be", OPEN, half, frame(CONT, bytes(FIRST_LIMIT // 2)))


def reserved() -> Iterable[Case]:
    for bits in range(1, 8):
        for opcode, name in ((TEXT, "text"), (BINARY, "binary"), (PING, "ping"), (CLOSE, "close")):
            yield case(f"reserved bits {bits} on {name}, the first byte alone", 1002, frame(opcode, b"", rsv=bits)[:1])
    yield case("a reserved bit on a continuation", 1002, frame(TEXT, b"a", fin=False), frame(CONT, b"b", rsv=4)[:1])
    for opcode in (*range(3, 8), *range(11, 16)):
        yield case(f"opcode {opcode}, the first byte alone", 1002, frame(opcode, b"")[:1])
        yield case(f"opcode {opcode} with a payload, after a message", 1002, frame(TEXT, b"{}") + frame(opcode, b"payload"))
    for opcode, name in ((TEXT, "text"), (BINARY, "binary"), (PING, "ping"), (PONG, "pong"), (CLOSE, "close"), (CONT, "continuation")):
        yield case(f"{name} without a mask", 1002, frame(opcode, b"", masked=False))


def control() -> Iterable[Case]:
    for opcode, name in ((PING, "ping"), (PONG, "pong")):
        yield case(f"{name} of 125 bytes", OPEN, frame(opcode, bytes(125)))
        yield case(f"{name} of 126 bytes, the head alone", 1002, head(opcode, 126, bits=16)[:2])
        yield case(f"{name} in fragments", 1002, frame(opcode, b"", fin=False)[:1])
        yield case(f"{name} byte by byte", OPEN, *bytewise(frame(opcode, b"four")))
        yield case(f"twenty of {name}", OPEN, frame(opcode, b"x") * 20)
    yield case("close of 126 bytes, the head alone", 1002, head(CLOSE, 126, bits=16)[:2])
    yield case("close in fragments", 1002, frame(CLOSE, b"", fin=False)[:1])


def fragments() -> Iterable[Case]:
    for opcode, name in ((TEXT, "text"), (BINARY, "binary")):
        first, last = frame(opcode, b"{", fin=False), frame(CONT, b"}")
        yield case(f"{name} in two", OPEN, first + last)
        yield case(f"{name} in two, byte by byte", OPEN, *bytewise(first + last))
        yield case(f"{name} in two with a ping between", OPEN, first, frame(PING, b"between"), last)
        yield case(f"{name} in two with a pong between", OPEN, first + frame(PONG, b"between") + last)
        yield case(f"{name} in empty ones", OPEN, frame(opcode, b"", fin=False) + frame(CONT, b"", fin=False) + frame(CONT, b""))
        yield case(f"{name} within {name}", 1002, first + frame(opcode, b"}"))
        yield case(f"a beginning of {name} within {name}", 1002, first + first)
        most = first + frame(CONT, b"", fin=False) * (FRAGMENTS_LIMIT - 2)
        yield case(f"{name} in as many as may be", OPEN, most + last)
        yield case(f"{name} in one more", 1008, most + frame(CONT, b"", fin=False) + last)
        yield case(f"a continuation after a whole {name}", 1002, frame(opcode, b"{}") + frame(CONT, b"{}"))
    yield case("a continuation of nothing", 1002, frame(CONT, b"x"))
    yield case("a continuation of nothing that goes on", 1002, frame(CONT, b"x", fin=False))
    yield case("a continuation after a message in two", 1002, frame(TEXT, b"{", fin=False) + frame(CONT, b"}") + frame(CONT, b""))


VALID: Final = (
    "Hello-µ@ßöäüàá-UTF-8!!", "κόσμε", "\0", "\x7f", "\x80", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\ufffd", "\uffff",
    "\U00010000", "\U0010ffff", "\ufeff", "日本語", "🎙️",
)  # fmt: skip
INVALID: Final = (
    "80", "bf", "80bf", "80bf80", "c3", "e0a0", "f09080", "c020", "e08020", "f0808020", "fe", "ff", "fefeffff",
    "c0af", "e080af", "f08080af", "f8808080af", "fc80808080af", "c1bf", "e09fbf", "f08fbfbf", "f887bfbfbf",
    "c080", "e08080", "f0808080", "f4908080", "f7bfbfbf", "f888808080", "fc8480808080",
    "eda080", "edadbf", "edb080", "edbfbf", "eda080edb080", "edafbfedbfbf", "cebae1bdb9cf83cebcceb5eda080656469746564",
)  # fmt: skip


def utf8() -> Iterable[Case]:
    for number, good in enumerate(VALID):
        encoded = good.encode()
        yield case(f"valid text {number}", OPEN, frame(TEXT, encoded))
        middle = len(encoded) // 2
        yield case(
            f"valid text {number} cut within a character", OPEN, frame(TEXT, encoded[:middle], fin=False), frame(CONT, encoded[middle:])
        )
    for digits in INVALID:
        bad = bytes.fromhex(digits)
        yield case(f"invalid text {digits}", 1007, frame(TEXT, bad))
        yield case(f"invalid text {digits} in fragments", 1007, frame(TEXT, b"a" + bad[:1], fin=False), frame(CONT, bad[1:] + b"z"))
        yield case(f"binary {digits}", OPEN, frame(BINARY, bad))
    yield case("an `end` with invalid text in a field that nobody reads", 1007, text(b'{"type":"end","junk":"\xff"}'))


def closing() -> Iterable[Case]:
    yield case("a close without a code", 1005, close(None))
    for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999):
        yield case(f"close {code}", code, close(code))
        yield case(f"close {code} with the longest reason", code, close(code, b"x" * 123))
    for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535):
        yield case(f"close {code}, which may not be sent", 1002, close(code))
    yield case("a close of one byte", 1002, frame(CLOSE, b"\x03"))
    yield case("a close whose reason is not UTF-8", 1007, close(1000, b"\xff\xfe"))
    yield case("a close byte by byte", 1000, *bytewise(close(1000, b"bye")))
    yield case("a close within a message in fragments", 1000, frame(TEXT, b"{", fin=False) + close(1000))
    yield case("a close and a message", 1000, close(1000) + text(b'{"type":"start","mode":"echo"}'))
    yield case("a close and a ping", 1000, close(1000) + frame(PING, b"late"))
    yield case("a close and what cannot be", 1000, close(1000) + b"\xff\xff\xff")
    yield case("two closes", 1001, close(1001) + close(1000))


SECTIONS: Final = (framing, lengths, reserved, control, fragments, utf8, closing)


async def test_every_frame_that_may_be_sent_is_taken_and_every_other_one_closes_with_its_code(running: Running) -> None:
    cases = [one for section in SECTIONS for one in section()]
    assert len(cases) > 300
    assert len({one.name for one in cases}) == len(cases)
    slots = asyncio.Semaphore(32)

    async def judged(one: Case) -> str:
        async with slots:
            ends = await ended(running, one)
        return "" if ends == one.ends else f"{one.name}: {ends}, and not {one.ends}"

    wrong = [found for found in await asyncio.gather(*(judged(one) for one in cases)) if found]
    assert not wrong, "\n".join(wrong)


async def ended(running: Running, one: Case) -> int:
    """Return the way in which the socket ends, after checking that its TCP connection ends with it."""
    async with upgraded(running) as (reader, writer), asyncio.timeout(BOUND_S):
        for part in one.parts:
            writer.write(part)
            if len(one.parts) > 1:
                await asyncio.sleep(0)  # sends a segment of its own, as far as a client can control that
        writer.write(frame(PING, _END))
        async for opcode, payload in received(reader):
            if opcode == CLOSE:
                assert await reader.read() == b""  # no data follows
                return int.from_bytes(payload[:2]) if payload else 1005
            if opcode == PONG and payload == _END:
                return OPEN
        return -1


async def test_pings_are_answered_with_their_payload_in_order(running: Running) -> None:
    async with upgraded(running) as (reader, writer), asyncio.timeout(BOUND_S):
        payloads = [bytes((size,)) * size for size in range(126)]
        writer.write(b"".join(frame(PING, payload) for payload in payloads))
        pongs = received(reader)
        assert [await anext(pongs) for _ in payloads] == [(PONG, payload) for payload in payloads]


@asynccontextmanager
async def closed_by_the_gateway(running: Running) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a socket to which the gateway sends its close frame."""
    async with upgraded(running) as (reader, writer), asyncio.timeout(BOUND_S):
        for _ in range(100):
            writer.write(text(b"?"))
        async for opcode, payload in received(reader):
            if opcode == CLOSE:
                assert int.from_bytes(payload[:2]) == 4009
                break
        yield reader, writer


async def test_after_its_own_close_the_gateway_takes_the_answer_that_follows_a_ping_in_one_segment(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "CLOSE_WAIT_S", 10 * BOUND_S)  # so that only an answer ends it
    async with closed_by_the_gateway(running) as (reader, writer):
        writer.write(frame(PING, b"one more") + text(b"and more") + close(4009))
        assert [one async for one in received(reader)] == [(PONG, b"one more")]


async def test_after_its_own_close_the_gateway_takes_no_message(running: Running) -> None:
    async with closed_by_the_gateway(running) as (reader, writer):
        writer.write(text(b'{"type":"start","mode":"echo"}') + close(1000))
        assert [one async for one in received(reader)] == []
    assert (await running.get("/api/sessions")).json()["sessions"] == []


async def test_what_comes_before_the_handshake_is_answered_cuts_the_client_off(running: Running) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    handshake = (
        f"GET /ws/vox HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    writer.write(handshake.encode() + text(b'{"type":"start","mode":"echo"}'))
    async with asyncio.timeout(BOUND_S):
        assert b" 101 " not in await reader.read()
    writer.close()
