"""Opening half an hour of talk in Studio's timeline, in a real Chromium, as a separate process.

    python -m bench.clients.timeline 8

Prints one JSON line, `bench.areas.past.Opened`: ms from navigation to the first frame that shows the requested page.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec
from playwright.sync_api import Page, sync_playwright

from bench.areas.past import Opened
from deploy.browser import find
from tests.browser.conftest import FLAGS
from tests.browser.stage import past

ROW: Final = ".session-row"
SCRUBBER: Final = "[role=slider][aria-label='Time in the session']"
_FRAME: Final = "() => new Promise((done) => requestAnimationFrame(() => done(performance.now())))"


def opened(times: int) -> Opened:
    """Open both pages in turn; the first opening of each fills the browser's cache and is not counted. Raises `RuntimeError`."""
    path = find()
    if path is None:
        raise RuntimeError("There is no Chromium: run `python3 deploy/browser.py`.")
    with tempfile.TemporaryDirectory(prefix="voxbridge-bench-") as folder, past.past(Path(folder)) as found, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        try:
            page = browser.new_context(viewport={"width": 1280, "height": 820}).new_page()
            timeline: list[float] = []
            listed: list[float] = []
            for _ in range(times + 1):
                listed.append(_open(page, f"{found.url}/sessions", ROW))
                timeline.append(_open(page, f"{found.url}/sessions/{found.long}", SCRUBBER))
            return Opened(timeline[1:], listed[1:])
        finally:
            browser.close()


def _open(page: Page, url: str, wanted: str) -> float:
    page.goto(url, wait_until="commit")
    page.locator(wanted).first.wait_for()
    return float(page.evaluate(_FRAME))


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(opened(int(sys.argv[1]))).decode() + "\n")
