"""The rules of resuming a session, tested on the pure parts: no socket, no bus, no clock."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway.core.driver import SID, START, Driven, appended, called, error_of, fresh, live, recorded, requested, say
from tests.gateway.core.test_step import CODES, JSON
from voxbridge.services.gateway.core import messages, resume_rules
from voxbridge.services.gateway.core.browser_calls import CLOSED_LIMIT, OPEN_LIMIT, Calls, fold
from voxbridge.services.gateway.core.client import WAITING_LIMIT
from voxbridge.services.gateway.core.inputs import BinaryMessage, CallsKnown, Disconnected, Failed, ResumeRefused, TakenOver
from voxbridge.services.gateway.core.outputs import Append, Attach, Close, Open, Output, Resume, Send
from voxbridge.services.gateway.core.session import START_TIMEOUT_MS
from voxbridge.services.gateway.core.state import Ending, Fresh, Live, Requested
from voxbridge.services.gateway.door import tokens
from voxbridge.shared import events
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import moments
from voxbridge.shared.errors import Unavailable, VoxbridgeError

TOKEN = "t" * 43
RESUME = {"type": "resume", "sessionId": SID, "resumeToken": TOKEN, "last_seq": 20}
v, t, g = events.voice, events.tools, events.gateway


ANSWER = {"type": "resumed", "sessionId": SID, "mode": "local", "to": 30, "state": "listening"} | {
    "agent": "", "agents": [], "pipeline": "", "voice": "", "model": ""
}  # fmt: skip
BEGUN = v.SessionStarted(mode="local", model="m", voice="v", output="audio", agent="triage", agents=("triage", "advisor"), pipeline="p")
HANDED = v.HandoffCompleted(source="triage", target="advisor", voice="joe", model="n", ms=3, history="log")
LOST = v.ProviderLost(provider="gemini", model="m", close_code=1006, error=v.Failure(code="UNAVAILABLE", message="Gone."))
CONNECTED = v.ProviderConnected(provider="gemini", model="m", agent="", resumed_by="handle")


def known(*, top: int = 30, begins: int = 0, started: bool = True, state: moments.State = "listening") -> resume_rules.Known:
    return resume_rules.Known(mode="local", top=top, begins=begins, started=started, turns=2, state=state)


def resuming() -> Driven:
    connection = fresh()
    assert say(connection, RESUME) == [Resume(SID, TOKEN, 20)]
    return connection


def resumed(*, snapshot: dict[str, Any] | None = None, found: resume_rules.Known | None = None) -> tuple[Driven, list[Output]]:
    connection = resuming()
    return connection, list(connection.resumed(found or known(), snapshot, 0))


def user(seq: int, turn: int = 1) -> events.Recorded:
    return recorded(v.UserSaid(text=f"u{seq}", turn=turn, source="text"), seq)


def agent(seq: int, turn: int = 1) -> events.Recorded:
    return recorded(v.AgentSaid(text=f"a{seq}", turn=turn, generation=turn), seq)


STARTED = recorded(v.SessionStarted(mode="local", model="m", voice="v", output="audio"), 2)


def test_a_resume_is_answered_with_the_positions_between_which_events_were_missed_and_the_socket_is_attached() -> None:
    connection, outputs = resumed()
    assert outputs == [
        Send({**ANSWER, "recovered": True, "from": 20}),
        Attach(g.ClientConnected(gateway="g", connection="g-1", resumed=True, last_seq=20)),
    ]
    assert (connection.phase, connection.last_seq) == (Live(), 20)
    assert connection.state.takes_audio
    assert connection.read(user(20)) == ()
    assert len(connection.read(user(21))) == 1


def test_whether_the_audio_is_kept_is_known_from_the_log_and_told() -> None:
    for kept in (True, False):
        began = recorded(v.SessionStarted(mode="local", model="m", voice="v", output="audio", recorded=kept), 2)
        found = resume_rules.known([began, user(3)], mode="local", begins=0, owned=True)
        assert found is not None
        _, outputs = resumed(found=found)
        assert isinstance(outputs[0], Send)
        assert outputs[0].message.get("recorded", False) is kept


def test_a_snapshot_stands_in_for_everything_up_to_the_top() -> None:
    snapshot = {"transcript": [], "turns": 2}
    connection, outputs = resumed(snapshot=snapshot)
    assert outputs[0] == Send({**ANSWER, "recovered": False, "snapshot": snapshot})
    assert connection.last_seq == 30
    assert connection.read(user(30)) == ()
    assert len(connection.read(user(31))) == 1


def test_a_refusal_says_nothing_of_its_reason_and_closes_with_4004() -> None:
    outputs = list(resuming().take(ResumeRefused(0)))
    message = "There is no session to resume with this id and token."
    assert outputs == [Send({"type": "error", "code": "NOT_FOUND", "message": message, "retryable": False}), Close(4004, "no such session")]


def test_a_log_that_does_not_answer_closes_with_1013_and_ends_no_session() -> None:
    assert [type(one) for one in resuming().take(Failed(Unavailable("away")))] == [Send, Close]
    connection = resuming()
    assert connection.tick(START_TIMEOUT_MS - 1, owned=None) == ()
    outputs = list(connection.tick(START_TIMEOUT_MS, owned=None))
    assert outputs[-1] == Close(1013, "the gateway cannot go on with this session")
    assert appended(outputs) == []


def test_a_second_client_takes_the_session_over_and_the_first_writes_nothing_of_its_end() -> None:
    connection = live()
    outputs = list(connection.take(TakenOver()))
    assert isinstance(outputs[0], Send)
    assert outputs[0].message["code"] == "CONFLICT"
    assert outputs[1:] == [Close(4010, "taken over")]
    assert connection.take(Disconnected("gone")) == ()
    assert connection.take(TakenOver()) == ()


@pytest.mark.parametrize("make", [requested, live])
def test_resume_is_a_first_message(make: Any) -> None:
    assert error_of(say(make(), RESUME))["code"] == "CONFLICT"
    assert error_of(say(resuming(), RESUME))["code"] == "CONFLICT"
    assert error_of(say(resuming(), START))["code"] == "CONFLICT"


def test_plain_vox_has_no_resume() -> None:
    connection = fresh(v1=False)
    assert "voxbridge.v1" in error_of(say(connection, RESUME))["message"]
    assert isinstance(say(connection, START)[0], Open)


def test_what_is_said_before_the_answer_follows_it_in_order_and_audio_of_that_time_is_dropped() -> None:
    connection = resuming()
    assert not connection.state.takes_audio
    assert connection.take(BinaryMessage(frames.pack(frames.PCM16, 0, 0, 0, b"ab"), 0)) == ()
    assert say(connection, {"type": "text", "text": "one"}) == []
    assert say(connection, {"type": "end"}) == []
    outputs = list(connection.resumed(known(), None, 0))
    assert [type(one) for one in outputs] == [Send, Attach, Append, Append]
    assert isinstance(connection.phase, Ending)


def test_only_so_much_waits_for_the_answer() -> None:
    connection = resuming()
    for _ in range(WAITING_LIMIT):
        assert say(connection, {"type": "text", "text": "hi"}) == []
    assert error_of(say(connection, {"type": "text", "text": "hi"}))["limit"] == WAITING_LIMIT


def test_a_client_that_left_meanwhile_is_not_attached() -> None:
    connection = resuming()
    assert connection.take(Disconnected("gone")) == ()
    assert connection.resumed(known(), None, 0) == ()
    assert connection.take(ResumeRefused(0)) == ()


def test_nothing_is_told_before_the_answer_which_has_the_newest_state() -> None:
    connection = resuming()
    assert connection.hear(moments.StateChanged(state="user_speaking")) == ()
    assert not connection.state.attached
    answer = connection.resumed(known(state="restoring"), None, 0)[0]
    assert isinstance(answer, Send)
    assert answer.message["state"] == "user_speaking"


def test_a_resumed_session_that_has_not_started_starts_later_or_is_given_up() -> None:
    connection, _ = resumed(found=known(started=False, state="connecting"))
    assert isinstance(connection.phase, Requested)
    assert isinstance(connection.tick(START_TIMEOUT_MS, owned=None)[-1], Close)
    connection, _ = resumed(found=known(started=False, state="connecting"))
    (told,) = connection.read(recorded(STARTED.event, 40))
    assert isinstance(told, Send)
    assert told.message["resumeToken"] == TOKEN
    assert isinstance(connection.phase, Live)


def test_a_restoring_session_is_said_to_be_so_once_and_then_what_the_worker_says() -> None:
    connection, _ = resumed(found=known(state="restoring"))
    assert connection.tick(0, owned=False) == ()
    assert connection.tick(1_000, owned=False) == ()
    assert connection.hear(moments.StateChanged(state="listening")) == (Send({"type": "state", "state": "listening"}),)


def answering(call_id: str) -> dict[str, Any]:
    return {"type": "browser_function_result", "name": "open_page", "result": {}, "fn_call_id": call_id}


def test_an_answer_waits_until_the_past_is_known_and_is_then_taken_once() -> None:
    connection = resuming()
    assert say(connection, answering("c2")) == []
    connection.resumed(known(), None, 0)
    assert say(connection, answering("c9")) == []
    outputs = list(connection.take(CallsKnown(fold([called("c1", seq=18), called("c2", seq=19)]), 0)))
    assert outputs[0] == Append(g.BrowserCallAnswered(call_id="c2", name="open_page", result={}))
    assert error_of(outputs[1:])["code"] == "NOT_FOUND"
    assert error_of(say(connection, answering("c2")))["code"] == "NOT_FOUND"
    assert appended(say(connection, answering("c1")))


def test_what_is_heard_of_calls_while_the_past_is_read_is_newer_than_the_past() -> None:
    connection, _ = resumed()
    connection.read(recorded(v.ToolCancelled(call_id="c1", name="open_page", reason="r"), 31))
    connection.read(called("c3", seq=32))
    connection.read(called("c4", seq=33))
    connection.read(recorded(v.ToolCancelled(call_id="c4", name="open_page", reason="r"), 34))
    connection.take(CallsKnown(fold([called("c1", seq=18), called("c2", seq=19), called("c3", seq=32), called("c4", seq=33)]), 0))
    taken = [call_id for call_id in ("c1", "c2", "c3", "c4") if appended(say(connection, answering(call_id)))]
    assert taken == ["c2", "c3"]


def test_only_so_many_answers_wait_and_only_so_many_ends_are_remembered() -> None:
    connection, _ = resumed()
    for _ in range(WAITING_LIMIT):
        assert say(connection, answering("c1")) == []
    assert error_of(say(connection, answering("c1")))["limit"] == WAITING_LIMIT
    calls = Calls(closed={})
    for number in range(CLOSED_LIMIT + 1):
        calls = calls.take(v.ToolCancelled(call_id=f"c{number}", name="open_page", reason="r"))
    calls = calls.completed(fold([called("c0", seq=1), called("c1", seq=2)]))
    assert calls.answered("open_page", None) == ("c0", Calls())


def test_the_open_calls_of_past_and_present_are_so_many_together() -> None:
    calls = Calls(closed={}).take(called("new").event)
    calls = calls.completed(fold([called(f"c{number}", seq=number) for number in range(OPEN_LIMIT)]))
    with pytest.raises(VoxbridgeError, match="open"):
        calls.answered("open_page", "c0")
    answered, calls = calls.answered("open_page", None)
    assert answered == "c1"
    assert calls.answered("open_page", "new")[0] == "new"


def test_calls_are_folded_in_log_order_whatever_order_they_were_read_in() -> None:
    answered = recorded(g.BrowserCallAnswered(call_id="c1", name="open_page", result={}), 25)
    done = recorded(t.ToolCompleted(call_id="c2", name="open_page", result={}, ms=1), 24)
    calls = fold([answered, done, called("c3", seq=23), called("c1", seq=20), called("c2", seq=21), called("s", kind="server", seq=22)])
    assert calls.answered("open_page", None) == ("c3", Calls())


REQUESTED = recorded(g.SessionRequested(mode="local"), 1)


@pytest.mark.parametrize(
    ("last", "owned", "state"),
    [
        ([REQUESTED], None, "connecting"),
        ([REQUESTED, STARTED], True, "listening"),
        ([REQUESTED, STARTED], None, "listening"),
        ([REQUESTED, STARTED], False, "restoring"),
        ([STARTED, user(5)], True, "thinking"),
        ([STARTED, user(5), agent(6)], True, "listening"),
        ([STARTED, user(5), called(kind="server", seq=7)], True, "calling_tool"),
        ([STARTED, user(5), called(seq=7), recorded(v.ToolCancelled(call_id="c1", name="n", reason="r"), 8)], True, "thinking"),
        ([STARTED, user(5), called(seq=7), recorded(v.TurnCompleted(number=1, reason="completed"), 9)], True, "listening"),
        ([STARTED, recorded(CONNECTED, 5), recorded(LOST, 6)], True, "restoring"),
        ([STARTED, recorded(LOST, 5), recorded(CONNECTED, 6)], True, "listening"),
        ([STARTED, recorded(LOST, 5), recorded(HANDED, 6)], True, "listening"),
        ([STARTED, recorded(LOST, 5), recorded(v.ProviderFailed(part="llm", error=LOST.error, turn=1), 6)], True, "listening"),
        ([STARTED, recorded(LOST, 5), recorded(v.ProviderFailed(part="stt", error=LOST.error, turn=1), 6)], True, "restoring"),
    ],
)
def test_the_state_is_what_the_last_facts_tell(last: list[events.Recorded], owned: bool | None, state: str) -> None:
    found = resume_rules.known(last, mode="local", begins=0, owned=owned)
    assert found is not None
    assert found.state == state
    assert found.top == max((one.seq for one in last if one.visible), default=0)


@pytest.mark.parametrize(
    ("last", "speaker"),
    [
        ([STARTED], resume_rules.Speaker(voice="v", model="m")),
        ([recorded(BEGUN, 2)], resume_rules.Speaker(agent="triage", agents=("triage", "advisor"), pipeline="p", voice="v", model="m")),
        (
            [recorded(BEGUN, 2), recorded(HANDED, 9)],
            resume_rules.Speaker(agent="advisor", agents=("triage", "advisor"), pipeline="p", voice="joe", model="n"),
        ),
        (
            [recorded(v.AgentSaid(text="a", turn=1, generation=1, agent="closer", voice="amy"), 9)],
            resume_rules.Speaker(agent="closer", voice="amy"),
        ),
        ([recorded(HANDED, 9)], resume_rules.Speaker(agent="advisor", voice="joe", model="n")),
        ([user(9)], resume_rules.Speaker()),
    ],
)
def test_who_speaks_is_who_was_handed_the_conversation_last(last: list[events.Recorded], speaker: resume_rules.Speaker) -> None:
    found = resume_rules.known(last, mode="local", begins=0, owned=True)
    assert found is not None
    assert found.speaker == speaker


def test_a_snapshot_says_who_spoke_with_which_voice() -> None:
    said = recorded(v.AgentSaid(text="a", turn=1, generation=1, agent="triage", voice="Puck"), 8)
    (entry,) = resume_rules.snapshot([said], known())["transcript"]
    assert (entry["agent"], entry["voice"]) == ("triage", "Puck")
    assert not {"agent", "voice"} & set(resume_rules.snapshot([agent(8)], known())["transcript"][0])


def test_a_session_without_its_model_is_resumed_as_restoring_and_what_is_replayed_changes_no_state() -> None:
    found = resume_rules.known([STARTED, recorded(LOST, 30)], mode="local", begins=0, owned=True)
    assert found is not None
    connection, outputs = resumed(found=found)
    assert isinstance(outputs[0], Send)
    assert outputs[0].message["state"] == "restoring"
    for event in (recorded(CONNECTED, 25), recorded(LOST, 30)):
        assert [one.message["type"] for one in connection.read(event) if isinstance(one, Send)] == ["provider"]
    assert connection.tick(1_000, owned=True) == ()
    told = connection.read(recorded(CONNECTED, 31))
    assert [one.message["type"] for one in told if isinstance(one, Send)] == ["provider", "state"]
    assert told[-1] == Send({"type": "state", "state": "listening"})


def test_an_ended_session_is_not_known_and_turns_are_those_completed() -> None:
    assert resume_rules.known([STARTED, recorded(v.SessionEnded(reason="idle"), 9)], mode="local", begins=0, owned=None) is None
    turn = recorded(v.TurnCompleted(number=7, reason="completed"), 9)
    found = resume_rules.known([turn], mode="local", begins=4, owned=True)
    assert found is not None
    assert (found.turns, found.started, found.begins) == (7, True, 4)


@pytest.mark.parametrize(
    ("last_seq", "begins", "recovers"),
    [(0, 0, True), (20, 0, True), (30, 0, True), (31, 0, False), (0, 12, False), (11, 12, False), (12, 12, True), (30, 12, True)],
)
def test_all_that_was_missed_is_told_or_nothing_of_it(last_seq: int, begins: int, recovers: bool) -> None:
    assert resume_rules.recovers(known(begins=begins), last_seq) is recovers


def test_a_snapshot_holds_what_was_said_up_to_the_top() -> None:
    made = resume_rules.snapshot([STARTED, user(5), agent(6), user(31)], known())
    assert [entry["seq"] for entry in made["transcript"]] == [5, 6]
    assert made["turns"] == 2
    assert "truncated" not in made
    assert resume_rules.snapshot([agent(6)], known(begins=6))["truncated"] is True


def test_what_was_said_in_a_turn_that_went_on_is_one_entry_of_a_snapshot_and_counts_as_long_as_it_is() -> None:
    parts = [recorded(v.UserSaid(text="x" * 60_000, turn=1, source="speech", continues=seq > 1), seq) for seq in range(1, 5)]
    (entry,) = resume_rules.snapshot(parts, known())["transcript"]
    assert (entry["seq"], len(entry["text"])) == (1, 4 * 60_000 + 3)
    assert "continues" not in entry
    more = recorded(v.UserSaid(text="y" * 60_000, turn=2, source="speech"), 5)
    cut = resume_rules.snapshot([*parts, more], known())
    assert ([one["seq"] for one in cut["transcript"]], cut["truncated"]) == ([5], True)


def test_a_snapshot_keeps_the_newest_entries_within_both_limits() -> None:
    full = resume_rules.snapshot([user(seq) for seq in range(1, resume_rules.SNAPSHOT_ENTRIES + 1)], known(top=5_000))
    assert (len(full["transcript"]), "truncated" in full) == (resume_rules.SNAPSHOT_ENTRIES, False)
    over = resume_rules.snapshot([user(seq) for seq in range(1, resume_rules.SNAPSHOT_ENTRIES + 2)], known(top=5_000))
    assert (over["transcript"][0]["seq"], len(over["transcript"]), over["truncated"]) == (2, resume_rules.SNAPSHOT_ENTRIES, True)
    long = [recorded(v.UserSaid(text="x" * 60_000, turn=1, source="text"), seq) for seq in range(1, 9)]
    cut = resume_rules.snapshot(long, known(top=5_000))
    assert len(json.dumps(cut)) <= resume_rules.SNAPSHOT_BYTES + 1_000
    assert [entry["seq"] for entry in cut["transcript"]] == [5, 6, 7, 8]


def test_a_token_fits_its_own_hash_and_nothing_fits_an_empty_one() -> None:
    one, other = tokens.new_token(), tokens.new_token()
    assert len(one) == 43
    assert one != other
    assert tokens.fits(one, tokens.hash_of(one))
    assert not tokens.fits(other, tokens.hash_of(one))
    assert not tokens.fits("", "")
    assert not tokens.fits(one, "")
    assert not tokens.fits("\ud800", tokens.hash_of(one))


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"sessionId": None}, "INVALID_MESSAGE", "sessionId"),
        ({"sessionId": ""}, "INVALID_ARGUMENT", "sessionId"),
        ({"sessionId": "*" * 32}, "INVALID_ARGUMENT", "sessionId"),
        ({"sessionId": SID.upper().replace("0", "A")}, "INVALID_ARGUMENT", "sessionId"),
        ({"sessionId": SID + "\n"}, "INVALID_ARGUMENT", "sessionId"),
        ({"resumeToken": ""}, "INVALID_ARGUMENT", "resumeToken"),
        ({"resumeToken": "x" * (messages.NAME_LIMIT + 1)}, "INVALID_ARGUMENT", "resumeToken"),
        ({"resumeToken": 7}, "INVALID_MESSAGE", "resumeToken"),
        ({"last_seq": -1}, "INVALID_ARGUMENT", "last_seq"),
        ({"last_seq": messages.POSITION_LIMIT + 1}, "INVALID_ARGUMENT", "last_seq"),
        ({"last_seq": 2**70}, "INVALID_ARGUMENT", "last_seq"),
        ({"last_seq": "20"}, "INVALID_MESSAGE", "last_seq"),
        ({"last_seq": 1.5}, "INVALID_MESSAGE", "last_seq"),
        ({"last_seq": True}, "INVALID_MESSAGE", "last_seq"),
    ],
)
def test_a_malformed_resume_names_the_field_and_may_be_said_again(change: dict[str, Any], code: str, field: str) -> None:
    connection = fresh()
    error = error_of(say(connection, {**RESUME, **change}))
    assert (error["code"], error["field"]) == (code, field)
    assert isinstance(connection.phase, Fresh)
    assert say(connection, RESUME) == [Resume(SID, TOKEN, 20)]


@pytest.mark.parametrize("missing", ["sessionId", "resumeToken", "last_seq"])
def test_a_resume_needs_all_its_fields(missing: str) -> None:
    error = error_of(say(fresh(), {name: value for name, value in RESUME.items() if name != missing}))
    assert (error["code"], error["field"]) == ("INVALID_MESSAGE", missing)


def test_the_largest_position_is_taken() -> None:
    assert say(fresh(), {**RESUME, "last_seq": messages.POSITION_LIMIT}) == [Resume(SID, TOKEN, messages.POSITION_LIMIT)]


RESUMES = st.fixed_dictionaries(
    {"type": st.just("resume")},
    optional={
        "sessionId": JSON | st.just(SID) | st.text("0123456789abcdef", min_size=30, max_size=33),
        "resumeToken": JSON | st.just(TOKEN),
        "last_seq": JSON | st.integers(),
        "more": JSON,
    },
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # generating the first text of a fresh checkout is slow
@given(RESUMES)
def test_whatever_a_resume_holds_it_is_looked_for_or_answered_with_a_typed_error(message: dict[str, Any]) -> None:
    connection = fresh()
    (output,) = say(connection, message)
    if isinstance(output, Resume):
        assert messages.SESSION_ID.fullmatch(output.sid)
        assert 0 < len(output.token) <= messages.NAME_LIMIT
        assert 0 <= output.last_seq <= messages.POSITION_LIMIT
    else:
        assert isinstance(output, Send)
        assert output.message["code"] in CODES
        assert isinstance(connection.phase, Fresh)
