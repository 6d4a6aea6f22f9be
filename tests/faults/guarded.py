"""nats-server and Valkey as in the compose stack: every service is a separate user, with a seed and a password in files."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import quote

from nats.aio.client import Client
from redis.asyncio import Redis

from tests.faults.installation import Servers
from tests.ports import free_port
from voxbridge.installation import credentials, streams
from voxbridge.shared.bus.connection import EVENTS_PENDING, connect_nats
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_configuration import Place
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer

_STORE = {"sync_interval": "1s", "max_file_store": "1GB"}


class _Nats(NatsServer):
    def __init__(self, folder: Path, known: Path) -> None:
        super().__init__(folder)
        self._known = known

    def _address(self) -> str:
        self.port = self.port or free_port()
        return f"nats://127.0.0.1:{self.port}"

    def _configure(self) -> None:
        keys = {name: credentials.public_key(self._known / name / credentials.SEED_FILE) for name in credentials.NAMES}
        place = Place(listen=f"127.0.0.1:{self.port}", store=str(self.folder / "store"), **_STORE)
        text = credentials.nats_configuration(keys, place, monitor=f"127.0.0.1:{free_port()}")
        (self.folder / "nats.conf").write_text(f"{text}debug: true\n")


class _Valkey(ValkeyServer):
    def __init__(self, folder: Path, known: Path) -> None:
        super().__init__(folder)
        self._known = known

    def _users(self) -> str:
        return ""  # the users are those of the file

    def _configure(self) -> None:
        super()._configure()
        path = self.folder / "valkey.conf"
        ours = [line for line in path.read_text().splitlines() if not line.startswith("requirepass")]
        path.write_text("\n".join([*ours, f"aclfile {self._known / 'valkey' / 'users.acl'}", "loglevel debug", ""]))

    def answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(0.5)
                connection.connect(str(self.socket))
                connection.sendall(b"AUTH health any\r\nPING\r\n")
                said = b""
                while b"PONG" not in said and (chunk := connection.recv(256)):
                    said += chunk
                return said == b"+OK\r\n+PONG\r\n"
        except OSError:
            return False


class Guarded(Servers):
    """The servers, and the credentials of all users in `known`, a folder for each."""

    def __init__(self, folder: Path) -> None:
        self.known = folder / "credentials"
        credentials.make(self.known, **_STORE)
        self.nats = _Nats(folder / "nats", self.known)
        self.valkey = _Valkey(folder / "valkey", self.known)

    async def prepare(self) -> None:
        await streams.make_streams(Config(nats_url=self.nats.url, nats_seed_file=self.file("admin", credentials.SEED_FILE)))

    def env(self, service: str) -> dict[str, str]:
        return {
            "VOXBRIDGE_NATS_URL": self.nats.url,
            "VOXBRIDGE_NATS_SEED_FILE": self.file(service, credentials.SEED_FILE),
            "VOXBRIDGE_REDIS_URL": self._redis_url(service),
            "VOXBRIDGE_REDIS_PASSWORD_FILE": self.file(service, credentials.PASSWORD_FILE),
            "VOXBRIDGE_VAULT_KEY_FILE": self.file("voice", credentials.VAULT_FILE) if service == "voice" else "",
            "VOXBRIDGE_VAULT_PUBLIC_KEY_FILE": self.file("gateway", credentials.PUBLIC_FILE),
            "VOXBRIDGE_ADMIN_TOKEN_FILE": self.file("gateway", credentials.TOKEN_FILE),
        }

    async def connect(self) -> Client:
        seed = self.file("admin", credentials.SEED_FILE)
        return await connect_nats(self.nats.url, "operator", pending=EVENTS_PENDING, user="admin", seed_file=seed)

    def redis(self) -> Redis:
        password = Path(self.file("voice", credentials.PASSWORD_FILE)).read_text().strip()
        return Redis.from_url(self._redis_url("voice"), password=password, decode_responses=True)

    def file(self, user: str, name: str) -> str:
        """Return the path of a user's file."""
        return str(self.known / user / name)

    def secrets(self) -> dict[str, str]:
        """Return all seeds and passwords, the vault key and the administrators' token, by the names of their files."""
        secret = (credentials.SEED_FILE, credentials.PASSWORD_FILE, credentials.VAULT_FILE, credentials.TOKEN_FILE)
        return {f"{path.parent.name}/{path.name}": path.read_text().strip() for path in self.known.rglob("*") if path.name in secret}

    def _redis_url(self, user: str) -> str:
        return f"unix://{user}@{quote(str(self.valkey.socket))}?db=0"
