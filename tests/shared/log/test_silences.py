"""Causes of silence in a call, from its log alone: each cause is distinguished, with its remedy."""

from __future__ import annotations

from typing import Any

import pytest

from voxbridge.shared import events
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.log.silences import LIMIT, LONGEST_MS, Silence, silences

SID = "0123456789abcdef0123456789abcdef"
FAILURE = ev.Failure(code="TIMED_OUT", message="Nothing came for 30 s", retryable=True)


def logged(*happened: tuple[int, events.Event]) -> list[events.Recorded]:
    """Return a log: each event with its time in ms."""
    found = []
    for seq, (ms, event) in enumerate(happened, 1):
        kind = events.kind_of(event)
        found.append(
            events.Recorded(
                seq=seq,
                id=str(seq),
                sid=SID,
                ts=ms * 1_000,
                cause=None,
                writer=kind.writer,
                visible=kind.visible,
                type=kind.name,
                v=kind.version,
                event=event,
            )
        )
    return found


BEGIN = (0, gateway.SessionRequested(mode="local"))
ASKED = [BEGIN, (1_000, gateway.TextReceived(text="Tea?")), (1_000, ev.UserSaid(text="Tea?", turn=1, source="text"))]


def heard(at: int, ms: int = 1_000, turn: int = 1) -> list[tuple[int, events.Event]]:
    """Return the events of an answer that is played from `at` on and completes its turn."""
    return [
        (at, gateway.PlaybackReported(generation=turn, played_ms=0, state="playing")),
        (at + ms, gateway.PlaybackReported(generation=turn, played_ms=ms, state="finished")),
        (at + ms, ev.AgentSaid(text="Yes.", turn=turn, generation=turn, played_ms=ms)),
        (
            at + ms,
            ev.TurnCompleted(number=turn, reason="completed", latency=ev.Latency(llm_first_token=at - 1_100, first_audio_sent=at - 1_000)),
        ),
    ]


def test_a_model_that_is_late_is_late_since_the_user_went_on() -> None:
    said = one(
        BEGIN,
        (1_000, ev.SpeechEnded(source="vad", audio_ms=1_000)),
        (1_400, ev.UserSaid(text="And so,", turn=1, source="speech")),
        (2_000, ev.SpeechStarted(source="vad", audio_ms=2_000)),
        (3_000, ev.SpeechEnded(source="vad", audio_ms=3_000)),
        (3_400, ev.UserSaid(text="ask not.", turn=1, source="speech", continues=True)),
        now_ms=9_400,
    )
    assert (said.from_ms, said.cause, said.why, said.seq) == (3_000, "model_late", "Nothing has come of the language model for 6.0 s.", 6)


def one(*happened: tuple[int, Any], now_ms: int | None = None) -> Silence:
    """Return the only silence of a log."""
    (found,) = silences(logged(*sorted(happened, key=lambda item: item[0])), now_ms * 1_000 if now_ms is not None else None)
    return found


def test_a_pause_up_to_the_limit_is_none_and_a_longer_one_is() -> None:
    assert silences(logged(*ASKED, *heard(1_000 + LONGEST_MS))) == []
    assert one(*ASKED, *heard(1_001 + LONGEST_MS)).cause == "model_late"


def test_a_late_model_is_named_with_the_time_that_it_took() -> None:
    found = one(*ASKED, *heard(6_000))
    assert (found.cause, found.from_ms, found.to_ms, found.turn, found.open) == ("model_late", 1_000, 6_000, 1, False)
    assert "first word took 4.9 s" in found.why
    assert found.todo


CALLED = ev.ToolCalled(call_id="c", name="look_up", arguments={}, kind="server", turn=1, deadline_ms=5_000)


@pytest.mark.parametrize(
    ("happened", "cause", "words"),
    [
        ([(1_500, CALLED), (6_500, tools.ToolCompleted(call_id="c", name="look_up", result={}, ms=5))], "function", "look_up took 5.0 s"),
        ([(3_000, ev.ProviderFailed(part="llm", error=FAILURE, turn=1, handled=True))], "model_silent", "Nothing came for 30 s"),
        (
            [(3_000, ev.ProviderFailed(part="llm", error=ev.Failure(code="TIMED_OUT", message="The machine is busy."), turn=1))],
            "busy",
            "busy",
        ),
        ([(3_000, ev.ProviderFailed(part="tts", error=FAILURE, turn=1))], "voice", "The voice failed"),
        ([(3_000, ev.ProviderFailed(part="stt", error=FAILURE, turn=1))], "transcription", "Speech to text failed"),
        ([(2_000, ev.ProviderLost(provider="gemini", model="m", close_code=1006, error=FAILURE))], "provider", "connection to gemini"),
        ([(5_000, ev.SessionRestored(worker="voice-2", how="reseeded", gap_ms=3_100))], "worker", "3.1 s"),
        ([(2_000, gateway.ClientDisconnected(gateway="g", connection="c", reason="cut", last_seq=1))], "client", "cut off (cut)"),
        (
            [
                (2_000, ev.HandoffStarted(source="host", target="advisor")),
                (6_000, ev.HandoffCompleted(source="host", target="advisor", voice="", model="", ms=1, history="log")),
            ],
            "handoff",
            "handed over to advisor",
        ),
    ],
)
def test_each_cause_is_told_from_the_others(happened: list[tuple[int, events.Event]], cause: str, words: str) -> None:
    found = one(*ASKED, *happened, *heard(7_000))
    assert found.cause == cause
    assert words in found.why
    assert found.seq


def test_a_worker_that_was_replaced_counts_before_the_failure_that_it_brought() -> None:
    happened = [(3_000, ev.ProviderFailed(part="llm", error=FAILURE, turn=1)), (5_000, ev.SessionRestored(worker="v", how="reseeded"))]
    assert one(*ASKED, *happened, *heard(7_000)).cause == "worker"


def test_a_call_that_goes_on_says_what_has_not_come_yet() -> None:
    found = one(*ASKED, now_ms=9_000)
    assert (found.cause, found.open) == ("model_late", True)
    assert "for 8.0 s" in found.why
    running = one(*ASKED, (1_500, CALLED), now_ms=9_000)
    assert (running.cause, running.why) == ("function", "The function look_up has not answered for 7.5 s.")
    assert silences(logged(*ASKED), 2_000_000) == []


def test_what_was_said_and_is_not_understood_is_no_fault_of_the_language_model() -> None:
    spoken = [BEGIN, (1_000, ev.SpeechStarted(source="vad", audio_ms=0)), (2_000, ev.SpeechEnded(source="vad", audio_ms=1_000))]
    assert one(*spoken, now_ms=9_000).cause == "transcription"


def test_a_noise_that_stopped_the_agent_is_named() -> None:
    happened = [
        (2_000, gateway.PlaybackReported(generation=1, played_ms=0, state="playing")),
        (3_000, ev.SpeechStarted(source="vad", audio_ms=0)),
        (3_000, ev.GenerationCancelled(generation=1, by="barge_in")),
        (3_200, ev.SpeechEnded(source="vad", audio_ms=200)),
    ]
    found = silences(logged(*ASKED, *happened), 9_000_000)[-1]
    assert (found.cause, found.open) == ("noise", True)


def test_a_muted_microphone_is_named_after_ten_seconds() -> None:
    found = one(
        BEGIN,
        (1_000, gateway.AudioEnded()),
        (15_000, gateway.TextReceived(text="x")),
        (15_000, ev.UserSaid(text="x", turn=1, source="text")),
        *heard(16_000),
    )
    assert (found.cause, found.to_ms - found.from_ms) == ("muted", 14_000)
    assert silences(logged(BEGIN, (1_000, gateway.AudioEnded()), (9_000, ev.SpeechStarted(source="vad", audio_ms=0)))) == []


def test_a_muted_stretch_goes_on_only_in_a_call_that_is_live() -> None:
    log = logged(BEGIN, (1_000, gateway.AudioEnded()), (13_000, gateway.PlaybackReported(generation=1, played_ms=0, state="finished")))
    assert [(one.cause, one.open) for one in silences(log)] == [("muted", False)]
    assert [(one.cause, one.open) for one in silences(log, 20_000_000_000_000)] == [("muted", True)]


def test_what_the_agent_said_counts_as_heard_where_the_client_reports_nothing() -> None:
    said = [
        (9_000, ev.AgentSaid(text="Yes.", turn=1, generation=1, played_ms=7_500)),
        (9_000, ev.TurnCompleted(number=1, reason="completed")),
    ]
    assert silences(logged(*ASKED, *said)) == []


def test_the_newest_hundred_are_told_of_a_long_call() -> None:
    happened: list[tuple[int, events.Event]] = [BEGIN]
    for turn in range(1, LIMIT + 20):
        at = turn * 100_000
        happened += [(at, ev.UserSaid(text="Tea?", turn=turn, source="text")), *heard(at + 5_000, turn=turn)]
    found = silences(logged(*happened))
    assert len(found) == LIMIT
    assert found[-1].turn == LIMIT + 19


def test_an_empty_log_has_none() -> None:
    assert silences([]) == []
