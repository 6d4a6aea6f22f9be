"""The Sessions room: every call is in the list, and the events of a call are on a timeline that follows a live call."""

from __future__ import annotations

import re
import time
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenStudio
from tests.browser.stage.product import Product
from tests.browser.stage.studio import Studio

pytestmark = pytest.mark.timeout(600)


def test_a_live_call_is_on_top_and_is_followed_until_it_ends(product: Product, studio: Studio, open_studio: OpenStudio) -> None:
    sid = _call(studio)
    other = open_studio("/sessions")
    live = other.page.get_by_role("region", name="Live now")
    live.get_by_role("link", name=re.compile(sid)).click()
    expect(other.page).to_have_url(re.compile(f"/sessions/{sid}$"))
    expect(other.page.get_by_text("following live")).to_be_visible()

    studio.type("What is 6 times 7?")
    studio.until_said("assistant", "42|forty.two")
    transcript = other.page.get_by_role("region", name="Transcript")
    expect(transcript.get_by_role("button", name="What is 6 times 7?")).to_be_visible()

    silence = studio.page.get_by_role("button", name="Silence the agent")
    silence.click()
    rooms = studio.page.get_by_role("navigation")
    rooms.get_by_role("link", name="Sessions").click()
    rooms.get_by_role("link", name="Talk").click()
    expect(silence).to_have_attribute("aria-pressed", "true")
    studio.end()
    expect(other.page.get_by_text("Ended", exact=True)).to_be_visible()
    product.logged(sid, "session.ended")
    answer = transcript.locator("button[data-role=assistant] > span:not([class])").filter(has_text=re.compile("42|forty.two"))
    expect(answer.last).to_be_visible()


def test_a_moment_of_a_session_has_an_address(product: Product, studio: Studio) -> None:
    sid = _call(studio)
    studio.type("What is 6 times 7?")
    studio.until_said("assistant", "42|forty.two")
    studio.end()
    product.logged(sid, "session.ended")
    events = product.log(sid)
    asked = next(event for event in events if event["type"] == "user.said")
    at_ms = (asked["ts"] - events[0]["ts"]) / 1_000

    studio.open(f"/sessions/{sid}?t={at_ms + 1:.0f}")
    slider = studio.page.get_by_role("slider", name="Time in the session")
    expect(slider).to_have_attribute("aria-valuenow", f"{at_ms + 1:.0f}")
    transcript = studio.page.get_by_role("region", name="Transcript")
    expect(transcript.locator("[aria-current=true]")).to_contain_text("What is 6 times 7?")
    slider.press("End")
    expect(studio.page).to_have_url(re.compile(r"\?t=\d+$"))
    expect(studio.page.get_by_text(re.compile(r"^(\d+) of \1$"))).to_be_visible()
    slider.press("[")
    expect(studio.page.get_by_text(re.compile(r"^(\d+) of \1$"))).to_have_count(0)
    transcript.get_by_role("button", name="What is 6 times 7?").click()
    expect(studio.page).to_have_url(re.compile(rf"\?t={round(at_ms)}$"))


def test_a_moment_of_a_call_shows_what_terminals_showed_then(product: Product, open_studio: OpenStudio) -> None:
    def ask(method: str, path: str = "", **body: Any) -> Any:
        answer = httpx.request(method, f"{product.url}/api/terminals{path}", json=body or None, timeout=40)
        return answer.raise_for_status().json()

    terminal = ask("POST", definition="bash", name="Build")["id"]

    def runs(command: str) -> int:
        assert ask("POST", f"/{terminal}/wait", until="idle", timeout_s=20)["met"]
        sent = ask("POST", f"/{terminal}/send", text=command)
        assert sent["outcome"] == "submitted", sent
        assert ask("POST", f"/{terminal}/wait", until="idle", timeout_s=20)["met"]
        return time.time_ns() // 1_000

    studio = open_studio()
    studio.page.get_by_role("button", name="Talk to").click()
    studio.page.get_by_role("radio", name="Echo").check()
    studio.button("Done").click()
    sid = studio.start()
    first = runs("clear; echo one of two")
    second = runs("clear; echo two of two")
    ask("DELETE", f"/{terminal}")
    closed = time.time_ns() // 1_000
    studio.after(1.0)
    studio.end()
    product.logged(sid, "session.ended")
    begun = product.log(sid)[0]["ts"]
    screen = studio.page.get_by_label("Screen of Build")
    for at, shown in ((first, "one of two"), (second, "two of two")):
        studio.open(f"/sessions/{sid}?t={(at - begun) // 1_000}")
        expect(screen).to_contain_text(re.compile(f"^{shown}$", re.MULTILINE))
    screen.scroll_into_view_if_needed()
    studio.picture("session-terminals")
    studio.open(f"/sessions/{sid}?t={(closed - begun) // 1_000 + 500}")
    expect(studio.page.get_by_role("region", name="State")).to_be_visible()
    expect(screen).to_have_count(0)


def test_the_list_is_searched_and_an_unknown_session_is_said_to_be_unknown(studio: Studio) -> None:
    sid = _call(studio)
    studio.end()
    studio.open("/sessions")
    search = studio.page.get_by_role("searchbox", name="Search sessions")
    search.fill(sid[:12])
    expect(studio.page.get_by_role("link", name=re.compile(sid))).to_be_visible()
    search.fill("nothing has this id")
    expect(studio.page.get_by_text("No session matches")).to_be_visible()

    unknown = "0" * 32
    studio.open(f"/sessions/{unknown}")
    expect(studio.page.get_by_role("alert")).to_contain_text("There is no such session.")
    # The browser reports the expected 404s on its console.
    assert all("404" in complaint for complaint in studio.complaints)
    studio.complaints.clear()


def _call(studio: Studio) -> str:
    sid = studio.start()
    studio.until_quiet()
    return sid
