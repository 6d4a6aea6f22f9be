"""Names, texts, schemas, lines and answers of strangers: cleaned, bounded, or refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.services.tools.mcp import content, text
from voxbridge.services.tools.mcp.config import Hints
from voxbridge.services.tools.mcp.messages import Offer
from voxbridge.services.tools.mcp.names import NAME_LIMIT, collisions, tool_name
from voxbridge.services.tools.mcp.splitter import EDGE, CutLine, Splitter
from voxbridge.services.tools.mcp.text import clean, offer
from voxbridge.shared.errors import Code, VoxbridgeError


def offered(name: str = "work", description: str = "Do it.", parameters: Any = None, output: Any = None) -> Offer:
    return offer(name, description, {"type": "object"} if parameters is None else parameters, output, Hints())


@given(st.from_regex(r"[a-z0-9][a-z0-9-]{0,23}", fullmatch=True), st.text(max_size=200))
def test_every_name_can_be_sent_to_every_provider(server: str, tool: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool_name(server, tool))
    assert tool_name(server, tool) == tool_name(server, tool)


def test_a_name_that_fits_stays_and_others_differ_by_a_hash() -> None:
    assert tool_name("files", "read-file") == "files__read-file"
    assert tool_name("files", "x" * 57) == f"files__{'x' * 57}"
    assert len(tool_name("files", "x" * 58)) == NAME_LIMIT
    assert tool_name("files", "x" * 58) != tool_name("files", "x" * 59)
    assert tool_name("files", "a.b") != tool_name("files", "a/b")
    assert tool_name("files", "a.b") == "files__a_b_" + tool_name("files", "a.b")[-8:]


def test_tools_that_differ_in_capitals_alone_are_named() -> None:
    assert collisions("s", ["a", "A", "b"]) == {"a", "A"}
    assert collisions("s", ["a", "a"]) == {"a"}


@pytest.mark.parametrize("mark", ["\u200b", "\u202e", "\u2066", "\x07", "\x00", "\ufeff", "\u00ad", "\ud800", "\ue000", "\U000e0041"])
def test_characters_that_are_not_seen_are_taken_out(mark: str) -> None:
    assert clean(f"a{mark}b", 10) == "ab"
    assert offered(description=f"a{mark}b").description == "ab"
    key: dict[str, Any] = {"properties": {f"a{mark}": {}}}
    value: dict[str, Any] = {"properties": {"a": {"enum": [f"x{mark}"]}}}
    for hidden in (key, value):
        with pytest.raises(VoxbridgeError, match="not visible"):
            offered(parameters=hidden)


def test_texts_are_cut_at_their_bounds() -> None:
    assert clean("x" * 10, 10) == "x" * 10
    assert clean("x" * 11, 10) == "x" * 9 + "…"
    assert len(offered(description="x" * 5_000).description) == text.DESCRIPTION_LIMIT
    told = offered(parameters={"properties": {"a": {"description": "y" * 5_000}}}).parameters
    assert len(told["properties"]["a"]["description"]) == text.DESCRIPTION_LIMIT // 4
    assert offered(parameters={"properties": {"description": {"type": "string"}}}).parameters["properties"]["description"]


def _deep(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"items": found}
    return found


def test_schemas_have_bounds() -> None:
    assert offered(parameters=_deep(text.DEPTH_LIMIT - 1))
    with pytest.raises(VoxbridgeError, match="nested"):
        offered(parameters=_deep(text.DEPTH_LIMIT))
    filling = text.SCHEMA_LIMIT - len('{"type":"object","default":"","properties":{}}')
    assert offered(parameters={"type": "object", "default": "x" * filling})
    with pytest.raises(VoxbridgeError, match=f"{text.SCHEMA_LIMIT} is the most"):
        offered(parameters={"type": "object", "default": "x" * (filling + 19)})
    wrongs: list[Any] = [[], {"type": "array"}]
    for wrong in wrongs:
        with pytest.raises(VoxbridgeError):
            offered(parameters=wrong)
    assert offered("x" * text.TOOL_NAME_LIMIT)
    with pytest.raises(VoxbridgeError):
        offered("x" * (text.TOOL_NAME_LIMIT + 1))
    assert "$schema" not in offered(parameters={"$schema": "x", "properties": {"$schema": {}}}).parameters


@given(st.lists(st.binary(max_size=40)), st.integers(1, 30))
def test_lines_are_the_same_however_the_bytes_come(pieces: list[bytes], limit: int) -> None:
    splitter, whole = Splitter(limit), b"".join(pieces)
    found = [line for piece in pieces for line in splitter.feed(piece)]
    expected = [line for line in whole.split(b"\n")[:-1] if line]
    assert [len(line) if isinstance(line, bytes) else line.size for line in found] == [len(line) for line in expected]
    assert all(line == other for line, other in zip(found, expected, strict=True) if len(other) <= limit)
    assert all(isinstance(line, CutLine) == (len(other) > limit) for line, other in zip(found, expected, strict=True))


def test_of_a_line_that_is_too_long_the_ends_are_kept() -> None:
    splitter = Splitter(5_000)
    assert splitter.feed(b"a" * 5_000 + b"\n") == [b"a" * 5_000]
    for _ in range(100):
        assert splitter.feed(b"b" * 999) == []
    (line,) = splitter.feed(b"end\nnext")
    assert line == CutLine(99_903, b"b" * EDGE, b"b" * (EDGE - 3) + b"end")
    assert splitter.waiting == 4


def test_an_answer_is_text_and_links_within_bounds() -> None:
    long = [{"type": "text", "text": "x" * (content.TEXT_LIMIT + 1)}]
    assert len(content.result_of("s", "t", {"content": long})["text"]) == content.TEXT_LIMIT
    images = [{"type": "image", "data": "AAAA", "mimeType": "image/png"}] * (content.LINKS_LIMIT + 2)
    told = content.result_of("s", "t", {"content": images})
    assert (len(told["links"]), told["more_links"]) == (content.LINKS_LIMIT, 2)
    assert told["links"][0] == {"kind": "image", "mime": "image/png", "bytes": 3}
    short = content.result_of("s", "t", {"content": [{"type": "text", "text": "It\u200b rains."}]})
    assert short == {"text": "It rains.", "spoken": "It rains."}
    assert "spoken" not in content.result_of("s", "t", {"content": [{"type": "text", "text": "x" * (content.SPOKEN_LIMIT + 1)}]})
    with pytest.raises(VoxbridgeError, match="t of s failed: no such file") as refused:
        content.result_of("s", "t", {"isError": True, "content": [{"type": "text", "text": "no such file"}]})
    assert refused.value.code == Code.PROVIDER_REFUSED


@pytest.mark.parametrize("structure", [{"n": 2**70}, {"x": "y" * content.STRUCTURE_LIMIT}])
def test_structure_that_cannot_be_passed_on_is_left_out_and_said(structure: dict[str, Any]) -> None:
    told = content.result_of("s", "t", {"content": [], "structuredContent": structure})
    assert "structured" not in told
    assert told["warning"]


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        ({"type": "object", "required": ["a"]}, {"a": 1}, ""),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": "x"}, "$.a: 'x' is not of type 'integer'"),
        ({"type": 7}, {}, "the schema itself is wrong"),
        ({"$ref": "http://127.0.0.1:1/schema"}, {}, "the schema itself is wrong"),
        ({"$ref": "#"}, {}, "the schema itself is wrong"),
    ],
)
def test_an_answer_is_held_against_what_its_tool_declared(schema: dict[str, Any], value: dict[str, Any], says: str) -> None:
    found: str = content.checked(schema, value)["why"]
    assert found.startswith(says) if says else not found
