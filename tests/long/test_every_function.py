"""Every function with every hostile text by every door; `tests/tools/every_function` gives REST and macros a few of them."""

from __future__ import annotations

import pytest

from tests.gateway.conftest import serve
from tests.tools.conftest import config, connection, log
from tests.tools.every_function.cases import TEXTS
from tests.tools.every_function.conftest import doors, workspace
from tests.tools.every_function.doors import Doors
from tests.tools.every_function.test_table import DOORS, bears

__all__ = ["config", "connection", "doors", "log", "serve", "workspace"]


@pytest.mark.timeout(3_600)
async def test_every_function_bears_what_strangers_write_by_every_door(doors: Doors) -> None:
    await bears(doors, dict.fromkeys(DOORS, TEXTS))
