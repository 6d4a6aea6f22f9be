"""Tools of the MCP reference servers, asked for by recorded speech: recognised, chosen and called by the local models alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Final

import pytest

from tests.browser.conftest import OpenStudio, browser, launch, models, open_studio, playwright
from tests.browser.stage import requests
from tests.browser.stage.product import Product, running
from tests.browser.stage.requests import Request
from tests.browser.stage.studio import WAIT_MS
from tests.running_models import RunningModels
from tests.tools.mcp.conftest import EVERYTHING, files

__all__ = ["browser", "launch", "models", "open_studio", "playwright"]

pytestmark = pytest.mark.timeout(900)

SAYS: Final = ["echo the word hello", "have the server echo my sentence", "send this through the echo"]
LISTS: Final = ["which files are in the photos folder", "list what is in the folder reports", "what does the music folder contain"]
ALLOWED: Final = ["which folders can you get at", "what may the file server read", "tell me your allowed directories"]
READS: Final = ["read the file todo dot txt", "what is in the file plan dot txt", "read me the text file diary"]
ASKED: Final = (
    Request("Please echo the words good morning everybody.", "everything__echo", "good morning", "Echo: .*good morning"),
    Request("Which directories may the file server open?", "files__list_allowed_directories", "", "Allowed directories"),
    Request("Read the file shopping dot txt.", "files__read_text_file", "shopping", "three lemons"),
)


@pytest.fixture(scope="module")
def product(models: RunningModels, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product with both servers, whose operator says what people ask them for."""
    folder = tmp_path_factory.mktemp("servers")
    shelf = folder / "shelf"
    shelf.mkdir()
    (shelf / "shopping.txt").write_text("Buy three lemons.")
    servers = {
        "everything": {**EVERYTHING, "effect": "read", "only": ["echo", "get-sum"], "tools": [{"match": "echo", "examples": SAYS}]},
        "files": {
            **files(shelf),
            "cwd": str(shelf),
            "effect": "read",
            "only": ["read_text_file", "list_*"],
            "tools": [
                {"match": "list_directory", "examples": LISTS},
                {"match": "list_allowed_directories", "examples": ALLOWED},
                {"match": "read_text_file", "examples": READS},
            ],
        },
    }
    (folder / "mcp.yaml").write_text(json.dumps({"servers": servers}))  # JSON is YAML
    environment = {**requests.settle(folder), "VOXBRIDGE_MCP_FILE": str(folder / "mcp.yaml")}
    with running(folder, models, environment=environment) as found:
        yield found


def test_tools_of_servers_are_asked_for_aloud_and_answer(product: Product, open_studio: OpenStudio) -> None:
    studio = open_studio()
    for request in ASKED:
        studio.page.wait_for_function(
            "async (name) => (await (await fetch('/api/vox/functions')).text()).includes(name)",
            arg=request.function,
            timeout=WAIT_MS,
            polling=500,
        )
    found = requests.asked(product, studio, ASKED)
    sys.stdout.write(requests.table(found))
    assert [one.why for one in found] == [""] * len(found)
