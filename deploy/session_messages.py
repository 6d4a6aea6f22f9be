"""`python -m deploy.session_messages`: write the JSON Schemas and the TypeScript types of the messages of `/session`.

Owns the translation from `voxbridge.services.gateway.platform.messages`, which says what the messages are. A gate of `make check` refuses
files that are not what this makes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from voxbridge.services.gateway.platform import messages

ROOT: Final = Path(__file__).parents[1]
SCHEMAS: Final = ROOT / "docs" / "session.schema.json"
TYPES: Final = ROOT / "client" / "src" / "session-messages.ts"
_REF: Final = "#/$defs/{name}"
_HEAD: Final = "// Written by `python -m deploy.session_messages` from the types of the gateway: change them there.\n"
_SIMPLE: Final = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


def schemas() -> str:
    """Return the JSON Schemas of both directions."""
    (client, server), definitions = msgspec.json.schema_components((messages.ClientMessage, messages.ServerMessage), ref_template=_REF)
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Messages of /session",
        "$defs": {**definitions, "ClientMessage": client, "ServerMessage": server},
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def types() -> str:
    """Return the TypeScript types of both directions."""
    known = json.loads(schemas())["$defs"]
    return _HEAD + "".join(f"\n{_declared(name, schema)}" for name, schema in known.items())


def main() -> None:
    """Write both files."""
    SCHEMAS.write_text(schemas(), encoding="utf-8")
    TYPES.write_text(types(), encoding="utf-8")


def _declared(name: str, schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return f"export type {name} = {_type(schema)};\n"
    needed = set(schema.get("required", ()))
    lines = [f"  {field}{'' if field in needed else '?'}: {_type(of)};" for field, of in schema["properties"].items()]
    about = schema.get("description", "").split("\n\n")[0]
    return "\n".join([f"/** {about} */", f"export interface {name} {{", *lines, "}", ""])


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(one) for one in schema["anyOf"])
    kinds = schema["type"]
    if isinstance(kinds, list):
        return " | ".join(_SIMPLE[kind] for kind in kinds)
    if kinds == "array":
        of = _type(schema["items"])
        return f"{of}[]" if re.fullmatch(r"\w+", of) else f"({of})[]"
    return "Record<string, unknown>" if kinds == "object" else _SIMPLE[kinds]


if __name__ == "__main__":
    main()
