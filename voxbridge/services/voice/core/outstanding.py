"""Timers, effects and microphone route that were active in a session when its worker died. Pure.

Observes a fold (`voxbridge.shared.step.fold.fold`). The state holds what the session wants; this holds what was running.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.provider_events import ProviderLost
from voxbridge.services.voice.core.state import State
from voxbridge.shared.step.journal import LogInput


class Outstanding:
    """Active timers and effects of a session; `watch` must see every input of the fold with its outputs."""

    def __init__(self) -> None:
        self.timers: dict[str, int] = {}
        """Due time of each timer, µs of the Unix clock."""

        self.effects: dict[int, out.Effect] = {}
        self.microphone: Literal["detector", "provider", "echo", "nobody"] = "nobody"
        self.taken: dict[str, int] = {}
        """Last log position taken from each writer."""

        self.at = 0
        """Time of the last input, µs."""

    def watch(self, input: Any, outputs: Sequence[Any], now: int) -> None:
        """Record one input and its outputs."""
        self.at = now
        match input:
            case LogInput(recorded=recorded):
                self.taken[recorded.writer] = max(recorded.seq, self.taken.get(recorded.writer, 0))
            case inputs.TimerFired(name=name):
                self.timers.pop(name, None)
            case inputs.Transcribed(effect=effect) | inputs.TurnJudged(effect=effect) | inputs.Completed(effect=effect):
                self.effects.pop(effect, None)
            case inputs.EffectFailed(effect=effect) | inputs.AudioMade(effect=effect, done=True) | ProviderLost(effect=effect):
                self.effects.pop(effect, None)
        for output in outputs:
            match output:
                case out.StartEffect(id=id, effect=started):
                    self.effects[id] = started
                case out.CancelEffect(id=id):
                    self.effects.pop(id, None)
                case out.SetTimer(name=name, after_ms=after_ms):
                    self.timers[name] = now + after_ms * 1_000
                case out.CancelTimer(name=name):
                    self.timers.pop(name, None)
                case out.Route(microphone=microphone):
                    self.microphone = microphone


def between_turns(state: State) -> bool:
    """Check whether no one is speaking and no reply is still being heard; a session may be released then."""
    return state.speech.reply is None and state.utterance is None and state.speech.cut is None and not state.speech.trailing
