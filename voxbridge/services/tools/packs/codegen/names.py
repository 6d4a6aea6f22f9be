"""Names and fields that generated code is made of, checked before anything is written. Pure.

Owns which names are taken and which kinds a field may have. Nothing else of an argument gets into generated code.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from typing import Final, Literal

from voxbridge.shared.errors import Code, VoxbridgeError

NAME_LIMIT: Final = 48
"""Characters of a name."""

FIELDS_LIMIT: Final = 12
"""Fields or properties of one generated thing."""

FIELD_LIMIT: Final = 80
"""Characters of a field as it is said."""

Kind = Literal["text", "number", "integer", "boolean", "date", "list", "action", "children"]
_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("text", "string", "str", "word", "words"), "text"),
    **dict.fromkeys(("number", "float", "decimal", "price", "amount"), "number"),
    **dict.fromkeys(("integer", "int", "count", "whole number"), "integer"),
    **dict.fromkeys(("boolean", "bool", "yes or no", "flag", "switch"), "boolean"),
    **dict.fromkeys(("date", "day"), "date"),
    **dict.fromkeys(("list", "strings", "array", "list of text", "texts"), "list"),
    **dict.fromkeys(("action", "function", "callback", "handler", "event"), "action"),
    **dict.fromkeys(("children", "content", "node"), "children"),
}
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_SAID: Final = re.compile(r"[A-Za-z][A-Za-z0-9 _-]*")
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_JAVASCRIPT_WORDS: Final = """
abstract any arguments as async await boolean break case catch class const constructor continue debugger declare default delete do
else enum eval export extends false finally for from function get if implements import in infinity infer instanceof interface is
key keyof let module namespace nan never new null number object of package private protected prototype public readonly ref require
return set static string super switch symbol this throw true try type typeof undefined unique unknown var void while with yield
tostring valueof hasownproperty window document globalthis
"""
_JAVASCRIPT: Final = frozenset(re.findall(r"\w+", _JAVASCRIPT_WORDS))
_COMPONENTS: Final = frozenset({"react", "fragment", "reactnode"})
_PYTHON_WORDS: Final = """
str int float bool list dict dt app self cls copy json schema construct validate fields body answer annotated field query fastapi
basemodel configdict none true false model
"""
_PYTHON: Final = frozenset(re.findall(r"\w+", _PYTHON_WORDS))


@dataclass(frozen=True, slots=True)
class Named:
    """A field: its name in words, its kind, and whether it may be left out."""

    words: tuple[str, ...]
    kind: Kind
    optional: bool

    @property
    def camel(self) -> str:
        """Name in JavaScript, such as `onSave`."""
        return self.words[0] + "".join(word.capitalize() for word in self.words[1:])

    @property
    def snake(self) -> str:
        """Name in Python, such as `unit_price`."""
        return "_".join(self.words)

    @property
    def label(self) -> str:
        """Name to show, such as `Unit price`."""
        return " ".join(self.words).capitalize()


def words_of(said: str, *, what: str, field: str) -> tuple[str, ...]:
    """Return the lower-case words of a name such as `UserCard`, `user card` or `user_card`. Raises `INVALID_ARGUMENT` for other names."""
    text = said.strip()
    if not _SAID.fullmatch(text) or len(text) > NAME_LIMIT:
        message = (
            f"{what} begins with a letter, and has letters, digits and spaces, {NAME_LIMIT} at most, such as user card. Choose another."
        )
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field, limit=NAME_LIMIT)
    return tuple(word.lower() for word in _WORD.findall(_HUMPS.sub(" ", text)))


def component(said: str) -> str:
    """Return the name of a component, such as `UserCard`. Raises `INVALID_ARGUMENT`."""
    words = words_of(said, what="A component's name", field="name")
    name = "".join(word.capitalize() for word in words)
    if name.lower() in _COMPONENTS:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{name} is a name of React's own. Choose another.", field="name")
    return name


def fields_of(said: list[str], *, language: Literal["javascript", "python"], field: str) -> list[Named]:
    """Return fields from texts such as `title`, `count: number` or `note?: text`. Raises `INVALID_ARGUMENT` naming what is wrong."""
    if len(said) > FIELDS_LIMIT:
        message = f"There are {len(said)} fields; there may be {FIELDS_LIMIT}. Leave some out."
        raise VoxbridgeError(Code.TOO_LARGE, message, field=field, limit=FIELDS_LIMIT)
    found: dict[str, Named] = {}
    for one in said:
        named = _field(one, field)
        joined = "".join(named.words)
        if joined in found:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The field {named.label} is named twice. Name it once.", field=field)
        taken = _JAVASCRIPT if language == "javascript" else _PYTHON
        reserved = joined in taken or (language == "python" and (keyword.iskeyword(named.snake) or named.words[0] == "model"))
        if reserved:
            raise VoxbridgeError(
                Code.INVALID_ARGUMENT, f"{named.snake} is a reserved word of the language. Choose another name.", field=field
            )
        found[joined] = named
    return list(found.values())


def _field(said: str, field: str) -> Named:
    if len(said) > FIELD_LIMIT:
        message = f"A field has {len(said)} characters; it may have {FIELD_LIMIT}. Say a shorter name."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field, limit=FIELD_LIMIT)
    name, colon, kind_said = said.partition(":")
    optional = name.rstrip().endswith("?") or kind_said.rstrip().endswith("?")
    words = words_of(name.strip().removesuffix("?"), what="A field's name", field=field)
    kind = _KINDS.get(" ".join(kind_said.strip().removesuffix("?").lower().split())) if colon else _guessed(words)
    if kind is None:
        known = "text, number, integer, boolean, date, list, action or children"
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The kind of {' '.join(words)} is not known. Say {known}.", field=field)
    return Named(words, kind, optional)


def _guessed(words: tuple[str, ...]) -> Kind:
    if words == ("children",):
        return "children"
    if len(words) > 1 and words[0] == "on":
        return "action"
    if len(words) > 1 and words[0] in ("is", "has", "can", "should"):
        return "boolean"
    if words[-1] in ("count", "quantity", "age") or words[-1] == "id":
        return "integer"
    if words[-1] in ("price", "amount", "total", "size", "weight"):
        return "number"
    if words[-1] in ("items", "tags", "names", "options"):
        return "list"
    return "text"
