"""YAML to JSON and back, by the types of YAML 1.2: `no` is a text, and so is `12:30`.

Aliases are followed as far as the document that they make stays within its bound.
"""

from __future__ import annotations

import base64
import datetime
import re
from typing import Any, Final

import yaml

from voxbridge.services.tools.packs.utilities.bounds import NODE_LIMIT, refused, storable
from voxbridge.services.tools.packs.utilities.json_text import DIGITS_LIMIT
from voxbridge.shared.nesting import DEPTH_LIMIT

DOCUMENT_LIMIT: Final = 100
"""Documents in one text."""

_BREAKS: Final = re.compile("[\r\x85\u2028\u2029\ufeff]")
"""Characters that only a text in double quotes keeps."""


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # the library is untyped
    """A safe loader with the scalars of YAML 1.2's core schema, and a bound on what merge keys make."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > NODE_LIMIT:
            raise refused(f"Its merge keys make more than {NODE_LIMIT:,} entries; write it out.")

    def construct_integer(self, node: yaml.Node) -> int | float:
        text = str(self.construct_scalar(node))
        if len(text) > DIGITS_LIMIT:
            return float(text)
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)

    def construct_decimal(self, node: yaml.Node) -> float:
        text = str(self.construct_scalar(node)).lower()
        return float(text.replace(".inf", "inf").replace(".nan", "nan"))


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # the library is untyped
    """A safe dumper that quotes each text that either YAML 1.1 or 1.2 would read as something else."""

    def represent_text(self, text: str) -> yaml.Node:
        other = any(pattern.match(text) for resolvers in _Loader.yaml_implicit_resolvers.values() for _, pattern in resolvers)
        style = '"' if _BREAKS.search(text) else "'" if other else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+0123456789."),
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_decimal)


def load(text: str) -> tuple[Any, int]:
    """Return a YAML text as a JSON value, and its number of documents: of several, a list. Raises `INVALID_ARGUMENT`."""
    documents: list[Any] = []
    try:
        for document in yaml.load_all(text, Loader=_Loader):
            documents.append(document)
            if len(documents) > DOCUMENT_LIMIT:
                raise refused(f"A text may have {DOCUMENT_LIMIT} documents.")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise refused(f"This is not valid YAML: {storable(error.problem or error.context or 'it cannot be read')[:200]}{where}.") from error
    except yaml.YAMLError as error:
        raise refused(f"This is not valid YAML: {storable(' '.join(str(error).split()))[:200]}.") from error
    except RecursionError:
        raise refused(f"It is nested more than {DEPTH_LIMIT} levels deep.") from None
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise refused(f"A value in it does not fit its tag: {storable(str(error))[:200]}.") from error
    value = documents[0] if len(documents) == 1 else documents
    return _json(value, [NODE_LIMIT], 0), len(documents)


def dump(value: Any) -> str:
    """Return a JSON value as YAML, keys in their order."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100))


def _json(value: Any, left: list[int], depth: int) -> Any:
    """Return what a YAML value is in JSON, within the bounds of size and depth."""
    left[0] -= 1
    if left[0] < 0:
        raise refused(f"It has more than {NODE_LIMIT:,} values, as its aliases repeat them.")
    if depth > DEPTH_LIMIT:
        raise refused(f"It is nested more than {DEPTH_LIMIT} levels deep, or holds itself.")
    if isinstance(value, dict):
        return {_key(key): _json(one, left, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_json(one, left, depth + 1) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    return storable(value) if isinstance(value, str) else value


def _key(key: Any) -> str:
    if isinstance(key, bool) or key is None:
        return {True: "true", False: "false", None: "null"}[key]
    if isinstance(key, str | int | float):
        return storable(str(key))
    raise refused("A key in it is a list or an object, which JSON has not.")
