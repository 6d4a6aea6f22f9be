"""REST of a gateway as `voxbridge mcp` uses it: one key, and what that key may do.

Owns the request and the errors in words. Does not own any right: the gateway decides by the key. Standard library, since a client with more
in it takes longer to import than the whole server may take to start.
"""

from __future__ import annotations

import http.client
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from voxbridge.shared.errors import Code, VoxbridgeError

TIMEOUT_S: Final = 70.0
"""Seconds that an answer may take: a function has 30 s or what it declares, and the gateway waits for it."""

ANSWER_LIMIT: Final = 32 * 1024 * 1024


class Rest:
    """The REST interface of the gateway at `url`, asked with `key`. Raises `INVALID_ARGUMENT` for what is not an address."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise VoxbridgeError(
                Code.INVALID_ARGUMENT, f"{url!r} is not an address of a gateway, as http://127.0.0.1:8420 is one.", field="url"
            )
        self._url, self._host, self._port, self._https = url.rstrip("/"), parts.hostname, parts.port, parts.scheme == "https"
        self._base = parts.path.rstrip("/")
        self._key = key

    def get(self, path: str, **query: Any) -> Any:
        """Return the answer to a GET request. Raises the gateway's error, and `UNAVAILABLE` without one."""
        told = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items() if value is not None}
        return self._ask("GET", f"{path}?{urlencode(told)}" if told else path)

    def post(self, path: str, body: Any, **headers: str) -> Any:
        """Return the answer to a POST request. Raises as `get`."""
        return self._ask("POST", path, msgspec.json.encode(body), {"Content-Type": "application/json", **headers})

    def _ask(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Any:
        kind = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=TIMEOUT_S)
        try:
            connection.request(method, self._base + path, body, {"Authorization": f"Bearer {self._key}", **(headers or {})})
            answer = connection.getresponse()
            data = answer.read(ANSWER_LIMIT + 1)
        except (OSError, http.client.HTTPException) as error:
            message = (
                f"No gateway answers at {self._url} ({type(error).__name__}). Start it with `voxbridge up`, or give its address with --url."
            )
            raise VoxbridgeError(Code.UNAVAILABLE, message) from error
        finally:
            connection.close()
        if len(data) > ANSWER_LIMIT:
            raise VoxbridgeError(Code.TOO_LARGE, f"The answer has more than {ANSWER_LIMIT >> 20} MiB.", limit=ANSWER_LIMIT)
        if answer.status >= http.client.BAD_REQUEST:
            raise _error(answer.status, data)
        return msgspec.json.decode(data)


def part(text: str) -> str:
    """Return a text as one part of a path."""
    return quote(text, safe="")


class _Problem(msgspec.Struct, frozen=True):
    code: Code
    message: str
    retryable: bool = False
    field: str | None = None


def _error(status: int, data: bytes) -> VoxbridgeError:
    try:
        told = msgspec.json.decode(data, type=_Problem)
    except msgspec.MsgspecError:
        return VoxbridgeError(Code.INTERNAL, f"The gateway answered with {status} and no reason.")
    return VoxbridgeError(told.code, told.message, field=told.field, retryable=told.retryable)
