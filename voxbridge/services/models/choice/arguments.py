"""Arguments that name a thing, by what the user said: values that were named are the ones that the model may write.

A small model takes the first value of an enum as easily as the one that was said. Which values a request names can be read off it, also
where a name is only half said ("the wiki" for `team_wiki`), or misheard.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from voxbridge.services.models.choice import features

_LIKE: Final = 5
"""Letters with which two words of one kind begin alike: "selected" and "selection"."""

_ENDINGS: Final = "py|pyi|js|jsx|ts|tsx|css|html|csv|json|toml|yaml|yml|md|txt|sql|sh|com|org|net|io|dev"
_FILE: Final = re.compile(rf"\b(\w+) dot (?=(?:{_ENDINGS})\b)", re.IGNORECASE)
_PATH: Final = re.compile(r"(?<!\S)(?:forward )?slash (?=\w)", re.IGNORECASE)


def written(said: str) -> str:
    """Return what was said with names of files, hosts and paths as they are written: `core.py` for "core dot py"."""
    return _PATH.sub("/", _FILE.sub(r"\1.", said))


def narrowed(schema: Mapping[str, Any], said: str) -> dict[str, Any]:
    """Return the JSON Schema of a function's arguments for one request: enums hold only the values that the request names, if it names any;
    an argument that may be left out is left out if none of its values is named, and must be there if one is."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return dict(schema)
    required = list(schema.get("required", ()))
    named = _named(properties, features.words(said))
    kept: dict[str, Any] = {}
    for name, value in properties.items():
        if name not in named:
            kept[name] = value
        elif named[name]:
            kept[name] = {**value, "enum": named[name]}
            required += [name] if name not in required else []
        elif name in required:
            kept[name] = value
    return {**schema, "properties": kept, "required": required}


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


def _choices(value: object) -> list[str]:
    choices = value.get("enum") if isinstance(value, Mapping) else None
    return choices if isinstance(choices, list) and all(isinstance(choice, str) for choice in choices) else []


def _share(value: str, spoken: Sequence[str]) -> tuple[float, float]:
    """Return which share of a value's words was said, and how many; half of one that only sounds or begins alike."""
    words = features.words(value)
    said = sum(max((_alike(word, part) for word in spoken), default=0.0) for part in words)
    return (said / len(words) if words else 0.0), said


def _alike(word: str, part: str) -> float:
    stem, other = features.stem(word), features.stem(part)
    if stem == other:
        return 1.0
    sound = features.sound(part)
    begins = len(other) >= _LIKE and stem.startswith(other[:_LIKE])
    return 0.5 if begins or (len(sound) > 2 and features.sound(word) == sound) else 0.0
