"""Studio on a gateway with remote access: it asks for a token, takes it from a link, keeps it over a reload, and puts it in no address."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP
from tests.browser.stage.past import Past, past
from tests.browser.stage.studio import Studio
from tests.browser.test_looks import SIZES, look
from voxbridge.shared.secrets import access_tokens
from voxbridge.shared.secrets.access_tokens import Wishes

pytestmark = pytest.mark.timeout(600)

ASKS = "Enter a token to continue"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the gateway's data."""
    found = tmp_path_factory.mktemp("tokens")
    (found / "agents").mkdir()
    return found


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Past]:
    """A gateway that accepts another host."""
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
    expect(page.get_by_role("status").filter(has_text="is not valid")).to_be_visible()
    field.fill(admin(folder))
    field.press("Enter")
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    expect(page.locator(".session-rows a").first).to_be_visible()
    page.get_by_role("link", name="Keys").click()
    expect(page.get_by_role("listitem", name="Gemini")).to_be_visible()
    # The browser reports each refusal on its console.
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
    expect(page.locator(".session-rows a")).to_have_count(1)  # her own, and none of others
    page.get_by_role("link", name="Keys").click()
    expect(page.get_by_role("heading", name="This token can't read or set keys")).to_be_visible()
    page.get_by_role("link", name="Tools").click()
    parts = page.get_by_role("navigation", name="Parts of Tools")
    for name, what in (("Tasks", "the tasks"), ("Approvals", "what waits for an answer"), ("Macros", "the macros"), ("Runs", "the runs")):
        parts.get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", name=f"This token can't see {what}")).to_have_count(1)
        expect(page.get_by_role("alert")).to_have_count(0)
    assert all("403" in complaint for complaint in studio.complaints)
    context.close()


@contextmanager
def opened(served: Past, folder: Path, browser: Browser, account: str, sid: str, *refused: str) -> Iterator[tuple[Studio, list[str]]]:
    """Open the page of a session by the link of an account, with a clock that the test moves.

    The requests to the session's API are listed, and paths that end in `refused` are answered as if the token may not read them."""
    terms = access_tokens.terms(Wishes(account=account), now_s=int(time.time()), modes=())
    options: dict[str, Any] = {**DESKTOP}
    context = browser.new_context(**options)
    studio = Studio(context.new_page(), served.url)
    asked: list[str] = []
    page = studio.page
    page.clock.install()
    page.on("request", lambda request: asked.append(urlsplit(request.url).path) if f"/api/sessions/{sid}" in request.url else None)
    problem = {"code": "PERMISSION_DENIED", "message": "This needs the administrators' token.", "retryable": False}
    for path in refused:
        page.route(f"**/api/sessions/{sid}{path}*", lambda route: route.fulfill(status=403, json=problem))
    studio.open(f"/sessions/{sid}#token={access_tokens.sign(terms, admin(folder))}")
    try:
        yield studio, asked
    finally:
        context.close()


def test_the_page_of_a_call_is_shown_to_the_account_whose_it_is(served: Past, folder: Path, browser: Browser) -> None:
    with opened(served, folder, browser, "ada", served.short) as (studio, _):
        page = studio.page
        expect(page.get_by_role("region", name="Transcript").get_by_text("What time is it in Tokyo?").first).to_be_visible()
        page.clock.run_for(1_000)
        expect(page.get_by_role("region", name="State").get_by_text("Inputs taken")).to_be_visible()
        page.get_by_role("button", name="Why was it silent?").click()
        expect(page.get_by_role("region", name="Silences").get_by_role("listitem").first).to_be_visible()
        assert studio.complaints == []
        page.get_by_text("Inputs taken since the event before").click()
        expect(page.get_by_text("This token can't read what the services took in.")).to_be_visible()
        assert ["403" in complaint for complaint in studio.complaints] == [True]


def test_the_page_of_another_accounts_call_is_that_of_none(served: Past, folder: Path, browser: Browser) -> None:
    told = []
    for sid in (served.long, "0" * 32):
        with opened(served, folder, browser, "ada", sid) as (studio, asked):
            notice = studio.page.get_by_role("alert")
            expect(notice).to_contain_text("There is no such session.")
            told.append(notice.inner_text())
            studio.page.clock.run_for(60_000)
            assert studio.page.evaluate("async () => (await fetch('/healthz')).status") == 200
            assert asked == [f"/api/sessions/{sid}/events"]
    assert "not one of this token's account" in told[0]
    assert told[0] == told[1]


def test_what_a_token_cannot_read_is_said_once_and_not_asked_for_again(served: Past, folder: Path, browser: Browser) -> None:
    with opened(served, folder, browser, "ada", served.short, "/events") as (studio, asked):
        page = studio.page
        expect(page.get_by_role("heading", name="This token can't read this call")).to_have_count(1)
        expect(page.get_by_role("textbox", name="Administrator's token")).to_be_visible()
        page.clock.run_for(60_000)
        # The requests of that minute were sent before this one.
        assert page.evaluate("async () => (await fetch('/healthz')).status") == 200
        assert asked == [f"/api/sessions/{served.short}/events"]


def test_a_state_that_a_token_cannot_read_is_asked_for_at_no_other_moment(served: Past, folder: Path, browser: Browser) -> None:
    with opened(served, folder, browser, "ada", served.short, "/state") as (studio, asked):
        page = studio.page
        expect(page.get_by_role("region", name="Transcript")).to_be_visible()
        page.clock.run_for(1_000)
        told = page.get_by_role("region", name="State").get_by_role("status")
        expect(told).to_contain_text("This token can't read the state of this call.")
        page.get_by_role("button", name="Event before").click()
        page.clock.run_for(1_000)
        assert page.evaluate("async () => (await fetch('/healthz')).status") == 200
        assert [path.rpartition("/")[2] for path in asked].count("state") == 1
