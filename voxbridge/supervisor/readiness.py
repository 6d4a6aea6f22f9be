"""Readiness of the whole product, from the state of its parts, and the changes of it that are news. Pure.

Owns what counts as ready: every part runs and every probe of a part says so. Does not own the probes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum


class Phase(StrEnum):
    """State of one part, as it is shown."""

    WAITING = "waiting"
    STARTING = "starting"
    CHECKING = "checking"
    """Ready until another part failed, and not probed since."""
    READY = "ready"
    CRASHED = "crashed"
    LOOPING = "crash loop"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Part:
    """State of one process, as far as it is known."""

    phase: Phase = Phase.WAITING
    pid: int | None = None
    restarts: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Whole:
    """All parts, and whether readiness was announced."""

    parts: dict[str, Part] = field(default_factory=dict)
    announced: bool = False
    ever: bool = False

    @property
    def ready(self) -> bool:
        """True if every part is ready."""
        return all(part.phase is Phase.READY for part in self.parts.values())


def update(whole: Whole, name: str, part: Part, url: str) -> tuple[Whole, str | None]:
    """Return the state with one part changed, and the line to print if that gained or lost readiness."""
    now = replace(whole, parts={**whole.parts, name: part})
    if now.ready and not now.announced:
        line = f"Voxbridge is ready again at {url}" if now.ever else f"Voxbridge is ready at {url}"
        return replace(now, announced=True, ever=True), line
    if now.announced and not now.ready:
        if part.phase is Phase.STOPPING:
            return replace(now, announced=False), None
        others = {other: replace(seen, phase=Phase.CHECKING) if seen.phase is Phase.READY else seen for other, seen in now.parts.items()}
        return replace(now, parts=others, announced=False), f"Voxbridge is not ready: {name} {part.detail or part.phase}"
    return now, None


def waits_for(whole: Whole) -> str:
    """Return the parts that are not ready, each with what is known about why."""
    late = ((name, part) for name, part in whole.parts.items() if part.phase is not Phase.READY)
    return ", ".join(f"{name} ({part.detail})" if part.detail else name for name, part in late)
