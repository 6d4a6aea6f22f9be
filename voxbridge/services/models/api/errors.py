"""Errors in the form that OpenAI's clients expect: a status and `{"error": {message, type, param, code}}`, with our own fields added."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from voxbridge.shared.errors import HTTP_STATUS, Code, VoxbridgeError

STATUS: Final = HTTP_STATUS | {Code.INVALID_ARGUMENT: 400, Code.TOO_LARGE: 413, Code.OVERLOADED: 429}
"""Statuses that OpenAI's clients expect where REST says others."""


def body(error: VoxbridgeError) -> dict[str, Any]:
    """Return the JSON object of an error."""
    status = STATUS[error.code]
    kind = "rate_limit_error" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    return {"error": {**error.as_dict(), "type": kind, "param": error.field}}


def answer(error: VoxbridgeError) -> JSONResponse:
    """Return the response of an error, with `Retry-After` if the error has a retry time."""
    headers = {"Retry-After": str(-(-error.retry_after_ms // 1_000))} if error.retry_after_ms else None
    return JSONResponse(body(error), STATUS[error.code], headers)


async def on_voxbridge(_request: Request, error: Exception) -> JSONResponse:
    """Answer one of our own errors."""
    return answer(error if isinstance(error, VoxbridgeError) else VoxbridgeError(Code.INTERNAL, "Something failed here."))


async def on_validation(_request: Request, error: Exception) -> JSONResponse:
    """Answer a request with a missing or wrong field; the first one is named."""
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    first = problems[0] if problems else {"loc": ("body",), "msg": "not understood"}
    field = ".".join(str(step) for step in first["loc"] if step != "body") or "body"
    return answer(VoxbridgeError(Code.INVALID_ARGUMENT, f"{field}: {first['msg']}.", field=field))


async def on_http(_request: Request, error: Exception) -> JSONResponse:
    """Answer the framework's refusals: unknown path, wrong method and others."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = str(error.detail) if isinstance(error, HTTPException) else "Something failed here."
    code = Code.NOT_FOUND if status == 404 else Code.INVALID_MESSAGE if status < 500 else Code.INTERNAL
    headers = dict(error.headers) if isinstance(error, HTTPException) and error.headers else None
    return JSONResponse(body(VoxbridgeError(code, f"{detail}.")), status, headers)
