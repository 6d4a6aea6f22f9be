"""What the gateway depends on, each by name: whether it is there, and what to know when it is not.

Owns `/readyz`. Checks run side by side, each within a second, and an answer is kept for half a second so that a probe that asks
often costs little. Nothing is lost in a crash here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import httpx
import msgspec
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from shared import bus
from shared.errors import Unavailable
from shared.log import Log
from shared.service import Resources

CHECK_S: Final = 1.0
KEPT_S: Final = 0.5
_DETAIL: Final = 512

Answer = tuple[bool, str]


class Dependency(msgspec.Struct, frozen=True):
    """One thing the gateway needs."""

    ok: bool
    detail: str


class Readiness:
    """Asks everything the product needs."""

    def __init__(self, resources: Resources, log: Log) -> None:
        self._resources = resources
        self._log = log
        self._models = resources.config.models_base_url.removesuffix("/v1")  # its own endpoints stand beside the OpenAI ones
        self._client = httpx.AsyncClient(timeout=CHECK_S, trust_env=False)
        self._known: dict[str, Dependency] = {}
        self._until = 0.0
        self._asking = asyncio.Lock()

    async def ask(self) -> dict[str, Dependency]:
        """Every dependency, as of half a second ago at most."""
        loop = asyncio.get_running_loop()
        async with self._asking:
            if loop.time() >= self._until:
                checks: dict[str, Callable[[], Awaitable[Answer]]] = {
                    "nats": self._nats,
                    "event_log": self._event_log,
                    "valkey": self._valkey,
                    "voice": lambda: self._service("voice"),
                    "tools": lambda: self._service("tools"),
                    "models": self._models_ready,
                }
                found = await asyncio.gather(*(_within(check) for check in checks.values()))
                self._known = dict(zip(checks, found, strict=True))
                self._until = loop.time() + KEPT_S
        return self._known

    async def voices(self) -> list[dict[str, str]]:
        """The voices that services/models has; raises `UNAVAILABLE` while it does not answer."""
        try:
            reply = await self._client.get(f"{self._models}/v1/models")
            entries = [entry for entry in reply.raise_for_status().json()["data"] if entry.get("role") == "tts"]
            return [_voice(voice) for entry in entries for voice in entry.get("voices") or [entry]]
        except (httpx.HTTPError, ValueError, KeyError, AttributeError, TypeError) as error:
            reason = str(error) or type(error).__name__
            raise Unavailable(f"The voices are not known: services/models does not list them ({reason}).", retry_after_ms=1_000) from error

    async def close(self) -> None:
        """Close what was opened to ask."""
        await self._client.aclose()

    async def _nats(self) -> Answer:
        connected = self._resources.events_nc.is_connected and self._resources.audio_nc.is_connected
        return connected, "connected" if connected else "reconnecting"

    async def _event_log(self) -> Answer:
        info = await self._log.js.stream_info(bus.EVENT_STREAM)
        return True, f"{info.state.messages} events"

    async def _valkey(self) -> Answer:
        there = (await self._resources.dependencies())["redis"]
        return there, "answers" if there else "does not answer"

    async def _service(self, name: str) -> Answer:
        try:
            reply = await self._resources.events_nc.request(f"vx.svc.{name}.health", b"", timeout=CHECK_S)
        except NoRespondersError:
            return False, "not running"
        health: dict[str, Any] = json.loads(reply.data)
        missing = [key for key, there in health.get("dependencies", {}).items() if not there]
        return bool(health["ready"]), f"waits for {', '.join(missing)}" if missing else "serves"

    async def _models_ready(self) -> Answer:
        reply = await self._client.get(f"{self._models}/readyz")
        try:
            detail = reply.json()
        except ValueError:
            detail = {}
        return reply.status_code == httpx.codes.OK, _progress(detail) or f"answers {reply.status_code}"


def _voice(entry: dict[str, Any]) -> dict[str, str]:
    id = str(entry["id"])
    return {"id": id, "name": str(entry.get("name", id)), "gender": str(entry.get("gender", "")), "style": str(entry.get("style", ""))}


def _progress(told: Any) -> str:
    """What the `/readyz` of services/models says, in one line."""
    models = told.get("models") if isinstance(told, dict) else None
    if not isinstance(models, dict):
        return ""
    return ", ".join(f"{name}: {model.get('state', '?') if isinstance(model, dict) else model}" for name, model in models.items())[:_DETAIL]


async def _within(check: Callable[[], Awaitable[Answer]]) -> Dependency:
    try:
        async with asyncio.timeout(CHECK_S):
            ok, detail = await check()
    except (TimeoutError, NatsError, httpx.HTTPError, ValueError, KeyError) as error:
        ok, detail = False, str(error) or f"no answer within {CHECK_S:g} s"
    return Dependency(ok, detail)
