"""A nats-server of this installation, as a child process."""

from __future__ import annotations

import hmac
import os
import socket
from pathlib import Path
from typing import Final

from voxbridge.shared.bus.accounts import ADMIN
from voxbridge.shared.bus.permissions import RIGHTS
from voxbridge.shared.embedded import nats_monitor
from voxbridge.shared.embedded.nats_configuration import Place, adopt_store, configuration
from voxbridge.shared.embedded.servers import (
    LOOPBACK,
    MIN_FREE_BYTES,
    PROBE_TIMEOUT_S,
    EmbeddedServer,
    StartError,
    free_port,
    port_is_free,
    program,
    quoted,
    secret,
    write_private,
)
from voxbridge.shared.log.streams import AUDIO_MEMORY

GOGC: Final = "10"
"""Percent of nats-server's live memory that its garbage may take; Go's default of 100 lets it double."""
GOMEMLIMIT: Final = "1792MiB"
"""Memory limit below which nats-server keeps itself by collecting garbage more often, if its live data allow: about a million calls."""

SYSTEM_USER: Final = "system"
_USER: Final = "voxbridge"
_HTTP_OK: Final = 200


class NatsServer(EmbeddedServer):
    """nats-server with JetStream on a loopback port; the port stays the same over restarts, so clients find it again."""

    name = "nats-server"

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        sync_interval: str = "always",
        max_file_store: str = "16GB",
        max_memory_store: str = AUDIO_MEMORY,
        min_free_bytes: int = MIN_FREE_BYTES,
    ) -> None:
        super().__init__(folder, min_free_bytes=min_free_bytes)
        self.port = port or 0
        self._bounds = {"sync_interval": sync_interval, "max_file_store": max_file_store, "max_memory_store": max_memory_store}

    def command(self) -> list[str]:
        """Return the command line of the server."""
        return [program("nats-server"), "-c", str(self.folder / "nats.conf")]

    def environment(self) -> dict[str, str]:
        """Return the environment of the server."""
        # The server shares the machine with the services. With a thread for each core, waking idle threads takes a fifth of the cost of a
        # frame. Its live memory is small and mostly audio, so frequent garbage collection costs little and saves much.
        return {"GOMAXPROCS": str(max(1, (os.cpu_count() or 1) // 2)), "GOGC": GOGC, "GOMEMLIMIT": GOMEMLIMIT, **os.environ}

    def _address(self) -> str:
        self.port = self.port or free_port()
        return f"nats://{_USER}:{self._password}@{LOOPBACK}:{self.port}"

    def _configure(self) -> None:
        if not port_is_free(self.port):
            raise StartError(
                f"Port {self.port} is taken, so nats-server cannot listen on it. Stop what uses it or choose another.", field="port"
            )
        store = self.folder / "store"
        adopt_store(store)
        log = f"log_file: {quoted(self.folder / 'nats.log')}\nlogfile_size_limit: 4MB\nlogfile_max_num: 2\n"
        place = Place(listen=f"{LOOPBACK}:{self.port}", store=str(store), more=log, **self._bounds)
        write_private(
            self.folder / "nats.conf", configuration(place, self._identities(), system=_signs(SYSTEM_USER, self.system_password()))
        )

    def url_of(self, service: str) -> str:
        """Return the URL with which a service signs in as itself, with the rights in `voxbridge.shared.bus.permissions`; `url` is the
        administrator's.

        Raises `KeyError` for a service that has no rights there.
        """
        if service not in RIGHTS:
            raise KeyError(service)
        return f"nats://{service}:{self._password_of(service)}@{LOOPBACK}:{self.port}"

    def _identities(self) -> dict[str, str]:
        return {ADMIN: _signs(_USER, self._password), **{name: _signs(name, self._password_of(name)) for name in RIGHTS}}

    def _password_of(self, service: str) -> str:
        # One-way: the administrator's password cannot be derived from a service's.
        return hmac.digest(self._password.encode(), service.encode(), "sha256").hex()

    def answers(self) -> bool:
        """Tell whether the server accepts connections."""
        try:
            with socket.create_connection((LOOPBACK, self.port), PROBE_TIMEOUT_S) as connection:
                return connection.recv(4096).startswith(b"INFO ")
        except OSError:
            return False

    def system_password(self) -> str:
        """Return the password of `SYSTEM_USER`, which may ask the server about itself and nothing else."""
        return secret(self.folder / "system-password")

    def ailment(self) -> str:
        """Return what the server says is wrong with it; empty when nothing is."""
        try:
            health = nats_monitor.ask(
                LOOPBACK, self.port, SYSTEM_USER, self.system_password(), nats_monitor.HEALTH, timeout_s=PROBE_TIMEOUT_S
            )
        except OSError:
            return ""  # `answers` tells whether it answers at all
        return str(health.get("error", "")) if health.get("status_code", 200) != _HTTP_OK else ""

    def last_words(self) -> str:
        """Return the end of the server's log, without its name."""
        said = super().last_words()
        return said.removeprefix("nats-server: ")


def _signs(user: str, password: str) -> str:
    return f'user: "{user}", password: "{password}"'
