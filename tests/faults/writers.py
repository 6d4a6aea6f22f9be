"""A process that appends as fast as it can and records every acknowledgement: `python -m tests.faults.writers HOW URL FILE COUNT`.

`HOW` is `plain`, which publishes with an id until it is acknowledged, or `fenced`, which is the `SessionWriter` of the product. A line of
the file is `<session> <position> <number>`, written after the acknowledgement and before the next event.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from nats.errors import Error as NatsError

from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.connection import EVENTS_PENDING, connect_nats
from voxbridge.shared.events.voice import UserSaid
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter


async def plain(log: Log, sid: str, number: int) -> int:
    """Publish one event until it is acknowledged. Return its position."""
    event, id = UserSaid(text="x" * 200, turn=number, source="text"), f"{sid}.{number}"
    payload = events.encode(event, event_id=id, sid=sid, ts=number, cause=None)
    while True:
        try:
            subject = subjects.event_subject(sid, "voice", True, "user.said")
            return (await log.js.publish(subject, payload, timeout=0.5, headers={"Nats-Msg-Id": id})).seq
        except (TimeoutError, NatsError):
            await asyncio.sleep(0.02)


async def work(log: Log, how: str, file: int, stop: asyncio.Event) -> None:
    """Append events to one session, one after the other, until `stop`."""
    sid, number = new_session_id(), 0
    writer = SessionWriter(log, sid, "voice")
    while not stop.is_set():
        if how == "plain":
            seq = await plain(log, sid, number)
        else:
            seq = await writer.append(UserSaid(text="x" * 200, turn=number, source="text"), ts=number, cause=None)
        os.write(file, f"{sid} {seq} {number}\n".encode())
        number += 1


async def main(how: str, url: str, path: Path, count: int) -> None:
    """Work until SIGTERM, then finish the pending appends."""
    logs: list[Log] = []

    async def back() -> None:
        await asyncio.gather(*(log.reconnected() for log in logs))

    client = await connect_nats(url, "writers", pending=EVENTS_PENDING, on_reconnected=back)
    logs.append(Log(client))
    await logs[0].ensure_streams(retention_days=1)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    await asyncio.gather(*(work(logs[0], how, file, stop) for _ in range(count)))
    await client.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])))
