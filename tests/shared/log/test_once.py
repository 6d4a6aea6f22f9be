"""Events whose id says that they are the same again: stored once, also where another service took the id before."""

from __future__ import annotations

import pytest
from nats.js.api import Header

from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.events.gateway import TextReceived, ToolRequested
from voxbridge.shared.events.voice import UserSaid
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.once import publish_once
from voxbridge.shared.log.reader import Log


def encoded(event: events.Event, sid: str, id: str) -> tuple[str, bytes]:
    kind = events.kind_of(event)
    subject = subjects.event_subject(sid, kind.writer, kind.visible, kind.name)
    return subject, events.encode(event, event_id=id, sid=sid, ts=1, cause=None)


REQUESTED = ToolRequested(call_id="r-1", name="calculate", arguments={}, deadline_ms=1_000, account="local")


@pytest.mark.parametrize("account", [False, True], ids=["session", "account"])
@pytest.mark.parametrize("reserved", [False, True])
async def test_an_event_is_stored_once_and_a_rival_that_has_its_id_does_not_keep_it_out(log: Log, account: bool, reserved: bool) -> None:
    sid = subjects.account_log("local") if account else new_session_id()
    event: events.Event = REQUESTED if account else TextReceived(text="hello")
    id = f"{sid}.gateway.key.0"
    subject, payload = encoded(event, sid, id)
    if reserved:
        rival, foreign = encoded(UserSaid(text="mine", turn=1, source="text"), sid, id)
        await log.js.publish(rival, foreign, headers={Header.MSG_ID.value: id})
    first = await publish_once(log, sid, subject, payload, id, timeout_s=5)
    assert await log.subject_at(sid, first) == subject
    own = [one async for one in log.read_all(sid) if one.writer == "gateway"]
    assert [(one.seq, one.event) for one in own] == [(first, event)]
    if not reserved:
        assert await publish_once(log, sid, subject, payload, id, timeout_s=5) == first
