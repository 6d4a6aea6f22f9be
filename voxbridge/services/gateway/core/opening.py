"""Completion of what a connection asked its shell for: a session is opened, resumed or refused, and its open calls are known. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from voxbridge.services.gateway.core import client, closing, inputs, outbound
from voxbridge.services.gateway.core.browser_calls import Calls
from voxbridge.services.gateway.core.outputs import NOT_THERE, Append, Attach, Output, Send
from voxbridge.services.gateway.core.state import Connection, Ending, Live, Opening, Requested, Resuming, Shown, Step
from voxbridge.shared import events
from voxbridge.shared.bus import moments
from voxbridge.shared.errors import Code, VoxbridgeError


def opened(connection: Connection) -> Step:
    """Attach the socket to its new session. If the client left meanwhile, end the session."""
    phase = connection.phase
    if not isinstance(phase, Opening):
        return connection, (Append(events.gateway.SessionEndRequested(by="gateway", reason="client_left")),)
    origin = connection.origin
    attach = Attach(events.gateway.ClientConnected(gateway=origin.gateway, connection=origin.name))
    connection = replace(connection, phase=Requested(phase.asked_ms))
    return _write_waiting(connection, phase.waiting, phase.asked_ms, attach)


def resumed(connection: Connection, input: inputs.Resumed) -> Step:
    """Attach the socket to the session that it resumes, and tell the client what it missed, or what replaces that."""
    phase, known, now_ms = connection.phase, input.known, input.now_ms
    if not isinstance(phase, Resuming):
        return connection, ()
    asked, recovered = connection.last_seq, input.snapshot is None
    shown = replace(connection.shown, model_away=known.model_away)
    if shown.reported is not None:  # reported by the worker since the log was read
        known = replace(known, state=shown.as_told(shown.reported).state)
    restoring = known.state == "restoring"
    shown = Shown(
        shown.reported if restoring else moments.StateChanged(state=known.state),
        worker_lost=restoring and not known.model_away,
        model_away=known.model_away,
    )
    connection = replace(
        connection,
        phase=Live() if known.started else Requested(now_ms),
        last_seq=asked if recovered else known.top,
        told_to=known.top,
        shown=shown,
    )
    reader, origin = connection.reader, connection.origin
    attach = Attach(events.gateway.ClientConnected(gateway=origin.gateway, connection=origin.name, resumed=True, last_seq=asked))
    if reader.v1:
        told: tuple[Output, ...] = (Send(outbound.resumed(reader.sid, known, last_seq=asked, snapshot=input.snapshot)),)
    elif known.started:
        connection, told = replace(connection, set_up=True), (Send(outbound.gone_on(reader.sid, known)),)
    else:  # `setup_complete` follows
        connection, told = replace(connection, reader=replace(reader, resumed=True)), ()
    return _write_waiting(connection, phase.waiting, now_ms, *told, attach)


def refused(connection: Connection, input: inputs.ResumeRefused) -> Step:
    """Close, because there is no session that this client may resume. A plain client gets a new session, as with any other `start`."""
    phase = connection.phase
    if not isinstance(phase, Resuming):
        return connection, ()
    if phase.otherwise is None:
        error = VoxbridgeError(Code.NOT_FOUND, "There is no session to resume with this id and token.")
        return closing.close(connection, NOT_THERE, "no such session", Send(outbound.of_error(error)))
    new = Opening(input.now_ms, phase.waiting)
    connection = replace(connection, reader=phase.otherwise.reader, phase=new, calls=Calls(), last_seq=0)
    connection, told = _take_answers(connection, input.now_ms)
    return connection, (*told, phase.otherwise.opens) if isinstance(connection.phase, Opening) else told


def calls_known(connection: Connection, input: inputs.CallsKnown) -> Step:
    """Add the calls that the past left open, and take the page's answers that waited for them."""
    connection = replace(connection, calls=connection.calls.completed(input.past))
    return _take_answers(connection, input.now_ms) if connection.attached else (connection, ())


def _take_answers(connection: Connection, now_ms: int) -> Step:
    answers, outputs = connection.answers, list[Output]()
    connection = replace(connection, answers=())
    for message in answers:
        try:
            connection, made = client.answer(connection, message, now_ms)
        except VoxbridgeError as error:
            connection, made = closing.refuse(connection, error, now_ms)
        outputs.extend(made)
    return connection, tuple(outputs)


def _write_waiting(connection: Connection, waiting: tuple[events.Event, ...], asked_ms: int, *before: Output) -> Step:
    """Write what the client said before its session was open."""
    if any(isinstance(event, events.gateway.SessionEndRequested) for event in waiting):
        connection = replace(connection, phase=Ending(asked_ms))
    return connection, (*before, *map(Append, waiting))
