"""Sentences of the grammars of the officer's functions in large numbers; `tests/models/test_terminal_grammars.py` draws some of them."""

from __future__ import annotations

import pytest

from tests.models.test_orders import TERMINALS
from tests.models.test_terminal_grammars import misses
from voxbridge.services.models.core.chatml import Tool

SENTENCES = 10_000


@pytest.mark.parametrize("tool", TERMINALS, ids=[tool.name for tool in TERMINALS])
def test_every_sentence_of_a_grammar_is_a_call_of_a_terminal_that_there_is(tool: Tool) -> None:
    assert misses(tool, SENTENCES) == []
