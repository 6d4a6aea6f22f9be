"""Appearance of each room in light, dark and on a phone: no accessibility problem that axe can find, and screenshots for inspection."""

from __future__ import annotations

from typing import Any, Final, Literal

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESKTOP, OpenStudio
from tests.browser.stage.product import Product
from tests.browser.stage.speech import spoken
from tests.browser.stage.studio import Studio

pytestmark = pytest.mark.timeout(600)

SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
SIZES: Final[dict[str, dict[str, Any]]] = {
    "desktop": {**DESKTOP},
    "phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True},
}


@pytest.mark.parametrize("size", SIZES)
def test_every_room_is_without_barriers(product: Product, open_studio: OpenStudio, size: str) -> None:
    clips = {
        "time": spoken(product.models, "What time is it in Tokyo?"),
        "sky": spoken(product.models, "Why is the sky blue?"),
    }
    studio = open_studio(clips=clips, **SIZES[size])
    look(studio, f"welcome-{size}")
    sid = studio.start()
    studio.until_quiet()
    studio.say("time")
    studio.until_state("user_speaking")
    studio.picture(f"hearing-{size}")
    studio.until("(s) => s.conversation.some((e) => e.kind === 'call' && e.status === 'done')")
    studio.until_said("assistant", r"\d")
    studio.until_quiet()
    studio.say("sky")
    studio.until_state("speaking")
    look(studio, f"talk-{size}")
    studio.until_quiet()
    studio.button("Call settings").click()
    look(studio, f"settings-{size}")
    studio.page.keyboard.press("Escape")
    studio.button("Help").click()
    look(studio, f"help-{size}")
    studio.button("Close").click()
    studio.end()
    look(studio, f"ended-{size}")

    studio.open("/sessions")
    expect(studio.page.get_by_role("link", name=sid)).to_be_visible()
    look(studio, f"sessions-{size}")
    product.logged(sid, "session.ended")
    called = product.logged(sid, "tool.called")[0]
    at_ms = (called["ts"] - product.log(sid)[0]["ts"]) // 1_000 + 1
    studio.open(f"/sessions/{sid}?t={at_ms}")
    expect(studio.page.get_by_role("region", name="Transcript").locator("[aria-current=true]")).to_be_visible()
    look(studio, f"session-{size}")


def look(studio: Studio, name: str) -> None:
    """Take screenshots and check accessibility. Both screenshots come first, so that moving content such as speech is the same in both."""
    for scheme in SCHEMES:
        studio.page.emulate_media(color_scheme=scheme)
        studio.picture(f"{name}-{scheme}")
    found = []
    for scheme in SCHEMES:
        studio.page.emulate_media(color_scheme=scheme)
        found += [f"{scheme}: {violation}" for violation in studio.violations()]
    assert found == []
