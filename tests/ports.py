"""Ports for servers that tests start: each is given out once, also beside another run, and none is in the system's range for outgoing
connections."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Final

_FIRST: Final = 20_000
_LAST: Final = 32_000
"""End of the range: below Linux's ports for outgoing connections."""

_STEP: Final = 997
"""Ports between the beginnings of two processes whose ids follow each other; a prime, so that all ports come."""

_claims: Final[list[socket.socket]] = []
"""One socket for each port that was given out. Its name in the kernel says so to every process of the machine, until this one ends."""


def free_port() -> int:
    """Return a port that nothing listens on and that nobody else was given."""
    for port in _range():
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0voxbridge-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return port
    raise AssertionError(f"every port from {_FIRST} to {_LAST} is taken")


def _range() -> Iterator[int]:
    span = _LAST - _FIRST
    start = os.getpid() * _STEP
    for step in range(span):
        yield _FIRST + (start + len(_claims) + step) % span
