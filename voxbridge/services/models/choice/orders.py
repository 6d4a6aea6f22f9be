"""Plain orders: requests that a function's own templates read whole, with its arguments, so that no model is needed for them. Pure.

A template is words, of which `(tell|ask)` is one or the other, `[please]` may be left out, `{terminal}` is an argument in the user's own
words, `{terminal!}` is one that must name a thing that there is now (`Able.names`), and `{key=ctrl-c}` gives an argument that is not said.
`*` is one word or two that say nothing more: how a thing is called between two names that are sure, which may have been misheard.
Of several templates that fit, the one counts that leaves the fewest words to arguments which may be anything. A request may be several
orders, joined by "and", "then", commas or stops; unless each part is one, none is. An argument `it` is the terminal of the order before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

from voxbridge.services.models.choice.moods import mood

SAID_LIMIT: Final = 400
"""Characters of a request that is read as orders."""

JOINTS_LIMIT: Final = 16
"""Commas, stops and "and"s of a request that is read as orders."""

PARTS_LIMIT: Final = 8
"""Orders of a request."""

NAME_WORDS: Final = 4
"""Words of an argument that names something: one of at most `NAME_LENGTH` characters."""

NAME_LENGTH: Final = 64

_TOKEN: Final = re.compile(
    r"\{(?P<slot>\w+)(?P<known>!)?(?:=(?P<value>[^{}]*))?\}(?P<of>'s)?|\[(?P<optional>[^\[\]]*)\]|\((?P<either>[^()]*)\)|(?P<word>[^\s\[\](){}]+)"
)
_JOINT: Final = re.compile(r"(?:[.;!?]+|,)?\s+(?:(?:and )?then\s+|and\s+)?", re.IGNORECASE)
_POLITE: Final = re.compile(
    r"^(?:(?:please|okay|ok|now|and|then|so|(?:could|can|would|will) you|i(?:'d| would) like you to|i want you to)\b[\s,]*)+"
    r"|[\s,]*\bplease[.!]*$|[\s.!?]+$",
    re.IGNORECASE,
)
_IT: Final = "it"
_ANYTHING: Final = "*"
_NO_COMMAND: Final = re.compile(
    r"^(?:the|a|an|my|our|your|all|this|that|it|some|something)\b|\b(?:minus|dash|slash|dot|pipe)\b", re.IGNORECASE
)
"""Words of a command that is told of and not said as it is typed: the model writes it."""

_NEVER: Final = "(?!)"
_PRONOUNS: Final = frozenset(
    (
        "me", "us", "you", "i", "we", "it", "them", "him", "her", "somebody", "someone", "everybody", "everyone", "anybody", "anyone",
        "all",
    )
)  # fmt: skip
"""Words that name no thing."""


class Able(Protocol):
    """A function with the templates of its orders."""

    @property
    def name(self) -> str:
        """Name of the function."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON Schema of its arguments."""

    @property
    def reads(self) -> bool:
        """True if it changes nothing, so that a question about the past may be an order of it."""

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """Things that there are now, by the argument that names one."""

    @property
    def orders(self) -> tuple[str, ...]:
        """Templates of its orders."""


class Order(NamedTuple):
    """A call that a part of a request orders."""

    function: str
    arguments: dict[str, Any]
    part: str


def read(said: str, tools: Sequence[Able]) -> list[Order]:
    """Return the calls that a request orders, in order; empty unless all of it is orders."""
    able = [tool for tool in tools if tool.orders]
    text = " ".join(said.split())
    if not able or len(text) > SAID_LIMIT:
        return []
    joints = [joint for joint in _JOINT.finditer(text) if joint[0].strip()]
    if len(joints) > JOINTS_LIMIT:
        return []
    begins, ends = [0, *(joint.end() for joint in joints)], [*(joint.start() for joint in joints), len(text)]
    return _resolved(_parsed(text, begins, ends, able, 0, {}) or [])


def _resolved(found: list[Order]) -> list[Order]:
    """Return orders with what `it` means in them; none where it means nothing."""
    before = ""
    for order in found:
        for name, value in order.arguments.items():
            if value == _IT and not before:
                return []
            order.arguments[name] = before if value == _IT else value
        before = order.arguments.get("terminal", before)
    return found


def _parsed(
    text: str, begins: Sequence[int], ends: Sequence[int], tools: Sequence[Able], at: int, known: dict[int, list[Order] | None]
) -> list[Order] | None:
    """Read what follows a cut: the shortest part that is an order, behind which all else is orders too."""
    if at == len(begins):
        return []
    if at not in known:
        known[at] = None
        for end in range(at, len(ends)):
            order = _one(text[begins[at] : ends[end]], tools)
            rest = _parsed(text, begins, ends, tools, end + 1, known) if order is not None else None
            if order is not None and rest is not None and len(rest) < PARTS_LIMIT:
                known[at] = [order, *rest]
                break
    return known[at]


def _one(part: str, tools: Sequence[Able]) -> Order | None:
    plain = _POLITE.sub("", _POLITE.sub("", part.strip()))
    feeling = mood(plain) if plain else "denied"
    best: tuple[int, Order] | None = None
    for tool in tools:
        if feeling != "wish" and not (feeling == "asked" and tool.reads):
            continue
        properties = tool.parameters.get("properties", {})
        names = frozenset(name for name, schema in properties.items() if _is_name(schema))
        for template in tool.orders:
            pattern, given, sure = _compiled(template, names, tuple((name, tuple(known)) for name, known in tool.names.items()))
            found = pattern.fullmatch(plain)
            arguments = _arguments(found, given, properties) if found is not None else None
            if found is None or arguments is None:
                continue
            own = sum(len(said or "") for name, said in found.groupdict().items() if name not in sure)
            if best is None or own < best[0]:
                best = own, Order(tool.name, arguments, part.strip())
    return None if best is None else best[1]


def _is_name(schema: Mapping[str, Any]) -> bool:
    """Tell whether an argument names something, in few words."""
    return "enum" in schema or schema.get("maxLength", NAME_LENGTH + 1) <= NAME_LENGTH


def _arguments(found: re.Match[str], given: Mapping[str, str], properties: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments that an order gives; None if one of them cannot be."""
    if _NO_COMMAND.search(found.groupdict().get("command") or ""):
        return None
    whole = {name for name in given if properties.get(name, {}).get("type") == "integer"}
    arguments: dict[str, Any] = {name: int(value) if name in whole else value for name, value in given.items()}
    for name, said in found.groupdict().items():
        schema, words = properties.get(name, {}), (said or "").casefold().split()
        if "enum" in schema:
            value = "-".join(words).replace("control", "ctrl")
            if value not in schema["enum"]:
                return None
            arguments[name] = value
        elif words and _is_name(schema) and (words[0] in _PRONOUNS or "and" in words):
            return None
        elif words:
            arguments[name] = said
    return arguments


@lru_cache(maxsize=512)
def _compiled(
    template: str, names: frozenset[str], known: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[re.Pattern[str], dict[str, str], frozenset[str]]:
    """Return a template's pattern, the arguments that it gives itself, and those that name a thing that there is. `known` are these things,
    by argument."""
    things = dict(known)
    sure: set[str] = set()
    pattern, given = "", {}
    for token in _TOKEN.finditer(template):
        slot = token["slot"]
        if slot is not None and token["value"] is not None:
            given[slot] = token["value"]
        elif slot is not None and token["known"]:
            sure.add(slot)
            there = "|".join(re.escape(one) for one in sorted(things.get(slot, ()), key=len, reverse=True))
            pattern += rf"(?:(?:the|my) )?(?P<{slot}>{there or _NEVER})(?: (?:terminal|window|shell))?{token['of'] or ''}(?:,? |$)"
        elif slot is not None:
            many = f"{{0,{NAME_WORDS - 1}}}?" if slot in names else "*?"
            first = r"[^\s,]+" if slot in names else r"\S+"
            pattern += rf"(?P<{slot}>{first}(?: \S+){many}){token['of'] or ''}(?:,? |$)"
        elif token["optional"] is not None:
            pattern += rf"(?:(?:{_either(token['optional'])})(?:,? |$))?"
        elif token["either"] is not None:
            pattern += rf"(?:{_either(token['either'])})(?:,? |$)"
        elif token["word"] == _ANYTHING:
            pattern += r"[^\s,]+(?: [^\s,]+)?(?:,? |$)"
        else:
            pattern += rf"{re.escape(token['word'])}(?:,? |$)"
    return re.compile(pattern, re.IGNORECASE), given, frozenset(sure)


def _either(words: str) -> str:
    return "|".join(re.escape(" ".join(one.split())).replace(r"\ ", " ") for one in words.split("|"))
