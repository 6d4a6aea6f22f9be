"""A measurement in a process of its own: its result, its last words when it fails, and its end when it takes too long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from bench import program


class Found(msgspec.Struct):
    """Result of the modules below."""

    ms: list[float]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], int]:
    """Write the module `measured`."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return (tmp_path / "measured.py").write_text


async def test_what_was_printed_last_is_the_result(measured: Callable[[str], int]) -> None:
    measured('import sys\nprint("halfway")\nprint(\'{"ms": [1.5, %s]}\' % sys.argv[1])\n')
    assert await program.result("measured", "2", kind=Found, within_s=30) == Found([1.5, 2.0])


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ('raise RuntimeError("There is no Chromium.")', "RuntimeError: There is no Chromium."),
        ('print("a plain line")', "a plain line"),
        ("", "measured said nothing"),
    ],
)
async def test_a_program_that_fails_is_told_by_its_last_words(measured: Callable[[str], int], code: str, words: str) -> None:
    measured(code)
    with pytest.raises(ValueError, match=words):
        await program.result("measured", kind=Found, within_s=30)


async def test_a_program_that_takes_too_long_is_ended(measured: Callable[[str], int]) -> None:
    measured("import time\ntime.sleep(600)\n")
    with pytest.raises(TimeoutError, match="measured was not done within 1 s"):
        await program.result("measured", kind=Found, within_s=1)
    assert not [child for child in psutil.Process().children() if "measured" in child.cmdline()]
