"""Random calls of a real executor: arguments, results, and macros with random pipes, defaults and inputs.

Importing this module as a pack declares `odd`, whose result is drawn from its argument; results that no log can hold are among them.
"""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any, Final

from voxbridge.services.tools.registry import function

_NAMES: Final = (
    "text",
    "number",
    "name",
    "steps",
    "id",
    "",
    " ",
    "${prev}",
    "__proto__",
    "naïve",
    "x" * 200,
    "status",
    "task_id",
    "spoken",
)
_TEXTS: Final = (
    "",
    "plain",
    "007",
    "12e5",
    "1e999",
    "-0",
    "\x00",
    "\u202e\u200b",
    "🦀" * 50,
    "x" * 70_000,
    "${prev.text}",
    "${prev",
    "}${",
    "${steps.one.result.text default: 007}",
    "${prev.value default: 99999999999999999999999999}",
    "${prev.absent default: 1e400}",
    "${prev.absent default: [}",
    '${prev.absent default: {"a": NaN}}',
    "${input.given}",
    "${input.given.a.b.c}",
    "${prev.value[99999999999999999999]}",
    "$${prev.text}",
    "NaN",
    "null",
    "true",
)
_NUMBERS: Final = (0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 0.0, -0.0, 1e308, 5e-324, 0.1, math.inf, -math.inf, math.nan)
_PIPES: Final = (
    "${prev}",
    "${prev.text default: 007}",
    "${prev.value default: 99999999999999999999999999}",
    "${prev.value default: 1e400}",
    "${prev.value.in default: -0}",
    "${prev.value[0] default: null}",
    '${steps.s1.result default: {"a": [1e999]}}',
    "${steps.s1.result.text default: NaN}",
    "${steps.s1.state}",
    "no default: ${prev.value}",
)
_OF_TYPE: Final[dict[str, tuple[Any, ...]]] = {
    "string": ("", "x"),
    "integer": (7, 2**64 - 1, 1e300),
    "number": (0.5, 1e308, math.inf),
    "boolean": (True,),
}
_ODD: Final = (
    2**64,
    -(2**80),
    10**400,
    b"\xff\x00",
    {1, 2},
    (1, 2),
    object(),
    Decimal("1.5"),
    {1: "a", "1": "b"},
    {None: 1},
    "\ud800",
    3 + 4j,
)
"""Values that a function may return by mistake."""


def value(dice: random.Random, depth: int = 0) -> Any:
    """Draw a value that a log can hold."""
    kind = dice.randrange(9 if depth < 4 else 6)
    if kind < 3:
        return dice.choice(_TEXTS)
    if kind < 5:
        return dice.choice(_NUMBERS)
    if kind == 5:
        return dice.choice((None, True, False))
    if kind == 6:
        return [value(dice, depth + 1) for _ in range(dice.randrange(4))]
    if kind == 7:
        return mapping(dice, depth + 1)
    deep: Any = "deep"
    for _ in range(dice.choice((1, 30, 150))):
        deep = [deep] if dice.random() < 0.5 else {"in": deep}
    return deep


def mapping(dice: random.Random, depth: int = 0) -> dict[str, Any]:
    """Draw an object of JSON with up to four names."""
    return {dice.choice(_NAMES): value(dice, depth) for _ in range(dice.randrange(5))}


def _text(dice: random.Random, number: int) -> str:
    """Draw a text with a pipe that mostly leads somewhere."""
    if number > 1 and dice.random() < 0.5:
        return dice.choice(_PIPES)
    return dice.choice(_TEXTS) if dice.random() < 0.1 else dice.choice(("plain", "${input.given}", "as ${input.given}"))


def step(dice: random.Random, number: int) -> dict[str, Any]:
    """Draw a step of a macro: most can be run, some are refused."""
    if dice.random() < 0.5:
        made: dict[str, Any] = {"call": "echo", "arguments": {"text": _text(dice, number)}}
    else:
        made = {
            "call": "odd",
            "arguments": {"seed": "${prev.seed default: 5}" if number > 1 and dice.random() < 0.2 else dice.randrange(1_000)},
        }
    if dice.random() < 0.2:
        made["on_error"] = dice.choice(("continue", "stop", {"retry": {"n": 2, "backoff_s": 0}}, dice.choice(_TEXTS)))
    if dice.random() < 0.2:
        made["when"] = dice.choice(("exists ${input.given}", "${input.given} > 3", "${input.given} == 1e400", dice.choice(_TEXTS)))
    return {"id": f"s{number}", **made}


def macro(dice: random.Random, name: str) -> dict[str, Any]:
    """Draw the arguments of a `create_macro`, whose input `given` has a random default."""
    kind = dice.choice(("string", "integer", "number", "boolean"))
    given: dict[str, Any] = {"type": kind}
    if dice.random() < 0.9:
        given["default"] = value(dice, 3) if dice.random() < 0.3 else dice.choice(_OF_TYPE[kind])
    steps = [step(dice, number) for number in range(1, dice.randrange(2, 5))]
    return {"name": name, "steps": steps, "inputs": {"given": given}, "policy": dice.choice(("stop", "continue"))}


@function(effect="read", idempotent=False)
async def odd(seed: int) -> Any:
    """Return something drawn.

    Args:
        seed: What it is drawn from.
    """
    dice = random.Random(seed)
    if dice.random() < 0.1:
        raise dice.choice((KeyError("odd"), ValueError("x" * 10_000), RecursionError(), StopAsyncIteration(), UnicodeError("odd")))
    drawn = dice.choice(_ODD) if dice.random() < 0.3 else value(dice)
    if dice.random() < 0.1:
        return drawn
    return {**mapping(dice), "seed": seed, "value": drawn} if dice.random() < 0.9 else {"status": "needs_approval", "task_id": "t1"}
