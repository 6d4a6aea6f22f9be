"""What each room looks like, in light, dark and on a phone: without a barrier that axe can find, and pictures to look at."""

from __future__ import annotations

from typing import Any, Final

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESKTOP, OpenStudio
from tests.browser.product import Product
from tests.browser.speech import spoken
from tests.browser.studio import Studio

pytestmark = pytest.mark.timeout(600)

LOOKS: Final[dict[str, dict[str, Any]]] = {
    "light": {**DESKTOP, "color_scheme": "light"},
    "dark": {**DESKTOP, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "device_scale_factor": 2, "has_touch": True, "is_mobile": True},
    "phone-dark": {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "dark",
        "device_scale_factor": 2,
        "has_touch": True,
        "is_mobile": True,
    },
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_room_is_without_barriers(product: Product, open_studio: OpenStudio, look: str) -> None:
    studio = open_studio(clips={"time": spoken(product.models, "What time is it in Tokyo?")}, **LOOKS[look])
    _check(studio, f"welcome-{look}")
    sid = studio.start()
    studio.until_quiet()
    studio.say("time")
    studio.until_state("user_speaking")
    _check(studio, f"hearing-{look}")
    studio.until_said("assistant", r"\d")
    studio.until_quiet()
    studio.type("Tell me a long story about the sea, with at least twelve sentences.")
    studio.heard(2)
    _check(studio, f"talk-{look}")
    studio.page.keyboard.press("Escape")
    studio.until_quiet()
    studio.button("Call settings").click()
    _check(studio, f"settings-{look}")
    studio.page.keyboard.press("Escape")
    studio.button("Help").click()
    _check(studio, f"help-{look}")
    studio.button("Close").click()
    studio.end()
    _check(studio, f"ended-{look}")

    studio.open("/sessions")
    expect(studio.page.get_by_role("link", name=sid)).to_be_visible()
    _check(studio, f"sessions-{look}")
    product.logged(sid, "session.ended")
    called = product.logged(sid, "tool.called")[0]
    at_ms = (called["ts"] - product.log(sid)[0]["ts"]) // 1_000
    studio.open(f"/sessions/{sid}?t={at_ms}")
    expect(studio.page.get_by_role("region", name="Transcript").locator("[aria-current=true]")).to_be_visible()
    _check(studio, f"session-{look}")


def _check(studio: Studio, name: str) -> None:
    studio.picture(name)
    assert studio.violations() == []
