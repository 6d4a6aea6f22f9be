"""The rules of the socket, tested on the pure core: no socket, no bus, no clock."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.core.driver import SID, START, Driven, appended, audible, called, error_of, fresh, live, recorded, requested, say
from voxbridge.services.gateway.core import browser_calls, messages
from voxbridge.services.gateway.core.client import WAITING_LIMIT
from voxbridge.services.gateway.core.closing import WRONG_LIMIT, WRONG_WINDOW_MS
from voxbridge.services.gateway.core.inputs import BinaryMessage, Congested, Disconnected, Failed, Opened, Stopping, TextMessage
from voxbridge.services.gateway.core.outputs import Append, Attach, Close, Ended, Open, PublishMic, Send
from voxbridge.services.gateway.core.session import END_TIMEOUT_MS, FIRST_WORD_MS, OWNER_TIMEOUT_MS, START_TIMEOUT_MS
from voxbridge.services.gateway.core.state import Closed, Ending, Fresh, Live
from voxbridge.shared import events, time_zones
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import moments
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.nesting import DEPTH_LIMIT


@pytest.mark.parametrize(
    ("payload", "code", "field"),
    [
        (b"", "INVALID_MESSAGE", None),
        (b"{", "INVALID_MESSAGE", None),
        (b"\xff\xfe", "INVALID_MESSAGE", None),
        (b'{"type":"text","text":"\xff"}', "INVALID_MESSAGE", None),
        (b"[]", "INVALID_MESSAGE", None),
        (b"null", "INVALID_MESSAGE", None),
        (b"7", "INVALID_MESSAGE", None),
        (b"{}", "INVALID_MESSAGE", "type"),
        (b'{"type":7}', "INVALID_MESSAGE", "type"),
        (b'{"type":"dance"}', "INVALID_MESSAGE", "type"),
        (b'{"type":"text"}', "INVALID_MESSAGE", "text"),
        (b'{"type":"text","text":5}', "INVALID_MESSAGE", "text"),
        (b'{"type":"text","text":""}', "INVALID_ARGUMENT", "text"),
        (b'{"type":"audio","data":7}', "INVALID_MESSAGE", "data"),
        (b'{"type":"audio","data":"?"}', "INVALID_ARGUMENT", "data"),
        (b'{"type":"audio","data":""}', "INVALID_ARGUMENT", "pcm"),
        (b'{"type":"audio","data":"AAAA"}', "INVALID_ARGUMENT", "pcm"),
        (b'{"type":"browser_function_result","name":"x","result":[]}', "INVALID_MESSAGE", "result"),
        (b'{"type":"browser_function_result","name":"x","result":{"n":99999999999999999999999}}', "INVALID_ARGUMENT", "result"),
        (b'{"type":"browser_function_result","name":"x","result":{}}', "NOT_FOUND", "fn_call_id"),
        (b'{"type":"browser_function_result","name":"x","result":{},"fn_call_id":"nope"}', "NOT_FOUND", "fn_call_id"),
        (b'{"type":"playback","generation":-1,"played_ms":0,"state":"playing"}', "INVALID_ARGUMENT", "generation"),
        (b'{"type":"playback","generation":0,"played_ms":4294967296,"state":"playing"}', "INVALID_ARGUMENT", "played_ms"),
        (b'{"type":"playback","generation":0,"played_ms":0,"state":"done"}', "INVALID_ARGUMENT", "state"),
        (b'{"type":"start","mode":"local"}', "CONFLICT", "type"),
        (b'{"type":"start","mode":"karaoke"}', "INVALID_ARGUMENT", "mode"),
        (b'{"type":"start","mode":"local","output":"dance"}', "INVALID_ARGUMENT", "output"),
        (b'{"type":"text","text":"' + b"[" * 200_000 + b'"}', "INVALID_ARGUMENT", "text"),
        (b"[" * 200_000, "INVALID_MESSAGE", None),
        (b'{"type":"text","text":"' + b"a" * messages.MESSAGE_LIMIT + b'"}', "TOO_LARGE", "message"),
    ],
)
def test_a_wrong_message_is_answered_with_what_is_wrong_and_the_socket_stays_open(payload: bytes, code: str, field: str | None) -> None:
    connection = live()
    error = error_of(list(connection.take(TextMessage(payload, 0))))
    assert error["code"] == code
    assert error.get("field") == field
    assert error["message"].endswith(".")
    assert error["retryable"] is False
    assert isinstance(connection.phase, Live)


@pytest.mark.parametrize(
    ("message", "field", "limit"),
    [
        ({"type": "text", "text": "x" * (messages.TEXT_LIMIT + 1)}, "text", messages.TEXT_LIMIT),
        ({"type": "text", "text": "x", "id": "x" * (messages.TEXT_ID_LIMIT + 1)}, "id", messages.TEXT_ID_LIMIT),
        ({**START, "systemPrompt": "x" * (messages.PROMPT_LIMIT + 1)}, "systemPrompt", messages.PROMPT_LIMIT),
        ({**START, "model": "x" * (messages.NAME_LIMIT + 1)}, "model", messages.NAME_LIMIT),
        ({**START, "voice": "x" * (messages.NAME_LIMIT + 1)}, "voice", messages.NAME_LIMIT),
        ({**START, "agent": "x" * (messages.AGENT_LIMIT + 1)}, "agent", messages.AGENT_LIMIT),
        ({**START, "timeZone": "x" * (time_zones.LENGTH_LIMIT + 1)}, "timeZone", time_zones.LENGTH_LIMIT),
        ({**START, "timeZone": "../../etc/passwd"}, "timeZone", time_zones.LENGTH_LIMIT),
        ({**START, "session_token": "x" * (messages.TOKEN_LIMIT + 1)}, "session_token", messages.TOKEN_LIMIT),
        ({"type": "audio", "data": base64.b64encode(bytes(65_522)).decode()}, "pcm", 65_520),
        (
            {"type": "approval_answer", "approval_id": "x" * (messages.NAME_LIMIT + 1), "answer": "denied"},
            "approval_id",
            messages.NAME_LIMIT,
        ),
        ({"type": "approval_answer", "approval_id": "a", "answer": "yes"}, "answer", "approved, denied"),
        ({"type": "approval_answer", "approval_id": "a", "answer": "denied", "scope": "all"}, "scope", "once, arguments, function"),
        ({"type": "run_answer", "run_id": "x" * (messages.NAME_LIMIT + 1), "text": "a"}, "run_id", messages.NAME_LIMIT),
        ({"type": "run_answer", "run_id": "r", "text": "x" * (messages.ANSWER_LIMIT + 1)}, "text", messages.ANSWER_LIMIT),
        ({"type": "run_answer", "run_id": "r", "text": ""}, "text", messages.ANSWER_LIMIT),
        ({"type": "run_answer", "run_id": "r", "text": "a", "step": "x" * (messages.NAME_LIMIT + 1)}, "step", messages.NAME_LIMIT),
        ({"type": "cancel_task", "task_id": "x" * (messages.NAME_LIMIT + 1)}, "task_id", messages.NAME_LIMIT),
        ({"type": "browser_function_result", "name": "x" * (messages.NAME_LIMIT + 1), "result": {}}, "name", messages.NAME_LIMIT),
        ({"type": "browser_function_result", "name": "x", "result": {"t": "x" * messages.RESULT_LIMIT}}, "result", messages.RESULT_LIMIT),
    ],
)
def test_one_over_a_limit_is_refused_and_the_limit_is_named(message: dict[str, Any], field: str, limit: int | str) -> None:
    error = error_of(say(fresh() if message["type"] == "start" else live(), message))
    assert error["code"] in ("INVALID_ARGUMENT", "TOO_LARGE")
    assert (error["field"], error["limit"]) == (field, limit)


@pytest.mark.parametrize(
    "message",
    [
        {"type": "text", "text": "x" * messages.TEXT_LIMIT},
        {"type": "text", "text": "x", "id": "x" * messages.TEXT_ID_LIMIT},
        {"type": "audio", "data": base64.b64encode(bytes(65_520)).decode()},
        {"type": "playback", "generation": messages.COUNTER_LIMIT, "played_ms": 0, "state": "finished"},
    ],
)
def test_exactly_the_limit_is_taken(message: dict[str, Any]) -> None:
    outputs = say(live(), message)
    assert len(outputs) == 1
    assert isinstance(outputs[0], Append | PublishMic)


@pytest.mark.parametrize(
    "message", [{"type": "text", "text": "hi"}, {"type": "audio", "data": "AAA="}, {"type": "end"}, {"type": "interrupt"}]
)
def test_nothing_comes_before_start(message: dict[str, Any]) -> None:
    connection = fresh()
    assert error_of(say(connection, message))["code"] == "CONFLICT"
    assert isinstance(connection.phase, Fresh)


@pytest.mark.parametrize(
    ("frame", "code", "field"),
    [
        (b"", "INVALID_ARGUMENT", "prefix"),
        (b"\x01" * 15, "INVALID_ARGUMENT", "prefix"),
        (frames.pack(frames.PCM16, 0, 0, 0), "INVALID_ARGUMENT", "pcm"),
        (frames.pack(frames.PCM16, 0, 0, 0, b"abc"), "INVALID_ARGUMENT", "pcm"),
        (frames.pack(frames.FLUSH, 0, 0, 0, b"ab"), "INVALID_ARGUMENT", "kind"),
        (b"\x02" + frames.pack(frames.PCM16, 0, 0, 0, b"ab")[1:], "INVALID_ARGUMENT", "version"),
        (frames.pack(frames.PCM16, 0, 0, 0, bytes(65_522)), "TOO_LARGE", "frame"),
        (bytes(messages.MESSAGE_LIMIT + 1), "TOO_LARGE", "message"),
    ],
)
def test_a_wrong_frame_is_answered_with_what_is_wrong(frame: bytes, code: str, field: str) -> None:
    error = error_of(list(live().take(BinaryMessage(frame, 0))))
    assert (error["code"], error["field"]) == (code, field)


def test_a_frame_before_start_is_a_conflict_and_binary_on_plain_vox_is_not_understood() -> None:
    frame = frames.pack(frames.PCM16, 0, 0, 0, b"ab")
    assert error_of(list(fresh().take(BinaryMessage(frame, 0))))["code"] == "CONFLICT"
    assert error_of(list(live(v1=False).take(BinaryMessage(frame, 0))))["code"] == "INVALID_MESSAGE"


@pytest.mark.parametrize(
    ("message", "event"),
    [
        (
            {"type": "approval_answer", "approval_id": "a", "answer": "approved", "scope": "function"},
            events.gateway.ApprovalClicked(approval_id="a", answer="approved", scope="function"),
        ),
        (
            {"type": "approval_answer", "approval_id": "a", "answer": "denied"},
            events.gateway.ApprovalClicked(approval_id="a", answer="denied"),
        ),
        (
            {"type": "run_answer", "run_id": "r", "text": "that one", "step": "which"},
            events.gateway.RunAnswerReceived(run_id="r", text="that one", step="which"),
        ),
        ({"type": "cancel_task", "task_id": "task-1"}, events.gateway.TaskCancelRequested(task_id="task-1")),
    ],
)
def test_a_click_is_an_event(message: dict[str, Any], event: events.Event) -> None:
    assert say(live(), message) == [Append(event)]


@pytest.mark.parametrize(
    "message",
    [
        {"type": "playback", "generation": 1, "played_ms": 0, "state": "playing"},
        {"type": "interrupt"},
        {"type": "audio_end"},
        {"type": "cancel_task", "task_id": "t"},
        {"type": "run_answer", "run_id": "r", "text": "a"},
    ],
)
def test_what_voxbridge_v1_adds_is_taken_from_v1_clients_only(message: dict[str, Any]) -> None:
    assert appended(say(live(), message))
    assert "voxbridge.v1" in error_of(say(live(v1=False), message))["message"]


def test_start_opens_a_session_with_what_was_asked_for() -> None:
    outputs = say(fresh(), {**START, "voice": "joe", "systemPrompt": "Be brief.", "model": None})
    assert outputs == [
        Open(
            events.gateway.SessionRequested(
                mode="local",
                voice="joe",
                system_prompt="Be brief.",
                client=events.gateway.ClientCapabilities(protocol="voxbridge.v1"),
                resume_hash="hash",
            )
        )
    ]


def test_an_agent_and_the_form_of_its_replies_are_asked_for_by_name() -> None:
    name = "a" * messages.AGENT_LIMIT
    (opening,) = say(fresh(), {"type": "start", "mode": "openai", "agent": name, "output": "text"})
    assert isinstance(opening, Open)
    assert (opening.event.mode, opening.event.agent, opening.event.output) == ("openai", name, "text")


def test_what_is_said_while_the_session_opens_follows_its_request_in_order() -> None:
    connection = fresh()
    say(connection, START)
    assert say(connection, {"type": "text", "text": "one"}) == []
    assert say(connection, {"type": "text", "text": "two"}) == []
    assert connection.take(Opened()) == (
        Attach(events.gateway.ClientConnected(gateway="g", connection="g-1")),
        Append(events.gateway.TextReceived(text="one")),
        Append(events.gateway.TextReceived(text="two")),
    )


def test_only_so_much_waits_for_a_session_to_open() -> None:
    connection = fresh()
    say(connection, START)
    for _ in range(WAITING_LIMIT):
        assert say(connection, {"type": "text", "text": "hi"}) == []
    error = error_of(say(connection, {"type": "text", "text": "hi"}))
    assert (error["code"], error["limit"]) == ("OVERLOADED", WAITING_LIMIT)


def test_an_end_while_the_session_opens_is_asked_for_once_it_is_open() -> None:
    connection = fresh()
    say(connection, START)
    say(connection, {"type": "end"})
    connection.take(Opened())
    assert isinstance(connection.phase, Ending)


def test_a_client_that_left_while_its_session_opened_leaves_none_behind() -> None:
    connection = fresh()
    say(connection, START)
    assert list(connection.take(Disconnected("gone"))) == []
    assert [type(event) for event in appended(list(connection.take(Opened())))] == [events.gateway.SessionEndRequested]


def test_audio_is_taken_from_the_request_to_the_end_and_dropped_around_it() -> None:
    connection = fresh()
    assert not audible(connection)
    say(connection, START)
    assert not audible(connection)
    assert say(connection, {"type": "audio", "data": "AAA="}) == []
    connection.take(Opened())
    assert audible(connection)
    assert say(connection, {"type": "audio", "data": "AAA="}) == [PublishMic(b"\0\0")]
    say(connection, {"type": "end"})
    assert not audible(connection)
    assert say(connection, {"type": "audio", "data": "AAA="}) == []


def test_nothing_new_is_taken_once_the_end_was_asked_for() -> None:
    connection = live()
    say(connection, {"type": "end"})
    assert error_of(say(connection, {"type": "text", "text": "wait"}))["code"] == "CONFLICT"
    assert say(connection, {"type": "end"}) == []


def test_an_open_call_of_the_page_is_answered_once() -> None:
    connection = live()
    sent = list(connection.read(called()))
    assert sent == [
        Send({"type": "function_call", "name": "open_page", "args": {"page": "/"}, "server_handled": False, "fn_call_id": "c1", "seq": 20})
    ]
    answer = {"type": "browser_function_result", "name": "open_page", "result": {"ok": True}, "fn_call_id": "c1"}
    assert appended(say(connection, answer)) == [events.gateway.BrowserCallAnswered(call_id="c1", name="open_page", result={"ok": True})]
    assert error_of(say(connection, answer))["code"] == "NOT_FOUND"


def test_an_answer_without_an_id_goes_to_the_oldest_open_call_of_that_name() -> None:
    connection = live()
    connection.read(called("c1", seq=20))
    connection.read(called("c2", seq=21))
    answer = {"type": "browser_function_result", "name": "open_page", "result": {}}
    ids = [
        event.call_id
        for _ in range(2)
        for event in appended(say(connection, answer))
        if isinstance(event, events.gateway.BrowserCallAnswered)
    ]
    assert ids == ["c1", "c2"]


@pytest.mark.parametrize(
    "closing",
    [
        events.voice.ToolCancelled(call_id="c1", name="open_page", reason="barge-in"),
        events.tools.ToolFailed(call_id="c1", name="open_page", error=events.voice.Failure(code="TIMED_OUT", message="late"), ms=1),
        events.tools.ToolInterrupted(call_id="c1", name="open_page"),
        events.tools.ToolCompleted(call_id="c1", name="open_page", result={}, ms=1),
    ],
)
def test_a_call_that_is_over_cannot_be_answered(closing: events.Event) -> None:
    connection = live()
    connection.read(called())
    connection.read(recorded(closing, 21))
    answer = {"type": "browser_function_result", "name": "open_page", "result": {}, "fn_call_id": "c1"}
    assert error_of(say(connection, answer))["code"] == "NOT_FOUND"


def test_a_server_call_is_not_the_pages_to_answer() -> None:
    connection = live()
    connection.read(called(kind="server"))
    answer = {"type": "browser_function_result", "name": "open_page", "result": {}, "fn_call_id": "c1"}
    assert error_of(say(connection, answer))["code"] == "NOT_FOUND"


def test_only_so_many_calls_are_kept_open() -> None:
    connection = live()
    for number in range(browser_calls.OPEN_LIMIT + 1):
        connection.read(called(f"c{number}", seq=20 + number))
    answer = {"type": "browser_function_result", "name": "open_page", "result": {}}
    assert error_of(say(connection, {**answer, "fn_call_id": "c0"}))["code"] == "NOT_FOUND"
    assert appended(say(connection, {**answer, "fn_call_id": "c1"}))


def test_an_event_is_told_once_however_often_it_arrives() -> None:
    connection = live()
    event = recorded(events.voice.UserSaid(text="hi", turn=1, source="text"), 30)
    assert len(connection.read(event)) == 1
    assert connection.read(event) == ()
    assert connection.last_seq == 30


def test_the_hundredth_wrong_message_within_ten_seconds_closes_with_4009() -> None:
    connection = live()
    for number in range(WRONG_LIMIT - 1):
        error_of(list(connection.take(TextMessage(b"?", number))))
    last = list(connection.take(TextMessage(b"?", WRONG_WINDOW_MS)))
    assert [type(output) for output in last] == [Send, Append, Close]
    assert last[-1] == Close(4009, "100 wrong messages within 10 s")
    assert connection.take(TextMessage(b"?", 0)) == ()


def test_wrong_messages_over_a_longer_time_are_forgiven() -> None:
    connection = live()
    for number in range(1_000):
        error_of(list(connection.take(TextMessage(b"?", number * (WRONG_WINDOW_MS // WRONG_LIMIT + 2)))))
    assert isinstance(connection.phase, Live)


def test_a_socket_that_never_says_what_it_wants_is_closed() -> None:
    connection = fresh()
    assert connection.tick(1_000, owned=None) == ()
    assert connection.tick(FIRST_WORD_MS + 999, owned=None) == ()
    error, close = connection.tick(FIRST_WORD_MS + 1_000, owned=None)
    assert isinstance(error, Send)
    assert (error.message["code"], error.message["limit"]) == ("TIMED_OUT", FIRST_WORD_MS)
    assert isinstance(close, Close)
    assert isinstance(connection.phase, Closed)


def test_a_session_that_no_worker_takes_in_time_is_given_up() -> None:
    connection = requested()
    assert connection.tick(START_TIMEOUT_MS - 1, owned=None) == ()
    outputs = list(connection.tick(START_TIMEOUT_MS, owned=None))
    assert [type(output) for output in outputs] == [Send, Append, Close]
    assert isinstance(outputs[0], Send)
    assert outputs[0].message["code"] == "OVERLOADED"
    assert outputs[0].message["retryable"] is True
    assert appended(outputs) == [events.gateway.SessionEndRequested(by="gateway", reason="no_worker")]
    assert isinstance(outputs[-1], Close)
    assert outputs[-1].code == 1013


def test_an_end_that_no_worker_answers_closes_with_1000() -> None:
    connection = live()
    say(connection, {"type": "end"}, 1_000)
    assert connection.tick(1_000 + END_TIMEOUT_MS - 1, owned=True) == ()
    assert connection.tick(1_000 + END_TIMEOUT_MS, owned=True) == (Close(1000, "the session ended"),)


def test_a_lost_worker_shows_as_restoring_then_as_what_it_was_when_one_is_back() -> None:
    connection = live()
    connection.hear(moments.StateChanged(state="listening"))
    (restoring,) = connection.tick(0, owned=False)
    assert isinstance(restoring, Send)
    assert restoring.message["state"] == "restoring"
    assert restoring.message["reason"]
    assert connection.tick(1, owned=False) == ()
    assert connection.tick(2, owned=None) == ()
    assert connection.tick(3, owned=True) == (Send({"type": "state", "state": "listening"}),)


def test_a_worker_that_stays_lost_ends_in_an_error_and_1013() -> None:
    connection = live(v1=False)
    connection.tick(0, owned=False)
    assert connection.tick(OWNER_TIMEOUT_MS - 1, owned=False) == ()
    outputs = list(connection.tick(OWNER_TIMEOUT_MS, owned=False))
    assert isinstance(outputs[0], Send)
    assert outputs[0].message["code"] == "UNAVAILABLE"
    assert isinstance(outputs[-1], Close)
    assert outputs[-1].code == 1013


def test_the_end_of_a_session_is_told_and_closes_with_1000() -> None:
    outputs = list(live().read(recorded(events.voice.SessionEnded(reason="idle"), 40)))
    assert outputs == [Ended(), Send({"type": "session_ended", "reason": "idle", "seq": 40}), Close(1000, "the session ended")]
    assert list(live(v1=False).read(recorded(events.voice.SessionEnded(reason="idle"), 40))) == [
        Ended(),
        Close(1000, "the session ended"),
    ]


@pytest.mark.parametrize(("code", "close"), [("PROVIDER_UNAVAILABLE", 1000), ("OVERLOADED", 1013)])
def test_a_refused_session_says_why(code: str, close: int) -> None:
    failure = events.voice.Failure(code=code, message="No.", retryable=True)
    outputs = list(requested(v1=False).read(recorded(events.voice.SessionEnded(reason="refused", error=failure), 11)))
    assert outputs[1] == Send({"type": "error", "code": code, "message": "No.", "retryable": True, "seq": 11})
    assert isinstance(outputs[-1], Close)
    assert outputs[-1].code == close


def test_a_shutdown_says_go_away_and_writes_that_the_client_is_disconnected() -> None:
    outputs = list(live(v1=False).take(Stopping()))
    assert [type(output) for output in outputs] == [Send, Append, Close]
    assert isinstance(outputs[0], Send)
    assert outputs[0].message["type"] == "go_away"
    assert outputs[-1] == Close(1012, "the gateway is restarting")


def test_a_slow_client_is_closed_with_4008_and_its_leaving_written_once() -> None:
    connection = live()
    outputs = list(connection.take(Congested()))
    assert outputs == [
        Append(events.gateway.ClientDisconnected(gateway="g", connection="g-1", reason="the client reads too slowly", last_seq=10)),
        Close(4008, "reconnect"),
    ]
    assert connection.take(Disconnected("gone")) == ()


@pytest.mark.parametrize(("error", "code"), [(Unavailable("away"), 1013), (VoxbridgeError(Code.INTERNAL, "broken"), 1011)])
def test_a_failure_of_the_log_is_told_and_closes(error: VoxbridgeError, code: int) -> None:
    outputs = list(live().take(Failed(error)))
    assert outputs[0] == Send({"type": "error", **error.as_dict()})
    assert isinstance(outputs[1], Close)
    assert outputs[1].code == code


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
TYPES = ["start", "audio", "text", "browser_function_result", "end", "playback", "interrupt", "audio_end"]
FIELDS = ["mode", "text", "data", "name", "result", "fn_call_id", "generation", "played_ms", "state", "systemPrompt", "model"]
MESSAGES = st.builds(
    lambda type, rest: {"type": type, **rest}, st.sampled_from(TYPES), st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5)
)
PAYLOADS = (
    st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()) | MESSAGES.map(lambda value: json.dumps(value).encode())
)
CODES = {"INVALID_MESSAGE", "INVALID_ARGUMENT", "TOO_LARGE", "CONFLICT", "NOT_FOUND", "OVERLOADED"}


@given(st.lists(PAYLOADS, max_size=12), st.sampled_from([fresh, requested, live]), st.booleans())
def test_whatever_a_client_says_is_taken_or_answered_with_a_typed_error(payloads: list[bytes], make: Any, v1: bool) -> None:
    connection: Driven = make(v1=v1)
    for payload in payloads:
        for output in connection.take(TextMessage(payload, 0)):
            if isinstance(output, Send):
                assert output.message["code"] in CODES
            elif isinstance(output, Append):
                assert events.encode(output.event, event_id="i", sid=SID, ts=0, cause=None)


@given(st.binary(max_size=64), st.sampled_from([fresh, requested, live]), st.booleans())
def test_whatever_bytes_a_client_sends_are_taken_or_answered_with_a_typed_error(payload: bytes, make: Any, v1: bool) -> None:
    connection: Driven = make(v1=v1)
    for output in connection.take(BinaryMessage(payload, 0)):
        assert isinstance(output, Send)
        assert output.message["code"] in CODES


def test_a_message_is_nested_to_the_limit_and_no_deeper() -> None:
    def nested(levels: int) -> bytes:
        return b'{"type":"end","more":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"

    messages.read(nested(DEPTH_LIMIT))
    for levels in (DEPTH_LIMIT + 1, 985, 100_000):
        with pytest.raises(VoxbridgeError) as caught:
            messages.read(nested(levels))
        assert (caught.value.code, caught.value.limit) == (Code.INVALID_MESSAGE, DEPTH_LIMIT)
