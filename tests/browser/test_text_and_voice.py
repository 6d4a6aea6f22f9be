"""One conversation that goes from text to voice, through a reload and to another gateway, and back to text, with each kind of model.

The models are stand-ins, those of vendors at their own protocols; all else is the product, in a page of another origin.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.stage import embedded
from tests.browser.stage.embedding import pages, says, session_of, shows, state
from tests.browser.stage.minds import Mind, mind
from tests.browser.stage.product import Product, running
from tests.browser.stage.studio import PICTURES
from tests.fakes.gemini.server import Refusal
from tests.voice.providers.page_suite import Reply
from tests.voice.providers.test_provider_suite import Gemini
from tests.voice.sounds import silence, speech
from voxbridge.services.voice.core.realtime.connection import TRIES_LIMIT
from voxbridge.shared.audio.frames import INPUT_RATE

pytestmark = pytest.mark.timeout(300)
USER = (
    "My name is Ada.",
    "Let's talk, and tell me a joke",
    "tell me a joke",
    "What is my name?",
    "Are you still there?",
    "I would rather type",
    "thank you",
)
AGENT = ("Good day, Ada.", "Let us talk.", "A horse walks into a bar.", "You are Ada.", "I am still here.", "Then we write.")
"""Lines of both sides, in order; the model that writes was told all of it when it was asked last."""


@contextmanager
def product_of(thinking: Mind, folder: Path) -> Iterator[Product]:
    """Run the product with a mind's models."""
    models = cast("Any", SimpleNamespace(base_url=thinking.models.url))
    with running(folder, models, environment=thinking.environment) as found:
        yield found


def speaks(page: Page) -> None:
    """Say something into the page's microphone; the stand-in knows what."""
    data = base64.b64encode(silence(400) + speech(1_500) + silence(900)).decode()
    page.evaluate("([data, rate]) => window.__microphone.load('words', data, rate)", [data, INPUT_RATE])
    page.evaluate("() => window.__microphone.say('words')")


@pytest.mark.parametrize("mode", ["local", "gemini", "openai", "claude"])
def test_text_then_voice_then_a_reload_then_another_gateway_then_text_is_one_conversation(
    browser: Browser, tmp_path: Path, mode: str
) -> None:
    with mind(mode, tmp_path) as thinking, product_of(thinking, tmp_path) as product:
        key = embedded.make_key(product, mode=thinking.mode)
        with (
            embedded.site(embedded.example("vanilla", product, key)) as address,
            pages(browser) as open_page,
        ):
            page = open_page(address)
            shows(page, "Hi! Ask me when your train leaves.")
            thinking.writes("Good day, Ada.")
            says(page, "My name is Ada.")
            shows(page, "Good day, Ada.")
            assert page.evaluate("window.__asked") == 0, "no microphone before the voice"
            sid = session_of(product)
            assert product.logged(sid, "session.started")[0]["data"]["output"] == "text"

            thinking.writes("Let us talk.", start_voice_session={"pending_request": "tell me a joke"})
            thinking.voice.script(Reply(says="A horse walks into a bar.", lasts_ms=600))
            says(page, "Let's talk, and tell me a joke")
            shows(page, "A horse walks into a bar.")
            state(page, "Listening")
            assert page.evaluate("window.__asked") == 1
            assert [event["data"]["output"] for event in product.logged(sid, "output.changed")] == ["audio"]
            knows = thinking.voice.knows()
            assert all(line in knows for line in ("My name is Ada.", "Good day, Ada.", "tell me a joke"))

            thinking.hears("What is my name?", says="You are Ada.")
            speaks(page)
            product.logged(sid, "agent.said", text="You are Ada.")
            shows(page, "You are Ada.")

            page.reload()
            shows(page, "You are Ada.")
            shows(page, "Good day, Ada.")
            state(page, "Listening")

            product.kill("gateway")
            product.logged(sid, "client.connected")
            state(page, "Listening")
            thinking.hears("Are you still there?", says="I am still here.")
            speaks(page)
            product.logged(sid, "agent.said", text="I am still here.")
            shows(page, "I am still here.")
            gateways = {event["data"]["gateway"] for event in product.logged(sid, "client.connected")}
            assert len(gateways) == 2, "another gateway goes on with it"

            thinking.voice.script(Reply(calls=(("end_voice_session", {}),), after="Then we write."))
            says(page, "I would rather type")
            state(page, "Ready")
            assert product.logged(sid, "output.changed")[-1]["data"]["output"] == "text"
            thinking.writes("With pleasure, Ada.")
            says(page, "thank you")
            shows(page, "With pleasure, Ada.")
            assert [event["data"]["text"] for event in product.logged(sid, "user.said")] == list(USER)
            told = thinking.was_told()
            assert all(line in told for line in USER)
            for line in AGENT:
                assert told.count(line) == 1, line
                expect(page.get_by_role("log").get_by_text(line)).to_have_count(1)
            assert session_of(product) == sid, "it was one session"


def test_a_worker_that_is_killed_while_the_voice_is_still_away_leaves_the_switch_to_the_next_one(browser: Browser, tmp_path: Path) -> None:
    with mind("gemini", tmp_path) as thinking, product_of(thinking, tmp_path) as product:
        key = embedded.make_key(product, mode=thinking.mode)
        with embedded.site(embedded.example("vanilla", product, key)) as address, pages(browser) as open_page:
            page = open_page(address)
            assert isinstance(thinking.voice, Gemini)
            thinking.voice.server.refuse(*[Refusal(status=503)] * (TRIES_LIMIT - 2))  # it is reached after some seconds
            thinking.writes("Let us talk.", start_voice_session={"pending_request": "tell me a joke"})
            thinking.voice.script(Reply(says="A horse walks into a bar.", lasts_ms=600))
            shows(page, "Hi! Ask me when your train leaves.")
            says(page, "Let's talk, and tell me a joke")
            sid = session_of(product)
            product.logged(sid, "output.changed")
            product.kill("voice", sid)
            shows(page, "A horse walks into a bar.")
            state(page, "Listening")
            assert len(product.logged(sid, "session.owned")) == 2, "another worker goes on with it"
            assert [event["data"]["output"] for event in product.logged(sid, "output.changed")] == ["audio"]
            assert page.evaluate("window.__asked") == 1
            thinking.hears("Thank you.", says="With pleasure.")
            speaks(page)
            shows(page, "With pleasure.")
            for line in ("Let us talk.", "A horse walks into a bar.", "tell me a joke", "Thank you."):
                expect(page.get_by_role("log").get_by_text(line, exact=True)).to_have_count(1)


def test_a_voice_that_cannot_be_reached_leaves_the_page_in_text_with_what_was_asked_answered(browser: Browser, tmp_path: Path) -> None:
    with mind("gemini", tmp_path) as thinking, product_of(thinking, tmp_path) as product:
        key = embedded.make_key(product, mode=thinking.mode)
        with embedded.site(embedded.example("vanilla", product, key)) as address, pages(browser) as open_page:
            page = open_page(address)
            assert isinstance(thinking.voice, Gemini)
            thinking.voice.server.refuse(*[Refusal(status=503)] * TRIES_LIMIT)
            thinking.writes("Let us talk.", start_voice_session={"pending_request": "tell me a joke"})
            thinking.writes("A horse walks into a bar.")
            says(page, "Let's talk, and tell me a joke")
            shows(page, "A horse walks into a bar.")
            expect(page.get_by_role("alert")).to_contain_text("The voice is away at the moment, so we go on in text.")
            PICTURES.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=PICTURES / "embedded-voice-away.png")
            assert [event["data"]["output"] for event in product.logged(session_of(product), "output.changed")] == ["audio", "text"]
            assert page.evaluate("window.__asked") == 1
            thinking.writes("With pleasure.")
            says(page, "thank you")
            shows(page, "With pleasure.")
