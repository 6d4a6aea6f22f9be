"""Approval in a call of recorded speech: what destroys something happens after the user's own spoken yes, and never before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenStudio
from tests.browser.stage import requests
from tests.browser.stage.product import Product, running
from tests.browser.stage.speech import spoken
from tests.running_models import RunningModels

pytestmark = pytest.mark.timeout(900)

ASKED_MS: Final = requests.ANSWER_S * 1_000
ASKS: Final = (
    "(s, count) => s.conversation.filter((e) => e.role === 'assistant' && e.final && e.text.includes('yes or no')).length >= count"
)


@pytest.fixture(scope="module")
def product(models: RunningModels, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product of its own, with a macro to delete."""
    folder = tmp_path_factory.mktemp("spoken-approval")
    with running(folder, models, environment=requests.settle(folder)) as found:
        requests.save_macro(found)
        yield found


def test_a_macro_is_deleted_after_the_spoken_yes_to_the_question_that_was_heard(product: Product, open_studio: OpenStudio) -> None:
    said = {"delete": "Please delete the macro called morning round.", "no": "No, thank you.", "yes": "Yes, please."}
    studio = open_studio(clips={name: spoken(product.models, text) for name, text in said.items()})
    card = studio.page.get_by_role("region", name="Waiting for you").get_by_role("article")
    sid = studio.start()
    studio.until_quiet()
    for count, (answer, outcome, left) in enumerate((("no", "denied", 1), ("yes", "approved", 0)), 1):
        studio.say("delete")
        expect(card).to_contain_text("Delete", timeout=ASKED_MS)
        studio.until(ASKS, count)
        studio.until_quiet()
        assert macros(product) == 1
        studio.say(answer)
        expect(card).to_have_count(0, timeout=ASKED_MS)
        ended = product.logged(sid, "approval.ended", outcome=outcome)
        assert [(one["data"]["name"], one["data"]["by"]) for one in ended] == [("delete_macro", "voice")]
        if outcome == "approved":
            product.logged(sid, "task.completed", function="delete_macro")
        studio.until_quiet()
        assert macros(product) == left
    studio.end()


def macros(product: Product) -> int:
    """Return the number of macros that are kept."""
    return int(httpx.get(f"{product.url}/api/vox/macros", timeout=30).raise_for_status().json()["count"])
