"""nats-py's client with three shortcuts (headers, audio in, audio out), and with a `flush` that covers commands still waiting.

Every event that is read back carries eight headers, and nats-py checks each character of their names, which is most of the cost of reading
a long log. nats-py also wakes a task through a queue for each message received, and another for each one published: negligible for events,
but half the cost of an audio frame. So frames go straight from the parser to their listener, and straight to the socket. What is delivered
and in which order stays the same. nats-py's own `flush` sends its ping ahead of the commands that still wait, so its answer proved nothing
about a subscription made just before.

A connection is never given up. nats-py ends its attempts at an error that it does not expect, such as uvloop's for a socket that has just
closed, and closes the client for good at any error that a server states but one of permissions: a process would live on without a bus.
Owns nothing that a crash could lose.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from asyncio import StreamReader
from collections.abc import Callable
from typing import Any, Final

from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.protocol.parser import PERMISSIONS_ERR, STALE_CONNECTION

from voxbridge.shared.bus.framing import Divider, Listener

_LOOK_S: Final = 0.02
_LINE_END: Final = b"\r\n"
_QUOTE: Final = "'"
_log = logging.getLogger(__name__)


def parse(raw: bytes) -> dict[str, str]:
    """Return name and value of each line `Name: value`; names that are not ASCII or contain whitespace are left out."""
    found: dict[str, str] = {}
    for line in raw.split(b"\r\n"):
        name, separator, value = line.partition(b":")
        if not separator:
            continue
        name = name.strip()
        if not name.isascii():
            continue
        key = name.decode("ascii")
        if key and key.split() != [key]:
            continue
        found[key] = value.strip().decode("utf-8", "replace")
    return found


class FastClient(Client):
    """NATS client of all services."""

    _parse_header_lines = staticmethod(parse)

    def __init__(self) -> None:
        super().__init__()
        self._listeners: dict[int, Listener] = {}
        self.on_cut: Callable[[], None] | None = None
        """Called when the connection is lost, before any data of the next one arrives."""

        self.on_back: Callable[[], None] | None = None
        """Called when a new connection is open and its subscriptions are made."""

    async def listen(self, subject: str, listener: Listener) -> Subscription:
        """Subscribe; `listener` gets each payload as it is read. It must not block; its exceptions are logged."""
        # The number that the next subscription gets: its listener must be known before the first message.
        number = self._sid + 1
        self._listeners[number] = listener
        try:
            return await self.subscribe(subject)
        except BaseException:
            self._listeners.pop(number, None)
            raise

    def publish_now(self, subject: str, payload: bytes) -> bool:
        """Publish without headers in this very call; false if the payload was dropped, because the server is away or accepts no more for
        now."""
        if not self.is_connected:
            return False
        size = len(payload)
        command = b"".join((b"PUB ", subject.encode(), b" ", str(size).encode(), b"\r\n", payload, b"\r\n"))
        if self._pending_data_size:  # keep the order: queue behind the data that waits
            if self._pending_data_size + len(command) > self._max_pending_size:
                return False
            self._pending.append(command)
            self._pending_data_size += len(command)
        else:
            writer: Any = self._transport
            stream = writer._io_writer
            if stream.transport.is_closing():  # the client has not been told yet, and uvloop would raise
                return False
            if stream.transport.get_write_buffer_size() + len(command) > self._max_pending_size:
                return False
            stream.write(command)
        self.stats["out_msgs"] += 1
        self.stats["out_bytes"] += size
        return True

    async def until_connected(self) -> None:
        """Wait while the server is away."""
        while not self.is_connected:  # noqa: ASYNC110 - the client announces the connection only by its callback
            await asyncio.sleep(_LOOK_S)

    async def _send_ping(self, future: asyncio.Future[Any] | None = None) -> None:
        writer: Any = self._transport
        if self._pending and self.is_connected and not writer._io_writer.transport.is_closing():
            writer.writelines(self._pending[:])
            self._pending, self._pending_data_size = [], 0
        await super()._send_ping(future)

    async def _attempt_reconnect(self) -> None:
        if self.on_cut is not None:
            self.on_cut()
        while True:
            try:
                await super()._attempt_reconnect()
                break
            except Exception as error:  # noqa: BLE001 - whatever it is, the next attempt may succeed
                task = asyncio.current_task()
                if self.is_closed or (task is not None and task.cancelling()):  # nats-py takes a cancellation, and may raise behind it
                    return
                _log.warning("An attempt to reach NATS again failed: %s", str(error) or type(error).__name__)
                self._status = Client.RECONNECTING
                await asyncio.sleep(self.options["reconnect_time_wait"])
        if self.on_back is not None and self.is_connected:
            self.on_back()

    async def _process_err(self, err_msg: str) -> None:
        if self.is_closed or not self.is_connected or PERMISSIONS_ERR in err_msg or STALE_CONNECTION in err_msg:
            await super()._process_err(err_msg)
            return
        error = NatsError(f"nats: {err_msg.strip(_QUOTE)}")
        self._err = error
        await self._error_cb(error)
        await self._process_op_err(error)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        listener = self._listeners.get(sid)
        if listener is None:
            await super()._process_msg(sid, subject, reply, data, headers)
            return
        self._hand_over(listener, data)

    def _hand_over(self, listener: Listener, payload: bytes) -> None:
        self.stats["in_msgs"] += 1
        self.stats["in_bytes"] += len(payload)
        try:
            listener(payload)
        except Exception:  # noqa: BLE001 - the connection is shared: a failing listener must not break it
            _log.exception("A listener failed.")

    async def _process_connect_init(self) -> None:
        await super()._process_connect_init()
        transport: Any = self._transport
        reader = transport._io_reader
        if not reader._buffer or reader._buffer.endswith(_LINE_END):
            divide = Divider(self._listeners, self._hand_over).divide
            whose = weakref.ref(reader)  # a reference cycle would keep the socket open after its connection is gone

            def fed(data: bytes) -> None:
                others, client = divide(data), whose()
                if others and client is not None:
                    StreamReader.feed_data(client, others)

            reader.feed_data = fed

    def _remove_sub(self, sid: int, max_msgs: int = 0) -> None:
        super()._remove_sub(sid, max_msgs)
        self._listeners.pop(sid, None)
