"""Crashes and cuts at every moment of a call, in virtual time: the heard audio and the log stay consistent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.voice.conversation import SID
from tests.voice.replaying import _decoder, causes_come_first, encoded, replay, stored
from tests.voice.world import World
from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.outstanding import Outstanding
from voxbridge.shared import events
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.journal import VoiceJournal
from voxbridge.shared.step.fold import fold
from voxbridge.shared.step.journal import LogInput

ANSWERS = {
    "Tea?": "Tea is a hot drink. It comes from leaves of a bush. People like it in the morning.",
    "Time?": ("One moment please.", "current_time"),
    "result": "It is noon now.",
    "Thanks": "You are welcome.",
}
TEA = ["Tea is a hot drink.", "It comes from leaves of a bush.", "People like it in the morning."]
NOON = ["One moment please.", "It is noon now."]
EVERY_MS = 97
Story = Callable[[World, int], None]


def killed(world: World, at: int) -> None:
    world.dies(at)


def killed_twice(world: World, at: int) -> None:
    world.dies(at)
    world.dies(at + 3_200 + at % 1_500)


def cut_off(world: World, at: int) -> None:
    world.leaves(at, for_ms=2_500)


def cut_off_unnoticed(world: World, at: int) -> None:
    world.leaves(at, for_ms=2_500, told=False)


def killed_and_cut_off(world: World, at: int) -> None:
    world.dies(at)
    world.leaves(at + 700, for_ms=at % 5 * 1_000 + 500)


def one_story(world: World, pieces: list[str], said: list[str], *, parts: int) -> None:
    """Check that everything was heard once, except one partial sentence for each cut; each turn ended once; each call was made once."""
    heard = world.heard()
    assert [text for text, wholly in heard if wholly] == pieces
    assert sum(not wholly for _, wholly in heard) <= parts
    assert [one.text for one in world.told(ev.UserSaid)] == said
    assert [(one.number, one.reason) for one in world.told(ev.TurnCompleted)] == [(n + 1, "completed") for n in range(len(said))]
    calls = [one.call_id for one in world.told(ev.ToolCalled)]
    assert len(set(calls)) == len(calls) == ("Time?" in said)
    assert [one.how for one in world.told(ev.ToolDelivered)] == ["response"] * len(calls)
    assert replay(SID, world.log)[1] == stored(world.log)
    assert causes_come_first(world.log)


@pytest.mark.parametrize("reports", [True, False], ids=["a page that reports", "a client that does not"])
@pytest.mark.parametrize("story", [killed, killed_twice], ids=lambda story: story.__name__)
def test_a_worker_may_die_at_any_moment_of_an_answer_and_of_a_call(story: Story, reports: bool) -> None:
    for at in range(1, 16_500, EVERY_MS):
        world = World(dict(ANSWERS), reports=reports)
        world.says(500, "Tea?")
        world.says(15_000, "Time?")
        story(world, at)
        world.run(50_000)
        one_story(world, TEA + NOON, ["Tea?", "Time?"], parts=2 if story is killed_twice else 1)


@pytest.mark.parametrize("story", [cut_off, cut_off_unnoticed, killed_and_cut_off], ids=lambda story: story.__name__)
def test_a_page_may_be_cut_off_at_any_moment_and_hears_the_rest_when_it_is_back(story: Story) -> None:
    for at in range(1, 16_500, EVERY_MS):
        world = World(dict(ANSWERS))
        world.says(500, "Tea?")
        world.says(15_000, "Time?")
        story(world, at)
        world.run(60_000)
        one_story(world, TEA + NOON, ["Tea?", "Time?"], parts=2)


def test_a_worker_may_die_at_any_moment_of_speech() -> None:
    for at in range(1, 8_000, 53):
        world = World({"Time?": "It is noon now."})
        world.speaks(1_000, "Time?", for_ms=2_000)
        world.dies(at)
        world.run(40_000)
        assert [text for text, wholly in world.heard() if wholly] == ["It is noon now."]
        assert [one.text for one in world.told(ev.UserSaid)] == ["Time?"]
        assert [one.audio_ms for one in world.told(ev.SpeechStarted, ev.SpeechEnded)] == [1_000, 3_000]
        assert [one.reason for one in world.told(ev.TurnCompleted)] == ["completed"]


def test_a_greeting_is_heard_once_whenever_the_worker_dies() -> None:
    for at in range(1, 4_500, 53):
        world = World(dict(ANSWERS), greeting="Hello there. How can I help you today?")
        world.says(8_000, "Thanks")
        world.dies(at)
        world.run(40_000)
        one_story(world, ["Hello there.", "How can I help you today?", "You are welcome."], ["Thanks"], parts=1)


def test_the_history_is_that_of_a_call_without_a_crash() -> None:
    def call(at: int) -> World:
        world = World(dict(ANSWERS))
        world.says(500, "Tea?")
        world.says(15_000, "Time?")
        world.dies(at)
        world.run(50_000)
        return world

    expected = call(40_000).state.conversation.history
    for at in range(1, 16_500, EVERY_MS):
        assert call(at).state.conversation.history == expected


def test_after_a_crash_at_every_event_the_log_folds_to_the_uninterrupted_call() -> None:
    world = World(dict(ANSWERS), greeting="Hello.")
    world.says(3_000, "Tea?")
    world.speaks(4_500, "Time?")
    world.leaves(6_200, for_ms=700)
    world.says(12_000, "Thanks")
    world.run(30_000)
    by_seq = {one.seq: one for one in world.log}
    states = [step.initial(SID)]
    for one in world.log:
        for taken in one.event.inputs if isinstance(one.event, VoiceJournal) else ():
            input = _decoder.decode(taken.input) if taken.seq is None else LogInput(by_seq[taken.seq])
            states.append(step.step(states[-1], input, taken.at)[0])
    whole = stored(world.log)
    boundaries = [index + 1 for index, one in enumerate(world.log) if one.writer == "voice"]
    assert len(boundaries) > 40
    for end in boundaries:
        log = world.log[:end]
        folded = fold(step.step, step.initial(SID), inputs.Input, "voice", log)
        assert encoded(folded.state) == encoded(states[folded.taken])
        mine = stored(log) + [(events.kind_of(due.event).name, due.cause, due.ts, encoded(due.event)) for due in folded.missing]
        assert mine == whole[: len(mine)]
        assert folded.number == sum(one.writer == "voice" for one in log)


def test_no_effect_of_the_dead_worker_is_left_when_its_successor_has_begun() -> None:
    for at in range(1, 16_500, EVERY_MS):
        world = World(dict(ANSWERS))
        world.says(500, "Tea?")
        world.speaks(15_000, "Time?")
        world.run(at)
        world._die()
        running = Outstanding()
        folded = fold(step.step, step.initial(SID), inputs.Input, "voice", world.log, watch=running.watch)
        old = set(running.effects)
        over = inputs.TakenOver(worker="w", term=2, gap_ms=3_000, audio_from_ms=0, audio_to_ms=at)
        _, outputs = step.step(folded.state, over, world._us() + 3_000_000)
        cancelled = {one.id for one in outputs if isinstance(one, out.CancelEffect)}
        assert old <= cancelled
