"""Calls on realtime models in virtual time: a day of one session, deaths at every input, and the provider's words in any order."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.voice import core, inputs, provider
from services.voice import outputs as out
from services.voice.speaker import LEAD_MS
from shared import events
from shared.agents import HANDOFF, Cast, ModelName
from shared.events import gateway, tools
from shared.events import voice as ev
from shared.step import Append, LogInput, fold
from tests.voice.conversation import SID, START_US
from tests.voice.live_parts import FUNCTION, GREETING, LIVE, TARGET_TOKENS, TRIGGER_TOKENS, Known, Script, agents
from tests.voice.live_world import MS_PER_CHARACTER, LiveWorld, typed
from tests.voice.replaying import causes_come_first, encoded, replay, stored

RESUMABLE = "gemini-2.5-flash-native-audio-latest"
HOUR_MS = 3_600_000
FULL_H = 8
"""Hours after which all that a session remembers has its size, the summary of what left its history last."""


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


class Day:
    """24 hours: a question every 40 s, and each hour everything that may happen in one. Twice in half an hour the model forgets."""

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
        spoken = {name: f"A{number} {text}" for name, text in (("says", script.says),) if text}
        if not script.says and script.after:
            spoken["after"] = f"A{number} {script.after}"
        self.scripts[number] = msgspec.structs.replace(script, **spoken)
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
    """The questions in what a model knows."""
    return [int(number) for part in parts if part.user for number in re.findall(r"Q(\d+)", part.text)]


def forgets_and_goes_on(world: LiveWorld, answered: Sequence[int]) -> None:
    """The model forgot what was oldest, several times in each hour and with every agent, was asked on the same connection and answered;
    the next agent is told from the log what was forgotten."""
    found = world.compressions
    hours = Counter(one.at // HOUR_MS for one in found)
    assert min(hours[hour] for hour in range(24)) >= 2
    assert {one.agent for one in found} == {"host", "advisor"}
    told = {one.effect: numbers([Known(part.role == "user", part.text, 0) for part in one.asked.history]) for one in world.connections}
    for one in found:
        assert one.tokens - sum(part.tokens for part in one.forgotten) <= TARGET_TOKENS
        assert max(numbers(one.forgotten)) < one.number
        assert one.number in answered or one.number + 1 in answered, "unless the user cut it short"
        later = next((asked for effect, asked in told.items() if effect > one.effect and asked), None)
        assert later is None or max(numbers(one.forgotten)) in later


def test_a_day_of_one_session() -> None:
    began = time.process_time()
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
    assert time.process_time() - began < 20


class Orders:
    """The core alone, told anything in any order; timers fire when they are due, and what it asks for is noted."""

    def __init__(self, model: str = LIVE, provider_name: str = "gemini") -> None:
        self.state = core.initial(SID)
        self.now = 0
        self.appended: list[events.Event] = []
        self.taken: list[tuple[int, Any]] = []
        self.timers: dict[str, int] = {}
        self.dialled: list[int] = []
        """Connections that were asked for and not cancelled."""

        self._seq = 0
        cast = Cast(agents=tuple(msgspec.structs.replace(one, realtime=ModelName(provider_name, model)) for one in agents()))
        client = gateway.ClientCapabilities(protocol="voxbridge.v1")
        self.log(gateway.SessionRequested(mode="local", client=client))
        self.take(
            inputs.Opened(
                worker="w",
                term=1,
                model="local",
                voice="",
                greeting="",
                functions=(FUNCTION,),
                providers=("local", "gemini", "openai"),
                idle_timeout_s=600,
                turn_timeout_s=30,
                cast=cast,
            )
        )

    @property
    def effect(self) -> int:
        """The connection that counts."""
        return self.state.line.effect if self.state.line is not None else 0

    def log(self, event: events.Event) -> None:
        """An event of the log is taken."""
        self._seq += 1
        kind = events.kind_of(event)
        recorded = events.Recorded(
            seq=self._seq,
            id=f"{SID}.{kind.writer}.{self._seq}",
            sid=SID,
            ts=START_US + self.now * 1_000,
            cause=None,
            writer=kind.writer,
            visible=kind.visible,
            type=kind.name,
            v=kind.version,
            event=event,
        )
        self.take(LogInput(recorded))

    def take(self, input: Any) -> None:
        """An input is taken."""
        now = START_US + self.now * 1_000
        self.taken.append((now, input))
        if isinstance(input, provider.ProviderLost):
            self.dialled = [one for one in self.dialled if one != input.effect]
        self.state, outputs = core.step(self.state, input, now)
        for output in outputs:
            match output:
                case out.SetTimer(name=name, after_ms=after_ms):
                    self.timers[name] = self.now + after_ms
                case out.CancelTimer(name=name):
                    self.timers.pop(name, None)
                case out.StartEffect(id=id, effect=out.Connect()):
                    assert not self.dialled, "the one before is closed first"
                    self.dialled.append(id)
                case out.CancelEffect(id=id):
                    self.dialled = [one for one in self.dialled if one != id]
                case Append(event=event):
                    self.appended.append(event)

    def passes(self, ms: int) -> None:
        """Time passes."""
        until = self.now + ms
        while self.timers and min(self.timers.values()) <= until:
            name = min(self.timers, key=lambda one: self.timers[one])
            self.now = max(self.now, self.timers.pop(name))
            self.take(inputs.TimerFired(name))
        self.now = until

    def told(self, *kinds: type[events.Event]) -> list[Any]:
        """The events of these types that were appended."""
        return [one for one in self.appended if isinstance(one, kinds)]


def failure(*, retryable: bool) -> ev.Failure:
    """Why a connection was lost."""
    return ev.Failure(code="PROVIDER_UNAVAILABLE", message="Gone.", retryable=retryable)


OVER_A_CONNECTION = (
    *("going away", "handle", "voice", "user words", "audio", "words", "text", "call", "hand over", "calls cancelled"),
    *("interrupted", "made", "done"),
)
THINGS = (
    *OVER_A_CONNECTION,
    *("ready", "lost", "result", "typed", "played", "played out", "stopped", "operator", "announced", "away", "back", "died", "time"),
)


def happens(orders: Orders, what: str, number: int) -> None:
    """One of the things that may happen in a call, over the connection there is or, for some numbers, one that there is no more."""
    effect = orders.effect if number % 7 else orders.effect - 1
    calls = [one.call_id for one in orders.told(ev.ToolCalled)]
    generation = orders.state.generation
    ready = orders.state.line is not None and orders.state.line.ready
    match what:
        case _ if what in OVER_A_CONNECTION and not ready:
            return
        case "ready" if not ready:
            orders.take(provider.ProviderReady(effect=effect, resumed=bool(number % 2), audio_ms=orders.now))
        case "lost":
            lost = provider.ProviderLost(
                effect=effect,
                code=1006,
                error=failure(retryable=bool(number % 3)),
                handle_refused=number % 5 == 0,
                audio_ms=orders.now,
            )
            orders.take(lost)
        case "going away":
            orders.take(provider.GoingAway(effect=effect, left_ms=number * 500))
        case "handle":
            orders.take(provider.HandleUpdated(effect=effect, handle=f"h{number}" if number % 3 else "", resumable=bool(number % 3)))
        case "voice":
            orders.take(provider.UserVoice(effect=effect, speaking=bool(number % 2), audio_ms=orders.now))
        case "user words":
            item = f"i{number % 4}" if number % 2 else ""
            orders.take(provider.UserWords(effect=effect, text=f" w{number}", item=item, whole=number % 4 == 1, audio_ms=orders.now))
        case "audio":
            orders.take(provider.AgentAudio(effect=effect, ms=number * 40, audio_ms=orders.now))
            if orders.state.reply is not None and orders.state.reply.sent is None:
                orders.take(inputs.AudioSent(orders.state.generation))
        case "words":
            orders.take(provider.AgentWords(effect=effect, text=f" a{number}", ms=number * 40))
        case "text" if orders.state.line is not None and not orders.state.line.written:
            orders.take(provider.AgentText(effect=effect, text="look_up()"))
        case "call":
            orders.take(provider.CallRequested(effect=effect, ref=f"r{number % 4}", name="look_up", arguments={}))
        case "hand over":
            target = {"target": ("host", "advisor", "nobody")[number % 3]}
            orders.take(provider.CallRequested(effect=effect, ref=f"r{number}", name=HANDOFF, arguments=target))
        case "calls cancelled":
            orders.take(provider.CallsCancelled(effect=effect, refs=(f"r{number % 4}",)))
        case "interrupted":
            orders.take(provider.Interrupted(effect=effect, audio_ms=orders.now))
        case "made":
            orders.take(provider.GenerationDone(effect=effect, ms=number * 50))
        case "done":
            orders.take(provider.ModelTurnDone(effect=effect, ms=number % 3 * 700, quiet=number % 5 == 0))
        case "result" if calls:
            orders.log(tools.ToolCompleted(call_id=calls[number % len(calls)], name="look_up", result={"found": number}, ms=1))
        case "typed":
            orders.log(typed(f"t{number}"))
        case "played":
            orders.log(gateway.PlaybackReported(generation=max(1, generation - number % 2), played_ms=number * 40, state="playing"))
        case "played out":
            orders.log(gateway.PlaybackReported(generation=max(1, generation - number % 2), played_ms=number * 40, state="finished"))
        case "stopped":
            orders.log(gateway.InterruptRequested())
        case "operator":
            orders.log(gateway.HandoffRequested(target=("host", "advisor")[number % 2]))
        case "announced":
            orders.log(tools.TaskCompleted(task_id="t", function="look_up", result={}, announce=f"n{number}"))
        case "away":
            orders.log(gateway.ClientDisconnected(gateway="g", connection=orders.state.connection, reason="closed", last_seq=0))
        case "back":
            orders.log(gateway.ClientConnected(gateway="g", connection=f"c{number}", resumed=bool(number % 2)))
        case "died":
            orders.dialled.clear()
            orders.take(inputs.TakenOver(worker="v", term=2, gap_ms=3_000, generation=generation, left_ms=number * 30))
        case "time":
            orders.passes(number * number * 10)


SETTLED_MS = 150_000
"""The time of two turns, of the calls in them, and of the connections between."""

NOTICE_MS = 31_000
"""The time that a model is given for a notice."""


def comes_to_rest(orders: Orders) -> None:
    """From now on connections open and nothing else is said: every turn ends, once, and the session listens or has said why not."""
    if orders.state.away_since:
        orders.log(gateway.ClientConnected(gateway="g", connection="last", resumed=True))
    for _ in range((SETTLED_MS + NOTICE_MS * len(orders.state.notices)) // 500):
        if orders.dialled and orders.state.line is not None and not orders.state.line.ready:
            orders.take(provider.ProviderReady(effect=orders.effect, audio_ms=orders.now))
        orders.passes(500)
    state = orders.state
    if state.phase == "ended":
        (ended,) = orders.told(ev.SessionEnded)
        assert ended.error is not None or ended.reason == "client_gone"
    else:
        assert state.shown[0] == "listening"
        assert state.line is not None
        stuck = [name for name in ("asking", "go_on", "notice", "calls", "going_on") if getattr(state.line, name)]
        assert not stuck
        assert state.handoff is None
        assert state.line.ready
    ended_turns = [one.number for one in orders.told(ev.TurnCompleted)]
    assert len(set(ended_turns)) == len(ended_turns), "a turn ends once"
    if state.phase == "open":
        assert sorted(ended_turns) == list(range(1, state.turns + 1))
    said = [one.turn for one in orders.told(ev.UserSaid)]
    assert len(set(said)) == len(said)
    spoken = [one.generation for one in orders.told(ev.AgentSaid)]
    assert len(set(spoken)) == len(spoken)
    called = [one.call_id for one in orders.told(ev.ToolCalled)]
    delivered = [one.call_id for one in orders.told(ev.ToolDelivered) if one.how != "dropped"]
    assert len(set(called)) == len(called)
    assert len(set(delivered)) == len(delivered)


def told_again(orders: Orders) -> None:
    """The same inputs, read from their bytes, give the same state and events."""
    state, appended = core.initial(SID), list[bytes]()
    decoder = msgspec.msgpack.Decoder[Any](inputs.Input)
    for now, input in orders.taken:
        again = input if isinstance(input, LogInput) else decoder.decode(msgspec.msgpack.encode(input))
        state, outputs = core.step(state, again, now)
        appended += [encoded(output.event) for output in outputs if isinstance(output, Append)]
    assert encoded(state) == encoded(orders.state)
    assert appended == [encoded(event) for event in orders.appended]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.sampled_from([("gemini", LIVE), ("gemini", RESUMABLE), ("openai", "gpt-realtime-2.1")]),
    st.lists(st.tuples(st.sampled_from(THINGS), st.integers(0, 40)), max_size=40),
)
def test_any_order_of_what_may_happen_comes_to_rest(model: tuple[str, str], things: list[tuple[str, int]]) -> None:
    orders = Orders(model[1], model[0])
    happens(orders, "ready", 1)
    for what, number in things:
        happens(orders, what, number)
    comes_to_rest(orders)
    told_again(orders)
