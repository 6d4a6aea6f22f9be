"""A recorded call as an OpenTelemetry trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.recorded_calls import WORDS, a_call, file_of
from voxbridge.cli import cli
from voxbridge.sessions import archive, otlp
from voxbridge.shared import events
from voxbridge.shared.events import tools, voice

SID = "0123456789abcdef0123456789abcdef"
RECORDED = Path(__file__).parents[2] / "recorded" / "call_d4245723.jsonl"


def spans(payload: bytes) -> list[dict[str, Any]]:
    (resource,) = json.loads(payload)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    found = scope["spans"]
    assert isinstance(found, list)
    return found


def told(span: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def recorded(seq: int, event: events.Event, *, ms: int) -> events.Recorded:
    kind = events.kind_of(event)
    return events.Recorded(
        seq=seq,
        id=f"{SID}.{kind.writer}.{seq}",
        sid=SID,
        ts=1_800_000_000_000_000 + ms * 1_000,
        cause=None,
        writer=kind.writer,
        visible=kind.visible,
        type=kind.name,
        v=kind.version,
        event=event,
    )


def test_an_old_call_becomes_the_same_trace_to_the_byte_however_often() -> None:
    call = archive.read(RECORDED)
    first = otlp.trace(call.log[0].sid, call.log)
    assert otlp.trace(call.log[0].sid, archive.read(RECORDED).log) == first
    found = spans(first)
    assert {span["traceId"] for span in found} == {call.log[0].sid}
    assert len({span["spanId"] for span in found}) == len(found)
    assert [span["name"] for span in found if "parentSpanId" not in span] == ["session"]


def test_a_call_has_a_span_for_the_session_each_turn_and_each_function() -> None:
    log = a_call()
    found = spans(otlp.trace(SID, log))
    root = found[0]
    turns = [span for span in found if span["name"].startswith("invoke_agent")]
    (tool,) = [span for span in found if span["name"].startswith("execute_tool")]
    completed = [one.event for one in log if isinstance(one.event, voice.TurnCompleted)]
    assert {told(span)["voxbridge.turn.number"] for span in turns} == {str(one.number) for one in completed}
    assert all(span["parentSpanId"] == root["spanId"] for span in turns)
    assert tool["parentSpanId"] in {span["spanId"] for span in turns}
    assert (told(tool)["gen_ai.operation.name"], told(tool)["gen_ai.tool.type"]) == ("execute_tool", "function")
    for span in found:
        assert (
            int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) <= int(root["endTimeUnixNano"])
        )
        assert told(span)["gen_ai.conversation.id"] == SID
    figures = told(turns[0])
    assert {"gen_ai.provider.name", "gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"} <= set(figures)


def test_no_word_that_was_said_is_in_a_trace() -> None:
    payload = otlp.trace(SID, a_call()).decode().lower()
    for words in (*WORDS, "once upon a time", "hello there"):
        assert words not in payload


def test_what_failed_is_an_error_with_its_type() -> None:
    log = [
        recorded(1, voice.SessionStarted(mode="gemini", model="m", voice="v", output="audio"), ms=0),
        recorded(2, voice.ProviderConnected(provider="gemini", model="m", agent=""), ms=10),
        recorded(3, voice.ToolCalled(call_id="c", name="f", arguments={"a": 1}, kind="server", turn=1, deadline_ms=1), ms=20),
        recorded(4, tools.ToolFailed(call_id="c", name="f", error=voice.Failure(code="TIMED_OUT", message="private words"), ms=5), ms=25),
        recorded(
            5,
            voice.ProviderLost(provider="gemini", model="m", close_code=1006, error=voice.Failure(code="UNAVAILABLE", message="w")),
            ms=40,
        ),
        recorded(6, voice.SessionEnded(reason="failed", error=voice.Failure(code="INTERNAL", message="private words")), ms=50),
    ]
    payload = otlp.trace(SID, log)
    root, connection, tool = spans(payload)
    assert [told(span).get("error.type") for span in (root, connection, tool)] == ["INTERNAL", "UNAVAILABLE", "TIMED_OUT"]
    assert all(span["status"] == {"code": 2} for span in (root, connection, tool))
    assert told(connection)["gen_ai.provider.name"] == "gcp.gemini"
    assert (int(tool["endTimeUnixNano"]) - int(tool["startTimeUnixNano"])) == 5_000_000
    assert [event["name"] for event in root["events"]] == ["provider.lost"]
    assert b"private words" not in payload


def test_a_call_that_goes_on_ends_with_its_last_fact() -> None:
    (root, tool) = spans(
        otlp.trace(
            SID,
            [
                recorded(1, voice.SessionStarted(mode="local", model="m", voice="v", output="audio"), ms=0),
                recorded(2, voice.ToolCalled(call_id="c", name="f", arguments={}, kind="server", turn=1, deadline_ms=1), ms=20),
                recorded(3, voice.SpeechStarted(source="vad", audio_ms=1), ms=90),
            ],
        )
    )
    assert root["endTimeUnixNano"] == tool["endTimeUnixNano"] == str(1_800_000_000_000_000_000 + 90_000_000)


def test_a_span_holds_so_many_events_and_counts_the_rest() -> None:
    log = [recorded(n, voice.GenerationCancelled(generation=n, by="client"), ms=n) for n in range(1, otlp.EVENTS_LIMIT + 3)]
    (root,) = spans(otlp.trace(SID, log))
    assert (len(root["events"]), root["droppedEventsCount"]) == (otlp.EVENTS_LIMIT, 2)


def test_a_trace_is_written_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXBRIDGE_DATA_DIR", str(tmp_path / "data"))
    for name in ("VOXBRIDGE_NATS_URL", "VOXBRIDGE_REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "call.jsonl").write_bytes(file_of(a_call(1)))
    run = CliRunner().invoke
    assert run(cli, ["import", str(tmp_path / "call.jsonl")]).exit_code == 0
    done = run(cli, ["export", SID, "--otlp"])
    assert (done.exit_code, done.stdout_bytes) == (0, otlp.trace(SID, a_call(1)))
    assert run(cli, ["export", SID, str(tmp_path / "trace.json"), "--otlp"]).exit_code == 0
    assert (tmp_path / "trace.json").read_bytes() == done.stdout_bytes
    assert run(cli, ["export", SID, "--otlp", "--as-test"]).exit_code == 2
