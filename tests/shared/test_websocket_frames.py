"""Cutting and writing frames, beside the library that knows the whole of the protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from shared.websocket_frames import BINARY, OTHER, TEXT, Cutter, Masks, client_frame, server_frame

LIMIT = 100_000
FRAMES = st.builds(
    Frame,
    st.sampled_from([Opcode.TEXT, Opcode.BINARY, Opcode.PING, Opcode.PONG, Opcode.CONT, Opcode.CLOSE]),
    st.sampled_from([0, 1, 125, 126, 127, 640, 65_535, 65_536, 70_000]).flatmap(lambda size: st.just(bytes(i % 251 for i in range(size)))),
    st.booleans(),
)


def written(frame: Frame, *, masked: bool) -> bytes:
    return frame.serialize(mask=masked)


def pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        yield data[start:end]


def expected(frames: list[Frame], raw: list[bytes]) -> list[tuple[int, bytes]]:
    found, fragments = [], False
    for frame, bytes_ in zip(frames, raw, strict=True):
        if frame.fin and frame.opcode in (Opcode.TEXT, Opcode.BINARY) and not fragments:
            found.append((int(frame.opcode), bytes(frame.data)))
            continue
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            fragments = not frame.fin
        found.append((OTHER, bytes_))
    return found


@given(
    st.lists(small := FRAMES.filter(lambda frame: len(frame.data) <= 125 or frame.opcode in (0, 1, 2)), max_size=6),
    st.lists(st.integers(0, 10**6), max_size=8),
    st.booleans(),
)
def test_frames_are_found_wherever_the_bytes_are_cut(frames: list[Frame], cuts: list[int], masked: bool) -> None:
    valid = [frame for frame in frames if frame.fin or frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)]
    raw = [written(frame, masked=masked) for frame in valid]
    cutter = Cutter(masked=masked, limit=LIMIT)
    found = [one for piece in pieces(b"".join(raw), cuts) for one in cutter.cut(piece)]
    assert found == expected(valid, raw)


def test_without_simple_every_frame_is_for_the_library() -> None:
    cutter = Cutter(masked=True, limit=LIMIT)
    raw = written(Frame(Opcode.TEXT, b"hello"), masked=True)
    assert cutter.cut(raw + raw, simple=False) == [(OTHER, raw), (OTHER, raw)]
    assert cutter.cut(raw) == [(TEXT, b"hello")]


def test_a_message_in_the_middle_of_a_fragmented_one_is_for_the_library_which_refuses_it() -> None:
    cutter = Cutter(masked=False, limit=LIMIT)
    first, middle, last = (
        written(frame, masked=False)
        for frame in (Frame(Opcode.TEXT, b"a", fin=False), Frame(Opcode.BINARY, b"b"), Frame(Opcode.CONT, b"c"))
    )
    assert cutter.cut(first + middle + last) == [(OTHER, first), (OTHER, middle), (OTHER, last)]


@pytest.mark.parametrize("size", [LIMIT + 1, 2**40])
def test_a_frame_above_the_limit_is_not_waited_for_and_the_library_gets_all_that_follows(size: int) -> None:
    cutter = Cutter(masked=True, limit=LIMIT)
    head = bytes((0x82, 0xFF)) + size.to_bytes(8) + b"mask"
    assert cutter.cut(head) == [(OTHER, head)]
    assert cutter.cut(b"more") == [(OTHER, b"more")]


def test_a_frame_at_the_limit_is_waited_for() -> None:
    cutter = Cutter(masked=True, limit=LIMIT)
    raw = written(Frame(Opcode.BINARY, bytes(LIMIT)), masked=True)
    assert cutter.cut(raw[:-1]) == []
    assert cutter.cut(raw[-1:]) == [(BINARY, bytes(LIMIT))]


@pytest.mark.parametrize("masked", [True, False])
def test_a_frame_masked_the_wrong_way_is_for_the_library(masked: bool) -> None:
    cutter = Cutter(masked=masked, limit=LIMIT)
    raw = written(Frame(Opcode.BINARY, b"x"), masked=not masked)
    assert cutter.cut(raw) == [(OTHER, raw)]


@pytest.mark.parametrize("size", [0, 125, 126, 65_535])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_frames_are_written_as_the_library_writes_them(opcode: int, size: int) -> None:
    payload = bytes(number % 256 for number in range(size))
    assert server_frame(opcode, payload) == Frame(Opcode(opcode), payload).serialize(mask=False)
    mine = client_frame(opcode, payload, b"\x01\x02\x03\x04")
    assert mine is not None
    assert Cutter(masked=True, limit=LIMIT).cut(mine) == [(opcode, payload)]
    library = Frame(Opcode(opcode), payload).serialize(mask=True)
    head = len(library) - size - 4
    assert mine[:head] == library[:head]


def test_longer_messages_are_left_to_the_library() -> None:
    assert server_frame(BINARY, bytes(65_536)) is None
    assert client_frame(TEXT, bytes(65_536), b"mask") is None


def test_masks_are_four_bytes_and_do_not_repeat() -> None:
    masks = Masks()
    taken = [masks.take() for _ in range(3_000)]
    assert {len(mask) for mask in taken} == {4}
    assert len(set(taken)) > 2_990
