"""Noises such as a cough or a door: a voice without words lets a realtime model continue with the part that was not heard."""

from __future__ import annotations

import pytest

from tests.answers import answers
from tests.voice.conversation import SID
from tests.voice.live_parts import Script
from tests.voice.live_world import LiveWorld
from tests.voice.replaying import encoded, replay, stored
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core import provider_events
from voxbridge.services.voice.core.realtime import noises
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

STORY = "A1 once upon a time there was a king who had three daughters and a crown."
SCRIPTS = {1: Script(says=STORY), 2: Script(says="A2 yes.")}


def told(world: LiveWorld) -> str:
    """Return all words heard of the agent, as they were played."""
    return " ".join(word for word, wholly in world.heard() if wholly)


def interrupted(scripts: dict[int, Script] = SCRIPTS) -> LiveWorld:
    """Return a story that is cut off by a noise after its first words."""
    world = LiveWorld(scripts)
    world.says(2_000, "Q1 tell me")
    world.coughs(3_200)
    return world


def test_the_story_goes_on_after_the_words_that_were_heard() -> None:
    world = interrupted()
    world.run(30_000)
    first, rest = world.told(ev.AgentSaid)
    assert first.interrupted
    assert (rest.interrupted, rest.turn) == (False, 0)
    assert f"{first.text} {rest.text}" == STORY
    assert told(world).split()[-1] == "crown."
    assert [(one.number, one.reason) for one in world.told(ev.TurnCompleted)] == [(1, "interrupted")]
    assert world.state.display.shown == ("listening", "")
    assert replay(SID, world.log)[1] == stored(world.log)


def test_words_that_come_are_answered_and_the_story_is_over() -> None:
    world = LiveWorld(SCRIPTS)
    world.says(2_000, "Q1 tell me")
    world.speaks(3_000, "Q2 stop it")
    world.run(30_000)
    assert answers(world.told(ev.AgentSaid))[1:] == ["A2 yes."]


def test_what_is_typed_meanwhile_is_answered_instead() -> None:
    world = interrupted()
    world.says(4_500, "Q2 never mind")
    world.run(30_000)
    assert answers(world.told(ev.AgentSaid))[1:] == ["A2 yes."]


def test_a_noise_before_the_first_word_has_the_question_answered_after_all() -> None:
    world = LiveWorld(SCRIPTS)
    world.thinks_ms = 2_000
    world.says(2_000, "Q1 tell me")
    world.at(4_020, world._onset)
    world.run(40_000)
    assert STORY in " ".join(answers(world.told(ev.AgentSaid)))


def test_a_person_who_pressed_stop_is_not_told_the_rest() -> None:
    world = LiveWorld(SCRIPTS)
    world.says(2_000, "Q1 tell me")
    world.at(3_200, lambda: world._written("gateway", gateway.InterruptRequested()))
    world.run(30_000)
    (said,) = world.told(ev.AgentSaid)
    assert said.interrupted


def test_it_goes_on_over_a_lost_connection_and_a_lost_worker() -> None:
    for fault in ("drops", "dies"):
        for at in range(3_300, 8_000, 100):
            world = interrupted()
            getattr(world, fault)(at)
            world.run(60_000)
            assert told(world).split()[-1] == "crown.", (fault, at)
            assert world.state.speech.broken is None
            assert replay(SID, world.log)[1] == stored(world.log)
            assert encoded(replay(SID, world.log)[0]) == encoded(world.state)


@pytest.mark.parametrize("text", ["", "  "])
def test_a_provider_that_says_there_were_no_words_is_believed_at_once(text: str) -> None:
    world = interrupted()
    effect = world.state.realtime.effect if world.state.realtime else 0
    world.run(3_700)
    assert world.state.realtime is not None
    effect = world.state.realtime.effect
    world._take(provider_events.UserVoice(effect=effect, speaking=True, audio_ms=3_700))
    world._take(provider_events.UserVoice(effect=effect, speaking=False, audio_ms=3_900))
    asked: list[out.Say] = []
    world.on_say = asked.append
    world._take(provider_events.UserWords(effect=effect, text=text, item="i", whole=True, audio_ms=3_900))
    assert len(asked) == 1
    assert "A1" in asked[0].text


def test_while_somebody_speaks_their_words_are_waited_for() -> None:
    world = interrupted()
    world.run(3_700)
    assert world.state.realtime is not None
    effect = world.state.realtime.effect
    world._take(provider_events.UserVoice(effect=effect, speaking=True, audio_ms=3_700))
    world.run(3_700 + 3 * noises.WAIT_MS)
    assert len(world.told(ev.AgentSaid)) == 1
    world._take(provider_events.UserVoice(effect=effect, speaking=False, audio_ms=13_000))
    world.run(30_000)
    assert " ".join(answers(world.told(ev.AgentSaid))) == STORY
