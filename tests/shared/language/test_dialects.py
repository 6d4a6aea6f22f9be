"""The dialects: functions of the installation, and schemas that were refused elsewhere, as each vendor is told them.

The golden files are in `dialects/`; `python -m tests.shared.language.test_dialects` writes them anew, to be looked at before a commit.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Final

import pytest

from voxbridge.services.models.core import grammar
from voxbridge.services.tools.registry import BUILT_IN, load
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.language import dialects

FOLDER: Final = Path(__file__).parent / "dialects"
DIALECTS: Final = {"gemini": dialects.gemini, "openai": dialects.openai, "anthropic": dialects.anthropic}
GOLDEN: Final = ("current_time", "run_tool", "set_timer")
NASTY: Final[dict[str, dict[str, Any]]] = {
    "references": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Place", "description": "Where."}, "to": {"$ref": "#/$defs/Place"}},
        "required": ["at"],
        "$defs": {"Place": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
    },
    "itself": {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Node"}, "n": {"type": "integer"}}}},
    },
    "nullable": {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"], "default": None},
            "b": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": 3},
            "c": {"type": ["string", "integer", "null"]},
        },
    },
    "constants": {
        "type": "object",
        "properties": {"kind": {"const": "file"}, "list": {"type": "array", "items": {"anyOf": [{"const": 1}, {"const": "two"}]}}},
    },
    "alternatives_at_the_top": {
        "anyOf": [
            {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        ]
    },
    "no_schema_at_all": {},
    "words_as_names": {
        "type": "object",
        "properties": {"type": {"type": "string"}, "properties": {"type": "object", "properties": {}}, "$ref": {"type": "string"}},
    },
}


def sources() -> dict[str, dict[str, Any]]:
    """Return every schema by its name."""
    listed = {name: tool.parameters for name, tool in load(BUILT_IN, timeout_s=30).items() if tool.listed}
    return {**listed, **{f"nasty_{name}": schema for name, schema in NASTY.items()}}


def written(dialect: str) -> str:
    """Return the golden file of a dialect."""
    told = {name: DIALECTS[dialect](schema) for name, schema in sorted(sources().items()) if name in GOLDEN or name.startswith("nasty")}
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_vendor_is_told_what_the_golden_file_says(dialect: str) -> None:
    golden = (FOLDER / f"{dialect}.json").read_text(encoding="utf-8")
    assert golden == written(dialect), "a function or a dialect has changed: run `python -m tests.shared.language.test_dialects` and look"


def words(schema: Any) -> set[str]:
    """Return the words of all schemas within one, without names of properties."""
    if isinstance(schema, list):
        return set().union(*map(words, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for word, value in schema.items():
        found |= set().union(*map(words, value.values())) if word == "properties" and value else words(value) if word != "enum" else set()
    return found


@pytest.mark.parametrize("name", sources())
def test_what_was_refused_elsewhere_is_in_no_dialect(name: str) -> None:
    schema = sources()[name]
    for told in (dialect(schema) for dialect in DIALECTS.values()):
        assert told["type"] == "object"
        assert isinstance(told["properties"], dict)
        assert not {"anyOf", "oneOf", "allOf"} & set(told)
        assert "$schema" not in words(told)
    simple = dialects.gemini(schema)
    assert not {"$ref", "$defs", "definitions", "const"} & words(simple)
    assert '"null"' not in json.dumps(simple)
    assert '"type": [' not in json.dumps(simple)


@pytest.mark.parametrize("name", [name for name in sources() if not name.startswith("nasty")])
def test_the_grammar_of_the_local_model_takes_every_listed_function(name: str) -> None:
    rules = grammar.Grammar()
    assert grammar.compile_into(rules, {"type": "object", "additionalProperties": False, **sources()[name]})


def test_a_schema_that_grows_without_end_is_cut_off_at_once() -> None:
    doubling = {f"d{n}": {"type": "object", "properties": {str(k): {"$ref": f"#/$defs/d{n + 1}"} for k in range(10)}} for n in range(12)}
    bomb = {"type": "object", "properties": {"top": {"$ref": "#/$defs/d0"}}, "$defs": doubling}
    began = time.process_time()
    assert len(json.dumps(dialects.gemini(bomb))) < 60 * dialects.NODES_LIMIT
    assert time.process_time() - began < 2
    with pytest.raises(VoxbridgeError):
        grammar.for_schema(bomb)


def test_the_source_is_left_as_it_was() -> None:
    before = json.dumps(NASTY)
    for schema in NASTY.values():
        for dialect in DIALECTS.values():
            dialect(schema)
    assert json.dumps(NASTY) == before


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in DIALECTS:
        (FOLDER / f"{each}.json").write_text(written(each), encoding="utf-8")
