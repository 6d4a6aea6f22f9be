"""The stepper with a toy step: inputs before outputs in the log, and the fold of the log is the live state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.eventually import BOUND_S
from tests.shared.backends import Server, open_log
from voxbridge.shared import events
from voxbridge.shared.errors import Code, Conflict, VoxbridgeError
from voxbridge.shared.events.gateway import TextReceived
from voxbridge.shared.events.journal import Taken, VoiceJournal
from voxbridge.shared.events.voice import SessionOwned, UserSaid
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import End, Policy, SessionWriter
from voxbridge.shared.step.fold import Append, fold
from voxbridge.shared.step.journal import LogInput
from voxbridge.shared.step.runner import INPUT_LIMIT, JOURNAL_BYTES, JOURNAL_LIMIT, StepRunner


class Added(msgspec.Struct, frozen=True, tag="added"):
    number: int


class Told(msgspec.Struct, frozen=True, tag="told"):
    text: str
    again: int = 0


class Broke(msgspec.Struct, frozen=True, tag="broke"):
    pass


Input = Added | Told | Broke


class Toy(msgspec.Struct, frozen=True):
    total: int = 0
    texts: tuple[str, ...] = ()
    last: int = 0


class Speak(msgspec.Struct, frozen=True):
    text: str


def step(state: Toy, input: Any, now: int) -> tuple[Toy, Sequence[Any]]:
    match input:
        case Added(number):
            total = state.total + number
            outputs: list[Any] = [Append(UserSaid(text=str(total), turn=total, source="text"))] if number % 3 == 0 else []
            return msgspec.structs.replace(state, total=total, last=now), outputs
        case Told(text, again):
            outputs = [Speak(text), *(Append(UserSaid(text=text, turn=n, source="text")) for n in range(again))]
            return msgspec.structs.replace(state, texts=(*state.texts, text), last=now), outputs
        case LogInput(recorded):
            text = getattr(recorded.event, "text", "")
            return msgspec.structs.replace(state, texts=(*state.texts, text), last=now), [
                Append(UserSaid(text=text, turn=0, source="text"))
            ]
        case _:
            raise ZeroDivisionError


class Ticking:
    """A clock that advances by one at each reading."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def now_us(self) -> int:
        self.now += 1
        return self.now


def stepper(log: Log, sid: str, perform: Callable[[Any], None] = lambda _: None) -> StepRunner[Toy, Any, Any]:
    return StepRunner(step, Toy(), writer=SessionWriter(log, sid, "voice"), clock=Ticking(), perform=perform)


async def whole(log: Log, sid: str) -> list[events.Recorded]:
    return [recorded async for recorded in log.read_all(sid)]


def assert_inputs_come_first(log: Sequence[events.Recorded]) -> None:
    """Check that every event of the voice writer comes after the journal with its cause."""
    journalled: set[int | str] = set()
    count = 0
    seen: set[int] = set()
    for recorded in log:
        if isinstance(recorded.event, VoiceJournal):
            assert recorded.event.first == count
            for taken in recorded.event.inputs:
                if taken.seq is not None:
                    assert taken.seq in seen, "an input is journalled after its own event"
                journalled.add(f"voice#{count}" if taken.seq is None else taken.seq)
                count += 1
        elif recorded.writer == "voice":
            assert recorded.cause in journalled, f"{recorded.id} is ahead of its cause"
        seen.add(recorded.seq)


@settings(max_examples=40, deadline=None)
@given(
    inputs=st.lists(
        st.one_of(
            st.builds(Added, st.integers(-5, 5)),
            st.builds(Told, st.text(max_size=5), st.integers(0, 3)),
            st.lists(st.one_of(st.builds(Added, st.integers(-5, 5)), st.builds(Told, st.text(max_size=5), st.integers(0, 3))), max_size=4),
            st.sampled_from(["event", "flush"]),
        ),
        max_size=30,
    )
)
def test_the_fold_is_the_live_state_at_every_prefix_that_ends_in_a_journal(bus_url: str, inputs: list[Any]) -> None:
    async def check() -> None:
        async with open_log(bus_url) as log:
            sid = new_session_id()
            gateway = SessionWriter(log, sid, "gateway", stem="c", fenced=False)
            live = stepper(log, sid)
            states = [live.state]
            for input in inputs:
                if input == "flush":
                    await live.close()
                elif input == "event":
                    await gateway.append(TextReceived(text="typed"), ts=0, cause=None)
                    live.take(LogInput((await log.read(sid, after=gateway.last_seq - 1, writer="gateway"))[0]))
                    states.append(live.state)
                elif isinstance(input, list):
                    with live.together():
                        for one in input:
                            live.take(one)
                            states.append(live.state)
                else:
                    live.take(input)
                    states.append(live.state)
            await live.close()
            stored = await whole(log, sid)
            assert_inputs_come_first(stored)
            for end, recorded in enumerate(stored, 1):
                if isinstance(recorded.event, VoiceJournal):
                    folded = fold(step, Toy(), Input, "voice", stored[:end])
                    assert folded.state == states[folded.taken]
            folded = fold(step, Toy(), Input, "voice", stored)
            assert folded.state == live.state
            own = [r for r in stored if r.writer == "voice"]
            assert (folded.taken, folded.number, folded.last_seq) == (live.taken, len(own), own[-1].seq if own else 0)

    asyncio.run(check())


async def test_a_successor_goes_on_from_the_fold_and_the_old_one_is_stopped_by_the_log(log: Log) -> None:
    sid = new_session_id()
    told: list[VoxbridgeError] = []
    writer = SessionWriter(log, sid, "voice", policy=Policy(on_failed=told.append))
    old = StepRunner(step, Toy(), writer=writer, clock=Ticking(), perform=lambda _: None)
    old.take(Added(3))
    await old.close()
    folded = fold(step, Toy(), Input, "voice", await whole(log, sid))
    successor = SessionWriter(log, sid, "voice", end=End(folded.number, folded.last_seq))
    new = StepRunner(step, folded.state, writer=successor, clock=Ticking(), perform=lambda _: None, taken=folded.taken)
    await successor.append(SessionOwned(worker="new", term=2), ts=9, cause=None)
    new.take(Added(6))
    await new.close()
    old.take(Added(9))
    with pytest.raises(Conflict):
        await old.close()
    with pytest.raises(Conflict):
        old.take(Added(1))
    assert [type(error) for error in told] == [Conflict]
    stored = await whole(log, sid)
    assert fold(step, Toy(), Input, "voice", stored).state == new.state
    assert new.state.total == 9
    assert [r.event.text for r in stored if isinstance(r.event, UserSaid)] == ["3", "9"]


async def test_inputs_without_an_output_are_journalled_within_the_interval(log: Log) -> None:
    sid = new_session_id()
    live = stepper(log, sid)
    live.take(Added(1))
    live.take(Added(2))
    async with asyncio.timeout(BOUND_S):
        while not (stored := await log.read(sid)):
            pass
    assert [type(r.event) for r in stored] == [VoiceJournal]
    assert fold(step, Toy(), Input, "voice", stored).state == live.state


async def test_inputs_that_are_taken_together_share_an_entry_and_keep_their_times_and_causes(log: Log) -> None:
    sid = new_session_id()
    live = stepper(log, sid)
    live.take(Added(1))
    with live.together():
        live.take(Told("a", 2))
        live.take(Added(1))
        live.take(Told("b", 1))
    with live.together():
        live.take(Told("c", 1))
    await live.close()
    stored = await whole(log, sid)
    assert_inputs_come_first(stored)
    entries = [one.event for one in stored if isinstance(one.event, VoiceJournal)]
    assert [(len(entry.inputs), entry.together) for entry in entries] == [(4, True), (1, False)]
    said = [(one.event.text, one.ts, one.cause) for one in stored if isinstance(one.event, UserSaid)]
    times = [taken.at for entry in entries for taken in entry.inputs]
    assert said == [("a", times[1], "voice#1"), ("a", times[1], "voice#1"), ("b", times[3], "voice#3"), ("c", times[4], "voice#4")]


async def test_of_inputs_that_are_taken_together_nothing_is_written_when_one_fails(log: Log) -> None:
    sid = new_session_id()
    live = stepper(log, sid)

    def take() -> None:
        with live.together():
            live.take(Told("a", 1))
            live.take(Broke())

    with pytest.raises(ZeroDivisionError):
        take()
    assert await whole(log, sid) == []


async def test_more_inputs_than_an_entry_holds_are_two_entries_with_their_events(log: Log) -> None:
    sid = new_session_id()
    live = stepper(log, sid)
    with live.together():
        for number in range(JOURNAL_LIMIT + 10):
            live.take(Told(str(number), 1 if number in (1, JOURNAL_LIMIT + 1) else 0))
    await live.close()
    stored = await whole(log, sid)
    assert_inputs_come_first(stored)
    assert [one.event.text for one in stored if isinstance(one.event, UserSaid)] == ["1", str(JOURNAL_LIMIT + 1)]
    assert fold(step, Toy(), Input, "voice", stored).state == live.state


async def test_a_full_journal_is_written_at_once(log: Log) -> None:
    sid = new_session_id()
    live = stepper(log, sid)
    for _ in range(JOURNAL_LIMIT + 1):
        live.take(Added(1))
    await live.close()
    sizes = [len(r.event.inputs) for r in await whole(log, sid) if isinstance(r.event, VoiceJournal)]
    assert sizes == [JOURNAL_LIMIT, 1]


async def test_a_journal_is_written_when_its_bytes_are_many_and_an_input_over_the_limit_is_not_taken(log: Log) -> None:
    sid = new_session_id()
    live = stepper(log, sid)
    half = "x" * (JOURNAL_BYTES // 2)
    for _ in range(3):
        live.take(Told(half))
    at_limit = Told("y" * (INPUT_LIMIT - len(msgspec.msgpack.encode(Told("y" * 70_000))) + 70_000))
    live.take(at_limit)
    before = live.state
    with pytest.raises(VoxbridgeError) as caught:
        live.take(Told(at_limit.text + "y"))
    assert (caught.value.code, caught.value.limit) == (Code.TOO_LARGE, INPUT_LIMIT)
    assert live.state is before
    live.take(Added(1))
    await live.close()
    stored = await whole(log, sid)
    assert [len(r.event.inputs) for r in stored if isinstance(r.event, VoiceJournal)] == [2, 2, 1]
    assert fold(step, Toy(), Input, "voice", stored).state == live.state


async def test_an_input_at_which_the_step_raises_was_not_taken(log: Log) -> None:
    sid = new_session_id()
    live = stepper(log, sid)
    live.take(Added(1))
    with pytest.raises(ZeroDivisionError):
        live.take(Broke())
    live.take(Added(3))
    await live.close()
    assert fold(step, Toy(), Input, "voice", await whole(log, sid)).state == live.state
    assert live.taken == 2


async def test_an_output_too_large_for_the_log_stops_the_writer(log: Log) -> None:
    live = stepper(log, new_session_id())
    live.take(Told("x" * (INPUT_LIMIT - 100)))

    def grow(state: Toy, input: Any, now: int) -> tuple[Toy, Sequence[Any]]:
        return state, [Append(UserSaid(text="x" * 2_000_000, turn=0, source="text"))]

    told: list[VoxbridgeError] = []
    writer = SessionWriter(log, new_session_id(), "voice", policy=Policy(on_failed=told.append))
    grown = StepRunner(grow, Toy(), writer=writer, clock=Ticking(), perform=lambda _: None)
    with pytest.raises(VoxbridgeError, match="at most"):
        grown.take(Added(1))
    assert writer.failed is told[0]
    assert told[0].code is Code.TOO_LARGE
    with pytest.raises(VoxbridgeError, match="at most"):
        grown.take(Added(2))
    await live.close()


async def test_an_input_given_while_another_is_taken_comes_after_it(log: Log) -> None:
    sid = new_session_id()
    spoken: list[str] = []

    def perform(output: Any) -> None:
        spoken.append(output.text)
        if output.text == "a":
            live.take(Told("b", again=1))

    live = stepper(log, sid, perform)
    live.take(Told("a", again=1))
    await live.close()
    stored = await whole(log, sid)
    assert spoken == ["a", "b"]
    assert [(r.event.text, r.cause) for r in stored if isinstance(r.event, UserSaid)] == [("a", "voice#0"), ("b", "voice#1")]
    assert_inputs_come_first(stored)


async def test_a_log_without_an_event_that_the_journal_names_is_not_folded(log: Log) -> None:
    sid = new_session_id()
    await SessionWriter(log, sid, "gateway", stem="c", fenced=False).append(TextReceived(text="t"), ts=0, cause=None)
    live = stepper(log, sid)
    live.take(LogInput((await log.read(sid))[0]))
    await live.close()
    stored = await whole(log, sid)
    with pytest.raises(VoxbridgeError, match=f"names position {stored[0].seq}, which is not there"):
        fold(step, Toy(), Input, "voice", stored[1:])


async def test_whoever_watches_a_fold_sees_each_input_with_what_came_of_it_and_when(log: Log) -> None:
    sid = new_session_id()
    live = stepper(log, sid)
    live.take(Told("a"))
    live.take(Added(3))
    await live.close()
    seen: list[tuple[Any, list[Any], int]] = []
    fold(step, Toy(), Input, "voice", await whole(log, sid), watch=lambda input, outputs, at: seen.append((input, list(outputs), at)))
    assert [input for input, _, _ in seen] == [Told("a"), Added(3)]
    assert [outputs for _, outputs, _ in seen] == [[Speak("a")], [Append(UserSaid(text="3", turn=3, source="text"))]]
    assert [at for _, _, at in seen] == [1_000_001, 1_000_002]


async def test_inputs_are_ahead_of_their_outputs_in_the_log_over_a_kill_of_the_server(own_server: Callable[[str], Server]) -> None:
    server = own_server("nats")
    async with open_log(server.url) as log:
        sid = new_session_id()
        live = stepper(log, sid)
        for number in range(400):
            live.take(Added(number))
            if number == 200:
                server.kill()
                server.start()
            if number % 20 == 0:
                await asyncio.sleep(0)
        await asyncio.wait_for(live.close(), BOUND_S)
        stored = await whole(log, sid)
        assert_inputs_come_first(stored)
        assert fold(step, Toy(), Input, "voice", stored).state == live.state


def test_a_fold_refuses_a_journal_that_cannot_be_read_and_goes_on_over_anything_else() -> None:
    def recorded(seq: int, event: events.Event, type: str) -> events.Recorded:
        return events.Recorded(
            seq=seq, id=f"x{seq}", sid="s", ts=seq, cause=None, writer="voice", visible=False, type=type, v=1, event=event
        )

    gone = events.Unreadable(unreadable="The event at log position 2 cannot be read.")
    folded = fold(
        step, Toy(), Input, "voice", [recorded(1, SessionOwned(worker="w", term=1), "session.owned"), recorded(2, gone, "user.said")]
    )
    assert (folded.number, folded.last_seq) == (2, 2)
    with pytest.raises(VoxbridgeError, match="position 2 cannot be read") as caught:
        fold(step, Toy(), Input, "voice", [recorded(2, gone, "voice.journal")])
    assert not caught.value.retryable
    odd = VoiceJournal(first=0, inputs=(Taken(at=1, seq=None, input=msgspec.Raw(msgspec.msgpack.encode({"type": "unheard of"}))),))
    with pytest.raises(VoxbridgeError, match="journal of voice at position 3 has an input 0 that cannot be read"):
        fold(step, Toy(), Input, "voice", [recorded(3, odd, "voice.journal")])
    no_text = VoiceJournal(first=7, inputs=(Taken(at=1, seq=None, input=msgspec.Raw(b"\x81\xa4type\xa1\xff")),))
    with pytest.raises(VoxbridgeError, match="has an input 7 that cannot be read"):
        fold(step, Toy(), Input, "voice", [recorded(3, no_text, "voice.journal")])
