"""Tests that docs/wrong-answers.md names for what was reported of other systems."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "wrong-answers.md"
ROWS = [line for line in PAGE.read_text().splitlines() if line.startswith("|") and "tests/" in line]
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def test_each_kind_has_its_reports_and_a_test() -> None:
    assert len(ROWS) == 24
    for row in ROWS:
        kind, reported, right, tests = (part.strip() for part in row.strip("|").split("|"))
        assert all((kind, right, re.search(r"#\d|PR \d", reported), TEST.search(tests))), row


@pytest.mark.parametrize(("path", "name"), sorted({found.groups() for row in ROWS for found in TEST.finditer(row)}, key=str))
def test_a_test_that_is_named_exists(path: str, name: str | None) -> None:
    tree = ast.parse((ROOT / path).read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert name in names if name else names
