"""A realtime model that stays silent, or is lost for good: the installation's own voice apologises, and no model is told of it."""

from __future__ import annotations

from tests.answers import answers, apologies
from tests.voice.conversation import SID
from tests.voice.live_parts import Script
from tests.voice.live_world import LiveWorld
from tests.voice.replaying import replay, stored
from voxbridge.services.voice.core.cascade.speaking import APOLOGIES, UNSAID
from voxbridge.services.voice.core.realtime.connection import TRIES_LIMIT
from voxbridge.shared.bus.moments import StateChanged
from voxbridge.shared.events import voice as ev

SILENT = {1: Script(says="A1 yes.", empty=2), 2: Script(says="A2 I am here.")}
MUTE = {1: Script(says="A1 yes.", silent=2), 2: Script(says="A2 I am here.")}


def turns_of(world: LiveWorld) -> list[tuple[int, str]]:
    """Return number and reason of each ended turn."""
    return [(one.number, one.reason) for one in world.told(ev.TurnCompleted)]


def heard(world: LiveWorld) -> list[str]:
    """Return the pieces that the page played to their end; realtime models speak word by word."""
    return [text for text, wholly in world.heard() if wholly]


def test_a_model_that_ends_its_turn_twice_without_a_word_is_apologised_for_in_the_same_turn() -> None:
    world = LiveWorld(SILENT)
    world.says(2_000, "Q1 are you there")
    world.says(20_000, "Q2 and now")
    world.run(40_000)
    said = world.told(ev.AgentSaid)
    assert apologies(said) == [APOLOGIES["llm"]]
    assert [(one.turn, one.interrupted) for one in said if one.apology] == [(1, False)]
    assert answers(said) == ["A2 I am here."]
    assert turns_of(world) == [(1, "failed"), (2, "completed")]
    assert " ".join(heard(world)).startswith(APOLOGIES["llm"])


def test_one_that_says_nothing_at_all_is_apologised_for_when_its_time_is_over() -> None:
    world = LiveWorld(MUTE)
    world.speaks(2_000, "Q1 are you there")
    world.speaks(90_000, "Q2 and now")
    world.run(120_000)
    assert apologies(world.told(ev.AgentSaid)) == [APOLOGIES["silence"]]
    assert turns_of(world) == [(1, "failed"), (2, "completed")]


def test_no_model_is_told_of_the_apology() -> None:
    world = LiveWorld(SILENT)
    world.says(2_000, "Q1 are you there")
    world.at(14_900, lambda: world.refused.append((1008, True)))
    world.drops(15_000)
    world.says(20_000, "Q2 and now")
    world.run(40_000)
    assert apologies(world.told(ev.AgentSaid)) != []
    known = [one.text for connection in world.connections for one in connection.asked.history]
    assert any("Q1" in text for text in known)
    assert [text for text in known if "Sorry" in text] == []
    assert [one.text for one in world.state.conversation.history if "Sorry" in one.text] == []


def test_a_user_who_speaks_up_silences_the_apology() -> None:
    world = LiveWorld(SILENT)
    world.says(2_000, "Q1 are you there")
    world.run(2_000)
    while world.state.speech.reply is None:
        world.run(world.now + 50)
    apology = world.state.speech.reply.generation
    asked = world.now + 600
    world.speaks(asked, "Q2 and now", for_ms=900)
    world.run(asked + 20_000)
    (cut,) = [one for one in world.told(ev.AgentSaid) if one.generation == apology]
    assert cut.interrupted
    assert cut.apology
    assert APOLOGIES["llm"].startswith(cut.text)
    assert cut.unheard
    assert world.spoken[apology].flushed
    assert answers(world.told(ev.AgentSaid)) == ["A2 I am here."]
    assert turns_of(world) == [(1, "failed"), (2, "completed")]


def test_what_the_model_was_to_say_of_its_own_accord_is_said_for_it() -> None:
    world = LiveWorld({1: Script(says="A1 yes.")}, greets=True)
    world.mute_notices = True
    world.run(20_000)
    (greeting,) = world.told(ev.AgentSaid)
    assert (greeting.text, greeting.turn, greeting.apology) == ("Welcome to our house.", 0, False)


def test_a_model_that_is_lost_for_good_is_apologised_for_and_then_the_call_ends() -> None:
    world = LiveWorld(SILENT)
    world.says(2_000, "Q2 are you there")
    world.at(12_000, lambda: world.refused.extend([(1008, False)] * TRIES_LIMIT))
    world.drops(12_100)
    world.run(60_000)
    assert apologies(world.told(ev.AgentSaid)) == [APOLOGIES["lost"]]
    (ended,) = world.told(ev.SessionEnded)
    assert ended.reason == "provider_lost"
    assert heard(world)[-1] == APOLOGIES["lost"] or " ".join(heard(world)).endswith(APOLOGIES["lost"])
    kinds = [type(one.event) for one in world.log]
    assert kinds.index(ev.SessionEnded) > len(kinds) - 1 - kinds[::-1].index(ev.AgentSaid)


def test_what_is_typed_meanwhile_ends_the_call_at_once() -> None:
    world = LiveWorld(SILENT)
    world.at(2_000, lambda: world.refused.extend([(1008, False)] * TRIES_LIMIT))
    world.drops(2_100)
    world.run(2_200)
    while world.state.speech.reply is None:
        world.run(world.now + 50)
    world.says(world.now + 300, "Q2 hello")
    world.run(world.now + 1_000)
    (ended,) = world.told(ev.SessionEnded)
    assert ended.reason == "provider_lost"
    assert world.told(ev.UserSaid) == []


def test_where_the_voice_is_away_too_the_words_are_shown_and_the_state_says_why() -> None:
    world = LiveWorld(SILENT)
    world.without_a_voice = True
    states: list[StateChanged] = []
    world.on_moment = lambda moment: states.append(moment) if isinstance(moment, StateChanged) else None
    world.says(2_000, "Q1 are you there")
    world.run(15_000)
    (apology,) = [one for one in world.told(ev.AgentSaid) if one.apology]
    assert (apology.text, apology.unheard) == ("", APOLOGIES["llm"])
    assert states[-1] == StateChanged("listening", UNSAID)
    assert turns_of(world) == [(1, "failed")]
    world.without_a_voice = False
    world.says(16_000, "Q2 and now")
    world.run(30_000)
    assert states[-1] == StateChanged("listening")
    assert turns_of(world) == [(1, "failed"), (2, "completed")]


def test_a_call_with_apologies_replays_to_the_same_events() -> None:
    world = LiveWorld(SILENT, greets=True)
    world.says(6_000, "Q1 are you there")
    world.run(30_000)
    assert replay(SID, world.log)[1] == stored(world.log)


def test_a_journal_from_before_has_no_apology_in_it() -> None:
    world = LiveWorld(SILENT, filler=None)
    world.says(2_000, "Q1 are you there")
    world.run(20_000)
    assert world.told(ev.AgentSaid) == []
    assert turns_of(world) == [(1, "failed")]
