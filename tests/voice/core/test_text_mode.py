"""Going on in text, or by voice, in one conversation."""

from __future__ import annotations

from tests.voice.core.test_page_options import PageCall
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.shared.agents.model import Agent, AgentTeam, ModelName
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
    assert [agent.output for agent in call.state.team.agents] == ["text", "text", "audio"]


def test_a_model_that_speaks_itself_goes_on_speaking() -> None:
    call = PageCall(SessionOptions(output="text"), team=AgentTeam(agents=(Agent(name="live", realtime=ModelName("gemini", "")),)))
    call.log(OutputRequested(output="text"))
    assert (call.state.phase, call.state.team.output, call.events(ev.OutputChanged)) == ("open", "audio", [])
