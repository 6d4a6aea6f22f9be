"""Health check of one service on this machine, as the probe of a container runs it.

Asks over the bus, as the service itself, for a service on the bus, and over HTTP for one that is not. Owns no state.
"""

from __future__ import annotations

import json
import socket
from typing import Final

import httpx
from nats.errors import Error as NatsError

from voxbridge.shared.bus.connection import close_nats, connect_nats
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.service.process import health_subject

TIMEOUT_S: Final = 3.0
NAMES: Final = ("gateway", "voice", "tools", "knowledge", "awareness", "terminals", "models")
_PENDING: Final = 64 * 1024


async def ask(config: Config, name: str) -> tuple[bool, str]:
    """Return whether the service is ready, and one line about it."""
    return await _over_http(config) if name == "models" else await _over_bus(config, name)


async def _over_http(config: Config) -> tuple[bool, str]:
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client:
            answer = await client.get(f"http://127.0.0.1:{config.models_port}/readyz")
            models = answer.json()["models"]
    except (httpx.HTTPError, ValueError, KeyError) as error:
        return False, f"models does not answer: {error or type(error).__name__}"
    waiting = ", ".join(f"{name}: {model['state']}" for name, model in models.items() if model["state"] != "ready")
    return answer.status_code == httpx.codes.OK, f"models waits for {waiting}" if waiting else "models serves"


async def _over_bus(config: Config, name: str) -> tuple[bool, str]:
    if not config.nats_url:
        return False, "VOXBRIDGE_NATS_URL is not set, so there is no bus to ask on."
    try:
        nc = await connect_nats(
            config.nats_url, f"health-{name}", pending=_PENDING, timeout_s=TIMEOUT_S, user=name, seed_file=config.nats_seed_file
        )
    except VoxbridgeError as error:
        return False, error.message
    try:
        answer = await nc.request(health_subject(name, socket.gethostname()), b"", timeout=TIMEOUT_S)
        told = json.loads(answer.data)
        missing = ", ".join(part for part, there in told["dependencies"].items() if not there)
        return bool(told["ready"]), f"{name} waits for {missing}" if missing else f"{name} serves"
    except (NatsError, TimeoutError, ValueError, KeyError) as error:
        return False, f"{name} does not answer: {error or type(error).__name__}"
    finally:
        await close_nats(nc)
