"""Guided tours in the browser: each room's own by clicks and keys, and by recorded speech, with the agent's words for each step."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenStudio
from tests.browser.stage.product import Product
from tests.browser.stage.speech import spoken
from tests.browser.stage.studio import Studio
from tests.browser.test_looks import SIZES
from voxbridge.shared.tours import library

pytestmark = pytest.mark.timeout(900)

TOURS: Final = library.load(Path(__file__).parents[2] / "tours")
ROOMS: Final = ("talk", "tools", "agents", "bridge", "awareness", "keys")
"""Rooms that show every target of their tour without a call having been made."""

SAID_MS: Final = 60_000


def card(studio: Studio) -> Locator:
    return studio.page.locator(".tour-card")


def show_me_around(studio: Studio) -> Locator:
    studio.button("Help").click()
    studio.page.get_by_role("button", name="Show me around").click()
    expect(card(studio)).to_be_visible()
    return card(studio)


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_is_shown_step_by_step_by_clicks(open_studio: OpenStudio, room: str) -> None:
    tour = TOURS[room]
    studio = open_studio(f"{tour.path}?probe=1")
    shown = show_me_around(studio)
    expect(shown).to_contain_text(tour.description)
    shown.get_by_role("button", name="Begin").click()
    for number, step in enumerate(tour.steps, 1):
        expect(shown).to_contain_text(step.text)
        expect(shown).to_contain_text(f"{number} of {len(tour.steps)}")
        assert studio.page.locator(step.target).first.is_visible()
        if step.more:
            shown.get_by_role("button", name="Explain more").click()
            expect(shown).to_contain_text(step.more)
        shown.get_by_role("button", name=re.compile("^(Next|Done)$")).click()
    expect(shown).to_have_count(0)


def test_keys_steer_a_tour_and_leaving_the_room_ends_it(open_studio: OpenStudio) -> None:
    studio = open_studio("/tools?probe=1")
    steps = TOURS["tools"].steps
    shown = show_me_around(studio)
    for key, text in (("ArrowRight", steps[0].text), ("ArrowRight", steps[1].text), ("ArrowLeft", steps[0].text)):
        studio.page.keyboard.press(key)
        expect(shown).to_contain_text(text)
    studio.page.keyboard.press("Escape")
    expect(shown).to_have_count(0)
    show_me_around(studio)
    studio.page.evaluate("history.pushState(null, '', '/keys')")
    expect(shown).to_have_count(0)


def test_a_missing_target_is_passed_over_and_said(open_studio: OpenStudio) -> None:
    studio = open_studio("/agents?probe=1")
    _given(studio, "agents", lambda tour: tour["steps"][0].update(target=".nowhere"))
    shown = show_me_around(studio)
    shown.get_by_role("button", name="Begin").click()
    expect(shown).to_contain_text(TOURS["agents"].steps[1].text)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_tour_is_without_barriers_in_any_look(open_studio: OpenStudio, size: str, scheme: Any) -> None:
    studio = open_studio("/tools?probe=1", **SIZES[size], color_scheme=scheme, reduced_motion="reduce")
    shown = show_me_around(studio)
    shown.get_by_role("button", name="Begin").click()
    expect(shown).to_contain_text(TOURS["tools"].steps[0].text)
    box = shown.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= SIZES[size]["viewport"]["width"]
    assert studio.violations() == []
    studio.picture(f"tour-{size}-{scheme}")


def test_a_tour_is_asked_for_steered_and_stopped_by_voice(product: Product, open_studio: OpenStudio) -> None:
    words = {"start": "Start the tour.", "next": "Next.", "more": "Explain more.", "back": "Go back.", "stop": "Stop the tour."}
    studio = open_studio(clips={name: spoken(product.models, text) for name, text in words.items()})
    tour = TOURS["talk"]
    shown = card(studio)
    studio.start()
    studio.until_quiet()
    studio.say("start")
    expect(shown).to_contain_text(tour.description, timeout=SAID_MS)
    studio.until_said("assistant", "next to begin")
    first, second = tour.steps[0], tour.steps[1]
    for clip, text in (("next", first.text), ("more", first.more), ("next", second.text), ("back", first.text)):
        studio.until_quiet()
        studio.say(clip)
        expect(shown).to_contain_text(text, timeout=SAID_MS)
        studio.until_said("assistant", re.escape(text[:24]))
    studio.say("next")  # over the words of the step, which stop; the tour stays
    expect(shown).to_contain_text(second.text, timeout=SAID_MS)
    studio.until_quiet()
    shown.get_by_role("button", name="Next").click()
    expect(shown).to_contain_text(tour.steps[3].text, timeout=SAID_MS)  # in a call nobody else can be chosen
    studio.until_said("assistant", f"{tour.steps[2].title}.*pass over")
    studio.until_quiet()
    studio.say("stop")
    expect(shown).to_have_count(0, timeout=SAID_MS)
    studio.until_said("assistant", "tour is over")
    studio.end()


def _given(studio: Studio, page: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Have the gateway's tour of a page changed on its way."""
    tour = library.as_data(TOURS[page])
    change(tour)
    studio.page.route(f"**/api/vox/tours/{page}", lambda route: route.fulfill(body=json.dumps(tour), content_type="application/json"))
