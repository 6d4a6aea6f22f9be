"""The condition of one thing that a service needs: `ok`, `degraded` or `down`, and one sentence that says what to do.

Owns the words of health answers and of `/readyz`. Pure data.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

Level = Literal["ok", "degraded", "down"]
LEVELS: Final[tuple[Level, ...]] = ("ok", "degraded", "down")


class Condition(msgspec.Struct, frozen=True):
    """How it stands. `degraded` still serves; `down` does not. `detail` is for a person."""

    state: Level = "ok"
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether it serves."""
        return self.state != "down"


def worst(*conditions: Condition) -> Condition:
    """The worst of them; the first of those that are equally bad."""
    return max(conditions, key=lambda one: LEVELS.index(one.state), default=Condition())


def read(value: Any) -> Condition:
    """A condition from a health answer, which may be of another release: a truth value, or an object with a `state`."""
    if isinstance(value, dict) and value.get("state") in LEVELS:
        return Condition(value["state"], str(value.get("detail", "")))
    return Condition() if value is True else Condition("down")
