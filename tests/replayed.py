"""Every session that a test recorded is replayed when the test is over: what the services did must follow from what they recorded."""

from __future__ import annotations

from itertools import groupby

from nats.aio.client import Client

from shared import bus, events
from shared.errors import VoxbridgeError
from shared.events.journal import JOURNALS
from shared.log import Log
from voxbridge import replay

WHOLE_SERVICES = {"voice": "voice", "tools": "tools"}
"""Folders of tests in which a service writes its own events, and which one; elsewhere stand-ins write in its name."""


async def differences(connection: Client, service: str) -> str:
    """What the replays of all sessions on a server differ in, in words; the last events of a killed process may be missing."""
    log = Log(connection)
    found: list[str] = []
    if not any(stream.config.name == bus.EVENT_STREAM for stream in await connection.jetstream().streams_info()):
        return ""
    recorded = [one async for one in log.read_all("*")]
    for sid, session in groupby(sorted(recorded, key=lambda one: (one.sid, one.seq)), key=lambda one: one.sid):
        found += _differences(sid, list(session), service)
    return "\n".join(found)


def _differences(sid: str, log: list[events.Recorded], service: str) -> list[str]:
    if not any(isinstance(one.event, JOURNALS[service]) for one in log):
        return []
    try:
        replayed = replay.run(log, service)
    except VoxbridgeError as error:
        return [f"session {sid} cannot be replayed: {error.message}"]
    return [] if replay.same(replayed, unfinished=True) else [f"session {sid}", *replay.report(replayed, unfinished=True)]
