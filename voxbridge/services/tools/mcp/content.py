"""Answers of MCP tools as results of functions: text cut, structure checked, images and resources as links.

Owns the form and its bounds. `checked` runs in a child process, since a schema of a stranger can hold patterns and references that take
for ever.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from voxbridge.services.tools.mcp.text import clean
from voxbridge.services.tools.registry import worker
from voxbridge.shared.errors import Code, VoxbridgeError

TEXT_LIMIT: Final = 12_000
"""Characters of text in a result."""

STRUCTURE_LIMIT: Final = 16 * 1024
"""Bytes of structured content as JSON."""

LINKS_LIMIT: Final = 8
SPOKEN_LIMIT: Final = 200
"""Characters of a text that is said as it is; a longer one is put into words by the model."""

_NOTHING: Final = ("null", "None", "undefined")
"""Texts of tools that answer nothing; nobody wants to hear them."""

CHECK_S: Final = 2.0
CHECK_MB: Final = 128
_SHORT: Final = 256


def result_of(server: str, tool: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return what a tool answered (a `CallToolResult` as JSON) as a function's result. Raises `PROVIDER_REFUSED` with the tool's own words
    for an answer that is an error."""
    blocks = [block for block in answer.get("content") or [] if isinstance(block, dict)]
    texts = [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]
    links = [_link(block) for block in blocks if block.get("type") != "text"]
    texts += [link.pop("text") for link in links if "text" in link]
    text = clean("\n".join(texts), TEXT_LIMIT)
    text = "" if text in _NOTHING else text
    if answer.get("isError"):
        raise VoxbridgeError(Code.PROVIDER_REFUSED, f"{tool} of {server} failed: {clean(text, 600) or 'it did not say why'}")
    result: dict[str, Any] = {"text": text} if text else {}
    if len(links) > LINKS_LIMIT:
        result["more_links"] = len(links) - LINKS_LIMIT
    if links:
        result["links"] = links[:LINKS_LIMIT]
    structure = answer.get("structuredContent")
    if structure is not None:
        _add_structure(result, structure)
    if text and len(text) <= SPOKEN_LIMIT and "\n" not in text and not text.startswith(("{", "[")):
        result["spoken"] = text
    return result or {"text": "", "spoken": "Done."}


def question(server: str, texts: list[str]) -> dict[str, Any]:
    """Return the result of a call whose server wants to know something of the user first."""
    asked = " ".join(clean(text, _SHORT) for text in texts[:4])
    return {
        "status": "needs_input",
        "server": server,
        "question": asked,
        "spoken": f"{server} asks: {asked} Tell me, and I'll call it again with that.",
    }


@worker(timeout_s=CHECK_S, memory_mb=CHECK_MB)
def checked(schema: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """Return why a value does not fit a schema; an empty text where it does.

    Args:
        schema: JSON Schema that a server declared.
        value: What it answered.
    """
    from jsonschema import SchemaError
    from jsonschema.exceptions import best_match
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
        registry: Any = Registry()  # an empty one fetches nothing
        found = best_match(kind(schema, registry=registry).iter_errors(value))
    except (SchemaError, Unresolvable, RecursionError) as error:
        return {"why": f"the schema itself is wrong ({clean(str(error).splitlines()[0], _SHORT)})"}
    return {"why": "" if found is None else clean(f"{found.json_path}: {found.message}", _SHORT)}


def mismatch(result: dict[str, Any], server: str, why: str) -> dict[str, Any]:
    """Return the result without a structure that is not what its server declared, and saying so."""
    kept = {key: value for key, value in result.items() if key != "structured"}
    return {**kept, "warning": f"{server} answered something other than it declares: {why}."}


def _add_structure(result: dict[str, Any], structure: Any) -> None:
    try:
        size = len(msgspec.json.encode(structure))
        msgspec.msgpack.encode(structure)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        result["warning"] = f"The structured answer cannot be passed on: {clean(str(error), _SHORT)}."
        return
    if size > STRUCTURE_LIMIT:
        result["warning"] = f"The structured answer has {size} bytes and was left out; {STRUCTURE_LIMIT} is the most."
    else:
        result["structured"] = structure


def _link(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block that is not text as a link; the bytes of an image or a sound stay with the server."""
    inner = block.get("resource")
    told: dict[str, Any] = inner if isinstance(inner, dict) else block
    link: dict[str, Any] = {"kind": clean(str(block.get("type", "")), 32)}
    for key, name in (("uri", "uri"), ("name", "name"), ("mimeType", "mime")):
        if isinstance(told.get(key), str):
            link[name] = clean(told[key], 2 * _SHORT)
    data = told.get("data", told.get("blob"))
    if isinstance(data, str):
        link["bytes"] = len(data) * 3 // 4
    if isinstance(told.get("text"), str):
        link["text"] = told["text"]
    return link
