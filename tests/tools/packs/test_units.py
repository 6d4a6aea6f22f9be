"""Units of measure: amounts are converted, and what cannot be, or means two units, is refused."""

from __future__ import annotations

import pytest

from voxbridge.services.tools.packs.utilities import units
from voxbridge.shared.errors import VoxbridgeError


@pytest.mark.parametrize(
    ("amount", "source", "target", "value"),
    [
        *(
            (100, "fahrenheit", "celsius", 37.77777778),
            (-40, "°C", "°F", -40),
            (1, "square metre", "square feet", 10.76391042),
            (60, "MPH", "km/h", 96.56064),
        ),
        *(
            (1, "KB", "bytes", 1000),
            (1, "m²", "cm^2", 10_000),
            (2, "cups", "ml", 473.176473),
            (1, "stone", "pounds", 14),
            (0, "degrees celsius", "kelvin", 273.15),
        ),
    ],
)
def test_amounts_are_converted(amount: float, source: str, target: str, value: float) -> None:
    assert units.converted(amount, source, target)["value"] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(("source", "target"), [("Miles", "miles"), ("KM", "km"), ("Lbs", "lbs"), ("F", "f"), ("L", "l")])
def test_a_unit_that_is_one_in_any_letters_is_not_asked_back(source: str, target: str) -> None:
    assert units.converted(3, source, target)["value"] == 3


@pytest.mark.parametrize(("source", "target"), [("KB", "kb"), ("mb", "MB"), ("GB", "gb"), ("tb", "TB")])
def test_a_unit_that_is_another_in_other_letters_is_asked_back(source: str, target: str) -> None:
    with pytest.raises(VoxbridgeError, match="Write out the one that is meant"):
        units.converted(3, source, target)


def test_amounts_that_cannot_be_are_refused() -> None:
    for amount, source, target in ((1, "kg", "m"), (float("nan"), "m", "km"), (1e308, "light years", "nanometers")):
        with pytest.raises(VoxbridgeError):
            units.converted(amount, source, target)
