"""Function calls that a model wrote as text instead of requesting them. Pure.

Such text is not an answer: it makes no sense read aloud, and running it directly would bypass validation and logging. This module finds it,
so that it is made as a regular call of a known function; any other text stays text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from voxbridge.shared.agents.functions import Function

LIMIT: Final = 4_000
_FENCE: Final = re.compile(r"\A\s*```\w*\s*(.*?)\s*```\s*\Z", re.DOTALL)
_CALL: Final = re.compile(r"\A\s*(?:\w+\.)?(\w+)\s*\((.*)\)\s*;?\s*\Z", re.DOTALL)
_PAIR: Final = re.compile(r"\s*(\w+)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|-?\d+(?:\.\d+)?|true|false|True|False)\s*(?:,|\Z)")
_WORDS: Final = {"true": True, "True": True, "false": False, "False": False}


def find(text: str, functions: Sequence[Function]) -> tuple[str, dict[str, Any]] | None:
    """Return `(name, arguments)` if the whole text is a call of one of `functions`, else None."""
    if len(text) > LIMIT:
        return None
    fenced = _FENCE.match(text)
    body = fenced.group(1) if fenced else text.strip()
    known = {function.name for function in functions}
    found = _object(body) or _expression(body)
    return found if found is not None and found[0] in known else None


def _object(text: str) -> tuple[str, dict[str, Any]] | None:
    try:
        value = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return None
    function = value.get("function")
    inner = function if isinstance(function, dict) else value
    name = inner.get("name") or inner.get("tool") or inner.get("function")
    arguments = inner.get("arguments", inner.get("args", inner.get("parameters", {})))
    return (name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


def _expression(text: str) -> tuple[str, dict[str, Any]] | None:
    call = _CALL.match(text)
    if call is None:
        return None
    arguments: dict[str, Any] = {}
    at, body = 0, call.group(2).strip()
    while at < len(body):
        pair = _PAIR.match(body, at)
        if pair is None:
            return None
        arguments[pair.group(1)] = _value(pair.group(2))
        at = pair.end()
    return call.group(1), arguments


def _value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return float(text) if "." in text else int(text)
