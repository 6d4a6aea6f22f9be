"""Sentences drawn from every template of an order: each is read as that call, with the arguments that were said in it."""

from __future__ import annotations

import random
import re
from typing import Any, Final

import pytest

from tests.draws import dice
from tests.models.test_orders import NAMES, TERMINALS, calls
from voxbridge.services.models.choice.orders import PARTS_LIMIT, SAID_LIMIT
from voxbridge.services.models.core.chatml import Tool

SENTENCES: Final = 2_000
ALONE: Final = "=it}"
"""Argument that is nothing without an order before."""

TEXTS: Final = (
    "fix the parser",
    "write a test for the login page",
    "say hello",
    "list every file that is bigger than 3 MB",
    "rename foo_bar to foo",
    "explain what `git rebase` does",
)
"""Texts that a program is told; none has a comma, a stop or an "and", at which the next order could begin."""

_TOKEN: Final = re.compile(r"\{(\w+)!?(?:=([^{}]*))?\}('s)?|\[([^\[\]]*)\]|\(([^()]*)\)|([^\s\[\](){}]+)")


def sentence(tool: Tool, template: str, chance: random.Random) -> tuple[str, dict[str, Any]]:
    """Return a sentence of a template, and the arguments that it gives."""
    words: list[str] = []
    arguments: dict[str, Any] = {}
    for slot, value, of, optional, either, word in _TOKEN.findall(template):
        if slot and value:
            whole = tool.parameters["properties"].get(slot, {}).get("type") == "integer"
            arguments[slot] = int(value) if whole else value
        elif slot:
            schema = tool.parameters["properties"][slot]
            said = chance.choice(schema.get("enum") or (NAMES if slot in ("terminal", "source", "name") else TEXTS))
            arguments[slot] = said
            words.append(f"{said}{of}")
        elif optional:
            words += [chance.choice(optional.split("|"))] if chance.random() < 0.5 else []
        else:
            words.append(chance.choice(either.split("|")) if either else word)
    return " ".join(words), arguments


def misread(number: int, chance: random.Random) -> list[str]:
    """Draw so many sentences, and return those that are read as anything else."""
    every = [(tool, template) for tool in TERMINALS for template in tool.orders if ALONE not in template]
    found: list[str] = []
    for _ in range(number):
        tool, template = chance.choice(every)
        said, arguments = sentence(tool, template, chance)
        read = calls(f"{chance.choice(('', 'please ', 'okay, '))}{said}{chance.choice(('', '.', '!', ' please'))}")
        if read != [(tool.name, arguments)]:
            found.append(f"{said!r} of {tool.name}: {read}")
    return found


def test_every_sentence_of_a_template_is_its_call() -> None:
    assert misread(SENTENCES, dice("sentences of templates")) == []


@pytest.mark.parametrize("joint", [" and ", ", ", ". ", ", then ", " and then "])
def test_sentences_one_after_the_other_are_calls_in_order(joint: str) -> None:
    chance = dice(f"orders joined by {joint}")
    every = [(tool, template) for tool in TERMINALS for template in tool.orders if "{text}" not in template and ALONE not in template]
    for _ in range(100):
        drawn = [chance.choice(every) for _ in range(chance.randint(2, PARTS_LIMIT))]
        parts = [sentence(tool, template, chance) for tool, template in drawn]
        expected = [(tool.name, arguments) for (tool, _), (_, arguments) in zip(drawn, parts, strict=True)]
        said = joint.join(said for said, _ in parts)
        if len(said) <= SAID_LIMIT:
            assert calls(said) == expected, said
