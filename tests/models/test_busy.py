"""Detection of a busy machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from voxbridge.services.models.processes import busy


@pytest.mark.parametrize(
    ("percent", "load", "said"),
    [(39.9, 50.0, False), (40.0, 0.0, True), (None, 2.9, False), (None, 3.0, True)],
)
def test_a_machine_is_busy_by_its_pressure_and_else_by_its_load(percent: float | None, load: float, said: bool) -> None:
    assert busy.is_busy(percent, load, 2) is said


def test_the_pressure_of_the_last_ten_seconds_is_read(tmp_path: Path) -> None:
    pressure = tmp_path / "cpu"
    pressure.write_text("some avg10=62.35 avg60=10.11 avg300=3.51 total=37227657\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
    assert busy.waited(pressure) == 62.35


@pytest.mark.parametrize("content", ["", "nothing known"])
def test_a_kernel_that_tells_nothing_is_no_error(tmp_path: Path, content: str) -> None:
    assert busy.waited(tmp_path / "missing") is None
    (tmp_path / "cpu").write_text(content)
    assert busy.waited(tmp_path / "cpu") is None
