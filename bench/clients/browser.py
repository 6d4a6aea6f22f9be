"""Barge-in in a real Chromium, as a separate process, with the tools of the browser tests.

    python -m bench.clients.browser 6

Starts the whole product with `voxbridge up`, opens Studio, interrupts the agent that many times with three voices in turn, and prints one
JSON line: `{"onset_to_silence_ms": [...]}`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec
from playwright.sync_api import sync_playwright

from bench.areas.barge_in import Heard
from deploy.browser import find
from tests.browser.conftest import FLAGS
from tests.browser.stage.barge_in import measured
from tests.browser.stage.product import running
from tests.browser.stage.speech import human, spoken
from tests.browser.stage.studio import MICROPHONE, Studio
from tests.running_models import running_models


def interruptions(times: int) -> list[float]:
    """Return the milliseconds from each onset to silence; raises `RuntimeError` without a Chromium."""
    path = find()
    if path is None:
        raise RuntimeError("There is no Chromium: run `python3 deploy/browser.py`.")
    models = running_models()
    clips = {"stop": spoken(models, "Stop, please."), "wait": spoken(models, "Wait a moment."), "person": human()}
    with (
        tempfile.TemporaryDirectory(prefix="voxbridge-bench-") as folder,
        running(Path(folder), models, environment={"VOXBRIDGE_SYNC_INTERVAL": "always"}) as product,
        sync_playwright() as play,
    ):
        browser = play.chromium.launch(executable_path=path, headless=True, args=[*FLAGS, "--use-fake-ui-for-media-stream"])
        try:
            page = browser.new_context(viewport={"width": 1280, "height": 820}).new_page()
            page.add_init_script(path=MICROPHONE)
            studio = Studio(page, product.url)
            studio.open()
            return [found.ms for found in measured(studio, clips, times)]
        finally:
            browser.close()


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(Heard(interruptions(int(sys.argv[1])))).decode() + "\n")
