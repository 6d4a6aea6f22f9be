"""The whole examination: all checks run in parallel, and a part that does not answer costs its timeout and no more.

Owns the order and the time limits. Does not own the checks (the modules beside it) nor how findings are shown (`voxbridge.doctor.command`).
Changes nothing anywhere.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, Final

from redis.asyncio import Redis

from voxbridge.doctor import eventlog, knowledge, machine, mcp, parts, tools, valkey
from voxbridge.doctor.finding import Finding, fail, warn
from voxbridge.doctor.place import Place
from voxbridge.installation import runtime
from voxbridge.shared.bus.accounts import ADMIN
from voxbridge.shared.bus.connection import close_nats, connect_nats
from voxbridge.shared.config import Config, unknown
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.secrets.mounted import read_secret
from voxbridge.shared.wait_for_server import host_and_port

BOUND_S: Final = 8.0
CONNECT_S: Final = 2.0
_PENDING: Final = 1024 * 1024
_START: Final = "Start it with `make up`."


async def examine(config: Config) -> list[Finding]:
    """Return all findings; takes at most `BOUND_S`, however many parts are dead."""
    running = machine.is_running(config.data_dir)
    told = runtime.told(config.data_dir) if running else None
    if told is not None:
        config = replace(
            config,
            nats_url=config.nats_url or told.nats_url,
            redis_url=config.redis_url or told.redis_url,
            port=told.port,
            models_port=told.models_port,
        )
    place = Place(here=running or not config.nats_url)
    seen = asyncio.to_thread(machine.look, config, running=running) if place.here else asyncio.to_thread(machine.own)
    functions = [_bounded("functions", asyncio.to_thread(tools.look, config))] if place.here else []
    if not running and not config.nats_url:
        found = [finding for part in await asyncio.gather(_bounded("machine", seen), *functions) for finding in part]
        return [*_settings(), *found, fail("product", "voxbridge", f"Nothing runs on {config.data_dir.absolute()}.", _START)]
    looked = await asyncio.gather(
        _bounded("machine", seen),
        *functions,
        _bounded("event log", _over_nats(config, place)),
        _bounded("valkey", _over_redis(config, place)),
        _bounded("services", parts.over_http(config, place)),
    )
    return [*_settings(), *(finding for found in looked for finding in found)]


def _settings() -> list[Finding]:
    return [warn("settings", name, "is set, and is not a setting.", do) for name, do in unknown(os.environ).items()]


async def _bounded(area: str, look: Awaitable[list[Finding]]) -> list[Finding]:
    try:
        async with asyncio.timeout(BOUND_S):
            return await look
    except TimeoutError:
        return [fail(area, "answers", f"no answer within {BOUND_S:g} s.", "Is the machine overloaded, or a disk or the network stuck?")]


async def _over_nats(config: Config, place: Place) -> list[Finding]:
    if not config.nats_url:
        return [fail("event log", "NATS", "Its address is not known.", f"Set VOXBRIDGE_NATS_URL. {_START}")]
    # The findings already report what the connection would log.
    logging.getLogger("voxbridge.shared").addHandler(logging.NullHandler())
    logging.getLogger("voxbridge.shared").propagate = False
    try:
        user = ADMIN if config.nats_seed_file else ""
        async with asyncio.timeout(2 * CONNECT_S):
            nc = await connect_nats(
                config.nats_url, "voxbridge-doctor", pending=_PENDING, timeout_s=CONNECT_S, user=user, seed_file=config.nats_seed_file
            )
    except TimeoutError:
        says = f"{host_and_port(config.nats_url)} takes connections and says nothing."
        return [fail("event log", "NATS", says, "Is nats-server stopped, or its machine overloaded? Look at it, or start it again.")]
    except VoxbridgeError as error:
        return [fail("event log", "NATS", error.message, f"{place.log('nats')}; {place.starter} starts it again by itself.")]
    try:
        asked = (
            *(eventlog.look(config, nc), parts.on_the_bus(nc, place), tools.on_the_bus(nc), mcp.on_the_bus(nc)),
            knowledge.on_the_bus(config, nc),
        )
        return [finding for found in await asyncio.gather(*asked) for finding in found]
    finally:
        await close_nats(nc)


async def _over_redis(config: Config, place: Place) -> list[Finding]:
    if not config.redis_url:
        return [warn("valkey", "Valkey", "Its address is not known.", "Set VOXBRIDGE_REDIS_URL.")]
    try:
        secret: dict[str, Any] = (
            {"password": read_secret(config.redis_password_file, "VOXBRIDGE_REDIS_PASSWORD_FILE")} if config.redis_password_file else {}
        )
    except VoxbridgeError as error:
        return [fail("valkey", "Valkey", error.message, "Correct the setting.")]
    redis = Redis.from_url(config.redis_url, **secret, decode_responses=True, socket_timeout=CONNECT_S, socket_connect_timeout=CONNECT_S)
    try:
        return await valkey.look(config, redis, place, now_us=time.time_ns() // 1_000)
    except VoxbridgeError as error:
        return [fail("valkey", "Valkey", error.message, f"{place.log('valkey')}.")]
    finally:
        await redis.aclose()
