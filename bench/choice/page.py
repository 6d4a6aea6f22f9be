"""The table of docs/models.md, written from the last published measurement."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

from bench.choice.asking import Answer
from bench.choice.measure import Measured, decision_s, share

PUBLISHED: Final = Path(__file__).with_name("measured.json")
PAGE: Final = Path(__file__).parents[2] / "docs" / "models.md"
BEGIN: Final = "<!-- choice: begin -->"
END: Final = "<!-- choice: end -->"
CALLED_SHOWN: Final = 3
"""Wrong answers named in a row."""


def load() -> Measured:
    """Return the published measurement. Raises `FileNotFoundError`."""
    return msgspec.json.decode(PUBLISHED.read_bytes(), type=Measured)


def publish(found: Measured) -> None:
    """Keep a measurement, and write its table into the page."""
    PUBLISHED.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


def written(page: str, found: Measured) -> str:
    """Return the page with the table of a measurement. Raises `ValueError` when its place is not marked."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has no {BEGIN} … {END}.")
    return f"{before}{BEGIN}\n{table(found)}{END}{after}"


def table(found: Measured) -> str:
    """Return the figures, and the answers by function, as Markdown."""
    requests, talk, wishes, follow_ups = (found.of(kind) for kind in ("request", "talk", "wish", "follow-up"))
    routing, slips = found.routing, [answer for answer in requests if answer.slip]
    rows = [
        ("wanted function among the router's best six", f"{routing.hit(6):.1f} %", "≥ 95 %"),
        ("the router's first is the wanted one", f"{routing.hit(1):.1f} %", ""),
        ("cost of the router a turn, p50 · p95", f"{routing.cost_p50_ms:.2f} · {routing.cost_p95_ms:.2f} ms", "p95 ≤ 3 ms"),
        ("requests that the router takes for a call · words · neither", _modes(routing.modes), ""),
        ("small talk that the router takes for a call · words · neither", _modes(routing.talk_modes), ""),
        ("right function", f"{share(one.right for one in requests):.1f} %", "≥ 85 %"),
        ("right function and arguments", f"{share(one.arguments_right for one in requests):.1f} %", "≥ 75 %"),
        (f"the same of {len(slips)} that were misheard", f"{share(one.arguments_right for one in slips):.1f} %", ""),
        (f"{len(talk)} lines of small talk that call", f"{share(not one.right for one in talk):.1f} %", "≤ 5 %"),
        (f"{len(wishes)} wishes that nothing here serves, that call", f"{share(not one.right for one in wishes):.1f} %", ""),
        (f"{len(follow_ups)} follow-ups, right function", f"{share(one.right for one in follow_ups):.1f} %", "≥ 75 %"),
        (f"{len(follow_ups)} follow-ups, function and arguments", f"{share(one.arguments_right for one in follow_ups):.1f} %", ""),
        ("a call decided, warm prompt, p50", f"{decision_s(requests):.2f} s", "≤ 1.2 s"),
    ]
    lines = [
        f"{found.taken_at[:10]}, load {found.load:.1f} before, {routing.functions} functions known, {len(requests)} requests.",
        "",
        "| | | target |",
        "|---|---|---|",
        *(f"| {what} | {value} | {target} |" for what, value, target in rows),
        "",
        "| function | asked | right | with its arguments | taken for |",
        "|---|---|---|---|---|",
        *_by_function(requests),
    ]
    return "\n".join(lines) + "\n"


def _modes(modes: dict[str, int]) -> str:
    return " · ".join(str(modes.get(mode, 0)) for mode in ("call", "words", "unsure"))


def _by_function(requests: list[Answer]) -> list[str]:
    rows: list[str] = []
    for name in dict.fromkeys(answer.tool for answer in requests):
        asked = [answer for answer in requests if answer.tool == name]
        wrong = Counter(f"`{one.called}`" if one.called else "words" for one in asked if not one.right)
        taken = ", ".join(f"{called} {count}" for called, count in wrong.most_common(CALLED_SHOWN))
        right, whole = sum(one.right for one in asked), sum(one.arguments_right for one in asked)
        rows.append(f"| `{name}` | {len(asked)} | {right} | {whole} | {taken} |")
    return rows
