"""Messages for each event of the log, to plain VOX and to `voxbridge.v1` clients (docs/protocol.md, sections 3 and 4)."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from tests.gateway.core.driver import SID, recorded
from voxbridge.services.gateway.core import outbound
from voxbridge.services.gateway.core.outbound import Reader
from voxbridge.shared import events
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import moments

PLAIN, V1 = Reader(SID, False), Reader(SID, True, "the-token")
v, t = events.voice, events.tools
FAILURE = v.Failure(code="TIMED_OUT", message="Too slow.", retryable=True)
FAILED = {"code": "TIMED_OUT", "message": "Too slow.", "retryable": True}
FAILED_RESULT = {"success": False, "error": "Too slow.", "code": "TIMED_OUT", "retryable": True}


@pytest.mark.parametrize(
    ("event", "plain", "more"),
    [
        (
            v.SessionStarted(mode="echo", model="", voice="", output="audio", resumed=True),
            {"type": "setup_complete", "sessionId": SID, "mode": "echo", "resumed": True},
            {"resumeToken": "the-token", "agent": "", "agents": [], "pipeline": "", "voice": "", "model": ""},
        ),
        (v.UserSaid(text="a", turn=2, source="speech"), {"type": "transcript", "role": "user", "text": "a"}, {"final": True, "turn": 2}),
        (
            v.UserSaid(text="b", turn=2, source="speech", continues=True),
            {"type": "transcript", "role": "user", "text": "b"},
            {"final": True, "turn": 2, "continues": True},
        ),
        (
            v.UserSaid(text="c", turn=2, source="text", text_id="t1"),
            {"type": "transcript", "role": "user", "text": "c"},
            {"final": True, "turn": 2, "id": "t1"},
        ),
        (
            v.AgentSaid(text="b", turn=2, generation=3, unheard="c", interrupted=True),
            {"type": "transcript", "role": "assistant", "text": "b"},
            {"final": True, "turn": 2, "generation": 3, "unheard": "c", "interrupted": True},
        ),
        (
            v.AgentSaid(text="b", turn=2, generation=3, agent="triage", voice="Puck"),
            {"type": "transcript", "role": "assistant", "text": "b"},
            {"final": True, "turn": 2, "generation": 3, "unheard": "", "interrupted": False, "agent": "triage", "voice": "Puck"},
        ),
        (
            v.AgentSaid(text="b", turn=2, generation=3, output="text"),
            {"type": "text", "text": "b"},
            {"turn": 2, "generation": 3, "unheard": "", "interrupted": False},
        ),
        (
            v.TurnCompleted(number=4, reason="completed", latency=v.Latency(stt_final=90), usage=v.Usage(input_tokens=812)),
            {"type": "turn_complete", "turn": 4},
            {"reason": "completed", "latency": {"stt_final": 90}, "usage": {"input_tokens": 812, "output_tokens": 0}},
        ),
        (
            v.TurnCompleted(number=5, reason="completed", usage=v.Usage(input_tokens=8, output_tokens=2, microdollars=54)),
            {"type": "turn_complete", "turn": 5},
            {"reason": "completed", "latency": {}, "usage": {"input_tokens": 8, "output_tokens": 2, "microdollars": 54}},
        ),
        (
            v.ToolCalled(call_id="c", name="n", arguments={"x": 1}, kind="async", turn=1, deadline_ms=1),
            {"type": "function_call", "name": "n", "args": {"x": 1}, "server_handled": True, "fn_call_id": "c"},
            {},
        ),
        (
            t.ToolCompleted(call_id="c", name="n", result={"y": 2}, ms=1),
            {"type": "function_result", "name": "n", "result": {"success": True, "y": 2}, "fn_call_id": "c"},
            {},
        ),
        (
            t.ToolFailed(call_id="c", name="n", error=FAILURE, ms=1),
            {"type": "function_result", "name": "n", "result": FAILED_RESULT, "fn_call_id": "c"},
            {},
        ),
        (
            t.TaskStarted(task_id="k", function="timer", call_id="c"),
            {"type": "async_task_started", "task_id": "k", "function": "timer"},
            {},
        ),
        (
            t.TaskCompleted(task_id="k", function="timer", result={"z": 3}),
            {"type": "async_task_complete", "task_id": "k", "function": "timer", "result": {"success": True, "z": 3}},
            {},
        ),
        (
            t.TaskFailed(task_id="k", function="timer", error=FAILURE),
            {"type": "async_task_complete", "task_id": "k", "function": "timer", "result": FAILED_RESULT},
            {},
        ),
        (v.ProviderFailed(part="llm", error=FAILURE, turn=1), {"type": "error", **FAILED}, {}),
    ],
)
def test_a_fact_is_told_to_both_with_its_position_and_to_v1_with_more(
    event: events.Event, plain: dict[str, Any], more: dict[str, Any]
) -> None:
    assert outbound.of_event(recorded(event, 9), PLAIN) == {**plain, "seq": 9}
    assert outbound.of_event(recorded(event, 9), V1) == {**plain, **more, "seq": 9}


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (t.ToolInterrupted(call_id="c", name="n"), "INTERRUPTED"),
        (t.TaskInterrupted(task_id="k", function="timer"), "INTERRUPTED"),
        (t.TaskCancelled(task_id="k", function="timer", reason="asked"), "CANCELLED"),
    ],
)
def test_what_was_cut_short_is_told_as_an_error(event: events.Event, code: str) -> None:
    for reader in (PLAIN, V1):
        message = outbound.of_event(recorded(event, 9), reader)
        assert message is not None
        assert (message["result"]["success"], message["result"]["code"]) == (False, code)
        assert isinstance(message["result"]["error"], str)


@pytest.mark.parametrize(
    ("event", "v1"),
    [
        (v.ToolCancelled(call_id="c", name="n", reason="r"), {"type": "function_cancelled", "fn_call_id": "c", "name": "n", "seq": 9}),
        (
            v.SessionRestored(worker="w", term=2, how="reseeded", gap_ms=3_100, lost=("One reply was cut short.",)),
            {"type": "restored", "how": "reseeded", "cause": "worker", "gap_ms": 3_100, "lost": ["One reply was cut short."], "seq": 9},
        ),
        (
            v.SessionRestored(how="handle", gap_ms=210),
            {"type": "restored", "how": "handle", "cause": "provider", "gap_ms": 210, "lost": [], "seq": 9},
        ),
        (
            v.ProviderConnected(provider="gemini", model="m", agent="triage", voice="Puck", resumed_by="seed"),
            {
                "type": "provider", "status": "connected", "provider": "gemini", "model": "m", "agent": "triage", "voice": "Puck",
                "resumed_by": "seed", "seq": 9,
            },
        ),
        (
            v.ProviderLost(provider="gemini", model="m", close_code=1006, error=FAILURE),
            {"type": "provider", "status": "lost", "provider": "gemini", "model": "m", "reason": "Too slow.", "seq": 9},
        ),
        (
            v.ProviderGoAway(provider="gemini", model="m", time_left_ms=9_000),
            {"type": "provider", "status": "leaving", "provider": "gemini", "model": "m", "time_left_ms": 9_000, "seq": 9},
        ),
        (
            v.HandoffStarted(source="triage", target="advisor", reason="a loan", summary="kept inside"),
            {"type": "agent", "phase": "started", "from": "triage", "to": "advisor", "reason": "a loan", "seq": 9},
        ),
        (
            v.HandoffCompleted(source="triage", target="advisor", voice="joe", model="m", ms=12, history="log"),
            {"type": "agent", "phase": "completed", "from": "triage", "to": "advisor", "voice": "joe", "model": "m", "ms": 12, "seq": 9},
        ),
        (
            t.TaskProgressed(task_id="k", function="f", done=0.5, message="half"),
            {"type": "task_progress", "task_id": "k", "function": "f", "done": 0.5, "message": "half", "seq": 9},
        ),
        (
            t.ApprovalRequested(
                approval_id="a", call_id="c", name="n", arguments={"x": 1}, effect="destructive", question="Shall I?", expires_ts=77
            ),
            {
                "type": "approval_requested", "approval_id": "a", "fn_call_id": "c", "name": "n", "args": {"x": 1},
                "effect": "destructive", "question": "Shall I?", "expires_ts": 77, "scopes": ["arguments", "function"], "seq": 9,
            },
        ),
        (
            t.ApprovalEnded(approval_id="a", call_id="c", name="n", outcome="approved", by="click"),
            {"type": "approval_ended", "approval_id": "a", "name": "n", "outcome": "approved", "by": "click", "seq": 9},
        ),
        (
            t.RunStarted(run_id="r", name="n", kind="macro", steps=2, inputs={"x": 1}),
            {"type": "run_started", "run_id": "r", "name": "n", "kind": "macro", "steps": 2, "inputs": {"x": 1}, "seq": 9},
        ),
        (
            t.RunStepStarted(run_id="r", step="a", attempt=1, action="call", target="f", given='{"x":1}'),
            {
                "type": "run_step", "run_id": "r", "step": "a", "attempt": 1, "state": "started", "action": "call", "target": "f",
                "args": '{"x":1}', "seq": 9,
            },
        ),
        (
            t.RunStepCompleted(run_id="r", step="a", attempt=1, result='{"y":2}'),
            {"type": "run_step", "run_id": "r", "step": "a", "attempt": 1, "state": "completed", "result": '{"y":2}', "seq": 9},
        ),
        (
            t.RunStepFailed(run_id="r", step="a", attempt=2, error=FAILURE),
            {"type": "run_step", "run_id": "r", "step": "a", "attempt": 2, "state": "failed", "error": FAILED, "seq": 9},
        ),
        (
            t.RunStepFailed(run_id="r", step="a", attempt=2, error=FAILURE, known=False),
            {"type": "run_step", "run_id": "r", "step": "a", "attempt": 2, "state": "interrupted", "error": FAILED, "seq": 9},
        ),
        (
            t.RunStepSkipped(run_id="r", step="a"),
            {"type": "run_step", "run_id": "r", "step": "a", "attempt": 0, "state": "skipped", "seq": 9},
        ),
        (
            t.RunWaiting(run_id="r", name="n", reason="ask", step="a", question="Which?", expires_ts=77),
            {
                "type": "run_waiting", "run_id": "r", "name": "n", "reason": "ask", "step": "a", "question": "Which?",
                "expires_ts": 77, "seq": 9,
            },
        ),
        (
            t.RunWaiting(run_id="r", name="n", reason="queued"),
            {"type": "run_waiting", "run_id": "r", "name": "n", "reason": "queued", "step": "", "question": "", "seq": 9},
        ),
        (
            t.RunCompleted(run_id="r", name="n", result={"y": 2}, steps=2, ms=5),
            {"type": "run_ended", "run_id": "r", "name": "n", "outcome": "completed", "result": {"y": 2}, "ms": 5, "seq": 9},
        ),
        (
            t.RunFailed(run_id="r", name="n", error=FAILURE, step="a", ms=5),
            {"type": "run_ended", "run_id": "r", "name": "n", "outcome": "failed", "step": "a", "error": FAILED, "ms": 5, "seq": 9},
        ),
        (
            t.RunCancelled(run_id="r", name="n", reason="asked", ms=5),
            {"type": "run_ended", "run_id": "r", "name": "n", "outcome": "cancelled", "reason": "asked", "ms": 5, "seq": 9},
        ),
        (v.SessionEnded(reason="idle"), {"type": "session_ended", "reason": "idle", "seq": 9}),
        (
            v.AgentSaid(text="", turn=1, generation=1, unheard="all of it", interrupted=True),
            {
                "type": "transcript", "role": "assistant", "text": "", "final": True, "turn": 1, "generation": 1, "interrupted": True,
                "unheard": "all of it", "seq": 9,
            },
        ),
    ],
)  # fmt: skip
def test_some_facts_are_for_v1_clients_only(event: events.Event, v1: dict[str, Any]) -> None:
    assert outbound.of_event(recorded(event, 9), PLAIN) is None
    assert outbound.of_event(recorded(event, 9), V1) == v1


def test_a_result_that_says_itself_that_it_failed_is_left_so() -> None:
    message = outbound.of_event(recorded(t.ToolCompleted(call_id="c", name="n", result={"success": False}, ms=1), 9), PLAIN)
    assert message is not None
    assert message["result"] == {"success": False}


def test_what_no_release_knows_is_not_told() -> None:
    unknown = msgspec.structs.replace(recorded(v.SessionEnded(reason="x"), 9), event=events.Unknown(data={}))
    assert outbound.of_event(unknown, V1) is None


@pytest.mark.parametrize(
    ("moment", "message"),
    [
        (moments.StateChanged(state="thinking"), {"type": "state", "state": "thinking"}),
        (moments.StateChanged(state="restoring", reason="r"), {"type": "state", "state": "restoring", "reason": "r"}),
        (
            moments.PartialTranscript(role="user", text="he", turn=1),
            {"type": "transcript", "role": "user", "text": "he", "final": False, "turn": 1},
        ),
        (
            moments.PartialTranscript(role="assistant", text="he", turn=1, generation=2),
            {"type": "transcript", "role": "assistant", "text": "he", "final": False, "turn": 1, "generation": 2},
        ),
    ],
)
def test_a_moment_is_told_to_v1_clients_only_and_has_no_position(moment: moments.Moment, message: dict[str, Any]) -> None:
    assert outbound.of_moment(moment, V1) == message
    assert outbound.of_moment(moment, PLAIN) is None


def test_a_reply_frame_is_base64_for_plain_vox_and_a_flush_or_an_empty_last_frame_is_nothing() -> None:
    said = outbound.audio(frames.pack(frames.PCM16, 1, 0, 0, b"\x01\x02\x03\x04"))
    assert said is not None
    assert msgspec.json.decode(said) == {"type": "audio", "data": base64.b64encode(b"\x01\x02\x03\x04").decode()}
    assert outbound.audio(frames.pack(frames.FLUSH, 1, 0, 0)) is None
    assert outbound.audio(frames.pack(frames.PCM16, 1, 0, 0, flags=frames.LAST)) is None
