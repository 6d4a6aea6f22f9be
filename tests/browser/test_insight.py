"""A session's page over a recorded log, without models: half an hour opens at once, any moment shows its state, every gap its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import DESKTOP
from tests.browser.stage.past import Past, past
from tests.browser.stage.visits import Visit, visits
from tests.browser.test_looks import SIZES, look
from voxbridge.shared import events

pytestmark = pytest.mark.timeout(600)

OPENING_MS = 10_000
"""Limit in ms for a busy machine; docs/benchmarks.md has the time on a quiet one."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    """The past session that the tests view."""
    with past(tmp_path_factory.mktemp("past")) as found:
        yield found


@pytest.fixture
def visit(served: Past, browser: Browser) -> Iterator[Visit]:
    """Open a path of it."""
    with visits(browser, served.url, DESKTOP, cuts=False) as visit:
        yield visit


def test_half_an_hour_is_open_in_a_moment(visit: Visit, served: Past) -> None:
    studio = visit("/sessions")
    studio.page.goto(f"{served.url}/sessions/{served.long}")
    expect(studio.page.get_by_text("1465 events")).to_be_visible()
    expect(studio.page.get_by_role("slider", name="Time in the session")).to_have_attribute("aria-valuemax", re.compile(r"^1[78]\d{5}$"))
    opened = studio.page.evaluate("() => performance.now()")
    assert opened < OPENING_MS
    expect(studio.page.get_by_text("180 turns")).to_be_visible()
    expect(studio.page.get_by_text("Not recorded, so there are no waveforms")).to_be_visible()
    pages = studio.page.evaluate("() => performance.getEntriesByType('resource').filter((one) => one.name.includes('/events?')).length")
    assert pages == 3


def test_moving_through_half_an_hour_keeps_the_frames_coming(visit: Visit, served: Past) -> None:
    studio = visit(f"/sessions/{served.long}")
    slider = studio.page.get_by_role("slider", name="Time in the session")
    box = slider.bounding_box()
    assert box is not None
    replaced = """() => { window.__addresses = 0; const put = history.replaceState.bind(history);
        history.replaceState = (...all) => { window.__addresses += 1; put(...all); }; }"""
    studio.page.evaluate(replaced)
    studio.page.mouse.move(box["x"] + 100, box["y"] + 60)
    studio.page.mouse.down()
    studio.page.mouse.move(box["x"] + box["width"] - 40, box["y"] + 60, steps=120)
    studio.page.mouse.up()
    expect(studio.page).to_have_url(re.compile(r"\?t=1[67]\d{5}$"))
    assert 1 <= studio.page.evaluate("() => window.__addresses") < 60, "the address does not follow each movement"


def test_a_moment_has_an_address_a_state_and_the_inputs_that_led_there(visit: Visit, served: Past) -> None:
    studio = visit(f"/sessions/{served.short}?t=43150")
    page = studio.page
    state = page.get_by_role("region", name="State")
    expect(state.get_by_text("calling tool")).to_be_visible()
    expect(state.get_by_text("voice-1, term 1")).to_be_visible()
    expect(state.get_by_text("Current time fc_")).to_be_visible()
    expect(state.get_by_text("What time is it in Tokyo?").first).to_be_visible()
    slider = page.get_by_role("slider", name="Time in the session")
    slider.press("Home")
    expect(page).to_have_url(re.compile(r"\?t=0$"))
    expect(state.get_by_text("Nothing was said yet.")).to_be_visible()
    page.get_by_role("region", name="Transcript").get_by_role("button", name="How long will the train take?").first.click()
    details = page.get_by_role("region", name="Event", exact=True)
    details.get_by_text("Inputs taken since the event before").click()
    expect(details.get_by_role("region", name="Inputs of voice")).to_contain_text("transcribed")


def test_each_gap_says_why(visit: Visit, served: Past) -> None:
    studio = visit(f"/sessions/{served.short}")
    page = studio.page
    gaps = page.get_by_role("region", name="Interruptions")
    expect(gaps.get_by_role("button")).to_have_count(4)
    gaps.get_by_role("button", name="Worker lost").click()
    expect(gaps.get_by_text("voice-1 died or hung")).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?t=4[45]\d{3}$"))
    for title, why in (
        ("Worker stopped", "gave the session up"),
        ("Client cut off", "was back on gateway-2 after 2.00 s"),
        ("The language model failed", "overloaded"),
    ):
        gaps.get_by_role("button", name=title).click()
        expect(gaps.get_by_text(why)).to_be_visible()


def test_a_recorded_voice_is_drawn_and_zooming_draws_it_finer(visit: Visit, served: Past) -> None:
    studio = visit(f"/sessions/{served.short}?t=20000")
    page = studio.page
    expect(page.get_by_text("The recording is being read.")).to_have_count(0)
    expect(page.get_by_text("Not recorded")).to_have_count(0)
    slider = page.get_by_role("slider", name="Time in the session")
    with page.expect_response(re.compile(r"waveform\?channel=in.*from_ms=\d+&to_ms=\d+")) as closer:
        for _ in range(3):
            slider.press("+")
    found = closer.value.json()
    assert found["recorded"] is True
    assert found["to_ms"] - found["from_ms"] < 70_000


def test_talk_says_that_calls_are_recorded_before_one_begins(visit: Visit) -> None:
    studio = visit("/")
    expect(studio.page.get_by_text("Calls are recorded here: both voices are kept")).to_be_visible()
    studio.picture("recorded-desktop")
    # There are no models here, so the browser reports the 503 of the readiness check.
    assert all("503" in complaint for complaint in studio.complaints)
    studio.complaints.clear()


def test_a_live_session_is_followed_at_its_right_edge_until_a_moment_is_chosen(visit: Visit, served: Past) -> None:
    sid = "d" * 32
    requested, owned = events.gateway.SessionRequested(mode="local"), events.voice.SessionOwned(worker="voice-9", term=1)
    served.goes_on(sid, (requested, "gateway"), (owned, "voice"))
    studio = visit(f"/sessions/{sid}")
    page = studio.page
    expect(page.get_by_text("following live")).to_be_visible()
    served.goes_on(sid, (events.voice.UserSaid(text="Are you there?", turn=1, source="text"), "voice"))
    line = page.get_by_role("region", name="Transcript").get_by_role("button", name="Are you there?")
    expect(line).to_be_visible()
    line.click()
    expect(page.get_by_text("following live")).to_have_count(0)
    page.get_by_role("button", name="Follow live").click()
    expect(page).to_have_url(re.compile(rf"/sessions/{sid}$"))
    served.goes_on(sid, (events.voice.SessionEnded(reason="client"), "voice"))
    expect(page.get_by_text("Ended", exact=True)).to_be_visible()


@pytest.mark.parametrize("size", SIZES)
def test_the_page_is_without_barriers(visit: Visit, served: Past, size: str) -> None:
    studio = visit(f"/sessions/{served.short}?t=46000", **SIZES[size])
    expect(studio.page.get_by_role("region", name="State").get_by_text("Inputs taken")).to_be_visible()
    studio.page.get_by_role("button", name="Worker lost").click()
    expect(studio.page.get_by_text("The recording is being read.")).to_have_count(0)
    studio.page.evaluate("() => scrollTo(0, 0)")
    look(studio, f"insight-{size}")
    studio.open(f"/sessions/{served.long}")
    expect(studio.page.get_by_role("region", name="State").get_by_text("Inputs taken")).to_be_visible()
    look(studio, f"insight-long-{size}")
