"""Symptoms reported by users of other systems, each test with the report; docs/why-silent.md explains how to find the cause here."""

from __future__ import annotations

import pytest

from tests.answers import answers, apologies
from tests.voice.conversation import SID
from tests.voice.live_parts import GREETING, Script
from tests.voice.live_world import LiveWorld
from tests.voice.replaying import replay, stored
from tests.voice.world import World
from voxbridge.services.voice.core import provider_events
from voxbridge.services.voice.core.cascade.speaking import APOLOGIES
from voxbridge.services.voice.core.realtime import connection as realtime_connection
from voxbridge.shared.agents.model import HANDOFF
from voxbridge.shared.events import voice as ev

TWO = {1: Script(calls="look_up", after="A1 found it at last.", cancels=True), 2: Script(says="A2 here I am.")}


def ended(world: World) -> list[tuple[int, str]]:
    """Return number and reason of each ended turn."""
    return [(one.number, one.reason) for one in world.told(ev.TurnCompleted)]


def said(world: World) -> list[str]:
    """Return the answers that were heard."""
    return answers(world.told(ev.AgentSaid))


def test_the_bot_is_silent_for_good_after_an_interruption_during_a_tool_call() -> None:
    """pipecat #3949, PR 4501; agents-js #1124: at any moment the user speaks, the next question is answered."""
    for at in range(2_100, 5_000, 100):
        world = LiveWorld(TWO, filler=True)
        world.executor_ms = 2_000
        world.says(2_000, "Q1 look it up")
        world.speaks(at, "Q2 are you there", for_ms=500)
        world.run(at + 45_000)
        assert said(world)[-1] == "A2 here I am.", at
        assert world.state.speech.reply is None
        assert world.state.display.shown[0] == "listening", at


def test_the_current_speech_is_never_wedged() -> None:
    """agents-js #2065: a reply that was interrupted, resumed, and interrupted for good leaves nothing that blocks the next one."""
    world = LiveWorld({1: Script(says="A1 " + "a long story " * 10), 2: Script(says="A2 here I am.")})
    world.says(2_000, "Q1 tell me")
    world.coughs(3_000)
    world.speaks(8_000, "Q2 and now")
    world.run(60_000)
    assert said(world)[-1] == "A2 here I am."
    assert (world.state.speech.reply, world.state.speech.cut, world.state.speech.broken) == (None, None, None)


def test_a_truncation_counts_no_more_than_was_made() -> None:
    """pipecat #3677: a truncation beyond the audio was refused, and the session was silent for ever."""
    for at in range(2_350, 5_500, 150):
        world = LiveWorld({1: Script(says="A1 some words that are cut off."), 2: Script(says="A2 here I am.")}, filler=True)
        world.says(2_000, "Q1 tell me")
        world.speaks(at, "Q2 are you there", for_ms=400)
        world.run(at + 30_000)
        made = sum(len(word) for word in ["A1", "some", "words", "that", "are", "cut", "off."]) * 60
        assert all(0 <= heard_ms <= made for heard_ms in world.cut_short), at
        assert said(world)[-1] == "A2 here I am.", at


@pytest.mark.parametrize("script", [Script(says="A1 yes.", silent=2), Script(says="A1 yes.", empty=2)], ids=["hangs", "empty"])
def test_a_model_hangs_after_an_interruption_and_nothing_is_shown(script: Script) -> None:
    """livekit #4484, codetrial #64: within the time limit of a turn the request is repeated, then an apology is spoken."""
    world = LiveWorld({1: script, 2: Script(says="A2 a story of many words that is cut off here.")}, filler=True)
    world.says(2_000, "Q2 tell me")
    world.speaks(3_000, "Q1 are you there", for_ms=500)
    world.run(120_000)
    assert len(apologies(world.told(ev.AgentSaid))) == 1
    assert apologies(world.told(ev.AgentSaid))[0] in APOLOGIES.values()
    assert ended(world)[-1] == (2, "failed")
    assert [one.part for one in world.told(ev.ProviderFailed)] == ["llm", "llm"]


def test_a_poisoned_realtime_session_is_begun_again_with_its_context() -> None:
    """livekit/agents #6040: a handle that kills connections is dropped, and the new connection gets the history."""
    world = LiveWorld({1: Script(says="A1 yes."), 2: Script(says="A2 here I am.")})
    world.says(2_000, "Q1 is it")
    world.poisons(10_000)
    world.says(20_000, "Q2 and now")
    world.run(40_000)
    assert said(world) == ["A1 yes.", "A2 here I am."]
    asked = world.connections[-1].asked
    told = " ".join([asked.instructions, *(one.text for one in asked.history)])
    assert "Q1" in told
    assert "A1 yes." in told


@pytest.mark.parametrize("fault", ["drops", "dies", "poisons"])
def test_a_new_connection_neither_greets_again_nor_forgets(fault: str) -> None:
    """adk #5525, #4140, #4996; pipecat #3112; strands harness-sdk PR 4104; openai-agents-python #2111, #1464."""
    world = LiveWorld({1: Script(says="A1 yes."), 2: Script(says="A2 here I am.")}, greets=True)
    world.says(6_000, "Q1 is it")
    getattr(world, fault)(14_000)
    world.says(24_000, "Q2 and now")
    world.run(45_000)
    assert said(world) == [GREETING, "A1 yes.", "A2 here I am."]
    connection = world.connections[-1]
    known = " ".join([connection.knows.instructions, *(part.text for part in connection.knows.parts)])
    assert "Q1" in known


def test_a_session_of_an_hour_outlives_each_end_of_its_provider() -> None:
    """discuss.ai.google.dev 179713 and 186392: after 58 minutes, too, a question is answered and the first ones are known."""
    questions = 6
    world = LiveWorld({number: Script(says=f"A{number} yes.") for number in range(1, questions + 1)})
    for number in range(1, questions + 1):
        world.says(number * 590_000, f"Q{number} is it")
    world.run(3_700_000)
    assert said(world) == [f"A{number} yes." for number in range(1, questions + 1)]
    assert len(world.connections) >= 6
    assert ended(world) == [(number, "completed") for number in range(1, questions + 1)]


def test_the_death_of_a_worker_or_a_deploy_drops_no_call() -> None:
    """cloudflare/agents #1759; livekit/agents #3020, agents-js #1472: the call keeps its state, even in the middle of a sentence."""
    for at in range(2_100, 6_000, 300):
        world = World({"Q": "It is a long answer. It has two sentences."})
        world.says(2_000, "Q")
        world.dies(at)
        world.run(30_000)
        assert ended(world) == [(1, "completed")], at
        assert [one.text for one in world.state.conversation.history] == ["Q", "It is a long answer. It has two sentences."], at


def test_a_call_that_was_interrupted_is_not_made_twice() -> None:
    """tone PR 351, PR 352: a barge-in during a booking caused a second booking."""
    for at in range(2_200, 5_000, 100):
        world = LiveWorld(TWO, filler=True)
        world.executor_ms = 1_500
        world.says(2_000, "Q1 book it")
        world.speaks(at, "Q2 and then", for_ms=400)
        world.run(at + 40_000)
        called = [one for one in world.told(ev.ToolCalled) if one.name != HANDOFF]
        assert len(called) == 1, at


def test_a_real_call_is_a_test_as_it_is() -> None:
    """livekit/agents #6707; agents-js #1400; openai-agents #4795; pipecat #5664: the recorded inputs give the recorded events again."""
    world = LiveWorld(TWO, filler=True, greets=True)
    world.executor_ms = 3_000
    world.says(6_000, "Q1 look it up")
    world.drops(8_000)
    world.speaks(30_000, "Q2 are you there")
    world.run(60_000)
    assert replay(SID, world.log)[1] == stored(world.log)


def test_a_model_that_goes_on_talking_after_it_was_stopped_is_not_heard() -> None:
    """LiveKit's guide to GPT-Live: the model keeps talking though playback was stopped. Here none of that is sent or remembered."""
    world = LiveWorld({1: Script(says="A1 " + "and so on " * 20)})
    world.says(2_000, "Q1 tell me")
    world.run(3_500)
    generation = world.state.counters.generation
    assert world.state.realtime is not None
    effect = world.state.realtime.effect
    world._take(provider_events.UserVoice(effect=effect, speaking=True, audio_ms=3_500))
    world._take(provider_events.Interrupted(effect=effect, audio_ms=3_500))
    world.run(3_600)
    assert world.spoken[generation].flushed
    (cut,) = world.told(ev.AgentSaid)
    assert cut.interrupted
    assert realtime_connection.GO_ON.format(cut.text) not in " ".join(one.text for one in world.state.conversation.history)
