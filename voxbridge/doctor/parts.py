"""Checks of the services by their own answers: over the bus by `$SRV`, over HTTP by `/readyz`.

Owns the requests to services, and the findings about a late answer: a busy machine answers after seconds, and is then neither dead nor
well. Changes nothing. A dead service costs its timeout and no more.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import Any, Final, Literal

import httpx
import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from voxbridge.doctor import tools
from voxbridge.doctor.finding import Finding, fail, ok, warn
from voxbridge.doctor.place import Place
from voxbridge.shared.condition import read
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.secrets.secret_file import admin_token_file

AREA: Final = "services"
ANSWER_S: Final = 4.0
"""Seconds that an answer is waited for: several times what a busy machine takes, within the bound of the examination."""

SLOW_S: Final = 1.0
"""Seconds above which an answer is reported as late; on a quiet machine it takes milliseconds."""

LISTEN_S: Final = 0.8
"""Seconds to listen for further processes once the needed ones have answered: the number of processes is not known."""

NEEDED: Final = {"voice": 2, "tools": 1, "knowledge": 1, "awareness": 1, "terminals": 1, "gateway": 1}
"""Processes of each service that are needed to avoid a warning; they are waited for as long as for any answer."""

_NOBODY: Final = "503"
_NAMES: Final = {"redis": "Valkey", "nats": "NATS", "log": "the event log"}
_SLOW: Final = "It works; see what else its machine does."
_OVERLOADED: Final = "See whether its machine is overloaded, and ask again."


class Told(msgspec.Struct, frozen=True):
    """Answer to one request: `answer`, or `why` there is none; `status` is that of HTTP."""

    answer: dict[str, Any] = {}
    took_s: float = 0.0
    why: Literal["", "nobody", "late", "broken"] = ""
    detail: str = ""
    status: int = 0

    @property
    def slow(self) -> bool:
        """True if there was an answer, and it was late."""
        return not self.why and self.took_s > SLOW_S


async def on_the_bus(nc: Client, place: Place) -> list[Finding]:
    """Return a finding for each service by the processes that answer on the bus, with their figures."""
    asked = [asyncio.gather(_stats(nc, name), _health(nc, name)) for name in NEEDED]
    found: list[Finding] = []
    for name, (stats, health) in zip(NEEDED, await asyncio.gather(*asked), strict=True):
        found.append(_service(name, health, stats, place))
        found += tools.differences([_data(one) for one in stats or []]) if name == "tools" else []
        unread = sum(int(_data(one).get("events_unreadable", 0)) for one in stats or [])
        if unread:
            found.append(warn(AREA, name, f"{unread} events could not be read and were passed over.", f"{place.log(name)}."))
    return found


async def over_http(config: Config, place: Place) -> list[Finding]:
    """Return the findings about the ports of the gateway and the models."""
    async with httpx.AsyncClient(timeout=ANSWER_S, trust_env=False) as client:
        gateway, models = await asyncio.gather(
            _ready(client, f"{config.gateway_base_url}/readyz", host=f"127.0.0.1:{config.port}", token=_token(config)),
            _ready(client, f"{config.models_base_url.removesuffix('/v1')}/readyz"),
        )
    return [_gateway(config, gateway, place), _models(config, models, place)]


async def _stats(nc: Client, name: str) -> list[dict[str, Any]] | None:
    """Return the figures of each process that answers; None when NATS says that no process is subscribed."""
    answers: list[dict[str, Any]] = []
    inbox = nc.new_inbox()
    subscription = await nc.subscribe(inbox)
    begun = time.monotonic()
    try:
        await nc.publish(f"$SRV.STATS.voxbridge-{name}", b"", reply=inbox)
        while (left := begun + (LISTEN_S if len(answers) >= NEEDED[name] else ANSWER_S) - time.monotonic()) > 0:
            message = await subscription.next_msg(timeout=left)
            if (message.headers or {}).get("Status") == _NOBODY:
                return None
            with suppress(ValueError):
                answers.append(json.loads(message.data))
    except TimeoutError:
        pass  # the processes that answered in time
    finally:
        await subscription.unsubscribe()
    return answers


def _data(stats: dict[str, Any]) -> dict[str, Any]:
    for endpoint in stats.get("endpoints", []):
        if isinstance(endpoint.get("data"), dict):
            return dict(endpoint["data"])
    return {}


async def _health(nc: Client, name: str) -> Told:
    begun = time.monotonic()
    try:
        answer = json.loads((await nc.request(f"vx.svc.{name}.health", b"", timeout=ANSWER_S)).data)
    except NoRespondersError:
        return Told(why="nobody")
    except TimeoutError:
        return Told(why="late")
    except (NatsError, ValueError) as error:
        return Told(why="broken", detail=str(error) or type(error).__name__)
    if not isinstance(answer, dict):
        return Told(why="broken", detail="an answer that cannot be read")
    return Told(answer, time.monotonic() - begun)


def _service(name: str, health: Told, stats: list[dict[str, Any]] | None, place: Place) -> Finding:
    log = f"{place.log(name)}; {place.starter} starts it again by itself."
    if health.why and not stats:
        if stats is None:
            return fail(AREA, name, "is not running.", log)
        return fail(AREA, name, f"did not answer within {ANSWER_S:g} s. It is stuck, or its machine is busy.", f"{_OVERLOADED} {log}")
    stats = stats or []
    if health.why == "nobody":
        return fail(AREA, name, "runs and is not ready yet.", f"Wait until it has loaded what it needs. {place.log(name)}.")
    if health.why == "late":
        return fail(AREA, name, f"runs and did not tell its health within {ANSWER_S:g} s.", f"{_OVERLOADED} {place.log(name)}.")
    if health.why:
        return fail(AREA, name, f"runs and does not tell its health: {health.detail}.", log)
    load = ", ".join(
        f"{value:g} {key.replace('_', ' ')}"
        for key, value in (_data(stats[0]) if stats else {}).items()
        if value and key not in tools.CHECKSUMS
    )
    count = f"{len(stats)} processes" if len(stats) > 1 else str(health.answer.get("process", name))
    told = {**health.answer.get("dependencies", {}), **health.answer.get("conditions", {})}
    conditions = {key: read(value) for key, value in told.items()}
    for part, condition in conditions.items():
        if condition.state == "down":
            says = f"{count} waits for {_NAMES.get(part, part)}" + (f": {condition.detail}" if condition.detail else ".")
            return fail(AREA, name, says, "Mend what it waits for; it goes on by itself.")
    for part, condition in conditions.items():
        if condition.state == "degraded":
            return warn(AREA, name, f"{count}; {part}: {condition.detail}", "It goes on; mend the cause.")
    if health.slow:
        return warn(AREA, name, f"{count}; it took {health.took_s:.1f} s to tell its health.", _SLOW)
    if name == "voice" and len(stats) == 1:
        says = f"{count}, without another one: when it dies its calls wait until it is started again."
        return warn(AREA, name, says, "VOXBRIDGE_VOICE_WORKERS=2, the default, keeps a second one.")
    return ok(AREA, name, f"{count}: {load}" if load else count)


def _token(config: Config) -> str:
    """Return the administrators' token, if this process may read it; otherwise an empty string."""
    try:
        return admin_token_file(config).read() or ""
    except VoxbridgeError:
        return ""


async def _ready(client: httpx.AsyncClient, url: str, *, host: str = "", token: str = "") -> Told:
    # In a container setup the gateway's host name is one that it need not accept from browsers.
    headers = ({"Host": host} if host else {}) | ({"Authorization": f"Bearer {token}"} if token else {})
    begun = time.monotonic()
    try:
        async with asyncio.timeout(ANSWER_S):
            answer = await client.get(url, headers=headers)
        told = answer.json()
    except (httpx.TimeoutException, TimeoutError):
        return Told(why="late")
    except (httpx.HTTPError, ValueError) as error:
        return Told(why="broken", detail=str(error) or type(error).__name__)
    return Told(told if isinstance(told, dict) else {}, time.monotonic() - begun, status=answer.status_code)


def _gateway(config: Config, told: Told, place: Place) -> Finding:
    name, url = "gateway's port", config.gateway_base_url
    if told.why == "late":
        return fail(AREA, name, f"{url} did not answer within {ANSWER_S:g} s.", f"{_OVERLOADED} {place.log('gateway')}.")
    if told.why:
        return fail(AREA, name, f"{url} does not answer: {told.detail}.", "Is it started? Is VOXBRIDGE_PORT the port it listens on?")
    missing = {name: one for name, one in told.answer.get("dependencies", {}).items() if not one.get("ok")}
    if missing or told.status != httpx.codes.OK:
        says = "; ".join(f"{name}: {one.get('detail', '')}" for name, one in missing.items()) or f"answers {told.status}"
        return fail(AREA, name, f"{url} is not ready: {says}"[:600], "Mend what is named; it goes on by itself.")
    if told.slow:
        return warn(AREA, name, f"{url} is ready, and took {told.took_s:.1f} s to say so.", _SLOW)
    return ok(AREA, name, f"{url} is ready")


def _models(config: Config, told: Told, place: Place) -> Finding:
    where = config.models_base_url
    if told.why == "late":
        return fail("models", "service", f"{where} did not answer within {ANSWER_S:g} s.", f"{_OVERLOADED} {place.log('models')}.")
    if told.why:
        return fail("models", "service", f"{where} does not answer: {told.detail}.", f"{place.log('models')}; loading takes a while.")
    models = told.answer.get("models", {})
    states = {name: model.get("state", "?") if isinstance(model, dict) else str(model) for name, model in models.items()}
    waiting = [f"{name}: {state}" for name, state in states.items() if state != "ready"]
    if waiting or told.status != httpx.codes.OK:
        says = f"not ready: {', '.join(waiting) or f'answers {told.status}'}"
        return fail("models", "service", says, f"Wait for it. {place.log('models')}.")
    if told.slow:
        return warn("models", "service", f"{len(states)} models are ready; it took {told.took_s:.1f} s to say so.", _SLOW)
    return ok("models", "service", f"{len(states)} models are ready")
