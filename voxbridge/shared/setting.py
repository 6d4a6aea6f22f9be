"""One setting: how it is declared, read from its environment variable, and printed.

Owns the forms of values and their errors, and what of a URL may be printed. Does not own which settings there are
(`voxbridge.shared.config`). Pure.
"""

from __future__ import annotations

import re
from dataclasses import Field, field
from pathlib import Path
from typing import Any, Final

from voxbridge.shared import time_zones
from voxbridge.shared.errors import Code, VoxbridgeError

PREFIX: Final = "VOXBRIDGE_"
_SIGNED_IN: Final = re.compile(r"//(\S*)@")
_QUERY: Final = re.compile(r"\?\S+$")
_BETWEEN: Final = re.compile(r",(?=\s*(?:[\w.-]+=)?\w+://)")
KEY_PREFIX: Final = f"{PREFIX}KEY_"
"""Prefix of the variables that hold the keys of named endpoints; they are no settings, and are never shown."""

URL: Final = (r"(?:https?://[^\s]+)?", "an http:// or https:// URL")
_ENDPOINT: Final = r"\s*(?!(?:gemini|anthropic|openai|local)=)[a-z][a-z0-9-]{0,31}=https?://[^\s,]+\s*"
ENDPOINTS: Final = (
    rf"(?:{_ENDPOINT}(?:,{_ENDPOINT})*)?",
    "`name=url`, separated by commas, each name of a-z, 0-9 and `-`, and none of gemini, anthropic, openai, local",
)

_PRICE = r"\s*[^\s=,]+=\d{1,6}(?:\.\d{1,6})?/\d{1,6}(?:\.\d{1,6})?\s*"
PRICES: Final = (rf"(?:{_PRICE}(?:,{_PRICE})*)?", "`model=in/out`, separated by commas, such as `claude-sonnet-5=3/15`")

_HOST = r"\s*[0-9a-zA-Z._-]{1,253}(?::\d{1,5})?\s*"
HOSTS: Final = (rf"(?:{_HOST}(?:,{_HOST})*)?", "`name` or `name:port`, separated by commas, such as `wiki.example:8090`")

_NETWORK = r"\s*[0-9a-fA-F:.]+(?:/\d{1,3})?\s*"
NETWORKS: Final = (rf"(?:{_NETWORK}(?:,{_NETWORK})*)?", "addresses or networks, separated by commas, such as `10.0.0.0/8`")


TIME_ZONE: Final = (rf"(?:{time_zones.FORM})?", "the name of a time zone, such as `Europe/Lisbon`")


def setting(
    default: Any,
    text: str,
    *,
    low: float | None = None,
    high: float | None = None,
    secret: bool = False,
    form: tuple[str, str] = ("(?s:.*)", ""),
    blank: bool = False,
) -> Any:
    """Declare a setting. `form` is a pattern and its description; with `blank`, an empty variable means empty and not unset."""
    return field(default=default, metadata={"help": text, "low": low, "high": high, "secret": secret, "form": form, "blank": blank})


def env_name(f: Field[Any]) -> str:
    """Return the environment variable of a field."""
    return PREFIX + f.name.upper()


def shown(text: str) -> str:
    """Return a setting as it may be printed: each URL in it without password, token and query."""
    return ",".join(_QUERY.sub("?…", _SIGNED_IN.sub(_without_password, part)) if "//" in part else part for part in _BETWEEN.split(text))


def _without_password(found: re.Match[str]) -> str:
    user, colon, _ = found[1].partition(":")
    return f"//{user}:…@" if colon else "//…@"


def read(name: str, f: Field[Any], kind: type, text: str) -> Any:
    """Return the value of a variable for a field of this type. Raises `INVALID_ARGUMENT` that names it and what was expected."""
    if kind is Path:
        return Path(text)
    if kind is not int:
        pattern, expected = f.metadata["form"]
        if re.fullmatch(pattern, text) is None:
            given = "not that" if f.metadata["secret"] else repr(shown(text))
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{name} must be {expected}; it is {given}.", field=name, limit=expected)
        return text
    low, high = f.metadata["low"], f.metadata["high"]
    try:
        value = int(text)
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT,
            f"{name} must be a whole number from {low} to {high}; it is {text!r}.",
            field=name,
            limit=f"{low}..{high}",
        )
    return value
