"""A YAML file as people write it: its fields, typed, and a problem with file, line and field for each value that is wrong.

Owns what YAML is accepted, the limits of a file, and the wording of what was expected. Does not own the fields of any kind of file.
"""

from __future__ import annotations

import re
import stat
import unicodedata
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from voxbridge.shared.agents.model import nearest

FILE_LIMIT: Final = 64 * 1024
"""Bytes of one file."""

VALUES_LIMIT: Final = 2_000
"""Scalars, lists and mappings of one file: above what the largest pipeline needs."""

Form = tuple[re.Pattern[str], str]
"""Pattern of a text, and what it says in words."""

NAME: Final[Form] = (
    re.compile(r"[a-z][a-z0-9-]{0,63}"),
    "a name: lower-case letters, digits and hyphens, a letter first, at most 64 characters",
)
_DEPTH: Final = 8
_SHOWN: Final = 40
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Problem(msgspec.Struct, frozen=True):
    """A problem in a file. `line` counts from 1; 0 when the problem has no line."""

    path: str
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


class Value(NamedTuple):
    """A value in a file, and the line of its key."""

    field: str
    line: int
    node: Any


class YamlFile:
    """A file: its fields, typed, and its problems. A wrong value is reported and treated as missing."""

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        self.path = path
        self._problems = problems
        self.name = path.stem
        self.fields: dict[str, Value] = {}

    def wrong(self, value: Value | int, message: str) -> None:
        """Report a problem of a value, or of a line."""
        field, line = ("", value) if isinstance(value, int) else (value.field, value.line)
        self._problems.append(Problem(str(self.path), line, field, f"`{field}` {message}" if field else message))

    def read(self, what: str, known: Collection[str]) -> None:
        """Fill `fields` and `name`."""
        node = self._compose()
        if node is None:
            return
        self.fields = self.mapping(Value("", node.start_mark.line + 1, node), what, known)
        if not self.fields:
            return
        named = self.text(self.fields, "name", form=NAME)
        if "name" not in self.fields and not NAME[0].fullmatch(self.name):
            self.wrong(1, f"The file's name must be {NAME[1]}, or the file needs a `name`.")
        self.name = named or self.name

    def _compose(self) -> Any:
        if self.path.suffix != ".yaml":
            self.wrong(0, "Only files that end in .yaml are read; give it that ending, or move it away.")
            return None
        try:
            if not stat.S_ISREG(self.path.stat().st_mode):
                self.wrong(0, "This is not a file.")
                return None
            with self.path.open("rb") as file:
                data = file.read(FILE_LIMIT + 1)
        except OSError as error:
            self.wrong(0, f"The file cannot be read: {error.strerror}.")
            return None
        if len(data) > FILE_LIMIT:
            self.wrong(0, f"The file has more than {FILE_LIMIT:,} bytes, which is the most that is read.")
            return None
        node = None
        try:
            self._plain(text := data.decode("utf-8-sig"))
            node = yaml.compose(text, Loader=_LOADER)
            if node is None or not node.value:
                self.wrong(1, "The file is empty.")
        except UnicodeDecodeError as error:
            self.wrong(data.count(b"\n", 0, error.start) + 1, "The file must be text in UTF-8.")
        except _NotPlain as error:
            self.wrong(error.line, str(error))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            self.wrong(mark.line + 1 if mark else 0, f"This is not YAML: {getattr(error, 'problem', None) or error}.")
        return node if node is not None and node.value else None

    def _plain(self, text: str) -> None:
        """Refuse YAML that could cost or mean more than it seems to, before anything is built from it."""
        found = yaml.SafeLoader.NON_PRINTABLE.search(text)
        if found:
            raise _NotPlain(text.count("\n", 0, found.start()) + 1, "The file holds a control character.")
        depth = values = 0
        for event in yaml.parse(text, Loader=_LOADER):
            line = event.start_mark.line + 1
            if getattr(event, "anchor", None) is not None:
                raise _NotPlain(line, "Anchors (&) and aliases (*) are not read; write the value out, or put it in quotes.")
            if getattr(event, "tag", None) is not None:
                raise _NotPlain(line, "Tags (!) are not read; put the value in quotes if it begins with one.")
            depth += isinstance(event, yaml.CollectionStartEvent)
            values += isinstance(event, yaml.NodeEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEPTH:
                raise _NotPlain(line, f"Values may be nested {_DEPTH} deep.")
            if values > VALUES_LIMIT:
                raise _NotPlain(line, f"The file holds more than {VALUES_LIMIT:,} values, which is the most that is read.")

    def mapping(self, value: Value, what: str, known: Collection[str]) -> dict[str, Value]:
        """Return the known fields of a mapping."""
        found: dict[str, Value] = {}
        if not isinstance(value.node, yaml.MappingNode):
            must = "must be" if value.field else "The file must hold"
            self.wrong(value, f"{must} {what}, in lines of `field: value`; it is {kind_of(value.node)}.")
            return found
        for key, node in value.node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            one = Value(f"{value.field}.{name}" if value.field else name, key.start_mark.line + 1, node)
            if name not in known:
                hint = nearest(name, known) or f" Its fields are: {', '.join(known)}."
                self.wrong(one._replace(field=_cut(one.field) or "?"), f"is not a field of {what}.{hint}")
            elif name in found:
                self.wrong(one, f"is there already, in line {found[name].line}.")
            else:
                found[name] = one
        return found

    def items(self, fields: dict[str, Value], name: str, limit: int, of: str) -> list[Value]:
        """Return the elements of a list; none when there is no list."""
        value = fields.get(name)
        if value is None or kind_of(value.node) == "nothing":
            return []
        if not isinstance(value.node, yaml.SequenceNode):
            self.wrong(value, f"must be a list of {of}, such as [first, second]; it is {kind_of(value.node)}.")
            return []
        if len(value.node.value) > limit:
            self.wrong(value, f"has {len(value.node.value)} elements; at most {limit} are taken.")
        return [Value(f"{value.field}[{at}]", node.start_mark.line + 1, node) for at, node in enumerate(value.node.value[:limit])]

    def names(self, fields: dict[str, Value], name: str, limit: int, of: str, form: Form) -> dict[str, Value]:
        """Return the elements of a list of names, each once, by name."""
        found: dict[str, Value] = {}
        for one in self.items(fields, name, limit, of):
            text = self.text({name: one}, name, form=form, needed=True)
            if text in found:
                self.wrong(one, f"is {text}, which is in the list already.")
            elif text:
                found[text] = one
        return found

    def text(
        self,
        fields: dict[str, Value],
        name: str,
        *,
        limit: int = 256,
        form: Form | None = None,
        lines: bool = False,
        needed: bool = False,
    ) -> str:
        """Return a text without surrounding whitespace, on one line unless `lines`; empty when there is none. Numbers and dates are taken
        as written; yes and no are refused, since the author of `greeting: off` does not mean the word."""
        value = fields.get(name)
        if value is None:
            return ""
        kind = kind_of(value.node)
        if kind == "nothing":
            if needed:
                self.wrong(value, f"must be {form[1] if form else 'text'}; it is empty.")
            return ""
        if kind in ("a list", "a mapping", "a yes-or-no value"):
            quotes = f": put {shown(value.node.value)} in quotes if you mean the word" if kind == "a yes-or-no value" else ""
            self.wrong(value, f"must be {form[1] if form else 'text'}; it is {kind}{quotes}.")
            return ""
        text = str(value.node.value).strip() if lines else " ".join(str(value.node.value).split())
        if any(unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t" for character in text):
            self.wrong(value, "holds characters that cannot be shown.")
        elif form is not None and form[0].fullmatch(text) is None:
            self.wrong(value, f"must be {form[1]}; it is {shown(text)}.")
        elif len(text) > limit:
            self.wrong(value, f"has {len(text):,} characters; at most {limit:,} are taken.")
        else:
            return text
        return ""

    def flag(self, fields: dict[str, Value], name: str) -> bool | None:
        """Return true or false, or None when the field is missing or empty."""
        value = fields.get(name)
        if value is None or kind_of(value.node) == "nothing":
            return None
        if kind_of(value.node) != "a yes-or-no value":
            self.wrong(value, f"must be true or false; it is {kind_of(value.node)}.")
            return None
        return bool(yaml.SafeLoader.bool_values[value.node.value.lower()])


class _NotPlain(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def kind_of(node: Any) -> str:
    """Return what a value is, in words."""
    if isinstance(node, yaml.ScalarNode):
        names = {"bool": "a yes-or-no value", "int": "a number", "float": "a number"}
        kind = node.tag.rpartition(":")[2]
        return "nothing" if kind == "null" or not node.value.strip() else names.get(kind, "text")
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def shown(text: str) -> str:
    """Return a text in quotes, cut to what a message can show."""
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
