"""Parsers of outside input, and the properties that hold for any input."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from voxbridge.services.gateway.core import client as client_messages
from voxbridge.services.gateway.core import closing, inputs, messages, state
from voxbridge.services.gateway.core.step import step
from voxbridge.shared import events, nesting
from voxbridge.shared import websocket as shared_websocket
from voxbridge.shared.agents import reading as agents_reading
from voxbridge.shared.agents import yaml_file
from voxbridge.shared.agents.reading import AgentsRefused
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import framing
from voxbridge.shared.bus.framing import Divider
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log import session_file
from voxbridge.shared.websocket import TEXT, Cutter, Receiver

CORPUS: Final = Path(__file__).parent / "corpus"
LIMIT: Final = 1_000


class Target(NamedTuple):
    """A parser: the check of its properties, its code, and words of its language."""

    check: Callable[[bytes], None]
    files: tuple[str, ...]
    words: tuple[bytes, ...]


def _pieces(data: bytes) -> tuple[bytes, list[bytes]]:
    """Return an input, and the same input in pieces of the size in its first byte."""
    if not data:
        return b"", []
    size, data = data[0] % 32 + 1, data[1:]
    return data, [data[at : at + size] for at in range(0, len(data), size)]


def websocket(given: bytes) -> None:
    """Check that the result does not depend on the pieces, that text is UTF-8, and that the buffer stays within its limit."""
    data, pieces = _pieces(given)
    whole, cut = Receiver(limit=LIMIT), Receiver(limit=LIMIT)
    found = whole.receive(data)
    assert found == [one for piece in pieces for one in cut.receive(piece)]
    assert (whole.fault, whole.held) == (cut.fault, cut.held)
    assert whole.held <= 2 * LIMIT + 14
    for opcode, payload in found:
        assert len(payload) <= LIMIT
        if opcode == TEXT:
            payload.decode()
    one, other = Cutter(limit=LIMIT), Cutter(limit=LIMIT)
    simple = [part for part in one.cut(data) if part[0]]
    assert simple == [part for piece in pieces for part in other.cut(piece) if part[0]]


def nats(given: bytes) -> None:
    """Check that delivered payloads, and bytes left to the client, do not depend on the pieces."""
    data, pieces = _pieces(given)
    results = []
    for parts in ([data], pieces):
        heard: list[bytes] = []
        divider = Divider({1: heard.append, 7: heard.append}, lambda listener, payload: listener(payload))
        left = b"".join(divider.divide(part) for part in parts)
        results.append((heard, left + divider.kept))
    assert results[0] == results[1]


def client(data: bytes) -> None:
    """Check that a message is read or refused with a typed error, and that a connection accepts or answers it in every phase."""
    try:
        message = messages.read(data)
    except VoxbridgeError as error:
        _held(error.message)
    else:
        assert not nesting.is_deep(msgspec.to_builtins(message))
    for v1 in (True, False):
        connection = state.fresh(state.Origin("g", "n", "h"), sid="0" * 32, v1=v1, resume_token="t")
        text, binary = inputs.TextMessage(data, 1), inputs.BinaryMessage(data, 1)
        for input in (binary, text, binary, inputs.Opened(), text, binary, inputs.Opened()):
            connection, outputs = step(connection, input)
            for output in outputs:
                msgspec.json.encode(getattr(output, "message", None))


def agent(data: bytes) -> None:
    """Check that an agent file is accepted, or is a problem with a place in it."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        (Path(folder) / "x.yaml").write_bytes(data)
        try:
            agents_reading.load(Path(folder))
        except AgentsRefused as refused:
            _held(refused.problems, all(problem.message for problem in refused.problems))


def session(data: bytes) -> None:
    """Check that a line of a session file is read or refused by line and field; a line that is read can be stored, shown and renumbered."""
    lines = data.split(b"\n")
    try:
        session_file.read_header(lines[0])
    except VoxbridgeError as error:
        _held(error.field)
    after = 0
    for number, text in enumerate(lines[1:8], 2):
        try:
            line = session_file.read_line(text, number, after=after)
            session_file.payload(line, "0" * 32)
            positions = {seq: seq + 5 for seq in session_file.named(line)}
            session_file.renumbered(line, line.seq + 5, positions, number)
            recorded = session_file.recorded(line, "0" * 32, number)
        except VoxbridgeError as error:
            _held(error.field)
            continue
        after = line.seq
        msgspec.json.encode(msgspec.to_builtins(msgspec.msgpack.decode(msgspec.msgpack.encode(recorded.event)), str_keys=True))


def _file(module: object) -> str:
    return str(getattr(module, "__file__", ""))


def _held(*conditions: object) -> None:
    assert all(conditions)


def _words(text: bytes, *others: bytes) -> tuple[bytes, ...]:
    return (*text.split(), *others)


TARGETS: Final = {
    "websocket": Target(
        websocket,
        (_file(shared_websocket),),
        (b"\x81\x85", b"\x82\xfe", b"\x82\xff", b"\x01\x80", b"\x80\x80", b"\x89\x80", b"\x88\x82", b"\xc3\xa9"),
    ),
    "nats": Target(nats, (_file(framing),), (b"MSG s 1 5\r\n", b"HMSG s 7 3 9\r\n", b"\r\n", b"PING\r\n", b"MSG ", b" -9\r\n")),
    "client": Target(
        client,
        (_file(messages), _file(client_messages), _file(closing), _file(nesting), _file(frames)),
        _words(
            b'"type": "start" "audio" "text" "end" "playback" "interrupt" "audio_end" "resume" "mode" "local" "data" { } [ ] : ,',
            b"null",
            b"\\ud800",
        ),
    ),
    "agent": Target(
        agent,
        (_file(agents_reading), _file(yaml_file)),
        _words(b"- [ ] { } &a *a !! ?", b"role: ", b"model: ", b"\n", b"  ", b": ", b"|\n", b"handoffs: "),
    ),
    "session": Target(
        session,
        (_file(session_file), _file(nesting), _file(events.envelope)),
        _words(
            b'"seq": "data": "data_b64":" "raw_b64":" "cause": "type":" voice.journal {"inputs":[[1,2,{}]]} kZGRkA== [',
            b"\n",
        ),
    ),
}
