"""Units of measure as people say them: amounts are converted, and what cannot be, or means two units, is refused."""

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


@pytest.mark.parametrize(
    ("amount", "source", "target", "value"),
    [
        (1, "MB", "Mb", 8),
        (1, "Mb", "kB", 125),
        (1, "kilo", "g", 1000),
        (36, "kilometres an hour", "m/s", 10),
        (1, "nautical mile", "m", 1852),
        (180, "degrees", "radians", 3.14159265),
        (1, "turn", "degrees", 360),
        (100, "degrees", "fahrenheit", 212),
        (1, "AU", "km", 149_597_870.7),
    ],
)
def test_units_are_read_as_they_are_said_and_never_taken_for_another(amount: float, source: str, target: str, value: float) -> None:
    assert units.converted(amount, source, target)["value"] == pytest.approx(value)


@pytest.mark.parametrize(
    ("amount", "source", "target", "said"),
    [
        (1, "light year", "km", "1 light year is about 9.461 trillion kilometers."),
        (5e9, "m", "km", "5 billion meters is 5,000,000 kilometers."),
        (1, "mW", "MW", "1 milliwatt is about 1 times 10 to the power of minus 9 megawatts."),
        (3, "feet", "m", "3 feet is 0.9144 meters."),
    ],
)
def test_amounts_are_said_in_words_that_a_voice_can_read(amount: float, source: str, target: str, said: str) -> None:
    assert units.converted(amount, source, target)["spoken"] == said
