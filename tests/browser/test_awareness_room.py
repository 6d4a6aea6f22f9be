"""The Awareness room over a real gateway and service: Studio reports its pages, and shows and switches off what agents are told."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import DESKTOP
from tests.browser.stage.past import Past, past
from tests.browser.stage.visits import Visit, visits
from tests.browser.test_looks import SIZES, look

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    with past(tmp_path_factory.mktemp("awareness")) as found:
        yield found


@pytest.fixture
def visit(served: Past, browser: Browser) -> Iterator[Visit]:
    with visits(browser, served.url, DESKTOP) as visit:
        yield visit


def report(served: Past, **fields: Any) -> dict[str, Any]:
    body = json.dumps(fields).encode()
    request = urllib.request.Request(f"{served.url}/api/vox/awareness", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return dict(json.load(answer))


@pytest.mark.parametrize("size", SIZES)
def test_what_agents_are_told_is_shown_word_for_word_and_each_source_is_switched_off(visit: Visit, served: Past, size: str) -> None:
    studio = visit("/agents", **SIZES[size])
    page = studio.page
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    page.wait_for_timeout(600)  # a page that is only passed is not reported
    report(served, event_type="error", error_type="TypeError", message="orders is undefined", page="/orders?token=planted")
    report(served, event_type="context", key="project", value="Apollo")
    page.get_by_role("link", name="Awareness").click()
    told = page.locator("pre.told")
    expect(told).to_contain_text('"/agents" titled "Agents"', timeout=20_000)
    expect(told).to_contain_text('"TypeError": "orders is undefined" on "/orders"')
    expect(told).to_contain_text('"project" is "Apollo"')
    assert "planted" not in told.inner_text()
    look(studio, f"awareness-{size}")
    errors = page.get_by_role("switch", name="Errors")
    expect(errors).to_be_checked()
    errors.click()
    expect(errors).not_to_be_checked(timeout=10_000)
    expect(told).not_to_contain_text("TypeError", timeout=10_000)
    assert report(served, event_type="error", error_type="E", message="nobody sees this") == {"success": True, "recorded": False}
    errors.focus()
    page.keyboard.press("Space")
    expect(errors).to_be_checked(timeout=10_000)
    expect(told).not_to_contain_text("TypeError")
    report(served, event_type="error", error_type="RangeError", message="seen again")
    expect(told).to_contain_text("RangeError", timeout=10_000)
    page.get_by_role("button", name="Resolve RangeError: seen again").click()
    expect(told).not_to_contain_text("RangeError", timeout=10_000)
