"""Few subjects per call, and logs of the first release, with one for each type of event: both are read, followed, fenced and served."""

from __future__ import annotations

from collections import Counter

import pytest
from nats.js.api import Header

from tests.shared.collector import Collector
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Conflict
from voxbridge.shared.events import tools, voice
from voxbridge.shared.events.gateway import ClientConnected, ClientDisconnected, PlaybackReported, SessionRequested, TextReceived
from voxbridge.shared.events.journal import VoiceJournal
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log import streams
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log, type_of
from voxbridge.shared.log.writer import End, SessionWriter

FENCE = "Nats-Expected-Last-Subject-Sequence-Subject"
A_CALL: tuple[events.Event, ...] = (
    SessionRequested(mode="local"),
    ClientConnected(gateway="g", connection="c"),
    voice.SessionOwned(worker="w", term=1),
    voice.SessionStarted(mode="local", model="m", voice="v", output="audio"),
    voice.SpeechStarted(source="vad", audio_ms=1),
    voice.SpeechEnded(source="vad", audio_ms=2),
    VoiceJournal(first=0, inputs=()),
    voice.UserSaid(text="hello", turn=1, source="speech"),
    voice.AgentSaid(text="hi", turn=1, generation=1),
    PlaybackReported(generation=1, played_ms=10, state="finished"),
    voice.GenerationCancelled(generation=1, by="barge_in"),
    voice.TurnCompleted(number=1, reason="completed"),
    TextReceived(text="bye"),
    ClientDisconnected(gateway="g", connection="c", reason="closed", last_seq=1),
    voice.SessionEnded(reason="client"),
)
WORK: tuple[events.Event, ...] = (
    voice.ToolCalled(call_id="c1", name="f", arguments={}, kind="server", turn=1, deadline_ms=1_000),
    tools.ToolStarted(call_id="c1", name="f"),
    tools.ToolCompleted(call_id="c1", name="f", result={"a": 1}, ms=1),
    voice.ToolDelivered(call_id="c1", how="response"),
)


async def store(log: Log, sid: str, event: events.Event, number: int, *, last: int | None = None, old: bool = True) -> int:
    """Store an event as the first release did."""
    kind = events.kind_of(event)
    name = f"vx.s.{sid}.ev.{kind.writer}.{'c' if kind.visible else 'i'}.{kind.name}"
    subject = name if old else subjects.event_subject(sid, kind.writer, kind.visible, kind.name)
    id = f"{sid}.{kind.writer}.{number}"
    headers = {Header.MSG_ID.value: id}
    if last is not None:
        headers |= {Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(last), FENCE: f"vx.s.{sid}.ev.{kind.writer}.*.>"}
    return (await log.js.publish(subject, events.encode(event, event_id=id, sid=sid, ts=number, cause=None), headers=headers)).seq


async def test_a_call_has_few_subjects_and_one_with_functions_two_more(log: Log) -> None:
    plain, busy = new_session_id(), new_session_id()
    for sid, all in ((plain, A_CALL), (busy, (*A_CALL, *WORK))):
        for number, event in enumerate(all):
            await store(log, sid, event, number, old=False)
        assert [one.event for one in await log.read(sid)] == list(all)
    counts = {
        sid: (await log.js.stream_info(subjects.EVENT_STREAM, subjects_filter=subjects.stored_subject(sid))).state.subjects
        for sid in (plain, busy)
    }
    assert (len(counts[plain] or ()), len(counts[busy] or ())) == (5, 7)


def test_every_event_lies_where_those_who_filter_look_for_it() -> None:
    for kind in events.KINDS.values():
        subject = subjects.event_subject("s", kind.writer, kind.visible, kind.name)
        assert subjects.parse_event_subject(subject) == ("s", kind.writer, kind.visible)
        assert subjects.named_type(subject) in ("", kind.name)
    by_end = Counter(subjects.event_subject("s", k.writer, k.visible, k.name).removeprefix("vx.s.s.ev.") for k in events.KINDS.values())
    assert by_end.keys() == {
        "awareness.i.awareness.changed",
        "awareness.i.awareness.checkpoint",
        "awareness.i.main",
        "gateway.i.awareness.switched",
        "gateway.i.context.set",
        "gateway.i.error.reported",
        "gateway.i.page.visited",
        "gateway.i.session.configured",
        "gateway.i.session.requested",
        "gateway.i.main",
        "gateway.i.keys",
        "gateway.i.request",
        "operator.c.session.erased",
        "terminals.c.main",
        "terminals.c.terminal.closed",
        "terminals.c.terminal.started",
        "terminals.i.main",
        "tools.c.main",
        "tools.c.run",
        "tools.i.main",
        "tools.i.approval.standing",
        "tools.i.child.opened",
        "tools.i.macro.deleted",
        "tools.i.macro.saved",
        "tools.i.note.remembered",
        "tools.i.tasks.unheard",
        "tools.i.note.forgotten",
        "tools.i.tool.undoable",
        "tools.i.tools.checkpoint",
        "voice.c.said",
        "voice.c.session",
        "voice.i.main",
    }
    filters = streams.CONSUMERS[subjects.TOOLS_CONSUMER].filter_subjects or []
    for name in ("tool.called", "tool.cancelled", "session.ended"):
        kind = events.KINDS[name]
        assert subjects.event_subject("*", kind.writer, kind.visible, name) in filters
        assert f"vx.s.*.ev.voice.c.{name}" in filters, "a call that began before the upgrade"
    for name in ("approval.clicked", "run.answer_received", "task.cancel_requested"):
        assert subjects.event_subject("*", "gateway", False, name) in filters
    assert subjects.event_subject("*", "gateway", False, "session.requested") == streams.CONSUMERS[subjects.VOICE_CONSUMER].filter_subject


async def test_a_session_that_began_before_the_upgrade_is_read_and_followed_over_it(log: Log) -> None:
    sid, seen, some = new_session_id(), Collector(), Collector()
    feeds = [Feed(log, sid, seen), Feed(log, sid, some, types=("user.said", "client.connected"))]
    half = len(A_CALL) // 2
    for number, event in enumerate(A_CALL[:half]):
        await store(log, sid, event, number)
    for feed in feeds:
        await feed.start()
    for number, event in enumerate(A_CALL[half:], half):
        await store(log, sid, event, number, old=False)
    await seen.count(len(A_CALL))
    assert [one.event for one in seen.got] == list(A_CALL)
    assert [one.type for one in seen.got] == [events.kind_of(event).name for event in A_CALL]
    stored = [type_of(message) async for page in log.pages(sid) for message in page.messages]
    assert stored == [one.type for one in seen.got]
    assert [one.type for one in some.got] == ["client.connected", "user.said"]
    assert [one.type async for one in log.read_all(sid, types=("user.said", "session.requested"))] == ["session.requested", "user.said"]
    for feed in feeds:
        await feed.stop()


@pytest.mark.parametrize("old", [True, False])
async def test_a_fence_holds_over_subjects_of_both_releases(log: Log, old: bool) -> None:
    sid = new_session_id()
    first = await store(log, sid, voice.SessionOwned(worker="a", term=1), 0, old=True)
    writer = SessionWriter(log, sid, "voice", end=End(1, first))
    second = await writer.append(voice.UserSaid(text="a", turn=1, source="text"), ts=1, cause=None)
    assert second > first
    await store(log, sid, voice.SessionOwned(worker="b", term=2), 9, last=second, old=old)
    with pytest.raises(Conflict):
        await writer.append(voice.UserSaid(text="b", turn=2, source="text"), ts=2, cause=None)
