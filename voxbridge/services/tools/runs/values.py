"""Values that a run is given: checked against the inputs of its document. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from voxbridge.services.tools.runs.document import Document, Input, fits
from voxbridge.shared.errors import Code, VoxbridgeError

INPUTS_BYTES: Final = 16 * 1024
"""Size of the inputs of a run as JSON."""

_TRUE: Final = frozenset({"true", "yes", "on"})
_FALSE: Final = frozenset({"false", "no", "off"})


def given(document: Document, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return all inputs of a run: those given, typed, and the defaults of the others.

    Words become numbers and truth values where the document wants those, since slots of triggers hold words. Raises `INVALID_ARGUMENT`
    and `TOO_LARGE`, naming the input.
    """
    for name in values:
        if name not in document.inputs:
            known = ", ".join(document.inputs) or "none"
            message = f"{document.name} has no input {name[:40]!r}. Its inputs are: {known}."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=name[:40])
    found: dict[str, Any] = {}
    for name, wanted in document.inputs.items():
        if name in values:
            found[name] = _typed(name, wanted, values[name])
        elif wanted.default is not None:
            found[name] = wanted.default
        else:
            message = f"{document.name} needs a value for {name!r}."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=name)
    if len(msgspec.json.encode(found)) > INPUTS_BYTES:
        message = f"The inputs of a run have at most {INPUTS_BYTES} bytes."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="inputs", limit=INPUTS_BYTES)
    return found


def _typed(name: str, wanted: Input, value: Any) -> Any:
    if isinstance(value, str) and wanted.type != "string":
        value = _read(value.strip(), wanted.type)
    if not fits(value, wanted.type):
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The input {name!r} must be of the type {wanted.type}.", field=name)
    return int(value) if wanted.type == "integer" else value


def _read(word: str, kind: str) -> Any:
    if kind == "boolean":
        return True if word.casefold() in _TRUE else False if word.casefold() in _FALSE else word
    try:
        return msgspec.convert(word, int if kind == "integer" else float, strict=False)
    except msgspec.ValidationError:
        return word
