"""Going on in text, or by voice, in one conversation."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.voice.core.test_page_options import PageCall
from voxbridge.services.voice.core import capabilities, inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.provider_events import (
    AgentAudio,
    AgentWords,
    GenerationDone,
    ModelTurnDone,
    ProviderLost,
    ProviderReady,
    UserWords,
)
from voxbridge.services.voice.core.realtime import connection
from voxbridge.shared.agents import talking
from voxbridge.shared.agents.model import Agent, AgentTeam, ModelName
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.gateway import OutputRequested, SessionOptions


def routes(call: PageCall) -> list[str]:
    return [one.microphone for one in call.outputs if isinstance(one, out.Route)]


def typed(call: PageCall, text: str, answer: str) -> None:
    call.log(gateway.TextReceived(text=text))
    call.write(answer)


def test_a_conversation_that_begins_in_text_is_spoken_from_the_switch_on_and_remembers() -> None:
    call = PageCall(SessionOptions(output="text", greeting="Hello."))
    typed(call, "My name is Ada.", "Good day, Ada.")
    assert (routes(call), call.effects(out.Synthesize)) == (["nobody"], [])
    assert call.events(ev.AgentSaid)[-1].text == "Good day, Ada."
    call.log(OutputRequested(output="audio"))
    assert routes(call) == ["nobody", "detector"]
    typed(call, "What is my name?", "You are Ada.")
    assert [effect.text for _, effect in call.effects(out.Synthesize)] == ["You are Ada."]
    texts = [message.text for message in call.last_effect(out.Complete)[1].messages]
    assert texts[-3:] == ["My name is Ada.", "Good day, Ada.", "What is my name?"]


def test_a_switch_to_text_stops_the_speech_and_what_is_being_said() -> None:
    call = PageCall()
    call.speak("Tell me a story.")
    call.write("Once upon a time. ", "There was a fox. ", "It slept.")
    call.synthesize()
    call.play(300)
    call.take(inputs.VoiceStarted(9_000))
    call.log(OutputRequested(output="text"))
    assert call.state.utterance is None
    assert (call.flushed(), routes(call)[-1]) == ([1], "nobody")
    spoken = len(call.effects(out.Synthesize))
    typed(call, "And then?", "It woke.")
    assert len(call.effects(out.Synthesize)) == spoken
    assert [one.output for one in call.events(ev.OutputChanged)] == ["text"]


def test_a_switch_to_what_it_is_already_changes_nothing() -> None:
    call = PageCall()
    call.log(OutputRequested(output="audio"))
    assert (call.events(ev.OutputChanged), routes(call)) == ([], ["detector"])


def test_an_agent_that_takes_over_answers_as_the_user_last_wanted() -> None:
    team = AgentTeam(
        agents=(
            Agent(name="first", handoffs=("second",)),
            Agent(name="second", llm=ModelName("anthropic", "")),
            Agent(name="live", realtime=ModelName("gemini", "")),
        )
    )
    call = PageCall(team=team)
    call.log(OutputRequested(output="text"))
    assert [agent.output for agent in call.state.team.agents] == ["text", "text", "text"]


LIVE = AgentTeam(agents=(Agent(name="live", realtime=ModelName("gemini", "")),))


def live(**given: Any) -> PageCall:
    return PageCall(SessionOptions(output="text"), team=LIVE, **given)


def test_in_text_a_model_of_its_provider_writes_in_place_of_one_that_speaks_itself() -> None:
    call = live()
    started = call.events(ev.SessionStarted)[-1]
    assert (started.output, started.model, routes(call)) == ("text", capabilities.TEXT_MODELS["gemini"], ["nobody"])
    assert (call.effects(out.Connect), call.state.realtime) == ([], None)
    typed(call, "My name is Ada.", "Good day, Ada.")
    assert call.last_effect(out.Complete)[1].provider == "gemini"
    assert call.effects(out.Synthesize) == []
    call.log(OutputRequested(output="audio"))
    connects = call.last_effect(out.Connect)[1]
    assert [message.text for message in connects.history] == ["My name is Ada.", "Good day, Ada."]
    assert (connects.model, routes(call)[-1], call.state.team.output) == (capabilities.DEFAULT_MODELS["gemini"], "provider", "audio")


def test_what_is_typed_before_it_listens_is_answered_by_the_model_that_speaks() -> None:
    call = live()
    typed(call, "Hello.", "Hello to you.")
    call.log(OutputRequested(output="audio"))
    call.log(gateway.TextReceived(text="Tell me a joke."))
    call.take(ProviderReady(effect=call.last_effect(out.Connect)[0], audio_ms=0))
    assert [one.text for one in call.outputs if isinstance(one, out.Say)] == ["Tell me a joke."], "no fault is told of: there was none"


def test_what_was_spoken_is_known_in_text_and_is_not_heard_again_by_voice() -> None:
    call = live()
    call.log(OutputRequested(output="audio"))
    effect = call.last_effect(out.Connect)[0]
    call.take(ProviderReady(effect=effect, audio_ms=0))
    call.take(UserWords(effect=effect, text="I like trains.", audio_ms=2_400, whole=True))
    call.take(AgentAudio(effect=effect, audio_ms=2_600, ms=500))
    call.take(AgentWords(effect=effect, text="So do I.", ms=500))
    call.take(GenerationDone(effect=effect))
    call.take(ModelTurnDone(effect=effect))
    call.play(500, "finished")
    call.log(OutputRequested(output="text"))
    assert (call.state.realtime, routes(call)[-1]) == (None, "nobody")
    call.log(gateway.TextReceived(text="What do I like?"))
    assert [message.text for message in call.last_effect(out.Complete)[1].messages][-3:] == [
        "I like trains.",
        "So do I.",
        "What do I like?",
    ]
    call.write("Trains.")
    call.log(OutputRequested(output="audio"))
    assert call.last_effect(out.Connect)[1].audio_from_ms == 2_600, "and what was said before is over"


def test_a_voice_that_cannot_be_reached_leaves_the_conversation_in_text_and_what_was_asked_is_answered() -> None:
    call = live()
    call.log(OutputRequested(output="audio"))
    call.log(gateway.TextReceived(text="Tell me a joke."))
    for _ in range(connection.TRIES_LIMIT):
        error = ev.Failure(code="PROVIDER_UNAVAILABLE", message="Nobody answers.", retryable=True)
        call.take(ProviderLost(effect=call.last_effect(out.Connect)[0], code=1011, error=error))
    changed = call.events(ev.OutputChanged)[-1]
    assert (changed.output, changed.reason) == ("text", "The voice is away at the moment, so we go on in text. Nobody answers.")
    assert [one.handled for one in call.events(ev.ProviderFailed)] == [True]
    assert call.last_effect(out.Complete)[1].messages[-1].text == "Tell me a joke."
    call.write("A horse walks into a bar.")
    assert call.events(ev.AgentSaid)[-1].text == "A horse walks into a bar."
    assert [(one.number, one.reason) for one in call.events(ev.TurnCompleted)] == [(1, "completed")]
    assert call.state.phase == "open"


def test_a_page_that_switches_all_the_time_begins_few_connections() -> None:
    call = live()
    for _ in range(200):
        call.log(OutputRequested(output="audio"))
        call.log(OutputRequested(output="text"))
    waits = [effect.delay_ms for _, effect in call.effects(out.Connect)]
    assert waits[: connection.BEGUN_AT_ONCE] == [0] * connection.BEGUN_AT_ONCE
    assert {*waits[connection.BEGUN_AT_ONCE :]} == {connection.BEGUN_EVERY_MS}, "each of them is left before it is opened"
    call.pass_ms((connection.BEGUN_AT_ONCE + 1) * connection.BEGUN_EVERY_MS)
    call.log(OutputRequested(output="audio"))
    assert call.last_effect(out.Connect)[1].delay_ms == 0


def test_a_call_that_began_by_voice_ends_with_the_model_that_speaks() -> None:
    call = PageCall(team=LIVE)
    for _ in range(connection.TRIES_LIMIT):
        error = ev.Failure(code="PROVIDER_UNAVAILABLE", message="Nobody answers.", retryable=True)
        call.take(ProviderLost(effect=call.last_effect(out.Connect)[0], code=1011, error=error))
    assert call.events(ev.OutputChanged) == []
    assert call.state.pending.ending is not None, "it apologises, and ends then"


def test_a_call_of_before_that_rule_goes_on_speaking() -> None:
    call = PageCall(team=LIVE)
    call.state.settings = msgspec.structs.replace(call.state.settings, rules=inputs.WRITES - 1)
    call.log(OutputRequested(output="text"))
    assert (call.state.phase, call.state.team.output, call.events(ev.OutputChanged)) == ("open", "audio", [])


def test_what_leads_to_where_one_is_already_is_not_offered() -> None:
    call = PageCall(SessionOptions(output="text"), functions=(talking.START, talking.END))
    typed(call, "Hello.", "Hello to you.")
    call.log(OutputRequested(output="audio"))
    typed(call, "And now?", "We talk.")
    offered = [{one.name for one in asked.functions if one.name.endswith("session")} for _, asked in call.effects(out.Complete)]
    assert offered == [{"start_voice_session"}, {"end_voice_session"}]


def shown(call: PageCall) -> list[str]:
    """Return what the client was shown of unfinished answers, greetings aside."""
    moments = [one.moment for one in call.outputs if isinstance(one, out.Tell)]
    return [one.text for one in moments if isinstance(one, PartialTranscript) and one.role == "assistant" and one.turn > 0]


def deltas(call: PageCall, *parts: str) -> None:
    effect = call.last_effect(out.Complete)[0]
    for part in parts:
        call.take(inputs.TextDelta(effect=effect, text=part))


def test_a_written_answer_is_shown_word_by_word() -> None:
    call = PageCall(SessionOptions(output="text"))
    call.log(gateway.TextReceived(text="Where is it?"))
    deltas(call, "It is", " in **Paris**", ". See", " [the map](https://maps", ".example/1)", " of it.")
    assert shown(call) == [
        "It is",
        "It is in Paris",
        "It is in Paris. See",
        "It is in Paris. See",
        "It is in Paris. See the map",
        "It is in Paris. See the map of it.",
    ]
    call.take(inputs.Completed(effect=call.last_effect(out.Complete)[0], input_tokens=1, output_tokens=1))
    assert call.events(ev.AgentSaid)[-1].text == "It is in Paris. See the map of it."


def test_a_spoken_answer_is_shown_sentence_by_sentence() -> None:
    call = PageCall()
    call.speak("Where is it?")
    deltas(call, "It is", " in Paris. ", "See the map.")
    assert shown(call) == ["It is in Paris."]


def test_a_written_answer_that_is_stopped_was_read_as_far_as_it_was_shown() -> None:
    call = PageCall(SessionOptions(output="text"))
    call.log(gateway.TextReceived(text="Where is it?"))
    deltas(call, "It is in Paris. ", "See [the m")
    call.log(gateway.TextReceived(text="Never mind."))
    stopped = next(one for one in call.events(ev.AgentSaid) if one.turn == 1)
    assert (stopped.text, stopped.unheard, stopped.interrupted) == ("It is in Paris. See", "", True)
    texts = [message.text for message in call.last_effect(out.Complete)[1].messages]
    assert texts[-3:] == ["Where is it?", "It is in Paris. See", "Never mind."]


def test_a_spoken_answer_that_is_stopped_by_text_counts_as_far_as_it_was_heard() -> None:
    call = PageCall()
    call.speak("Where is it?")
    call.write("It is in Paris. ", "See the map.")
    call.log(OutputRequested(output="text"))
    stopped = next(one for one in call.events(ev.AgentSaid) if one.turn == 1)
    assert (stopped.text, stopped.unheard, stopped.interrupted) == ("", "It is in Paris. See the map.", True)
