"""Coverage-guided inputs for a parser: an input that reaches a new edge in the code is kept and mutated again.

Owns the loop, the mutations, and the time limit of an input. The properties to check are those of `targets`.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Final

LONGEST: Final = 4_096
"""Most bytes of an input."""
HANG_S: Final = 10
"""Seconds after which an input counts as hanging."""
_EDGES: Final = (0, 1, 2, 0x7D, 0x7E, 0x7F, 0x80, 0x81, 0x82, 0x88, 0x89, 0xFE, 0xFF)
_NUMBERS: Final = (b"0", b"-1", b"1", b"65535", b"65536", b"2147483648", b"9223372036854775808", b"1e999", b"-0")

Edges = set[tuple[int, int, int]]


class Hang(Exception):
    """An input exceeded the time limit."""


class Found(Exception):
    """An input that broke its parser."""

    def __init__(self, data: bytes, why: BaseException) -> None:
        super().__init__(f"{type(why).__name__}: {why} for {data!r}")
        self.data = data


class Coverage:
    """Edges from line to line executed in the code of these files."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = frozenset(files)
        self._known: dict[CodeType, bool] = {}
        self.edges: Edges = set()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Trace while the block runs."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def _called(self, frame: FrameType, _event: str, _arg: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        known = self._known.get(code)
        if known is None:
            known = self._known[code] = code.co_filename in self._files
        if not known:
            return None
        last, number, edges = 0, id(code), self.edges

        def line(frame: FrameType, event: str, _arg: Any) -> Callable[..., Any]:
            nonlocal last
            if event == "line":
                edges.add((number, last, frame.f_lineno))
                last = frame.f_lineno
            return line

        return line


def checked(check: Callable[[bytes], None], data: bytes) -> None:
    """Check one input; raises `Found` for any exception and for a hang."""

    def late(*_: Any) -> None:
        raise Hang(f"more than {HANG_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(HANG_S)
    try:
        check(data)
    except BaseException as error:
        raise Found(data, error) from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run(
    check: Callable[[bytes], None], corpus: Sequence[bytes], words: Sequence[bytes], files: Sequence[str], *, seconds: float, seed: int
) -> tuple[int, list[bytes]]:
    """Mutate inputs for so many seconds. Return the number of inputs tried, and those with edges that none of `corpus` has."""
    dice, coverage = random.Random(seed), Coverage(files)
    kept, new, tried = list(corpus), [], 0
    with coverage.watched():
        for data in corpus:
            checked(check, data)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            data = changed(dice, kept, words)
            before = len(coverage.edges)
            checked(check, data)
            tried += 1
            if len(coverage.edges) > before:
                kept.append(data)
                new.append(data)
    return tried, new


def changed(dice: random.Random, kept: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Return one of the kept inputs with a few mutations."""
    data = bytearray(dice.choice(kept))
    for _ in range(1 << dice.randrange(4)):
        at = dice.randrange(len(data) + 1)
        end = min(len(data), at + dice.randrange(1, 17))
        match dice.randrange(8):
            case 0 if data:
                data[at % len(data)] = dice.choice(_EDGES)
            case 1 if data:
                data[at % len(data)] ^= 1 << dice.randrange(8)
            case 2:
                del data[at:end]
            case 3:
                data[at:at] = dice.choice(words)
            case 4:
                data[at:at] = data[at:end] * dice.choice((1, 2, 16, 200))
            case 5:
                other = dice.choice(kept)
                begin = dice.randrange(len(other) + 1)
                data[at:end] = other[begin : begin + dice.randrange(1, 65)]
            case 6:
                data[at:end] = dice.choice(_NUMBERS)
            case _:
                data[at:at] = dice.randbytes(dice.randrange(1, 9))
    return bytes(data[:LONGEST])
