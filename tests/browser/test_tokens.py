"""Studio on a gateway that others reach: it asks for a token, takes it from a link, and keeps it over a reload and in no address."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from shared import access_tokens
from shared.access_tokens import Wishes
from tests.browser.conftest import DESKTOP
from tests.browser.past import Past, past
from tests.browser.studio import Studio
from tests.browser.test_looks import SIZES, look

pytestmark = pytest.mark.timeout(600)

ASKS = "This Voxbridge asks for a token"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the gateway's data is."""
    found = tmp_path_factory.mktemp("tokens")
    (found / "agents").mkdir()
    return found


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Past]:
    """A gateway that lets in another host."""
    with past(folder, allowed_hosts="voice.example.com") as found:
        yield found


def admin(folder: Path) -> str:
    return (folder / "data" / "admin.token").read_text().strip()


def asks(page: Page) -> None:
    expect(page.get_by_role("heading", name=ASKS)).to_be_visible()


@pytest.mark.parametrize("size", SIZES)
def test_studio_asks_for_a_token_and_goes_on_with_it(served: Past, folder: Path, browser: Browser, size: str) -> None:
    options: dict[str, Any] = {**DESKTOP, **SIZES[size]}
    context = browser.new_context(**options)
    studio = Studio(context.new_page(), served.url)
    studio.cuts_are_expected()
    page = studio.page
    studio.open("/sessions")
    asks(page)
    look(studio, f"token-{size}")
    field = page.get_by_role("textbox", name="Token")
    field.fill("x" * 43)
    field.press("Enter")
    expect(page.get_by_role("status").filter(has_text="does not count")).to_be_visible()
    field.fill(admin(folder))
    field.press("Enter")
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    expect(page.locator(".session-rows a").first).to_be_visible()
    page.get_by_role("link", name="Keys").click()
    expect(page.get_by_role("listitem", name="Gemini")).to_be_visible()
    # The browser itself reports each refusal.
    assert all("401" in complaint for complaint in studio.complaints)
    context.close()


def test_a_link_brings_its_token_which_outlives_a_reload_and_is_in_no_address(served: Past, folder: Path, browser: Browser) -> None:
    terms = access_tokens.terms(Wishes(account="ada"), now_s=int(time.time()), modes=())
    options: dict[str, Any] = {**DESKTOP}
    context = browser.new_context(**options)
    studio = Studio(context.new_page(), served.url)
    studio.cuts_are_expected()
    page = studio.page
    studio.open(f"/#token={access_tokens.sign(terms, admin(folder))}")
    expect(page.get_by_role("heading", name="Talk to Voxbridge")).to_be_visible()
    assert page.url == f"{served.url}/"
    page.reload()
    expect(page.get_by_role("heading", name="Talk to Voxbridge")).to_be_visible()
    page.get_by_role("link", name="Sessions").click()
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    expect(page.get_by_role("heading", name=ASKS)).to_have_count(0)
    expect(page.locator(".session-rows a")).to_have_count(0)  # those of others
    page.get_by_role("link", name="Keys").click()
    expect(page.get_by_role("heading", name="Only for administrators")).to_be_visible()
    assert all("403" in complaint for complaint in studio.complaints)
    context.close()
