"""Errors as OpenAI's clients expect them: a status and `{"error": {message, type, param, code}}`, with our own fields beside."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from voxbridge.shared.errors import Code, VoxbridgeError

STATUS: Final = {
    Code.INVALID_MESSAGE: 400,
    Code.INVALID_ARGUMENT: 400,
    Code.UNAUTHENTICATED: 401,
    Code.FORBIDDEN_ORIGIN: 403,
    Code.PERMISSION_DENIED: 403,
    Code.NOT_FOUND: 404,
    Code.TOO_LARGE: 413,
    Code.RATE_LIMITED: 429,
    Code.OVERLOADED: 429,
    Code.CANCELLED: 499,
    Code.UNAVAILABLE: 503,
    Code.PROVIDER_UNAVAILABLE: 503,
    Code.TIMED_OUT: 504,
}


def body(error: VoxbridgeError) -> dict[str, Any]:
    """The object of an error."""
    status = STATUS.get(error.code, 500)
    kind = "rate_limit_error" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    return {"error": {**error.as_dict(), "type": kind, "param": error.field}}


def answer(error: VoxbridgeError) -> JSONResponse:
    """The response of an error; `Retry-After` where the error knows it."""
    headers = {"Retry-After": str(-(-error.retry_after_ms // 1_000))} if error.retry_after_ms else None
    return JSONResponse(body(error), STATUS.get(error.code, 500), headers)


async def on_voxbridge(_request: Request, error: Exception) -> JSONResponse:
    """Our own errors."""
    return answer(error if isinstance(error, VoxbridgeError) else VoxbridgeError(Code.INTERNAL, "Something failed here."))


async def on_validation(_request: Request, error: Exception) -> JSONResponse:
    """A field of a request is missing or wrong: the first one is named."""
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    first = problems[0] if problems else {"loc": ("body",), "msg": "not understood"}
    field = ".".join(str(step) for step in first["loc"] if step != "body") or "body"
    return answer(VoxbridgeError(Code.INVALID_ARGUMENT, f"{field}: {first['msg']}.", field=field))


async def on_http(_request: Request, error: Exception) -> JSONResponse:
    """No such path, no such method, and what else the framework refuses."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = str(error.detail) if isinstance(error, HTTPException) else "Something failed here."
    code = Code.NOT_FOUND if status == 404 else Code.INVALID_MESSAGE if status < 500 else Code.INTERNAL
    headers = dict(error.headers) if isinstance(error, HTTPException) and error.headers else None
    return JSONResponse(body(VoxbridgeError(code, f"{detail}.")), status, headers)
