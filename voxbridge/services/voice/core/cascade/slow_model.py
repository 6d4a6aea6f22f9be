"""Handling of a late model: the turn goes on, and the client is shown what is waited for and why. Pure.

`model_retry` handles a model that fails; the turn's own timeout handles a model that never produces anything.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.transition import LATE_MS, Transition, waited_for
from voxbridge.services.voice.core.turns import reopening
from voxbridge.shared.events import voice as ev

_NAMES: Final[dict[Literal["stt", "llm", "tts"], str]] = {"stt": "speech recognition", "llm": "language model", "tts": "voice"}


def due(t: Transition) -> None:
    """Request the cause of the delay if a model that was started `LATE_MS` ago has produced nothing."""
    found = waited_for(t.state)
    if found is None or (t.display.late is not None and t.display.late.effect == found.effect):
        return
    t.display.late = found
    agent = t.team.agent
    provider = {"stt": agent.stt, "llm": agent.llm, "tts": agent.tts}[found.part].provider
    t.outputs.append(out.FindCause(found.effect, provider))


def cause_found(t: Transition, input: inputs.CauseFound) -> None:
    """Record the cause of a delay, unless the model has produced something since."""
    late, waiting = t.display.late, waited_for(t.state)
    if late is None or waiting is None or not late.effect == waiting.effect == input.effect:
        return
    t.display.late = replace(late, cause=input.cause)
    message = f"The {_NAMES[late.part]} gave nothing for {LATE_MS // 1_000} s: {input.cause or 'it is not known why'}."
    turn = t.reply.turn if t.reply is not None else reopening.turn(t)
    error = ev.Failure(code="TIMED_OUT", message=message, retryable=True)
    t.append(ev.ProviderFailed(part=late.part, error=error, turn=turn, handled=True))
