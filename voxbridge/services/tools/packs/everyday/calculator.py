"""Arithmetic, in digits or in words."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, Final

import simpleeval
from msgspec import Meta

from voxbridge.services.tools.registry import Isolation, function
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.spoken_arithmetic import as_expression

EXPRESSION_LIMIT: Final = 200
POWER_LIMIT: Final = 1_000
DIGITS_LIMIT: Final = 15
"""Decimal places, before or after the point, that a number may be rounded to."""
FACTORIAL_LIMIT: Final = 166
"""Largest number whose factorial is within `MAGNITUDE_LIMIT`."""
MAGNITUDE_LIMIT: Final = 1e300
WHOLE_LIMIT: Final = 10**15
"""Limit above which a whole number is given as a power of ten."""
_SEVERAL: Final = re.compile(r"[\d.]\s+[\d.]")


@function(
    timeout_s=5,
    effect="read",
    isolated=Isolation(memory_mb=64),
)
def calculate(
    expression: Annotated[str, Meta(min_length=1, max_length=EXPRESSION_LIMIT, examples=["(3 + 4) ** 2"])],
) -> dict[str, Any]:
    """Work out arithmetic.

    Args:
        expression: Arithmetic with digits and + - * / ** ( ).

    Examples:
        what is seventeen times twenty three
        how much is eighteen percent of two hundred
        divide nine thousand by forty eight
        add up twelve fifteen and thirty one
        the square root of one hundred and forty four
        calculate two to the power of ten
        what's 365 minus 78
        work out half of eleven hundred
        six eggs at forty cents each make how much
        I had 80 dollars and spent 35 what is left
        share 120 euros among five people
        a quarter of sixty eight
        how much is 18% of 200
        what's 5% of 60
        17 + 23
        what is 31 times 16
        9 x 7 - 4
        seven times eight
        fifteen plus thirty nine
        take nineteen from fifty
        what would a tip of ten percent on 64 be
        subtract eighteen from ninety one
        how much do three tickets at fourteen fifty cost altogether
        the sum of forty four and sixty seven
    """
    value, normal = evaluate(expression)
    text = spoken(value)
    return {"expression": normal, "value": value, "spoken": f"That is {text}."}


def evaluate(expression: str) -> tuple[int | float, str]:
    """Return the value and the normalized expression. Raises `INVALID_ARGUMENT` that says what is wrong."""
    normal = as_expression(expression)
    if _SEVERAL.search(normal):
        raise _refused(
            expression, f"its numbers can be read in several ways ({normal[:40]}); say what is between them, or say it in figures"
        )
    try:
        _check_constants(normal)
        value = _Evaluator().eval(normal)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refused(expression, "it has no number as its result")
        return tidy(value), normal
    except ZeroDivisionError:
        raise _refused(expression, "it divides by zero") from None
    except (OverflowError, MemoryError):
        raise _refused(expression, f"its result is too large; {MAGNITUDE_LIMIT:g} is the most", MAGNITUDE_LIMIT) from None
    except (simpleeval.InvalidExpression, SyntaxError, ValueError, TypeError, RecursionError) as error:
        raise _refused(expression, "use figures and + - * / ** ( ), or words such as 15 percent of 80") from error


def tidy(value: float) -> int | float:
    """Remove the noise of binary fractions; return whole numbers as integers."""
    if isinstance(value, int) and abs(value) < WHOLE_LIMIT:
        return value
    if math.isnan(value) or abs(value) > MAGNITUDE_LIMIT:
        raise OverflowError
    value = float(f"{value:.12g}")
    return int(value) if value.is_integer() and abs(value) < WHOLE_LIMIT else value


def spoken(value: float) -> str:
    """Return a number as it is read out."""
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= WHOLE_LIMIT or 0 < abs(value) < 1e-4:
        return f"about {value:.4g}".replace("e+", " times 10 to the power of ").replace("e-", " times 10 to the power of minus ")
    short = round(value, 4)
    return f"{short:,.10g}" if short == value else f"about {short:,.10g}"


class _Evaluator(simpleeval.SimpleEval):  # type: ignore[misc]  # the library is untyped
    """An evaluator of arithmetic alone: no attributes, no comparisons, no strings."""

    def __init__(self) -> None:
        super().__init__(operators=_OPERATORS, functions=_FUNCTIONS, names=_NAMES)
        self.nodes = {node: run for node, run in vars(self)["nodes"].items() if node in _NODES}


def _check_constants(expression: str) -> None:
    """Refuse all constants but numbers before evaluation: Python's operators accept strings and lists too."""
    for node in ast.walk(ast.parse(expression, mode="eval")):
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
            raise _refused(expression, "only figures can be worked with")


def _refused(expression: str, why: str, limit: float | None = None) -> VoxbridgeError:
    message = f"calculate: {expression[:60]!r} cannot be worked out: {why}."
    return VoxbridgeError(Code.INVALID_ARGUMENT, message, field="expression", limit=limit)


def _bounded(run: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def bounded(left: Any, right: Any) -> Any:
        value = run(left, right)
        if abs(value) > MAGNITUDE_LIMIT:
            raise OverflowError
        return value

    return bounded


def _exact(run: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Work with the decimals as they were written: in binary fractions 78 % 5.2 is 5.2."""

    def exact(left: float, right: float) -> float:
        if isinstance(left, int) and isinstance(right, int):
            value: int = run(left, right)
            return value
        return float(run(Fraction(repr(left)), Fraction(repr(right))))

    return exact


def _power(base: float, exponent: float) -> Any:
    if abs(exponent) > POWER_LIMIT:
        raise _refused(f"{base:g}**{exponent:g}", f"the exponent is too large; {POWER_LIMIT:,} is the most", POWER_LIMIT)
    if abs(base) > 1 and exponent * math.log10(abs(base)) > 300:
        raise OverflowError
    value = base**exponent
    if isinstance(value, complex):
        raise _refused(f"{base}**{exponent}", "it has no real result")
    return value


def _factorial(number: float) -> int:
    if number != int(number) or not 0 <= number <= FACTORIAL_LIMIT:
        raise _refused(
            f"factorial({number:g})", f"it takes whole numbers from 0 to {FACTORIAL_LIMIT}, and others are too large", FACTORIAL_LIMIT
        )
    return math.factorial(int(number))


def _round(number: float, digits: float = 0) -> int | float:
    if digits != int(digits) or abs(digits) > DIGITS_LIMIT:
        raise _refused(
            f"round({number:g}, {digits:g})",
            f"it takes whole numbers of places, and those beyond {DIGITS_LIMIT} are too large",
            DIGITS_LIMIT,
        )
    return round(number, int(digits))


def _cbrt(number: float) -> float:
    return math.cbrt(number)


_NODES: Final = frozenset({ast.Expression, ast.Expr, ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.Call})
_OPERATORS: Final = {
    ast.Add: _bounded(operator.add),
    ast.Sub: _bounded(operator.sub),
    ast.Mult: _bounded(operator.mul),
    ast.Div: operator.truediv,
    ast.FloorDiv: _exact(operator.floordiv),
    ast.Mod: _exact(operator.mod),
    ast.Pow: _power,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "sqrt": math.sqrt,
    "cbrt": _cbrt,
    "abs": abs,
    "round": _round,
    "floor": math.floor,
    "ceil": math.ceil,
    "min": min,
    "max": max,
    "log": math.log10,
    "ln": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "factorial": _factorial,
}
_NAMES: Final = {"pi": math.pi, "e": math.e}
