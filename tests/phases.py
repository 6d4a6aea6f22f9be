"""Check by mypy that phases which cannot be are refused: the states of a core are typed so that these cannot be written down."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mypy import api

REPOSITORY = Path(__file__).parents[1]


def refused(folder: Path, head: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return the lines in which mypy finds an error, with the project's settings. `head` ends with the line that opens a function."""
    file = folder / "phases.py"
    file.write_text("\n".join([*head, *(f"    {line}" for line in lines)]) + "\n")
    told, errors, _ = api.run(["--config-file", str(REPOSITORY / "pyproject.toml"), "--no-pretty", str(file)])
    assert not errors
    numbers = {int(number) - len(head) for number in re.findall(r"phases\.py:(\d+): error", told)}
    assert all(number > 0 for number in numbers), told
    return [line for number, line in enumerate(lines, 1) if number in numbers]
