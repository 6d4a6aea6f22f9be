"""Base of all events: the envelope, the registry of types, and upcasting.

An event is a frozen Struct in the past tense. Its type, writer and visibility are declared once, by `@event`, and decide its subject:
`vx.s.<sid>.ev.<writer>.<c|i>.<topic>` (`voxbridge.shared.bus.subjects.topic`). Every read path goes through `decode`, so an event written
by an older release is upcast to the current version wherever it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from voxbridge.shared.errors import Code, VoxbridgeError

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all events. Fields with defaults may be absent on the wire, so adding one needs no new version."""


class Kind(msgspec.Struct, frozen=True):
    """Declaration of an event by `@event`: its name, its only writer, whether clients see it, and its current version."""

    name: str
    writer: str
    visible: bool
    version: int
    cls: type[Event]


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The wire form, msgpack. `ts` is in microseconds of the Unix clock.

    `cause` is what the writer acted on: the log position of an event (int), `<writer>#<n>` for the n-th input in that writer's journal, or
    None for a cause outside the log.
    """

    id: str
    type: str
    v: int
    sid: str
    ts: int
    cause: int | str | None
    data: msgspec.Raw


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """An event as read from the log: its position, its envelope, and the typed event, upcast."""

    seq: int
    id: str
    sid: str
    ts: int
    cause: int | str | None
    writer: str
    visible: bool
    type: str
    v: int
    event: Event


class Unknown(Event, frozen=True, kw_only=True):
    """An event of a type that this release does not know; kept as it was, so that reading it loses nothing."""

    data: Any = None


class Unreadable(Event, frozen=True, kw_only=True):
    """Replacement for an event whose bytes cannot be read, so that a reader of the log can go on after it."""

    unreadable: str


BRANCHES: Final = {"facts": "tools"}
"""Branches of a log that are not named after a service, and the service that writes into each."""

UNREADABLE: Final = "unreadable"
"""Type of an event that neither its bytes nor its subject name."""

KINDS: Final[dict[str, Kind]] = {}
_BY_CLASS: Final[dict[type[Event], Kind]] = {}
_UPCASTERS: Final[dict[tuple[str, int], Upcaster]] = {}
_E = TypeVar("_E", bound=type[Event])

_encoder = msgspec.msgpack.Encoder()
_envelopes = msgspec.msgpack.Decoder(Envelope)


class _Typed(msgspec.Struct, frozen=True):
    type: str


_types = msgspec.msgpack.Decoder(_Typed)


def event(event_type: str, *, writer: str, visible: bool = False, version: int = 1) -> Callable[[_E], _E]:
    """Declare an event: its name, its only writer, whether the client may see it, and its current version."""

    def declare(cls: _E) -> _E:
        if event_type in KINDS:
            raise ValueError(f"event type {event_type!r} is declared twice")
        KINDS[event_type] = _BY_CLASS[cls] = Kind(name=event_type, writer=writer, visible=visible, version=version, cls=cls)
        return cls

    return declare


def upcaster(event_type: str, version: int) -> Callable[[Upcaster], Upcaster]:
    """Declare the pure function that brings the data of `type` from `version` to `version + 1`."""

    def declare(function: Upcaster) -> Upcaster:
        _UPCASTERS[event_type, version] = function
        return function

    return declare


def kind_of(event: Event) -> Kind:
    """Return the declaration of an event."""
    return _BY_CLASS[event.__class__]


def encode(event: Event, *, event_id: str, sid: str, ts: int, cause: int | str | None) -> bytes:
    """Return the bytes of an event for the log."""
    kind = kind_of(event)
    return _encoder.encode(
        Envelope(id=event_id, type=kind.name, v=kind.version, sid=sid, ts=ts, cause=cause, data=msgspec.Raw(_encoder.encode(event)))
    )


def type_in(payload: bytes) -> str:
    """Return the type of an event, without decoding the event; empty when the bytes are no event."""
    try:
        return _types.decode(payload).type
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError):
        return ""


def decode(payload: bytes, *, seq: int, writer: str, visible: bool) -> Recorded:
    """Read an event at log position `seq`; raises `INTERNAL` naming the position when the bytes are no event."""
    try:
        envelope = _envelopes.decode(payload)
        return Recorded(
            seq=seq,
            id=envelope.id,
            sid=envelope.sid,
            ts=envelope.ts,
            cause=envelope.cause,
            writer=writer,
            visible=visible,
            type=envelope.type,
            v=envelope.v,
            event=_typed(envelope),
        )
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise VoxbridgeError(Code.INTERNAL, f"The event at log position {seq} cannot be read: {error}.", retryable=False) from error


def read(payload: bytes, *, seq: int, sid: str, writer: str, visible: bool, event_type: str) -> Recorded:
    """Read an event as `decode` does, for a reader that must go on: bytes that are no event become `Unreadable`, without a time. `type` is
    the type that the subject names; if empty, the type is taken from the bytes, or is `UNREADABLE`.

    So does an event that claims to be another service's, or of another session, than its subject says: the server lets a service write
    under its own name alone, and the bytes may claim anything."""
    try:
        recorded = decode(payload, seq=seq, writer=writer, visible=visible)
        if not (why := _claims(recorded, sid)):
            return recorded
        unreadable = Unreadable(unreadable=f"The event at log position {seq} is not believed: {why}.")
    except VoxbridgeError as error:
        unreadable = Unreadable(unreadable=error.message)
    return Recorded(
        seq=seq,
        id="",
        sid=sid,
        ts=0,
        cause=None,
        writer=writer,
        visible=visible,
        type=event_type or type_in(payload) or UNREADABLE,
        v=0,
        event=unreadable,
    )


def _claims(recorded: Recorded, sid: str) -> str:
    """Return what an event claims and its subject denies; empty where they agree."""
    kind = KINDS.get(recorded.type)
    if kind is not None and kind.writer != BRANCHES.get(recorded.writer, recorded.writer):
        return f"{recorded.type} is the {kind.writer} service's to write, and it stands in the branch {recorded.writer}"
    return f"it names {recorded.sid[:80]!r}, and stands in {sid!r}" if recorded.sid != sid else ""


def _typed(envelope: Envelope) -> Event:
    kind = KINDS.get(envelope.type)
    if kind is None or envelope.v > kind.version:
        return Unknown(data=msgspec.msgpack.decode(envelope.data))
    if envelope.v == kind.version:
        return msgspec.msgpack.decode(envelope.data, type=kind.cls)
    data: dict[str, Any] = msgspec.msgpack.decode(envelope.data)
    for version in range(envelope.v, kind.version):
        upcast = _UPCASTERS.get((envelope.type, version))
        if upcast is None:
            raise msgspec.ValidationError(f"{envelope.type} has no upcaster from version {version}")
        try:
            data = upcast(data)
        except Exception as error:
            raise msgspec.ValidationError(f"{envelope.type} of version {version} cannot be brought to today's: {error!r}") from error
    # Via bytes: the inputs of a journal are raw bytes, which plain values cannot be converted to directly.
    return msgspec.msgpack.decode(_encoder.encode(data), type=kind.cls)
