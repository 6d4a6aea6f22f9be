"""A call with random events at random times: the core alone, in virtual time, with the guarantees of the shell around it.

A list of things (`things`) is played through the core; then the call comes to rest, and `rules` checks it. The guarantees of the shell are
kept: a cancelled connection sends nothing, sound is played in the order in which it was made, the detector hears only audio routed to it, a
worker that dies loses the end of its journal. All else is random: the provider's messages and their times, failing effects, crashes, and
the delay of the page's reports.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Any, Final

import msgspec

from tests.virtual_time import VirtualTimers
from tests.voice.conversation import SID, START_US
from tests.voice.orders.page import Page
from tests.voice.orders.teams import BEGIN_IN_TEXT, FUNCTIONS, TEAMS
from voxbridge.services.voice.core import inputs, provider_events, step
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.turns import reopening
from voxbridge.shared import events
from voxbridge.shared.agents.model import AgentTeam
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.step.fold import Append
from voxbridge.shared.step.journal import LogInput

IDLE_S: Final = 3_600
THINKS_MS: Final = 300
EXECUTOR_MS: Final = 400
SLICE_MS: Final = 250


class Progress(msgspec.Struct):
    """An effect under way."""

    effect: out.Effect
    ms: int = 0
    called: bool = False


class Orders:
    """A call. `things` makes things happen to it, `rest` lets it come to rest."""

    def __init__(
        self,
        team: str,
        *,
        obliging: bool = True,
        reports: bool = True,
        late_ms: int = 0,
        speak_results: bool = False,
        patience_s: int = 8,
        tool_rounds: int = 5,
        filler: bool = False,
        reopens: int = reopening.LIMIT,
    ) -> None:
        """Set up a call.

        `obliging`: at rest, models answer their requests; else they stay silent. `reports`: the page reports playback, `late_ms` later."""
        self.team = team
        self.obliging = obliging
        self.reopens = reopens
        self.state = step.initial(SID)
        self.now = 0
        self.appended: list[tuple[int, events.Event]] = []
        """Appended events, with the number of the input that caused each."""

        self.taken: list[tuple[int, Any]] = []
        self.told: list[str] = []
        """Texts that the model of a connection was given."""

        self.asked: list[Sequence[out.Message]] = []
        """Conversations that models were given."""

        self.said: list[str] = []
        """Announcements, in order."""

        self.typed: list[str] = []
        self.questions: dict[str, str] = {}
        """Requests for approval, by id."""

        self.voiced: set[int] = set()
        """Turns that had words or sound."""

        self.waiting_turns: set[int] = set()
        """Turns that the model ended without an answer because it waits for the user to continue."""

        self.faults = 0
        self.resting = False
        self.timers = VirtualTimers()
        self.effects: dict[int, Progress] = {}
        self.route = "nobody"
        self.speaking = False
        self.heard_speaking = False
        """The detector has reported speech."""

        self.in_turn = False
        self.made = 0
        self.generation = 0
        self.gateway = "g0"
        self.connection = 0
        self.gone = False
        self.page = Page(self._reported, self._sent)
        self._reports = reports
        self._late_ms = late_ms
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._seq = 0
        self._kept: list[tuple[Any, VirtualTimers, dict[int, Progress], str]] = []
        """State of the worker before each input that is not yet in its journal."""

        client = gateway.ClientCapabilities(protocol="voxbridge.v1" if self._reports else "vox")
        options = gateway.SessionOptions(output="text" if team in BEGIN_IN_TEXT else "")
        self.log(gateway.SessionRequested(mode="local", client=client, options=options))
        opened = inputs.Opened(
            worker="w",
            term=1,
            model="local",
            voice="",
            greeting="",
            functions=FUNCTIONS,
            providers=("local", "gemini", "openai", "anthropic"),
            idle_timeout_s=IDLE_S,
            turn_timeout_s=30,
            speak_results=speak_results,
            rules=inputs.RULES,
            resume_window_s=120,
            model_patience_s=patience_s,
            team=AgentTeam(agents=TEAMS[team]),
            tool_rounds=tool_rounds,
            filler=filler,
            reopens=reopens,
        )
        self.take(opened)
        self.log(gateway.ClientConnected(gateway=self.gateway, connection="c0", resumed=False))

    @classmethod
    def drawn(cls, seed: str) -> Orders:
        """Return the call of this seed."""
        random = Random(seed)
        return cls(
            random.choice(list(TEAMS)),
            obliging=random.random() < 0.5,
            reports=random.random() < 0.75,
            late_ms=random.choice([0, 0, 20, 300]),
            speak_results=random.random() < 0.2,
            patience_s=random.choice([0, 8]),
            tool_rounds=random.choice([0, 2, 5]),
            filler=random.random() < 0.5,
            reopens=random.choice([0, 1, reopening.LIMIT]),
        )

    # Inputs of the core.

    def log(self, event: events.Event) -> None:
        """Take an event of the log."""
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
        """Take an input."""
        now = START_US + self.now * 1_000
        self._kept.append((self.state, VirtualTimers(self.timers), dict(self.effects), self.route))
        self.taken.append((now, input))
        if isinstance(input, inputs.TimerFired):
            del self.timers[input.name]
        if isinstance(
            input, provider_events.ProviderLost | inputs.EffectFailed | inputs.Completed | inputs.Transcribed | inputs.TurnJudged
        ):
            self.effects.pop(input.effect, None)
        self.state, outputs = step.step(self.state, input, now)
        reply = self.state.speech.reply
        if reply is not None and reply.pieces:
            self.voiced.add(reply.turn)
        for output in outputs:
            self._perform(output)

    def _perform(self, output: Any) -> None:
        match output:
            case Append(event=event):
                self.appended.append((len(self.taken) - 1, event))
                self._kept.clear()
                if isinstance(event, ev.ToolCalled) and self.resting:
                    self._answer_later(event)
            case out.SetTimer(name=name, after_ms=after_ms):
                self.timers.set(name, self.now + after_ms)
            case out.CancelTimer(name=name):
                self.timers.cancel(name)
            case out.StartEffect(id=id, effect=effect):
                if isinstance(effect, out.Connect):
                    connects = [one for one in self.effects.values() if isinstance(one.effect, out.Connect)]
                    assert not connects, "the connection before is closed first"
                    self.in_turn, self.made = False, 0
                    self.asked.append((out.Message(role="system", text=effect.instructions), *effect.history))
                elif isinstance(effect, out.Complete):
                    self.asked.append(effect.messages)
                self.effects[id] = Progress(effect)
                if self.resting:
                    self._oblige(id)
            case out.CancelEffect(id=id):
                self.effects.pop(id, None)
            case out.Route(microphone=microphone):
                self.route = microphone
                if not self.listens:
                    self.heard_speaking = False
            case out.Play(generation=generation):
                if generation != self.generation:
                    self.generation, self.made = generation, 0
            case out.Say(effect=told, text=text, respond=respond):
                self.told.append(text)
                if respond and self.resting and self.obliging:
                    self.after(THINKS_MS, lambda: self._responds(told, text))
            case out.Answer(effect=asking):
                if self.resting and self.obliging:
                    self.after(THINKS_MS, lambda: self._responds(asking, "found"))
            case out.FinishSpeech(generation=generation):
                self.page.finish(generation)
            case out.Flush(generation=generation):
                self.page.flush(generation, gone=self.gone)

    def after(self, ms: int, do: Callable[[], None]) -> None:
        """Schedule an action."""
        heapq.heappush(self._queue, (self.now + ms, next(self._order), do))

    def passes(self, ms: int) -> None:
        """Advance the time."""
        until = self.now + ms
        while True:
            due = min(self.timers.values(), default=until + 1)
            queued = self._queue[0][0] if self._queue else until + 1
            at = min(due, queued, until, self.now + SLICE_MS if self.page.playing else until)
            self.page.plays(max(0, at - self.now))
            self.now = max(self.now, at)
            if queued <= self.now:
                heapq.heappop(self._queue)[2]()
            elif due <= self.now:
                self.take(inputs.TimerFired(self.timers.first(self.now)))
            elif self.now >= until:
                return

    # The page.

    def _reported(self, generation: int, ms: int, state: gateway.PlaybackState) -> None:
        if self._reports and not self.gone:
            report = gateway.PlaybackReported(generation=generation, played_ms=ms, state=state)
            self.after(self._late_ms, lambda: self.log(report) if not self.gone else None)

    def _sent(self, generation: int) -> None:
        worker = self.state.ownership.term

        def sent() -> None:
            if self.state.ownership.term == worker and generation > self.page.flushed:
                self.take(inputs.AudioSent(generation))

        self.after(0, sent)

    def lose_client(self) -> None:
        """Lose the client's socket, without a notice from the gateway."""
        self.gone = True
        self.page.cut()
        self.faults += 1

    # The connection.

    @property
    def link(self) -> int:
        """The current connection."""
        return self.state.realtime.effect if self.state.realtime is not None else 0

    @property
    def ready(self) -> bool:
        """True while the connection is open."""
        return self.state.realtime is not None and self.state.realtime.ready and self.link in self.effects

    @property
    def listens(self) -> bool:
        """True while the microphone goes to the detector."""
        return self.route == "detector" or (self.route == "provider" and self.state.team.agent.manual_activity)

    def audio(self, ms: int) -> None:
        """Have the connection's model speak: counted and played as by `uplink`."""
        self.in_turn = True
        if not self.made or self.made // 1_000 != (self.made + ms) // 1_000:
            link = self.link
            self.take(provider_events.AgentAudio(effect=link, ms=self.made + ms, audio_ms=self.now, piece_ms=ms))
            if link != self.link:
                return  # this input moved the call to another connection
        self.made += ms
        if self.generation:
            self.page.add(self.generation, ms)

    def done(self, *, waiting: bool = False, quiet: bool = False) -> None:
        """End the model's turn."""
        self.in_turn, made, self.made = False, self.made, 0
        turns = self.state.counters.turns
        self.take(provider_events.ModelTurnDone(effect=self.link, ms=made, quiet=quiet and made > 0, waiting=waiting, output_tokens=1))
        if waiting:
            self.waiting_turns |= {turns, self.state.counters.turns}

    def lose(self, number: int) -> None:
        """Lose the connection, or fail to open it."""
        self.faults += 1
        retryable = number % 4 != 0
        error = ev.Failure(code="PROVIDER_UNAVAILABLE", message="Gone.", retryable=retryable)
        refused = number % 5 == 0
        self.in_turn, self.made = False, 0
        self.take(provider_events.ProviderLost(effect=self.link, code=1006, error=error, handle_refused=refused, audio_ms=self.now))

    def _responds(self, effect: int, text: str) -> None:
        if effect != self.link or not self.ready or self.in_turn:
            return
        self.audio(700)
        self.take(provider_events.AgentWords(effect=self.link, text=f" {text[-12:]}", ms=self.made, piece_ms=0))
        if self.ready:
            self.done()

    def _oblige(self, id: int) -> None:
        """Have an effect succeed after a while."""
        progress = self.effects[id]
        effect = progress.effect
        if isinstance(effect, out.Connect):
            self.after(effect.delay_ms + 100, lambda: self._opens(id))
        elif isinstance(effect, out.Complete) and not self.obliging:
            return
        else:
            self.after(150, lambda: self._ends_well(id))

    def _opens(self, id: int) -> None:
        if id in self.effects and id == self.link and not self.ready:
            self.take(provider_events.ProviderReady(effect=id, audio_ms=self.now))
            if self.obliging and self.state.realtime is not None and self.state.realtime.owed.asking:
                self.after(THINKS_MS, lambda: self._responds(id, "again"))

    def _ends_well(self, id: int) -> None:
        progress = self.effects.get(id)
        match progress.effect if progress is not None else None:
            case out.Transcribe():
                self.take(inputs.Transcribed(effect=id, text=f"s{id}"))
            case out.JudgeTurn():
                self.take(inputs.TurnJudged(id, 0.9))
            case out.Complete():
                self.take(inputs.TextDelta(id, "Well then."))
                self.take(inputs.Completed(effect=id))
            case out.Synthesize():
                self.made_sound(id, 700, done=True)

    def made_sound(self, id: int, ms: int, *, done: bool) -> None:
        """Add sound to a piece."""
        progress = self.effects[id]
        if isinstance(progress.effect, out.Synthesize):
            progress.ms += ms
            self.page.add(progress.effect.generation, ms)
            if done:
                del self.effects[id]
            self.take(inputs.AudioMade(effect=id, ms=progress.ms, done=done))

    def _answer_later(self, event: ev.ToolCalled) -> None:
        found = tools.ToolCompleted(call_id=event.call_id, name=event.name, result={"found": 1}, ms=1)
        self.after(EXECUTOR_MS, lambda: self.log(found))

    # The worker.

    def dies(self, number: int) -> None:
        """Kill the worker before the end of its journal is written; another one continues."""
        self.faults += 1
        lost: list[Any] = []
        if self._kept and number % 2:
            keep = number % len(self._kept)
            lost = [input for _, input in self.taken[len(self.taken) - len(self._kept) + keep :]]
            self.state, self.timers, self.effects, self.route = self._kept[keep]
            del self.taken[len(self.taken) - len(self._kept) + keep :]
        self._kept.clear()
        self.page.stop()
        self.effects = {}
        self.in_turn, self.made, self.generation = False, 0, 0
        self.now += 100 * number
        current = self.page.generations.get(self.state.counters.generation)
        taken = inputs.TakenOver(
            worker="v",
            term=self.state.ownership.term + 1,
            gap_ms=100 * number,
            generation=self.state.counters.generation,
            left_ms=(current.made if current is not None else 0) if number % 3 else None,
            audio_from_ms=max(0, self.now - 10_000),
            audio_to_ms=self.now,
        )
        self.take(taken)
        utterance = self.state.utterance
        self.heard_speaking = utterance is not None and utterance.to_ms is None
        for input in lost:
            if isinstance(input, LogInput):
                self.take(input)
            elif isinstance(input, inputs.VoiceStarted | inputs.VoiceStopped):
                self.hears(started=isinstance(input, inputs.VoiceStarted))
        self.hears(started=self.speaking)

    def hears(self, *, started: bool) -> None:
        """Have the detector, if it has the microphone, report the start or end of speech."""
        if self.listens and self.heard_speaking != started:
            self.heard_speaking = started
            self.take(inputs.VoiceStarted(self.now) if started else inputs.VoiceStopped(self.now, 256))

    def pauses(self) -> None:
        """Have the detector, if it has the microphone, report a silence that may become the end of speech."""
        if self.listens and self.heard_speaking:
            self.take(inputs.VoicePaused(self.now))

    # The call comes to rest.

    def rest(self) -> None:
        """Let the call come to rest: connections open, effects end, the client is present, the user is silent, and nothing else happens."""
        self.resting = True
        self.passes(self._late_ms)
        if self.gone or self.state.client.away_since:
            self.gone = False
            self.connection += 1
            self.log(gateway.ClientConnected(gateway=self.gateway, connection=f"c{self.connection}", resumed=True))
        self.speaking = False
        self.hears(started=False)
        for id in list(self.effects):
            if id in self.effects:
                self._oblige(id)
        delivered = {one.call_id for _, one in self.appended if isinstance(one, ev.ToolDelivered)}
        for _, event in list(self.appended):
            if isinstance(event, ev.ToolCalled) and event.call_id not in delivered:
                self._answer_later(event)
        if self.in_turn and self.ready:
            self.after(500, lambda: self.done() if self.in_turn and self.ready else None)
        for _ in range(100):
            self.passes(20_000)
            if self.state.phase == "ended" or not (self._busy or self._queue):
                break
        self.passes(35_000)

    @property
    def _busy(self) -> bool:
        state = self.state
        waits = any(not isinstance(one.effect, out.Connect) for one in self.effects.values())
        return bool(
            waits
            or state.speech.reply
            or state.speech.cut
            or state.pending.notices
            or self.timers.keys() - {"idle", "leave", "grace"}
            or self.page.playing
        )
