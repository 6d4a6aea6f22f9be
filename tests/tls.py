"""One TLS context for all clients of a test process: reading the roots takes 50 ms, and thousands of these clients never speak TLS."""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Any, Final

import certifi
import httpcore2

_COMMON: Final = frozenset((None, certifi.where(), os.environ.get("SSL_CERT_FILE") or None))
"""Roots that the machine has; a test that makes its own wants them read."""

_create: Final = ssl.create_default_context
_common: Final = cache(_create)
_default: Final = httpcore2.default_ssl_context


def _context(purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH, **roots: Any) -> ssl.SSLContext:
    given = {name: one for name, one in roots.items() if one is not None}
    if set(given) <= {"cafile"} and given.get("cafile") in _COMMON:
        return _common(purpose, **given)
    return _create(purpose, **given)


@cache
def _of_the_machine() -> ssl.SSLContext:
    return _default()


def _default_context(*, _trust_env: bool = True) -> ssl.SSLContext:
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return _default(_trust_env=_trust_env)
    return _of_the_machine()


def share() -> None:
    """Have the clients of this process share their context."""
    ssl.create_default_context = _context
    httpcore2.default_ssl_context = _default_context
