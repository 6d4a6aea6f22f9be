"""The whole product with a real Chromium before it, by the tools of the browser tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from deploy.browser import find
from tests.browser.conftest import FLAGS
from tests.browser.stage.product import Product, running
from tests.browser.stage.studio import MICROPHONE, Studio
from tests.running_models import RunningModels


@contextmanager
def product_and_browser(models: RunningModels) -> Iterator[tuple[Product, Browser]]:
    """Run `voxbridge up` and a browser that allows the microphone. Raises `RuntimeError` without a Chromium."""
    path = find()
    if path is None:
        raise RuntimeError("There is no Chromium: run `python3 deploy/browser.py`.")
    with (
        tempfile.TemporaryDirectory(prefix="voxbridge-bench-") as folder,
        running(Path(folder), models, environment={"VOXBRIDGE_SYNC_INTERVAL": "always"}) as product,
        sync_playwright() as play,
    ):
        browser = play.chromium.launch(executable_path=path, headless=True, args=[*FLAGS, "--use-fake-ui-for-media-stream"])
        try:
            yield product, browser
        finally:
            browser.close()


def studio(browser: Browser, product: Product) -> Studio:
    """Open Studio in a page whose microphone plays clips."""
    page = browser.new_context(viewport={"width": 1280, "height": 820}).new_page()
    page.add_init_script(path=MICROPHONE)
    found = Studio(page, product.url)
    found.open()
    return found
