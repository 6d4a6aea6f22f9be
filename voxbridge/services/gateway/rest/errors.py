"""Errors of the REST interface: the body and status of each, and the answers that its description (OpenAPI) names."""

from __future__ import annotations

import re
from typing import Any, Final

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from voxbridge.services.gateway.rest import pages
from voxbridge.shared.errors import HTTP_STATUS, Code, VoxbridgeError


def refused(description: str) -> dict[str, Any]:
    """Describe an answer whose body is `schemas.Problem`. It is named by reference: the framework reads a model anew for each answer of
    each route, which took most of the start of a gateway."""
    return {"description": description, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}


BAD: Final[dict[int | str, dict[str, Any]]] = {422: refused("An argument is out of its range")}
NONE: Final[dict[int | str, dict[str, Any]]] = {404: refused("There is no such session")}
TOKEN: Final[dict[int | str, dict[str, Any]]] = {401: refused("A token is needed")}
ALL: Final[dict[int | str, dict[str, Any]]] = {403: refused("The administrators' token is needed")}
JOURNALS: Final[dict[int | str, dict[str, Any]]] = {403: refused("Journals are for administrators")}
AWAY: Final[dict[int | str, dict[str, Any]]] = {503: refused("Something the answer needs is away")}


async def on_voxbridge(_: Request, error: Exception) -> Response:
    """Answer one of our own errors."""
    assert isinstance(error, VoxbridgeError)  # noqa: S101 - registered for this class only
    headers = {"WWW-Authenticate": "Bearer"} if error.code is Code.UNAUTHENTICATED else None
    return _problem(error, HTTP_STATUS[error.code], headers)


async def on_validation(_: Request, error: Exception) -> Response:
    """Answer a request with a missing or wrong field; the first one is named."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class only
    first = error.errors()[0]
    field = str(first["loc"][-1])
    limits = first.get("ctx", {})
    limit = next((limits[name] for name in ("le", "ge", "pattern") if name in limits), None)
    problem = VoxbridgeError(Code.INVALID_ARGUMENT, f"`{field}`: {_sentence(first['msg'])}", field=field, limit=limit)
    return _problem(problem, 422)


async def on_http(request: Request, error: Exception) -> Response:
    """Answer the framework's refusals: unknown path, wrong method and others."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class only
    path = request.url.path
    if error.status_code == 404 and not path.startswith("/api/") and "text/html" in request.headers.get("accept", ""):
        return pages.missing(path)
    code = Code.NOT_FOUND if error.status_code == 404 else Code.INVALID_MESSAGE
    return _problem(VoxbridgeError(code, _sentence(error.detail)), error.status_code, error.headers)


def _problem(error: VoxbridgeError, status: int, headers: Any = None) -> Response:
    headers = dict(headers or {})
    if error.retry_after_ms is not None:
        headers["Retry-After"] = str(max(1, error.retry_after_ms // 1_000))
    return JSONResponse(error.as_dict(), status_code=status, headers=headers)


def _sentence(text: str) -> str:
    return re.sub(r"\.?$", ".", text, count=1)
