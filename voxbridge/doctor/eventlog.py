"""Checks of NATS: its answers, streams and consumers, its disk, the backlog of the services, broken events, its clock.

Owns the requests to NATS. Changes nothing there. If the server's system account is known, the server is asked about itself too.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import ConsumerInfo
from nats.js.errors import NotFoundError

from voxbridge.doctor.finding import Finding, fail, ok, warn
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.embedded import nats_monitor
from voxbridge.shared.embedded.nats_server import SYSTEM_USER
from voxbridge.shared.embedded.servers import LOOPBACK
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.quotas import RESERVE, filling_up, full
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.streams import DURABLES, differs, streams
from voxbridge.shared.wait_for_server import host_and_port

AREA: Final = "event log"
BACKLOG: Final = 100
"""Requests or calls that may wait for a service without a warning."""

SCANNED: Final = 2_048
"""Number of newest events that are read to find broken ones."""

SKEW_MS: Final = 500
_ALMOST_FULL: Final = 0.85
_ASK_S: Final = 3.0
"""Seconds per request: two in a row stay within the bound of the examination; on a quiet machine each takes milliseconds."""

_HTTP_OK: Final = 200
_MAKE: Final = "Start the services, which make it; where each has a NATS user of its own, run `voxbridge admin streams`."
_RESTART: Final = "Restart NATS once there is room; `voxbridge up` does it by itself."


async def look(config: Config, nc: Client) -> list[Finding]:
    """Return all findings about NATS."""
    log = Log(nc, read_timeout_s=_ASK_S)
    parts = await asyncio.gather(
        _streams(config, nc), _consumers(nc), asyncio.to_thread(_server, config), _broken(nc, log), _clock(nc), return_exceptions=True
    )
    version = nc.connected_server_version
    found: list[Finding] = [
        ok(AREA, "NATS", f"answers at {host_and_port(config.nats_url)}, version {version.major}.{version.minor}.{version.patch}")
    ]
    for part in parts:
        if isinstance(part, list):
            found += part
        elif isinstance(part, NatsError | TimeoutError | VoxbridgeError | ValueError | KeyError):
            found.append(_unanswered(part))
        else:
            raise part
    return found


def _unanswered(error: Exception) -> Finding:
    if isinstance(error, TimeoutError) or isinstance(error.__cause__, TimeoutError):
        do = "Is its machine overloaded, or its disk slow? See what else it does, and ask again."
        return fail(AREA, "answers", f"JetStream did not answer within {_ASK_S:g} s.", do)
    return fail(AREA, "answers", f"JetStream does not answer: {error or type(error).__name__}.", _RESTART)


async def _streams(config: Config, nc: Client) -> list[Finding]:
    js = nc.jetstream(timeout=_ASK_S)
    found: list[Finding] = []
    used = 0
    for wanted in streams(config.event_retention_days, config.record, replicas=config.replica_count):
        name = str(wanted.name)
        try:
            info = await js.stream_info(name)
        except NotFoundError:
            found.append(fail(AREA, f"stream {name}", "is not there.", _MAKE))
            continue
        state = info.state
        says = f"{state.messages} messages, {state.bytes >> 20} MiB"
        used += state.bytes if name in subjects.LOG_STREAMS else 0
        if differs(wanted, info.config):
            found.append(warn(AREA, f"stream {name}", f"{says}; its settings are not this release's.", "Restart the services."))
        else:
            found.append(ok(AREA, f"stream {name}", says))
    room = config.log_mb * 1_000_000
    if said := filling_up(used, room):
        what, _, do = said.partition(" are used. ")
        found.append((fail if full(used, room) >= RESERVE else warn)(AREA, "log_mb", f"{what} are used.", do))
    return found


async def _consumers(nc: Client) -> list[Finding]:
    js = nc.jetstream(timeout=_ASK_S)
    found: list[Finding] = []
    for stream, wanted in DURABLES:
        name = str(wanted.durable_name)
        label = f"queue {name}" if stream == subjects.EVENT_STREAM else f"queue {name} of {stream}"
        try:
            info = await js.consumer_info(stream, name)
        except NotFoundError:
            found.append(fail(AREA, label, "is not there.", _MAKE))
            continue
        found.append(_queue(name, label, info, settled=info.config is not None and not differs(wanted, info.config)))
    return found


def _queue(name: str, label: str, info: ConsumerInfo, *, settled: bool) -> Finding:
    waiting, open_ = info.num_pending or 0, info.num_ack_pending or 0
    says = f"{waiting} wait, {open_} are open, {info.num_redelivered or 0} came again"
    if waiting > BACKLOG:
        do = f"See whether {name} runs and what its log says; start another one if it is busy."
        return warn(AREA, label, f"{name} is behind: {says}.", do)
    if not settled:
        return warn(AREA, label, f"{says}; its settings are not this release's.", f"Restart {name}.")
    return ok(AREA, label, says)


def _server(config: Config) -> list[Finding]:
    """Return the embedded server's findings about itself; none for a server of another installation."""
    parts = urlsplit(config.nats_url)
    try:
        password = (Path(config.data_dir) / "nats" / "system-password").read_text().strip()
    except OSError:
        return []
    if parts.hostname != LOOPBACK or parts.port is None:
        return []

    def ask(subject: str) -> Mapping[str, Any]:
        return nats_monitor.ask(LOOPBACK, parts.port or 0, SYSTEM_USER, password, subject, timeout_s=_ASK_S)

    try:
        health, js = ask(nats_monitor.HEALTH), ask(nats_monitor.JETSTREAM)
    except OSError as error:
        return [warn(AREA, "server", f"It says nothing of itself: {error}.", "Is it the server of this folder?")]
    found: list[Finding] = []
    if health.get("status_code", _HTTP_OK) != _HTTP_OK:
        found.append(fail(AREA, "server", str(health.get("error", "not healthy"))[:300], "Free some space. " + _RESTART))
    used, limit = int(js.get("storage", 0)), int(js.get("config", {}).get("max_storage", 0))
    says = f"{used >> 20} of {limit >> 20} MiB that JetStream may use"
    if limit and used > limit * _ALMOST_FULL:
        do = "Keep events for fewer days (VOXBRIDGE_EVENT_RETENTION_DAYS)."
        found.append((fail if used >= limit else warn)(AREA, "room", f"{says} are used.", do))
    else:
        found.append(ok(AREA, "room", says))
    return found


async def _broken(nc: Client, log: Log) -> list[Finding]:
    found: list[Msg] = []
    for stream, everything in ((subjects.EVENT_STREAM, "*"), (subjects.ACCOUNT_STREAM, subjects.ACCOUNTS)):
        try:
            last = (await nc.jetstream(timeout=_ASK_S).stream_info(stream)).state.last_seq
        except NotFoundError:  # its own finding says so
            continue
        found += (await log.page(everything, after=max(0, last - SCANNED), limit=SCANNED)).messages
    broken: list[str] = []
    for message in found:
        headers = message.headers or {}
        sid, writer, visible = subjects.parse_event_subject(headers["Nats-Subject"])
        seq = int(headers["Nats-Sequence"])
        read = events.read(
            message.data, seq=seq, sid=sid, writer=writer, visible=visible, event_type=subjects.named_type(headers["Nats-Subject"])
        )
        if isinstance(read.event, events.Unreadable):
            broken.append(f"{seq} ({read.type} of {subjects.account_of(sid) or f'session {sid[:8]}'})")
    if broken:
        says = f"{len(broken)} of the newest {len(found)} events cannot be read: at {', '.join(broken[:3])}"
        return [warn(AREA, "events", says, "They are passed over. Was the log written by a newer release? Then use that one.")]
    return [ok(AREA, "events", f"the newest {len(found)} can all be read")]


async def _clock(nc: Client) -> list[Finding]:
    begun = time.time()
    answer = await nc.request(f"$JS.API.STREAM.INFO.{subjects.EVENT_STREAM}", b"", timeout=_ASK_S)
    ended = time.time()
    told = json.loads(answer.data).get("ts")
    if not isinstance(told, str):
        return []
    skew_ms = round((datetime.fromisoformat(told).timestamp() - (begun + ended) / 2) * 1_000)
    if abs(skew_ms) > SKEW_MS + (ended - begun) * 500:
        return [warn(AREA, "clock", f"NATS is {skew_ms} ms off this machine's clock.", "Let both be set by NTP; times in calls mix both.")]
    return [ok(AREA, "clock", f"{abs(skew_ms)} ms apart from NATS")]
