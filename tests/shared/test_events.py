"""Events: every declared type survives its encoding, older versions are upcast, newer ones are kept."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared.golden import make
from tests.shared.samples import INT64, instances, samples
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events import envelope
from voxbridge.shared.events.envelope import KINDS, Envelope, Event, Unknown

SID = "f" * 32
GOLDEN = sorted(make.FOLDER.glob("*.jsonl"))


def enveloped(type: str, v: int, data: Any) -> bytes:
    raw = msgspec.Raw(msgspec.msgpack.encode(data))
    return msgspec.msgpack.encode(Envelope(id="i", type=type, v=v, sid=SID, ts=1, cause=None, data=raw))


def decoded(payload: bytes) -> events.Recorded:
    return events.decode(payload, seq=7, writer="voice", visible=True)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_declared_event_survives_its_encoding(name: str) -> None:
    kind = KINDS[name]

    @settings(max_examples=20, deadline=None)
    @given(event=instances(kind.cls), ts=INT64, cause=st.none() | INT64 | st.text(max_size=10), id=st.text(max_size=40))
    def check(event: Event, ts: int, cause: int | str | None, id: str) -> None:
        read = events.decode(
            events.encode(event, event_id=id, sid=SID, ts=ts, cause=cause), seq=3, writer=kind.writer, visible=kind.visible
        )
        assert read.event == event
        assert (read.id, read.sid, read.ts, read.cause, read.type, read.v, read.seq) == (id, SID, ts, cause, name, kind.version, 3)

    check()


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_declared_event_has_a_type_that_fits_a_subject_and_says_what_it_is(name: str) -> None:
    kind = KINDS[name]
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", name)
    assert subjects.parse_event_subject(subjects.event_subject(SID, kind.writer, kind.visible, name)) == (SID, kind.writer, kind.visible)
    assert kind.writer in ("gateway", "voice", "tools", "awareness", "terminals", "operator")
    assert kind.cls.__doc__


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_log_of_every_release_means_what_it_meant(path: Path) -> None:
    for line in make.read(path):
        read = events.decode(base64.b64decode(line.payload), seq=1, writer=line.writer, visible=line.visible)
        assert not isinstance(read.event, Unknown), f"{line.type} is not known any more"
        assert (read.type, read.v) == (line.type, line.v)
        now, then = msgspec.json.decode(make.meaning(read.event)), msgspec.json.decode(line.means)
        if line.v == KINDS[line.type].version:
            assert now == then


def test_the_golden_log_of_this_release_has_every_event_it_declares() -> None:
    golden = {(line.type, line.v) for line in make.read(make.path_of_this_release())}
    missing = {(kind.name, kind.version) for kind in KINDS.values()} - golden
    assert not missing, "an event is new: run `python -m tests.shared.golden.make --replace`"


def test_the_golden_log_of_this_release_is_what_the_code_writes() -> None:
    written = {line.type: line.payload for line in make.lines()}
    assert {line.type: line.payload for line in make.read(make.path_of_this_release())} == written, (
        "an event has changed: if this release is out, give it a new version; if not, run `python -m tests.shared.golden.make --replace`"
    )
    assert set(samples()) == set(KINDS)


def test_an_event_of_an_unknown_type_or_a_newer_version_is_kept() -> None:
    for type, v in (("choir.sang", 1), ("user.said", 99)):
        read = decoded(enveloped(type, v, {"text": "la", "parts": [1, 2]}))
        assert read.event == Unknown(data={"text": "la", "parts": [1, 2]})
        assert (read.type, read.v, read.seq) == (type, v, 7)


def test_fields_added_by_a_later_release_are_passed_over() -> None:
    read = decoded(enveloped("text.received", 1, {"text": "hi", "mood": "good"}))
    assert read.event == events.gateway.TextReceived(text="hi")


@pytest.fixture
def third_version() -> Iterator[type[Event]]:
    """An event in its third version, with an upcaster from each older one."""

    @events.event("test.renamed", writer="voice", version=3)
    class Renamed(Event, frozen=True, kw_only=True):
        """Was `{name}`, then `{label}`, now `{label, length}`."""

        label: str
        length: int

    @events.upcaster("test.renamed", 1)
    def first(data: dict[str, Any]) -> dict[str, Any]:
        return {"label": data["name"]}

    @events.upcaster("test.renamed", 2)
    def second(data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "length": len(data["label"])}

    yield Renamed
    del KINDS["test.renamed"]
    del envelope._BY_CLASS[Renamed]
    for version in (1, 2):
        envelope._UPCASTERS.pop(("test.renamed", version), None)


@pytest.mark.parametrize(("v", "data"), [(1, {"name": "abc"}), (2, {"label": "abc"}), (3, {"label": "abc", "length": 3})])
def test_upcasters_bring_every_older_version_to_the_current_one(third_version: type[Event], v: int, data: dict[str, Any]) -> None:
    read = decoded(enveloped("test.renamed", v, data))
    assert type(read.event) is third_version
    assert msgspec.to_builtins(read.event) == {"label": "abc", "length": 3}
    assert read.v == v


def test_a_version_without_an_upcaster_is_a_typed_error(third_version: type[Event]) -> None:
    del envelope._UPCASTERS["test.renamed", 1]
    for v in (1, 0, -1):
        with pytest.raises(
            VoxbridgeError, match=f"position 7 .*{third_version.__name__.lower()} has no upcaster from version {v}"
        ) as caught:
            decoded(enveloped("test.renamed", v, {}))
        assert caught.value.code is Code.INTERNAL


def test_an_event_is_declared_once() -> None:
    with pytest.raises(ValueError, match=r"user\.said.*twice"):
        events.event("user.said", writer="voice")(events.voice.UserSaid)


@settings(deadline=None)
@given(st.binary(max_size=200) | st.dictionaries(st.text(max_size=5), INT64, max_size=4).map(msgspec.msgpack.encode))
def test_bytes_that_are_no_event_are_a_typed_error(payload: bytes) -> None:
    with pytest.raises(VoxbridgeError, match="position 7") as caught:
        decoded(payload)
    assert caught.value.code is Code.INTERNAL


@pytest.mark.parametrize("data", [{}, {"text": 1}, [], None, {"text": None}])
def test_data_that_does_not_fit_its_type_is_a_typed_error(data: Any) -> None:
    with pytest.raises(VoxbridgeError, match="position 7"):
        decoded(enveloped("text.received", 1, data))


def test_bytes_that_are_no_event_stand_for_themselves_where_reading_goes_on() -> None:
    read = events.read(b"\xc1", seq=9, sid=SID, writer="voice", visible=True, event_type="user.said")
    assert isinstance(read.event, events.Unreadable)
    assert "position 9" in read.event.unreadable
    assert (read.seq, read.sid, read.type, read.id, read.ts) == (9, SID, "user.said", "", 0)


def test_an_upcaster_that_raises_is_a_typed_error(third_version: type[Event]) -> None:
    def broken(data: dict[str, Any]) -> dict[str, Any]:
        raise KeyError("label")

    envelope._UPCASTERS["test.renamed", 2] = broken
    with pytest.raises(VoxbridgeError, match=r"position 7 .*cannot be brought to today's.*label"):
        decoded(enveloped("test.renamed", 2, {}))
