"""Barge-in: the agent falls silent at once, and words that were not heard are not in the history."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenStudio
from tests.browser.stage.barge_in import BargeIn, interrupted, measured
from tests.browser.stage.product import Product
from tests.browser.stage.speech import RATE, human, shared_words, spoken, transcribed, words
from tests.browser.stage.studio import Studio

pytestmark = pytest.mark.timeout(600)

PRESSED = """() => {
  for (const kind of ["keydown", "click"]) {
    addEventListener(kind, () => { window.__pressed ??= window.__voxbridge.clock().time; }, { capture: true });
  }
}"""
"""Records the time of a key press or click on the sound device's clock, because the test requests it before the page gets it."""


def test_the_agent_is_silent_while_the_person_still_speaks(product: Product, open_studio: OpenStudio) -> None:
    """Check several voices. The delay in ms is a figure of `make bench`."""
    clips = {
        "stop": spoken(product.models, "Stop, please, I have a question about that."),
        "wait": spoken(product.models, "Wait a moment, I want to ask something else."),
        "person": human(),
    }
    found = {name: barge_in.ms for name, barge_in in zip(clips, measured(open_studio(), clips, len(clips)), strict=True)}
    lasts = {name: len(clip) * 1_000 / RATE for name, clip in clips.items()}
    assert all(found[name] < lasts[name] for name in clips), (found, lasts)


def test_the_history_holds_only_what_was_heard(product: Product, open_studio: OpenStudio) -> None:
    studio = open_studio(clips={"wait": spoken(product.models, "Wait a moment.")})
    sid = studio.start()
    studio.until_quiet()
    cut = interrupted(studio, "wait")
    (said,) = product.logged(sid, "agent.said", generation=cut.generation)
    assert said["data"]["interrupted"]
    text, unheard = said["data"]["text"], said["data"]["unheard"]
    assert text
    assert unheard
    played = studio.played()
    sounded = played.between(_began(studio, cut), cut.flushed)
    waited_ms = np.count_nonzero(sounded == 0) * 1_000 / played.rate  # pauses in playback on a busy machine
    assert _lasted_ms(studio, cut) - waited_ms - 60 <= said["data"]["played_ms"] <= _lasted_ms(studio, cut) + 60

    heard = transcribed(product.models, sounded, played.rate)
    assert shared_words(text, heard) >= 0.6, (text, heard)
    assert len(words(text)) - len(words(heard)) <= 2, (text, heard)

    studio.until_said("user", "wait")
    studio.until_said("assistant", ".")
    lines = [line["text"] for line in product.session(sid)["transcript"] if line["role"] == "assistant"]
    assert text in lines
    assert all(unheard not in line for line in lines)
    expect(studio.captions().get_by_text("You interrupted here.").first).to_be_visible()
    # Nothing of the old reply was played after the flush.
    later = [
        report["state"] for report in studio.marks()["reports"] if report["generation"] == cut.generation and report["time"] > cut.flushed
    ]
    assert "playing" not in later


@pytest.mark.parametrize("stop", ["key", "button"])
def test_escape_and_the_stop_button_silence_the_agent(product: Product, studio: Studio, stop: str) -> None:
    sid = studio.start()
    studio.until_quiet()
    studio.type("Tell me a long story about the sea, with at least twelve sentences.")
    studio.heard(1)
    studio.page.evaluate(PRESSED)
    if stop == "key":
        studio.page.keyboard.press("Escape")
    else:
        studio.button("Stop speaking (Esc)").click()
    studio.until_state("listening")
    assert len(product.logged(sid, "interrupt.requested")) == 1
    (cancelled,) = product.logged(sid, "generation.cancelled", by="client")
    (said,) = product.logged(sid, "agent.said", generation=cancelled["data"]["generation"])
    assert said["data"]["interrupted"]
    studio.after(0.2)
    assert not _sounds_after(studio, float(studio.page.evaluate("() => window.__pressed")) + 0.2)


def _began(studio: Studio, cut: BargeIn) -> float:
    return next(float(report["time"]) for report in studio.marks()["reports"] if report["generation"] == cut.generation)


def _lasted_ms(studio: Studio, cut: BargeIn) -> float:
    return (cut.flushed - _began(studio, cut)) * 1_000


def _sounds_after(studio: Studio, time: float) -> bool:
    return studio.played().first_loud(1e-3, time) is not None
