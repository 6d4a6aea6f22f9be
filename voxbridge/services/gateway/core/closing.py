"""The end of a connection: which message and close code the client gets, and what is written to the log. Pure."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.gateway.core import inputs, outbound
from voxbridge.services.gateway.core.outputs import (
    FAULT,
    NOT_ALLOWED,
    RESTARTING,
    TAKEN_OVER,
    TOO_MANY_WRONG,
    TOO_SLOW,
    TRY_LATER,
    Append,
    Close,
    Output,
    Outputs,
    Send,
)
from voxbridge.services.gateway.core.state import CLOSED, Connection, Step
from voxbridge.shared import events
from voxbridge.shared.errors import Code, VoxbridgeError

WRONG_LIMIT: Final = 100
WRONG_WINDOW_MS: Final = 10_000
"""Wrong messages within this time that close the socket."""


def close(connection: Connection, code: int, reason: str, *before: Output) -> Step:
    """Close the socket after these outputs."""
    return replace(connection, phase=CLOSED), (*before, Close(code, reason))


def fail(connection: Connection, error: VoxbridgeError) -> Step:
    """Close because of an error; the session goes on without this client."""
    if error.code in (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.INVALID_ARGUMENT, Code.TOO_LARGE):
        return close(connection, NOT_ALLOWED, "this session is not allowed", Send(outbound.of_error(error)))
    code = TRY_LATER if error.retryable else FAULT
    return close(connection, code, "the gateway cannot go on with this session", Send(outbound.of_error(error)))


def give_up(connection: Connection, error: VoxbridgeError, reason: str) -> Step:
    """Close because of an error, and request the end of the session."""
    before: list[Output] = [Send(outbound.of_error(error))]
    if connection.attached:
        before.append(Append(events.gateway.SessionEndRequested(by="gateway", reason=reason)))
    return close(connection, TRY_LATER, reason.replace("_", " "), *before)


def refuse(connection: Connection, error: VoxbridgeError, now_ms: int) -> Step:
    """Answer a wrong message with its error. Too many of them close the socket."""
    wrong = (*connection.wrong[1 - WRONG_LIMIT :], now_ms)
    connection = replace(connection, wrong=wrong)
    told = Send(outbound.of_error(error))
    if len(wrong) < WRONG_LIMIT or now_ms - wrong[0] > WRONG_WINDOW_MS:
        return connection, (told,)
    left = detach(connection, "too many wrong messages")
    return close(connection, TOO_MANY_WRONG, f"{WRONG_LIMIT} wrong messages within {WRONG_WINDOW_MS // 1000} s", told, *left)


def taken_over(connection: Connection) -> Step:
    """Close in favour of another socket. No `client.disconnected` is written, because the session still has a client."""
    if not connection.attached:
        return connection, ()
    error = VoxbridgeError(Code.CONFLICT, "Another client has resumed this session and goes on with it.")
    return close(connection, TAKEN_OVER, "taken over", Send(outbound.of_error(error)))


def disconnected(connection: Connection, input: inputs.Disconnected) -> Step:
    """Take the loss of the socket."""
    return replace(connection, phase=CLOSED), detach(connection, input.reason)


def stop(connection: Connection) -> Step:
    """Close because the gateway is stopping, and tell the client how to go on elsewhere."""
    away = Send(outbound.go_away(connection.session_token))
    return close(connection, RESTARTING, "the gateway is restarting", away, *detach(connection, "the gateway is restarting"))


def congested(connection: Connection) -> Step:
    """Close because the client reads too slowly."""
    return close(connection, TOO_SLOW, "reconnect", *detach(connection, "the client reads too slowly"))


def detach(connection: Connection, reason: str) -> Outputs:
    """Return the record that the session has no client any more."""
    if not connection.attached:
        return ()
    origin = connection.origin
    left = events.gateway.ClientDisconnected(gateway=origin.gateway, connection=origin.name, reason=reason, last_seq=connection.last_seq)
    return (Append(left),)
