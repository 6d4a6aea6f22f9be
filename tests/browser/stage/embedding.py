"""A page of others with an agent in it, as its visitor uses it: what is typed, what the history shows, and what the page says of itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import httpx
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from tests.browser.stage.product import LOG_S, Product
from tests.browser.stage.studio import MICROPHONE, WAIT_MS

OpenPage = Callable[..., Page]

_COUNTED: Final = """
window.__asked = 0;
const open = navigator.mediaDevices.getUserMedia;
navigator.mediaDevices.getUserMedia = (...of) => { window.__asked += 1; return open(...of); };
"""


@contextmanager
def pages(browser: Browser) -> Iterator[OpenPage]:
    """Yield `open_page(address, **context options)`. Its microphone plays the test's clips; `__asked` counts who wanted it."""
    complaints: list[str] = []

    def complain(message: ConsoleMessage) -> None:
        complaints.append(message.text)

    with ExitStack() as contexts:

        def open_page(address: str, **options: Any) -> Page:
            context = browser.new_context(viewport={"width": 900, "height": 700}, **options)
            contexts.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(WAIT_MS)
            page.add_init_script(path=MICROPHONE)
            page.add_init_script(_COUNTED)
            page.on("console", complain)
            page.goto(address)
            return page

        yield open_page
    sys.stdout.write("\n".join(complaints))


def says(page: Page, text: str) -> None:
    """Type a message and send it."""
    page.get_by_label("Message").fill(text)
    page.get_by_role("button", name="Send").click()


def shows(page: Page, text: str) -> None:
    """Wait until the history has a text."""
    expect(page.get_by_role("log")).to_contain_text(text, timeout=WAIT_MS)


def state(page: Page, text: str) -> None:
    """Wait until the status is this."""
    expect(page.get_by_role("status")).to_have_text(text, timeout=WAIT_MS)


def session_of(product: Product) -> str:
    """Return the id of the newest session, as soon as there is one: a page that is shown may not be in its call yet."""
    deadline = time.monotonic() + LOG_S
    while True:
        found = httpx.get(f"{product.url}/api/sessions").raise_for_status().json()["sessions"]
        if found:
            return str(found[0]["id"])
        assert time.monotonic() < deadline, "there is no session"
        time.sleep(0.05)
