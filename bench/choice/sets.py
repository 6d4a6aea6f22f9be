"""The sets of the measurement: functions that are known, requests, small talk and follow-ups, and how an answer is judged.

Owns the files beside it. Nothing is tuned on `held_out` and `unseen`. `unseen` is the younger one: it was written to ask two versions of
the product what neither had seen.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from voxbridge.services.tools.packs.everyday import calculator
from voxbridge.services.tools.registry import BUILT_IN, load
from voxbridge.shared.agents.functions import Function, with_names
from voxbridge.shared.errors import VoxbridgeError

FOLDER: Final = Path(__file__).parent
Name = Literal["held_out", "unseen", "validation", "development"]
CLOSE: Final = 1e-6


class Card(msgspec.Struct, frozen=True):
    """A function that the installation does not have."""

    name: str
    description: str
    category: str
    parameters: dict[str, Any] = {}
    required: tuple[str, ...] = ()
    utterances: tuple[str, ...] = ()
    listed: bool = True

    def function(self) -> Function:
        """Return its entry of the catalogue."""
        schema = {"type": "object", "properties": self.parameters, "required": list(self.required)}
        return Function(
            name=self.name,
            description=self.description,
            parameters=schema,
            category=self.category,
            utterances=self.utterances,
            listed=self.listed,
        )


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request, and what its arguments must hold. `slip` marks one as a recogniser mishears it."""

    say: str
    args: dict[str, str | int | float] = {}
    slip: bool = False


class FollowUp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request after turns (what the user said, the function called, its arguments, what was said aloud). An empty `tool` wants words."""

    before: tuple[tuple[str, str, dict[str, Any], str], ...]
    say: str
    tool: str
    args: dict[str, str | int | float] = {}


@cache
def functions() -> tuple[Function, ...]:
    """Return the functions that are known: those of the installation, and the cards of those that it does not have."""
    built_in = tuple(tool.card() for tool in load(BUILT_IN, timeout_s=30).values())
    cards = msgspec.yaml.decode((FOLDER / "cards.yaml").read_bytes(), type=list[Card])
    names = {function.name for function in built_in}
    return (*built_in, *(card.function() for card in cards if card.name not in names))


def known(names: frozenset[str]) -> tuple[Function, ...]:
    """Return the functions of some names, so that a version that knows more can be compared with an older one."""
    return tuple(function for function in functions() if function.name in names)


@cache
def named_functions() -> tuple[Function, ...]:
    """Return the functions as a session of the made-up installation has them: arguments that name something are enums of what exists."""
    things = msgspec.yaml.decode((FOLDER / "installation.yaml").read_bytes(), type=dict[str, dict[str, list[str]]])
    return tuple(with_names(function, things.get(function.name, {})) for function in functions())


def requests(name: Name) -> list[tuple[str, Request]]:
    """Return the requests of a set, each with the function that it wants."""
    found = msgspec.yaml.decode((FOLDER / f"{name}.yaml").read_bytes(), type=dict[str, list[Request]])
    return [(function, request) for function, asked in found.items() for request in asked]


def talk(name: Name) -> list[str]:
    """Return the small talk of a set."""
    return msgspec.yaml.decode((FOLDER / f"{name}_talk.yaml").read_bytes(), type=list[str])


def wishes(name: Name) -> list[str]:
    """Return the wishes of a set that no function serves; the development set has none."""
    path = FOLDER / f"{name}_wishes.yaml"
    return msgspec.yaml.decode(path.read_bytes(), type=list[str]) if path.exists() else []


def follow_ups(name: Name) -> list[FollowUp]:
    """Return the follow-ups of a set."""
    return msgspec.yaml.decode((FOLDER / f"{name}_follow_ups.yaml").read_bytes(), type=list[FollowUp])


def fits(wanted: dict[str, str | int | float], given: dict[str, Any]) -> bool:
    """Return whether arguments hold what is wanted: a number is equal, a text has one of the alternatives between `|` in it, an empty one
    is absent. `result` is what the expression of a sum comes to."""
    return all(_result(given, value) if name == "result" else _fits(value, given.get(name)) for name, value in wanted.items())


def _fits(wanted: str | float, given: object) -> bool:
    if isinstance(wanted, int | float):
        return isinstance(given, int | float) and abs(given - wanted) < CLOSE
    if not wanted:
        return given in (None, "", [], {})
    text = _plain(json.dumps(given, ensure_ascii=False))
    return given is not None and any(_plain(option) in text for option in wanted.split("|"))


def _plain(text: str) -> str:
    return text.lower().replace(" ", "").replace("_", "").replace("-", "").replace("/", "")


def _result(given: dict[str, Any], wanted: str | float) -> bool:
    try:
        value, _ = calculator.evaluate(str(given.get("expression", "")))
    except VoxbridgeError:
        return False
    return abs(float(value) - float(wanted)) < CLOSE
