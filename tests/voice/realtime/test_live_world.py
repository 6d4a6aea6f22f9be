"""Calls on realtime models in virtual time: a day of one session, deaths at every input, and random order of the provider's words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest

from tests.voice.conversation import SID
from tests.voice.live_parts import GREETING, LIVE, TARGET_TOKENS, TRIGGER_TOKENS, Known, Script
from tests.voice.live_world import MS_PER_CHARACTER, LiveWorld
from tests.voice.replaying import causes_come_first, encoded, replay, stored
from voxbridge.services.voice.audio.speaker import LEAD_MS
from voxbridge.services.voice.core import inputs, step
from voxbridge.shared.events import voice as ev
from voxbridge.shared.step.fold import fold

RESUMABLE = "gemini-2.5-flash-native-audio-latest"
HOUR_MS = 3_600_000
AFRESH = {5, 9, 13}
"""Hours in which the handle is useless, so that the model gets the history as text instead of its own context."""

FULL_H = 8
"""Hours until all of a session's memory has its final size; the summary of dropped history is the last."""


def question(number: int) -> str:
    """Return the user's question of this number."""
    return f"Q{number} please tell me"


def words(world: LiveWorld) -> list[str]:
    """Return all words of the user in the log."""
    return " ".join(one.text for one in world.told(ev.UserSaid)).split()


def heard(world: LiveWorld, number: int) -> str:
    """Return the heard part of an answer in the log."""
    turns = {one.turn for one in world.told(ev.UserSaid) if f"Q{number} " in f"{one.text} "}
    return " ".join(one.text for one in world.told(ev.AgentSaid) if one.turn in turns and one.text)


def consistent(world: LiveWorld, asked: Sequence[int]) -> None:
    """Check that each question is in the log once and in order, each turn ended once, each call was made once, and the log replays."""
    assert words(world) == " ".join(question(number) for number in asked).split()
    ended = [one.number for one in world.told(ev.TurnCompleted)]
    assert sorted(ended) == list(range(1, world.state.counters.turns + 1))
    called = [one.arguments["q"] for one in world.told(ev.ToolCalled)]
    assert len(set(called)) == len(called)
    assert world.most_open == 1
    assert world.pardons == 0
    assert causes_come_first(world.log)
    state, appended = replay(SID, world.log)
    assert appended == stored(world.log)
    assert encoded(state) == encoded(fold(step.step, step.initial(SID), inputs.Input, "voice", world.log).state)


SCRIPTS = {
    1: Script(says="A1 once upon a time there was a king."),
    2: Script(says="A2 one moment.", calls="look_up", after="It is noon now."),
    3: Script(calls="look_up", after="A3 found it."),
    4: Script(calls="to:advisor", after="A4 I can help you."),
    5: Script(says="A5 you are welcome."),
}


def a_call(model: str = LIVE, *, executor_ms: int = 700) -> LiveWorld:
    """Return a call with two typed and three spoken questions, function calls, and a handoff."""
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
        # Audio that was sent but not journalled is heard again: less than half a second.
        once = [word for word, wholly in world.heard() if wholly]
        again = Counter(once) - Counter(spoken)
        assert sum(map(len, again.elements())) * MS_PER_CHARACTER <= 100 + LEAD_MS
        lost = Counter(spoken) - Counter(once) - Counter(GREETING.split())
        assert sum(lost.values()) <= 1, "but for a word that was cut in the middle before a call's result"


def told_to_the_end(world: LiveWorld) -> bool:
    """Return whether each answer is in the log once; only the words before a call may be cut."""
    for number, script in SCRIPTS.items():
        said = heard(world, number)
        before = said.removesuffix(script.after).strip() if script.calls else said
        if not said.endswith(script.after) or not script.says.startswith(before) or not (script.calls or before == script.says):
            return False
    return True


class Day:
    """24 hours: a question every 40 s, and each hour every kind of fault. The model's context is compressed twice in half an hour."""

    def __init__(self, hours: int = 24) -> None:
        self.scripts: dict[int, Script] = {}
        self.world = LiveWorld(self.scripts, greets=True)
        self.barged: set[int] = set()
        self.failing: set[int] = set()
        self.cut_off: set[int] = set()
        self.hours = hours
        for hour in range(hours):
            self._hour(hour)

    def ask(self, at: int, script: Script, *, aloud: bool) -> int:
        number = len(self.scripts) + 1
        says = f"A{number} {script.says}" if script.says else ""
        after = f"A{number} {script.after}" if script.after and not script.says else script.after
        self.scripts[number] = msgspec.structs.replace(script, says=says, after=after)
        (self.world.speaks if aloud else self.world.says)(at, question(number))
        return number

    def _hour(self, hour: int) -> None:
        world, start = self.world, hour * HOUR_MS
        for index in range(90):
            at, aloud = start + 10_000 + index * 40_000, index % 2 == 0
            if index % 9 == 4:
                self.ask(at, Script(says="one moment.", calls="look_up", after="It is noon."), aloud=aloud)
            elif index % 9 == 7:
                self.ask(at, Script(calls="look_up", after="is what was found."), aloud=aloud)
            elif index in (10, 55):
                self.ask(at, Script(calls="to:advisor" if index == 10 else "to:host", after="now I will help you."), aloud=aloud)
            elif index % 15 == 12:
                self.barged.add(self.ask(at, Script(says="is a story that is so long that nobody hears it to its end"), aloud=aloud))
                self.ask(at + 2_500, Script(says="yes, I stop."), aloud=aloud)
            elif index % 11 == 5:
                self.ask(at, Script(says="is a good question.", late_ms=300 + 20 * hour), aloud=True)
            elif index % 20 == 3:
                self.ask(at, Script(says="is what broke in the middle of it.", dies_after=3), aloud=aloud)
            elif index == 80 and hour in (7, 15):
                number = self.ask(at, Script(says="came late.", silent=1 if hour == 7 else 2), aloud=hour == 7)
                self.failing |= {number} if hour == 15 else set()
            elif index in (81, 82) and hour in (7, 15):
                continue
            elif index == 84 and hour in (8, 16):
                number = self.ask(at, Script(says="came after all.", empty=1 if hour == 8 else 2), aloud=aloud)
                self.failing |= {number} if hour == 16 else set()
            else:
                self.ask(at, Script(says="is the plain answer to it."), aloud=aloud)
            if index == 30:
                world.dies(at + hour * 137)
            if index == 41:
                world.drops(at + hour * 211)
            if index == 73 and hour == 5:
                world.poisons(at + 20_000)
            if index == 74 and hour == 9:
                world.at(at + 20_000, lambda: world.refused.append((1008, True)))
                world.drops(at + 20_001)
            if index == 74 and hour == 13:
                world.at(at + 20_000, lambda: world.refused.extend([(1011, False)] * 3))
                world.drops(at + 20_001)


def numbers(parts: Sequence[Known]) -> list[int]:
    """Return the numbers of the questions in a model's context."""
    return [int(number) for part in parts if part.user for number in re.findall(r"Q(\d+)", part.text)]


def forgets_and_goes_on(world: LiveWorld, answered: Sequence[int]) -> None:
    """Check that contexts were compressed several times in each hour and with every agent, that the model then answered on the same
    connection, and that the next agent got the dropped part from the log."""
    found = world.compressions
    hours = Counter(one.at // HOUR_MS for one in found)
    # A context is full after 16 minutes and then every 8, and each agent has it for half an hour: two compressions of one and one of the
    # other fall into each hour, unless the other's conversation is started again.
    assert all(hours[hour] >= (2 if hour in AFRESH else 3) for hour in range(24))
    assert {one.agent for one in found} == {"host", "advisor"}
    told = {one.effect: numbers([Known(part.role == "user", part.text, 0) for part in one.asked.history]) for one in world.connections}
    for one in found:
        assert one.tokens - sum(part.tokens for part in one.forgotten) <= TARGET_TOKENS
        assert max(numbers(one.forgotten)) < one.number
        assert one.number in answered or one.number + 1 in answered, "unless the user cut it short"
        later = next((asked for effect, asked in told.items() if effect > one.effect and asked), None)
        assert later is None or max(numbers(one.forgotten)) in later


def test_a_day_of_one_session() -> None:
    day = Day()
    world = day.world
    peaks = list[dict[str, int]]()
    for hour in range(24):
        peak: dict[str, int] = {}
        for part in range(1, 13):
            world.run(hour * HOUR_MS + part * HOUR_MS // 12)
            assert all(one.knows.tokens < 1.1 * TRIGGER_TOKENS for one in world.connections[-3:]), "the model knows more than it can"
            peak = {name: max(size, peak.get(name, 0)) for name, size in world.sizes().items()}
        peaks.append(peak)
    consistent(world, list(day.scripts))
    turns = {int(number): one.turn for one in world.told(ev.UserSaid) for number in re.findall(r"Q(\d+)", one.text)}
    reasons = {one.number: one.reason for one in world.told(ev.TurnCompleted)}
    expected = {number: "interrupted" if number in day.barged else "failed" if number in day.failing else "completed" for number in turns}
    assert {number: reasons[turn] for number, turn in turns.items()} == expected
    answers = dict[int, str]()
    for one in world.told(ev.AgentSaid):
        answers[one.turn] = f"{answers.get(one.turn, '')} {one.text}".strip()
    completed = [number for number in turns if expected[number] == "completed"]
    assert [answers[turns[number]] for number in completed] == [day.scripts[number].whole for number in completed]
    assert answers[0] == GREETING, "nobody is greeted twice"
    assert len(world.told(ev.HandoffCompleted)) == 48
    assert len(world.told(ev.SessionOwned)) == 25
    assert len(world.connections) > 24 * 6
    forgets_and_goes_on(world, completed)
    for name, size in peaks[-1].items():
        assert size <= 1.1 * peaks[FULL_H][name] + 2, f"{name} grows"
    assert peaks[-1]["bytes"] < 50_000
