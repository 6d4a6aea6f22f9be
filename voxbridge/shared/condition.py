"""The condition of one thing that a service needs: `ok`, `degraded` or `down`, and one sentence that says what to do.

Owns the words of health answers and of `/readyz`. Pure data.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

Level = Literal["ok", "degraded", "down"]
LEVELS: Final[tuple[Level, ...]] = ("ok", "degraded", "down")


class Condition(msgspec.Struct, frozen=True):
    """State of a dependency. `degraded` still serves; `down` does not. `detail` is for a person."""

    state: Level = "ok"
    detail: str = ""

    @property
    def ok(self) -> bool:
        """True unless it is down."""
        return self.state != "down"


def worst(*conditions: Condition) -> Condition:
    """Return the worst condition; of equally bad ones the first."""
    return max(conditions, key=lambda one: LEVELS.index(one.state), default=Condition())


def read(value: Any) -> Condition:
    """Return the condition in a health answer, which may be of another release: a truth value, or an object with a `state`."""
    if isinstance(value, dict) and value.get("state") in LEVELS:
        return Condition(value["state"], str(value.get("detail", "")))
    return Condition() if value is True else Condition("down")
