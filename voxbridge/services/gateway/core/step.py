"""A VOX connection as a pure step: one input in, the next state and the outputs out (docs/protocol.md).

Owns every rule of the protocol: which message is allowed when, how a wrong message is answered, when the socket is closed. Does not own the
socket, the bus or the clock: the shell performs the outputs, in order. Audio frames bypass it (`Connection.takes_audio` says whether they
may pass). A crash loses nothing that the log does not have.
"""

from __future__ import annotations

from typing import assert_never

from voxbridge.services.gateway.core import client, closing, inputs, opening, session
from voxbridge.services.gateway.core.inputs import Input
from voxbridge.services.gateway.core.state import Closed, Connection, Step


def step(connection: Connection, input: Input) -> Step:
    """Take one input. A closed connection ignores all of them, except that a session which was opened for it is ended."""
    if isinstance(connection.phase, Closed) and not isinstance(input, inputs.Opened):
        return connection, ()
    match input:
        case inputs.EventRead(recorded):
            return session.event(connection, recorded)
        case inputs.MomentReceived(moment):
            return session.moment(connection, moment)
        case inputs.TextMessage() | inputs.MessageRead() | inputs.Asked() | inputs.Wrong():
            return client.message(connection, input)
        case inputs.BinaryMessage():
            return client.binary(connection, input)
        case inputs.Tick():
            return session.tick(connection, input)
        case inputs.Opened():
            return opening.opened(connection)
        case inputs.Resumed():
            return opening.resumed(connection, input)
        case inputs.ResumeRefused():
            return opening.refused(connection, input)
        case inputs.CallsKnown():
            return opening.calls_known(connection, input)
        case inputs.Failed(error):
            return closing.fail(connection, error)
        case inputs.TakenOver():
            return closing.taken_over(connection)
        case inputs.Disconnected():
            return closing.disconnected(connection, input)
        case inputs.Stopping():
            return closing.stop(connection)
        case inputs.Congested():
            return closing.congested(connection)
        case _:
            assert_never(input)
