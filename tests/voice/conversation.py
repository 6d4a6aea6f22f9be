"""A conversation with the core in virtual time: feeds inputs, fires timers when they are due, collects outputs."""

from __future__ import annotations

from typing import Any, TypeVar

from tests.virtual_time import VirtualTimers
from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.state import State
from voxbridge.services.voice.core.turns import reopening
from voxbridge.shared import events
from voxbridge.shared.agents.model import AgentTeam
from voxbridge.shared.awareness.view import NOTHING, View
from voxbridge.shared.bus.moments import PartialTranscript, StateChanged
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.macros.triggers import Spoken
from voxbridge.shared.step.fold import Append
from voxbridge.shared.step.journal import LogInput
from voxbridge.shared.store.store import Function

SID = "0123456789abcdef0123456789abcdef"
START_US = 1_800_000_000_000_000
FUNCTIONS = (
    Function(name="current_time", description="The time.", parameters={"type": "object"}, timeout_s=5, effect="read"),
    Function(name="send_mail", description="Send a mail.", parameters={"type": "object"}, timeout_s=5, effect="write"),
)
PAGE_FUNCTIONS = (Function(name="open_page", description="Open a page.", parameters={"type": "object"}, kind="browser", timeout_s=5),)
E = TypeVar("E")


class Conversation:
    """A session of the core. `now_ms` counts from the request."""

    def __init__(
        self,
        *,
        greeting: str = "",
        mode: gateway.Mode = "local",
        protocol: Any = "voxbridge.v1",
        prompt: str = "",
        speak_results: bool = False,
        resume_window_s: int = 10,
        model_patience_s: int = 8,
        stt_patience_s: int = 0,
        filler: bool = False,
        wishes: bool | None = None,
        team: AgentTeam | None = None,
        functions: tuple[Function, ...] = PAGE_FUNCTIONS,
        installed: tuple[Function, ...] = FUNCTIONS,
        macros: tuple[Spoken, ...] = (),
        names: dict[str, dict[str, tuple[str, ...]]] | None = None,
        unheard: tuple[str, ...] = (),
        screen: View = NOTHING,
        providers: tuple[str, ...] = ("local", "echo"),
        reopens: int = reopening.LIMIT,
        child: gateway.Child | None = None,
    ) -> None:
        self.state: State = step.initial(SID)
        self.now_ms = 0
        self.inputs: list[tuple[int, Any]] = []
        self.outputs: list[Any] = []
        self._timers = VirtualTimers()
        self._seq = 0
        client = gateway.ClientCapabilities(protocol=protocol)
        output: Any = "text" if child is not None else ""
        self.log(
            gateway.SessionRequested(
                mode=mode, system_prompt=prompt, client=client, filler=wishes, functions=functions, child=child, output=output
            )
        )
        self.take(
            inputs.Opened(
                worker="voice-1",
                term=1,
                model="local",
                voice="",
                greeting=greeting,
                functions=installed,
                providers=providers,
                idle_timeout_s=600,
                turn_timeout_s=30,
                speak_results=speak_results,
                tells_ends=True,
                rules=inputs.RULES,
                resume_window_s=resume_window_s,
                model_patience_s=model_patience_s,
                stt_patience_s=stt_patience_s,
                filler=filler,
                team=team,
                reopens=reopens,
                macros=macros,
                names=names or {},
                unheard=unheard,
                screen=screen,
            )
        )

    def log(self, event: events.Event) -> list[Any]:
        """Take an event of the log. Return the outputs."""
        self._seq += 1
        kind = events.kind_of(event)
        recorded = events.Recorded(
            seq=self._seq,
            id=f"{SID}.{kind.writer}.{self._seq}",
            sid=SID,
            ts=START_US + self.now_ms * 1_000,
            cause=None,
            writer=kind.writer,
            visible=kind.visible,
            type=kind.name,
            v=kind.version,
            event=event,
        )
        return self.take(LogInput(recorded))

    def take(self, input: Any) -> list[Any]:
        """Take an input now. Return the outputs."""
        now = START_US + self.now_ms * 1_000
        self.inputs.append((now, input))
        self.state, outputs = step.step(self.state, input, now)
        for output in outputs:
            if isinstance(output, out.SetTimer):
                self._timers.set(output.name, self.now_ms + output.after_ms)
            elif isinstance(output, out.CancelTimer):
                self._timers.cancel(output.name)
        self.outputs.extend(outputs)
        return list(outputs)

    def pass_ms(self, ms: int) -> None:
        """Advance the time; timers fire when they are due."""
        until = self.now_ms + ms
        while name := self._timers.first(until):
            self.now_ms = self._timers.pop(name)
            self.take(inputs.TimerFired(name))
        self.now_ms = until

    def timer_left(self, name: str) -> int:
        """Return the ms until a timer fires."""
        return self._timers[name] - self.now_ms

    def events(self, kind: type[E]) -> list[E]:
        """Return the events of a type that were appended so far."""
        return [o.event for o in self.outputs if isinstance(o, Append) and isinstance(o.event, kind)]

    def effects(self, kind: type[E]) -> list[tuple[int, E]]:
        """Return the effects of a kind that were started so far, with their ids."""
        return [(o.id, o.effect) for o in self.outputs if isinstance(o, out.StartEffect) and isinstance(o.effect, kind)]

    def last_effect(self, kind: type[E]) -> tuple[int, E]:
        """Return the newest effect of a kind, with its id."""
        return self.effects(kind)[-1]

    def cancelled(self) -> set[int]:
        """Return the ids of effects that were cancelled."""
        return {o.id for o in self.outputs if isinstance(o, out.CancelEffect)}

    def flushed(self) -> list[int]:
        """Return the generations that were flushed."""
        return [o.generation for o in self.outputs if isinstance(o, out.Flush)]

    def states(self) -> list[str]:
        """Return the states shown, in order."""
        return [o.moment.state for o in self.outputs if isinstance(o, out.Tell) and isinstance(o.moment, StateChanged)]

    def partials(self, role: str) -> list[str]:
        """Return the partial transcripts shown for a role."""
        found = [o.moment for o in self.outputs if isinstance(o, out.Tell) and isinstance(o.moment, PartialTranscript)]
        return [moment.text for moment in found if moment.role == role]

    def speak(self, text: str, *, ms: int = 1_500, probability: float = 0.9) -> None:
        """Have the user speak for `ms` and pause; the turn is judged and transcribed."""
        began = self.now_ms
        self.take(inputs.VoiceStarted(began))
        self.pass_ms(ms)
        self.take(inputs.VoiceStopped(began + ms, 256))
        self.pass_ms(50)
        self.take(inputs.TurnJudged(self.last_effect(out.JudgeTurn)[0], probability))
        self.pass_ms(100)
        self.take(inputs.Transcribed(effect=self.last_effect(out.Transcribe)[0], text=text))

    def begin_to_speak(self, ms: int = 900) -> int:
        """Have the user speak for `ms`. Return where the speech began."""
        began = self.now_ms
        self.take(inputs.VoiceStarted(began))
        self.pass_ms(ms)
        return began

    def write(self, *deltas: str, done: bool = True) -> int:
        """Have the language model write. Return the id of the completion."""
        effect, _ = self.last_effect(out.Complete)
        for delta in deltas:
            self.pass_ms(30)
            self.take(inputs.TextDelta(effect, delta))
        if done:
            self.take(inputs.Completed(effect=effect, input_tokens=10, output_tokens=len(deltas)))
        return effect

    def synthesize(self, *, ms_each: int = 1_000) -> int:
        """Synthesise all pieces that wait to be spoken. Return their number."""
        pieces = 0
        while True:
            open_pieces = [
                p for p in (self.state.speech.reply.pieces if self.state.speech.reply else ()) if p.effect is not None and not p.done
            ]
            if not open_pieces:
                return pieces
            effect = open_pieces[0].effect or 0
            self.take(inputs.AudioMade(effect=effect, ms=100, done=False))
            if self.state.speech.reply is not None and self.state.speech.reply.playback.sent is None:
                self.take(inputs.AudioSent(self.state.speech.reply.generation))
            self.take(inputs.AudioMade(effect=effect, ms=ms_each, done=True))
            pieces += 1

    def play(self, played_ms: int, state: gateway.PlaybackState = "playing", generation: int | None = None) -> None:
        """Report playback of the current (or given) generation as the client."""
        self.log(gateway.PlaybackReported(generation=generation or self.state.counters.generation, played_ms=played_ms, state=state))

    def hear(self) -> None:
        """Have the client play all that the agent says."""
        while self.state.speech.reply is not None:
            self.synthesize()
            self.play(9_000, "finished")

    @property
    def called(self) -> list[tuple[str, dict[str, Any]]]:
        """Functions that were called, with their arguments."""
        return [(event.name, event.arguments) for event in self.events(ev.ToolCalled)]

    def complete_tool(self, result: dict[str, Any]) -> None:
        """Answer the newest call as the executor."""
        call = self.events(ev.ToolCalled)[-1]
        self.log(tools.ToolCompleted(call_id=call.call_id, name=call.name, result=result, ms=5))
