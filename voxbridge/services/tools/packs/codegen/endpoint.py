"""The text of a FastAPI module with one endpoint. Pure.

Owns the form of the text and which paths are taken. It is made of checked names alone (`voxbridge.services.tools.packs.codegen.names`).
"""

from __future__ import annotations

import keyword
import re
from typing import Final, Literal

from voxbridge.services.tools.packs.codegen.names import Named
from voxbridge.shared.errors import Code, VoxbridgeError

Method = Literal["get", "post", "put", "patch", "delete"]
PARTS_LIMIT: Final = 8
"""Parts of an endpoint's path."""

TEXT_LIMIT: Final = 1_000
"""Characters that a text may have in a generated endpoint."""

LIST_LIMIT: Final = 100
_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,47}")
_PARAMETER: Final = re.compile(r"\{([a-z][a-z0-9_]{0,47})\}")
_TYPES: Final = {"text": "str", "number": "float", "integer": "int", "boolean": "bool", "date": "dt.date", "list": "list[str]"}
_STATUS: Final[dict[Method, int]] = {"get": 200, "post": 201, "put": 200, "patch": 200, "delete": 200}
_TAKEN: Final = frozenset({"body", "app", "str", "int", "dt", "list", "float", "bool", "answer", "field", "query"})


def parts_of(said: str) -> list[str]:
    """Return the parts of a path such as `/orders/{order_id}` or `orders`. Raises `INVALID_ARGUMENT`."""
    text = said.strip()
    parts = [part for part in text.split("/") if part]
    good = all(_PART.fullmatch(part) or _PARAMETER.fullmatch(part) for part in parts)
    names = [found[1] for part in parts if (found := _PARAMETER.fullmatch(part))]
    known = all(not keyword.iskeyword(name) and name not in _TAKEN for name in names) and len(set(names)) == len(names)
    if not good or not known or not 1 <= len(parts) <= PARTS_LIMIT or "//" in text:
        message = (
            f"A path has 1 to {PARTS_LIMIT} parts of letters, digits, - and _, or parameters such as {{order_id}}, each named once. "
            "Say another path."
        )
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="path", limit=PARTS_LIMIT)
    return parts


def module_name(parts: list[str], method: Method) -> str:
    """Return the name of the module, such as `post_orders`."""
    words = [re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_") for part in parts]
    return "_".join([method, *words])[:80].rstrip("_")


def endpoint(parts: list[str], method: Method, fields: list[Named]) -> str:
    """Return a module that FastAPI serves: it answers with what it was sent, refuses other input with 422, and shows where to go on.

    Fields are query parameters of `get` and `delete`, else properties of the body. Raises `INVALID_ARGUMENT` for a field that the path has.
    """
    parameters = [found[1] for part in parts if (found := _PARAMETER.fullmatch(part))]
    _refuse(fields, parameters)
    path, function = "/" + "/".join(parts), module_name(parts, method)
    in_body = bool(fields) and method not in ("get", "delete")
    kinds = {name: "int" if name == "id" or name.endswith("_id") else "str" for name in parameters}
    dates = any(one.kind == "date" for one in fields)
    pydantic = ["BaseModel", *(["ConfigDict", "Field"] if in_body else [])]
    lines = [
        f'"""{method.upper()} {path}. Start it with: uvicorn {function}:app"""',
        "",
        *(["import datetime as dt"] if dates else []),
        *(["from typing import Annotated"] if fields and not in_body else []),
        *([""] if dates or (fields and not in_body) else []),
        f"from fastapi import FastAPI{', Query' if fields and not in_body else ''}",
        f"from pydantic import {', '.join(pydantic)}",
        "",
        f'app = FastAPI(title="{path}")',
        "",
        "",
    ]
    if in_body:
        lines += [
            "class Body(BaseModel):",
            '    """What a request has to send."""',
            "",
            '    model_config = ConfigDict(extra="forbid")',
            "",
        ]
        lines += [f"    {_declared(one, 'Field')}" for one in fields] + ["", ""]
    lines += ["class Answer(BaseModel):", '    """What a request is answered with."""', ""]
    lines += [f"    {name}: {kind}" for name, kind in kinds.items()]
    lines += [f"    {one.snake}: {_TYPES[one.kind]}{' | None' if one.optional else ''}" for one in fields]
    lines += [] if kinds or fields else ["    ok: bool"]
    given = [f"{name}: {kind}" for name, kind in kinds.items()]
    given += ["body: Body"] if in_body else []
    ordered = sorted(fields, key=lambda one: one.optional)
    given += [_queried(one) for one in ordered] if not in_body else []
    answer = [f"{name}={name}" for name in kinds]
    answer += [f"{one.snake}={'body.' if in_body else ''}{one.snake}" for one in fields]
    lines += [
        "",
        "",
        f'@app.{method}("{path}", status_code={_STATUS[method]})',
        f"async def {function}({', '.join(given)}) -> Answer:",
        f'    """Answer {method.upper()} {path}; put the work in here."""',
        f"    return Answer({', '.join(answer) or 'ok=True'})",
        "",
    ]
    return "\n".join(lines)


def _refuse(fields: list[Named], parameters: list[str]) -> None:
    for one in fields:
        if one.snake in parameters:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{one.snake} is in the path already. Leave one of them out.", field="fields")
        if one.kind not in _TYPES:
            message = f"An endpoint cannot have {one.snake} of the kind {one.kind}. Say text, number, integer, boolean, date or list."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="fields")


def _bound(one: Named) -> str:
    if one.kind == "text":
        return f"max_length={TEXT_LIMIT}" if one.optional else f"min_length=1, max_length={TEXT_LIMIT}"
    return f"max_length={LIST_LIMIT}" if one.kind == "list" else "allow_inf_nan=False" if one.kind == "number" else ""


def _declared(one: Named, maker: str) -> str:
    bound = _bound(one)
    if one.optional:
        return f"{one.snake}: {_TYPES[one.kind]} | None = {maker}(default=None{', ' + bound if bound else ''})"
    return f"{one.snake}: {_TYPES[one.kind]}" + (f" = {maker}({bound})" if bound else "")


def _queried(one: Named) -> str:
    bound = _bound(one)
    kind = f"{_TYPES[one.kind]} | None" if one.optional else _TYPES[one.kind]
    return f"{one.snake}: Annotated[{kind}, Query({bound})]" + (" = None" if one.optional else "")
