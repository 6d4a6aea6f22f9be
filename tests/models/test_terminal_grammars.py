"""Sentences drawn from the grammars of the officer's functions: each is a call that the executor takes, of a terminal that there is."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

import pytest

from tests.draws import dice
from tests.models.gbnf import Gbnf
from tests.models.test_orders import NAMES, TERMINALS
from voxbridge.services.models.choice.arguments import narrowed
from voxbridge.services.models.core.chatml import Choice, Tool, tool_grammar
from voxbridge.services.tools.registry import load

SENTENCES: Final = 2_000
"""Sentences of each function, over requests that name each of the terminals."""

FUNCTIONS: Final = load(("voxbridge.services.tools.packs.terminals.functions",), timeout_s=30)
OF_TERMINALS: Final = ("terminal", "source")
"""Arguments that name a terminal."""


def drawn(tool: Tool, said: str, count: int, chance: Random) -> list[dict[str, Any]]:
    """Draw so many calls from the grammar that a function has in a request."""
    narrow = Tool(tool.name, parameters=narrowed(tool.parameters, said, tool.names))
    grammar = Gbnf(tool_grammar([narrow], Choice("required")))
    grammar.check()
    return [json.loads(text[text.index("{") :]) for text in (grammar.write(chance) for _ in range(count))]


def misses(tool: Tool, count: int) -> list[str]:
    """Draw calls in requests that name one terminal, or two; return those that are refused, or name another one."""
    chance, found = dice(f"grammar of {tool.name}"), []
    named = [name for name in OF_TERMINALS if name in tool.parameters["properties"]]
    for one in NAMES:
        other = chance.choice([name for name in NAMES if name not in one and one not in name])
        said = f"do it in {one}" if len(named) < 2 else f"give {one} the output of {other}"
        for call in drawn(tool, said, -(-count // len(NAMES)), chance):
            try:
                FUNCTIONS[tool.name].check(call["args"])
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a miss
                found.append(f"{call}: {error}")
            into = {call["args"].get(name) for name in named}
            # "Claude" is in "Claude Code": a request for the one names the other.
            meant = {name for name in NAMES if any(name in said_ or said_ in name for said_ in (one, other if len(named) > 1 else one))}
            if call["tool"] != tool.name or not into <= {*meant, None}:
                found.append(f"{call}, for {said!r}")
    return found


@pytest.mark.parametrize("tool", TERMINALS, ids=[tool.name for tool in TERMINALS])
def test_every_sentence_of_a_grammar_is_a_call_of_a_terminal_that_there_is(tool: Tool) -> None:
    assert misses(tool, SENTENCES) == []
