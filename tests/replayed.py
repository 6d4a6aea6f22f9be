"""Replay of every session that a test recorded: the services' outputs must follow from their recorded inputs, and a crash after any event
must change nothing.

`python -m tests.replayed FOLDER` does the same for the data folder of a product that has stopped.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import nats
from nats.aio.client import Client

from voxbridge.sessions import replay
from voxbridge.sessions.eventlog import opened
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.events.journal import JOURNALS, Checkpoint
from voxbridge.shared.log.reader import Log
from voxbridge.shared.step.fold import Append, Due, fold
from voxbridge.shared.step.journal import LogInput
from voxbridge.shared.step.replay import Service, began_at

WHOLE_SERVICES = {
    "voice": ("voice",),
    "tools": ("tools",),
    "faults": ("voice", "tools"),
    "agents": ("voice", "tools"),
    "awareness": ("awareness",),
    "gateway": ("tools", "awareness"),
    "knowledge": ("voice", "tools"),
    "terminals": ("terminals",),
    "voxbridge": ("awareness",),
}
"""Services that write their own events, by folder of tests; in other folders stand-ins write in their name."""

EVERY_LOG = {
    subjects.EVENT_STREAM: "*",
    subjects.ACCOUNT_STREAM: subjects.ACCOUNTS,
    subjects.AWARENESS_STREAM: subjects.AWARENESS_OF_ALL,
    subjects.TERMINALS_STREAM: subjects.TERMINALS_OF_ALL,
}
"""Streams of logs, and the id that stands for all logs in one."""

CRASHES = 100
"""Crashes tried for each session; a shorter session gets one after every event."""

CRASHED_EVENTS = 40_000
"""Events that the crashes of one session may fold in all, so that a session of thousands of events gets fewer of them."""


async def differences(connection: Client, services: Sequence[str]) -> str:
    """Return the differences in the replays of all sessions on a server, as text; the last events of a killed process may be missing."""
    return "\n".join([line async for line in _all(Log(connection), services)]) if services else ""


async def of_server(url: str, services: Sequence[str]) -> str:
    """Return `differences` over a connection of its own."""
    connection = await nats.connect(url)
    try:
        return await differences(connection, services)
    finally:
        await connection.close()


async def _all(log: Log, services: Sequence[str]) -> Any:
    there = {stream.config.name for stream in await log.js.streams_info()}
    recorded = [one for stream, ids in EVERY_LOG.items() if stream in there async for one in log.read_all(ids)]
    for sid, session in groupby(sorted(recorded, key=lambda one: (one.sid, one.seq)), key=lambda one: one.sid):
        for line in of_session(list(session), services):
            yield f"session {sid}: {line}"


def of_session(log: list[events.Recorded], services: Sequence[str]) -> Iterator[str]:
    """Yield the differences in one session."""
    for name in services:
        if not any(isinstance(one.event, JOURNALS[name]) for one in log):
            continue
        try:
            replayed = replay.run(log, name)
        except VoxbridgeError as error:
            yield f"{name} cannot be replayed: {error.message}"
            continue
        if not replay.same(replayed, unfinished=True):
            yield from replay.report(replayed, unfinished=True)
        elif began_at(replay.services()[name], [one for one in log if one.writer == name]) is None:
            yield from _crashes(replay.services()[name], log)


def _crashes(service: Service, log: list[events.Recorded]) -> Iterator[str]:
    whole = after_crash(service, log, len(log))
    for at in range(0, len(log), max(1, len(log) // CRASHES, len(log) ** 2 // CRASHED_EVENTS)):
        if after_crash(service, log, at) != whole:
            yield f"{service.writer} differs after a crash behind position {log[at - 1].seq if at else 0}"


def after_crash(service: Service, log: Sequence[events.Recorded], at: int) -> list[Any]:
    """Return the log of a session whose process died after the first `at` events: the kept events, the successor's repairs, and the outputs
    for the inputs that it takes after them."""
    log = [one for one in log if not isinstance(one.event, Checkpoint)]
    writer, kept = service.writer, log[:at]
    sid = next(one.id for one in log if one.writer == writer).partition(".")[0]
    folded = fold(service.step, service.initial(sid), service.inputs, writer, kept)
    written = [_essence(one) for one in kept if one.writer == writer] + [_due(due) for due in folded.missing]
    state, number = folded.state, folded.taken
    by_seq = {one.seq: one for one in log}
    decoder = msgspec.msgpack.Decoder(service.inputs)
    for entry in log[at:]:
        if not isinstance(entry.event, JOURNALS[writer]):
            continue
        assert entry.event.first == number, "the successor goes on with another input than the first one that was not taken"
        written.append(_essence(entry))
        for taken in entry.event.inputs:
            input: Any = LogInput(by_seq[taken.seq]) if taken.seq is not None else decoder.decode(taken.input)
            state, outputs = service.step(state, input, taken.at)
            cause = f"{writer}#{number}" if taken.seq is None else taken.seq
            number += 1
            written += [_due(Due(output.event, taken.at, cause)) for output in outputs if isinstance(output, Append)]
    return [*written, state]


def _essence(one: events.Recorded) -> Any:
    return one.type, one.ts, one.cause, msgspec.msgpack.encode(one.event)


def _due(due: Due) -> Any:
    return events.kind_of(due.event).name, due.ts, due.cause, msgspec.msgpack.encode(due.event)


async def _folder(path: Path) -> int:
    found = 0
    async with opened(Config(data_dir=path)) as there:
        async for line in _all(there.log, replay.NAMES):
            sys.stdout.write(f"{line}\n")
            found = 1
    return found


if __name__ == "__main__":
    sys.exit(asyncio.run(_folder(Path(sys.argv[1]))))
