"""Calls with random events, and minimal examples of calls that such runs have broken.

The calls are the same in each `make test`, and new ones in each `make test-all`. `VOXBRIDGE_SEED` repeats a run, or the one call that its
message names. `make test-long` plays many more.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.voice.orders import drawing
from tests.voice.orders.rules import first_broken, rules_broken
from tests.voice.orders.simulation import Orders
from tests.voice.orders.teams import TEAMS
from tests.voice.orders.things import Thing, happens, have
from voxbridge.services.voice.core import inputs, provider_events
from voxbridge.services.voice.core import outputs as out
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev

SOME, MANY = 300, 2_000
"""Calls of `make test` and of `make test-all`."""


def test_any_order_of_what_may_happen_comes_to_rest() -> None:
    assert not first_broken(SOME)


@pytest.mark.timeout(600)
def test_many_orders_of_what_may_happen_come_to_rest() -> None:
    assert not first_broken(MANY)


def test_the_drawing_of_the_states_is_of_this_code() -> None:
    drawn = drawing.drawing(drawing.changes())
    assert drawing.FILE.read_text(encoding="utf-8") == drawn, "python -m tests.voice.orders.drawing draws it again"


def a_call(team: str, *what: Thing, **drawn: Any) -> Orders:
    """Return a call in which these things happen."""
    return have(Orders(team, **drawn), what)


def told(orders: Orders, *kinds: type) -> list[object]:
    """Return the events of these types."""
    return [one for _, one in orders.appended if isinstance(one, kinds)]


def at_rest(orders: Orders) -> None:
    """Bring the call to rest, and check that it breaks no rule."""
    orders.rest()
    assert not rules_broken(orders)


def spoken(orders: Orders) -> list[str]:
    """Return the agent's texts in the log."""
    return [one.text for _, one in orders.appended if isinstance(one, ev.AgentSaid)]


def ended(orders: Orders) -> list[tuple[int, str]]:
    """Return number and reason of each ended turn."""
    return [(one.number, one.reason) for _, one in orders.appended if isinstance(one, ev.TurnCompleted)]


@pytest.mark.parametrize("team", TEAMS)
def test_a_gateway_that_died_after_its_client_had_reached_another_one_changes_nothing(team: str) -> None:
    orders = a_call(team, ("moved", 8))
    before = orders.state
    orders.take(inputs.GatewayLost("g0"))
    assert orders.state == before
    at_rest(orders)


@pytest.mark.parametrize("target", ["advisor", "clerk", "writer"])
def test_who_is_handed_over_while_speaking_is_heard_to_the_end_and_answered_by_the_next_one(target: str) -> None:
    orders = a_call("cascade first", ("time", 20))
    orders.speaking = True
    orders.hears(started=True)
    orders.log(gateway.HandoffRequested(target=target, reason="wanted"))
    assert orders.route == "detector"
    at_rest(orders)
    assert orders.state.team.agent.name == target
    assert len(told(orders, ev.UserSaid)) == 1
    asked = [one.effect for one in orders.effects.values()]
    assert not any(isinstance(one, out.Complete) for one in asked)
    assert ended(orders) == [(1, "completed")]


def test_a_question_that_is_asked_again_is_not_mixed_with_an_announcement() -> None:
    orders = a_call("gemini", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("typed", 1), ("announced", 1), ("done", 1))
    assert [text for text in orders.told if "n0-1." in text] == []
    at_rest(orders)
    assert [number for number, _ in ended(orders)] == [1]


def test_an_announcement_waits_until_a_handoff_has_answered() -> None:
    orders = a_call("native", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("typed", 1), ("hand over", 1), ("announced", 1))
    happens(orders, "ready", 1)
    assert [text for text in orders.told if "n0-1." in text] == []
    at_rest(orders)
    assert ended(orders)[0] == (1, "completed")


def test_an_announcement_waits_between_the_result_of_a_call_and_the_answer() -> None:
    orders = a_call(
        "gemini", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("typed", 1), ("call", 2), ("announced", 1), ("result", 1)
    )
    assert [text for text in orders.told if "n0-1." in text] == []
    at_rest(orders)
    assert ended(orders)[0] == (1, "completed")


@pytest.mark.parametrize("obliging", [True, False])
def test_a_model_that_has_nothing_to_add_after_a_fault_has_ended_its_turn(obliging: bool) -> None:
    orders = a_call(
        "gemini", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("typed", 1), ("audio", 5), ("words", 3), obliging=obliging
    )
    orders.lose(1)
    have(orders, [("ready", 1), ("done", 1)])
    at_rest(orders)
    assert ended(orders) == [(1, "completed")]
    assert "a3" in spoken(orders)


def test_a_transcript_that_comes_after_a_call_is_what_was_asked() -> None:
    orders = a_call("openai", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("voice", 1), ("voice", 2), ("call", 2))
    orders.take(provider_events.UserWords(effect=orders.link, text="What is it?", item="i9", whole=True))
    have(orders, [("result", 1), ("audio", 5), ("words", 1), ("done", 1)])
    at_rest(orders)
    assert [(one.text, one.turn) for _, one in orders.appended if isinstance(one, ev.UserSaid)] == [("What is it?", 1)]
    assert ended(orders) == [(1, "completed")]
    roles = [one.role for one in orders.state.conversation.history]
    assert roles[-4:] == ["user", "assistant", "tool", "assistant"]


def test_a_transcript_that_comes_after_a_call_that_hands_over_is_what_the_next_one_is_asked() -> None:
    orders = a_call("openai", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("voice", 1), ("voice", 2), ("hand over", 1))
    orders.take(provider_events.UserWords(effect=orders.link, text="What is it?", item="i9", whole=True))
    assert orders.state.team.agent.name == "advisor"
    assert any(one.text == "What is it?" for one in orders.state.conversation.history)
    at_rest(orders)
    assert ended(orders) == [(1, "completed")]


def test_a_handoff_waits_for_a_transcript_no_longer_than_it_may_take() -> None:
    orders = a_call("openai", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("voice", 1), ("voice", 2), ("hand over", 1))
    assert orders.state.team.agent.name == "host"
    orders.passes(1_500)
    assert orders.state.team.agent.name == "advisor"
    at_rest(orders)


def test_stop_stops_a_model_that_was_told_to_go_on_after_a_fault() -> None:
    orders = a_call("gemini", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("typed", 1), ("audio", 5), ("words", 3))
    orders.lose(1)
    have(orders, [("ready", 1), ("stopped", 1)])
    generation = orders.state.counters.generation
    have(orders, [("audio", 20), ("words", 9), ("done", 1)])
    assert orders.state.counters.generation == generation
    at_rest(orders)
    assert ended(orders) == [(1, "interrupted")]


def test_an_earlier_answer_that_is_still_heard_ends_with_its_own_turn_when_a_fault_comes() -> None:
    orders = a_call(
        "gemini", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("exchange", 48), ("typed", 1), ("call", 2), ("away", 1)
    )
    at_rest(orders)
    orders = a_call("native", ("ready", 1), ("exchange", 25), ("user words", 2), ("call", 2), ("lost", 1), ("ready", 1), ("time", 40))
    at_rest(orders)


def test_a_second_fault_settles_what_the_first_one_had_cut() -> None:
    orders = a_call("gemini", ("ready", 1), ("exchange", 25), ("died", 2), ("ready", 1), ("audio", 20), ("away", 1), ("back", 1))
    at_rest(orders)


def test_a_question_is_watched_while_the_cascade_says_the_rest_of_an_answer() -> None:
    orders = a_call("gemini", ("ready", 1), ("user words", 2), ("text", 2), ("done", 1), ("user words", 2), obliging=False)
    at_rest(orders)


def test_a_model_that_says_nothing_after_a_handoff_at_rest_leaves_room_for_announcements() -> None:
    orders = a_call("native", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("operator", 1), ("ready", 1), ("done", 1))
    assert orders.state.realtime is not None
    assert not orders.state.realtime.owed.announces
    happens(orders, "announced", 1)
    assert any("n0-1." in text for text in orders.told)
    at_rest(orders)


def test_what_was_cut_off_while_the_next_reply_was_made_is_put_down_as_far_as_it_was_heard() -> None:
    orders = a_call("gemini", ("ready", 1), ("audio", 1), ("done", 1), ("time", 20), ("typed", 1))
    for _ in range(6):
        orders.audio(1_000)
    happens(orders, "words", 1)
    have(orders, [("call", 2), ("result", 1), ("audio", 20), ("words", 2), ("time", 14), ("interrupted", 1)])
    orders.passes(500)
    (first,) = [one for _, one in orders.appended if isinstance(one, ev.AgentSaid) and "a1" in f"{one.text}{one.unheard}"]
    assert first.interrupted
    assert first.played_ms is not None
    assert first.played_ms < 3_000
    at_rest(orders)


def test_announcements_follow_each_other_without_anybody_saying_anything() -> None:
    orders = a_call("text", ("away", 1), ("announced", 1), ("announced", 2), ("back", 1))
    assert [text for text in spoken(orders) if text.startswith("n")] == ["n0-1.", "n1-2."]
    at_rest(orders)


def test_a_cough_long_after_a_transcription_that_failed_brings_nothing_back() -> None:
    orders = a_call("cascade", ("time", 50), ("typed", 1))
    have(orders, [("effect", 3), ("effect", 2), ("effect", 20), ("speaks", 1), ("pauses", 1)])
    orders.take(inputs.EffectFailed(effect=_transcription(orders), error=_refused()))
    orders.passes(2_000)
    for id in list(orders.effects):
        if isinstance(orders.effects[id].effect, out.Synthesize):
            orders.made_sound(id, 500, done=True)
    orders.passes(120_000)
    before = len(spoken(orders))
    have(orders, [("speaks", 1), ("pauses", 1)])
    orders.take(inputs.Transcribed(effect=_transcription(orders), text=""))
    orders.passes(3_000)
    assert len(spoken(orders)) == before
    at_rest(orders)


def _transcription(orders: Orders) -> int:
    return next(id for id, one in orders.effects.items() if isinstance(one.effect, out.Transcribe) and one.effect.to_ms != out.AUDIO_END)


def _refused() -> ev.Failure:
    return ev.Failure(code="PROVIDER_REFUSED", message="No.", retryable=False)


def test_a_cough_before_the_first_word_of_an_answer_ends_its_turn_once() -> None:
    orders = a_call("cascade", ("time", 50), ("typed", 1), ("speaks", 1), ("pauses", 1))
    orders.take(inputs.Transcribed(effect=_transcription(orders), text=""))
    at_rest(orders)
    assert ended(orders) == [(1, "interrupted"), (2, "completed")]


@pytest.mark.parametrize("up", ["user words", "voice"])
def test_who_speaks_up_silences_what_is_said_for_the_model(up: str) -> None:
    orders = a_call("openai", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("typed", 1), ("text", 2), ("done", 1))
    (id,) = [id for id, one in orders.effects.items() if isinstance(one.effect, out.Synthesize)]
    orders.made_sound(id, 4_000, done=True)
    orders.passes(1_000)
    happens(orders, up, 11)
    assert orders.page.flushed >= 2
    at_rest(orders)


def test_nothing_stays_muted_of_a_turn_that_the_model_has_ended() -> None:
    orders = a_call(
        "native", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("typed", 1), ("exchange", 4), ("words", 1), ("done", 1)
    )
    happens(orders, "gateway lost", 1)
    assert orders.state.realtime is not None
    assert not orders.state.realtime.response.muted
    at_rest(orders)


def test_a_reply_has_no_sound_of_the_one_before_it() -> None:
    orders = a_call(
        "gemini", ("ready", 1), ("audio", 58), ("words", 1), ("user words", 2), ("call", 2), ("result", 1), ("audio", 5), ("words", 2)
    )
    assert orders.state.speech.reply is not None
    assert sum(piece.ms for piece in orders.state.speech.reply.pieces) <= 300
    at_rest(orders)


def test_results_that_wait_for_a_connection_are_all_told() -> None:
    orders = a_call("gemini", ("ready", 1), ("audio", 5), ("done", 1), ("time", 20), ("typed", 1))
    for number in range(20):
        orders.take(provider_events.CallRequested(effect=orders.link, ref=f"r{number}", name="take_long", arguments={}))
    orders.lose(1)
    calls = [one.call_id for _, one in orders.appended if isinstance(one, ev.ToolCalled)]
    for number, call in enumerate(calls):
        orders.log(tools.ToolCompleted(call_id=call, name="take_long", result={"found": f"f{number}."}, ms=1))
    happens(orders, "ready", 1)
    assert all(any(f"f{number}." in text for text in orders.told) for number in range(20))
    at_rest(orders)


def test_messages_of_one_speaker_in_a_row_are_one_for_the_next_model() -> None:
    orders = a_call(
        "realtime first",
        ("ready", 1),
        ("exchange", 15),
        ("done", 1),
        ("time", 40),
        ("announced", 1),
        ("audio", 9),
        ("words", 3),
        ("done", 1),
    )
    orders.passes(5_000)
    orders.log(gateway.HandoffRequested(target="advisor", reason="wanted"))
    at_rest(orders)


def test_who_comes_back_hears_the_rest_in_the_voice_it_was_begun_in() -> None:
    orders = a_call("gemini", ("ready", 1), ("audio", 1), ("done", 1), ("time", 20), ("typed", 1))
    orders.audio(300)
    happens(orders, "words", 1)
    orders.audio(5_000)
    happens(orders, "done", 1)
    orders.passes(1_000)
    happens(orders, "vanished", 1)
    orders.passes(20_000)
    happens(orders, "back", 1)
    assert not any(isinstance(one.effect, out.Synthesize) for one in orders.effects.values())
    assert any("a1" in text and text.startswith("Say this") for text in orders.told)
    at_rest(orders)


def test_an_announcement_that_the_model_passes_over_is_told_again_and_then_said_for_it() -> None:
    orders = a_call("gemini", ("ready", 1), ("audio", 1), ("done", 1), ("time", 20), ("announced", 1), ("done", 1))
    assert sum("n0-1." in text for text in orders.told) == 2
    happens(orders, "done", 1)
    at_rest(orders)
    assert spoken(orders)[-1] == "n0-1."


@pytest.mark.parametrize("team", ["gemini", "cascade"])
def test_a_turn_of_a_page_that_never_reports_is_over_with_its_sound(team: str) -> None:
    orders = a_call(team)
    orders._reports = False
    orders.rest()
    before = len(ended(orders))
    orders.resting = False
    have(orders, [("typed", 1)])
    if team == "gemini":
        orders.audio(2_000)
        have(orders, [("words", 1), ("done", 1)])
    else:
        have(orders, [("effect", 3), ("effect", 2)])
        for id in list(orders.effects):
            orders.made_sound(id, 2_000, done=True)
            for more in list(orders.effects):
                orders.made_sound(more, 0, done=True)
    orders.passes(2_500)
    assert len(ended(orders)) == before + 1


@pytest.mark.parametrize(
    "what",
    [
        [("voice", 53), ("words", 3), ("handle", 26), ("died", 33), ("stopped", 54)],
        [("exchange", 46), ("died", 14), ("stopped", 21)],
        [("done", 1), ("done", 1), ("user words", 33), ("operator", 28), ("ready", 1), ("done", 1)],
    ],
)
def test_a_session_that_nobody_uses_ends_whatever_became_of_its_last_turn(what: list[Thing]) -> None:
    orders = a_call("native", ("ready", 10), *what, obliging=False, reports=False)
    at_rest(orders)
    assert [one.reason for _, one in orders.appended if isinstance(one, ev.SessionEnded)] == ["idle"]


def test_who_speaks_up_while_the_model_has_nothing_to_add_leaves_room_for_announcements() -> None:
    orders = a_call("manual", ("speaks", 25), ("effect", 0), ("words", 3), ("lost", 54), ("effect", 50), obliging=False, filler=True)
    have(orders, [("user words", 7), ("done", 2), ("text", 47)])
    at_rest(orders)
    assert spoken(orders)[-1] == "Welcome."


@pytest.mark.parametrize(
    "what",
    [
        [("going away", 24), ("words", 2), ("time", 37), ("ready", 1), ("audio", 21), ("made", 1), ("time", 35)],
        [("call", 54), ("words", 22), ("lost", 2)],
        [("audio", 7), ("made", 28)],
    ],
)
@pytest.mark.parametrize("team", ["gemini", "openai"])
def test_nothing_is_kept_of_what_was_heard_of_an_answer_that_is_over(team: str, what: list[Thing]) -> None:
    orders = a_call(team, ("ready", 1), *what, obliging=False)
    at_rest(orders)


def test_a_response_that_comes_after_it_was_given_up_is_counted_from_there() -> None:
    orders = a_call("gemini", ("ready", 1), ("done", 1), ("audio", 53), ("time", 55), ("words", 57), ("audio", 6), obliging=False)
    (late,) = [one for one in (orders.state.speech.reply,) if one is not None]
    assert sum(piece.ms for piece in late.pieces) == 260
    at_rest(orders)


def test_an_answer_is_heard_after_the_one_before_it() -> None:
    orders = a_call("native", ("ready", 1), ("exchange", 47), ("exchange", 41))
    orders.passes(3_000)
    assert ended(orders) == [(1, "completed")], "the second one has just begun"
    orders.passes(3_000)
    assert ended(orders) == [(1, "completed"), (2, "completed")]
    at_rest(orders)


def test_words_that_were_made_just_now_have_not_been_heard() -> None:
    orders = a_call("cascade first", ("typed", 1), ("time", 56), ("effect", 56), ("time", 35), obliging=False, filler=True)
    have(orders, [("effect", 36), ("effect", 54), ("effect", 24), ("typed", 2)])
    (first,) = [one for one in told(orders, ev.AgentSaid) if isinstance(one, ev.AgentSaid) and one.turn == 1]
    assert first.played_ms == 1_220
    at_rest(orders)


def test_sound_that_came_late_is_not_heard_before_it_came() -> None:
    orders = a_call("cascade first", ("effect", 7), ("time", 22), ("effect", 55), ("effect", 21), ("fails", 17), reports=False)
    orders.passes(100)
    assert not told(orders, ev.AgentSaid), "240 of 1,960 ms were played: the greeting is said again"
    at_rest(orders)
    assert spoken(orders) == ["Welcome."]


def test_words_that_cover_a_wait_are_heard_only_as_far_as_they_were_played() -> None:
    orders = a_call("gemini", ("ready", 1), ("user words", 13), ("time", 59), obliging=True, filler=True, late_ms=300)
    for id in [id for id, one in orders.effects.items() if isinstance(one.effect, out.Synthesize)]:
        orders.made_sound(id, 1_380, done=True)
    have(orders, [("done", 15), ("audio", 27)])
    assert not any(one.filler for _, one in orders.appended if isinstance(one, ev.AgentSaid))
    at_rest(orders)


@pytest.mark.parametrize(
    ("team", "what"),
    [
        ("gemini", (("ready", 42), ("stopped", 0), ("audio", 58), ("time", 59), ("exchange", 20))),
        ("realtime first", (("announced", 51), ("effect", 16), ("stopped", 4), ("exchange", 40), ("time", 55), ("exchange", 12))),
    ],
)
def test_sound_that_nobody_was_to_hear_is_none_of_the_answer_that_begins_in_the_same_response(team: str, what: tuple[Thing, ...]) -> None:
    at_rest(a_call(team, *what))


@pytest.mark.parametrize("fault", ["gateway lost", "died", "moved"])
def test_an_announcement_whose_voice_failed_leaves_nothing_behind_when_a_fault_follows(fault: str) -> None:
    orders = a_call("gemini", ("effect", 0), ("done", 9), ("done", 23), ("effect", 45), ("fails", 55))
    paused = [orders.state.speech.paused is not None]
    have(orders, [(fault, 7)])
    paused.append(orders.state.speech.paused is not None)
    assert paused == [True, False]
    at_rest(orders)
