"""Events and moments of the session, and the loss of its worker: what the client is told of them. Pure."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.gateway.core import closing, inputs, outbound, resume_rules
from voxbridge.services.gateway.core.outputs import NORMAL, TRY_LATER, Ended, Output, Outputs, Send
from voxbridge.services.gateway.core.state import Connection, Ending, Fresh, Live, Opening, Requested, Resuming, Step
from voxbridge.shared import events
from voxbridge.shared.bus import moments
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError

FIRST_WORD_MS: Final = 60_000
"""Milliseconds that a socket may be open without a `start` or a `resume`: it takes one of the gateway's limited places."""
START_TIMEOUT_MS: Final = 10_000
"""Milliseconds that a session may wait for a voice worker, and a resume for the log."""
END_TIMEOUT_MS: Final = 5_000
"""Milliseconds that the end of a session may wait for the voice worker."""
OWNER_TIMEOUT_MS: Final = 30_000
"""Milliseconds that a session may wait for another voice worker after its own was lost."""

_LISTENING: Final = moments.StateChanged(state="listening")
_WORKER_LOST: Final = moments.StateChanged(state="restoring", reason="the session's worker was lost; waiting for another")


def event(connection: Connection, recorded: events.Recorded) -> Step:
    """Tell the client of an event, unless it knows it already."""
    if recorded.seq <= connection.last_seq:
        return connection, ()
    connection = replace(connection, last_seq=recorded.seq)
    of = recorded.event
    if isinstance(of, events.voice.SessionEnded):
        return _ended(connection, recorded, of)
    connection = replace(connection, calls=connection.calls.take(of))
    if isinstance(of, events.voice.SessionStarted):
        if isinstance(connection.phase, Requested):
            connection = replace(connection, phase=Live())
        if connection.set_up:
            return connection, ()
    message = outbound.of_event(recorded, connection.reader)
    replayed = recorded.seq <= connection.told_to
    if isinstance(of, events.voice.ProviderGoAway) and not connection.reader.v1 and not replayed:
        message = outbound.model_leaves(connection.session_token, recorded.seq)
    told = () if message is None else (Send(message),)
    if replayed:
        return connection, told
    connection, changed = _model(connection, of)
    return connection, (*told, *changed)


def moment(connection: Connection, moment: moments.Moment) -> Step:
    """Tell the client of a moment."""
    if isinstance(moment, moments.StateChanged):
        connection = replace(connection, shown=replace(connection.shown, reported=moment, worker_lost=False))
        moment = connection.shown.as_told(moment)
    return connection, _tell(connection, moment) if connection.attached else ()


def tick(connection: Connection, input: inputs.Tick) -> Step:
    """Check the timeouts of the phase."""
    now_ms = input.now_ms
    match connection.phase:
        case Fresh(since_ms=None):
            return replace(connection, phase=Fresh(now_ms)), ()
        case Fresh(since_ms=int(since_ms)) if now_ms - since_ms >= FIRST_WORD_MS:
            message = f"The first message comes within {FIRST_WORD_MS // 1_000} s: `{connection.reader.first}` or `resume`."
            return closing.fail(connection, VoxbridgeError(Code.TIMED_OUT, message, limit=FIRST_WORD_MS, retryable=True))
        case Opening(asked_ms=asked_ms) | Requested(asked_ms=asked_ms) if now_ms - asked_ms >= START_TIMEOUT_MS:
            message = f"No voice worker took the session within {START_TIMEOUT_MS // 1000} s. Try again later."
            return closing.give_up(connection, VoxbridgeError(Code.OVERLOADED, message, limit=START_TIMEOUT_MS), "no_worker")
        case Resuming(asked_ms=asked_ms) if now_ms - asked_ms >= START_TIMEOUT_MS:
            return closing.fail(connection, Unavailable("The event log does not answer. Try again.", retry_after_ms=2_000))
        case Ending(asked_ms=asked_ms) if now_ms - asked_ms >= END_TIMEOUT_MS:
            return closing.close(connection, NORMAL, "the session ended")
        case Live(lost_since_ms=lost_since_ms) if input.owned is False:
            return _lost(connection, now_ms if lost_since_ms is None else lost_since_ms, now_ms)
        case Live(lost_since_ms=lost_since_ms) if input.owned and (lost_since_ms is not None or connection.shown.worker_lost):
            return _found(connection)
        case _:
            return connection, ()


def _ended(connection: Connection, recorded: events.Recorded, event: events.voice.SessionEnded) -> Step:
    before: list[Output] = [Ended()]
    if event.error is not None:
        before.append(Send({"type": "error", **outbound.failure(event.error), "seq": recorded.seq}))
    message = outbound.of_event(recorded, connection.reader)
    if message is not None:
        before.append(Send(message))
    if event.error is not None and event.error.code == Code.OVERLOADED:
        return closing.close(connection, TRY_LATER, "no worker is free", *before)
    return closing.close(connection, NORMAL, "the session ended", *before)


def _lost(connection: Connection, since_ms: int, now_ms: int) -> Step:
    if now_ms - since_ms >= OWNER_TIMEOUT_MS:
        message = f"The session's worker was lost and none took over within {OWNER_TIMEOUT_MS // 1000} s."
        return closing.give_up(connection, VoxbridgeError(Code.UNAVAILABLE, message, limit=OWNER_TIMEOUT_MS), "worker_lost")
    told = () if connection.shown.worker_lost else _tell(connection, _WORKER_LOST)
    return replace(connection, phase=Live(since_ms), shown=replace(connection.shown, worker_lost=True)), told


def _found(connection: Connection) -> Step:
    shown = connection.shown
    told = _tell(connection, shown.as_told(shown.reported)) if shown.worker_lost and shown.reported is not None else ()
    return replace(connection, phase=Live(), shown=replace(shown, worker_lost=False)), told


def _model(connection: Connection, event: events.Event) -> Step:
    """Tell the change of state when the connection to a realtime model is lost, restored, or no longer needed."""
    away = isinstance(event, events.voice.ProviderLost)
    if away == connection.shown.model_away or not (away or resume_rules.brings_model_back(event)):
        return connection, ()
    shown = replace(connection.shown, model_away=away)
    return replace(connection, shown=shown), _tell(connection, shown.as_told(shown.reported or _LISTENING))


def _tell(connection: Connection, moment: moments.Moment) -> Outputs:
    message = outbound.of_moment(moment, connection.reader)
    return () if message is None else (Send(message),)
