"""The connection of a process to NATS, made so that an outage is waited out and logged, and is never fatal or silent.

Owns the client's settings. Does not own what travels over the connection. Bytes that a client had not sent yet are lost in a crash, which
is why an event counts only once it is acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import SlowConsumerError

from voxbridge.shared.bus.client import FastClient
from voxbridge.shared.bus.permissions import RIGHTS, inbox
from voxbridge.shared.bus.stream_admin import limit
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.mounted import read_secret
from voxbridge.shared.wait_for_server import START_TIMEOUT_S, host_and_port, until_reached

CLOSE_TIMEOUT_S: Final = 0.3
EVENTS_PENDING: Final = 8 * 1024 * 1024
AUDIO_PENDING: Final = 256 * 1024
"""Bytes of audio that may wait for the socket: 200 ms of 40 sessions. More waits at its source, because it could not be withdrawn here."""
_RECONNECT_WAIT_S: Final = 0.2
_PING_INTERVAL_S: Final = 5
_PROBE_TIMEOUT_S: Final = 0.5
_DEFAULT_PORT: Final = 4222
_SEED_FILE: Final = "VOXBRIDGE_NATS_SEED_FILE"
_DENIED: Final = "permissions violation"
_STRANGER: Final = "authorization"
_OLD_ANSWER: Final = 'publish to "_r_.'
"""Answer to a question that the server does not know: one asked before it was started, or long ago. Each may be answered, so it is no right
that is missing."""

_REPEAT_S: Final = 10.0
"""Seconds before the same error of a connection is logged again: while a server is away each try brings one."""

_DENIED_KEPT: Final = 16
_DENIED_CHARACTERS: Final = 200
_denied: Final[WeakKeyDictionary[Client, list[str]]] = WeakKeyDictionary()

_log = logging.getLogger(__name__)


async def connect_nats(
    url: str,
    name: str,
    *,
    pending: int,
    timeout_s: float = START_TIMEOUT_S,
    on_reconnected: Callable[[], Awaitable[None]] | None = None,
    user: str = "",
    seed_file: str = "",
) -> FastClient:
    """Return a client that reconnects forever. `url` may name several servers of one cluster, separated by commas: when one is gone, the
    client goes on with the next. Raises `Unavailable` after `timeout_s`.

    `user` names the inboxes, which only that user may subscribe to where each user has rights of its own; it signs in by the nkey in
    `seed_file`, or by its name in the URL. Raises `INVALID_ARGUMENT` when that file cannot be used.
    """
    servers = [part.strip() for part in url.split(",") if part.strip()]
    sign_in = _sign_in(servers)
    seed = _read_seed(seed_file) if seed_file else None
    client = FastClient()
    _denied[client] = []
    if user in RIGHTS and (seed is not None or urlsplit(servers[0]).username == user):
        limit(client)
    reports = _Reports(client, name, on_reconnected)

    async def attempt() -> bool:
        # Connecting before the port is open would sleep for two seconds and print a traceback.
        if not any([await _port_opens(server) for server in servers]):
            return False
        await client.connect(
            servers,
            name=name,
            nkeys_seed_str=seed,
            user=sign_in[0],
            password=sign_in[1],
            inbox_prefix=inbox(user) if user else "_INBOX",
            error_cb=reports.failed,
            disconnected_cb=reports.disconnected,
            reconnected_cb=reports.reconnected,
            connect_timeout=2,
            reconnect_time_wait=_RECONNECT_WAIT_S,  # type: ignore[arg-type]  # fractions work
            max_reconnect_attempts=-1,
            ping_interval=_PING_INTERVAL_S,
            max_outstanding_pings=2,
            pending_size=pending,
            drain_timeout=1,
        )
        return True

    try:
        await until_reached("NATS", host_and_port(url), attempt, timeout_s, reports.refused)
    except BaseException:
        # Given up in the middle of the handshake, whose socket the client itself leaves open.
        if (transport := getattr(client, "_transport", None)) is not None:
            transport.close()
        raise
    return client


class _Reports:
    """Log of what a client reports of its connection. `refused` holds why a server refused the user, if one did."""

    def __init__(self, client: Client, name: str, on_reconnected: Callable[[], Awaitable[None]] | None) -> None:
        self.refused: deque[str] = deque(maxlen=1)
        self._client = client
        self._name = name
        self._on_reconnected = on_reconnected
        self._repeated = _Repeated()

    async def failed(self, error: Exception) -> None:
        if _STRANGER in str(error).lower():
            self.refused.append("it does not know this user (authorization violation)")
        if _OLD_ANSWER in str(error).lower():
            _log.info("NATS does not know the question any more that %s answered.", self._name)
        elif _DENIED in str(error).lower():
            _deny(self._client, self._name, str(error))
        elif not self._repeated(f"{type(error).__name__} {error}"):
            _say(error)

    async def disconnected(self) -> None:
        if not self._client.is_closed:
            _log.warning("NATS connection %s lost; it reconnects.", self._name)

    async def reconnected(self) -> None:
        _log.info("NATS connection %s is back.", self._name)
        if self._on_reconnected is not None:
            await self._on_reconnected()


def denied(client: Client) -> tuple[str, ...]:
    """Return what NATS refused this connection for lack of permission, oldest first. A refused publish looks like one without an answer, so
    a caller that got none looks here."""
    return tuple(_denied.get(client, ()))


def _sign_in(servers: list[str]) -> tuple[str | None, str | None]:
    """Return name and password if all servers with a password in their URL share them. A cluster tells its clients of servers that are not
    in the list; these are tried without credentials unless the connection itself has some."""
    found = {(parts.username, parts.password) for server in servers if (parts := urlsplit(server)).password}
    name, password = found.pop() if len(found) == 1 else (None, None)
    return name, password


def _read_seed(path: str) -> str:
    import nkeys  # needed only where users have rights of their own

    seed = read_secret(path, _SEED_FILE)
    try:
        nkeys.from_seed(bytearray(seed, "ascii"))
    except (nkeys.NkeysError, ValueError) as error:
        message = f"{_SEED_FILE} names {path}, which holds no seed of an nkey. Make the credentials anew: `voxbridge admin credentials`."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=_SEED_FILE) from error
    return seed


async def close_nats(client: Client) -> None:
    """Flush what waits for `CLOSE_TIMEOUT_S` at most, and close."""
    with suppress(NatsError, TimeoutError, OSError):
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            if client.is_connected:
                await client.flush()
    waiting = client.pending_data_size
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S / 3):
            await client.close()
    except (NatsError, TimeoutError, OSError, RuntimeError) as error:
        # The client writes pending data even to a socket that is gone; uvloop then raises RuntimeError.
        _log.warning("%d bytes for NATS were not sent before the end: %s", waiting, str(error) or type(error).__name__)


async def _port_opens(server: str) -> bool:
    parts = urlsplit(server if "//" in server else f"nats://{server}")
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            _, writer = await asyncio.open_connection(parts.hostname or "127.0.0.1", parts.port or _DEFAULT_PORT)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _deny(client: Client, name: str, what: str) -> None:
    known = _denied[client]
    what = what.removeprefix("nats: ")[:_DENIED_CHARACTERS]
    if what in known:
        return
    _log.error(
        "NATS refuses %s: %s. Its user has no such right (voxbridge/shared/bus/permissions.py); until it has, this looks like no answer.",
        name,
        what,
    )
    known.append(what)
    del known[:-_DENIED_KEPT]


class _Repeated:
    """Filter for repeated messages: true for the message that was logged last, within `_REPEAT_S`."""

    def __init__(self) -> None:
        self._last = ""
        self._at = 0.0

    def __call__(self, what: str) -> bool:
        now = time.monotonic()
        if what == self._last and now - self._at < _REPEAT_S:
            return True
        self._last, self._at = what, now
        return False


def _say(error: Exception) -> None:
    if isinstance(error, SlowConsumerError):
        _log.warning("A subscription to %s is behind; messages to it are dropped.", error.subject)
    elif not isinstance(error, ConnectionRefusedError):
        _log.warning("NATS: %s", str(error) or type(error).__name__)
