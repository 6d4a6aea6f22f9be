"""Reading and writing frames, compared with a complete library."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from voxbridge.shared.websocket import BINARY, FRAGMENTS_LIMIT, OTHER, PING, TEXT, Cutter, Masks, Receiver, client_frame, server_frame

LIMIT = 100_000
SIZES = st.sampled_from([0, 1, 125, 126, 127, 640, 65_535, 65_536, 70_000])
FRAMES = st.builds(
    Frame,
    st.sampled_from([Opcode.TEXT, Opcode.BINARY, Opcode.PING, Opcode.PONG, Opcode.CONT, Opcode.CLOSE]),
    SIZES.flatmap(lambda size: st.just(bytes(i % 128 for i in range(size)))),
    st.booleans(),
).filter(lambda frame: frame.opcode in (0, 1, 2) or (frame.fin and len(frame.data) <= 125))
CUTS = st.lists(st.integers(0, 10**6), max_size=8)


def pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        yield data[start:end]


def read(frames: list[Frame]) -> tuple[list[tuple[int, bytes]], int]:
    """Return the messages of a server for these frames, and the code of the fault that ends them, or 0."""
    found: list[tuple[int, bytes]] = []
    message: tuple[int, bytes] | None = None
    for frame in frames:
        if frame.opcode >= Opcode.CLOSE:
            found.append((int(frame.opcode), bytes(frame.data)))
            continue
        if (frame.opcode == Opcode.CONT) is (message is None):
            return found, 1002
        begun = message or (int(frame.opcode), b"")
        message = begun[0], begun[1] + bytes(frame.data)
        if len(message[1]) > LIMIT:
            return found, 1009
        if frame.fin:
            found.append(message)
            message = None
    return found, 0


def code_of(receiver: Receiver) -> int:
    return receiver.fault.code if receiver.fault is not None else 0


@given(st.lists(FRAMES, max_size=6), CUTS)
def test_a_server_reads_the_same_wherever_the_bytes_are_cut(frames: list[Frame], cuts: list[int]) -> None:
    receiver = Receiver(limit=LIMIT)
    raw = b"".join(frame.serialize(mask=True) for frame in frames)
    found = [one for piece in pieces(raw, cuts) for one in receiver.receive(piece)]
    expected, code = read(frames)
    assert found == expected
    assert code_of(receiver) == code


@given(st.binary(max_size=300), CUTS)
def test_any_bytes_are_read_the_same_wherever_they_are_cut(data: bytes, cuts: list[int]) -> None:
    whole, cut = Receiver(limit=LIMIT), Receiver(limit=LIMIT)
    assert whole.receive(data) == [one for piece in pieces(data, cuts) for one in cut.receive(piece)]
    assert (whole.fault, whole.held) == (cut.fault, cut.held)


@given(st.lists(FRAMES, max_size=6), CUTS)
def test_a_client_finds_frames_wherever_the_bytes_are_cut(frames: list[Frame], cuts: list[int]) -> None:
    raw = [frame.serialize(mask=False) for frame in frames]
    cutter = Cutter(limit=LIMIT)
    found, expected, fragments = [one for piece in pieces(b"".join(raw), cuts) for one in cutter.cut(piece)], [], False
    for frame, bytes_ in zip(frames, raw, strict=True):
        simple = frame.fin and frame.opcode in (Opcode.TEXT, Opcode.BINARY) and not fragments
        expected.append((int(frame.opcode), bytes(frame.data)) if simple else (OTHER, bytes_))
        if not simple and frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            fragments = not frame.fin
    assert found == expected


@pytest.mark.parametrize("make", [lambda: Receiver(limit=2**23).receive, lambda: Cutter(limit=2**23).cut])
def test_a_frame_that_comes_byte_by_byte_is_kept_once(make: Callable[[], Callable[[bytes], object]]) -> None:
    size = 4 * 1024 * 1024
    take = make()
    masked = 0x80 if isinstance(getattr(take, "__self__", None), Receiver) else 0
    tracemalloc.start()
    try:
        take(bytes((0x82, 127 | masked)) + size.to_bytes(8) + bytes(size // 2))
        tracemalloc.reset_peak()
        for _ in range(2_000):
            assert not take(b"\0")
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()


def test_what_a_server_waits_for_is_held_and_nothing_else() -> None:
    receiver = Receiver(limit=LIMIT)
    raw = client_frame(BINARY, bytes(1_000), b"mask")
    assert raw is not None
    receiver.receive(raw + raw[:600])
    assert receiver.held == 600
    receiver.receive(raw[600:])
    assert receiver.held == 0
    receiver.receive(Frame(Opcode.TEXT, b"abc", fin=False).serialize(mask=True))
    assert receiver.held == 3
    receiver.receive(b"\xff")
    assert (receiver.fault is not None, receiver.held) == (True, 0)
    assert receiver.receive(raw) == []


def test_a_message_has_so_many_frames_and_so_many_bytes() -> None:
    empty = Frame(Opcode.CONT, b"", fin=False).serialize(mask=True)
    receiver = Receiver(limit=LIMIT)
    receiver.receive(Frame(Opcode.TEXT, b"", fin=False).serialize(mask=True) + empty * (FRAGMENTS_LIMIT - 1))
    assert code_of(receiver) == 0
    receiver.receive(empty[:1])
    assert code_of(receiver) == 1008
    receiver = Receiver(limit=100)
    receiver.receive(Frame(Opcode.TEXT, bytes(100), fin=False).serialize(mask=True) + Frame(Opcode.CONT, b"x").serialize(mask=True))
    assert code_of(receiver) == 1009


def test_the_limit_of_a_server_may_be_changed_between_messages() -> None:
    receiver = Receiver(limit=100)
    receiver.limit = 1_000
    assert receiver.receive(Frame(Opcode.PING, b"").serialize(mask=True) + Frame(Opcode.BINARY, bytes(1_000)).serialize(mask=True)) == [
        (PING, b""),
        (BINARY, bytes(1_000)),
    ]


def test_without_simple_every_frame_is_for_the_library() -> None:
    cutter = Cutter(limit=LIMIT)
    raw = Frame(Opcode.TEXT, b"hello").serialize(mask=False)
    assert cutter.cut(raw + raw, simple=False) == [(OTHER, raw), (OTHER, raw)]
    assert cutter.cut(raw) == [(TEXT, b"hello")]


def test_a_message_in_the_middle_of_a_fragmented_one_is_for_the_library_which_refuses_it() -> None:
    first, middle, last = (
        frame.serialize(mask=False) for frame in (Frame(Opcode.TEXT, b"a", fin=False), Frame(Opcode.BINARY, b"b"), Frame(Opcode.CONT, b"c"))
    )
    assert Cutter(limit=LIMIT).cut(first + middle + last) == [(OTHER, first), (OTHER, middle), (OTHER, last)]


@pytest.mark.parametrize("size", [LIMIT + 1, 2**40])
def test_a_frame_above_the_limit_is_not_waited_for_and_the_library_gets_all_that_follows(size: int) -> None:
    cutter = Cutter(limit=LIMIT)
    head = bytes((0x82, 127)) + size.to_bytes(8)
    assert cutter.cut(head) == [(OTHER, head)]
    assert cutter.cut(b"more") == [(OTHER, b"more")]


def test_a_frame_at_the_limit_is_waited_for() -> None:
    cutter = Cutter(limit=LIMIT)
    raw = Frame(Opcode.BINARY, bytes(LIMIT)).serialize(mask=False)
    assert cutter.cut(raw[:-1]) == []
    assert cutter.cut(raw[-1:]) == [(BINARY, bytes(LIMIT))]


def test_a_frame_that_a_server_masked_is_for_the_library() -> None:
    raw = Frame(Opcode.BINARY, b"x").serialize(mask=True)
    assert Cutter(limit=LIMIT).cut(raw) == [(OTHER, raw)]


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_frames_are_written_as_the_library_writes_them(opcode: int, size: int) -> None:
    payload = bytes(number % 128 for number in range(size))
    assert server_frame(opcode, payload) == Frame(Opcode(opcode), payload).serialize(mask=False)
    mine = client_frame(opcode, payload, b"\x01\x02\x03\x04")
    if size > 65_535:
        assert mine is None
        return
    assert mine is not None
    assert Receiver(limit=LIMIT).receive(mine) == [(opcode, payload)]
    library = Frame(Opcode(opcode), payload).serialize(mask=True)
    head = len(library) - size - 4
    assert mine[:head] == library[:head]


def test_masks_are_four_bytes_and_do_not_repeat() -> None:
    masks = Masks()
    taken = [masks.take() for _ in range(3_000)]
    assert {len(mask) for mask in taken} == {4}
    assert len(set(taken)) > 2_990
