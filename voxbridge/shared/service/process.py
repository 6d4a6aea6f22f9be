"""The life of a service process: connect, build, serve, drain.

Owns the process's connections, its signals, and its place in the NATS micro framework (`$SRV.PING`, `$SRV.INFO`, `$SRV.STATS` and
`vx.svc.<name>.health`). Does not own what the service does. A crash here ends the process; the supervisor starts it again, and the service
continues from the log.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import signal
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any, Final, TypeVar

import msgspec
import nats.micro
import uvloop
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.micro.request import Request
from nats.micro.service import EndpointStats
from nats.micro.service import Service as Micro
from redis.asyncio import Redis

from voxbridge.shared import structures
from voxbridge.shared.bus.client import FastClient
from voxbridge.shared.bus.connection import AUDIO_PENDING, CLOSE_TIMEOUT_S, EVENTS_PENDING, close_nats, connect_nats, denied
from voxbridge.shared.bus.permission_check import check_rights
from voxbridge.shared.cancellation import ended_within
from voxbridge.shared.clock import Clock, SystemClock
from voxbridge.shared.condition import Condition
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.ids import new_process_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.unreadable import BROKEN
from voxbridge.shared.secrets.certificates import check_certificates
from voxbridge.shared.service import log_format
from voxbridge.shared.service.health import nats_condition, valkey_condition
from voxbridge.shared.store.connection import connect_redis
from voxbridge.shared.wait_for_server import START_TIMEOUT_S

DRAIN_TIMEOUT_S: Final = 6.0
"""Seconds that a service may take to finish what it holds. Closing the connections included, a process ends 7 s after SIGTERM, unless it is
killed before: `voxbridge up`, which stops all processes at once so that none could take over, waits for 4 s."""

REST_S: Final = 0.5
"""Seconds that a service's leftover tasks have to end; then the process ends without them."""

GARBAGE: Final = (50_000, 20, 50)
"""Thresholds of the garbage collector for cycles: with Python's own it takes a fifth of the time that audio does, and finds nothing.
Objects outside cycles are freed at once all the same."""

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Service(ABC):
    """A service that a process runs. `serve` returns when `drain` has finished it; when it raises, the process ends with code 1."""

    @abstractmethod
    async def serve(self) -> None:
        """Work until drained."""

    async def warm_up(self) -> None:  # noqa: B027 - most have nothing to load
        """Load, beside the work, what the first request would wait for. The process counts as ready after it."""

    @abstractmethod
    async def drain(self) -> None:
        """Take no new work, finish what is held, let `serve` return; cut off after `DRAIN_TIMEOUT_S`."""

    def health(self) -> Mapping[str, bool | Condition]:
        """Return this service's own dependencies: for each its condition, or true if it is available."""
        return {}

    def stats(self) -> Mapping[str, float]:
        """Return the figures shown in `$SRV.STATS`."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Resources that a service is built from. `events_nc` keeps 8 MiB of publishes while NATS is away, `audio_nc` 256 KiB."""

    config: Config
    clock: Clock
    process_id: str
    events_nc: Client
    audio_nc: FastClient
    redis: Redis
    log: Log
    """The event log over `events_nc`; its followers catch up after every reconnect."""
    micro: Micro
    """Add endpoints `vx.svc.<service>.<verb>` here; each gets a queue group and statistics."""
    served: list[Service] = field(default_factory=list, repr=False)
    """The service, once it is built; `$SRV.STATS` reads its figures."""

    async def conditions(self) -> dict[str, Condition]:
        """Return the conditions of `nats`, `redis` and the event `log` now, and of `permissions` once NATS refused something; takes at most
        a second."""
        nats = nats_condition(self.events_nc, self.audio_nc)
        found = {"nats": nats, "redis": await valkey_condition(self.redis), "log": self.log.appends.condition(connected=nats.ok)}
        if denied(self.events_nc) or denied(self.audio_nc):
            found["permissions"] = Condition("down", "NATS refuses what this service does; the log of the process says what.")
        return found


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of a process on `figures_subject`: its figures by name."""

    process: str
    figures: dict[str, float]


def figures_subject(name: str) -> str:
    """Return the subject on which every process of a service is asked for its figures."""
    return f"vx.svc.{name}.figures"


def health_subject(name: str, host: str = "", pid: int = 0) -> str:
    """Return the subject on which a service is asked for its health; with `host`, a process of it on that host; with `pid`, exactly that
    process, once it has loaded everything."""
    here = re.sub(r"[^A-Za-z0-9_-]", "-", host)
    if pid:
        return f"vx.svc.{name}.health.{here}.{pid}"
    return f"vx.svc.{name}.health.{here}" if here else f"vx.svc.{name}.health"


Build = Callable[[Resources], Awaitable[Service]]


STAND_BY: Final = "--stand-by"
"""Argument of a service that loads everything, and begins once a line arrives on its standard input. Only services whose extra has
setproctitle support it."""


def _told_to_begin(name: str) -> bool:
    # A search for the service among the processes, to end it or to inspect it, should find the one that serves.
    import setproctitle

    serves = setproctitle.getproctitle().removesuffix(f" {STAND_BY}")
    setproctitle.setproctitle(f"voxbridge: the next {name} stands by")
    _log.info("%s stands by.", name)
    begun = bool(sys.stdin.buffer.readline())
    setproctitle.setproctitle(serves)
    return begun


def main(name: str, build: Build) -> None:
    """Run a service until SIGTERM or SIGINT, then end the process: code 0 drained, 1 failed, 2 wrong settings."""
    try:
        config = Config.from_env()
        check_certificates()
    except VoxbridgeError as error:
        sys.stderr.write(f"{error.message}\n")
        sys.exit(2)
    process_id = new_process_id(name)
    log_format.configure(process_id, config.log_level)
    structures.read_all()
    gc.freeze()  # what was loaded so far stays for good
    gc.set_threshold(*GARBAGE)
    if STAND_BY in sys.argv[1:] and not _told_to_begin(name):
        sys.exit(0)  # the process that would have sent the line is gone
    sys.exit(uvloop.run(_to_the_end(name, build, config, process_id)))


async def _to_the_end(name: str, build: Build, config: Config, process_id: str) -> int:
    """Run a service, then cancel its leftover tasks for `REST_S`, and exit without those that still run: the loop would wait forever."""
    code = await run(name, build, config, process_id=process_id)
    left = await ended_within(REST_S, *(asyncio.all_tasks() - {asyncio.current_task()}))
    if left:
        _log.warning("%s ends without %s.", name, ", ".join(sorted({getattr(task.get_coro(), "__qualname__", "a task") for task in left})))
        sys.stderr.flush()
        os._exit(code)
    return code


async def run(
    name: str,
    build: Build,
    config: Config,
    *,
    process_id: str | None = None,
    clock: Clock | None = None,
    start_timeout_s: float = START_TIMEOUT_S,
) -> int:
    """Run the whole life of a service on the running loop; return the exit code. SIGTERM and SIGINT are handled meanwhile."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, stopping.set)
    stop = asyncio.create_task(stopping.wait())
    try:
        async with AsyncExitStack() as open_things:
            opening = connected(config, name, process_id or new_process_id(name), clock or SystemClock(), start_timeout_s)
            resources = await _unless(stop, open_things.enter_async_context(opening))
            service = None if resources is None else await _unless(stop, build(resources))
            structures.read_all()  # those of packs, too
            if resources is not None and service is not None:
                await _serve(name, resources, service, stop)
    except VoxbridgeError as error:
        _log.error("%s", error.message)
        return 1
    except Exception:  # noqa: BLE001 - the edge of the process: log everything, then end
        _log.exception("%s failed.", name)
        return 1
    finally:
        stop.cancel()
        for number in numbers:
            loop.remove_signal_handler(number)
    _log.info("%s ends.", name)
    return 0


@asynccontextmanager
async def connected(
    config: Config, name: str, process_id: str, clock: Clock, timeout_s: float = START_TIMEOUT_S
) -> AsyncIterator[Resources]:
    """Open the resources of a process, and close them at the end; waits for NATS and Redis, then raises `Unavailable`."""
    async with AsyncExitStack() as closing:
        logs: list[Log] = []

        async def catch_up() -> None:
            for log in logs:
                await log.reconnected()

        nats_connection = partial(connect_nats, config.nats_url, timeout_s=timeout_s, user=name, seed_file=config.nats_seed_file)
        events = await nats_connection(process_id, pending=EVENTS_PENDING, on_reconnected=catch_up)
        logs.append(Log(events))
        closing.push_async_callback(close_nats, events)
        await check_rights(events, name)
        audio = await nats_connection(f"{process_id}-audio", pending=AUDIO_PENDING)
        closing.push_async_callback(close_nats, audio)
        redis = await connect_redis(config.redis_url, timeout_s=timeout_s, password_file=config.redis_password_file)
        closing.push_async_callback(redis.aclose)
        figures: list[Service] = []

        def stats(_: EndpointStats | None = None) -> dict[str, float]:
            own = dict(figures[0].stats()) if figures else {}
            return {**own, "events_unreadable": BROKEN.count, "events_appended": logs[0].appends.acknowledged}

        micro = await nats.micro.add_service(
            events, name=f"voxbridge-{name}", version=version("voxbridge"), metadata={"process": process_id}, stats_handler=stats
        )
        closing.push_async_callback(_leave, micro)

        async def asked(message: Msg) -> None:
            await message.respond(msgspec.json.encode(Figures(process=process_id, figures=stats())))

        await events.subscribe(figures_subject(name), cb=asked)
        yield Resources(
            config=config,
            clock=clock,
            process_id=process_id,
            events_nc=events,
            audio_nc=audio,
            redis=redis,
            log=logs[0],
            micro=micro,
            served=figures,
        )


async def _serve(name: str, resources: Resources, service: Service, stop: asyncio.Task[Any]) -> None:
    resources.served.append(service)

    async def health(request: Request) -> None:
        conditions = {**await resources.conditions(), **{name: _condition(there) for name, there in service.health().items()}}
        there = {name: condition.ok for name, condition in conditions.items()}
        answer = {"ready": all(there.values()), "process": resources.process_id, "dependencies": there, "conditions": conditions}
        await request.respond(msgspec.json.encode(answer))

    async def announce() -> None:
        try:
            await service.warm_up()
        except Exception:  # noqa: BLE001 - then the first request waits for the load
            _log.exception("%s could not load everything beforehand.", name)
        await resources.micro.add_endpoint(name="health", subject=health_subject(name), handler=health)
        own = health_subject(name, socket.gethostname(), os.getpid())
        await resources.micro.add_endpoint(name="health-own", subject=own, handler=health)

    # Answered from the start, for a probe on this host; `health` and `health-own` are answered only after `warm_up`.
    await resources.micro.add_endpoint(name="health-here", subject=health_subject(name, socket.gethostname()), handler=health)
    serving = asyncio.ensure_future(service.serve())
    announcing = asyncio.create_task(announce())
    _log.info("%s serves.", name)
    await asyncio.wait({serving, stop}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if not serving.done():
            _log.info("%s drains.", name)
            draining = asyncio.create_task(_drained(service, serving))
            await asyncio.wait({draining}, timeout=DRAIN_TIMEOUT_S)
            if draining.done():
                draining.result()
            else:
                _log.warning("%s was not drained within %g s; what it held is left to its successor.", name, DRAIN_TIMEOUT_S)
                draining.cancel()
    finally:
        announcing.cancel()
        if not serving.done():
            serving.cancel()
            await asyncio.wait({serving}, timeout=CLOSE_TIMEOUT_S)
    if serving.done() and not serving.cancelled():
        serving.result()


async def _drained(service: Service, serving: asyncio.Future[None]) -> None:
    await service.drain()
    await asyncio.wait({serving})


def _condition(there: bool | Condition) -> Condition:
    return there if isinstance(there, Condition) else Condition("ok" if there else "down")


async def _leave(micro: Micro) -> None:
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await micro.stop()
    except (NatsError, TimeoutError, OSError) as error:
        _log.info("The service list was not told of the end: %s", error)


async def _unless(stop: asyncio.Task[Any], work: Awaitable[_T]) -> _T | None:
    """Return the result of `work`, or `None` when the process was told to stop before that."""
    task = asyncio.ensure_future(work)
    await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.wait({task}, timeout=CLOSE_TIMEOUT_S)
    return None
