"""The session file: export and import lose nothing, and errors name line and field."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from tests.recorded_calls import a_call, file_of
from tests.shared.samples import samples
from voxbridge.shared import events
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.envelope import Envelope
from voxbridge.shared.events.gateway import ClientDisconnected
from voxbridge.shared.events.tools import ToolCompleted
from voxbridge.shared.log import session_file

SID = "0123456789abcdef0123456789abcdef"
HEADER = {"voxbridge": "session", "format": 1, "sid": SID, "exported_at_ms": 1, "events": 2}
LINE = {
    "seq": 3, "writer": "voice", "visible": True, "ts": 5, "id": "a.voice.0", "type": "user.said", "v": 1, "cause": 2,
    "data": {"text": "hi", "turn": 1, "source": "text"},
}  # fmt: skip


def payload(data: Any, type: str = "tool.completed") -> bytes:
    raw = msgspec.Raw(msgspec.msgpack.encode(data))
    return msgspec.msgpack.encode(Envelope(id="a.tools.0", type=type, v=1, sid=SID, ts=7, cause=None, data=raw))


def line_of(stored: bytes, type: str = "tool.completed") -> session_file.Line:
    text = session_file.line(stored, seq=9, writer="tools", visible=True, event_type=type)
    assert text.count(b"\n") == 1
    return session_file.read_line(text, 2, after=0)


def encoded(**changes: Any) -> bytes:
    return msgspec.json.encode({**LINE, **changes})


@pytest.mark.parametrize("name", sorted(samples()))
def test_every_event_comes_back_as_the_bytes_it_was(name: str) -> None:
    event = samples()[name]
    stored = events.encode(event, event_id=f"{SID}.voice.1", sid=SID, ts=9, cause=4)
    read = session_file.read_line(session_file.line(stored, seq=10**7, writer="voice", visible=False, event_type=name), 2, after=0)
    assert session_file.payload(read, SID) == stored
    assert session_file.recorded(read, SID, 2).event == event
    assert bool(read.data_b64) == name.endswith(".checkpoint"), "only a checkpoint holds bytes, which JSON has no form for"


@pytest.mark.parametrize(
    "data",
    [
        {"x": b"\x00\xff"},
        {"x": float("nan")},
        {"x": float("inf")},
        {1: "one"},
        {"x": msgspec.msgpack.Ext(3, b"e")},
        {"x": 1.0, "y": 1},
        [1],
    ],
    ids=["bytes", "nan", "infinity", "a number as key", "an extension", "1.0 and 1", "a list"],
)
def test_what_json_has_no_word_for_is_kept_as_its_bytes(data: Any) -> None:
    assert session_file.payload(line_of(payload(data)), SID) == payload(data)


def test_bytes_that_are_no_event_stand_in_the_file_as_they_are() -> None:
    line = line_of(b"\xc1broken")
    assert session_file.payload(line, SID) == b"\xc1broken"
    assert isinstance(session_file.recorded(line, SID, 2).event, events.Unreadable)


def test_an_envelope_whose_text_is_none_stands_in_the_file_as_it_is() -> None:
    broken = payload({"x": 1}).replace(b"a.tools.0", b"a.tools.\xff")
    assert session_file.payload(line_of(broken), SID) == broken


def test_an_event_of_an_older_version_stays_in_it_and_an_unknown_one_is_kept() -> None:
    line = line_of(payload({"la": 1}, "choir.sang"), "choir.sang")
    assert session_file.recorded(line, SID, 2).event == events.Unknown(data={"la": 1})
    assert session_file.payload(line, SID) == payload({"la": 1}, "choir.sang")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"seq": "3"}, "line 4, seq"),
        ({"seq": 2}, "line 4, seq"),
        ({"writer": "a.b"}, "line 4, writer"),
        ({"type": "no type"}, "line 4, type"),
        ({"type": "vx.>"}, "line 4, type"),
        ({"cause": 3}, "line 4, cause"),
        ({"cause": [1]}, "line 4, cause"),
        ({"ts": None}, "line 4, ts"),
        ({"data": None, "data_b64": "%%"}, "line 4, data_b64"),
        ({"data": None, "raw_b64": "a"}, "line 4, raw_b64"),
        ({"type": "voice.journal", "data": {"first": 0}}, "line 4, data.inputs"),
        ({"type": "voice.journal", "data": {"first": 0, "inputs": [[1]]}}, "line 4, data.inputs[0]"),
        ({"type": "voice.journal", "data": None, "data_b64": b64encode(b"\x81\xa1x\xa1\xff").decode()}, "line 4, data"),
        ({"type": "voice.journal", "data": None, "data_b64": b64encode(b"\x81").decode()}, "line 4, data"),
        ({"type": "voice.journal", "data": {"first": 0, "inputs": [[1, 2], [1, 7]]}}, "line 4, data.inputs[1][1]"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        session_file.read_line(encoded(**changes), 4, after=2)
    assert (caught.value.code, caught.value.field) == (Code.INVALID_ARGUMENT, field)
    assert field[1:] in caught.value.message


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"seq":1}'])
def test_a_line_that_is_no_event_is_named(text: bytes) -> None:
    with pytest.raises(VoxbridgeError, match=r"^Line 7"):
        session_file.read_line(text, 7, after=0)


def test_a_field_that_is_missing_is_named() -> None:
    without = {name: value for name, value in LINE.items() if name != "id"}
    with pytest.raises(VoxbridgeError) as caught:
        session_file.read_line(msgspec.json.encode(without), 4, after=0)
    assert caught.value.field == "line 4, id"


def test_data_that_does_not_fit_its_type_is_named_inside_the_event() -> None:
    line = session_file.read_line(encoded(data={"text": 5, "turn": 1, "source": "text"}), 4, after=0)
    with pytest.raises(VoxbridgeError) as caught:
        session_file.recorded(line, SID, 4)
    assert caught.value.field == "line 4, data.text"


def test_an_event_may_be_as_large_as_the_log_takes_it_and_no_larger() -> None:
    room = session_file.PAYLOAD_LIMIT - len(msgspec.msgpack.encode({"text": "x" * 70_000, "turn": 1, "source": "text"})) + 70_000
    fitting = {"text": "x" * room, "turn": 1, "source": "text"}
    assert len(session_file.data(session_file.read_line(encoded(data=fitting), 4, after=0))) == session_file.PAYLOAD_LIMIT
    with pytest.raises(VoxbridgeError) as caught:
        session_file.read_line(encoded(data={**fitting, "text": "x" * (room + 1)}), 4, after=0)
    assert (caught.value.field, caught.value.limit) == ("line 4, data", session_file.PAYLOAD_LIMIT)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"voxbridge": "terminal"}, "voxbridge"),
        ({"format": 2}, "format"),
        ({"sid": "../etc/passwd"}, "sid"),
        ({"events": 0}, "events"),
        ({"events": session_file.EVENTS_LIMIT + 1}, "events"),
        ({"exported_at_ms": "now"}, "exported_at_ms"),
    ],
)
def test_a_wrong_header_is_named_by_its_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        session_file.read_header(msgspec.json.encode({**HEADER, **changes}))
    assert caught.value.field == f"line 1, {field}"


def test_a_header_may_announce_as_many_events_as_the_limit_says() -> None:
    assert (
        session_file.read_header(msgspec.json.encode({**HEADER, "events": session_file.EVENTS_LIMIT})).events == session_file.EVENTS_LIMIT
    )


def test_positions_are_renumbered_wherever_an_event_names_one() -> None:
    positions: dict[int, int] = {}
    texts = file_of(a_call()).splitlines()[1:]
    for number, text in enumerate(texts, start=2):
        old = session_file.read_line(text, number, after=0)
        new = session_file.renumbered(old, old.seq * 10, positions, number)
        positions[old.seq] = old.seq * 10
        assert session_file.named(new) == {position * 10 for position in session_file.named(old)}
        assert session_file.recorded(new, SID, number).type == old.type
    assert len(positions) == len(texts)


def test_the_position_a_client_had_seen_becomes_that_of_the_last_event_before_it() -> None:
    gone = ClientDisconnected(gateway="g", connection="c", reason="gone", last_seq=25)
    text = session_file.line(
        events.encode(gone, event_id=f"{SID}.gateway.1", sid=SID, ts=1, cause=None),
        seq=40, writer="gateway", visible=False, event_type="client.disconnected",
    )  # fmt: skip
    line = session_file.read_line(text, 2, after=0)
    for positions, seen in (({10: 1, 20: 2, 30: 3}, 2), ({30: 3}, 0)):
        moved = session_file.recorded(session_file.renumbered(line, 4, positions, 2), SID, 2).event
        assert isinstance(moved, ClientDisconnected)
        assert moved.last_seq == seen


def test_a_position_that_is_not_in_the_file_is_named_with_its_line() -> None:
    with pytest.raises(VoxbridgeError, match="Line 5, cause: names position 2, which is not in the file"):
        session_file.renumbered(session_file.read_line(encoded(), 5, after=0), 1, {}, 5)


def test_a_result_with_everything_json_has_is_readable_in_the_file() -> None:
    result = {"text": "ø\n\u2028", "n": [1, 2.5, None, True], "big": 2**60}
    stored = events.encode(ToolCompleted(call_id="c", name="f", result=result, ms=1), event_id="a.tools.0", sid=SID, ts=1, cause=None)
    line = line_of(stored)
    assert msgspec.json.decode(line.data)["result"] == result


def test_what_is_nested_too_deep_is_refused_by_line_and_field() -> None:
    def nested(levels: int) -> bytes:
        return b'{"text":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"

    whole = encoded()
    data = msgspec.json.encode(LINE["data"])
    session_file.read_line(whole.replace(data, nested(session_file.EVENT_DEPTH)), 2, after=0)
    for levels in (session_file.EVENT_DEPTH + 1, 900, 100_000):
        with pytest.raises(VoxbridgeError) as caught:
            session_file.read_line(whole.replace(data, nested(levels)), 2, after=0)
        assert caught.value.code is Code.INVALID_ARGUMENT
        packed = b"\x91" * levels + b"\x90"
        with pytest.raises(VoxbridgeError) as caught:
            session_file.read_line(encoded(data=None, data_b64=b64encode(packed).decode()), 2, after=0)
        assert (caught.value.field, caught.value.limit) == ("line 2, data", session_file.EVENT_DEPTH)


def test_a_whole_number_that_the_log_cannot_keep_is_refused_by_line_and_field() -> None:
    with pytest.raises(VoxbridgeError) as caught:
        session_file.read_line(encoded(data=msgspec.Raw(b'{"text":18446744073709551616}')), 2, after=0)
    assert (caught.value.code, caught.value.field) == (Code.INVALID_ARGUMENT, "line 2, data")
