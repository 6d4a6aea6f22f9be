"""Ports for servers that tests start: each is given out once, and none is in the system's range for outgoing connections."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Final

_FIRST: Final = 20_000
_LAST: Final = 32_000
"""End of the range: below Linux's ports for outgoing connections."""

_WORKERS: Final = 4


def free_port() -> int:
    """Return a port that nothing listens on, another one with each call."""
    for port in _ports:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("unreachable: the ports go round")


def _round() -> Iterator[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    span = (_LAST - _FIRST) // _WORKERS
    first = _FIRST + worker * span
    start = os.getpid() % span
    while True:
        for step in range(span):
            yield first + (start + step) % span


_ports: Final = _round()
