"""The errors of Voxbridge: one small family with a code, a message that a person can act on, and whether a retry helps.

Owns the codes. Does not own how an error travels: each protocol encodes `VoxbridgeError.as_dict` its own way.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final


class Code(StrEnum):
    """Every error code that leaves a service."""

    INVALID_MESSAGE = "INVALID_MESSAGE"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    TOO_LARGE = "TOO_LARGE"
    NOT_FOUND = "NOT_FOUND"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN_ORIGIN = "FORBIDDEN_ORIGIN"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    MODE_RESTRICTED = "MODE_RESTRICTED"
    CONFLICT = "CONFLICT"
    RATE_LIMITED = "RATE_LIMITED"
    OVERLOADED = "OVERLOADED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    INTERRUPTED = "INTERRUPTED"
    PROVIDER_UNAVAILABLE = "PROVIDER_UNAVAILABLE"
    PROVIDER_REFUSED = "PROVIDER_REFUSED"
    UNAVAILABLE = "UNAVAILABLE"
    INTERNAL = "INTERNAL"


HTTP_STATUS: Final[dict[Code, int]] = {
    Code.INVALID_MESSAGE: 400,
    Code.INVALID_ARGUMENT: 422,
    Code.UNAUTHENTICATED: 401,
    Code.FORBIDDEN_ORIGIN: 403,
    Code.PERMISSION_DENIED: 403,
    Code.MODE_RESTRICTED: 403,
    Code.TOO_LARGE: 422,
    Code.NOT_FOUND: 404,
    Code.CONFLICT: 409,
    Code.RATE_LIMITED: 429,
    Code.CANCELLED: 499,
    Code.INTERNAL: 500,
    Code.INTERRUPTED: 502,
    Code.PROVIDER_REFUSED: 502,
    Code.OVERLOADED: 503,
    Code.UNAVAILABLE: 503,
    Code.PROVIDER_UNAVAILABLE: 503,
    Code.TIMED_OUT: 504,
}
"""HTTP status of an error. 502: what worked on it failed or is gone, and a retry does not help by itself."""

_RETRYABLE = frozenset({Code.RATE_LIMITED, Code.OVERLOADED, Code.TIMED_OUT, Code.UNAVAILABLE, Code.PROVIDER_UNAVAILABLE})


class VoxbridgeError(Exception):
    """An error with a code. `field` and `limit` name the invalid part of an input, if an input was invalid."""

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        field: str | None = None,
        limit: float | str | None = None,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.limit = limit
        self.retryable = code in _RETRYABLE if retryable is None else retryable
        self.retry_after_ms = retry_after_ms

    def as_dict(self) -> dict[str, Any]:
        """Return `{code, message, retryable}` and, where they are known, `field`, `limit`, `retry_after_ms`."""
        out: dict[str, Any] = {"code": self.code.value, "message": self.message, "retryable": self.retryable}
        for name in ("field", "limit", "retry_after_ms"):
            value = getattr(self, name)
            if value is not None:
                out[name] = value
        return out

    @classmethod
    def from_dict(cls, told: Mapping[str, object]) -> VoxbridgeError:
        """Return the error that `as_dict` gave. Raises `KeyError` or `ValueError` for what is none."""
        field, limit, after = told.get("field"), told.get("limit"), told.get("retry_after_ms")
        return VoxbridgeError(
            Code(str(told["code"])),
            str(told.get("message", "")),
            field=None if field is None else str(field),
            limit=limit if isinstance(limit, int | float | str) else None,
            retryable=bool(told.get("retryable")),
            retry_after_ms=after if isinstance(after, int) else None,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code.value}, {self.message!r})"


class Conflict(VoxbridgeError):
    """Error of an append that the log refused: another process wrote under this prefix since the writer last looked."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.CONFLICT, message, retryable=False)


class Unavailable(VoxbridgeError):
    """Error of a dependency that does not answer. The service retries it; the message tells the caller why it waits."""

    def __init__(self, message: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(Code.UNAVAILABLE, message, retry_after_ms=retry_after_ms)
