"""The agent is asked aloud what the user looks at, what went wrong, and what a document says: it knows, offline, with the local models."""

from __future__ import annotations

import time
from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenStudio
from tests.browser.stage.product import Product
from tests.browser.stage.speech import spoken
from tests.eventually import BOUND_S

pytestmark = pytest.mark.timeout(600)
ERROR: Final = {"event_type": "error", "error_type": "TypeError", "message": "the list of orders is empty", "page": "/keys"}


class Known:
    """Knowledge of the user, over HTTP."""

    def __init__(self, product: Product) -> None:
        self._url = f"{product.url}/api/vox"

    def _asked(self, method: str, path: str, **body: Any) -> Any:
        answer = httpx.request(method, f"{self._url}/{path}", json=body or None, timeout=20)
        return answer.raise_for_status().json()

    def told(self) -> str:
        """Return the words that agents are told."""
        return str(self._asked("GET", "awareness"))

    def report(self, **fields: Any) -> bool:
        """Report something; return whether it was recorded."""
        return bool(self._asked("POST", "awareness", **fields)["recorded"])

    def switch(self, source: str, *, on: bool) -> None:
        """Switch a source on or off."""
        self._asked("PUT", f"awareness/sources/{source}", on=on)

    def until(self, words: str, *, there: bool = True) -> None:
        """Wait until these words are among what agents are told, or are not."""
        deadline = time.monotonic() + BOUND_S
        while (words in self.told()) is not there:
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.05)

    def learned(self, name: str, text: str) -> None:
        """Put a text into a knowledge graph, and wait until it is there."""
        args = {"database": "handbook", "source": name, "text": text}
        task = self._asked("POST", "function/ingest_to_kg", args=args)["result"]["task_id"]
        deadline = time.monotonic() + BOUND_S
        while "result" not in (found := self._asked("GET", f"tasks/{task}")):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        assert found["result"]["documents"] == 1, found


def test_the_agent_knows_what_the_user_looks_at(product: Product, open_studio: OpenStudio) -> None:
    known = Known(product)
    studio = open_studio(clips={"looking": spoken(product.models, "What am I looking at?")})
    studio.start()
    studio.until_quiet()
    studio.page.get_by_role("link", name="Keys").click()
    expect(studio.page.get_by_role("heading", name="Keys", level=1)).to_be_visible()
    known.until("/keys")
    assert known.report(**ERROR)
    known.until(ERROR["message"])
    studio.say("looking")
    studio.until_said("user", "looking at")
    studio.until_said("assistant", r"\bkeys?\b")
    studio.until_quiet()
    known.switch("errors", on=False)
    try:
        known.until(ERROR["message"], there=False)
        assert not known.report(**ERROR), "nothing of it is recorded any more"
    finally:
        known.switch("errors", on=True)


def test_the_agent_answers_from_a_document_and_says_which(product: Product, open_studio: OpenStudio) -> None:
    Known(product).learned("leave.md", "Every employee has thirty days of holidays in a year. Questions about holidays go to Mary Poppins.")
    studio = open_studio(clips={"holidays": spoken(product.models, "What do my documents say about holidays?")})
    sid = studio.start()
    studio.until_quiet()
    studio.say("holidays")
    studio.until_said("user", "holidays")
    studio.until_said("assistant", r"(thirty|30) days.*leave")
    studio.until_quiet()
    assert product.logged(sid, "tool.called", name="query_kg")
