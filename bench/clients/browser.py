"""Barge-in in a real Chromium, as a separate process, with the tools of the browser tests.

    python -m bench.clients.browser 6

Starts the whole product with `voxbridge up`, opens Studio, interrupts the agent that many times with three voices in turn, and prints one
JSON line: `{"onset_to_silence_ms": [...]}`.
"""

from __future__ import annotations

import sys

from bench.areas.barge_in import Heard
from bench.clients.chromium import product_and_browser, studio
from bench.program import put
from tests.browser.stage.barge_in import measured
from tests.browser.stage.speech import human, spoken
from tests.running_models import running_models


def interruptions(times: int) -> list[float]:
    """Return the milliseconds from each onset to silence; raises `RuntimeError` without a Chromium."""
    models = running_models()
    clips = {"stop": spoken(models, "Stop, please."), "wait": spoken(models, "Wait a moment."), "person": human()}
    with product_and_browser(models) as (product, browser):
        return [found.ms for found in measured(studio(browser, product), clips, times)]


if __name__ == "__main__":
    put(Heard(interruptions(int(sys.argv[1]))))
