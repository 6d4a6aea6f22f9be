"""Arguments that name a thing, by what the user said: values that were named are the ones that the model may write.

A small model takes the first value of an enum as easily as the one that was said. Which values a request names can be read off it, also
where a name is only half said ("the wiki" for `team_wiki`), or misheard.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    an argument that may be left out and of which no value is named is left out."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return dict(schema)
    required = schema.get("required", ())
    spoken = features.words(said)
    stems, sounds = {features.stem(word) for word in spoken}, {features.sound(word) for word in spoken}
    kept: dict[str, Any] = {}
    for name, value in properties.items():
        choices = value.get("enum") if isinstance(value, Mapping) else None
        if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
            kept[name] = value
            continue
        named = [_named(choice, stems, sounds) for choice in choices]
        best = max(named, default=0.0)
        if best > 0:
            kept[name] = {**value, "enum": [choice for choice, share in zip(choices, named, strict=True) if share == best]}
        elif name in required:
            kept[name] = value
    return {**schema, "properties": kept}


def _named(value: str, stems: set[str], sounds: set[str]) -> float:
    """Return the share of a value's words that were said; half as much where they only sound or begin alike."""
    words = features.words(value)
    found = 0.0
    for word in words:
        stem, sound = features.stem(word), features.sound(word)
        if stem in stems:
            found += 1
        elif (len(sound) > 2 and sound in sounds) or (len(stem) >= _LIKE and any(other.startswith(stem[:_LIKE]) for other in stems)):
            found += 0.5
    return found / len(words) if words else 0.0
