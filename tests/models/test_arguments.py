"""Arguments by what the user said: values that were named, and what is left out."""

from __future__ import annotations

import pytest

from voxbridge.services.models.choice.arguments import narrowed, written
from voxbridge.services.models.core import chatml

THEMES = {"theme": {"type": "string", "enum": ["light", "dark", "system"]}}
MACROS = ["good night", "morning check", "daybreak", "team_wiki"]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("make it dark", ["dark"]),
        ("as the sistem has it", ["system"]),
        ("from light to dark", ["light", "dark"]),
        ("change it", ["light", "dark", "system"]),
        ("turn off dark mode", ["light", "dark", "system"]),
        ("anything but not dark", ["light", "dark", "system"]),
        ("get rid of dark mode", ["light", "dark", "system"]),
        ("the dark theme hurts my eyes change it", ["light", "dark", "system"]),
        ("change the dark theme", ["light", "dark", "system"]),
        ("change the theme to dark", ["dark"]),
        ("make it less dark", ["light", "dark", "system"]),
        ("I'm sick of the light theme", ["light", "dark", "system"]),
        ("he said make it dark", ["light", "dark", "system"]),
    ],
)
def test_an_enum_holds_what_was_said(said: str, kept: list[str]) -> None:
    schema = {"type": "object", "properties": THEMES, "required": ["theme"]}
    assert narrowed(schema, said)["properties"]["theme"]["enum"] == kept


def test_a_verb_that_begins_a_request_names_no_value() -> None:
    schema = {"type": "object", "properties": {"method": {"type": "string", "enum": ["get", "post", "put"]}}, "required": ["method"]}
    assert narrowed(schema, "put a new endpoint for orders there")["properties"]["method"]["enum"] == ["get", "post", "put"]
    assert narrowed(schema, "write a put endpoint for orders")["properties"]["method"]["enum"] == ["put"]


def test_an_argument_that_may_be_left_out_is_when_none_of_its_values_was_said() -> None:
    schema = {
        "type": "object",
        "properties": {"graph": {"type": "string", "enum": ["team_wiki", "product_docs"]}, "query": {"type": "string"}},
    }
    assert list(narrowed(schema, "look for parking")["properties"]) == ["query"]
    named = narrowed(schema, "look for parking in the wiki")
    assert named["properties"]["graph"]["enum"] == ["team_wiki"]
    assert named["required"] == ["graph"]
    assert narrowed({"type": "object"}, "anything") == {"type": "object"}


def test_a_number_that_may_be_left_out_is_where_no_number_was_said() -> None:
    schema = {"type": "object", "properties": {"lines": {"type": "integer"}, "level": {"type": "integer"}}, "required": ["level"]}
    assert list(narrowed(schema, "read Claude to me")["properties"]) == ["level"]
    assert list(narrowed(schema, "read the last five lines of Claude")["properties"]) == ["lines", "level"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("could somebody tell Codex to use tabs instead of spaces?", "use tabs instead of spaces?"),
        ("pass it on to codex, the key is in the vault.", "the key is in the vault"),
        ("tell codex", None),
        ("tell the other one to use tabs", None),
    ],
)
def test_what_somebody_is_told_is_in_the_users_words(said: str, told: str | None) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}, "terminal": {"type": "string"}}, "required": ["text"]}
    text = narrowed(schema, said, {"terminal": ["Build", "Codex"]})["properties"]["text"]
    assert text == {"type": "string"} | ({} if told is None else {"enum": [told]})


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("run the macro good night", ["good night"]),
        ("start day break please", ["daybreak"]),
        ("do the mourning check", ["morning check"]),
        ("look into the wiki", ["team_wiki"]),
        ("delete every macro but good night", MACROS),
        ("a tour other than the wiki", MACROS),
        ("run good morning", None),
        ("run the summer macro", None),
        ("good", None),
    ],
)
def test_a_thing_that_was_named_is_the_only_value_and_one_that_is_not_there_is_said_as_it_was(said: str, kept: list[str] | None) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 64}}, "required": ["name"]}
    name = narrowed(schema, said, {"name": MACROS, "other": ["x"]})["properties"]["name"]
    assert name == {"type": "string", "maxLength": 64} | ({} if kept is None else {"enum": kept})


def test_a_thing_that_was_named_is_no_longer_left_out() -> None:
    schema = {"type": "object", "properties": {"page": {"type": "string"}}}
    assert narrowed(schema, "show me the tools tour", {"page": ["tools"]})["required"] == ["page"]
    assert narrowed(schema, "show me a tour", {"page": ["tools"]})["required"] == []


@pytest.mark.parametrize(("said", "known"), [("the pasta goes in now nine minutes please", {"enum": [540]}), ("remind me in five", {})])
def test_a_length_of_time_that_was_said_is_the_only_value(said: str, known: dict[str, list[int]]) -> None:
    schema = {"type": "object", "properties": {"seconds": {"type": "integer"}}}
    assert narrowed(schema, said)["properties"]["seconds"] == {"type": "integer"} | known


def test_a_word_names_one_argument() -> None:
    graph = {"type": "string", "enum": ["product_docs", "team_wiki"]}
    schema = {"type": "object", "properties": {"kind": {"type": "string", "enum": ["person", "product"]}, "graph": graph}}
    assert list(narrowed(schema, "search the product docs")["properties"]) == ["graph"]
    assert list(narrowed(schema, "which person is in the wiki")["properties"]) == ["kind", "graph"]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("generate tests for core dot py", "generate tests for core.py"),
        ("an endpoint at slash orders please", "an endpoint at /orders please"),
        ("is example dot com up", "is example.com up"),
        ("connect the dot to the line", "connect the dot to the line"),
    ],
)
def test_names_are_written_as_files_and_paths_are(said: str, text: str) -> None:
    assert written(said) == text


def test_a_sure_call_whose_arguments_are_all_said_needs_no_model() -> None:
    theme = {"type": "object", "properties": THEMES, "required": ["theme"]}
    tool = chatml.Tool("switch_theme", "Change the colours.", narrowed(theme, "dark mode please"))
    required = chatml.Choice("required")
    assert chatml.only_answer([tool], required) == '{"tool": "switch_theme", "args": {"theme": "dark"}}'
    assert chatml.only_answer([chatml.Tool("switch_theme", "", theme)], required) == ""
    assert chatml.only_answer([chatml.Tool("note", "", {"type": "object", "additionalProperties": True})], required) == ""
    assert chatml.only_answer([tool], chatml.Choice("auto")) == ""
