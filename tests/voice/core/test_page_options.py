"""Choices of a page, and what it is told: greeting, words that stop the agent, push-to-talk, interim words, reset, limits."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.voice.conversation import SID, START_US, Conversation
from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core import outputs as out
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import Agent, AgentTeam, ModelName
from voxbridge.shared.bus.moments import GreetingBegun, ReplyWritten
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.gateway import PublicKey, SessionOptions
from voxbridge.shared.macros.triggers import Spoken

SHOP = PublicKey(id="0123456789ab", live=True, seconds=300, tokens=100)
HANDLER = Function(name="get_weather", description="Weather.", parameters={"type": "object"}, kind="customer")


class PageCall(Conversation):
    """A call of a page with options and, perhaps, a key."""

    def __init__(
        self,
        options: SessionOptions | None = None,
        *,
        key: PublicKey | None = None,
        team: AgentTeam | None = None,
        greeting: str = "",
        macros: tuple[Spoken, ...] = (),
        mode: gateway.Mode = "local",
        functions: tuple[Function, ...] = (HANDLER,),
    ) -> None:
        self._options, self._key = options or SessionOptions(), key
        super().__init__(team=team, greeting=greeting, macros=macros, functions=functions, providers=("local", "echo", "gemini"), mode=mode)

    def log(self, event: Any) -> list[Any]:
        """Take an event of the log; the request has the page's options."""
        if isinstance(event, gateway.SessionRequested):
            client = gateway.ClientCapabilities(protocol="voxbridge.v1", chat=True)
            event = msgspec.structs.replace(event, options=self._options, key=self._key, client=client)
        return super().log(event)

    def told(self, kind: type[Any]) -> list[Any]:
        """Return the moments of a kind."""
        return [o.moment for o in self.outputs if isinstance(o, out.Tell) and isinstance(o.moment, kind)]


@pytest.mark.parametrize(("wanted", "said"), [(None, "Of the house."), ("", None), ("Hey!", "Hey!")])
def test_a_greeting_is_the_pages_the_installations_or_none(wanted: str | None, said: str | None) -> None:
    call = PageCall(SessionOptions(greeting=wanted), greeting="Of the house.")
    assert [one.text for one in call.told(GreetingBegun)] == ([] if said is None else [said])
    assert [effect.text for _, effect in call.effects(out.Synthesize)] == ([] if said is None else [said])
    assert call.told(ReplyWritten) == [], "the words of a greeting are told once"


def test_language_speed_and_cleaner_reach_the_models() -> None:
    call = PageCall(SessionOptions(language="de", speed=1.5, cleaner=False, greeting="Hallo."))
    _, spoken = call.last_effect(out.Synthesize)
    assert (spoken.language, spoken.speed, spoken.cleaned) == ("de", 1.5, False)
    call.take(inputs.VoiceStarted(0))
    call.take(inputs.VoiceStopped(900, 256))
    assert call.last_effect(out.Transcribe)[1].language == "de"


def test_a_call_has_the_time_zone_of_its_person() -> None:
    call = PageCall(SessionOptions(time_zone="Europe/Lisbon"))
    call.speak("What is the weather?")
    call.take(inputs.ToolRequested(effect=call.last_effect(out.Complete)[0], name="get_weather", arguments={}))
    call.take(inputs.Completed(effect=call.last_effect(out.Complete)[0]))
    call.pass_ms(700)
    assert call.events(ev.ToolCalled)[0].time_zone == "Europe/Lisbon"


def test_the_whole_text_of_a_reply_is_told_with_its_steps_before_its_sound_ends() -> None:
    call = PageCall()
    call.speak("What is the weather?")
    call.take(inputs.ToolRequested(effect=call.last_effect(out.Complete)[0], name="get_weather", arguments={}))
    call.take(inputs.Completed(effect=call.last_effect(out.Complete)[0]))
    call.pass_ms(700)
    assert call.events(ev.ToolCalled)[0].kind == "customer"
    call.complete_tool({"success": True})
    call.write("It is ", "sunny. ", "Enjoy it.")
    assert call.told(ReplyWritten) == [ReplyWritten("It is sunny. Enjoy it.", turn=1, generation=1, calls=("get_weather",))]
    assert not [o for o in call.outputs if isinstance(o, out.FinishSpeech)]
    call.synthesize()
    call.play(2_000, "finished")
    assert len(call.told(ReplyWritten)) == 1


def test_the_text_of_a_reply_that_a_fault_stopped_is_told_once() -> None:
    call = PageCall()
    call.speak("Tell me.")
    call.write("One sentence. ", "And another one.")
    call.synthesize()
    call.log(gateway.ClientDisconnected(gateway="", connection="", reason="closed", last_seq=0))
    call.log(gateway.ClientConnected(gateway="g", connection="c", resumed=True))
    call.play(1_000, "flushed")
    call.synthesize()
    assert len(call.told(ReplyWritten)) == 1


@pytest.mark.parametrize(("words", "stops"), [("no", False), ("no wait a moment", True)])
def test_too_few_words_do_not_stop_the_agent(words: str, stops: bool) -> None:
    call = PageCall(SessionOptions(barge_in_words=3))
    call.speak("Tell me a story.")
    call.write("Once upon a time. ", "There was a king.")
    call.synthesize(ms_each=4_000)
    call.play(100)
    call.take(inputs.VoiceStarted(5_000))
    assert call.flushed() == [], "a voice alone stops nothing"
    call.take(inputs.VoiceStopped(5_900, 256))
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.9))
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text=words))
    assert bool(call.flushed()) is stops
    assert [one.text for one in call.events(ev.UserSaid)][1:] == ([words] if stops else [])
    assert call.state.utterance is None
    if not stops:
        assert call.partials("user")[-1] == "", "what was shown of them is taken back"


def test_words_that_are_still_said_stop_the_agent_as_soon_as_they_are_enough() -> None:
    call = PageCall(SessionOptions(barge_in_words=2, interim=False))
    call.speak("Tell me a story.")
    call.write("Once upon a time. ", "There was a king.")
    call.synthesize(ms_each=4_000)
    call.play(100)
    call.take(inputs.VoiceStarted(5_000))
    call.pass_ms(800)
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text="please stop"))
    assert call.flushed() == [1]
    assert call.partials("user") == [], "unfinished words are not wanted"


def test_a_page_that_pushes_to_talk_ends_its_turn_itself() -> None:
    call = PageCall(SessionOptions(push_to_talk=True))
    call.take(inputs.VoiceStarted(0))
    call.pass_ms(500)
    call.take(inputs.VoiceStopped(500, 256))
    call.pass_ms(60_000)
    assert call.events(ev.SpeechEnded) == [], "no silence ends it"
    call.take(inputs.VoiceStarted(60_600))
    call.log(gateway.AudioEnded())
    effect, heard = call.last_effect(out.Transcribe)
    assert (heard.from_ms, heard.to_ms >= out.AUDIO_END) == (0, True)
    call.take(inputs.Transcribed(effect=effect, text="all of it"))
    assert [one.text for one in call.events(ev.UserSaid)] == ["all of it"]


def test_without_interim_words_none_are_transcribed() -> None:
    call = PageCall(SessionOptions(interim=False))
    call.take(inputs.VoiceStarted(0))
    call.pass_ms(5_000)
    assert call.effects(out.Transcribe) == []


@pytest.mark.parametrize("options", [SessionOptions(speed=1.5), SessionOptions(barge_in_words=1), SessionOptions(push_to_talk=True)])
def test_what_a_model_that_speaks_itself_decides_cannot_be_set(options: SessionOptions) -> None:
    team = AgentTeam(agents=(Agent(name="live", realtime=ModelName("gemini", "")),))
    ended = PageCall(options, team=team).events(ev.SessionEnded)
    assert ended[0].error is not None
    assert (ended[0].reason, ended[0].error.code) == ("refused", "INVALID_ARGUMENT")


def test_after_a_reset_the_history_is_empty_and_the_session_the_same() -> None:
    call = PageCall()
    call.speak("My name is Ada.")
    call.write("Hello ", "Ada. ", "How are you?")
    call.synthesize()
    call.play(100)
    call.log(gateway.ResetRequested())
    assert call.flushed() == [1]
    assert call.events(ev.ConversationReset) == [ev.ConversationReset(turns=1)]
    assert call.events(ev.TurnCompleted)[0].reason == "interrupted"
    assert call.state.phase == "open"
    call.speak("What is my name?")
    texts = [message.text for message in call.last_effect(out.Complete)[1].messages]
    assert texts[1:] == ["What is my name?"]
    assert call.events(ev.UserSaid)[-1].turn == 2


def test_a_reset_during_speech_forgets_it_and_stops_calls() -> None:
    call = PageCall()
    call.speak("What is the weather?")
    call.take(inputs.ToolRequested(effect=call.last_effect(out.Complete)[0], name="get_weather", arguments={}))
    call.pass_ms(700)
    call.take(inputs.VoiceStarted(9_000))
    call.log(gateway.ResetRequested())
    assert call.state.utterance is None
    assert [one.name for one in call.events(ev.ToolCancelled)] == ["get_weather"]
    assert call.state.conversation.history == ()
    call.complete_tool({"success": True})
    assert call.state.conversation.history == ()


def test_a_stranger_has_nothing_of_the_installation_or_of_the_account() -> None:
    call = PageCall(key=SHOP, macros=(Spoken("lights off", ("lights off",)),))
    assert [function.name for function in call.state.team.functions] == ["get_weather"]
    assert call.state.team.macros == ()
    call.take(inputs.MacrosChanged((Spoken("lights off", ("lights off",)),)))
    call.take(inputs.UnheardChanged(("task",)))
    assert (call.state.team.macros, call.state.pending.unheard) == ((), ())


def test_a_key_offers_the_functions_that_it_names() -> None:
    call = PageCall(key=msgspec.structs.replace(SHOP, functions=("current_time",)))
    assert [function.name for function in call.state.team.functions] == ["current_time", "get_weather"]


def test_the_time_of_a_call_ends_it_when_its_answer_was_heard() -> None:
    call = PageCall(key=SHOP)
    call.pass_ms(298_200)
    call.speak("One more question.")
    call.write("Here is ", "the answer.")
    call.synthesize(ms_each=9_000)
    call.pass_ms(2_000)
    assert call.now_ms > 300_000
    assert call.events(ev.SessionEnded) == [], "an answer that is being heard is heard to its end"
    call.play(9_000, "finished")
    call.pass_ms(1_000)
    (ended,) = call.events(ev.SessionEnded)
    assert ended.error is not None
    assert (ended.reason, ended.error.code) == ("time_limit", "RATE_LIMITED")


def test_the_tokens_of_a_call_end_it_after_the_answer_that_took_them() -> None:
    call = PageCall(key=SHOP)
    call.speak("A question.")
    effect, _ = call.last_effect(out.Complete)
    call.take(inputs.TextDelta(effect, "The answer."))
    call.take(inputs.Completed(effect=effect, input_tokens=90, output_tokens=10))
    assert call.events(ev.SessionEnded) == []
    call.synthesize()
    call.play(1_000, "finished")
    (ended,) = call.events(ev.SessionEnded)
    assert ended.reason == "token_limit"


def test_a_call_below_its_tokens_goes_on() -> None:
    call = PageCall(key=SHOP)
    call.speak("A question.")
    effect, _ = call.last_effect(out.Complete)
    call.take(inputs.TextDelta(effect, "The answer."))
    call.take(inputs.Completed(effect=effect, input_tokens=89, output_tokens=10))
    call.synthesize()
    call.play(1_000, "finished")
    assert call.state.phase == "open"


def test_the_same_inputs_lead_to_the_same_state() -> None:
    call = PageCall(SessionOptions(greeting="Hey!"), key=SHOP)
    call.speak("My name is Ada.")
    call.log(gateway.ResetRequested())
    state = step.initial(SID)
    for at, taken in call.inputs:
        state, _ = step.step(state, taken, at)
    assert msgspec.to_builtins(state) == msgspec.to_builtins(call.state)
    assert call.inputs[0][0] == START_US
