"""A whole call in virtual time: a user, a page that plays, models, an executor, and workers that die and are replaced.

Nothing is random. A worker that dies loses its timers, its effects and the unwritten end of its journal; its successor folds the rest, like
`voxbridge.services.voice.session.session`, and continues. The audio that the page really played is kept apart from what the core assumes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import msgspec

from tests.virtual_time import VirtualTimers
from tests.voice.conversation import FUNCTIONS, PAGE_FUNCTIONS, SID, START_US
from voxbridge.services.voice.audio.speaker import LEAD_MS
from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.outstanding import Outstanding
from voxbridge.services.voice.core.state import State
from voxbridge.services.voice.core.turns import reopening
from voxbridge.shared import events
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.journal import Taken, VoiceJournal
from voxbridge.shared.step.fold import Append, fold
from voxbridge.shared.step.journal import LogInput

JOURNAL_MS = 100
MS_PER_CHARACTER = 50
TAKEOVER_MS = 3_200
_encode = msgspec.msgpack.Encoder().encode


class Spoken(msgspec.Struct):
    """Audio of a generation that was sent: its pieces with their lengths, its start, and the limit of what can be sent."""

    began: int
    pieces: list[tuple[str, int]] = []
    left: int | None = None
    """Milliseconds sent to the page, once sending has ended: the worker died, the page was cut off, or the audio was flushed."""

    flushed: bool = False
    told: bool = False
    """The page reported the end."""

    @property
    def ms(self) -> int:
        """Milliseconds of all pieces."""
        return sum(ms for _, ms in self.pieces)


class World:
    """The world. `answers` maps the user's words to the model's answer; a tuple is words and a call."""

    def __init__(self, answers: dict[str, Any], *, greeting: str = "", reports: bool = True, filler: bool | None = False) -> None:
        self.now = 0
        self.state: State = step.initial(SID)
        self.log: list[events.Recorded] = []
        self.spoken: dict[int, Spoken] = {}
        self.asked: list[out.Complete] = []
        self.alive = False
        self.worker = 0
        self._answers = answers
        self._reports = reports
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._timers = VirtualTimers()
        self._effects: set[int] = set()
        self._taken = 0
        self._unwritten: list[tuple[int, Any]] = []
        self._waiting: list[events.Recorded] = []
        self._voice: list[Any] = []
        self._gone = False
        self._whole: set[int] = set()
        self._sounds: dict[int, tuple[int, str, int]] = {}
        self._greeting, self._filler = greeting, filler
        self.thinks_ms = 200
        """Milliseconds until the first word of a language model."""

        self.cut_short: list[int] = []
        """Milliseconds that realtime models were told as heard."""

        self.without_a_voice = False
        """Speech synthesis fails."""

        self.on_moment: Callable[[Any], object] = lambda moment: None
        """Called with each moment for the client."""

        client = gateway.ClientCapabilities(protocol="voxbridge.v1" if reports else "vox")
        self._requested = self._store("gateway", gateway.SessionRequested(mode="local", client=client, functions=PAGE_FUNCTIONS), None)
        self._open()

    def at(self, ms: int, do: Callable[[], None]) -> None:
        """Schedule an action."""
        heapq.heappush(self._queue, (ms, next(self._order), do))

    def says(self, ms: int, text: str) -> None:
        """Have the user type."""
        self.at(ms, lambda: self._written("gateway", gateway.TextReceived(text=text)))

    def speaks(self, ms: int, text: str, *, for_ms: int = 1_000) -> None:
        """Have the user speak, even across the death of a worker."""
        self._answers.setdefault("", text)
        self.at(ms, lambda: self._sound(inputs.VoiceStarted(ms)))
        self.at(ms + for_ms + 160, lambda: self._sound(inputs.VoicePaused(ms + for_ms)))
        self.at(ms + for_ms + 256, lambda: self._sound(inputs.VoiceStopped(ms + for_ms, 256)))

    def dies(self, ms: int, *, for_ms: int = TAKEOVER_MS) -> None:
        """Kill the worker; `for_ms` later a successor continues."""
        self.at(ms, self._die)
        self.at(ms + for_ms, self._take_over)

    def leaves(self, ms: int, *, for_ms: int, told: bool = True) -> None:
        """Cut the client's socket; later it resumes. `told`: the gateway reports the cut."""
        self.at(ms, lambda: self._cut(told=told))
        self.at(ms + for_ms, self._come_back)

    def run(self, until_ms: int) -> None:
        """Advance the time."""
        while True:
            name = self._timers.first(until_ms) if self.alive else ""
            if self._queue and self._queue[0][0] <= min(self._timers[name] if name else until_ms, until_ms):
                at, _, do = heapq.heappop(self._queue)
                self.now = max(self.now, at)
                do()
            elif name:
                self.now = max(self.now, self._timers.pop(name))
                self._take(inputs.TimerFired(name))
            else:
                self.now = until_ms
                return

    def told(self, *kinds: type[events.Event]) -> list[Any]:
        """Return the events of these types in the log."""
        return [one.event for one in self.log if isinstance(one.event, kinds)]

    def heard(self) -> list[tuple[str, bool]]:
        """Return `(piece, wholly)` of everything that the page really played, in order."""
        found = []
        for generation in sorted(self.spoken):
            spoken = self.spoken[generation]
            played = self._played(spoken)
            for text, ms in spoken.pieces:
                if played > 0:
                    found.append((text, played >= ms))
                played -= ms
        return found

    # The worker.

    def _open(self) -> None:
        self.alive, self.worker = True, 1
        self._take(LogInput(self._requested))
        self._take(
            inputs.Opened(
                worker="voice-1",
                term=1,
                model="local",
                voice="",
                greeting=self._greeting,
                functions=FUNCTIONS,
                providers=("local", "echo"),
                idle_timeout_s=600,
                turn_timeout_s=30,
                resume_window_s=120,
                model_patience_s=8,
                filler=self._filler,
                reopens=reopening.LIMIT,
            )
        )

    def _take(self, input: Any) -> None:
        if not self.alive:
            return
        cause: int | str = input.recorded.seq if isinstance(input, LogInput) else f"voice#{self._taken}"
        self.state, outputs = step.step(self.state, input, self._us())
        self._taken += 1
        if not self._unwritten:
            worker = self.worker
            self.at(self.now + JOURNAL_MS, lambda: self._write_journal() if worker == self.worker else None)
        self._unwritten.append((self._us(), input))
        for output in outputs:
            if isinstance(output, Append):
                self._write_journal()
                self._store("voice", output.event, cause)
                self._follow(output.event)
            else:
                self._perform(output)

    def _write_journal(self) -> None:
        if self._unwritten and self.alive:
            taken = tuple(
                Taken(at=at, seq=one.recorded.seq) if isinstance(one, LogInput) else Taken(at=at, seq=None, input=msgspec.Raw(_encode(one)))
                for at, one in self._unwritten
            )
            self._unwritten = []
            self._store("voice", VoiceJournal(first=self._taken - len(taken), inputs=taken), None)

    def _die(self) -> None:
        self._freeze()
        self.alive = False
        self._timers.clear()
        self._effects, self._unwritten = set(), []

    def _take_over(self) -> None:
        running = Outstanding()
        folded = fold(step.step, step.initial(SID), inputs.Input, "voice", self.log, watch=running.watch)
        self.alive, self.state, self._taken = True, folded.state, folded.taken
        self.worker += 1
        for due in folded.missing:
            self._store("voice", due.event, due.cause)
        self._timers.restore(running.timers, start_us=START_US)
        spoken = self.spoken.get(self.state.counters.generation)
        self._take(
            inputs.TakenOver(
                worker=f"voice-{self.worker}",
                term=self.state.ownership.term + 1,
                gap_ms=TAKEOVER_MS,
                generation=self.state.counters.generation,
                left_ms=(spoken.ms if spoken.left is None else spoken.left) if spoken is not None else 0,
                audio_from_ms=max(0, self.now - 10_000),
                audio_to_ms=self.now,
            )
        )
        mark = self.state.client.microphone
        for index, change in enumerate(self._voice):
            if mark is None or index >= mark.sequence:
                self._take(inputs.MicrophoneAt(samples=self.now * 16, sequence=index + 1, time_ms=self.now))
                self._take(change)
        for recorded in [one for one in self.log if one.writer in ("gateway", "tools") and one.seq > running.taken.get(one.writer, 0)]:
            self._take(LogInput(recorded))

    def _perform(self, output: Any) -> None:
        match output:
            case out.SetTimer(name=name, after_ms=after_ms):
                self._timers.set(name, self.now + after_ms)
            case out.CancelTimer(name=name):
                self._timers.cancel(name)
            case out.StartEffect(id=id, effect=effect):
                self._effects.add(id)
                self._begin(id, effect)
            case out.CancelEffect(id=id):
                self._effects.discard(id)
            case out.Flush(generation=generation):
                self._flush(generation)
            case out.CutShort(heard_ms=heard_ms):
                self.cut_short.append(heard_ms)
            case out.Tell(moment=moment):
                self.on_moment(moment)
            case out.FinishSpeech(generation=generation) if generation in self.spoken:
                self._play_to_end(generation)

    def _give(self, after_ms: int, effect: int, input: Any, *, done: bool = False) -> None:
        worker = self.worker

        def give() -> None:
            if self.alive and worker == self.worker and effect in self._effects:
                if done:
                    self._effects.discard(effect)
                if isinstance(input, inputs.AudioMade):
                    self._made(effect, input)
                self._take(input)

        self.at(self.now + after_ms, give)

    # The models and the executor.

    def _begin(self, id: int, effect: out.Effect) -> None:
        match effect:
            case out.Transcribe():
                self._give(120, id, inputs.Transcribed(effect=id, text=self._answers.get("", "")), done=True)
            case out.JudgeTurn():
                self._give(40, id, inputs.TurnJudged(id, 0.9), done=True)
            case out.Complete():
                self.asked.append(effect)
                self._complete(id, effect.messages)
            case out.Synthesize() if self.without_a_voice:
                away = ev.Failure(code="PROVIDER_UNAVAILABLE", message="The voice is away.", retryable=True)
                self._give(60, id, inputs.EffectFailed(effect=id, error=away), done=True)
            case out.Synthesize(generation=generation, text=text):
                ms = len(text) * MS_PER_CHARACTER
                self._sounds[id] = (generation, text, ms)
                if effect.whole:
                    self._whole.add(id)
                else:
                    self._give(60, id, inputs.AudioMade(effect=id, ms=min(100, ms), done=False))
                self._give(160, id, inputs.AudioMade(effect=id, ms=ms, done=True), done=True)

    def _complete(self, id: int, messages: Sequence[out.Message]) -> None:
        last = messages[-1]
        answer = self._answers[last.text if last.role == "user" else "result"]
        words, function = answer if isinstance(answer, tuple) else (answer, "")
        at = self.thinks_ms
        for word in words.split(" ") if words else []:
            self._give(at, id, inputs.TextDelta(id, f"{word} "))
            at += 40
        if function:
            self._give(at, id, inputs.ToolRequested(effect=id, name=function, arguments={}))
        self._give(at, id, inputs.Completed(effect=id, input_tokens=1, output_tokens=1), done=True)

    def _follow(self, event: events.Event) -> None:
        if isinstance(event, ev.ToolCalled):
            done = tools.ToolCompleted(call_id=event.call_id, name=event.name, result={"time": "12:00"}, ms=5)
            self.at(self.now + 700, lambda: self._written("tools", done))

    # The page.

    def _made(self, effect: int, made: inputs.AudioMade) -> None:
        generation, text, ms = self._sounds[effect]
        spoken = self.spoken.get(generation)
        if spoken is None:
            spoken = self.spoken[generation] = Spoken(began=self.now)
            if self._gone:
                spoken.left, spoken.flushed = 0, True
            self.at(self.now, lambda: self._take(inputs.AudioSent(generation)))
            self._report_on(generation, 0)
        if not made.done or effect in self._whole:
            if self.now - spoken.began > spoken.ms:
                spoken.began = self.now - spoken.ms  # playback waited for the voice
            spoken.pieces.append((text, ms))

    def _played(self, spoken: Spoken) -> int:
        most = spoken.left if spoken.left is not None else spoken.ms
        return max(0, min(self.now - spoken.began, most, spoken.ms))

    def _report_on(self, generation: int, ms: int) -> None:
        """Report the playback each second, as the page does."""

        def report() -> None:
            spoken = self.spoken[generation]
            if spoken.flushed or spoken.told or not self._reports:
                return
            if self._played(spoken) >= ms:
                self._reported(generation, ms, "playing")
                self._report_on(generation, ms + 1_000)
            elif spoken.left is None:
                self.at(self.now + 100, report)

        self.at(self.now + (1_000 if ms else 20), report)

    def _play_to_end(self, generation: int) -> None:
        spoken = self.spoken[generation]

        def end() -> None:
            if spoken.flushed or spoken.told or (spoken.left is not None and spoken.left < spoken.ms):
                return
            if self._played(spoken) < spoken.ms:
                self.at(self.now + 50, end)
                return
            spoken.told = True
            self._reported(generation, spoken.ms, "finished")

        self.at(max(self.now, spoken.began + spoken.ms), end)

    def _flush(self, generation: int) -> None:
        for number, spoken in self.spoken.items():
            if number <= generation:
                spoken.left = self._played(spoken)
                spoken.flushed = True
                if not spoken.told and not self._gone:
                    spoken.told = True
                    self._reported(number, spoken.left, "flushed", after_ms=30)

    def _freeze(self) -> None:
        for spoken in self.spoken.values():
            if spoken.left is None and not spoken.told:
                spoken.left = min(spoken.ms, self.now - spoken.began + LEAD_MS)

    def _reported(self, generation: int, ms: int, state: gateway.PlaybackState, after_ms: int = 5) -> None:
        if self._reports and not self._gone:
            report = gateway.PlaybackReported(generation=generation, played_ms=ms, state=state)
            self.at(self.now + after_ms, lambda: self._written("gateway", report))

    def _cut(self, *, told: bool) -> None:
        self._gone = True
        for spoken in self.spoken.values():
            if not spoken.flushed and not spoken.told:
                spoken.left = self._played(spoken)
                spoken.flushed = True
        if told:
            self._written("gateway", gateway.ClientDisconnected(gateway="g", connection="", reason="closed", last_seq=0))

    def _come_back(self) -> None:
        self._gone = False
        self._written("gateway", gateway.ClientConnected(gateway="g", connection="d", resumed=True))

    def _sound(self, change: Any) -> None:
        self._voice.append(change)
        self._take(inputs.MicrophoneAt(samples=self.now * 16, sequence=len(self._voice), time_ms=self.now))
        self._take(change)

    def _written(self, writer: str, event: events.Event) -> None:
        self._take(LogInput(self._store(writer, event, None)))

    def _store(self, writer: str, event: events.Event, cause: int | str | None) -> events.Recorded:
        kind = events.kind_of(event)
        mine = sum(one.writer == writer for one in self.log)
        recorded = events.Recorded(
            seq=len(self.log) + 1,
            id=f"{SID}.{writer}.{mine}",
            sid=SID,
            ts=self._us(),
            cause=cause,
            writer=writer,
            visible=kind.visible,
            type=kind.name,
            v=kind.version,
            event=event,
        )
        self.log.append(recorded)
        return recorded

    def _us(self) -> int:
        return START_US + self.now * 1_000
