"""Fillers: a wait for a model or a function is covered by a few words, once, without another model's help, and outside the history."""

from __future__ import annotations

from typing import Any

import pytest

from tests.answers import answers
from tests.voice.conversation import SID, Conversation
from tests.voice.live_parts import Script
from tests.voice.live_world import LiveWorld
from tests.voice.replaying import encoded, replay, stored
from tests.voice.world import World
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.turns import filler
from voxbridge.shared.agents.model import Agent, AgentTeam
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

LATE = filler.AFTER_MS + 1


def fillers(said: list[Any]) -> list[str]:
    """Return the fillers in the log."""
    return [one.filler for one in said if one.filler]


def covering(conversation: Conversation) -> list[str]:
    """Return the fillers being synthesised."""
    return [effect.text for _, effect in conversation.effects(out.Synthesize) if effect.whole]


def asked(**options: Any) -> Conversation:
    """Return a conversation with a question that the language model has not begun to answer."""
    conversation = Conversation(filler=True, **options)
    conversation.log(gateway.TextReceived(text="What is it?"))
    return conversation


def makes(conversation: Conversation, ms: int = 700) -> None:
    """Synthesise and send the filler."""
    effect, _ = conversation.last_effect(out.Synthesize)
    conversation.take(inputs.AudioMade(effect=effect, ms=ms, done=True))
    conversation.take(inputs.AudioSent(conversation.state.counters.generation))


# The cascade.


def test_nothing_is_said_before_1200_ms_and_a_few_words_are_after() -> None:
    conversation = asked()
    conversation.pass_ms(filler.AFTER_MS - 1)
    assert covering(conversation) == []
    conversation.pass_ms(1)
    assert covering(conversation) == [filler.phrase("en", SID, 1, 0)]


def test_a_model_that_is_quick_is_not_spoken_over() -> None:
    conversation = asked()
    conversation.pass_ms(filler.AFTER_MS - 100)
    conversation.write("It is noon. ", done=False)
    conversation.pass_ms(20_000)
    assert covering(conversation) == []


def test_an_answer_that_comes_before_the_words_are_sound_takes_their_place() -> None:
    conversation = asked()
    conversation.pass_ms(LATE)
    (effect, _) = conversation.last_effect(out.Synthesize)
    conversation.write("It is noon.")
    assert effect in conversation.cancelled()
    conversation.synthesize()
    conversation.play(1_000, "finished")
    assert [(one.text, one.filler) for one in conversation.events(ev.AgentSaid)] == [("It is noon.", "")]


def test_what_was_said_meanwhile_is_in_the_log_and_in_no_history() -> None:
    conversation = asked()
    conversation.pass_ms(LATE)
    makes(conversation)
    conversation.write("It is noon.")
    conversation.synthesize()
    conversation.play(1_700, "finished")
    (said,) = conversation.events(ev.AgentSaid)
    assert (said.text, said.filler) == ("It is noon.", filler.phrase("en", SID, 1, 0))
    assert [one.text for one in conversation.state.conversation.history] == ["What is it?", "It is noon."]
    (done,) = conversation.events(ev.TurnCompleted)
    assert done.latency.first_audio_sent is not None
    assert done.latency.first_audio_sent >= LATE + 700, "the answer's own sound, not the filler's"


def test_a_function_that_takes_long_is_covered_after_what_was_said_of_it() -> None:
    conversation = asked()
    effect = conversation.write("Let me look.", done=False)
    conversation.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={}))
    conversation.take(inputs.Completed(effect=effect))
    conversation.synthesize(ms_each=2_000)
    conversation.play(0)
    conversation.pass_ms(2_000 + filler.AFTER_MS - 200)
    assert covering(conversation) == []
    conversation.pass_ms(300)
    assert covering(conversation) == [filler.phrase("en", SID, 1, 0)]
    makes(conversation)
    conversation.complete_tool({"time": "12:00"})
    assert conversation.state.conversation.history[-1].role == "tool"
    conversation.write("It is noon.")
    conversation.synthesize()
    conversation.play(9_000, "finished")
    assert [one.text for one in conversation.events(ev.AgentSaid)] == ["Let me look. It is noon."]
    assert [one.text for one in conversation.state.conversation.history if one.role == "assistant"] == ["Let me look.", "It is noon."]


def test_it_is_said_once_in_a_turn_and_again_only_after_ten_more_seconds_of_silence() -> None:
    conversation = asked()
    conversation.pass_ms(LATE)
    makes(conversation)
    conversation.pass_ms(9_000)
    assert len(covering(conversation)) == 1
    conversation.pass_ms(3_000)
    assert covering(conversation)[1:] == [filler.phrase("en", SID, 1, 1)]


def test_no_more_than_three_are_said_in_a_turn() -> None:
    conversation = asked()
    for _ in range(5):
        conversation.pass_ms(5_000)
        effects = [effect for effect, one in conversation.effects(out.Synthesize) if one.whole]
        if conversation.state.speech.reply is not None and not conversation.state.speech.reply.failed:
            for effect in effects:
                conversation.take(inputs.AudioMade(effect=effect, ms=700, done=True))
            conversation.take(inputs.AudioSent(conversation.state.counters.generation))
    assert len(covering(conversation)) <= filler.LIMIT


def test_barge_in_stops_it_and_the_log_has_no_more_than_was_heard() -> None:
    conversation = asked()
    conversation.pass_ms(LATE)
    makes(conversation)
    conversation.play(0)
    conversation.pass_ms(300)
    conversation.take(inputs.VoiceStarted(5_000))
    assert conversation.flushed() == [conversation.state.counters.generation]
    conversation.play(300, "flushed", generation=1)
    assert conversation.events(ev.AgentSaid) == [], "of the words nothing was heard to its end"
    (done,) = conversation.events(ev.TurnCompleted)
    assert done.reason == "interrupted"


def test_an_answer_that_was_cut_behind_it_has_only_the_words_that_were_heard() -> None:
    conversation = asked()
    conversation.pass_ms(LATE)
    makes(conversation, ms=700)
    conversation.write("It is noon in the whole of the town.")
    conversation.synthesize(ms_each=4_000)
    conversation.play(0)
    conversation.pass_ms(1_000)
    conversation.take(inputs.VoiceStarted(5_000))
    conversation.play(700 + 1_000, "flushed", generation=1)
    (said,) = conversation.events(ev.AgentSaid)
    assert said.filler == filler.phrase("en", SID, 1, 0)
    assert said.text == "It is"
    assert said.unheard == "noon in the whole of the town."
    assert conversation.state.conversation.history[-1].text == "It is"


def test_a_cough_over_it_has_the_question_asked_again() -> None:
    conversation = asked()
    conversation.pass_ms(LATE)
    makes(conversation)
    conversation.speak("")
    assert len(conversation.effects(out.Complete)) == 2
    conversation.write("It is noon.")
    conversation.synthesize()
    conversation.play(1_000, "finished")
    assert answers(conversation.events(ev.AgentSaid)) == ["It is noon."]


def test_without_a_voice_there_is_none_and_the_answer_is_as_ever() -> None:
    conversation = asked()
    conversation.pass_ms(LATE)
    effect, _ = conversation.last_effect(out.Synthesize)
    conversation.take(inputs.EffectFailed(effect=effect, error=ev.Failure(code="PROVIDER_UNAVAILABLE", message="away", retryable=True)))
    assert conversation.events(ev.ProviderFailed) == []
    conversation.write("It is noon.")
    conversation.synthesize()
    conversation.play(1_000, "finished")
    assert answers(conversation.events(ev.AgentSaid)) == ["It is noon."]


def test_the_state_says_thinking_again_when_it_was_heard_and_that_it_takes_long() -> None:
    conversation = asked()
    conversation.pass_ms(LATE)
    makes(conversation)
    conversation.play(0)
    assert conversation.states()[-1] == "speaking"
    conversation.pass_ms(1_500)
    assert conversation.states()[-1] == "thinking"
    assert conversation.state.display.shown[1] == "It takes longer than usual."
    conversation.write("It is noon.")
    conversation.synthesize()
    conversation.play(1_700, "finished")
    assert conversation.state.display.shown == ("listening", "")


@pytest.mark.parametrize(
    ("session", "agent", "installation", "said"),
    [
        (None, None, True, True),
        (None, None, False, False),
        (None, False, True, False),
        (None, True, False, True),
        (True, False, False, True),
        (False, True, True, False),
    ],
)
def test_the_session_counts_before_the_agent_and_the_agent_before_the_installation(
    session: bool | None, agent: bool | None, installation: bool, said: bool
) -> None:
    conversation = Conversation(filler=installation, wishes=session, team=AgentTeam(agents=(Agent(name="host", filler=agent),)))
    conversation.log(gateway.TextReceived(text="What is it?"))
    conversation.pass_ms(LATE)
    assert bool(covering(conversation)) is said


def test_nothing_covers_what_is_written() -> None:
    conversation = Conversation(filler=True, team=AgentTeam(agents=(Agent(name="host", output="text"),)))
    conversation.log(gateway.TextReceived(text="What is it?"))
    conversation.pass_ms(20_000)
    assert covering(conversation) == []


def test_words_are_in_the_language_of_the_call_and_english_where_there_are_none() -> None:
    assert filler.phrase("de-AT", SID, 1, 0) in filler.FIRST["de"]
    assert filler.phrase("tlh", SID, 1, 0) in filler.FIRST["en"]
    assert filler.phrase("ja", SID, 1, 1) in filler.FIRST["ja"]
    chosen = {filler.phrase("en", SID, turn, 0) for turn in range(50)}
    assert chosen == set(filler.FIRST["en"]), "all variants are used"
    assert filler.phrase("en", SID, 7, 0) == filler.phrase("en", SID, 7, 0)


def test_a_worker_may_die_at_any_moment_of_it() -> None:
    for at in range(3_000, 7_000, 100):
        world = World({"q": "It is noon here."}, filler=True)
        world.thinks_ms = 4_000
        world.says(1_500, "q")
        world.dies(at)
        world.run(30_000)
        assert [one.reason for one in world.told(ev.TurnCompleted)] == ["completed"], at
        assert " ".join(answers(world.told(ev.AgentSaid))).endswith("It is noon here."), "a sentence half heard is said again"
        assert [one.text for one in world.state.conversation.history] == ["q", "It is noon here."], at


# Realtime models.


def test_a_function_of_a_realtime_model_is_covered_by_the_local_voice() -> None:
    world = LiveWorld({1: Script(calls="look_up", after="A1 found it.")}, filler=True)
    world.executor_ms = 3_000
    world.says(2_000, "Q1 look it up")
    world.run(20_000)
    (said,) = world.told(ev.AgentSaid)
    assert (said.text, said.filler, said.turn) == ("A1 found it.", filler.phrase("", SID, 1, 0), 1)
    assert [text for text, _ in world.heard()] == [said.filler, "A1", "found", "it."]
    assert [one.text for one in world.state.conversation.history if one.role == "assistant" and one.text] == ["A1 found it."]
    assert [one.reason for one in world.told(ev.TurnCompleted)] == ["completed"]
    assert replay(SID, world.log)[1] == stored(world.log)


def test_where_the_model_said_something_first_it_is_covered_behind_that() -> None:
    world = LiveWorld({1: Script(says="A1 let me look.", calls="look_up", after="It is there.")}, filler=True)
    world.executor_ms = 6_000
    world.says(2_000, "Q1 look it up")
    world.run(25_000)
    said = world.told(ev.AgentSaid)
    heard = [text for text, _ in world.heard()]
    words = filler.phrase("", SID, 1, 0)
    assert heard == [*["A1", "let", "me", "look."], words, *["It", "is", "there."]]
    assert " ".join(answers(said)) == "A1 let me look. It is there."
    assert fillers(said) == [words]


def test_a_realtime_model_that_is_late_is_covered() -> None:
    world = LiveWorld({1: Script(says="A1 yes.")}, filler=True)
    world.thinks_ms = 4_000
    world.says(2_000, "Q1 is it")
    world.run(20_000)
    (said,) = world.told(ev.AgentSaid)
    assert (said.text, bool(said.filler)) == ("A1 yes.", True)


def test_a_quick_call_is_not() -> None:
    world = LiveWorld({1: Script(says="A1 yes."), 2: Script(calls="look_up", after="A2 found it.")}, filler=True)
    world.speaks(2_000, "Q1 is it")
    world.says(12_000, "Q2 look it up")
    world.run(30_000)
    assert fillers(world.told(ev.AgentSaid)) == []
    assert answers(world.told(ev.AgentSaid)) == ["A1 yes.", "A2 found it."]


def test_somebody_who_speaks_over_it_silences_it_and_is_answered() -> None:
    world = LiveWorld({1: Script(calls="look_up", after="A1 found it.", cancels=True), 2: Script(says="A2 all right.")}, filler=True)
    world.executor_ms = 8_000
    world.says(2_000, "Q1 look it up")
    world.run(2_000)
    while world.state.speech.reply is None or world.state.speech.reply.playback.sent is None:
        world.run(world.now + 20)
    generation = world.state.speech.reply.generation
    world.speaks(world.now + 10, "Q2 leave it")
    world.run(30_000)
    assert world.spoken[generation].flushed
    assert answers(world.told(ev.AgentSaid)) == ["A2 all right."]
    assert [(one.number, one.reason) for one in world.told(ev.TurnCompleted)] == [(1, "interrupted"), (2, "completed")]


def test_what_was_heard_of_the_answer_behind_it_is_told_to_the_model_without_it() -> None:
    world = LiveWorld(
        {1: Script(calls="look_up", after="A1 this is a long answer with many words in it."), 2: Script(says="A2 yes.")}, filler=True
    )
    world.executor_ms = 3_000
    world.says(2_000, "Q1 look it up")
    world.run(2_000)
    while not world.state.speech.reply or not world.state.speech.reply.connection:
        world.run(world.now + 20)
    world.speaks(world.now + 150, "Q2 stop")
    world.run(40_000)
    cut = next(one for one in world.told(ev.AgentSaid) if one.interrupted)
    played = [text for text, wholly in world.heard() if wholly]
    words = cut.text.split()
    assert words[:-1] == played[1 : len(words)], "but for the word that was cut"
    assert played[0] == cut.filler
    assert world.cut_short[-1] == cut.played_ms - len(cut.filler) * 50


@pytest.mark.parametrize("reports", [True, False])
def test_the_silence_between_it_and_the_answer_does_not_count_as_heard(reports: bool) -> None:
    conversation = asked(protocol="voxbridge.v1" if reports else "vox")
    conversation.pass_ms(LATE)
    makes(conversation, ms=700)
    if reports:
        conversation.play(0)
    conversation.pass_ms(5_000)
    conversation.write("It is noon in the whole of the town.")
    conversation.synthesize(ms_each=4_000)
    conversation.pass_ms(300)
    if reports:
        conversation.play(1_000)
    conversation.pass_ms(700)
    conversation.take(inputs.VoiceStarted(9_000))
    conversation.pass_ms(1_000)
    (said,) = conversation.events(ev.AgentSaid)
    assert said.text in ("It is", "It is noon"), "a second of four, and what a report may take"


def test_a_lost_connection_and_a_lost_worker_take_it_along() -> None:
    for at in range(3_000, 8_000, 100):
        for fault in ("drops", "dies"):
            world = LiveWorld({1: Script(calls="look_up", after="A1 found it."), 2: Script(says="A2 yes.")}, filler=True)
            world.executor_ms = 4_000
            world.says(2_000, "Q1 look it up")
            getattr(world, fault)(at)
            world.says(25_000, "Q2 and")
            world.run(45_000)
            assert [one.number for one in world.told(ev.TurnCompleted)] == [1, 2], (at, fault)
            assert " ".join(answers(world.told(ev.AgentSaid))) == "A1 found it. A2 yes.", (at, fault)
            assert world.state.speech.reply is None, (at, fault)
            assert not world.state.display.waits, (at, fault)
            state, appended = replay(SID, world.log)
            assert appended == stored(world.log)
            assert encoded(state) == encoded(world.state)
