"""Calls on realtime models in virtual time: a day of one session, deaths at every input, and the provider's words in any order."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from services.voice import core, inputs
from shared.events import voice as ev
from shared.step import fold
from tests.voice.conversation import SID
from services.voice.speaker import LEAD_MS
from tests.voice.live_world import GREETING, LIVE, MS_PER_CHARACTER, LiveWorld, Script, typed
from tests.voice.replaying import causes_come_first, encoded, replay, stored

RESUMABLE = "gemini-2.5-flash-native-audio-latest"
HOUR_MS = 3_600_000


def question(number: int) -> str:
    """What the user asks, by its number."""
    return f"Q{number} please tell me"


def words(world: LiveWorld) -> list[str]:
    """Everything that the user said, as the log has it."""
    return " ".join(one.text for one in world.told(ev.UserSaid)).split()


def heard(world: LiveWorld, number: int) -> str:
    """What the log says was heard of an answer."""
    turns = {one.turn for one in world.told(ev.UserSaid) if f"Q{number} " in f"{one.text} "}
    return " ".join(one.text for one in world.told(ev.AgentSaid) if one.turn in turns and one.text)


def consistent(world: LiveWorld, asked: Sequence[int]) -> None:
    """What was asked is in the log once and in order; each turn ended once, and each call was made once; the log tells it again."""
    assert words(world) == " ".join(question(number) for number in asked).split()
    ended = [one.number for one in world.told(ev.TurnCompleted)]
    assert sorted(ended) == list(range(1, world.state.turns + 1))
    called = [one.arguments["q"] for one in world.told(ev.ToolCalled)]
    assert len(set(called)) == len(called)
    assert world.most_open == 1
    assert world.pardons == 0
    assert causes_come_first(world.log)
    state, appended = replay(SID, world.log)
    assert appended == stored(world.log)
    assert encoded(state) == encoded(fold(core.step, core.initial(SID), inputs.Input, "voice", world.log).state)


SCRIPTS = {
    1: Script(says="A1 once upon a time there was a king."),
    2: Script(says="A2 one moment.", calls="look_up", after="It is noon now."),
    3: Script(calls="look_up", after="A3 found it."),
    4: Script(calls="to:advisor", after="A4 I can help you."),
    5: Script(says="A5 you are welcome."),
}


def a_call(model: str = LIVE, *, executor_ms: int = 700) -> LiveWorld:
    """Two questions are typed and three spoken, functions are called, and an agent hands over."""
    world = LiveWorld(SCRIPTS, model=model, greets=True)
    world.executor_ms = executor_ms
    world.says(3_000, question(1))
    world.speaks(12_000, question(2))
    world.says(28_000, question(3))
    world.speaks(44_000, question(4))
    world.speaks(60_000, question(5))
    return world


END_MS = 80_000
QUESTIONS = list(SCRIPTS)


@pytest.mark.parametrize("model", [LIVE, RESUMABLE])
def test_a_call(model: str) -> None:
    world = a_call(model)
    world.run(END_MS)
    consistent(world, QUESTIONS)
    assert [heard(world, number) for number in SCRIPTS] == [script.whole for script in SCRIPTS.values()]
    assert [one.reason for one in world.told(ev.TurnCompleted)] == ["completed"] * 5


@pytest.mark.parametrize("executor_ms", [700, 4_500])
@pytest.mark.parametrize("model", [LIVE, RESUMABLE])
def test_a_worker_may_die_behind_every_input_of_a_call(model: str, executor_ms: int) -> None:
    whole = a_call(model, executor_ms=executor_ms)
    whole.run(END_MS)
    spoken = [word for word, _ in whole.heard()]
    assert whole.steps > 100
    for boundary in range(3, whole.steps + 1):
        world = a_call(model, executor_ms=executor_ms)
        world.kill_after = boundary
        world.run(END_MS)
        consistent(world, QUESTIONS)
        assert [one.reason for one in world.told(ev.TurnCompleted)] == ["completed"] * 5
        assert told_to_the_end(world), boundary
        # What left for the page and is not in the journal is heard again: less than half a second.
        once = [word for word, wholly in world.heard() if wholly]
        again = Counter(once) - Counter(spoken)
        assert sum(map(len, again.elements())) * MS_PER_CHARACTER <= 100 + LEAD_MS
        lost = Counter(spoken) - Counter(once) - Counter(GREETING.split())
        assert sum(lost.values()) <= 1, "but for a word that was cut in the middle before a call's result"


def told_to_the_end(world: LiveWorld) -> bool:
    """Each answer stands in the log once; only the words before a call may be cut."""
    for number, script in SCRIPTS.items():
        said = heard(world, number)
        before = said.removesuffix(script.after).strip() if script.calls else said
        if not said.endswith(script.after) or not script.says.startswith(before) or not (script.calls or before == script.says):
            return False
    return True
