"""What the services say of themselves: over the bus by `$SRV`, over HTTP by `/readyz`.

Owns the questions to services. Changes nothing. A service that is dead costs its time-out and no more.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, Final

import httpx
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from shared.condition import read
from shared.config import Config
from shared.errors import VoxbridgeError
from shared.secret_file import admin_token_file
from voxbridge.doctor.finding import Finding, fail, ok, warn
from voxbridge.doctor.place import Place

AREA: Final = "services"
LISTEN_S: Final = 0.8
"""How long answers to `$SRV.STATS` are waited for: nobody says how many there are."""

_ASK_S: Final = 2.0
_NAMES: Final = {"redis": "Valkey", "nats": "NATS", "log": "the event log"}
_ON_THE_BUS: Final = ("voice", "tools", "gateway")


async def on_the_bus(nc: Client, place: Place) -> list[Finding]:
    """Each process that is there, with its figures, and which service has none."""
    stats = await _stats(nc)
    healths = await asyncio.gather(*(_health(nc, name) for name in _ON_THE_BUS))
    found: list[Finding] = []
    for name, health in zip(_ON_THE_BUS, healths, strict=True):
        own = [one for one in stats if one.get("name") == f"voxbridge-{name}"]
        found.append(_service(name, health, own, place))
        unread = sum(int(_data(one).get("events_unreadable", 0)) for one in own)
        if unread:
            found.append(warn(AREA, name, f"{unread} events could not be read and were passed over.", f"{place.log(name)}."))
    return found


async def over_http(config: Config, place: Place) -> list[Finding]:
    """The gateway and the models on their ports."""
    async with httpx.AsyncClient(timeout=_ASK_S, trust_env=False) as client:
        gateway, models = await asyncio.gather(
            _ready(client, f"{config.gateway_base_url}/readyz", host=f"127.0.0.1:{config.port}", token=_token(config)),
            _ready(client, f"{config.models_base_url.removesuffix('/v1')}/readyz"),
        )
    return [_gateway(config, gateway), _models(config, models, place)]


async def _stats(nc: Client) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = []

    async def take(message: Msg) -> None:
        with suppress(ValueError):
            answers.append(json.loads(message.data))

    inbox = nc.new_inbox()
    subscription = await nc.subscribe(inbox, cb=take)
    try:
        await nc.publish("$SRV.STATS", b"", reply=inbox)
        await asyncio.sleep(LISTEN_S)
    finally:
        await subscription.unsubscribe()
    return answers


def _data(stats: dict[str, Any]) -> dict[str, Any]:
    for endpoint in stats.get("endpoints", []):
        if isinstance(endpoint.get("data"), dict):
            return dict(endpoint["data"])
    return {}


async def _health(nc: Client, name: str) -> dict[str, Any]:
    try:
        answer = json.loads((await nc.request(f"vx.svc.{name}.health", b"", timeout=_ASK_S)).data)
    except (NatsError, TimeoutError, ValueError) as error:
        return {"error": str(error) or "no answer"}
    return answer if isinstance(answer, dict) else {"error": "an answer that cannot be read"}


def _service(name: str, health: dict[str, Any], stats: list[dict[str, Any]], place: Place) -> Finding:
    log = f"{place.log(name)}; {place.starter} starts it again by itself."
    if not stats and "error" in health:
        return fail(AREA, name, "is not running.", log)
    if "error" in health:
        return fail(AREA, name, f"runs and does not tell its health: {health['error']}.", log)
    load = ", ".join(f"{value:g} {key.replace('_', ' ')}" for key, value in (_data(stats[0]) if stats else {}).items() if value)
    count = f"{len(stats)} processes" if len(stats) > 1 else str(health.get("process", name))
    conditions = {key: read(value) for key, value in {**health.get("dependencies", {}), **health.get("conditions", {})}.items()}
    for part, condition in conditions.items():
        if condition.state == "down":
            says = f"{count} waits for {_NAMES.get(part, part)}" + (f": {condition.detail}" if condition.detail else ".")
            return fail(AREA, name, says, "Mend what it waits for; it goes on by itself.")
    for part, condition in conditions.items():
        if condition.state == "degraded":
            return warn(AREA, name, f"{count}; {part}: {condition.detail}", "It goes on; mend the cause.")
    if name == "voice" and len(stats) == 1:
        says = f"{count}, without another one: when it dies its calls wait until it is started again."
        return warn(AREA, name, says, "VOXBRIDGE_VOICE_WORKERS=2, the default, keeps a second one.")
    return ok(AREA, name, f"{count}: {load}" if load else count)


def _token(config: Config) -> str:
    """The administrators' token, where this process may read it."""
    try:
        return admin_token_file(config).read() or ""
    except VoxbridgeError:
        return ""


async def _ready(client: httpx.AsyncClient, url: str, *, host: str = "", token: str = "") -> tuple[int, dict[str, Any], str]:
    # Between containers the gateway has a name that it need not let browsers use.
    headers = ({"Host": host} if host else {}) | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        answer = await client.get(url, headers=headers)
        told = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        return 0, {}, str(error) or type(error).__name__
    return answer.status_code, told if isinstance(told, dict) else {}, ""


def _gateway(config: Config, answer: tuple[int, dict[str, Any], str]) -> Finding:
    status, told, error = answer
    url = config.gateway_base_url
    if error:
        return fail(AREA, "gateway's port", f"{url} does not answer: {error}.", "Is it started? Is VOXBRIDGE_PORT the port it listens on?")
    missing = {name: one for name, one in told.get("dependencies", {}).items() if not one.get("ok")}
    if missing or status != httpx.codes.OK:
        says = "; ".join(f"{name}: {one.get('detail', '')}" for name, one in missing.items()) or f"answers {status}"
        return fail(AREA, "gateway's port", f"{url} is not ready: {says}"[:600], "Mend what is named; it goes on by itself.")
    return ok(AREA, "gateway's port", f"{url} is ready")


def _models(config: Config, answer: tuple[int, dict[str, Any], str], place: Place) -> Finding:
    status, told, error = answer
    if error:
        where = config.models_base_url
        return fail("models", "service", f"{where} does not answer: {error}.", f"{place.log('models')}; loading takes a while.")
    models = told.get("models", {})
    states = {name: model.get("state", "?") if isinstance(model, dict) else str(model) for name, model in models.items()}
    waiting = [f"{name}: {state}" for name, state in states.items() if state != "ready"]
    if waiting or status != httpx.codes.OK:
        return fail("models", "service", f"not ready: {', '.join(waiting) or f'answers {status}'}", f"Wait for it. {place.log('models')}.")
    return ok("models", "service", f"{len(states)} models are ready")
