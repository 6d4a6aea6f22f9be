from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.audio import frames
from voxbridge.shared.errors import Code, VoxbridgeError

U32 = st.integers(0, 2**32 - 1)
ROOM = frames.MAX_FRAME - frames.PREFIX_SIZE


def mic(pcm: bytes = b"\0\0", version: int = 1, kind: int = 1) -> bytes:
    return struct.pack("<BBHIII", version, kind, 0, 0, 5, 99) + pcm


@given(
    kind=st.sampled_from([frames.PCM16, frames.FLUSH]),
    generation=U32,
    sequence=U32,
    time_ms=U32,
    pcm=st.binary(max_size=64),
    flags=st.integers(0, 65_535),
)
def test_a_packed_frame_has_its_fields_at_the_offsets_of_the_protocol(
    kind: int, generation: int, sequence: int, time_ms: int, pcm: bytes, flags: int
) -> None:
    frame = frames.pack(kind, generation, sequence, time_ms, pcm, flags)
    assert frames.parse(frame) == (1, kind, flags, generation, sequence, time_ms)
    assert (frame[0], frame[1], frame[16:]) == (1, kind, pcm)
    assert [int.from_bytes(frame[a:b], "little") for a, b in ((2, 4), (4, 8), (8, 12), (12, 16))] == [flags, generation, sequence, time_ms]


def test_counters_and_times_wrap_at_32_bits() -> None:
    frame = frames.pack(frames.PCM16, 2**32, 2**32 + 1, 2**32 + 2)
    assert frames.parse(frame)[3:] == (0, 1, 2)
    stamped = frames.parse(frames.restamp(frame, 2**32 + 7, 2**32 + 9))
    assert (stamped.time_ms, stamped.generation) == (7, 9)


@given(frame=st.binary(min_size=16, max_size=80), time_ms=U32, position=U32)
def test_restamping_changes_the_time_and_the_position_and_nothing_else(frame: bytes, time_ms: int, position: int) -> None:
    stamped = frames.restamp(frame, time_ms, position)
    assert stamped[:4] + stamped[8:12] + stamped[16:] == frame[:4] + frame[8:12] + frame[16:]
    assert (frames.parse(stamped).time_ms, frames.parse(stamped).generation) == (time_ms, position)
    assert int.from_bytes(frames.said_behind(stamped), "little") == position


@given(
    st.one_of(
        st.binary(max_size=20),
        st.builds(mic, st.binary(max_size=4), st.integers(0, 2), st.integers(0, 3)),
        st.sampled_from([ROOM - 2, ROOM - 1, ROOM, ROOM + 1, ROOM + 2]).map(lambda size: mic(bytes(size))),
    )
)
def test_what_is_a_microphone_frame_is_told_as_by_the_check(frame: bytes) -> None:
    try:
        frames.check(frame)
    except VoxbridgeError:
        assert not frames.is_microphone(frame)
    else:
        assert frames.is_microphone(frame)


@pytest.mark.parametrize("size", [2, 640, ROOM])
def test_a_microphone_frame_within_the_bounds_is_taken(size: int) -> None:
    assert frames.check(mic(b"\1" * size)) == (1, 1, 0, 0, 5, 99)


@pytest.mark.parametrize(
    ("frame", "code", "field", "limit"),
    [
        (b"", Code.INVALID_ARGUMENT, "prefix", 16),
        (mic()[:15], Code.INVALID_ARGUMENT, "prefix", 16),
        (mic(b""), Code.INVALID_ARGUMENT, "pcm", 2),
        (mic(b"\0"), Code.INVALID_ARGUMENT, "pcm", None),
        (mic(b"\0" * 641), Code.INVALID_ARGUMENT, "pcm", None),
        (mic(b"\0" * (ROOM + 1)), Code.TOO_LARGE, "frame", 65_536),
        (mic(version=0), Code.INVALID_ARGUMENT, "version", 1),
        (mic(version=2), Code.INVALID_ARGUMENT, "version", 1),
        (mic(kind=0), Code.INVALID_ARGUMENT, "kind", 1),
        (mic(kind=2), Code.INVALID_ARGUMENT, "kind", 1),
    ],
)
def test_a_wrong_frame_is_refused_by_the_name_of_what_is_wrong(frame: bytes, code: Code, field: str, limit: int | None) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        frames.check(frame)
    assert (caught.value.code, caught.value.field, caught.value.limit) == (code, field, limit)
    assert not caught.value.retryable


@given(st.binary(max_size=100))
def test_no_bytes_raise_anything_but_a_typed_error(frame: bytes) -> None:
    try:
        found: str | None = f"version {frames.check(frame).version}"
    except VoxbridgeError as error:
        found = error.field
    assert found in ("version 1", "prefix", "version", "kind", "pcm")


def test_pcm_is_bounded_on_its_own_too() -> None:
    frames.check_pcm(ROOM)
    with pytest.raises(VoxbridgeError) as caught:
        frames.check_pcm(ROOM + 2)
    assert (caught.value.code, caught.value.limit) == (Code.TOO_LARGE, ROOM)


@pytest.mark.parametrize(
    ("time_ms", "now_ms", "age"),
    [
        (0, 0, 0),
        (100, 350, 250),
        (350, 100, 0),
        (2**32 - 50, 150, 200),
        (150, 2**32 - 50, 0),
        (0, 2**31 - 1, 2**31 - 1),
        (0, 2**31, 0),
        (2**32 - 1, 0, 1),
    ],
)
def test_age_is_counted_over_the_wrap_of_the_clock(time_ms: int, now_ms: int, age: int) -> None:
    assert frames.age_ms(time_ms, now_ms) == age
