"""Orders of a client at a socket to terminals: their shapes, the role that each one needs, and the question that carries each one out.

| role | orders |
|---|---|
| `view` | `attach`, `detach`, `see` |
| `type` | `size`, `take`, `give`, and keys |
| `control` | `start`, `restart`, `rename`, `signal`, `activate` |
| `admin` | `close` |
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from voxbridge.services.gateway.terminals.tickets import Role, Ticket
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import Columns, DefinitionId, Name, Rows

Id = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")]


class Order(msgspec.Struct, frozen=True, tag_field="type"):
    """A message of a client: the role that it needs, and the question of which it has the fields; none where the socket answers itself."""

    role: ClassVar[Role] = "view"
    asks: ClassVar[type[asked.Question[Any]] | None] = None

    @property
    def about(self) -> str:
        """Return the terminal that it is about; empty where there is none yet."""
        return ""

    def fields(self, ticket: Ticket, connection: str) -> dict[str, Any]:  # noqa: ARG002 - some orders need them
        """Return the fields of the question beside `by`."""
        return msgspec.structs.asdict(self)


class OfTerminal(Order, frozen=True):
    """An order about one terminal."""

    id: Id

    @property
    def about(self) -> str:
        """Return the terminal."""
        return self.id

    def fields(self, ticket: Ticket, connection: str) -> dict[str, Any]:
        """Return the fields of the question beside `by`."""
        fields = super().fields(ticket, connection)
        return {"terminal": fields.pop("id"), **fields}


class Attach(OfTerminal, frozen=True, tag="attach"):
    """Wish to see a terminal."""


class Detach(OfTerminal, frozen=True, tag="detach"):
    """Wish to see a terminal no more."""


class Look(OfTerminal, frozen=True, tag="see"):
    """Note that a person looks."""

    asks = asked.See


class Size(OfTerminal, frozen=True, tag="size"):
    """Wish for another size."""

    role, asks = "type", asked.Resize
    columns: Columns
    rows: Rows


class Take(OfTerminal, frozen=True, tag="take"):
    """Wish to be the one whose keys are taken."""

    role, asks = "type", asked.Hold

    def fields(self, ticket: Ticket, connection: str) -> dict[str, Any]:
        """Return the fields of the question beside `by`."""
        return {**super().fields(ticket, connection), "connection": connection, "take": True}


class Give(OfTerminal, frozen=True, tag="give"):
    """Wish to give the keys back."""

    role, asks = "type", asked.Hold

    def fields(self, ticket: Ticket, connection: str) -> dict[str, Any]:
        """Return the fields of the question beside `by`."""
        return {**super().fields(ticket, connection), "connection": connection, "take": False}


class Start(Order, frozen=True, tag="start"):
    """Wish for another terminal, in the workspace of the ticket if that is for one alone."""

    role, asks = "control", asked.Start
    definition: DefinitionId
    name: Annotated[str, Meta(max_length=64)] = ""
    workspace: Name = "default"
    directory: Annotated[str, Meta(max_length=4_096)] = ""
    columns: Columns = 120
    rows: Rows = 40

    def fields(self, ticket: Ticket, connection: str) -> dict[str, Any]:
        """Return the fields of the question beside `by`."""
        return {**super().fields(ticket, connection), "workspace": ticket.workspace or self.workspace}


class Restart(OfTerminal, frozen=True, tag="restart"):
    """Wish that the program is ended and started again; with `resume`, by its command for that."""

    role, asks = "control", asked.Restart
    resume: bool = False


class Rename(OfTerminal, frozen=True, tag="rename"):
    """Wish for another name."""

    role, asks = "control", asked.Rename
    name: Name


class SendSignal(OfTerminal, frozen=True, tag="signal"):
    """Wish that the program in the foreground gets a signal."""

    role, asks = "control", asked.SendSignal
    signal: asked.Signal


class Activate(OfTerminal, frozen=True, tag="activate"):
    """Wish that it is the active one."""

    role, asks = "control", asked.Activate


class Close(OfTerminal, frozen=True, tag="close"):
    """Wish that everything in it is ended, and that it is taken off the list."""

    role, asks = "admin", asked.Close


_Any = Attach | Detach | Look | Size | Take | Give | Start | Restart | Rename | SendSignal | Activate | Close
_decoder: Final = msgspec.json.Decoder(_Any)


def decode(payload: bytes) -> Order:
    """Read an order. Raises `msgspec.MsgspecError`."""
    order: Order = _decoder.decode(payload)
    return order
