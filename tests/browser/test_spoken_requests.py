"""Requests by recorded speech that the local models alone understand, choose and answer, judged by what was done.

All twenty of `stage/requests.py` are asked in `tests/long`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenStudio
from tests.browser.stage import requests
from tests.browser.stage.product import Product, running
from tests.browser.stage.speech import shared_words, spoken, transcribed
from tests.running_models import RunningModels

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def product(models: RunningModels, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product of its own, which knows what the requests are about."""
    folder = tmp_path_factory.mktemp("spoken")
    with running(folder, models, environment=requests.settle(folder)) as found:
        requests.save_macro(found)
        yield found


def test_the_page_is_opened_read_and_recoloured_as_it_is_asked_aloud(product: Product, open_studio: OpenStudio) -> None:
    found = requests.asked(product, open_studio(), requests.PAGE)
    sys.stdout.write(requests.table(found))
    # The model sees the page that it read before, in which the ids of calls differ from run to run, so one miss is allowed.
    assert sum(not one.why for one in found) >= len(found) - 1, requests.table(found)


def test_a_timer_that_was_set_aloud_outlives_a_reload_and_announces_itself(product: Product, open_studio: OpenStudio) -> None:
    studio = open_studio(clips={"timer": spoken(product.models, "Set a timer for thirty seconds.")})
    sid = studio.start()
    studio.until_quiet()
    studio.say("timer")
    studio.until("(s) => s.conversation.some((e) => e.kind === 'task' && e.status === 'running')")
    studio.page.reload()
    studio.until("(s) => s.connection === 'connected'")
    expect(studio.captions()).to_contain_text("Timer")
    back = product.logged(sid, "client.connected", resumed=True)[0]
    studio.until("(s) => s.conversation.some((e) => e.kind === 'task' && e.status === 'done')")
    (completed,) = product.logged(sid, "task.completed", function="set_timer")
    assert back["seq"] < completed["seq"]
    announce = completed["data"]["announce"]
    studio.until("(s, t) => s.conversation.some((e) => e.role === 'assistant' && e.final && e.text.includes(t))", announce)
    studio.until_quiet()
    played = studio.played()  # since the reload
    heard = transcribed(product.models, played.sound, played.rate)
    assert shared_words(announce, heard) >= 0.7, (announce, heard)
    studio.end()
