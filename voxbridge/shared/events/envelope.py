"""What every event has in common: the envelope, the registry of types, and upcasting.

An event is a frozen Struct in the past tense. Its type, writer and visibility are declared once, by `@event`, and decide
its subject: `vx.s.<sid>.ev.<writer>.<c|i>.<topic>` (`voxbridge.shared.bus.subjects.topic`). Every read path goes through `decode`, so an
event written by an older release is brought to today's shape wherever it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from voxbridge.shared.errors import Code, VoxbridgeError

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all events. Fields with defaults may be absent on the wire, so adding one is no new version."""


class Kind(msgspec.Struct, frozen=True):
    """What `@event` declared: the name, who may write it, who may see it, and the version written today."""

    name: str
    writer: str
    visible: bool
    version: int
    cls: type[Event]


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The wire form, msgpack. `ts` is in microseconds of the Unix clock.

    `cause` is what the writer was acting on: the log position of an event (int), `<writer>#<n>` for the n-th
    input in that writer's journal, or nothing for what began outside.
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
    """An event of a type this release does not know; kept as it was, so that nothing is lost by reading it."""

    data: Any = None


class Unreadable(Event, frozen=True, kw_only=True):
    """Stands where the bytes of an event cannot be read: whoever reads the log goes on behind it."""

    unreadable: str


UNREADABLE: Final = "unreadable"
"""Stands for the type of an event that neither its bytes nor its subject tell."""

KINDS: Final[dict[str, Kind]] = {}
_BY_CLASS: Final[dict[type[Event], Kind]] = {}
_UPCASTERS: Final[dict[tuple[str, int], Upcaster]] = {}
_E = TypeVar("_E", bound=type[Event])

_encoder = msgspec.msgpack.Encoder()
_envelopes = msgspec.msgpack.Decoder(Envelope)


class _Typed(msgspec.Struct, frozen=True):
    type: str


_types = msgspec.msgpack.Decoder(_Typed)


def event(type: str, *, writer: str, visible: bool = False, version: int = 1) -> Callable[[_E], _E]:
    """Declare an event: its name, its only writer, whether the client may see it, and its current version."""

    def declare(cls: _E) -> _E:
        if type in KINDS:
            raise ValueError(f"event type {type!r} is declared twice")
        KINDS[type] = _BY_CLASS[cls] = Kind(name=type, writer=writer, visible=visible, version=version, cls=cls)
        return cls

    return declare


def upcaster(type: str, version: int) -> Callable[[Upcaster], Upcaster]:
    """Declare the pure function that brings the data of `type` from `version` to `version + 1`."""

    def declare(function: Upcaster) -> Upcaster:
        _UPCASTERS[type, version] = function
        return function

    return declare


def kind_of(event: Event) -> Kind:
    """The declaration of an event."""
    return _BY_CLASS[event.__class__]


def encode(event: Event, *, id: str, sid: str, ts: int, cause: int | str | None) -> bytes:
    """The bytes that go into the log."""
    kind = kind_of(event)
    return _encoder.encode(
        Envelope(id=id, type=kind.name, v=kind.version, sid=sid, ts=ts, cause=cause, data=msgspec.Raw(_encoder.encode(event)))
    )


def type_in(payload: bytes) -> str:
    """The type of an event, without reading the event; empty where its bytes are none."""
    try:
        return _types.decode(payload).type
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError):
        return ""


def decode(payload: bytes, *, seq: int, writer: str, visible: bool) -> Recorded:
    """Read an event at log position `seq`; raises `INTERNAL` naming the position when its bytes are not one."""
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


def read(payload: bytes, *, seq: int, sid: str, writer: str, visible: bool, type: str) -> Recorded:
    """As `decode`, for whoever must go on: bytes that are no event become `Unreadable`, without a time. `type` is what the subject says,
    empty where it does not; then the bytes may, or it is `UNREADABLE`."""
    try:
        return decode(payload, seq=seq, writer=writer, visible=visible)
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
        type=type or type_in(payload) or UNREADABLE,
        v=0,
        event=unreadable,
    )


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
    # By way of bytes: the inputs of a journal are kept as the bytes they are, which plain values cannot become directly.
    return msgspec.msgpack.decode(_encoder.encode(data), type=kind.cls)
