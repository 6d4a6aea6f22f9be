"""Requests to a nats-server about itself, on its system account: over a plain socket, without a client to keep.

Owns the few commands of the protocol that one request needs. Does not own what follows from an answer. Keeps nothing.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any, Final

HEALTH: Final = "$SYS.REQ.SERVER.PING.HEALTHZ"
"""`{status, status_code, error?}`: a stream that cannot write its file makes it 503, and says why."""

JETSTREAM: Final = "$SYS.REQ.SERVER.PING.JSZ"
"""`{storage, memory, config: {max_storage, max_memory, store_dir, sync_interval}, streams, messages, …}`."""

ANSWER_LIMIT: Final = 1024 * 1024
_INBOX: Final = "_INBOX.health"


def ask(host: str, port: int, user: str, password: str, subject: str, *, timeout_s: float) -> dict[str, Any]:
    """Return the `data` of a server's answer; blocks for at most `timeout_s`. Raises `OSError` when there is no readable answer."""
    end = time.monotonic() + timeout_s
    with socket.create_connection((host, port), timeout_s) as connection:
        hello = {"verbose": False, "pedantic": False, "user": user, "pass": password, "lang": "python", "version": "1", "protocol": 1}
        words = f"CONNECT {json.dumps(hello)}\r\nSUB {_INBOX} 1\r\nPUB {subject} {_INBOX} 0\r\n\r\n"
        connection.sendall(words.encode())
        said = b""
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("the server did not answer in time")
            connection.settimeout(left)
            chunk = connection.recv(65_536)
            if not chunk or len(said) > ANSWER_LIMIT:
                raise ConnectionError(_refusal(said))
            said += chunk
            if (found := _payload(said)) is not None:
                return found
            if b"\r\n-ERR " in said:
                raise ConnectionError(_refusal(said))


def _payload(said: bytes) -> dict[str, Any] | None:
    """Return the first message in the received bytes, once it is complete."""
    _, mark, rest = said.partition(b"\r\nMSG ")
    head, end, body = rest.partition(b"\r\n")
    if not mark or not end:
        return None
    size = int(head.rsplit(b" ", 1)[-1])
    if len(body) < size:
        return None
    try:
        answer = json.loads(body[:size])
    except ValueError as error:
        raise ConnectionError("the server's answer cannot be read") from error
    data = answer.get("data") if isinstance(answer, dict) else None
    return data if isinstance(data, dict) else {}


def _refusal(said: bytes) -> str:
    _, _, rest = said.partition(b"-ERR ")
    return rest.partition(b"\r\n")[0].decode(errors="replace").strip("' ") or "the server closed the connection"
