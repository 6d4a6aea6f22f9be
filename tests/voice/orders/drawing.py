"""`python -m tests.voice.orders.drawing`: draw the states of a call that users see, and what leads from one to another.

The voice core has no table of states: the state shown is read from what a call holds (`transition.shown_state`). So the drawing is made of
random calls (`Orders`): every change of state that an input caused in one of them is an arrow. It is written to `docs/voice-states.svg`.
"""

from __future__ import annotations

import sys
from collections import Counter
from math import hypot
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from tests.voice.orders.simulation import Orders
from tests.voice.orders.things import have, things
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core.transition import shown_state
from voxbridge.shared import events
from voxbridge.shared.step.journal import LogInput

FILE: Final = Path(__file__).parents[3] / "docs" / "voice-states.svg"
CALLS: Final = 600
SEED: Final = "states"
OFTEN: Final = 0.02
"""Part of an arrow's changes that an input must have caused to be named beside it."""

NAMED: Final = 5
"""Inputs named beside an arrow."""

PLACES: Final = {
    "connecting": (110, 70),
    "listening": (110, 300),
    "user_speaking": (420, 70),
    "thinking": (420, 300),
    "speaking": (730, 300),
    "calling_tool": (730, 70),
    "ended": (640, 530),
}
WIDTH, HEIGHT, LINE = 840, 600, 19
HALF_WIDTH, HALF_HEIGHT = 62, 21
BEND: Final = 26
"""Pixels by which an arrow is bent, so that the one back lies beside it."""

STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #1b1f24 } .small { font-size: 11px } .state { font-weight: 600 }
rect { fill: #eef3f8; stroke: #4a6785 } circle { fill: #fff; stroke: #7c8b9a }
path { fill: none; stroke: #7c8b9a } marker path { fill: #7c8b9a }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e9ec } rect { fill: #22303d; stroke: #86a7c8 } circle { fill: #14181c }
}"""

TIP: Final = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z"/></marker>'
)

Change = tuple[str, str]


class Watched(Orders):
    """A call that notes which input changed the state that is shown."""

    changes: Counter[tuple[Change, str]]

    def take(self, input: Any) -> None:
        """Take an input."""
        before = shown_state(self.state)
        super().take(input)
        after = shown_state(self.state)
        if before != after:
            self.changes[(before, after), named(input)] += 1


def named(input: Any) -> str:
    """Return the name of an input: of a timer with its name, of an event of the log its type."""
    if isinstance(input, LogInput):
        return events.kind_of(input.recorded.event).name
    if isinstance(input, inputs.TimerFired):
        return f"timer {input.name.partition(':')[0]}"
    return type(input).__name__


def changes(calls: int = CALLS) -> dict[Change, list[str]]:
    """Play random calls; return each change of state with the inputs that caused it, the most frequent first."""
    found: Counter[tuple[Change, str]] = Counter()
    for number in range(calls):
        seed = f"{SEED}/{number}"
        Watched.changes = found
        call = have(Watched.drawn(seed), things(seed))
        call.rest()
    totals: Counter[Change] = Counter()
    for (change, _), count in found.items():
        totals[change] += count
    causes: dict[Change, list[str]] = {}
    for (change, cause), count in sorted(found.items(), key=lambda one: (-one[1], one[0])):
        if count >= OFTEN * totals[change]:
            causes.setdefault(change, []).append(cause)
    order = list(PLACES)
    return dict(sorted(causes.items(), key=lambda one: (order.index(one[0][0]), order.index(one[0][1]))))


def drawing(found: dict[Change, list[str]]) -> str:
    """Return the drawing as SVG: the states, numbered arrows, and beside each number what causes the change."""
    height = HEIGHT + LINE * (len(found) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>States of a call, and what leads from one to another</title>",
        f"<style>{STYLE}</style>",
        f"<defs>{TIP}</defs>",
    ]
    parts += [_arrow(number, PLACES[one], PLACES[other]) for number, (one, other) in enumerate(found, 1)]
    for name, (x, y) in PLACES.items():
        parts.append(f'<rect x="{x - HALF_WIDTH}" y="{y - HALF_HEIGHT}" width="{2 * HALF_WIDTH}" height="{2 * HALF_HEIGHT}" rx="8"/>')
        parts.append(f'<text class="state" x="{x}" y="{y + 5}" text-anchor="middle">{name}</text>')
    for number, ((one, other), causes) in enumerate(found.items(), 1):
        more = f" and {len(causes) - NAMED} more" if len(causes) > NAMED else ""
        told = escape(f"{', '.join(causes[:NAMED])}{more}")
        parts.append(f'<text class="small" x="24" y="{HEIGHT + LINE * number}">{number}</text>')
        parts.append(f'<text class="small" x="54" y="{HEIGHT + LINE * number}">{one} → {other}</text>')
        parts.append(f'<text class="small" x="250" y="{HEIGHT + LINE * number}">{told}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _arrow(number: int, one: tuple[int, int], other: tuple[int, int]) -> str:
    """Return an arrow from a state to another, bent to its left, with its number."""
    (x1, y1), (x2, y2) = one, other
    length = hypot(x2 - x1, y2 - y1)
    across, up = -(y2 - y1) / length, (x2 - x1) / length
    bend = BEND * (2.4 if length > 2 * HALF_WIDTH * 3 else 1)
    middle = (x1 + x2) / 2 + 2 * bend * across, (y1 + y2) / 2 + 2 * bend * up
    begin, end = _border(one, middle), _border(other, middle)
    label = (begin[0] + 2 * middle[0] + end[0]) / 4, (begin[1] + 2 * middle[1] + end[1]) / 4
    return (
        f'<path marker-end="url(#tip)" d="M{begin[0]:.0f} {begin[1]:.0f} Q{middle[0]:.0f} {middle[1]:.0f} {end[0]:.0f} {end[1]:.0f}"/>'
        f'<circle cx="{label[0]:.0f}" cy="{label[1]:.0f}" r="10"/>'
        f'<text class="small" x="{label[0]:.0f}" y="{label[1] + 4:.0f}" text-anchor="middle">{number}</text>'
    )


def _border(place: tuple[int, int], towards: tuple[float, float]) -> tuple[float, float]:
    """Return the point of a state's border in the direction of another point."""
    across, up = towards[0] - place[0], towards[1] - place[1]
    part = min(HALF_WIDTH / abs(across) if across else 9.0, HALF_HEIGHT / abs(up) if up else 9.0)
    return place[0] + part * across, place[1] + part * up


if __name__ == "__main__":
    FILE.write_text(drawing(changes()), encoding="utf-8")
    sys.stdout.write(f"{FILE.name}\n")
