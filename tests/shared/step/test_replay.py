"""Replay: the step's results for the recorded inputs are compared completely, and each difference is reported with its cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.recorded_calls import a_call
from tests.replayed import after_crash
from voxbridge.services.voice.core import step as core_step
from voxbridge.sessions.replay import report, run, services
from voxbridge.shared import events
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events import envelope, gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.journal import Taken, VoiceJournal
from voxbridge.shared.step import replay as replaying
from voxbridge.shared.step.fold import Append, fold
from voxbridge.shared.step.journal import LogInput
from voxbridge.shared.step.replay import Difference, Replayed, replay

VOICE = services()["voice"]
Log = list[events.Recorded]


@pytest.fixture(scope="module")
def call() -> Log:
    return a_call()


def with_step(step: Any) -> replaying.Service:
    return msgspec.structs.replace(VOICE, step=step)


def where(log: Log, kind: type[events.Event]) -> int:
    return next(at for at, one in enumerate(log) if isinstance(one.event, kind))


def changed(log: Log, at: int, **changes: Any) -> Log:
    return [*log[:at], msgspec.structs.replace(log[at], **changes), *log[at + 1 :]]


def only(replayed: Replayed) -> Difference:
    (difference,) = replayed.differences
    return difference


def paths(difference: Difference) -> list[str]:
    return [field.path for field in difference.fields]


def test_a_recorded_call_replays_to_what_was_recorded(call: Log) -> None:
    replayed = run(call, "voice")
    assert (replayed.differences, replayed.unfinished) == ([], [])
    assert replayed.events == sum(one.writer == "voice" for one in call)
    assert replayed.state == fold(core_step.step, core_step.initial(call[0].sid), VOICE.inputs, "voice", call).state
    assert run(call, "voice") == replayed


def test_another_text_is_a_difference_with_its_path_and_its_cause(call: Log) -> None:
    def shouts(state: Any, input: Any, now: int) -> tuple[Any, Sequence[Any]]:
        state, outputs = core_step.step(state, input, now)
        return state, [
            Append(msgspec.structs.replace(o.event, text="!")) if isinstance(o, Append) and isinstance(o.event, ev.UserSaid) else o
            for o in outputs
        ]

    differences = replay(with_step(shouts), call).differences
    assert {(one.kind, one.type, *paths(one)) for one in differences} == {("changed", "user.said", "data.text")}
    first = differences[0]
    assert first.input is not None
    assert (first.fields[0].recorded, first.fields[0].replayed) == ("what is the weather like", "!")
    assert first.input.name == "transcribed"
    assert first.seq == call[where(call, ev.UserSaid)].seq


def test_an_event_that_is_no_longer_appended_is_missing_and_the_others_still_fit(call: Log) -> None:
    def silent(state: Any, input: Any, now: int) -> tuple[Any, Sequence[Any]]:
        state, outputs = core_step.step(state, input, now)
        return state, [o for o in outputs if not _is(o, ev.SpeechEnded)]

    differences = replay(with_step(silent), call).differences
    assert {(one.kind, one.type) for one in differences} == {("missing", "speech.ended")}
    assert len(differences) == sum(isinstance(one.event, ev.SpeechEnded) for one in call)
    assert all(one.input is not None and one.input.name == "voice_stopped" for one in differences)


def test_an_event_that_was_not_recorded_is_extra(call: Log) -> None:
    told = ev.ToolDelivered(call_id="x", how="dropped")

    def talkative(state: Any, input: Any, now: int) -> tuple[Any, Sequence[Any]]:
        state, outputs = core_step.step(state, input, now)
        return state, [*outputs, Append(told)] if any(_is(o, ev.SpeechStarted) for o in outputs) else outputs

    differences = replay(with_step(talkative), call).differences
    assert {(one.kind, one.type) for one in differences} == {("extra", "tool.delivered")}


def test_a_step_that_raises_ends_the_replay_and_is_a_difference(call: Log) -> None:
    def falls(state: Any, input: Any, now: int) -> tuple[Any, Sequence[Any]]:
        if isinstance(input, LogInput) and isinstance(input.recorded.event, gateway.SessionEndRequested):
            raise KeyError("reason")
        return core_step.step(state, input, now)

    difference = only(replay(with_step(falls), call))
    assert difference.kind == "raised"
    assert "KeyError" in difference.text
    assert difference.input is not None
    assert difference.input.name == "session.end_requested"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"ts": 1}, "ts"),
        ({"cause": None}, "cause"),
        ({"cause": "voice#3"}, "cause"),
        ({"visible": False}, "visible"),
        ({"id": "0123456789abcdef0123456789abcdef.voice.999"}, "id.number"),
        ({"id": "0123456789abcdef0123456789abcdef.tools.0"}, "id.writer"),
    ],
)
def test_a_stamp_that_differs_is_a_difference(call: Log, change: dict[str, Any], path: str) -> None:
    difference = run(changed(call, where(call, ev.UserSaid), **change), "voice").differences[0]
    assert path in paths(difference)


def test_the_number_one_and_the_number_one_point_nought_differ(call: Log) -> None:
    at = where(call, ev.ToolCalled)
    event = call[at].event
    assert isinstance(event, ev.ToolCalled)
    other: Any = float(event.deadline_ms)
    log = changed(call, at, event=msgspec.structs.replace(event, deadline_ms=other))
    assert paths(only(run(log, "voice"))) == ["data.deadline_ms"]


def test_the_process_in_an_id_is_not_compared_and_nothing_else_is_left_out(call: Log) -> None:
    at = where(call, ev.UserSaid)
    sid, writer, number = call[at].id.split(".")
    assert run(changed(call, at, id=f"{sid}.{writer}.worker-7.{number}"), "voice").differences == []
    assert list(replaying.IGNORED) == [("*", "id.process")]


def test_an_event_must_stand_behind_its_own_journal_entry(call: Log) -> None:
    at = where(call, ev.SpeechStarted)
    entry, following = call[at - 1], call[at + 1 :]
    later = next(one for one in following if isinstance(one.event, VoiceJournal))
    assert isinstance(entry.event, VoiceJournal)
    assert isinstance(later.event, VoiceJournal)
    both = VoiceJournal(first=entry.event.first, inputs=entry.event.inputs + later.event.inputs)
    log = [*call[: at - 1], msgspec.structs.replace(entry, event=both), *[one for one in call[at:] if one is not later]]
    found = [one for one in run(log, "voice").differences if "journal" in paths(one)]
    assert [one.type for one in found] == ["speech.started"]


def test_a_journal_entry_is_stamped_when_its_output_is(call: Log) -> None:
    at = where(call, ev.SpeechStarted) - 1
    assert paths(only(run(changed(call, at, ts=call[at].ts + 1), "voice"))) == ["ts"]


def test_two_events_in_another_order_are_differences(call: Log) -> None:
    at = next(n for n in range(len(call) - 1) if call[n].cause == call[n + 1].cause is not None and call[n].writer == "voice")
    one, two = call[at], call[at + 1]
    swapped = [msgspec.structs.replace(two, seq=one.seq, id=one.id), msgspec.structs.replace(one, seq=two.seq, id=two.id)]
    assert {one.kind for one in run([*call[:at], *swapped, *call[at + 2 :]], "voice").differences} == {"missing", "extra"}


def test_a_log_that_ends_before_the_events_of_its_last_entry_is_unfinished_and_no_more(call: Log) -> None:
    at = where(call, ev.SessionEnded)
    replayed = run(call[:at], "voice")
    assert replayed.differences == []
    assert [one.type for one in replayed.unfinished] == ["session.ended"]


def test_an_event_without_an_input_is_named(call: Log) -> None:
    stray = msgspec.structs.replace(call[where(call, ev.SessionEnded)], seq=1, cause=None)
    found = [one for one in run([stray, *call], "voice").differences if one.text == "stands in the log before any input"]
    assert [(one.kind, one.type) for one in found] == [("log", "session.ended")]


def test_a_log_whose_beginning_has_left_it_cannot_be_replayed(call: Log) -> None:
    at = where(call, ev.UserSaid)
    with pytest.raises(VoxbridgeError, match="its beginning is not there"):
        run(call[at:], "voice")


def test_an_event_that_the_journal_names_and_that_is_not_there_is_said(call: Log) -> None:
    with pytest.raises(VoxbridgeError, match="names position"):
        run([one for one in call if not isinstance(one.event, gateway.SessionRequested)], "voice")


def test_an_input_that_this_release_cannot_read_is_said(call: Log) -> None:
    at = where(call, VoiceJournal)
    strange = Taken(at=1, seq=None, input=msgspec.Raw(msgspec.msgpack.encode({"type": "sung"})))
    with pytest.raises(VoxbridgeError, match="input 0 that cannot be read"):
        run(changed(call, at, event=VoiceJournal(first=0, inputs=(strange,))), "voice")


def test_a_service_that_took_no_part_is_not_found(call: Log) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        run(call, "tools")
    assert caught.value.code == Code.NOT_FOUND


def test_an_event_that_cannot_be_read_and_one_of_a_newer_release_are_named(call: Log) -> None:
    at = where(call, ev.SpeechEnded)
    for event, words in ((events.Unknown(data={}), "newer release"), (events.Unreadable(unreadable="no bytes"), "no bytes")):
        differences = run(changed(call, at, event=event, type="choir.sang"), "voice").differences
        assert any(words in one.text for one in differences)


def test_a_call_that_stands_under_another_id_replays_as_the_one_it_was(call: Log) -> None:
    moved = [msgspec.structs.replace(one, sid="f" * 32) for one in call]
    assert run(moved, "voice").differences == []


@pytest.fixture
def _third_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make today's journals and texts version 3: before it, inputs named the text `words`, and before that `w`."""
    for name in ("voice.journal", "text.received"):
        kind = msgspec.structs.replace(events.KINDS[name], version=3)
        monkeypatch.setitem(events.KINDS, name, kind)
        monkeypatch.setitem(envelope._BY_CLASS, kind.cls, kind)

    def renamed(old: str, new: str) -> Any:
        def upcast(data: dict[str, Any]) -> dict[str, Any]:
            for taken in data.get("inputs", ()):
                if isinstance(taken[2], dict) and old in taken[2]:
                    taken[2][new] = taken[2].pop(old)
            return {new if name == old else name: value for name, value in data.items()}

        return upcast

    for name in ("voice.journal", "text.received"):
        monkeypatch.setitem(envelope._UPCASTERS, (name, 1), renamed("w", "words"))
        monkeypatch.setitem(envelope._UPCASTERS, (name, 2), renamed("words", "text"))


@pytest.mark.usefixtures("_third_version")
def test_old_events_and_old_inputs_are_brought_to_todays_shape_before_they_are_replayed(call: Log) -> None:
    old: Log = []
    for one in call:
        data = msgspec.msgpack.decode(msgspec.msgpack.encode(one.event))
        if one.type in ("voice.journal", "text.received"):
            if "text" in data:
                data["w"] = data.pop("text")
            for taken in data.get("inputs", ()):
                if isinstance(taken[2], dict) and "text" in taken[2]:
                    taken[2]["w"] = taken[2].pop("text")
            raw = msgspec.Raw(msgspec.msgpack.encode(data))
            stored = msgspec.msgpack.encode(
                envelope.Envelope(id=one.id, type=one.type, v=1, sid=one.sid, ts=one.ts, cause=one.cause, data=raw)
            )
            old.append(events.decode(stored, seq=one.seq, writer=one.writer, visible=one.visible))
            assert old[-1].v == 1
        else:
            old.append(one)
    assert run(old, "voice").differences == []


def test_after_a_crash_at_any_event_the_call_goes_on_as_if_there_had_been_none(call: Log) -> None:
    whole = after_crash(VOICE, call, len(call))
    assert [part[0] for part in whole[:-1]] == [one.type for one in call if one.writer == "voice"]
    for at in range(len(call)):
        assert after_crash(VOICE, call, at) == whole, f"after a crash behind event {at}"


def _is(output: Any, kind: type[events.Event]) -> bool:
    return isinstance(output, Append) and isinstance(output.event, kind)


def test_the_report_tells_where_what_and_why(call: Log) -> None:
    at = where(call, ev.UserSaid)
    said = call[at].event
    assert isinstance(said, ev.UserSaid)
    event = msgspec.structs.replace(said, text="what is the whether like")
    text = "\n".join(report(run(changed(call, at, event=event), "voice")))
    for words in (
        "voice: 1 difference",
        f"user.said (position {call[at].seq}, 0:0",
        "data.text",
        'recorded "what is the whether like"',
        'replayed "what is the weather like"',
        "caused by input",
        "transcribed {",
    ):
        assert words in text


def test_the_report_is_bounded_however_much_differs(call: Log) -> None:
    def mute(state: Any, input: Any, now: int) -> tuple[Any, Sequence[Any]]:
        return core_step.step(state, input, now)[0], ()

    replayed = replay(with_step(mute), call)
    lines = list(report(replayed, limit=3))
    assert sum("was recorded, and is not appended now" in line for line in lines) == 3
    assert f"… and {len(replayed.differences) - 3:,} more" in lines[-1]
    assert max(len(line) for line in lines) < 260
