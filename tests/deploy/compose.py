"""Types of docker-compose.yml: every key that it may have, so that a misspelt one is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docker-compose.yml"


_VARIABLE = re.compile(r"\$\{(\w+)(?::?-([^}]*))?\}")


def given(text: str, environment: Mapping[str, str]) -> str:
    """Replace the variables in a value; unset ones by their defaults."""
    return _VARIABLE.sub(lambda found: environment.get(found[1]) or found[2] or "", text)


class Build(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    context: str
    target: str
    args: dict[str, str]


class Condition(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    condition: Literal["service_healthy", "service_completed_successfully"]
    restart: bool = False


class Healthcheck(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    test: list[str] = []
    interval: str = ""
    timeout: str = ""
    retries: int = 0
    start_period: str = ""
    disable: bool = False


class Logging(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    driver: str
    options: dict[str, str] = {}


class Deploy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    replicas: str


class Service(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A container."""

    image: str
    user: str
    read_only: bool
    init: bool
    cap_drop: list[str]
    security_opt: list[str]
    pids_limit: int
    mem_limit: str
    logging: Logging
    build: Build | None = None
    entrypoint: list[str] | None = None
    command: list[str] | None = None
    environment: dict[str, str | None] = {}
    """Environment; a variable without a value is passed on if it is set, and otherwise omitted."""

    networks: list[str] = []
    network_mode: str = ""
    pid: str = ""
    ports: list[str] = []
    volumes: list[str] = []
    tmpfs: list[str] = []
    depends_on: dict[str, Condition] = {}
    healthcheck: Healthcheck | None = None
    restart: str = ""
    stop_grace_period: str = ""
    deploy: Deploy | None = None
    profiles: list[str] = []

    @property
    def mounts(self) -> dict[str, str]:
        """Volumes by name, with their mount points and options, without any variable set."""
        return self.mounts_with({})

    def mounts_with(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the same with these variables set."""
        return dict(given(volume, environment).split(":", 1) for volume in self.volumes)


class Network(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    internal: bool = False


class Compose(msgspec.Struct, frozen=True):
    """The file; `x-` keys are its own shorthands."""

    name: str
    services: dict[str, Service]
    networks: dict[str, Network]
    volumes: dict[str, Any]

    @property
    def kept(self) -> dict[str, Service]:
        """Containers that run permanently."""
        return {name: service for name, service in self.services.items() if service.restart}


def load() -> Compose:
    """Read the file; raises `msgspec.ValidationError` that names the key."""
    return msgspec.convert(yaml.safe_load(FILE.read_text()), Compose)
