"""Guesses of libraries are not taken for facts: the rows of tables, the types of YAML, and `null` for what is left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.services.tools.packs.utilities import csv_text, tables, yaml_text
from voxbridge.services.tools.session.nulls import without_nulls
from voxbridge.shared.errors import VoxbridgeError

REPORT = 'Sales report 2026\n\nregion,amount,note\nnorth,10,a\nsouth,20,\nwest,5,"x, y"\nTotal,35,\nSource: the finance department,,\n'


def test_only_the_rows_of_a_table_are_counted_and_the_rest_is_named() -> None:
    found = tables.query("select count(*), sum(amount) from data", REPORT)
    assert found["rows"] == [[3, 35]]
    assert [(one["line"], one["why"]) for one in found["left_out"]] == [(1, "title"), (7, "total"), (8, "note")]
    assert found["spoken"].endswith("I left out 1 title, 1 total and 1 note, which are not part of the table.")
    described = tables.statistics_of(REPORT)
    assert (described["rows"], described["columns"][1]["sum"], len(described["left_out"])) == (3, 35, 3)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("name;town\nAda;London\nBob;Rome", [["Ada", "London"], ["Bob", "Rome"]]),
        ("name,town\nAda,London\nBob,Rome\n", [["Ada", "London"], ["Bob", "Rome"]]),
        ("a\tb\n1\t2\n", [[1, 2]]),
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("a,b\n1,2\n3\n4,5\n", [[1, 2], [3, None], [4, 5]]),
        ("name,qty\nTotal War,5\nall,3\nTotal,8\n", [["Total War", 5], ["all", 3]]),
        ("a,b\nTotal,3\n", [["Total", 3]]),
        ("a,a\n1,2\n", [[1, 2]]),
        ("word\nTotal\nnone\n", [["Total"], ["none"]]),
        ('a,b\n"Total\n2",1\n', [["Total 2", 1]]),
    ],
)
def test_rows_of_a_table_stay(text: str, rows: list[list[Any]]) -> None:
    found = tables.query("select * from data", text)["rows"]
    assert [[" ".join(cell.split()) if isinstance(cell, str) else cell for cell in row] for row in found] == rows


@pytest.mark.parametrize("text", ["", "a,b", "\n\n", 'a,b\n"x,1\n2', "a,b\n1,2\n4,5,6\n"])
def test_what_is_no_table_is_refused_with_what_is_wrong(text: str) -> None:
    with pytest.raises(VoxbridgeError) as refused:
        csv_text.read(text)
    assert refused.value.field == "table"


def test_no_value_is_said_as_such() -> None:
    assert tables.query("select max(b) from data where a = 'z'", "a,b\nx,1\n")["spoken"] == "There is no value."
    assert tables.query("select 0.1 + 0.2::double from data", "a,b\nx,1\n")["spoken"] == "It is 0.3."
    assert tables.query("select sum(b) from data", "a,b\nx,123456.78\n")["spoken"] == "It is 123456.78."
    assert tables.query("select b > 0 from data", "a,b\nx,1\n")["spoken"] == "It is true."


@pytest.mark.parametrize(
    "text", ["12e5", "1e5", "no", "12:30", "", ".5", "5.", "0x1f", "0o7", "~", "<<", "1_000", "2001-01-01", "\x85", "+1"]
)
def test_a_text_stays_a_text_in_yaml(text: str) -> None:
    assert yaml_text.load(yaml_text.dump({"a": text, text: 1}))[0] == {"a": text, text: 1}


_TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t\x85\r0123456789eE.+-xo_:#~ "), max_size=8)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda one: st.lists(one, max_size=4) | st.dictionaries(_TEXTS, one, max_size=4),
    max_leaves=8,
)


@given(_VALUES)
def test_what_was_written_as_yaml_is_read_as_it_was(value: Any) -> None:
    assert repr(yaml_text.load(yaml_text.dump(value))[0]) == repr(value)


@pytest.mark.parametrize(
    ("known", "stays"),
    [
        ({"type": "string"}, False),
        ({"type": ["string", "null"]}, True),
        ({"enum": ["a", None]}, True),
        ({"enum": ["a"]}, False),
        ({"const": None}, True),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, True),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, False),
        ({"allOf": [{"type": "integer"}]}, False),
        ({"$ref": "#/$defs/Size"}, False),
        ({"$ref": "#/$defs/Round"}, True),
        ({"$ref": "https://elsewhere.example/size"}, True),
        ({}, True),
        (True, True),
    ],
)
def test_null_stands_for_an_argument_that_is_left_out(known: Any, stays: bool) -> None:
    schema = {
        "properties": {"a": known, "b": {"type": "string"}},
        "$defs": {"Size": {"type": "integer"}, "Round": {"$ref": "#/$defs/Round"}},
    }
    assert ("a" in without_nulls(schema, {"a": None, "b": "x"})) == stays
    assert without_nulls(schema | {"required": ["a"]}, {"a": None, "c": None}) == {"a": None, "c": None}
