"""A WebSocket to a vendor of speech, opened in a bounded time, with failures as `VoxbridgeError`.

Owns how long opening and closing take, and which failures may pass. Knows no vendor's messages. A crash loses the connection, and what was
in it is asked for again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI, ProtocolError

from voxbridge.services.voice.providers.realtime.websocket import proxied
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.language import base

CLOSE_S: Final = 1.0
MESSAGE_LIMIT: Final = 1024 * 1024
"""Bytes of one message of a vendor."""

_POLICY: Final = 1008
"""Close code with which vendors refuse a key, an account without credit, or more connections than it may have."""

_MAY_PASS: Final = ("concurren", "too many", "rate", "limit", "busy", "max_active")
"""Words of a refusal that another attempt may not meet."""


async def dialled(url: str, headers: Mapping[str, str]) -> ClientConnection:
    """Open a socket. Raises what `failures` converts."""
    return await connect(
        url,
        additional_headers=dict(headers),
        open_timeout=base.CONNECT_TIMEOUT_S,
        close_timeout=CLOSE_S,
        max_size=MESSAGE_LIMIT,
        compression=None,
        proxy=proxied(),
    )


@contextmanager
def failures(part: str, key: str) -> Iterator[None]:
    """Convert what a socket raises to an error that names the part."""
    try:
        yield
    except VoxbridgeError:
        raise
    except InvalidStatus as error:
        words = error.response.body.decode(errors="replace") if error.response.body else ""
        raise base.failed(part, error.response.status_code, words, key=key, headers=error.response.headers) from None
    except ConnectionClosed as error:
        code, words = (error.rcvd.code, error.rcvd.reason) if error.rcvd is not None else (0, "")
        raise closed(part, code, words, key) from None
    except TimeoutError:
        raise base.timed_out(part) from None
    except (OSError, InvalidHandshake, InvalidURI, ProtocolError) as error:
        raise base.unreachable(part, error, key) from None


def closed(part: str, code: int, words: str, key: str) -> VoxbridgeError:
    """Return the error for a connection that the vendor closed with a code and a reason, or an error that it states before it does."""
    if code == _POLICY and not any(word in words.casefold() for word in _MAY_PASS):
        return base.failed(part, 400, words or "it closed the connection", key=key)
    return base.failed(part, 503, words or "it closed the connection", key=key)
