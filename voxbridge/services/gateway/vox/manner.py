"""The manner of a socket: how the messages of its door are read and written, and who may open a session there.

Owns the seam, and the manner of `/ws/vox`. Does not own the rules of a connection (`core`), nor the other door (`platform`). Nothing is
kept here, and nothing is lost in a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from voxbridge.services.gateway.core import inputs, outbound
from voxbridge.services.gateway.core.outbound import Message
from voxbridge.services.gateway.core.outputs import Open
from voxbridge.services.gateway.door.access import Access, Arrival
from voxbridge.services.gateway.door.admission import Admission
from voxbridge.services.gateway.door.transport import Outlet
from voxbridge.shared.events import Event
from voxbridge.shared.events.gateway import SessionRequested


class Admitted(msgspec.Struct, frozen=True):
    """A session that may be opened, and events that stand in its log before the request."""

    event: SessionRequested
    before: tuple[Event, ...] = ()


class Manner(Protocol):
    """The manner of one socket."""

    @property
    def v1(self) -> bool:
        """Tell whether the core speaks `voxbridge.v1` with it; `told` may put that into other words."""

    @property
    def framed(self) -> bool:
        """Tell whether its binary messages are frames with a prefix."""

    @property
    def bare(self) -> bool:
        """Tell whether its binary messages are samples alone."""

    @property
    def first(self) -> str:
        """Return the type of the message that opens a session."""

    def read(self, payload: bytes, now_ms: int) -> inputs.Input:
        """Return the input that a text message is."""

    def told(self, message: Message) -> Sequence[Message | bytes]:
        """Return the messages by which the client is told this one; bytes are sent as they are."""

    def sounds(self, socket: Outlet, frame: bytes) -> bool:
        """Send a reply frame; return whether anything was sent."""

    async def admit(self, sid: str, opens: Open) -> Admitted:
        """Check that this session may be opened. Raises the error that refuses it."""

    def may_resume(self, account: str) -> bool:
        """Tell whether a session of this account may be resumed here, by who has its token."""

    def opened(self, sid: str, position: int) -> None:
        """Take note that a session was opened, whose request has this position."""

    async def resumed(self, sid: str, position: int) -> None:
        """Take note that a session was resumed after this position."""

    def left(self) -> None:
        """Take note that the socket is gone."""


class VoxManner:
    """The manner of `/ws/vox`."""

    first: Final = "start"
    bare: Final = False

    def __init__(self, access: Access, admission: Admission, came: Arrival, *, v1: bool) -> None:
        self.v1 = self.framed = v1
        self._access = access
        self._admission = admission
        self._came = came

    def read(self, payload: bytes, now_ms: int) -> inputs.Input:
        """Leave the parsing to the core."""
        return inputs.TextMessage(payload, now_ms)

    def told(self, message: Message) -> Sequence[Message]:
        """Return the message as it is, which the core has made for this door. What only the other door tells is left out."""
        return () if message["type"] in ("chat", "greeting") else (message,)

    def sounds(self, socket: Outlet, frame: bytes) -> bool:
        """Send a frame as it is, or as JSON to a plain client."""
        if self.v1:
            socket.send_binary(frame)
            return True
        said = outbound.audio(frame)
        if said is not None:
            socket.send_text(said)
        return said is not None

    async def admit(self, sid: str, opens: Open) -> Admitted:  # noqa: ARG002 - the other door uses it
        """Check the token, the rate of starts, and what the token allows."""
        terms = self._access.admit(self._came, opens.token)
        self._admission.start()
        return Admitted(await self._access.begin(terms, opens.event))

    def may_resume(self, account: str) -> bool:  # noqa: ARG002 - its token is proof enough
        """Allow it."""
        return True

    def opened(self, sid: str, position: int) -> None:
        """Do nothing."""

    async def resumed(self, sid: str, position: int) -> None:
        """Do nothing."""

    def left(self) -> None:
        """Do nothing."""
