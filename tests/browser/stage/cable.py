"""A connection between a browser and the gateway that a test can cut: a TCP relay on a port of its own.

It changes only the port in `Host` and `Origin`, so that the gateway accepts the page as its own. While cut, it resets all connections and
accepts none, like a network that is down.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

CHUNK: Final = 65_536


class Cable:
    """A relay to `url`; pages use its own `url`."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url).port or 80
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._names = (f"127.0.0.1:{port}".encode(), f"127.0.0.1:{self._target}".encode())
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._whole = True
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End every connection with a reset, and refuse new ones."""
        with self._lock:
            self._whole = False
            found, self._open = self._open, set()
        for each in found:
            _reset(each)

    def mend(self) -> None:
        """Accept connections again."""
        with self._lock:
            self._whole = True

    def close(self) -> None:
        """Cut all connections and stop listening."""
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                whole = self._whole
            if not whole:
                _reset(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
            except OSError:
                _reset(client)
                continue
            server.settimeout(None)
            with self._lock:
                self._open |= {client, server}
            threading.Thread(target=self._relay, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._relay, args=(server, client, False), daemon=True).start()

    def _relay(self, source: socket.socket, sink: socket.socket, upwards: bool) -> None:
        with suppress(OSError):
            while chunk := source.recv(CHUNK):
                sink.sendall(chunk.replace(*self._names) if upwards else chunk)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
        if not upwards:
            with self._lock:
                self._open -= {source, sink}
            for each in (source, sink):
                each.close()


def _reset(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def cable(url: str) -> Iterator[Cable]:
    """Run a cable for the time of a test."""
    found = Cable(url)
    try:
        yield found
    finally:
        found.close()
