"""Talk without speech, without a microphone, and without a mouse."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import OpenStudio
from tests.browser.stage.product import Product
from tests.browser.stage.speech import shared_words, spoken, transcribed
from tests.browser.stage.studio import Studio

pytestmark = pytest.mark.timeout(600)


def test_the_text_box_works_without_a_microphone(product: Product, studio: Studio) -> None:
    studio.type("What is 17 times 23?")
    sid = studio.connected()
    assert studio.snapshot()["microphone"] == "off"
    studio.until_said("assistant", "391|three hundred and ninety")
    (said,) = product.logged(sid, "user.said", source="text")
    assert said["data"]["text"] == "What is 17 times 23?"
    expect(studio.captions()).to_contain_text("You typed")
    expect(studio.button("Mute")).to_have_count(0)


def test_a_call_is_recorded_where_the_person_says_so_and_the_page_says_it_all_through(product: Product, studio: Studio) -> None:
    said = studio.page.locator(".recorded")
    expect(said).to_have_count(0)
    studio.button("Call settings").click()
    studio.page.get_by_role("checkbox", name="Record the call").check()
    expect(said).to_contain_text("both voices are kept")
    studio.page.keyboard.press("Escape")
    studio.type("What is 6 times 7?")
    sid = studio.connected()
    expect(said).to_have_text("Recorded")
    (started,) = product.logged(sid, "session.started")
    assert started["data"]["recorded"] is True
    studio.page.reload()
    assert studio.connected() == sid
    expect(said).to_have_text("Recorded")


def test_a_refused_microphone_is_explained_and_the_text_box_goes_on(product: Product, launch: Callable[..., Browser]) -> None:
    page = launch("--use-fake-ui-for-media-stream=deny").new_page()
    studio = Studio(page, product.url)
    studio.open()
    studio.button("Start talking").click()
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("microphone")
    assert studio.snapshot()["error"]["code"] == "MIC_DENIED"
    assert studio.snapshot()["connection"] == "closed"
    assert studio.violations() == []
    studio.type("Say hello.")
    studio.connected()
    studio.until("(s) => s.error === null")
    expect(notice).to_have_count(0)
    page.context.close()
    assert studio.complaints == []


def test_a_call_is_made_by_keyboard_alone(product: Product, studio: Studio) -> None:
    keyboard = studio.page.keyboard
    keyboard.press("?")
    expect(studio.page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    keyboard.press("Escape")
    expect(studio.page.get_by_role("dialog", name="Keyboard")).to_have_count(0)

    _tab_to(studio, "Start talking")
    keyboard.press("Enter")
    sid = studio.connected()
    studio.until_quiet()
    keyboard.press("m")
    studio.until("(s) => s.microphone === 'muted'")
    keyboard.press("m")
    studio.until("(s) => s.microphone === 'on'")
    keyboard.press("/")
    expect(studio.page.get_by_role("textbox", name="Message")).to_be_focused()
    keyboard.type("What is 6 times 7?")
    keyboard.press("Enter")
    studio.until_said("assistant", "42|forty.two")
    _tab_to(studio, "End the call")
    keyboard.press("Enter")
    studio.until("(s) => s.connection === 'closed'")
    (ended,) = product.logged(sid, "session.ended")
    assert "client" in ended["data"]["reason"]
    expect(studio.page.get_by_role("heading", name="Call ended")).to_be_visible()


def test_space_is_held_to_talk(product: Product, open_studio: OpenStudio) -> None:
    studio = open_studio(clips={"question": spoken(product.models, "What is the capital of France?")})
    sid = studio.start()
    studio.until_quiet()
    studio.page.keyboard.press("m")
    studio.until("(s) => s.microphone === 'muted'")
    muted_at = len(product.log(sid))
    studio.say("question")
    studio.after(3)
    assert not [event for event in product.log(sid)[muted_at:] if event["type"] == "speech.started"]

    studio.page.locator("body").click(position={"x": 5, "y": 400})
    studio.page.keyboard.down("Space")
    studio.until("(s) => s.microphone === 'on'")
    studio.say("question")
    studio.until_state("user_speaking")
    studio.after(1.8)
    studio.page.keyboard.up("Space")
    studio.until("(s) => s.microphone === 'muted'")
    product.logged(sid, "audio.ended")
    studio.until_said("user", "France")
    studio.until_said("assistant", "Paris")


def test_an_echo_comes_back_as_it_was_said(product: Product, open_studio: OpenStudio) -> None:
    phrase = "The quick brown fox jumps over the lazy dog."
    studio = open_studio(clips={"fox": spoken(product.models, phrase)})
    studio.page.get_by_role("button", name="Talk to").click()
    studio.page.get_by_role("radio", name="Echo").check()
    studio.button("Done").click()
    studio.start()
    studio.say("fox")
    studio.after(4.5)
    played = studio.played()
    assert shared_words(phrase, transcribed(product.models, played.sound, played.rate)) >= 0.8
    recorded = studio.recorded()
    begun = recorded.first_loud(0.05, 0)
    echoed = played.first_loud(0.05, 0)
    assert begun is not None
    assert echoed is not None
    assert 0.02 <= echoed - begun <= 1


def _tab_to(studio: Studio, name: str) -> None:
    focused = "() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()"
    for _ in range(30):
        studio.page.keyboard.press("Tab")
        if studio.page.evaluate(focused) == name:
            return
    raise AssertionError(f"no Tab leads to {name!r}")
