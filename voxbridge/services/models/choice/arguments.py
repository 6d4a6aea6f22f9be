"""Arguments that name a thing, by what the user said: values that were named are the ones that the model may write.

A small model takes the first value of an enum as easily as the one that was said. Which values a request names can be read off it, also
where a name is only half said ("the wiki" for `team_wiki`), or misheard.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from voxbridge.services.models.choice import commands, features, kinds
from voxbridge.services.models.choice.commands import COMMAND, TERMINAL
from voxbridge.services.models.choice.moods import mood
from voxbridge.shared import spoken_durations

SECONDS: Final = "seconds"
"""Argument that takes a length of time."""

DATE: Final = "date"
"""Argument that takes a day. A small model makes one up where the request names none."""

_DAY: Final = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:to|yester)day|tomorrow|tonight|january|february|march|april|may|june|july|august"
    r"|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|(?:next|last|this|coming) \w+"
    r"|(?:days?|weeks?|months?|years?|fortnight)|date|summer|winter|spring|autumn|christmas|easter"
    r"|first|second|third|\w*(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|teen|twentie|thirtie)th)\b"
    r"|\d{4}|\d+[/-]\d|\d+\.\d+\.|\d(?:st|nd|rd|th)\b",
    re.IGNORECASE,
)
"""Words that name a day, a season or a year."""

UNITS: Final = ("from_unit", "to_unit")
"""Arguments that take the unit of an amount and the one wanted. A small model writes both symbols of "1 MB in Mb" in the same letters."""

TOLD: Final = "text"
"""Argument beside `TERMINAL` that takes what is told, in the user's words: a small model makes up its own."""

_CALLED: Final = re.compile(r"\b(?:called|named)\b.*", re.IGNORECASE | re.DOTALL)
"""Name of something new at the end of a request: no terminal is meant by it."""

_LEAD: Final = re.compile(r"^(?:'s)?[\s,:;.-]*(?:(?:please|that|to|should|must|know|for|whether)\b[\s,:]*){0,2}", re.IGNORECASE)
_NUMBER: Final = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    r"|hundred|thousand|million|couple|few|several|once|twice|thrice|half|quarter|third|dozen|a|an|all|every|most|least|maximum|minimum"
    r"|first|second|next|last|more|less|longer|shorter|louder|softer|up|down|double|zero|none|no|full)\b",
    re.IGNORECASE,
)
"""Words that may be or change a number: without any of them a number that may be left out is made up."""

REST: Final = "pending_request"
"""Argument that takes what a request asks for besides, in the user's words."""

NOTHING: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})

_AWAY: Final = frozenset(
    (
        "away", "but", "disable", "don't", "drop", "enough", "except", "hate", "hurts", "instead", "less", "never", "no",
        "not", "off", "opposite", "other", "out", "quit", "remove", "rid", "sick", "stop", "than", "tired", "too", "un", "undo", "without",
    )
)  # fmt: skip
"""Words that may turn a value into the one that is not wanted: "turn off dark mode". A request with one has no value left out."""

_CHANGES: Final = frozenset(("change", "exchange", "leave", "replace", "swap"))
_OTHERS: Final = frozenset(("besides", "but", "except", "instead", "other", "than"))
"""Words that make a thing the one that is not meant: "every macro but good night"."""

_TOWARDS: Final = frozenset(("as", "by", "for", "into", "to", "with"))
"""Words before the value that is wanted, where another one is changed: "change the dark theme" names what is there."""

_VERBS: Final = frozenset(("put", "get", "post", "delete", "patch", "set", "add", "list", "read", "write", "run", "open", "start", "stop"))
"""Words that say what is to be done where a request begins with them, and are no value of an argument there."""

_NAMELESS: Final = frozenset(
    (
        "a", "already", "an", "and", "any", "are", "at", "can", "clock", "could", "current", "currently", "date", "day", "days", "do",
        "does", "exactly", "got", "give", "have", "hello", "hey", "hour", "how", "i", "is", "it", "its", "just", "know", "late", "let",
        "like", "me", "moment", "month", "now", "of", "oh", "ok", "okay", "on", "one", "over", "please", "right", "s", "say", "show",
        "so", "tell", "thanks", "that", "the", "then", "there", "this", "time", "today", "want", "we", "week", "weekday", "what",
        "what's", "whats", "when", "which", "would", "year", "you",
    )
)  # fmt: skip
"""Words that name nothing: in a request of these alone no argument that may be left out has a value."""

_HALF: Final = 0.5
_LIKE: Final = 5
"""Letters with which two words of one kind begin alike: "selected" and "selection"."""

_ENDINGS: Final = "py|pyi|js|jsx|ts|tsx|css|html|csv|json|toml|yaml|yml|md|txt|sql|sh|com|org|net|io|dev"
_FILE: Final = re.compile(rf"\b(\w+) dot (?=(?:{_ENDINGS})\b)", re.IGNORECASE)
_PATH: Final = re.compile(r"(?<!\S)(?:forward )?slash (?=\w)", re.IGNORECASE)


def written(said: str) -> str:
    """Return what was said with names of files, hosts and paths as they are written: `core.py` for "core dot py"."""
    return _PATH.sub("/", _FILE.sub(r"\1.", said))


def takes_rest(schema: Mapping[str, Any]) -> bool:
    """Tell whether a function takes along what a request asks for besides."""
    properties = schema.get("properties")
    return isinstance(properties, Mapping) and isinstance(properties.get(REST), Mapping)


def with_rest(schema: Mapping[str, Any], narrow: Mapping[str, Any], rest: str) -> dict[str, Any]:
    """Return what `narrowed` made of the schema of a function that takes a rest along, for a request with this one; empty for none. The
    model writes one that is too long."""
    properties = {name: value for name, value in narrow["properties"].items() if name != REST}
    required = [name for name in narrow.get("required", ()) if name != REST]
    if rest:
        given = schema["properties"][REST]
        properties[REST] = {**given, "enum": [rest]} if len(rest) <= given.get("maxLength", len(rest)) else given
        required.append(REST)
    return {**narrow, "properties": properties, "required": required}


def narrowed(schema: Mapping[str, Any], said: str, names: Mapping[str, Sequence[str]] = NOTHING) -> dict[str, Any]:
    """Return the JSON Schema of a function's arguments for one request: enums hold only the values that the request names, if it names any;
    an argument that may be left out is left out if none of its values is named, and must be there if one is. A text that may be left out is
    left out of a request that names nothing at all: "what time is it" has no place. A date is left out of one that names no day, and a
    number that may be left out, of one without a number. What somebody is told is what the request says behind their name.

    `names` are the things that there are now, by argument: one that the request names is the only value then. A request that names none
    leaves the argument as it is: what does not exist is said as the user said it, and is not taken for the nearest that does.

    No value is left out where one that was named may be the one that is not wanted ("get rid of dark mode", "every macro but this one"),
    nor in a request that is not a wish. With all values open a 1.5B model takes the first of them: of 94 requests that name one, 74 had the
    right arguments with the others left out and 66 without (`python -m bench.choice`, all sets)."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return dict(schema)
    required = list(schema.get("required", ()))
    known = {name: {**properties[name], "enum": list(values)} for name, values in names.items() if values and name in properties}
    spoken = features.words(said)
    naming = features.words(_CALLED.sub("", said)) if TERMINAL in known and COMMAND in properties else spoken
    named = _named({**properties, **known}, naming[1:] if naming and naming[0] in _VERBS else naming)
    named = _of_each(named, known)
    place = commands.place(said) if TERMINAL in properties else ""
    line = commands.command(written(said), names.get(TERMINAL, ())) if TERMINAL in properties and COMMAND in properties else ""
    away, nameless = _turns_away(said, spoken), bool(spoken) and _NAMELESS.issuperset(spoken)
    others = not _OTHERS.isdisjoint(spoken)
    units = kinds.conversion(said) if set(UNITS) <= properties.keys() else None
    read = dict(zip(UNITS, units, strict=True)) if units else {}
    kept: dict[str, Any] = {}
    for name, value in properties.items():
        if name in read:
            kept[name] = {"enum": [read[name]]}
        elif (name == TERMINAL and place) or (name == COMMAND and line):
            kept[name] = {**value, "enum": [place if name == TERMINAL else line]}
            required += [name] if name not in required else []
        elif name in known:
            meant = _meant(named[name], features.words(said))
            kept[name] = {**known[name], **({} if others else {"enum": meant})} if meant else value
            required += [name] if meant and name not in required else []
        elif name not in required and _is_free(value) and (nameless or (name == DATE and not _DAY.search(said))):  # noqa: SIM114
            continue
        elif name not in required and _is_count(value) and not _NUMBER.search(said):
            continue
        elif name == TOLD and TERMINAL in known and (told := _told(said, _meant(named[TERMINAL], features.words(said)))):
            kept[name] = {**value, "enum": [told[: value.get("maxLength", len(told))]]}
        elif name not in named:
            length = spoken_durations.seconds(said) if name == SECONDS else None
            kept[name] = value if length is None else {"type": "integer", "enum": [length]}
        elif named[name]:
            kept[name] = value if away else {**value, "enum": named[name]}
            required += [name] if name not in required else []
        elif name in required:
            kept[name] = value
    return {**schema, "properties": kept, "required": required}


def _told(said: str, names: Sequence[str]) -> str:
    """Return what a request says behind the name of the one who is to be told; empty where it names nobody, or says nothing more."""
    found = [match for name in names for match in re.finditer(rf"\b{re.escape(name)}\b", said, re.IGNORECASE)]
    return _LEAD.sub("", said[max(match.end() for match in found) :]).rstrip(" .!") if found else ""


def _is_count(value: object) -> bool:
    return isinstance(value, Mapping) and value.get("type") == "integer" and "enum" not in value


def _turns_away(said: str, spoken: Sequence[str]) -> bool:
    """Tell whether a value that was named may be the one that is not wanted."""
    changes = not _CHANGES.isdisjoint(spoken) and _TOWARDS.isdisjoint(spoken)
    return changes or not _AWAY.isdisjoint(spoken) or mood(said) != "wish"


def _is_free(value: object) -> bool:
    return isinstance(value, Mapping) and value.get("type") == "string" and "enum" not in value


def _meant(found: Sequence[str], spoken: Sequence[str]) -> list[str]:
    """Return those of the things found that were named well enough to be meant: by more than half of their words, or by the last one where
    it fits no other. "Good" is not a name for "good night", "the wiki" is one for `team_wiki`."""
    heard = _with_pairs(spoken)
    for value in found:
        words = features.words(value)
        if _share(value, spoken)[0] <= _HALF and len(words) > 1 and (len(found) > 1 or all(_alike(word, words[-1]) < 1 for word in heard)):
            return []
    return list(found)


def _named(properties: Mapping[str, Any], spoken: Sequence[str]) -> dict[str, list[str]]:
    """Return the values that were said of each argument that has an enum. A word belongs to one argument, that of the longest name: in
    "product docs" nobody names a product."""
    enums = {name: choices for name, value in properties.items() if (choices := _choices(value))}
    left, found = list(spoken), {name: list[str]() for name in enums}
    waiting = set(enums)
    while waiting:
        shares = {name: [_share(choice, left) for choice in enums[name]] for name in waiting}
        name = max(sorted(waiting), key=lambda one: max(said for _, said in shares[one]))
        waiting.remove(name)
        best = max(share for share, _ in shares[name])
        if best > 0:
            found[name] = [choice for choice, (share, _) in zip(enums[name], shares[name], strict=True) if share == best]
            left = [word for word in left if not any(_alike(word, part) for choice in found[name] for part in features.words(choice))]
    return found


def _of_each(named: Mapping[str, list[str]], known: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return what was named of each argument, where two of them are of the same things: "give Codex the output of Claude" names both, and
    either may be either."""
    given = dict(named)
    for name, found in named.items():
        for other in known:
            if name in known and not named[other] and len(found) > 1 and known[other]["enum"] == known[name]["enum"]:
                given[other] = found
    return given


def _choices(value: object) -> list[str]:
    choices = value.get("enum") if isinstance(value, Mapping) else None
    return choices if isinstance(choices, list) and all(isinstance(choice, str) for choice in choices) else []


def _share(value: str, spoken: Sequence[str]) -> tuple[float, float]:
    """Return which share of a value's words was said, and how many; half of one that only sounds or begins alike."""
    words, heard = features.words(value), _with_pairs(spoken)
    said = sum(max((_alike(word, part) for word in heard), default=0.0) for part in words)
    return (said / len(words) if words else 0.0), said


def _with_pairs(spoken: Sequence[str]) -> list[str]:
    """Return the words that were said, and neighbours as one: a recogniser writes "day break" for a macro called daybreak."""
    return [*spoken, *(one + other for one, other in pairwise(spoken))]


def _alike(word: str, part: str) -> float:
    stem, other = features.stem(word), features.stem(part)
    if stem == other:
        return 1.0
    sound = features.sound(part)
    begins = len(other) >= _LIKE and stem.startswith(other[:_LIKE])
    return 0.5 if begins or (len(sound) > 2 and features.sound(word) == sound) else 0.0
