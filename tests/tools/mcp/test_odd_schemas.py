"""Tools whose schemas are odd or mean nothing, beside a good one of the same server: each works or is named, and every vendor is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.tools.mcp.conftest import Running, hostile, serving
from tests.tools.mcp.test_schemas import MEANINGLESS, ODD
from voxbridge.services.tools.mcp.connection import REFUSED_LIMIT
from voxbridge.shared.language import dialects

SCHEMAS = [*(schema for schema, _ in ODD), *(schema for schema, _ in MEANINGLESS)]


async def _served(folder: Path, schemas: list[dict[str, Any]], usable: int) -> None:
    file = folder / "schemas.json"
    file.write_text(json.dumps(schemas))
    async with serving({"odd": hostile("schemas", file)}) as running:
        await running.ready("odd")
        assert (await running.call("odd", "work"))["text"] == "work done"
        for number in range(usable):
            assert (await running.call("odd", f"odd_{number}", **_arguments(running, number)))["text"] == f"odd_{number} done"
        for number in range(usable, len(schemas)):
            assert any(f"'odd_{number}'" in why for why in running.view("odd").refused), number
            assert f"odd__odd_{number}" not in running.catalogue
        for tool in running.catalogue.values():
            for dialect in (dialects.openai, dialects.anthropic, dialects.gemini):
                Draft202012Validator.check_schema(dialect(tool.parameters))


def _arguments(running: Running, number: int) -> dict[str, Any]:
    """Return the arguments without which the tool may not be called."""
    required = running.catalogue[f"odd__odd_{number}"].parameters.get("required", [])
    return dict.fromkeys(required, "x")


async def test_of_forty_odd_tools_each_works_or_is_named(tmp_path: Path) -> None:
    assert len(SCHEMAS) >= 40
    await _served(tmp_path, SCHEMAS, len(ODD))


async def test_of_many_refused_tools_the_first_are_named(tmp_path: Path) -> None:
    file = tmp_path / "schemas.json"
    file.write_text(json.dumps([{"type": "string"}] * (REFUSED_LIMIT + 1)))
    async with serving({"odd": hostile("schemas", file)}) as running:
        await running.ready("odd")
        assert (await running.call("odd", "work"))["text"] == "work done"
        refused = running.view("odd").refused
    assert len(refused) == REFUSED_LIMIT
    assert [f"'odd_{number}'" in why for number, why in enumerate(refused)] == [True] * REFUSED_LIMIT


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
async def test_each_alone_beside_a_good_one_works_or_is_named(tmp_path: Path, number: int) -> None:
    await _served(tmp_path, [SCHEMAS[number]], int(number < len(ODD)))
