"""Handling of a late model: the turn goes on, and the client is shown what is waited for and why. Pure.

`model_retry` handles a model that fails; the turn's own timeout handles a model that never produces anything.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.transition import LATE_MS, Draft, waited_for
from voxbridge.services.voice.core.turns import reopening
from voxbridge.shared.events import voice as ev

_NAMES: Final[dict[Literal["stt", "llm", "tts"], str]] = {"stt": "speech recognition", "llm": "language model", "tts": "voice"}


def due(d: Draft) -> None:
    """Request the cause of the delay if a model that was started `LATE_MS` ago has produced nothing."""
    found = waited_for(d.state)
    if found is None or (d.display.late is not None and d.display.late.effect == found.effect):
        return
    d.display.late = found
    agent = d.team.agent
    provider = {"stt": agent.stt, "llm": agent.llm, "tts": agent.tts}[found.part].provider
    d.outputs.append(out.FindCause(found.effect, provider))


def cause_found(d: Draft, input: inputs.CauseFound) -> None:
    """Record the cause of a delay, unless the model has produced something since."""
    late, waiting = d.display.late, waited_for(d.state)
    if late is None or waiting is None or not late.effect == waiting.effect == input.effect:
        return
    d.display.late = replace(late, cause=input.cause)
    message = f"The {_NAMES[late.part]} gave nothing for {LATE_MS // 1_000} s: {input.cause or 'it is not known why'}."
    turn = d.reply.turn if d.reply is not None else reopening.turn(d)
    error = ev.Failure(code="TIMED_OUT", message=message, retryable=True)
    d.append(ev.ProviderFailed(part=late.part, error=error, turn=turn, handled=True))
