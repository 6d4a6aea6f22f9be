"""Sessions as files: JSON Lines, a header and then every event in log order, the journals included.

Owns the format, the checks on reading, and the renumbering of positions for another log. Does not own files or the log
(`voxbridge.sessions.archive`). Events stay in the version they were written in; reading upcasts them to the current version, as everywhere.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from voxbridge.shared import events
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.envelope import Envelope
from voxbridge.shared.events.journal import JOURNALS
from voxbridge.shared.nesting import DEPTH_LIMIT, is_deep

FORMAT: Final = 1
EVENTS_LIMIT: Final = 1_000_000
"""Events in one file."""

LINE_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of one line: an event of 1 MiB whose every byte needs an escape."""

PAYLOAD_LIMIT: Final = 1024 * 1024 - 4096
"""Bytes of an event, as the log accepts them."""

EVENT_DEPTH: Final = 2 * DEPTH_LIMIT
"""Nesting depth of objects and arrays in an event, which wraps data from outside."""

POSITIONS: Final[Mapping[str, tuple[str, ...]]] = {"client.connected": ("last_seq",), "client.disconnected": ("last_seq",)}
"""Fields that hold a log position, besides `seq`, `cause` and the inputs of journals; 0 means none."""

_JOURNALS: Final = frozenset(f"{writer}.journal" for writer in JOURNALS)
_WRITER: Final = re.compile(r"[a-z_]{1,32}")
_TYPE: Final = re.compile(r"[a-z_]{1,64}\.[a-z_.]{1,64}")
_TAKEN: Final = 2
_NULL: Final = b"null"
_SID: Final = re.compile(r"[0-9a-f]{32}|@[a-z0-9][a-z0-9_=@-]{0,63}|:[a-z0-9][a-z0-9-]{0,63}")
_AT: Final = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)


Whole = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Integer that the log can store."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """First line of the file: the session, the time of the export (ms of the Unix clock), and how many events follow."""

    voxbridge: str
    format: Whole
    sid: str
    exported_at_ms: Whole
    events: Whole


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event of the file. `data` is its payload as JSON; where JSON would lose information it is null, and `data_b64` holds the msgpack.
    For bytes in the log that are no event, `raw_b64` holds them all."""

    seq: Whole
    writer: str
    visible: bool
    ts: Whole
    id: str
    type: str
    v: Whole
    cause: int | str | None
    data: msgspec.Raw
    data_b64: str = ""
    raw_b64: str = ""


_headers = msgspec.json.Decoder(Header)
_lines = msgspec.json.Decoder(Line)
_json = msgspec.json.Encoder()
_msgpack = msgspec.msgpack.Encoder()
_envelopes = msgspec.msgpack.Decoder(Envelope)


def header(sid: str, *, exported_at_ms: int, events: int) -> bytes:
    """Build the first line."""
    return _json.encode(Header(voxbridge="session", format=FORMAT, sid=sid, exported_at_ms=exported_at_ms, events=events)) + b"\n"


def line(payload: bytes, *, seq: int, writer: str, visible: bool, event_type: str) -> bytes:
    """Build the line of a stored event."""
    try:
        found = _line(_envelopes.decode(payload), seq=seq, writer=writer, visible=visible)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raw = b64encode(payload).decode()
        found = Line(
            seq=seq, writer=writer, visible=visible, ts=0, id="", type=event_type, v=0, cause=None, data=msgspec.Raw(_NULL), raw_b64=raw
        )
    return _json.encode(found) + b"\n"


def _line(envelope: Envelope, *, seq: int, writer: str, visible: bool) -> Line:
    raw = bytes(envelope.data)
    text, kept = _NULL, b64encode(raw).decode()
    try:
        json = _json.encode(msgspec.msgpack.decode(raw))
        if _msgpack.encode(msgspec.json.decode(json)) == raw:
            text, kept = json, ""
    except (TypeError, ValueError, msgspec.MsgspecError):  # JSON cannot express the data: keep the msgpack
        pass
    return Line(
        seq=seq,
        writer=writer,
        visible=visible,
        ts=envelope.ts,
        id=envelope.id,
        type=envelope.type,
        v=envelope.v,
        cause=envelope.cause,
        data=msgspec.Raw(text),
        data_b64=kept,
    )


def read_header(text: bytes) -> Header:
    """Return the first line of a file; raises `INVALID_ARGUMENT` that names the field."""
    try:
        found = _headers.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _wrong(1, error) from error
    if found.voxbridge != "session":
        raise _refused(1, "voxbridge", f"expected `session`, got {found.voxbridge[:40]!r}; this is not the export of a session")
    if found.format != FORMAT:
        raise _refused(1, "format", f"this release reads format {FORMAT}, and the file has {found.format}", limit=FORMAT)
    if _SID.fullmatch(found.sid) is None:
        raise _refused(1, "sid", "expected 32 digits of lower-case hex, `@` and the name of an account, or `:` and the life of a terminal")
    if not 0 < found.events <= EVENTS_LIMIT:
        raise _refused(1, "events", f"expected 1 to {EVENTS_LIMIT:,}, got {found.events:,}", limit=EVENTS_LIMIT)
    return found


def read_line(text: bytes, number: int, *, after: int) -> Line:
    """Return the event in line `number`, which must follow position `after`; raises `INVALID_ARGUMENT` that names line and field."""
    try:
        found = _lines.decode(text)
        size = len(data(found))
        deep = _is_deep(found)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _wrong(number, error) from error
    except RecursionError:
        deep = True
    except OverflowError as error:
        raise _refused(number, "data", "whole numbers have at most 64 bits", limit="64 bits") from error
    except ValueError as error:
        raise _refused(number, "raw_b64" if found.raw_b64 else "data_b64", f"expected base64 ({error})") from error
    if deep:
        raise _refused(number, "data", f"has more than {EVENT_DEPTH} objects and arrays within one another", limit=EVENT_DEPTH)
    for name, pattern in (("writer", _WRITER), ("type", _TYPE)):
        if pattern.fullmatch(getattr(found, name)) is None:
            raise _refused(number, name, f"{getattr(found, name)[:40]!r} cannot be one")
    if found.seq <= after:
        raise _refused(number, "seq", f"expected more than {after}, the one before it, got {found.seq}")
    if isinstance(found.cause, int) and not 0 < found.cause < found.seq:
        raise _refused(number, "cause", f"expected a position before {found.seq}, got {found.cause}")
    if found.type in _JOURNALS and not found.raw_b64:
        _check_journal(found, number)
    if size > PAYLOAD_LIMIT:
        raise _refused(number, "data", f"an event has at most {PAYLOAD_LIMIT:,} bytes; this one has {size:,}", limit=PAYLOAD_LIMIT)
    return found


def _is_deep(line: Line) -> bool:
    if line.raw_b64:
        return False
    try:
        return is_deep(msgspec.msgpack.decode(data(line)), EVENT_DEPTH)
    except (TypeError, ValueError, msgspec.MsgspecError):  # not the data of an event: `recorded` reports that
        return False


def data(line: Line) -> bytes:
    """Return the msgpack of an event's data, or all bytes of a line that is not an event."""
    if line.raw_b64:
        return b64decode(line.raw_b64, validate=True)
    if line.data_b64:
        return b64decode(line.data_b64, validate=True)
    return _msgpack.encode(msgspec.json.decode(line.data))


def payload(line: Line, sid: str) -> bytes:
    """Return the bytes of an event, as the log stores them."""
    if line.raw_b64:
        return data(line)
    raw = msgspec.Raw(data(line))
    return _msgpack.encode(Envelope(id=line.id, type=line.type, v=line.v, sid=sid, ts=line.ts, cause=line.cause, data=raw))


def recorded(line: Line, sid: str, number: int) -> events.Recorded:
    """Return the event in line `number`, typed and upcast to the current version; raises `INVALID_ARGUMENT` that names line and field."""
    if line.raw_b64:
        return events.read(data(line), seq=line.seq, sid=sid, writer=line.writer, visible=line.visible, event_type=line.type)
    try:
        return events.decode(payload(line, sid), seq=line.seq, writer=line.writer, visible=line.visible)
    except VoxbridgeError as error:
        raise _wrong(number, error.__cause__ or error, inside="data") from error


def named(line: Line) -> set[int]:
    """Return the positions of other events that an event refers to."""
    found = {line.cause} if isinstance(line.cause, int) else set()
    if line.type in _JOURNALS and not line.raw_b64:
        found |= {taken[1] for taken in _decoded(line)["inputs"] if taken[1] is not None}
    return found


def renumbered(line: Line, seq: int, positions: Mapping[int, int], number: int) -> Line:
    """Return the line of an event moved to position `seq` of another log. `positions` maps each earlier position to its new one.

    Raises `INVALID_ARGUMENT` that names line and field when the event refers to a position that is not in the file.
    """

    def new(position: int, field: str) -> int:
        if position not in positions:
            raise _refused(number, field, f"names position {position}, which is not in the file")
        return positions[position]

    cause = new(line.cause, "cause") if isinstance(line.cause, int) else line.cause
    line = msgspec.structs.replace(line, seq=seq, cause=cause)
    if line.raw_b64 or (line.type not in _JOURNALS and line.type not in POSITIONS):
        return line
    values = _decoded(line)
    if line.type in _JOURNALS:
        for at, taken in enumerate(values["inputs"]):
            if taken[1] is not None:
                taken[1] = new(taken[1], f"data.inputs[{at}]")
    else:
        old = sorted(positions)
        for name in POSITIONS[line.type]:
            if isinstance(values.get(name), int) and values[name]:
                # The position may be another session's: the last earlier one of this session is equivalent.
                place = bisect_right(old, values[name])
                values[name] = positions[old[place - 1]] if place else 0
    envelope = Envelope(id=line.id, type=line.type, v=line.v, sid="", ts=line.ts, cause=cause, data=msgspec.Raw(_msgpack.encode(values)))
    return _line(envelope, seq=seq, writer=line.writer, visible=line.visible)


def _decoded(line: Line) -> dict[str, Any]:
    found: Any = msgspec.msgpack.decode(data(line))
    return found if isinstance(found, dict) else {}


def _check_journal(line: Line, number: int) -> None:
    try:
        inputs = _decoded(line).get("inputs")
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:  # bytes of msgpack may hold text that is none
        raise _refused(number, "data", f"expected the data of a journal ({error})") from error
    if not isinstance(inputs, list):
        raise _refused(number, "data.inputs", "expected a list of inputs")
    for at, taken in enumerate(inputs):
        if not (isinstance(taken, list) and len(taken) >= _TAKEN and isinstance(taken[1], int | None)):
            raise _refused(number, f"data.inputs[{at}]", "expected a time, a position or null, and an input")
        if isinstance(taken[1], int) and not 0 < taken[1] < line.seq:
            raise _refused(number, f"data.inputs[{at}][1]", f"expected a position before {line.seq}, got {taken[1]}")


def cut(number: int, header: Header) -> VoxbridgeError:
    """Build the error for a file that ends before its last event or goes on after it; `number` is how many events it holds."""
    return _refused(1, "events", f"the file should hold {header.events:,} events and holds {number:,}; it is not whole")


def too_long(number: int) -> VoxbridgeError:
    """Build the error for a line over `LINE_LIMIT`."""
    return VoxbridgeError(
        Code.TOO_LARGE, f"Line {number} has more than {LINE_LIMIT:,} bytes.", field=f"line {number}", limit=LINE_LIMIT, retryable=False
    )


def _wrong(number: int, error: BaseException, *, inside: str = "") -> VoxbridgeError:
    found = _AT.match(str(error))
    what, path = (found["what"], found["path"] or "") if found else (str(error), "")
    field = path or inside
    if inside and path:
        field = f"{inside}.{path}"
    missing = re.search(r"required field `(\w+)`", what)
    if missing and not path:
        field = missing[1]
    return _refused(number, field, what[:200].rstrip("."))


def _refused(number: int, field: str, what: str, *, limit: float | str | None = None) -> VoxbridgeError:
    place = f"line {number}, {field}" if field else f"line {number}"
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"{place[0].upper()}{place[1:]}: {what}.", field=place, limit=limit)
