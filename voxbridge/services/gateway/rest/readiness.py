"""The dependencies of the gateway by name: `ok`, `degraded` or `down`, and a sentence that says what to do.

Owns `/readyz`. Checks run concurrently, each for at most a second. The result is kept for half a second, so that frequent probes cost
little. Nothing is lost in a crash here.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

import httpx2
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.js.errors import NotFoundError

from voxbridge.services.gateway.door.admission import Admission
from voxbridge.shared.bus import subjects
from voxbridge.shared.condition import Condition, read, worst
from voxbridge.shared.embedded.servers import MIN_FREE_BYTES
from voxbridge.shared.errors import Unavailable
from voxbridge.shared.log.reader import Log
from voxbridge.shared.service.process import Resources, health_subject

CHECK_S: Final = 1.0
KEPT_S: Final = 0.5
FULL_BYTES: Final = 16 * 1024 * 1024
"""Bytes of free disk space below which the disk counts as full: a block of the log, and a little more."""

_DETAIL: Final = 512
_NAMES: Final = {"redis": "Valkey", "nats": "NATS", "log": "the event log"}


class Readiness:
    """The checks of all dependencies."""

    def __init__(self, resources: Resources, log: Log, admission: Admission) -> None:
        self._admission = admission
        self._resources = resources
        self._log = log
        self._models = resources.config.models_base_url.removesuffix("/v1")  # the models service's own endpoints are outside `/v1`
        self._client = httpx2.AsyncClient(timeout=CHECK_S, trust_env=False)
        self._known: dict[str, Condition] = {}
        self._until = 0.0
        self._asking = asyncio.Lock()

    async def ask(self) -> dict[str, Condition]:
        """Return the condition of every dependency, at most half a second old."""
        loop = asyncio.get_running_loop()
        async with self._asking:
            if loop.time() >= self._until:
                own, log, (voice, voice_log), (tools, tools_log), models = await asyncio.gather(
                    self._resources.conditions(),
                    _within(self._event_log()),
                    self._service("voice"),
                    self._service("tools"),
                    _within(self._models_ready()),
                )
                # The service that appends most is the first to notice a problem of the disk.
                log = worst(log, own["log"], voice_log, tools_log)
                known = {"nats": own["nats"], "event_log": log, "valkey": own["redis"], "voice": voice, "tools": tools, "models": models}
                self._known = known | {name: one for name, one in own.items() if name == "permissions"}
                self._until = loop.time() + KEPT_S
        return self._known

    async def voices(self) -> list[dict[str, str]]:
        """Return the voices of voxbridge/services/models. Raises `UNAVAILABLE` while it does not answer."""
        try:
            reply = await self._client.get(f"{self._models}/v1/models")
            entries = [entry for entry in reply.raise_for_status().json()["data"] if entry.get("role") == "tts"]
            return [_voice(voice) for entry in entries for voice in entry.get("voices") or [entry]]
        except (httpx2.HTTPError, ValueError, KeyError, AttributeError, TypeError) as error:
            reason = str(error) or type(error).__name__
            raise Unavailable(
                f"The voices are not known: voxbridge/services/models does not list them ({reason}).", retry_after_ms=1_000
            ) from error

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._client.aclose()

    async def _event_log(self) -> Condition:
        """Check that the stream exists, and that there is room for more on its disk if that is a local one."""
        if not self._resources.events_nc.is_connected:
            return Condition("down", "NATS is away, and the event log with it.")
        try:
            info = await self._log.js.stream_info(subjects.EVENT_STREAM)
        except NotFoundError:
            return Condition(
                "down", f"The stream {subjects.EVENT_STREAM} is not there. Start the services, or run `voxbridge admin streams`."
            )
        self._admission.look(info.state.bytes)
        there = Condition("ok", f"{info.state.messages} events")
        return worst(there, self._admission.condition(), disk(self._resources.config.data_dir))

    async def _service(self, name: str) -> tuple[Condition, Condition]:
        """Return the condition of a service, and that of the event log as the service sees it."""
        try:
            async with asyncio.timeout(CHECK_S):
                reply = await self._resources.events_nc.request(health_subject(name), b"", timeout=CHECK_S)
            health: dict[str, Any] = json.loads(reply.data)
            there: dict[str, Any] = health["dependencies"]
            found = {part: read(value) for part, value in {**there, **health.get("conditions", {})}.items()}
            ready = bool(health["ready"])
        except NoRespondersError:
            words = f"not running. `voxbridge up`, or the container engine, starts it again; see its log ({_log_of(name)}) if not."
            return Condition("down", words), Condition()
        except (TimeoutError, NatsError, ValueError, KeyError, AttributeError) as error:
            words = str(error) or f"no answer within {CHECK_S:g} s"
            return Condition("down", f"does not answer ({words}); it may be busy, or stopped. See its log ({_log_of(name)})."), Condition()
        missing = ", ".join(_NAMES.get(part, part) for part, condition in found.items() if not condition.ok)
        if missing or not ready:
            return Condition("down", f"waits for {missing}" if missing else "is not ready yet"), found.get("log", Condition())
        # What all services share is told of under its own name.
        strained = worst(*(condition for part, condition in found.items() if part not in _NAMES and condition.detail))
        return Condition(strained.state, strained.detail or "serves"), found.get("log", Condition())

    async def _models_ready(self) -> Condition:
        try:
            reply = await self._client.get(f"{self._models}/readyz")
        except httpx2.TransportError as error:
            words = str(error) or f"no answer within {CHECK_S:g} s"
            where = "`voxbridge up`, or the container engine, starts it again, or VOXBRIDGE_MODELS_URL names another server"
            return Condition("down", f"does not answer at {self._models} ({words}). {where}; see its log ({_log_of('models')}) if not.")
        try:
            detail = reply.json()
        except ValueError:
            detail = {}
        ready = reply.status_code == httpx2.codes.OK
        return Condition("ok" if ready else "down", _progress(detail) or f"answers {reply.status_code}")


def disk(data_dir: Path) -> Condition:
    """Check the free space of the event log, if it is in this machine's data folder."""
    store = data_dir / "nats" / "store"
    try:
        free = shutil.disk_usage(store).free
    except OSError:
        return Condition()  # the log is stored elsewhere
    if free < FULL_BYTES:
        return Condition(
            "down", f"The event log's disk is full: {free >> 20} MiB are free at {data_dir}. Free some space; calls go on meanwhile."
        )
    if free < MIN_FREE_BYTES:
        return Condition("degraded", f"The event log's disk is almost full: {free >> 20} MiB are free at {data_dir}. Free some space.")
    return Condition()


def _voice(entry: dict[str, Any]) -> dict[str, str]:
    voice_id = str(entry["id"])
    return {
        "id": voice_id,
        "name": str(entry.get("name", voice_id)),
        "gender": str(entry.get("gender", "")),
        "style": str(entry.get("style", "")),
    }


def _progress(told: Any) -> str:
    """Return the answer of voxbridge/services/models to `/readyz` in one line."""
    models = told.get("models") if isinstance(told, dict) else None
    if not isinstance(models, dict):
        return ""
    return ", ".join(f"{name}: {model.get('state', '?') if isinstance(model, dict) else model}" for name, model in models.items())[:_DETAIL]


async def _within(check: Coroutine[Any, Any, Condition]) -> Condition:
    try:
        async with asyncio.timeout(CHECK_S):
            return await check
    except (TimeoutError, NatsError, httpx2.HTTPError, ValueError, KeyError) as error:
        return Condition("down", str(error) or f"no answer within {CHECK_S:g} s")


def _log_of(name: str) -> str:
    return f"logs/{name}.log, or `docker compose logs {name}`"
