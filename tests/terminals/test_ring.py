"""The ring of a terminal's last bytes: nothing is lost or doubled by a kill between any two of its steps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.draws import dice
from voxbridge.services.terminals import ring as rings
from voxbridge.services.terminals.ring import Keyframe, Ring


class Cut(Exception):
    """A kill, as far as memory shows it."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reads, writes = os.pipe()
    os.set_blocking(reads, False)
    yield reads, writes
    os.close(reads)
    os.close(writes)


def feed(ring: Ring, pipe: tuple[int, int], data: bytes) -> bytes:
    """Write some bytes, and read them into the ring."""
    os.write(pipe[1], data)
    found = b""
    while len(found) < len(data):
        found += ring.read_from(pipe[0])
    return found


def test_what_was_read_is_there_for_a_successor(tmp_path: Path, pipe: tuple[int, int]) -> None:
    ring = Ring(tmp_path / "r", 1)
    assert feed(ring, pipe, b"hello") == b"hello"
    assert ring.read_from(pipe[0]) == b""
    ring.close()
    again = Ring(tmp_path / "r", 1)
    assert (again.count, again.since(0), again.since(3), again.since(6)) == (5, b"hello", b"lo", None)
    again.close()


def test_another_start_of_the_program_begins_anew(tmp_path: Path, pipe: tuple[int, int]) -> None:
    ring = Ring(tmp_path / "r", 1)
    feed(ring, pipe, b"hello")
    ring.keep(Keyframe(5, 80, 24, b"frame"))
    ring.close()
    again = Ring(tmp_path / "r", 2)
    assert (again.count, again.since(0), again.keyframe()) == (0, b"", None)
    again.close()


@pytest.mark.parametrize("step", ["_clear", "_advance"])
def test_a_kill_between_reading_and_counting_loses_nothing(
    tmp_path: Path, pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    chance = dice(f"kills of a ring {step}")
    ring, written = Ring(tmp_path / "r", 1), b""
    for _ in range(120):  # more than once around
        data = bytes(chance.choices(range(0x20, 0x7F), k=chance.randint(1, 60_000)))
        if chance.random() < 0.3:
            with monkeypatch.context() as killed:
                killed.setattr(Ring, step, _cut)
                with pytest.raises(Cut):
                    feed(ring, pipe, data)
            left = _rest(pipe[0])
            ring.close()
            ring = Ring(tmp_path / "r", 1)
            written += data[: len(data) - len(left)]
            assert ring.count == len(written)
            data = left
            if not data:
                continue
        assert feed(ring, pipe, data) == data
        written += data
    assert len(written) > rings.SIZE
    assert ring.since(ring.count - 1_500_000) == written[-1_500_000:]
    assert ring.since(0) is None
    ring.close()


def _cut(*_: object) -> None:
    raise Cut


def _rest(reads: int) -> bytes:
    """Take back what a killed reader left in the pipe."""
    try:
        return os.read(reads, 1 << 20)
    except BlockingIOError:
        return b""


def test_a_keyframe_that_is_half_written_leaves_the_one_before(tmp_path: Path, pipe: tuple[int, int]) -> None:
    ring = Ring(tmp_path / "r", 1)
    feed(ring, pipe, b"0123456789")
    assert ring.keep(Keyframe(5, 80, 24, b"the first"))
    assert ring.keep(Keyframe(10, 80, 24, b"the second"))
    assert ring.keyframe() == Keyframe(10, 80, 24, b"the second")
    ring.close()
    content = (tmp_path / "r").read_bytes()
    (tmp_path / "r").write_bytes(content.replace(b"the second", b"the sec\0\0\0"))
    again = Ring(tmp_path / "r", 1)
    assert again.keyframe() == Keyframe(5, 80, 24, b"the first")
    assert again.keep(Keyframe(10, 90, 20, b"the third"))
    assert again.keyframe() == Keyframe(10, 90, 20, b"the third")
    assert not again.keep(Keyframe(10, 80, 24, b"x" * (rings.KEYFRAME_LIMIT + 1)))
    again.close()


def test_a_keyframe_that_the_bytes_do_not_reach_is_none(tmp_path: Path, pipe: tuple[int, int]) -> None:
    ring = Ring(tmp_path / "r", 1)
    ring.keep(Keyframe(0, 80, 24, b"old"))
    for _ in range(rings.SIZE // 50_000 + 1):
        feed(ring, pipe, b"x" * 50_000)
    assert ring.keyframe() is None
    ring.close()
