"""A long call without models: the real core in virtual time, with scripted answers of the page, the models and the tools.

`call` gives the events of the call as they would be in the log, journals included, and `write` appends them to one. During the call a model
fails, a worker is killed, another one is drained, and the client is disconnected for a while.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core import outputs as out
from voxbridge.shared import events
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.audio import frames, recordings
from voxbridge.shared.audio.recordings import DataKeys
from voxbridge.shared.bus import subjects
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.journal import Taken, VoiceJournal
from voxbridge.shared.log.reader import Log
from voxbridge.shared.step.fold import Append
from voxbridge.shared.step.journal import LogInput

TURN_S: Final = 10
ASKED: Final = ("What time is it in Tokyo?", "How long will the train take?", "And what is six times seven?", "Set a timer for tea.")
ANSWERED: Final = (
    "It is a quarter past nine in the evening there. ",
    "The train takes two hours and ten minutes, if it is on time. ",
    "Six times seven is forty two. ",
    "The timer is set, and I will tell you when the tea is ready. ",
)
CLOCK: Final = Function(name="current_time", description="The time.", parameters={"type": "object"}, timeout_s=5, effect="read")


class Fact(NamedTuple):
    """An event with its place in the log."""

    seq: int
    ts: int
    cause: int | str | None
    event: events.Event


class Call:
    """A call of so many turns; `first` is the position of its first event."""

    def __init__(
        self, sid: str, *, turns: int, began_us: int, first: int = 1, protocol: Any = "voxbridge.v1", account: str = "local"
    ) -> None:
        self.sid = sid
        self.facts: list[Fact] = []
        self.speech: list[tuple[str, int, int]] = []
        """Stretches of speech: channel, begin and end in ms."""

        self._now = began_us
        self._began = began_us
        self._first = first
        self._state = step.initial(sid)
        self._taken = 0
        self._unwritten: list[Taken] = []
        self._due: list[tuple[int, int, str, Callable[[], None]]] = []
        self._order = 0
        self._effects: set[int] = set()
        self._timers: dict[str, int] = {}
        self._dead = False
        self._asked = 0
        self._playing: tuple[int, int] | None = None
        self._made: dict[int, int] = {}
        self._fails = 0
        self._written: dict[str, int] = {}
        self._log(gateway.SessionRequested(mode="local", account=account, client=gateway.ClientCapabilities(protocol=protocol)))
        self._take(
            inputs.Opened(
                worker="voice-1",
                term=1,
                model="qwen",
                voice="joe",
                greeting="",
                functions=(CLOCK,),
                providers=("local",),
                idle_timeout_s=600,
                turn_timeout_s=30,
                resume_window_s=120,
                model_patience_s=8,
            )
        )
        self._log(gateway.ClientConnected(gateway="gateway-1", connection="gateway-1-1"))
        for turn in range(turns):
            self._turn(turn, turns)
        self._log(gateway.SessionEndRequested(by="client", reason="the client ended the session"))
        self._flush()

    def at_ms(self) -> int:
        """Return the current time of the call in ms."""
        return (self._now - self._began) // 1_000

    def _turn(self, turn: int, turns: int) -> None:
        start = self._began + turn * TURN_S * 1_000_000 + 500_000
        self._pass(start)
        self._asked = turn
        self._fails = 1 if turns > 8 and turn == turns // 6 else 0
        begun = self.at_ms()
        self.speech.append(("in", begun, begun + 1_800))
        self._take(inputs.VoiceStarted(begun))
        self._pass(start + 2_000_000)
        self._take(inputs.VoiceStopped(begun + 1_800, 200))
        self._pass(start + 4_500_000)
        if turns > 8 and turn == turns // 3:
            self._killed()
        elif turns > 8 and turn == turns // 2:
            self._cut_off()
        elif turns > 8 and turn == 2 * turns // 3:
            self._drained()
        self._pass(start + (TURN_S - 1) * 1_000_000)

    def _killed(self) -> None:
        self._flush()
        self._due = [one for one in self._due if one[2] == "page"]
        self._effects.clear()
        self._dead = True
        began = self._now
        self._pass(began + 3_200_000)
        self._dead = False
        self._take(inputs.TakenOver(worker="voice-2", term=2, gap_ms=3_200))

    def _drained(self) -> None:
        self._take(inputs.Released(worker="voice-2", term=2))
        self._due = [one for one in self._due if one[2] == "page"]
        self._effects.clear()
        self._dead = True
        self._pass(self._now + 300_000)
        self._dead = False
        self._take(inputs.TakenOver(worker="voice-3", term=3, gap_ms=300))

    def _cut_off(self) -> None:
        self._log(
            gateway.ClientDisconnected(gateway="gateway-1", connection="gateway-1-1", reason="the socket closed with 1006", last_seq=1)
        )
        self._pass(self._now + 2_000_000)
        self._log(gateway.ClientConnected(gateway="gateway-2", connection="gateway-2-1", resumed=True, last_seq=self.facts[-9].seq))

    def _pass(self, until: int) -> None:
        while True:
            timer = min(self._timers.items(), key=lambda one: one[1], default=None) if not self._dead else None
            happens = self._due[0][0] if self._due else until + 1
            if timer is not None and timer[1] <= min(until, happens):
                del self._timers[timer[0]]
                self._now = max(self._now, timer[1])
                self._take(inputs.TimerFired(timer[0]))
            elif happens <= until:
                at, _, _, happen = heapq.heappop(self._due)
                self._now = max(self._now, at)
                happen()
            else:
                self._now = max(self._now, until)
                return

    def _later(self, ms: float, happen: Callable[[], None], who: str = "worker") -> None:
        self._order += 1
        heapq.heappush(self._due, (self._now + round(ms * 1_000), self._order, who, happen))

    def _log(self, event: events.Event) -> None:
        seq = self._write(event, None)
        if self._dead:
            return
        kind = events.kind_of(event)
        recorded = events.Recorded(
            seq=seq, id=f"{self.sid}.{seq}", sid=self.sid, ts=self._now, cause=None, writer=kind.writer, visible=kind.visible,
            type=kind.name, v=kind.version, event=event,
        )  # fmt: skip
        self._take(LogInput(recorded))

    def _write(self, event: events.Event, cause: int | str | None) -> int:
        seq = self._first + len(self.facts)
        self.facts.append(Fact(seq, self._now, cause, event))
        return seq

    def _flush(self) -> None:
        if self._unwritten:
            entry, self._unwritten = tuple(self._unwritten), []
            self._write(VoiceJournal(first=self._taken - len(entry), inputs=entry), None)

    def _take(self, input: Any) -> None:
        seq = input.recorded.seq if isinstance(input, LogInput) else None
        raw = Taken(at=self._now, seq=seq) if seq else Taken(at=self._now, seq=None, input=msgspec.Raw(msgspec.msgpack.encode(input)))
        cause = f"voice#{self._taken}" if seq is None else seq
        self._state, outputs = step.step(self._state, input, self._now)
        self._taken += 1
        self._unwritten.append(raw)
        for output in outputs:
            if isinstance(output, Append):
                self._flush()
                self._write(output.event, cause)
                if isinstance(output.event, ev.ToolCalled):
                    self._call(output.event)
            else:
                self._perform(output)
        if len(self._unwritten) >= 24:
            self._flush()

    def _call(self, called: ev.ToolCalled) -> None:
        self._later(5, lambda: self._log(tools.ToolStarted(call_id=called.call_id, name=called.name)), "page")
        result = {"time": "21:15", "zone": "Asia/Tokyo"}
        self._later(60, lambda: self._log(tools.ToolCompleted(call_id=called.call_id, name=called.name, result=result, ms=55)), "page")

    def _perform(self, output: Any) -> None:
        match output:
            case out.SetTimer(name=name, after_ms=after_ms):
                self._timers[name] = self._now + after_ms * 1_000
            case out.CancelTimer(name=name):
                self._timers.pop(name, None)
            case out.CancelEffect(id=id):
                self._effects.discard(id)
            case out.StartEffect(id=id, effect=effect):
                self._effects.add(id)
                self._begin(id, effect)
            case out.Flush(generation=generation):
                self._later(20, lambda: self._flushed(generation), "page")
            case out.FinishSpeech(generation=generation):
                self._later(self._made.get(generation, 0), lambda: self._finished(generation), "page")

    def _flushed(self, generation: int) -> None:
        if self._playing is not None and self._playing[0] == generation:
            played, self._playing = self.at_ms() - self._playing[1], None
            self.speech.append(("out", self.at_ms() - played, self.at_ms()))
            self._log(gateway.PlaybackReported(generation=generation, played_ms=played, state="flushed"))

    def _finished(self, generation: int) -> None:
        if self._playing is not None and self._playing[0] == generation:
            made, began = self._made[generation], self._playing[1]
            self._playing = None
            self.speech.append(("out", began, began + made))
            self._log(gateway.PlaybackReported(generation=generation, played_ms=made, state="finished"))

    def _begin(self, id: int, effect: out.Effect) -> None:
        match effect:
            case out.Transcribe():
                self._answer(id, 220, inputs.Transcribed(effect=id, text=ASKED[self._asked % 4], language="en", confidence=0.93))
            case out.JudgeTurn():
                self._answer(id, 90, inputs.TurnJudged(id, 0.97))
            case out.Complete(messages=messages):
                self._write_words(id, called=messages[-1].role == "tool")
            case out.Synthesize(generation=generation, text=text):
                self._speak(id, generation, 62 * len(text))

    def _write_words(self, id: int, *, called: bool) -> None:
        if self._fails:
            self._fails = 0
            failure = ev.Failure(code="PROVIDER_UNAVAILABLE", message="The language model answers 503: overloaded.", retryable=True)
            self._answer(id, 700, inputs.EffectFailed(effect=id, error=failure))
            return
        if self._asked % 4 == 0 and not called:
            self._answer(id, 400, inputs.ToolRequested(effect=id, name="current_time", arguments={"place": "Tokyo"}))
            self._answer(id, 420, inputs.Completed(effect=id, input_tokens=412, output_tokens=18), last=True)
            return
        words = ANSWERED[self._asked % 4].split(" ")
        for number, word in enumerate(words):
            self._answer(id, 300 + 25 * number, inputs.TextDelta(id, f"{word} "))
        self._answer(id, 310 + 25 * len(words), inputs.Completed(effect=id, input_tokens=430, output_tokens=len(words)), last=True)

    def _speak(self, id: int, generation: int, ms: int) -> None:
        def first() -> None:
            self._take(inputs.AudioMade(effect=id, ms=200, done=False))
            if generation not in self._made:
                self._made[generation] = 0
                self._take(inputs.AudioSent(generation))
                self._later(80, lambda: self._plays(generation), "page")

        def done() -> None:
            self._made[generation] = self._made.get(generation, 0) + ms
            self._effects.discard(id)
            self._take(inputs.AudioMade(effect=id, ms=ms, done=True))

        self._later(180, lambda: first() if id in self._effects else None)
        self._later(260, lambda: done() if id in self._effects else None)

    def _plays(self, generation: int) -> None:
        self._playing = (generation, self.at_ms())
        self._log(gateway.PlaybackReported(generation=generation, played_ms=0, state="playing"))

    def _answer(self, id: int, ms: int, input: Any, *, last: bool = False) -> None:
        def happen() -> None:
            if id in self._effects:
                if last:
                    self._effects.discard(id)
                self._take(input)

        self._later(ms, happen)

    async def write(self, log: Log) -> None:
        """Append all events; there must be no other writer, because its journals name positions."""
        for number, fact in enumerate(self.facts):
            kind = events.kind_of(fact.event)
            own = self._written[kind.writer] = self._written.get(kind.writer, -1) + 1
            payload = events.encode(fact.event, event_id=f"{self.sid}.{kind.writer}.{own}", sid=self.sid, ts=fact.ts, cause=fact.cause)
            subject = subjects.event_subject(self.sid, kind.writer, kind.visible, kind.name)
            # An acknowledgement now and then means that all earlier events are stored, and keeps the server's queue short.
            if number % 256 == 255 or number == len(self.facts) - 1:
                await log.js.publish(subject, payload)
            else:
                await log.nc.publish(subject, payload)

    async def record(self, log: Log, keys: DataKeys) -> int:
        """Write both channels into the recording, 20 ms a frame: silence with tones where there is speech. Return the number of frames."""
        end = self.at_ms()
        key = await keys.make(self.sid)
        made: list[recordings.Frame] = []
        for channel, rate in (("in", frames.INPUT_RATE), ("out", frames.OUTPUT_RATE)):
            spoken = sorted((began, ended) for which, began, ended in self.speech if which == channel)
            stretches = [(0, end)] if channel == "in" else spoken
            for generation, (began, ended) in enumerate(stretches, 1):
                for at in range(began, ended, 20):
                    loud = any(first <= at < last for first, last in spoken)
                    frame = frames.pack(
                        frames.PCM16, generation if channel == "out" else 0, len(made),
                        self._began // 1_000 + at + 20 * (channel == "in"), _tone(rate, at, loud=loud),
                    )  # fmt: skip
                    made.append(recordings.Frame(recordings.CHANNELS.index(channel), len(made) + 1, len(made) + 1, frame))
        for block in recordings.blocks(made):
            await log.js.publish(subjects.recorded(self.sid), recordings.seal(key, self.sid, block))
        return len(made)


def _tone(rate: int, at: int, *, loud: bool) -> bytes:
    moments = at / 1_000 + np.arange(rate // 50) / rate
    envelope = 0.02 if not loud else 0.25 + 0.2 * math.sin(at / 90) * math.sin(at / 370)
    return bytes((np.sin(2 * np.pi * 190 * moments) * envelope * 32_767).astype("<i2").tobytes())
