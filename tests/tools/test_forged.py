"""Events under a name that is not their writer's: what the server lets a service publish it believes nobody but that service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from tests.tools.test_account_calls import LOCAL
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.events import gateway, operator, tools, voice
from voxbridge.shared.events.envelope import BRANCHES, KINDS
from voxbridge.shared.log.reader import Log

CALL = voice.ToolCalled(call_id="forged", name="echo", arguments={"text": "x"}, kind="server", turn=1, deadline_ms=5_000)
REQUEST = gateway.ToolRequested(call_id="forged", name="echo", arguments={"text": "x"}, deadline_ms=5_000)
YES = voice.ApprovalAnswered(approval_id="approval-c1", answer="approved", words="yes")
CLICK = gateway.ApprovalClicked(approval_id="approval-c1", answer="approved")


async def forge(log: Log, sid: str, event: events.Event, *, writer: str, topic: str, claimed: str = "") -> int:
    """Publish an event in a writer's branch of the log `sid`, whatever it is, as that writer's credentials allow."""
    payload = events.encode(event, event_id=f"{sid}.forged.{topic}", sid=claimed or sid, ts=SystemClock().now_us(), cause=None)
    subject = subjects.stored_subject(sid, writer, "i", topic)
    return (await log.js.publish(subject, payload)).seq


FORGED: dict[str, tuple[events.Event, str]] = {
    "the gateway says that a function returned": (tools.ToolCompleted(call_id="c1", name="echo", result={}, ms=1), "gateway"),
    "the gateway says that a person approved": (YES, "gateway"),
    "the gateway makes an approval stand": (tools.ApprovalStanding(name="wipe"), "gateway"),
    "the gateway writes the journal of the executor": (events.journal.ToolsJournal(first=0, inputs=()), "gateway"),
    "the gateway writes the journal of voice": (events.journal.VoiceJournal(first=0, inputs=()), "gateway"),
    "the gateway says that a session was erased": (operator.SessionErased(by="x", began=1, mode="local", events=1), "gateway"),
    "tools types as the user": (gateway.TextReceived(text="yes"), "tools"),
    "tools speaks as the user": (voice.UserSaid(text="yes", turn=1, source="speech"), "tools"),
    "tools clicks": (CLICK, "tools"),
    "tools asks in the name of a client": (REQUEST, "tools"),
    "tools clicks among the facts": (CLICK, "facts"),
    "tools ends a session": (voice.SessionEnded(reason="client"), "tools"),
    "voice clicks": (CLICK, "voice"),
    "voice says that a function returned": (tools.ToolCompleted(call_id="c1", name="echo", result={}, ms=1), "voice"),
}


@pytest.mark.parametrize("case", FORGED)
async def test_an_event_of_another_service_is_not_believed(case: str, log: Log) -> None:
    event, writer = FORGED[case]
    sid = "f" * 32
    position = await forge(log, sid, event, writer=writer, topic="main")
    (read,) = await log.read(sid)
    assert isinstance(read.event, events.Unreadable), case
    assert f"position {position} is not believed" in read.event.unreadable
    assert f"{events.kind_of(event).name} is the {events.kind_of(event).writer} service's to write" in read.event.unreadable


async def test_an_event_of_another_session_or_account_is_not_believed(log: Log) -> None:
    for sid, claimed in (("e" * 32, "d" * 32), ("e" * 32, LOCAL), ("@ada", LOCAL)):
        await forge(log, sid, REQUEST, writer="gateway", topic=subjects.REQUEST, claimed=claimed)
        *_, read = await log.read(sid)
        assert (read.sid, type(read.event)) == (sid, events.Unreadable)


def test_each_branch_beside_the_services_own_is_one_of_a_service() -> None:
    assert subjects.FACTS in BRANCHES
    assert set(BRANCHES.values()) <= {kind.writer for kind in KINDS.values()}


@pytest.mark.parametrize(("event", "claimed"), [(CALL, ""), (REQUEST, "@local"), (YES, ""), (tools.ToolStarted(call_id="x", name="x"), "")])
async def test_the_executor_runs_nothing_and_approves_nothing_because_of_a_forged_event(
    event: events.Event, claimed: str, executors: Executors, callers: Callable[[], Awaitable[Caller]], log: Log
) -> None:
    caller = await callers()
    async with executors.running() as service:
        await caller.call("guarded", text="x")
        (asked, _) = await caller.next(tools.ApprovalRequested)
        refused = service.stats()["refused"]
        forged = await forge(log, caller.sid, event, writer="gateway", topic=subjects.REQUEST, claimed=claimed)
        await eventually(lambda: service.stats()["refused"] > refused)
        await caller.call("echo", "c2", text="after")
        (_, after) = await caller.next(tools.ToolCompleted, "c2")
    assert after.seq > forged
    assert asked.call_id == "c1"
    assert not caller.told(tools.ApprovalEnded)
    assert {one.call_id for one in caller.told(tools.ToolStarted) if isinstance(one, tools.ToolStarted)} == {"c2"}
    assert not [one async for one in log.read_all(LOCAL)]
