"""Sentences of the templates of orders in large numbers; `tests/models/test_order_templates.py` reads some of them."""

from __future__ import annotations

from tests.draws import dice
from tests.models.test_order_templates import misread

SENTENCES = 10_000


def test_every_sentence_of_a_template_is_its_call() -> None:
    assert misread(SENTENCES, dice("many sentences of templates")) == []
